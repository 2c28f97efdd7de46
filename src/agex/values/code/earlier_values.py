"""Values as they were before a class statement: without that class, later ones, and their holders.

A class statement runs again when it is loaded, with its decorators and hooks. They write to a copy, which
is dropped: the values have their effect already. A registry that has the class now had it not then.
"""

from __future__ import annotations

import collections
import functools
import gc
import types
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from agex.values.adapters import instances
from agex.values.base.function_wrappers import held_by
from agex.values.base.shared_objects import ATOMS
from agex.values.base.type_checks import is_a, is_class, is_function

__all__ = ["Earlier"]

_MOST = 100_000
"""Objects looked at before a value is taken to hold something later."""

_CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict)
_KEYS = frozenset({*ATOMS, type})


class _Code(Protocol):
    def is_own(self, value: Any) -> bool: ...

    def number(self, cls: type) -> int: ...


class _Later(Exception):
    """A value consists of nothing without later objects."""


class Earlier:
    """Copies of values for one class statement.

    Args:
        code: says which functions and classes are guest code, and in which order classes were made.
        number: of the first class that was not there yet.
    """

    def __init__(self, code: _Code, number: int) -> None:
        self._code = code
        self._number = number
        self._copies: dict[int, tuple[Any, Any]] = {}
        """Copies by the ids of their originals, which are kept alive beside them."""

    def of(self, values: dict[str, Any], *, apart: bool = False) -> dict[str, Any]:
        """Return values without later objects; a value that consists of one is left out.

        With *apart* also those that hold nothing later are copies.
        """
        found: dict[str, Any] = {}
        for name, value in values.items():
            try:
                found[name] = self._copy(value, apart=apart)
            except _Later:
                continue
        return found

    # -- what is later -----------------------------------------------------------------------

    def _is_late(self, value: Any) -> bool:
        seen: set[int] = set()
        rest = [value]
        while rest:
            each = rest.pop()
            if type(each) in ATOMS or id(each) in seen:
                continue
            seen.add(id(each))
            if len(seen) > _MOST:
                return True
            if is_class(each):
                if self._is_late_class(each):
                    return True
            elif is_function(each):
                rest += _held(each) if self._code.is_own(each) else held_by(each)
            else:
                rest += gc.get_referents(each)
        return False

    def _is_late_class(self, cls: type) -> bool:
        return self._code.is_own(cls) and self._code.number(cls) >= self._number

    # -- copies ------------------------------------------------------------------------------

    def _copy(self, value: Any, *, apart: bool) -> Any:
        """Copy a value where it holds something later, or is a function that can write to what it holds.

        Raises:
            _Later: it is nothing without that.
        """
        if type(value) in ATOMS:
            return value
        if id(value) in self._copies:
            return self._copies[id(value)][1]
        if is_function(value) and self._code.is_own(value):
            return self._function(value)
        late = self._is_late(value)
        if not (late or apart) or is_class(value):
            if late:
                raise _Later
            return value
        copy = self._copier(type(value))
        if copy is not None:
            return copy(value, apart)
        if late:
            raise _Later
        return value

    def _copier(self, kind: type) -> Callable[[Any, bool], Any] | None:
        if kind in _CONTAINERS:
            return self._mapping if issubclass(kind, dict) else self._collection
        if kind is tuple:
            return lambda value, apart: tuple([self._copy(each, apart=apart) for each in value])
        if issubclass(kind, functools.partial):
            return self._partial
        if kind is types.MethodType:
            return lambda value, apart: types.MethodType(
                value.__func__, self._copy(value.__self__, apart=apart)
            )
        if self._code.is_own(kind) and not self._is_late_class(kind) and instances.has_only_attributes(kind):
            return self._instance
        return None

    def _noted(self, value: Any, copy: Any) -> Any:
        self._copies[id(value)] = value, copy
        return copy

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        """Copy a function that captured variables, or has values of its own that can be changed."""
        own = [function.__defaults__, function.__kwdefaults__, function.__dict__ or None]
        if function.__closure__ is None and all(type(each) in ATOMS for each in own):
            return function
        cells = tuple([types.CellType() for _ in function.__closure__ or ()])
        made = types.FunctionType(
            function.__code__, function.__globals__, function.__name__, None, cells or None
        )
        self._noted(function, made)
        for cell, before in zip(cells, function.__closure__ or (), strict=True):
            for content in self._kept(_contents(before)):
                cell.cell_contents = content
        made.__defaults__ = None if own[0] is None else tuple(map(self._or_none, function.__defaults__ or ()))
        made.__kwdefaults__ = self.of(function.__kwdefaults__ or {}, apart=True) or None
        made.__qualname__, made.__doc__ = function.__qualname__, function.__doc__
        made.__dict__.update(self.of(function.__dict__, apart=True))
        return made

    def _or_none(self, value: Any) -> Any:
        return next(iter(self._kept((value,))), None)

    def _kept(self, values: Iterable[Any], *, apart: bool = True) -> list[Any]:
        found: list[Any] = []
        for value in values:
            try:
                found.append(self._copy(value, apart=apart))
            except _Later:
                continue
        return found

    def _collection(self, value: Any, apart: bool) -> Any:
        if type(value) is set:
            return self._noted(value, set(self._kept(filter(_is_plain, value), apart=apart)))
        made = self._noted(
            value, collections.deque(maxlen=value.maxlen) if is_a(value, collections.deque) else []
        )
        made.extend(self._kept(list(value), apart=apart))
        return made

    def _mapping(self, value: Any, apart: bool) -> Any:
        """Copy a dict, without keys whose hash a guest class computes."""
        is_default = type(value) is collections.defaultdict
        made = self._noted(
            value, collections.defaultdict(value.default_factory) if is_default else type(value)()
        )
        for key, each in list(value.items()):
            for copy in self._kept((each,), apart=apart) if _is_plain(key) and not self._is_late(key) else ():
                made[key] = copy
        return made

    def _partial(self, value: Any, _apart: bool) -> Any:
        if type(value) is not functools.partial:
            raise _Later
        args = [self._copy(each, apart=True) for each in value.args]
        return functools.partial(
            self._copy(value.func, apart=True), *args, **self.of(value.keywords, apart=True)
        )

    def _instance(self, value: Any, apart: bool) -> Any:
        made = self._noted(value, object.__new__(type(value)))
        instances.attributes_of(made).update(self.of(instances.attributes_of(value), apart=apart))
        return made


def _is_plain(key: Any) -> bool:
    """Return whether a key hashes itself without guest code."""
    return type(key) in _KEYS or (type(key) is tuple and all(map(_is_plain, key)))


def _held(function: types.FunctionType) -> list[Any]:
    contents = [each for cell in function.__closure__ or () for each in _contents(cell)]
    return [function.__defaults__, function.__kwdefaults__, function.__dict__, *contents]


def _contents(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # it is empty
        return ()
