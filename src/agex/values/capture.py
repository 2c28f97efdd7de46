"""Functions and classes of the guest: taken apart as source and the values that they captured.

A function is the text of its definition, its cells, defaults and attributes. The global names that it
reads go into a *namespace*, one for all code of a group that has the same globals; functions, classes
and modules in it are referred to, and everything else is copied: it is frozen as it was when kept.
A class is its statement, which runs again, and the attributes that it has by now.
"""

from __future__ import annotations

import enum
import functools
import gc
import types
from collections.abc import Iterable, Iterator
from typing import Any

from agex.values import definitions, plain
from agex.values.allow import Allow, class_name
from agex.values.builder import Builder
from agex.values.guest import GuestCode
from agex.values.kinship import is_a, is_class, is_function, package_of
from agex.values.sharing import ATOMS
from agex.values.wrappers import MANAGERS, functions_of, plain_function

__all__ = ["CannotKeep", "Captured", "Captures", "Fillings", "Held", "is_code", "take_cell"]


class CannotKeep(Exception):
    """An object has no form that can be stored; the text says why."""


class Held:
    """A function, class, module or object of the host, for a place that unwraps handles."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


class Fillings:
    """What is in the namespaces of an encoder's code; it is made when all else is encoded."""


class Captured:
    """What code with the same globals captured of them."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.globals = namespace
        self.names: set[str] = set()
        self.done: set[str] = set()


_CODE = (
    type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType,
    functools.partial, type(functools.lru_cache(lambda: None)),
)  # fmt: skip


_LEADING = frozenset(
    {*plain.KINDS, *_CODE, types.CellType, dict, list, set, tuple, frozenset, bytearray, slice}
)


def is_code(value: Any) -> bool:
    """Tell whether a value is one that must not lie on an unpickler's stack."""
    return is_a(value, _CODE)


class Captures:
    """Code of the guest, as the walk over variables and the encoder see it."""

    def __init__(self, allow: Allow, guest: GuestCode | None) -> None:
        self.allow = allow
        self.guest = guest
        self.kinds: dict[type, Any] = {}
        """What encoders found out about types: they share it."""
        self._open: dict[int, Captured] = {}

    def is_own(self, value: Any) -> bool:
        """Tell whether a function or class is the guest's."""
        return self._is_guests(value) or (is_class(value) and self.is_named_tuple(value))

    def leads_on(self, cls: type) -> bool:
        """Tell whether instances of a class are taken apart; the graph behind others is the host's."""
        if cls in _LEADING or issubclass(cls, type) or self.is_own(cls) or self.allow.is_registered(cls):
            return True
        return package_of(cls) in {"numpy", "pandas", "plotly", "polars"}

    def _is_guests(self, value: Any) -> bool:
        if self.guest is None:
            return False
        return self.guest.is_guest_class(value) if is_class(value) else self.guest.is_guest_function(value)

    def is_named_tuple(self, cls: type) -> bool:
        """Tell whether ``collections.namedtuple`` made a class, and nobody says more of it."""
        if type.__dict__["__bases__"].__get__(cls) != (tuple,) or "_fields" not in vars(cls):
            return False
        has_statement = self._is_guests(cls) and self._body(cls) is not None
        return not has_statement and not self.allow.is_registered(cls)

    def successors(self, value: Any) -> Iterator[Any]:
        """Give what a function or class of the guest refers to."""
        if is_class(value):
            yield from (*value.__bases__, type(value), self._outer_of(value), *functions_of(value))
            yield from self._changed(value).values()
            body = self._body(value)
            if body is not None:
                yield from _captured_by(
                    body, definitions.statement_names(*self._statement(body), value.__name__)
                )
            return
        yield from (value.__defaults__, value.__kwdefaults__, value.__dict__, self._outer_of(value))
        yield from _captured_by(value, definitions.global_names(value.__code__))

    # -- namespaces --------------------------------------------------------------------------

    def begin(self, code: list[Any]) -> None:
        """Note what the code of a group captured of its globals."""
        self._open = {}
        for each in code:
            for function in functions_of(each) if is_class(each) else [each]:
                if self.is_own(function):
                    self._captured(function)

    def _captured(self, function: types.FunctionType) -> Captured:
        """Give the namespace of a function, with what it needs in it."""
        captured = self._namespace(function.__globals__)
        captured.names |= definitions.global_names(function.__code__) & captured.globals.keys()
        return captured

    def _namespace(self, namespace: dict[str, Any]) -> Captured:
        found = self._open.get(id(namespace))
        if found is None:
            found = self._open[id(namespace)] = Captured(namespace)
        return found

    @property
    def is_behind(self) -> bool:
        """Tell whether a namespace lacks what `fillings` would give."""
        return any(each.names - each.done for each in self._open.values())

    def fillings(self, encoder: Any) -> Iterator[tuple[Any, ...]]:
        """Give what is in each namespace, also of code that is met on the way."""
        while True:
            rest = [each for each in self._open.values() if each.names - each.done]
            if not rest:
                return
            for captured in rest:
                names = sorted(captured.names - captured.done)
                captured.done |= captured.names
                yield self._filling(encoder, captured, names)

    def _filling(self, encoder: Any, captured: Captured, names: list[str]) -> tuple[Any, ...]:
        """Give a namespace, what is referred to in it, and what is copied."""
        direct: dict[str, Any] = {}
        copied: dict[str, Any] = {}
        for name in names:
            value = captured.globals[name]
            if is_code(value) or type(value) in _CONSTANT:
                direct[name] = encoder.top(value)
            else:
                copied[name] = value
        return (captured, direct, *(encoder.nested(copied) if copied else ()))

    # -- functions ---------------------------------------------------------------------------

    def take(self, encoder: Any, held: Held) -> Any:
        """Take apart what a handle holds.

        Raises:
            CannotKeep: it is neither the guest's nor registered.
        """
        number = encoder.reference(held)
        if number is not None:
            return Builder.outer, (number,)
        value: Any = held.target
        if is_class(value):
            return self._take_class(encoder, value)
        if type(value) is types.FunctionType and self.is_own(value):
            return self._take_function(encoder, value)
        return self._take_wrapper(encoder, value) or self._take_hosts(value)

    def _take_wrapper(self, encoder: Any, value: Any) -> Any:
        """Take apart what is a function by what it holds; None for anything else."""
        if is_a(value, functools.partial):
            args = tuple([encoder.top(each) for each in value.args])
            return Builder.partial, (encoder.top(value.func), args, _tops(encoder, value.keywords))
        if is_a(value, types.MethodType) and self._is_of_guest(value) and _is_its_own(value):
            return Builder.method, (value.__func__.__name__, encoder.top(value.__self__))
        if hasattr(value, "cache_parameters"):
            parameters = value.cache_parameters()
            function = encoder.top(value.__wrapped__)
            return Builder.cached, (function, parameters["maxsize"], parameters["typed"])
        for name, code in MANAGERS.items():
            if is_function(value) and value.__code__ is code:
                return Builder.manager, (name, encoder.top(vars(value)["__wrapped__"]))
        return None

    def _is_of_guest(self, method: types.MethodType) -> bool:
        """Tell whether a method is bound to an object or a class of the guest."""
        owner = method.__self__
        return self._is_guests(owner if is_class(owner) else type(owner))

    def _take_hosts(self, value: Any) -> Any:
        name = None if self.guest is None else self.guest.host_name(value)
        if name is None:
            raise CannotKeep("it belongs to the host and is not registered")
        return Builder.host, (name,)

    def _take_function(self, encoder: Any, function: types.FunctionType) -> Any:
        assert self.guest is not None
        code = function.__code__
        outer = self._outer_of(function)
        if outer is not None:
            return Builder.attribute, (encoder.top(outer), function.__name__)
        source = self.guest.source(code)
        program = None if source is None else definitions.function_program(source, code)
        if program is None:
            raise CannotKeep("its source is not known")
        cells = () if function.__closure__ is None else function.__closure__
        state = {
            "defaults": _top_items(encoder, function.__defaults__),
            "keywords": None if function.__kwdefaults__ is None else _tops(encoder, function.__kwdefaults__),
            "names": (function.__name__, function.__qualname__, function.__doc__),
            "attributes": _tops(encoder, function.__dict__),
        }
        args = (program, function.__name__, code.co_freevars, cells, self._captured(function))
        return Builder.function, args, state, None, None, Builder.fill_function

    # -- classes -----------------------------------------------------------------------------

    def _take_class(self, encoder: Any, cls: type) -> Any:
        if self.is_named_tuple(cls):
            defaults = tuple([encoder.top(d) for d in vars(cls)["_field_defaults"].values()])
            return Builder.tuple_class, (cls.__name__, vars(cls)["_fields"], defaults)
        if self.guest is None or not self.guest.is_guest_class(cls):
            if self.allow.is_named(cls):
                return Builder.named, (class_name(cls),)
            return self._take_hosts(cls)
        outer = self._outer_of(cls)
        if outer is not None:
            return Builder.attribute, (encoder.top(outer), cls.__name__)
        body = self._body(cls)
        if body is None:
            raise CannotKeep("its source is not known")
        names = body.__code__.co_freevars
        program = definitions.class_program(*self._statement(body), cls.__name__, names)
        if program is None:
            raise CannotKeep("its source is not known")
        given = [
            self._filling(encoder, self._namespace(namespace), sorted(names))
            for namespace, names in self._given(cls, body)
        ]
        cells = dict(zip(names, body.__closure__ or (), strict=True))
        contents = {name: each for name, cell in cells.items() for each in _content(cell)}
        early = [encoder.top(None if self._reaches(each, cls) else each) for each in map(contents.get, names)]
        state = (cls.__qualname__, _tops(encoder, self._changed(cls)), _tops(encoder, contents))
        args = (program, cls.__name__, given, tuple(early), self._namespace(body.__globals__))
        for function in functions_of(cls):
            if self.is_own(function):
                self._captured(function)
        return Builder.class_, args, state, None, None, Builder.fill_class

    def _body(self, cls: type) -> types.FunctionType | None:
        """Give the function that was the body of a class statement, if its source is known."""
        if self.guest is None:
            return None
        body = self.guest.class_body(cls)
        return None if body is None or self.guest.source(body.__code__) is None else body

    def _statement(self, body: types.FunctionType) -> tuple[str, int]:
        assert self.guest is not None
        return self.guest.source(body.__code__) or "", body.__code__.co_firstlineno

    def _outer_of(self, value: Any) -> type | None:
        """Give the class in whose body a class or function was made, if it can be had from there."""
        path, _, name = value.__qualname__.rpartition(".")
        if not path or "<locals>" in path:
            return None
        source = self._body(value) if is_class(value) else value
        if source is None:
            return None
        first, *rest = path.split(".")
        found = source.__globals__.get(first)
        for each in rest:
            found = vars(found).get(each) if is_class(found) else None
        if not (is_class(found) and self.is_own(found)):
            return None
        return found if plain_function(vars(found).get(name)) is value else None

    def _changed(self, cls: type) -> dict[str, Any]:
        """Give the attributes of a class that its statement does not give it, or not with this value."""
        if is_a(cls, enum.EnumMeta):
            return {}
        found: dict[str, Any] = {}
        for name, value in vars(cls).items():
            if name == "_abc_impl" or (name.startswith("__") and name.endswith("__")):
                continue
            if is_class(value) or is_function(value):
                if self.is_own(value) and value.__qualname__ != f"{cls.__qualname__}.{value.__name__}":
                    found[name] = value
            elif not any("__get__" in vars(base) for base in type(value).__mro__) and not is_code(value):
                found[name] = value
        return found

    def _given(self, cls: type, body: types.FunctionType) -> list[tuple[dict[str, Any], set[str]]]:
        """Name the globals that must be there when a class statement runs: its own, and what runs with it."""
        found: dict[int, tuple[dict[str, Any], set[str]]] = {}
        wanted: Iterable[str] = definitions.statement_names(*self._statement(body), cls.__name__)
        rest: list[tuple[dict[str, Any], Iterable[str]]] = [(body.__globals__, wanted)]
        while rest:
            namespace, wanted = rest.pop()
            names = found.setdefault(id(namespace), (namespace, set()))[1]
            for name in (namespace.keys() & wanted) - names:
                value = namespace[name]
                if self._reaches(value, cls):
                    continue
                names.add(name)
                functions = functions_of(value) if is_class(value) else [value]
                rest += [
                    (function.__globals__, definitions.global_names(function.__code__))
                    for function in functions
                    if is_function(function) and self.is_own(function)
                ]
        return list(found.values())

    def _reaches(self, value: Any, cls: type) -> bool:
        """Tell whether encoding a value would need a class, so that it cannot come before it."""
        seen: set[int] = set()
        rest = [value]
        while rest:
            each = rest.pop()
            if each is cls:
                return True
            if type(each) in ATOMS or id(each) in seen:
                continue
            seen.add(id(each))
            if len(seen) > _MOST:
                return True
            if is_class(each) or is_function(each):
                if self.is_own(each):
                    rest += self._needed(each)
            else:
                rest += gc.get_referents(each)
        return False

    def _needed(self, value: Any) -> list[Any]:
        """Give what a function or class refers to, apart from globals."""
        if is_class(value):
            return [*value.__bases__, type(value), *self._changed(value).values(), *functions_of(value)]
        contents = [each for cell in value.__closure__ or () for each in _content(cell)]
        return [value.__defaults__, value.__kwdefaults__, value.__dict__, *contents]


_MOST = 100_000  # objects looked at before a value is taken to need the class
_CONSTANT = ATOMS


def take_cell(encoder: Any, cell: types.CellType) -> Any:
    """Take apart the cell of a captured local variable: functions that share it still do."""
    for content in _content(cell):
        return Builder.cell, (), encoder.top(content), None, None, Builder.fill_cell
    return Builder.cell, ()


def _content(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # it is empty
        return ()


def _captured_by(function: types.FunctionType, names: Iterable[str]) -> Iterator[Any]:
    yield from function.__closure__ or ()
    for name in names:
        if name in function.__globals__:
            yield function.__globals__[name]


def _is_its_own(method: types.MethodType) -> bool:
    owner = method.__self__
    mro = (owner if is_class(owner) else type(owner)).__mro__
    name = getattr(method.__func__, "__name__", "")
    found = next((vars(cls)[name] for cls in mro if name in vars(cls)), None)
    return plain_function(found) is method.__func__


def _tops(encoder: Any, values: dict[str, Any]) -> dict[str, Any]:
    return {name: encoder.top(value) for name, value in values.items()}


def _top_items(encoder: Any, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple([encoder.top(each) for each in values])
