"""Functions and classes of the guest: taken apart as source and the values that they captured.

A function is the text of its definition, its cells, defaults and attributes. The global names that it
reads go into a *namespace*, one for all code of a group that has the same globals; functions, classes
and modules in it are referred to, and everything else is copied: it is frozen as it was when kept.
A class is its statement, which runs again, and the attributes that it has by now.
"""

from __future__ import annotations

import contextlib
import enum
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agex._interpreter.type_slots import bases_of, mro_of
from agex.values.adapters import enum_members as members
from agex.values.adapters import stdlib as plain
from agex.values.base.allowlist import Allow, class_name
from agex.values.base.function_wrappers import functions_of, plain_function
from agex.values.base.guest_code import GuestCode
from agex.values.base.shared_objects import ATOMS
from agex.values.base.type_checks import is_a, is_class, is_function, package_of
from agex.values.code import callables
from agex.values.code import source as definitions
from agex.values.code.callables import CannotKeep, exact_text, is_code, tops
from agex.values.code.earlier_values import Earlier
from agex.values.code.reconstructor import Builder, may_store

__all__ = [
    "CannotKeep",
    "Captured",
    "Captures",
    "Early",
    "Filled",
    "Filling",
    "Fillings",
    "First",
    "Held",
    "is_code",
    "take_cell",
]


class Held:
    """A function, class, module or object of the host, for a place that unwraps handles."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


class Fillings:
    """What is in the namespaces of an encoder's code; it is made when all else is encoded."""


class Early:
    """What is in the namespaces already when the first value is made: hashes of the guest read it."""


class First:
    """The classes of an encoder's code: they are made before all else, and then given what they have."""


class Filled:
    """What one of them is given: at last, or before the next one is made."""

    def __init__(self, cls: type, *, early: bool = False) -> None:
        self.cls = cls
        self.early = early


class Filling:
    """What is put into one of them."""

    def __init__(self, *content: Any) -> None:
        self.content = content


class Captured:
    """What code with the same globals captured of them."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.globals = namespace
        self.names: set[str] = set()
        self.done: set[str] = set()


_LEADING = frozenset(
    {*plain.KINDS, *callables.KINDS, types.CellType, dict, list, set, tuple, frozenset, bytearray, slice}
)


class Captures:
    """Code of the guest, as the walk over variables and the encoder see it."""

    def __init__(self, allow: Allow, guest: GuestCode | None) -> None:
        self.allow = allow
        self.guest = guest
        self.kinds: dict[type, Any] = {}
        """What encoders found out about types: they share it."""
        self._open: dict[int, Captured] = {}
        self._outer: dict[int, type] = {}
        """Classes by the ids of what their bodies made."""
        self._of_classes: set[int] = set()
        self._first: dict[int, type] = {}
        self._states: dict[int, tuple[Any, ...]] = {}
        """What the classes that are made first are given, by their ids."""

    def is_own(self, value: Any) -> bool:
        """Tell whether a function or class is the guest's."""
        return self.is_guests(value) or (is_class(value) and self.is_named_tuple(value))

    def leads_on(self, cls: type) -> bool:
        """Tell whether instances of a class are taken apart; the graph behind others is the host's."""
        if cls in _LEADING or issubclass(cls, type) or self.is_own(cls) or self.allow.is_registered(cls):
            return True
        return package_of(cls) in {"numpy", "pandas", "plotly", "polars"}

    def is_guests(self, value: Any) -> bool:
        if self.guest is None:
            return False
        return self.guest.is_guest_class(value) if is_class(value) else self.guest.is_guest_function(value)

    def is_named_tuple(self, cls: type) -> bool:
        """Tell whether ``collections.namedtuple`` made a class, and nobody says more of it."""
        if bases_of(cls) != (tuple,) or "_fields" not in vars(cls):
            return False
        has_statement = self.is_guests(cls) and self._body(cls) is not None
        return not has_statement and not self.allow.is_registered(cls)

    def successors(self, value: Any) -> Iterator[Any]:
        """Give what a function or class of the guest refers to."""
        if is_class(value):
            yield from (*bases_of(value), type(value), self._outer_of(value), *self._functions_of(value))
            yield from (*self._changed(value).values(), *members.parts(value, self.leads_on))
            yield from self._inner(value)
            body = self._body(value)
            statement = None if body is None else self._statement(value, body)
            if body is not None and statement is not None:
                yield from _captured_by(body, statement.names)
                yield from self._header(value).values() if statement.takes_header else ()
            return
        yield from (value.__defaults__, value.__kwdefaults__, value.__dict__, self._outer_of(value))
        yield from _captured_by(value, definitions.global_names(value.__code__))

    def _functions_of(self, cls: type) -> list[types.FunctionType]:
        """Give the functions in a class's namespace, as the guest wrote them."""
        return [self._as_written(each) for each in functions_of(cls)]

    def _as_written(self, function: types.FunctionType) -> types.FunctionType:
        """Give the guest's function that one of the host's stands before; any other as it is."""
        inner: Any = function
        while self.guest is not None and is_function(inner) and not self.is_own(inner):
            written = self.guest.written(inner)
            inner = plain_function(vars(inner).get("__wrapped__") if written is inner else written)
        return inner if is_function(inner) else function

    # -- namespaces --------------------------------------------------------------------------

    def begin(self, code: list[Any]) -> None:
        """Note what the code of a group captured of its globals."""
        self._open = {}
        self._of_classes = self._cells_of(code)
        made = [each for each in code if is_class(each) and self._is_first(each)]
        self._first = {id(each): each for each in sorted(made, key=self.number)}
        self._states = {}
        for each in code:
            for function in self._functions_of(each) if is_class(each) else [each]:
                if self.is_own(function):
                    self._captured(function)

    @property
    def has_classes(self) -> bool:
        """Tell whether there are any that are made first."""
        return bool(self._first)

    def _is_first(self, cls: type) -> bool:
        """Tell whether a class is made by a statement of its own, at the top of a program or in a call.

        Not an enumeration: what its members are worth is restored at once.
        """
        if is_a(cls, enum.EnumMeta) or not self.is_own(cls) or self.is_named_tuple(cls):
            return False
        return self._body(cls) is not None and self._outer_of(cls) is None

    def _cells_of(self, code: list[Any]) -> set[int]:
        """Give the ids of the cells that classes captured: what is in them comes with the classes."""
        found: set[int] = set()
        for each in code:
            if is_class(each) and self.is_own(each) and not self.is_named_tuple(each):
                with contextlib.suppress(CannotKeep):
                    found.update(map(id, self._made_by(each)[0].__closure__ or ()))
        return found

    def is_of_class(self, cell: types.CellType) -> bool:
        """Tell whether a class brings what is in a cell."""
        return id(cell) in self._of_classes

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

    def classes(self, encoder: Any) -> Iterator[Any]:
        """Give the classes in the order in which they were made, then what they have got by now."""
        for cls in self._first.values():
            yield encoder.held(cls)
            yield Filled(cls, early=True)
        for cls in self._first.values():
            yield Filled(cls)

    def fill(self, encoder: Any, filled: Filled) -> Any:
        """Take apart what a class is given; nothing for one that is lost."""
        state = self._states.get(id(filled.cls))
        if state is not None and filled.early:
            state = self._early_state(encoder, filled.cls)
        return (Builder.fill_class, (encoder.held(filled.cls), state)) if state else (Builder.fillings, ())

    def _early_state(self, encoder: Any, cls: type) -> tuple[Any, ...]:
        """Give what a class got after its statement and those of later ones may ask for; nothing if so."""
        changed, altered = self._changed(cls), self._altered(cls, self._own_code(cls))
        given = {name: value for name, value in changed.items() if name in altered}
        found = Earlier(self, self.number(cls) + 1).of(given, apart=True)
        return (str.__str__(cls.__qualname__), tops(encoder, found), []) if found else ()

    def early(self, encoder: Any) -> Iterator[Filling]:
        """Give what is in the namespaces, first that which hashes nothing when it is made."""
        copied: list[Filling] = []
        for captured, direct, *rest in self.fillings(encoder):
            yield Filling(captured, direct)
            copied += [Filling(captured, {}, *rest)] if rest else []
        yield from copied

    def _filling(self, encoder: Any, captured: Captured, names: list[str]) -> tuple[Any, ...]:
        """Give a namespace, what is referred to in it, and what is copied."""
        return (captured, *self._parted(encoder, {name: captured.globals[name] for name in names}))

    def _parted(self, encoder: Any, values: dict[str, Any]) -> tuple[Any, ...]:
        """Give what of some values is referred to, and what is copied."""
        direct: dict[str, Any] = {}
        copied: dict[str, Any] = {}
        for name, value in values.items():
            if is_code(value) or type(value) in _CONSTANT:
                direct[name] = encoder.top(value)
            else:
                copied[name] = value
        return (direct, *(encoder.nested(copied) if copied else ()))

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
        return callables.take(self, encoder, value) or self._take_hosts(encoder, value)

    def _take_hosts(self, encoder: Any, value: Any) -> Any:
        name = None if self.guest is None else self.guest.host_name(value)
        if name is None:
            raise CannotKeep("it belongs to the host and is not registered")
        encoder.note_session()
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
            "keywords": None if function.__kwdefaults__ is None else tops(encoder, function.__kwdefaults__),
            "names": tuple(map(exact_text, (function.__name__, function.__qualname__, function.__doc__))),
            "attributes": tops(encoder, function.__dict__),
        }
        captured = self._captured(function)
        args = (program, function.__name__, code.co_freevars, cells, captured, *self._home(function))
        return Builder.function, args, state, None, None, Builder.fill_function

    def _home(self, value: Any) -> tuple[str, ...]:
        """Give where a function or class stands in a module that the guest wrote; nothing for any other."""
        home = None if self.guest is None else self.guest.home_of(value)
        return () if home is None else (home,)

    # -- classes -----------------------------------------------------------------------------

    def _take_class(self, encoder: Any, cls: type) -> Any:
        if self.is_named_tuple(cls):
            defaults = tuple([encoder.top(d) for d in vars(cls)["_field_defaults"].values()])
            return Builder.tuple_class, (cls.__name__, vars(cls)["_fields"], defaults)
        if self.guest is None or not self.guest.is_guest_class(cls):
            if self.allow.is_named(cls):
                return Builder.named, (class_name(cls),)
            return self._take_hosts(encoder, cls)
        outer = self._outer_of(cls)
        if outer is not None:
            return Builder.attribute, (encoder.top(outer), cls.__name__)
        body, statement = self._made_by(cls)
        changed = self._changed(cls)
        self._require_kept(cls, changed)
        variables = dict(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
        contents = {name: each for name, cell in variables.items() for each in _content(cell)}
        earlier = Earlier(self, self.number(cls))
        known = earlier.of(contents | (self._header(cls) if statement.takes_header else {}))
        given = [
            (self._namespace(namespace), *self._parted(encoder, earlier.of(values)))
            for namespace, values in self._given(body, statement, known)
        ]
        cells = (tuple(variables), tuple(variables.values()))
        captured = (statement.parameters, *cells, *self._parted(encoder, known))
        filled = [(variables[name], encoder.top(each)) for name, each in contents.items()]
        state: tuple[Any, ...] = (str.__str__(cls.__qualname__), tops(encoder, changed), filled)
        if is_a(cls, enum.EnumMeta):
            state = (*state, members.take(cls, self.leads_on, encoder.top))
        space = self._namespace(body.__globals__)
        space.names |= statement.names & space.globals.keys()
        args = (statement.program, cls.__name__, given, captured, space, *self._home(cls))
        for function in self._functions_of(cls):
            if self.is_own(function):
                self._captured(function)
        if id(cls) not in self._first:
            return Builder.class_, args, state, None, None, Builder.fill_class
        self._states[id(cls)] = state
        return Builder.class_, args

    def number(self, cls: type) -> int:
        """Return the place of a class in the order in which the guest made its classes."""
        return -1 if self.guest is None else self.guest.class_number(cls)

    def _made_by(self, cls: type) -> tuple[types.FunctionType, definitions.Statement]:
        """Give the body and the statement that make a class again.

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
        """Give the function that was the body of a class statement, if its source is known."""
        if self.guest is None:
            return None
        body = self.guest.class_body(cls)
        return None if body is None or self.guest.source(body.__code__) is None else body

    def _statement(self, cls: type, body: types.FunctionType) -> definitions.Statement | None:
        """Give the statement that makes a class again."""
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
        """Give the bases and the values of the keywords that a class was made with, by parameter."""
        assert self.guest is not None
        bases, keywords = self.guest.class_header(cls) or ((), {})
        values = (*bases, *keywords.values())
        return dict(zip(definitions.header_parameters(len(values)), values, strict=True))

    def _inner(self, cls: type) -> Iterator[type]:
        """Give the classes made in the body of a class, and note where they can be had from."""
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
        """Give the class in whose body a class or function was made, if it can be had from there."""
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
        """Give the attributes of a class that its statement does not give it, or not with this value."""
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
        """Name what was set or deleted on a class and is not done again with its statement."""
        if self.guest is None:
            return frozenset()
        return self.guest.altered(cls, dressed=own is not None) - {"__qualname__"}

    def _require_kept(self, cls: type, changed: Mapping[str, Any]) -> None:
        """Refuse a class that would come back without what was done to it.

        Raises:
            CannotKeep: an attribute was set that is no plain value and no function, or one was deleted.
        """
        lost = self._altered(cls, self._own_code(cls)) - changed.keys()
        if lost:
            raise CannotKeep(
                f"its {', '.join(sorted(lost))} was set or deleted after the class statement; say it there"
            )

    def _own_code(self, cls: type) -> tuple[Any, ...] | None:
        """Give the code in a class statement that will run without its decorators; None for any other.

        What a decorator put in the place of a function of the statement is to be kept then.
        """
        body = self._body(cls)
        statement = None if body is None else self._statement(cls, body)
        return body.__code__.co_consts if body and statement and statement.is_bare else None

    def _given(
        self, body: types.FunctionType, statement: definitions.Statement, known: dict[str, Any]
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Give the globals that must be there when a class statement runs: its own, and what runs with it."""
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
        """Name the globals of the functions that a class statement may call by a value, or by its closure."""
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
                rest += [content for cell in each.__closure__ or () for content in _content(cell)]
        return found


_CONSTANT = ATOMS


def take_cell(encoder: Any, cell: types.CellType) -> Any:
    """Take apart the cell of a captured local variable: functions that share it still do."""
    for content in () if encoder.captures.is_of_class(cell) else _content(cell):
        return Builder.cell, (), encoder.top(content), None, None, Builder.fill_cell
    return Builder.cell, ()


def _content(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # it is empty
        return ()


def _is_of_statement(cls: type, value: Any, own: tuple[Any, ...] | None) -> bool:
    """Tell whether a class statement itself made a function or class; *own* is its code, if that counts."""
    if own is not None and is_function(value):
        return any(value.__code__ is each for each in own)
    found: bool = value.__qualname__ == f"{cls.__qualname__}.{value.__name__}"
    return found


def _captured_by(function: types.FunctionType, names: Iterable[str]) -> Iterator[Any]:
    yield from function.__closure__ or ()
    for name in names:
        if name in function.__globals__:
            yield function.__globals__[name]


def _top_items(encoder: Any, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple([encoder.top(each) for each in values])
