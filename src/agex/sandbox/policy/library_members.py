"""Members of library objects: the verdicts and guards of all libraries in force."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import namespace_of
from agex.errors import SandboxError
from agex.sandbox.classes import sealed_classes
from agex.sandbox.classes.errors import check_keywords, refusal
from agex.sandbox.classes.super_lookup import super_self
from agex.sandbox.policy.library import Guard, PathGuard, homes
from agex.sandbox.policy.module_grant import open_while
from agex.sandbox.runtime.host_time import HOST_TIME, of_host
from agex.sandbox.runtime.provenance import Notes

if TYPE_CHECKING:
    from agex.sandbox.policy.library import Library
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["COPIED", "DENIED", "ActiveLibraries", "member_door", "named", "open_guard", "unsealed"]


def DENIED(real: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - a verdict, beside the guards
    """Stand for a member that is not answered."""
    raise SandboxError("this member is not available")


def COPIED(real: Any) -> Any:  # noqa: N802 - a verdict, beside the guards
    """Return a copy of an array, a table, or a list of them; any other object itself."""
    if isinstance(real, list):
        return type(real)(map(COPIED, real))
    return real.copy() if hasattr(type(real), "copy") else real


def unsealed(class_: type) -> type:
    """Return the real class behind the stand-in of a sealed class; any other class as it is."""
    real = namespace_of(class_).get("_real") if type(class_) is _SEALED else None
    return real if isinstance(real, type) else class_


_SEALED = type(sealed_classes.sealed(object))


def named(include: Any) -> frozenset[str]:
    """Return the patterns that are plain names: they lift the policy of a library."""
    if callable(include):
        return frozenset()
    patterns: Iterable[str] = (include,) if isinstance(include, str) else include
    return frozenset(each for each in patterns if not set(each) & set("*?["))


_CACHE_SIZE = 1024  # verdicts of one class: a program may ask for names without end
_UNKNOWN: Any = object()


class ActiveLibraries:
    """The libraries in force under one policy."""

    def __init__(self) -> None:
        # Weakly: a guest class holds its methods, and these hold all of its session.
        self._cache: Notes[dict[str, Guard | None]] = Notes()
        self._libraries: dict[str, Library] = {}
        self._lifted: dict[str, frozenset[str]] = {}
        self._permissions: dict[str, tuple[str, ...]] = {}

    def add(self, library: Library) -> None:
        """Put a library in force."""
        self._libraries[library.name] = library
        self._cache = Notes()

    def loosen(self, library: Library, lifted: frozenset[str], opened: tuple[str, ...]) -> None:
        """Lift the policy for members that a registration names, and add its permissions."""
        self._lifted[library.name] = self._lifted.get(library.name, frozenset()) | lifted
        self._permissions[library.name] = tuple(
            dict.fromkeys((*self._permissions.get(library.name, ()), *opened))
        )
        self._cache = Notes()

    def verdict(self, class_: type, name: str) -> Guard | None:
        """Return the guard of a member, `DENIED`, or None where no library says anything."""
        known = self._cache.get(class_)
        if known is None:
            known = {}
            self._cache.set(class_, known)
        found: Guard | None = known.get(name, _UNKNOWN)
        if found is _UNKNOWN:
            if len(known) >= _CACHE_SIZE:
                known.clear()
            found = known[name] = self._verdict(class_, name)
        return found

    def _verdict(self, class_: type, name: str) -> Guard | None:
        found: Guard | None = None
        for home, qualname in homes(class_):
            library = self._libraries.get(home)
            if library is None:
                continue
            own = f"{qualname}.{name}"
            if own in self._lifted.get(home, ()):
                return open_guard(self._permissions.get(home, ()))
            if found is None and own in library.answered:
                return None
            for key in (own, name):
                if found is None and key in library.copied:
                    found = COPIED
                elif found is None and (key in library.denied or key in library.guarded):
                    found = DENIED if key in library.denied else library.guarded[key]
                    if found is not DENIED and (opened := self._permissions.get(home)):
                        found = _opened_guard(opened, found)
        return found

    def restricts(self, class_: type) -> bool:
        """Return whether a library has rules for members of a class itself, apart from its bases."""
        home, qualname = next(homes(class_), ("", ""))
        library = self._libraries.get(home)
        if library is None:
            return False
        return any(
            not owner or owner == qualname
            for owner, _, _ in (key.rpartition(".") for key in (*library.denied, *library.guarded))
        )

    def keeps(self, class_: type, name: str) -> bool:
        """Return whether objects do not answer *name*, or answer it with a copy."""
        return self.verdict(class_, name) in (DENIED, COPIED)

    def is_whole(self, class_: type) -> bool:
        """Return whether no guest class may derive from a class."""
        known = self._libraries
        return any(home in known and name in known[home].whole for home, name in homes(class_))

    def instead(self, class_: type, name: str) -> str | None:
        """Return advice in place of a member; None where no library has any."""
        for home, qualname in homes(class_):
            said = self._libraries[home].instead if home in self._libraries else {}
            if text := said.get(f"{qualname}.{name}", said.get(name)):
                return text
        return None

    def is_writable(self, class_: type, name: str) -> bool | None:
        """Return whether an attribute of instances may be assigned; None where no library decides it."""
        said: bool | None = None
        for home, qualname in homes(class_):
            library = self._libraries.get(home)
            if library is not None and library.writable is not None:
                if qualname in library.writable:
                    return f"{qualname}.{name}" not in library.fixed
                said = False
        return said


@functools.cache
def open_guard(opened: tuple[str, ...]) -> Guard | None:
    """Return the guard of a member that the host named itself: one that opens permissions, or None."""
    if not opened:
        return None
    return _opened_guard(opened, lambda real, *args, **kwargs: real(*args, **kwargs))


def _opened_guard(opened: tuple[str, ...], guard: Guard) -> Guard:
    if "files" in opened and isinstance(guard, PathGuard):
        guard = guard.opened()
    if HOST_TIME in opened:
        guard = of_host(guard)
    permissions = tuple(each for each in opened if each != HOST_TIME)
    return open_while(permissions, guard) if permissions else guard


class _Answer:
    """A receiver in place of the real one: any attribute of it is the value."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", value)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "_value")


def member_door(guards: Membrane, receiver: Any, name: str) -> Any:
    """Answer a contested member of a library's object, class or ``super()``."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    owner = subject if issubclass(type(subject), type) else type(subject)
    if guards.policy.denies(owner, name):
        raise refusal(subject, name, guards.policy.instead(owner, name))
    guard = guards.policy.guard(owner, name)
    if guard is None:
        return receiver
    real = getattr(receiver, name)
    if guard is COPIED:
        if isinstance(real, property):  # read off the class, it would lead to the data itself
            raise refusal(subject, name)
        return _Answer(COPIED(real))
    # Read off a class, a method takes its receiver as the first argument.
    unbound = receiver is subject and issubclass(type(subject), type) and isinstance(real, types.FunctionType)
    return _Answer(_guarded(guard, real, name, unbound=unbound))


def _guarded(guard: Guard, real: Callable[..., Any], name: str, *, unbound: bool) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        check_keywords(kwargs)
        if unbound:
            bound = functools.partial(real, *args[:1])
            bound.__name__ = name  # type: ignore[attr-defined]
            return guard(bound, *args[1:], **kwargs)
        return guard(real, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call
