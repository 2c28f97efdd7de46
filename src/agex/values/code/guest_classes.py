"""Facts about guest functions and classes that decide how they are kept.

A class is its statement, which runs again, and the attributes that it has by now. This module finds the
statement, what it captured, and what was changed afterwards; `capture` takes classes and functions apart.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agex._interpreter.type_slots import bases_of, mro_of
from agex.values.adapters import stdlib as plain
from agex.values.base.allowlist import Allow
from agex.values.base.function_wrappers import functions_of, plain_function
from agex.values.base.guest_code import GuestCode, sealing
from agex.values.base.type_checks import is_a, is_class, is_function, package_of
from agex.values.code import callables
from agex.values.code import source as definitions
from agex.values.code.callables import CannotKeep, is_code
from agex.values.code.reconstructor import may_store

__all__ = ["GuestClasses", "cell_contents"]

_LEADING = frozenset(
    {*plain.KINDS, *callables.KINDS, types.CellType, dict, list, set, tuple, frozenset, bytearray, slice}
)


class GuestClasses:
    """The guest functions and classes of a session, and the facts about them.

    Args:
        allow: host classes that may be kept.
        guest: says which functions and classes guest code made; None for none.
    """

    def __init__(self, allow: Allow, guest: GuestCode | None) -> None:
        self.allow = allow
        self.guest = guest
        self.seals = sealing(guest)
        """Keeps objects of other types; None where they are lost."""
        self._sealable: dict[type, bool] = {}
        self._outer: dict[int, type] = {}
        """Classes by the ids of what their bodies made."""

    def is_own(self, value: Any) -> bool:
        """Return whether guest code made a function or class."""
        return self.is_guests(value) or (is_class(value) and self.is_named_tuple(value))

    def leads_on(self, cls: type) -> bool:
        """Return whether instances of a class are taken apart; the graph behind others is not walked."""
        return self.seals is not None or self._is_taken_apart(cls)

    def is_sealed(self, cls: type) -> bool:
        """Return whether instances of a class are kept as wholes, in sealed bytes."""
        if self.seals is None:
            return False
        if cls not in self._sealable:
            self._sealable[cls] = not self._is_taken_apart(cls)
        return self._sealable[cls]

    def _is_taken_apart(self, cls: type) -> bool:
        if cls in _LEADING or issubclass(cls, type) or self.is_own(cls) or self.allow.is_registered(cls):
            return True
        return package_of(cls) in {"numpy", "pandas", "plotly", "polars"}

    def is_guests(self, value: Any) -> bool:
        if self.guest is None:
            return False
        return self.guest.is_guest_class(value) if is_class(value) else self.guest.is_guest_function(value)

    def is_named_tuple(self, cls: type) -> bool:
        """Return whether a class comes from ``collections.namedtuple`` alone."""
        if bases_of(cls) != (tuple,) or "_fields" not in vars(cls):
            return False
        has_statement = self.is_guests(cls) and self._body(cls) is not None
        return not has_statement and not self.allow.is_registered(cls)

    def _functions_of(self, cls: type) -> list[types.FunctionType]:
        """Return the functions in a class's namespace, in the version of guest code."""
        return [self._as_written(each) for each in functions_of(cls)]

    def _as_written(self, function: types.FunctionType) -> types.FunctionType:
        """Return the guest function behind a host wrapper; any other function as it is."""
        inner: Any = function
        while self.guest is not None and is_function(inner) and not self.is_own(inner):
            written = self.guest.written(inner)
            inner = plain_function(vars(inner).get("__wrapped__") if written is inner else written)
        return inner if is_function(inner) else function

    def number(self, cls: type) -> int:
        """Return the place of a class in the order in which guest classes were made."""
        return -1 if self.guest is None else self.guest.class_number(cls)

    def _made_by(self, cls: type) -> tuple[types.FunctionType, definitions.Statement]:
        """Return the body and the statement that make a class again.

        Raises:
            CannotKeep: there is none.
        """
        body = self._body(cls)
        statement = None if body is None else self._statement(cls, body)
        if body is None or statement is None:
            raise CannotKeep("its source is not known")
        if statement.is_bare and not all(map(self.is_own, self._functions_of(cls))):
            raise CannotKeep("a decorator of its class statement is a variable of the call that made it")
        return body, statement

    def _body(self, cls: type) -> types.FunctionType | None:
        """Return the function that was the body of a class statement, if its source is known."""
        if self.guest is None:
            return None
        body = self.guest.class_body(cls)
        return None if body is None or self.guest.source(body.__code__) is None else body

    def _statement(self, cls: type, body: types.FunctionType) -> definitions.Statement | None:
        """Return the statement that makes a class again."""
        assert self.guest is not None
        code = body.__code__
        bases, keywords = self.guest.class_header(cls) or ((), {})
        source = self.guest.source(code) or ""
        return definitions.class_statement(
            source,
            code.co_firstlineno,
            cls.__name__,
            code.co_freevars,
            bases=len(bases),
            keywords=tuple(keywords),
        )

    def _header(self, cls: type) -> dict[str, Any]:
        """Return the bases and the values of the keywords that a class was made with, by parameter."""
        assert self.guest is not None
        bases, keywords = self.guest.class_header(cls) or ((), {})
        values = (*bases, *keywords.values())
        return dict(zip(definitions.header_parameters(len(values)), values, strict=True))

    def _inner(self, cls: type) -> Iterator[type]:
        """Return the classes made in the body of a class, and note that they are its attributes."""
        own = self._own_code(cls)
        altered = self._altered(cls, own)
        for name, value in vars(cls).items():
            made = plain_function(value)
            is_code = (is_class(made) or is_function(made)) and name not in altered
            if is_code and made.__name__ == name and self.is_own(made) and _is_of_statement(cls, made, own):
                self._outer[id(made)] = cls
                if is_class(made):
                    yield made

    def _outer_of(self, value: Any) -> type | None:
        """Return the class in whose body a class or function was made, if it is still its attribute."""
        path, _, name = value.__qualname__.rpartition(".")
        if not path:
            return None
        if "<locals>" in path:  # of a class made by a call, which a walk has met if anything has it
            outer = self._outer.get(id(value))
            return outer if outer and plain_function(vars(outer).get(name)) is value else None
        source = self._body(value) if is_class(value) else value
        if source is None:
            return None
        first, *rest = path.split(".")
        found = source.__globals__.get(first)
        for each in rest:
            found = vars(found).get(each) if is_class(found) else None
        if not (is_class(found) and self.is_own(found)) or name in self._altered(
            found, self._own_code(found)
        ):
            return None
        return found if plain_function(vars(found).get(name)) is value else None

    def _changed(self, cls: type) -> dict[str, Any]:
        """Return the attributes of a class that its statement does not set, or sets to another value."""
        if self.guest is None or is_a(cls, enum.EnumMeta):
            return {}
        own = self._own_code(cls)
        altered = self._altered(cls, own)
        found: dict[str, Any] = {}
        for name, put in vars(cls).items():
            value = self.guest.written(put)
            if is_class(value) or is_function(value):
                is_new = self.is_own(value) and (name in altered or not _is_of_statement(cls, value, own))
                if is_new and may_store(self.guest, cls, name, value):
                    found[name] = value
            elif name == "_abc_impl" or (name.startswith("__") and name.endswith("__")):
                continue
            elif not any("__get__" in vars(base) for base in mro_of(type(value))) and not is_code(value):
                found[name] = value
        return found

    def _altered(self, cls: type, own: tuple[Any, ...] | None) -> frozenset[str]:
        """Return the names that were set or deleted on a class and that its statement does not repeat."""
        if self.guest is None:
            return frozenset()
        return self.guest.altered(cls, dressed=own is not None) - {"__qualname__"}

    def _require_kept(self, cls: type, changed: Mapping[str, Any]) -> None:
        """Refuse a class that would come back without later changes.

        Raises:
            CannotKeep: an attribute was set that is no plain value and no function, or one was deleted.
        """
        lost = self._altered(cls, self._own_code(cls)) - changed.keys()
        if lost:
            raise CannotKeep(
                f"its {', '.join(sorted(lost))} was set or deleted after the class statement; say it there"
            )

    def _own_code(self, cls: type) -> tuple[Any, ...] | None:
        """Return the code in a class statement that will run without its decorators; None for any other.

        Then a replacement of a function by a decorator is kept, too.
        """
        body = self._body(cls)
        statement = None if body is None else self._statement(cls, body)
        return body.__code__.co_consts if body and statement and statement.is_bare else None

    def _given(
        self, body: types.FunctionType, statement: definitions.Statement, known: dict[str, Any]
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the globals that a class statement needs, and those of code that it may call."""
        found: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        wanted: Iterable[str] = statement.names
        rest: list[tuple[dict[str, Any], Iterable[str]]] = [(body.__globals__, wanted)]
        rest += [each for value in known.values() for each in self._running_with(value)]
        while rest:
            namespace, wanted = rest.pop()
            values = found.setdefault(id(namespace), (namespace, {}))[1]
            for name in sorted((namespace.keys() & wanted) - values.keys()):
                values[name] = namespace[name]
                rest += self._running_with(namespace[name])
        return list(found.values())

    def _running_with(self, value: Any) -> list[tuple[dict[str, Any], Iterable[str]]]:
        """Return the globals of functions that a class statement may call through a value or closure."""
        found: list[tuple[dict[str, Any], Iterable[str]]] = []
        rest, seen = [value], set[int]()
        while rest:
            each = rest.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            if is_class(each):
                rest += self._functions_of(each)
            elif is_function(each) and self.is_own(each):
                found.append((each.__globals__, definitions.global_names(each.__code__)))
                rest += [content for cell in each.__closure__ or () for content in cell_contents(cell)]
        return found


def cell_contents(cell: types.CellType) -> tuple[Any, ...]:
    """Return the value in a cell, as a tuple of one; an empty tuple for an empty cell."""
    try:
        return (cell.cell_contents,)
    except ValueError:  # it is empty
        return ()


def _is_of_statement(cls: type, value: Any, own: tuple[Any, ...] | None) -> bool:
    """Return whether a class statement itself made a function or class; *own* is its code, if that counts."""
    if own is not None and is_function(value):
        return any(value.__code__ is each for each in own)
    found: bool = value.__qualname__ == f"{cls.__qualname__}.{value.__name__}"
    return found
