"""Constructors of instances: of guest and registered classes, enumeration members, named tuples.

The unpickler calls them with whatever is stored, so each checks its arguments.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import bases_of, name_of
from agex.errors import StateCorrupt
from agex.values.adapters import instances
from agex.values.adapters.callable_builder import CallableBuilder, missing
from agex.values.base.allowlist import Allow
from agex.values.base.decode_budget import CALL, spend
from agex.values.base.guest_code import GuestCode
from agex.values.base.handle import Handle, unwrapped
from agex.values.base.placeholders import NotKept
from agex.values.base.type_checks import is_class, type_name

__all__ = ["OBJECT", "PLACE", "InstanceBuilder", "is_guests", "refused"]

OBJECT, PLACE = 256, 32
"""Bytes of an object with a dict, and of an entry in one."""


class InstanceBuilder(CallableBuilder):
    """The constructors of one load that make instances, see `Builder`."""

    _allow: Allow
    _unhashed: str
    _makers: dict[Any, Callable[[], Any]]
    _filled: dict[int, type]

    def instance(self, cls: Any, args: tuple[Any, ...]) -> Any:
        """Make an empty instance of a guest class."""
        again = None if args else self._makers.get(cls)
        if again is not None:
            return again()
        kind = unwrapped(cls)
        if type(kind) is NotKept:
            return kind
        if not (is_class(kind) and is_guests(self._guest, kind)):
            raise StateCorrupt("a stored instance is of something that is not a class")
        return self._blank(cls, kind, args)

    def record(self, name: str, args: tuple[Any, ...]) -> Any:
        """Make an empty instance of a class that the host registered."""
        again = None if args else self._makers.get(name)
        return self._blank(name, self._registered(name), args) if again is None else again()

    def _blank(self, key: Any, cls: type, args: tuple[Any, ...]) -> Any:
        """Make an empty instance, and note how to make more, and that they may be filled."""
        if self._unhashed and instances.hashes_itself(cls):
            return missing("", name_of(cls), self._unhashed)
        made = instances.blank(cls, args)
        if not args and instances.has_only_attributes(cls):
            self._makers[key] = functools.partial(object.__new__, cls)
        self._filled[id(cls)] = cls
        return made

    def construct(self, name: str, args: tuple[Any, ...], plainly: bool) -> Any:
        """Make an instance of a registered class that defines its own pickling."""
        cls = self._registered(name)
        if not instances.has_own_pickling(cls):
            if issubclass(cls, BaseException):  # as an earlier layout kept them
                made = self._blank(name, cls, args)
                instances.fill(made, (None, None, {"args": args}, None))
                return made
            raise StateCorrupt(f"a stored value would call {name}, which does not say how it is pickled")
        if self._unhashed and instances.hashes_itself(cls):
            return missing("", name_of(cls), self._unhashed)
        return cls.__new__(cls, *args) if plainly else cls(*args)

    def member(self, cls: Any, names: tuple[str, ...]) -> Any:
        """Return the member of an enumeration; of several names, the flag of them all."""
        cls = self._enumeration(cls)
        if type(cls) is NotKept:
            return cls
        found = [cls._member_map_[name] for name in names]
        if len(found) == 1:
            return found[0]
        if not issubclass(cls, enum.Flag):
            raise StateCorrupt(f"a stored member of {cls.__name__} has {len(found)} names")
        return functools.reduce(operator.or_, found, cls(0))

    def flag(self, cls: Any, value: int) -> Any:
        """Return the flag of that value: several members of an enumeration, or bits that have no name."""
        cls = self._enumeration(cls)
        if type(cls) is NotKept:
            return cls
        if not (issubclass(cls, enum.Flag) and type(value) is int):
            raise StateCorrupt(f"a stored flag of {name_of(cls)} is no flag")
        found = cls._value2member_map_.get(value)
        if found is not None:
            return found
        try:
            made = vars(enum.Flag)["_missing_"].__func__(cls, value)
        except Exception as error:  # noqa: BLE001 - an error of its own constructor; else there is no such flag by now
            return missing("", name_of(cls), f"{type_name(error)} when it was made from {value}")
        return made if type(made) is cls else missing("", name_of(cls), f"it has no flag {value} now")

    def _enumeration(self, cls: Any) -> Any:
        """Return an enumeration by its name or from its handle, or the placeholder of a lost one."""
        found = self._registered(cls) if type(cls) is str else unwrapped(cls)
        if type(found) is not NotKept and not (is_class(found) and issubclass(found, enum.Enum)):
            raise StateCorrupt("a stored member of an enumeration is of something else")
        return found

    def fill(self, value: Any, state: Any) -> None:
        """Set the fields of an instance."""
        if self._may_fill(value):
            instances.fill(value, state)

    def fill_attributes(self, value: Any, attributes: dict[str, Any]) -> None:
        """Set the attributes of an instance that has nothing else."""
        if self._may_fill(value):
            own = instances.attributes_of(value)
            spend(PLACE * len(attributes))
            own.update(attributes)
            if Handle in set(map(type, attributes.values())):
                own.update({name: unwrapped(each) for name, each in attributes.items()})

    def _may_fill(self, value: Any) -> bool:
        if type(value) is NotKept:
            return False
        spend(OBJECT // 4)
        if id(type(value)) not in self._filled:
            raise StateCorrupt(f"a stored value fills a {type(value).__name__}")
        return True

    def fill_constructed(self, value: Any, state: Any) -> None:
        """Set the pickled state of an instance of a registered class."""
        if type(value) is NotKept:
            return
        cls = type(value)
        if not self._allow.is_registered(cls):
            raise refused(cls.__qualname__)
        if not instances.has_own_pickling(cls):
            if issubclass(cls, BaseException):
                instances.fill(value, (state, None, None, None))
                return
            raise StateCorrupt(f"a stored value sets the state of a {cls.__name__}, which pickles none")
        if hasattr(value, "__setstate__"):
            value.__setstate__(state)
            return
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        for name, each in {**(attributes or {}), **(slots or {})}.items():
            object.__setattr__(value, name, each)

    def _registered(self, name: str) -> Any:
        found = self._allow.registered(name)
        if found is None:
            raise refused(name)
        return found

    def tuple_class(self, name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
        """Make a class as ``collections.namedtuple`` does."""
        import collections

        spend(CALL * 4 + OBJECT * len(fields))
        given: Any = [unwrapped(each) for each in defaults] or None
        made: Any = collections.namedtuple(name, fields, rename=True, defaults=given)  # type: ignore[misc]  # noqa: PYI024
        if made._fields != fields:  # a field that was renamed once keeps the name that it would get
            raise StateCorrupt("a stored named tuple has a field with an invalid name")
        made.__module__ = str(b"__main__", "ascii")
        return Handle(made)

    def tuple_of(self, cls: Any, items: tuple[Any, ...]) -> Any:
        """Make an instance of a named tuple."""
        cls = unwrapped(cls)
        if type(cls) is NotKept:
            return cls
        if not (is_class(cls) and bases_of(cls) == (tuple,)):
            raise StateCorrupt("a stored named tuple is of something else")
        spend(8 * len(items))
        return tuple.__new__(cls, items)


def is_guests(guest: GuestCode | None, value: Any) -> bool:
    """Return whether a value is a guest class, or an instance of one."""
    return guest is not None and guest.is_guest_class(value if is_class(value) else type(value))


def refused(name: str) -> StateCorrupt:
    """Return the error for a class that may not be loaded."""
    return StateCorrupt(
        f"a stored value is an instance of {name}, which is not a class that may be loaded; "
        f"if it is yours, register it: agent.cls({name.rpartition('.')[2]})"
    )
