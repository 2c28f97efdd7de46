"""The grant of a library: copies of the modules that its policy lists, and of no other."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agex.sandbox.classes import sealed_classes
from agex.sandbox.patches import library_caches
from agex.sandbox.policy.library import guarded
from agex.sandbox.policy.library_members import named
from agex.sandbox.policy.module_grant import ModuleGrant, Pattern, handed_out, make_for_each
from agex.sandbox.runtime import audit_hook

if TYPE_CHECKING:
    from agex.sandbox.policy.library import Library, Replacements

__all__ = ["LibraryGrant", "prepare"]


class LibraryGrant(ModuleGrant):
    """One importable module of a library, under the library's policy.

    Args:
        library: the policy.
        module_name: the library, or one of its modules.
        include, exclude: narrow the policy further. A dotted name without a wildcard in
            *include*, spelled as under the granted module, lifts the policy for that member.
        recursive: whether the modules below it are part of the grant.
        permissions: open while a function of the module runs.
    """

    def __init__(
        self,
        library: Library,
        module_name: str,
        *,
        include: Pattern = "*",
        exclude: Pattern = ("_*", "*._*"),
        recursive: bool = True,
        permissions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(
            module_name, include=include, exclude=exclude, recursive=recursive, permissions=permissions
        )
        self.library = library
        self.lifted = named(include)
        self._sealed = frozenset(library.sealed)

    @functools.cached_property
    def _replaced(self) -> Replacements:
        return self.library.replace("files" in self._permissions)

    def copy(self) -> types.ModuleType:
        """Return the copy of the module itself."""
        return self._copied(self.module_name)

    def submodule(self, path: str) -> types.ModuleType | None:
        """Return the copy of a module below; None if the policy does not list it."""
        full = f"{self.module_name}.{path}"
        *above, last = path.split(".")
        if not self._recursive or not all(self._allows(part, self.module_name) for part in (*above, last)):
            return None
        if self._leaves_out(last, ".".join((self.module_name, *above))):
            return None
        if self.library.granted(self._path(full)) is None:
            return None
        try:
            return self._copied(full)
        except ModuleNotFoundError:
            return None

    def has_submodule(self, name: str) -> bool:
        """Return whether the policy lists a submodule directly below, without importing it."""
        full = f"{self.module_name}.{name}"
        return self.library.granted(self._path(full)) is not None and super().has_submodule(name)

    def _path(self, full: str) -> str:
        return _path(self.library, full)

    def _copied(self, full: str) -> types.ModuleType:
        copy = self._copies.get(full)
        return audit_hook.call_as_host(self._copy, full) if copy is None else copy

    def _copy(self, full: str) -> types.ModuleType:
        """Load a listed module as the host: it may read settings and fonts among the host's files."""
        real = importlib.import_module(full)
        prepare(self.library)
        _hold(self.library)

        def fill(copy: types.ModuleType) -> None:
            vars(copy).update(self._granted(real, full))
            if make := self.library.own.get(self._path(full)):
                make_for_each(copy, make)
            if public := getattr(real, "__all__", None):
                vars(copy)["__all__"] = [name for name in public if name in vars(copy)]

        return self._made_once(full, real, fill)

    def _granted(self, real: types.ModuleType, full: str) -> Iterator[tuple[str, Any]]:
        """Return the members of a module, as guest code gets them."""
        path = self._path(full)
        guards = self.library.functions.get(path, {})
        replaced = {name: guarded(getattr(real, name), guard) for name, guard in guards.items()}
        replaced |= self._replaced.get(path, {})
        lifted = self.lifted if full == self.module_name else frozenset()
        for name in (*lifted, *replaced):
            if self._allows_member(name, full):
                value = getattr(real, name) if name in lifted else replaced[name]
                yield name, self._opened(value)
        if self._is_lazy(path):
            yield "__getattr__", functools.partial(self._looked_up, real)
            return
        for name, value, child in _listing(self.library, full):
            if name in replaced or name in lifted or not self._allows_member(name, full):
                continue
            if child is None:
                yield name, self._given(value)
            elif self._recursive:
                yield name, self._copied(child)
        if isinstance(version := getattr(real, "__version__", None), str):  # made when asked, in matplotlib
            yield "__version__", version

    def _allows_member(self, name: str, home: str) -> bool:
        if "." in name:
            return False
        is_top = home == self.module_name
        return self._allows(name, home) if is_top else not self._leaves_out(name, home)

    def _given(self, value: Any) -> Any:
        if isinstance(value, type) and f"{value.__module__}.{value.__qualname__}" in self._sealed:
            return sealed_classes.sealed(value)
        if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
            return value.copy()  # a constant of the module, which the host reads as well
        return self._opened(handed_out(value))

    def _looked_up(self, real: types.ModuleType, name: str) -> Any:
        """Do what ``__getattr__`` of a lazy module does."""
        if name.startswith("_") or name not in getattr(real, "__all__", ()):
            raise AttributeError(f"module '{real.__name__}' has no attribute '{name}'")
        value = audit_hook.call_as_host(getattr, real, name)
        return self._copied(value.__name__) if isinstance(value, types.ModuleType) else self._given(value)

    def _is_lazy(self, path: str) -> bool:
        return path not in self.library.modules


def _path(library: Library, full: str) -> str:
    """Return the path of a module below the library; one of another package has a slash before it."""
    inside = full == library.name or full.startswith(library.name + ".")
    return full[len(library.name) + 1 :] if inside else f"/{full}"


@functools.cache
def _listing(library: Library, full: str) -> tuple[tuple[str, Any, str | None], ...]:
    """Return the granted members of a module: name, value, and for a module its full name.

    The result is kept for all grants: a library has thousands of members.
    """
    from agex.sandbox.policy.library import only  # loaded already: there is a library

    real = sys.modules[full]
    members = library.granted(_path(library, full)) or only()
    public: frozenset[str] = frozenset(getattr(real, "__all__", ()))
    found: dict[str, tuple[str, Any, str | None]] = {}
    for name in filter(members.allows, (*vars(real), *public)):
        value = getattr(real, name, None)
        if isinstance(value, types.ModuleType):
            if library.granted(_path(library, value.__name__)) is not None and value.__name__ != library.name:
                found[name] = (name, None, value.__name__)
        elif members.is_explicit or (name in public if public else _is_own(library, value)):
            found[name] = (name, value, None)
    for child in _unloaded(library, real, full):
        name = child.rpartition(".")[2]
        found.setdefault(name, (name, None, child))
    return tuple(found.values())


def _is_own(library: Library, value: Any) -> bool:
    """Return whether a module without ``__all__`` offers *value*, and has not just imported it."""
    if not callable(value):
        return True
    home = str(getattr(value, "__module__", None) or library.name).partition(".")[0].lstrip("_")
    return home in {library.name, f"{library.name}_utils"}


def _unloaded(library: Library, real: types.ModuleType, full: str) -> Iterator[str]:
    """Load the listed modules below one that finds its modules only when they are asked for."""
    for path in library.modules if "__getattr__" in vars(real) else ():
        child = f"{library.name}.{path}"
        if path and child.rpartition(".")[0] == full:
            with suppress(ImportError):  # of another version of the library, or without what it needs
                importlib.import_module(child)
                yield child


@functools.cache
def prepare(library: Library) -> None:
    """Load the modules that the library would load later, and prepare it as its policy needs."""
    audit_hook.call_as_host(_prepare, library)


def _prepare(library: Library) -> None:
    with _PREPARING:
        library.prepare()
        for name in (library.name, *library.preload):
            with suppress(ImportError):
                importlib.import_module(name)
        _hold(library)


def _hold(library: Library) -> None:
    """Hold the caches of modules that were loaded since: they keep no guest objects."""
    with _PREPARING:
        library_caches.hold_memoized((library.name, *library.brings, *library.preload))


_PREPARING = threading.RLock()
"""Held while libraries are prepared: a thread that comes second waits until all is in place."""
