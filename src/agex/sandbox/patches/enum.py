"""Checks in ``enum``: functional definitions, and members that guest code may not see.

A class statement of guest code is checked as it is made. ``Enum(name, members)`` makes a class too, deep
inside the standard library, and every enumeration without members can be called in this way. All these calls
use ``EnumType._create_``. It is replaced, once a process, by a function that checks the members while guest
code runs. Likewise `EnumType._find_new_`, because the result of an enumeration's ``__new__`` is written to as
a member.

``Color["_RED"]``, ``Color(1)`` and iteration reach members without an attribute. For guest code they find the
members that it may read. A library called by guest code finds all, unless a registration restricts the
enumeration.
"""

from __future__ import annotations

import enum
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from agex.errors import SandboxTypeError
from agex.sandbox.classes import stand_ins
from agex.sandbox.classes.errors import refusal
from agex.sandbox.patches import stdlib_caches
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import CURRENT, asking, call_apart, calling

if TYPE_CHECKING:
    from agex.sandbox.rules.ruleset import Rules
    from agex.sandbox.runtime.membrane import Membrane, PolicyQuestions

__all__ = ["ENUM", "install", "note"]


class Property(enum.property):
    """``enum.property`` without subclasses: the real one can be made to read any attribute of any object."""

    def __init_subclass__(cls, **kwargs: Any) -> NoReturn:
        raise SandboxTypeError("enum.property cannot be subclassed here; use it as it is")


ENUM: dict[str, Any] = {"property": stand_ins.stands_for(enum.property, Property)}
"""The members of ``enum`` that are guarded."""


def install() -> None:
    """Put the check in place, once a process."""
    if enum.EnumType.__dict__["_create_"] is not _create:
        type.__setattr__(enum.EnumType, "_create_", _create)
        type.__setattr__(enum.EnumType, "_find_new_", classmethod(_find_new))
        type.__setattr__(enum.Flag, "_missing_", classmethod(_missing))
        for method in (__call__, __getitem__, __iter__, __len__, __reversed__):
            type.__setattr__(enum.EnumType, method.__name__, method)
        if sys.version_info >= (3, 12):  # older versions compare no values
            type.__setattr__(enum.EnumType, "__contains__", __contains__)
        type.__setattr__(enum.EnumType, "__members__", property(_shown_members))
        for name in ("_add_alias_", "_add_value_alias_"):  # since 3.13
            if name in vars(enum.Enum):
                type.__setattr__(enum.Enum, name, _of_own_members(vars(enum.Enum)[name]))


_real: Any = enum.EnumType.__dict__["_create_"]


def _create(cls: Any, class_name: Any, names: Any, *, module: Any = None, **options: Any) -> Any:
    """Do what ``EnumType._create_`` does."""
    if module is None:  # as the real one finds it, two calls further away from the caller
        module = sys._getframe(3).f_globals.get("__name__")  # pyright: ignore[reportPrivateUsage]
    guards = asking()
    if guards is None:
        return _real(cls, class_name, _without_hooks(_members(names)), module=module, **options)
    bases: list[Any] = [each for each in (options.get("type"), cls) if issubclass(type(each), type)]
    hidden = guards.classes.host_names(*bases)
    found = _members(names)
    for each in found:
        name = each[0] if type(each) is tuple else each
        if ledger.is_dunder(name) or name in hidden:
            raise SandboxTypeError(f"an enumeration cannot have a member named {name}; choose another name")
    if type(class_name) is not str or not isinstance(options.get("qualname"), str | None):
        raise TypeError("the name of an enumeration must be a str")
    made = _real(cls, class_name, found, module=module, **options)
    guards.is_own(made)  # registers it if it is a guest class
    return made


def _without_hooks(found: list[Any]) -> list[Any]:
    """Refuse a hook among members when no run is known: guest code may have passed it."""
    for each in found:
        if type(each) is tuple and ledger.is_dunder(each[0]) and not _is_hosts(each[1]):
            raise SandboxTypeError(f"an enumeration cannot have a member named {each[0]}; choose another")
    return found


def _is_hosts(value: Any) -> bool:
    """Return whether a value is data, or consists of host functions only."""
    if type(value) in (staticmethod, classmethod):
        return _is_hosts(value.__func__)
    if type(value) is property:
        return all(each is None or _is_hosts(each) for each in (value.fget, value.fset, value.fdel))
    if type(value) is types.FunctionType:
        function: Any = value
        is_ours = str(function.__globals__.get("__name__")).startswith("agex.")
        return "check!" not in function.__builtins__ and not is_ours
    return type(value) in _DATA


_DATA = (str, int, float, bool, tuple, type(None))
"""Kinds of values that are no hooks."""

_real_find_new: Any = enum.EnumType.__dict__["_find_new_"].__func__


def _find_new(metaclass: Any, *args: Any) -> Any:
    """Do what ``EnumType._find_new_`` does."""
    new, *more = _real_find_new(metaclass, *args)
    guards = asking()
    return (_making_members(new) if guards is not None and guards.is_guest_function(new) else new), *more


_real_missing: Any = vars(enum.Flag)["_missing_"].__func__


def _missing(cls: Any, value: Any) -> Any:
    """Do what ``Flag._missing_`` does, which keeps the member that it makes under its value."""
    value = stdlib_caches.exact(value)
    if provenance.is_guest_class(type(value)):  # it may claim to be an int
        raise ValueError(f"an object of {type(value).__name__} is not a valid {cls.__qualname__}")
    return _real_missing(cls, value)


_ways: Any = dict(vars(enum.EnumType))
_call = _ways["__call__"]


_left_out: provenance.Notes[bool] = provenance.Notes()
_hidden: provenance.Notes[tuple[Rules, int, frozenset[str]]] = provenance.Notes()


def note(class_: Any, leaves_out: Callable[[str], bool]) -> None:
    """Record that a registration leaves members of a class out, if it is an enumeration."""
    if issubclass(type(class_), enum.EnumType) and any(map(leaves_out, class_._member_map_)):
        _left_out.set(class_, True)


def _hiding(cls: Any) -> Callable[[str], bool] | None:
    """Return the test for members that the calling guest may not see; None if the host asks."""
    guards = CURRENT.get()
    # Finding the caller takes longer than the rest.
    if not (_left_out.get(cls) if guards is None else _hidden_from(guards, cls)):
        return None
    check: Any = sys._getframe(2).f_builtins.get("check!")  # pyright: ignore[reportPrivateUsage] - the caller decides
    if check is not None:
        guards = check.__self__
    elif guards is not None:
        guards = calling()
        if guards is not None and not guards.policy.restricts(cls):
            return None
    if guards is None or guards.classes.is_guest(cls):
        return None
    return _hidden_from(guards, cls).__contains__


def _hidden_from(guards: Membrane, cls: Any) -> frozenset[str]:
    policy, members, known = guards.policy, cls._member_map_, _hidden.get(cls)
    if known is None or known[0] is not policy.text or known[1] != len(members):
        # As the host: patterns are matched by `re`, whose flags are an enumeration as well.
        names = call_apart({CURRENT: None}, _names_hidden, policy, cls, tuple(members))
        known = policy.text, len(members), names
        _hidden.set(cls, known)
    return known[2]


def _names_hidden(policy: PolicyQuestions, cls: Any, names: tuple[str, ...]) -> frozenset[str]:
    return frozenset([name for name in names if ledger.is_private(name) or policy.denies(cls, name)])


def __call__(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - the name it has in its class
    if CURRENT.get() is None and not _left_out.get(cls):  # a host call, which may be frequent
        return _call(cls, *args, **kwargs)
    hides, given = _hiding(cls), [*args, *kwargs.values()]
    if len(given) != 1 or (hides is None and not _would_tell(cls, given[0])):
        return _call(cls, *args, **kwargs)
    if hides is None:
        raise ValueError(f"an object of {type(given[0]).__name__} is not a valid {cls.__qualname__}")
    value = stdlib_caches.exact(given[0])
    for name, member in cls._member_map_.items():
        if not hides(name) and (member is value or member._value_ == value):
            return member
    if type(value) in _DATA:  # other objects would be compared with hidden values
        found = _call(cls, value)
        hidden = [name for name, member in cls._member_map_.items() if hides(name) and _has(found, member)]
        if not hidden:
            return found
        if found is not cls._member_map_[hidden[0]]:
            raise refusal(cls, hidden[0])
    raise ValueError(f"{given[0]!r} is not a valid {cls.__qualname__}")


def _would_tell(cls: Any, value: Any) -> bool:
    """Return whether a guest object would be compared with values that no guest may see."""
    return bool(_left_out.get(cls)) and provenance.is_guest_class(type(stdlib_caches.exact(value)))


def _has(found: Any, member: Any) -> bool:
    """Return whether a member is another one, or contains it as a flag."""
    return found is member or (isinstance(member, enum.Flag) and bool(found._value_ & member._value_))


def __contains__(cls: Any, value: Any) -> bool:  # noqa: N807 - the name it has in its class
    hides = _hiding(cls)
    if hides is None:
        return not _would_tell(cls, value) and bool(_ways["__contains__"](cls, value))
    shown = [member for name, member in cls._member_map_.items() if not hides(name)]
    return any(member is value or member._value_ == value for member in shown)


def __getitem__(cls: Any, name: Any) -> Any:  # noqa: N807 - the name it has in its class
    hides = _hiding(cls)
    if hides is None:
        return _ways["__getitem__"](cls, name)
    if not issubclass(type(name), str):  # its own __eq__ would decide
        raise KeyError(name)
    exact = str.__str__(name)
    if hides(exact):
        raise refusal(cls, exact)
    return _ways["__getitem__"](cls, exact)


def __iter__(cls: Any) -> Iterator[Any]:  # noqa: N807 - the name it has in its class
    hides = _hiding(cls)
    if hides is None:
        return _ways["__iter__"](cls)  # type: ignore[no-any-return]
    return iter([cls._member_map_[name] for name in cls._member_names_ if not hides(name)])


def __reversed__(cls: Any) -> Iterator[Any]:  # noqa: N807 - the name it has in its class
    hides = _hiding(cls)
    if hides is None:
        return _ways["__reversed__"](cls)  # type: ignore[no-any-return]
    return iter([cls._member_map_[name] for name in reversed(cls._member_names_) if not hides(name)])


def __len__(cls: Any) -> int:  # noqa: N807 - the name it has in its class
    hides = _hiding(cls)
    return len(cls._member_names_) if hides is None else sum(not hides(name) for name in cls._member_names_)


def _shown_members(cls: Any) -> types.MappingProxyType[str, Any]:
    hides = _hiding(cls)
    found = cls._member_map_
    shown = found if hides is None else {name: found[name] for name in found if not hides(name)}
    return types.MappingProxyType(shown)


def _of_own_members(real: Any) -> Any:
    """Return a method of ``Enum`` that changes its class, allowed to guest code for guest classes only."""

    @functools.wraps(real)
    def add(self: Any, alias: Any) -> Any:
        guards = asking()
        if guards is not None and not _is_converted() and not guards.classes.is_guest(type(self)):
            raise SandboxTypeError(
                f"{type(self).__name__} cannot be changed; make an enumeration of your own"
            )
        return real(self, alias)

    return add


def _is_converted() -> bool:
    """Return whether ``enum`` is converting constants of a library that is being imported."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - the caller of the method
    names: Any = vars(enum)
    return frame.f_globals is names and frame.f_code.co_name == "convert_class"


def _making_members(new: Any) -> Any:
    @functools.wraps(new)
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is the one of the class
        made = new(cls, *args, **kwargs)
        if type(made) is not cls:
            raise SandboxTypeError(
                f"__new__() of an enumeration must give a member, got {type(made).__name__}"
            )
        return made

    return __new__


def _members(names: Any) -> list[Any]:
    """Return names, or pairs of name and value, as exact strings that cannot change when read again."""
    if isinstance(names, str):
        return str.__str__(names).replace(",", " ").split()
    if not isinstance(names, (list, tuple)):
        names = list(names) if names is not None and not hasattr(names, "keys") else names
    if names is None:
        return []
    if hasattr(names, "keys"):
        return [(_exact(name), names[name]) for name in names]
    given = list(names)
    if all(isinstance(each, str) for each in given):
        return [_exact(each) for each in given]
    return [_pair(each) for each in given]


def _pair(each: Any) -> tuple[str, Any]:
    name, value = each
    return _exact(name), value


def _exact(name: Any) -> str:
    if isinstance(name, str):
        return str.__str__(name)
    raise TypeError(f"the name of a member must be a str, got {type(name).__name__}")
