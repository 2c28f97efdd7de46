"""Modules and live objects of which some functions act on the world, as guest code gets them.

Guest code gets a stand-in whose functions are those of `external_functions`; it leads to no original. So each
call is journalled, also one that a library makes: ``print(file=store)`` calls ``store.write``.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MethodType, ModuleType
from typing import Any, Literal, NoReturn

from typing_extensions import is_typeddict

from agex.agent.durable.external_functions import external, like
from agex.agent.durable.stand_ins import StandIn, original, originals, stand_in
from agex.agent.registration import Mark, Registration, acting_members, mark_of
from agex.agent.registration.marks import operators_of
from agex.errors import DefinitionError

__all__ = ["external_module", "external_object", "with_originals"]


@dataclass(frozen=True, kw_only=True)
class _Member:
    """A function of a module or of a live object, which acts on the world."""

    name: str
    target: Any
    external: bool | Literal["idempotent"]
    approval: Any


def _member(one: Registration, name: str, target: Any, mark: Mark) -> Callable[..., Any]:
    member = _Member(name=f"{one.name}.{name}", target=target, external=mark.external, approval=mark.approval)
    return external(member)


def external_module(one: Registration, members: Mapping[str, Any]) -> ModuleType:
    """Return the module that stands in for a registered one of which functions act on the world.

    Args:
        one: the registration.
        members: the parts that guest code may use of the module, by name.

    Raises:
        DefinitionError: some is neither a function nor plain data, so what it does could not be journalled.
    """
    made, others = ModuleType(one.name, one.target.__doc__), []
    acting = {id(value): mark for name, value in members.items() if (mark := mark_of(one, name)).external}
    for name, value in members.items():
        if callable(value) and not isinstance(value, type):
            mark = mark_of(one, name)  # or that of the same function under another name
            mark = mark if mark.external else acting.get(id(value), mark)
            vars(made)[name] = _member(one, name, value, mark) if mark.external else _plain(value)
        elif type(value) in _PLAIN or is_typeddict(value):
            vars(made)[name] = value
        elif not isinstance(value, ModuleType) and not name.startswith("__"):
            others.append(name)
    if others:
        raise DefinitionError(
            f"external= is for functions, and module {one.name!r} has members of other kinds, whose methods "
            f"could act unseen: {', '.join(others)}. Leave them out (exclude=), or register functions that "
            "use them."
        )
    return made


_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one: its module has the functions that act."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return _looking_like(function, called)


# -- live objects ----------------------------------------------------------------------------


def with_originals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gets the objects themselves where it is given their stand-ins."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return originals(function, args, kwargs)

    return _looking_like(function, called)


def external_object(one: Registration, denies: Callable[[str], bool]) -> Any:
    """Return the object that stands in for a live object of which methods act on the world.

    Args:
        one: the registration.
        denies: returns whether the registration leaves out a member.
    """
    return _Maker(one, denies).made()


class _Maker:
    """Makes the stand-in of one object."""

    def __init__(self, one: Registration, denies: Callable[[str], bool]) -> None:
        self._one = one
        self._target = one.target
        self._class = type(one.target)
        self._denies = denies
        self._given: Any = None

    def made(self) -> Any:
        space: dict[str, Any] = {
            "__slots__": (),
            "__doc__": self._class.__doc__,
            "__module__": self._class.__module__,
            "__qualname__": self._class.__qualname__,
            "__init_subclass__": classmethod(_refuse_subclass),
        }
        for name in self._names():
            space[name] = self._member(name)
        space.update({name: self._operator(name) for name in operators_of(self._class)})
        self._given = stand_in(type(self._class.__name__, (StandIn,), space), self._target)
        return self._given

    def _names(self) -> list[str]:
        from agex.sandbox.classes import host_classes

        found = {name for base in self._class.__mro__[:-1] for name in _own_names(base)}
        found |= host_classes.held(self._target)
        return sorted(name for name in found if not name.startswith("_") and not self._denies(name))

    def _member(self, name: str) -> Any:
        static = inspect.getattr_static(self._class, name, None)
        function = getattr(static, "__func__", static)
        if not callable(function) or isinstance(function, type):
            return property(
                lambda _: self._shown(getattr(self._target, name)),
                lambda _, value: setattr(self._target, name, original(value)),
            )
        mark = mark_of(self._one, name)
        plain = _looking_like(getattr(self._target, name), self._calling(name))
        called = _member(self._one, name, plain, mark) if mark.external else plain
        return _as_method(called)

    def _calling(self, name: str) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            return self._shown(originals(getattr(self._target, name), args, kwargs))

        return called

    def _operator(self, name: str) -> Callable[..., Any]:
        real = getattr(self._class, name)

        def operate(_: Any, /, *args: Any, **kwargs: Any) -> Any:
            return self._shown(originals(real, (self._target, *args), kwargs))

        operate.__name__ = name
        return operate

    def _shown(self, value: Any) -> Any:
        """Return a value as guest code gets it: no way to the object itself, or to a method that acts."""
        if value is self._target:
            return self._given
        if type(value) is MethodType and value.__self__ is self._target:
            return self._method_like(value)
        return value

    def _method_like(self, method: MethodType) -> Any:
        """Return the method of the stand-in for one of the object, under any name."""
        for name in acting_members(self._one):
            own = getattr(self._target, name, None)
            if type(own) is MethodType and own.__func__ is method.__func__:
                return getattr(self._given, name)
        return getattr(self._given, method.__name__, method)


def _own_names(base: type) -> list[str]:
    slots = vars(base).get("__slots__", ())
    return [*vars(base), *((slots,) if isinstance(slots, str) else slots), *inspect.get_annotations(base)]


def _refuse_subclass(cls: type) -> NoReturn:
    raise TypeError("the class of a registered object cannot be subclassed; use the object.")


def _as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls a function without its receiver."""

    def method(_: Any, /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    _looking_like(function, method)
    with contextlib.suppress(TypeError, ValueError):  # a builtin need not have a signature
        signature = inspect.signature(function)
        receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [receiver, *signature.parameters.values()]
        method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return method


def _looking_like(function: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    name = getattr(function, "__name__", "call")
    return like(_Member(name=name, target=function, external=False, approval=False), call)
