"""Guest functions and classes, taken apart as source and captured values.

A function is the text of its definition, its cells, defaults and attributes. The global names that it
reads go into a *namespace*, one for all code of a group that has the same globals; functions, classes
and modules in it are referred to, and everything else is copied: it is frozen as it was when kept.
A class is its statement, which runs again, and the attributes that it has by now.
"""

from __future__ import annotations

import contextlib
import enum
import types
from collections.abc import Iterable, Iterator
from typing import Any

from agex._interpreter.type_slots import bases_of
from agex.values.adapters import enum_members as members
from agex.values.base.allowlist import Allow, class_name
from agex.values.base.guest_code import GuestCode
from agex.values.base.shared_objects import ATOMS
from agex.values.base.type_checks import is_a, is_class
from agex.values.code import callables
from agex.values.code import source as definitions
from agex.values.code.callables import CannotKeep, exact_text, is_code, tops
from agex.values.code.earlier_values import Earlier
from agex.values.code.guest_classes import GuestClasses, cell_contents
from agex.values.code.reconstructor import Builder
from agex.values.code.stream_markers import (
    CapturedNamespace,
    ClassContent,
    CodeReference,
    NamespaceContent,
)

__all__ = ["Captures", "take_cell"]


class Captures(GuestClasses):
    """Guest code, as the walk over variables and the encoder see it."""

    def __init__(self, allow: Allow, guest: GuestCode | None) -> None:
        super().__init__(allow, guest)
        self.kinds: dict[type, Any] = {}
        """The kinds of types that encoders found; they share them."""
        self._open: dict[int, CapturedNamespace] = {}
        self._of_classes: set[int] = set()
        self._first: dict[int, type] = {}
        self._states: dict[int, tuple[Any, ...]] = {}
        """The contents of the classes that are made first, by the ids of the classes."""

    def successors(self, value: Any) -> Iterator[Any]:
        """Return the objects that a guest function or class refers to."""
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
        yield from _captured_by(value, self._names_of(value))

    # -- namespaces --------------------------------------------------------------------------

    def begin(self, code: list[Any]) -> None:
        """Note the globals that the code of a group captured."""
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
        """Return whether any classes are made first."""
        return bool(self._first)

    def _is_first(self, cls: type) -> bool:
        """Return whether a class is made by a statement of its own, at the top of a program or in a call.

        Not an enumeration: the values of its members are restored at once.
        """
        if is_a(cls, enum.EnumMeta) or not self.is_own(cls) or self.is_named_tuple(cls):
            return False
        return self._body(cls) is not None and self._outer_of(cls) is None

    def _cells_of(self, code: list[Any]) -> set[int]:
        """Return the ids of the cells that classes captured: their contents come with the classes."""
        found: set[int] = set()
        for each in code:
            if is_class(each) and self.is_own(each) and not self.is_named_tuple(each):
                with contextlib.suppress(CannotKeep):
                    found.update(map(id, self._made_by(each)[0].__closure__ or ()))
        return found

    def is_of_class(self, cell: types.CellType) -> bool:
        """Return whether the content of a cell comes with a class."""
        return id(cell) in self._of_classes

    def _captured(self, function: types.FunctionType) -> CapturedNamespace:
        """Return the namespace of a function, and note the names that it needs."""
        captured = self._namespace(function.__globals__)
        captured.names |= self._names_of(function) & captured.globals.keys()
        return captured

    def _names_of(self, function: types.FunctionType) -> frozenset[str]:
        """Return the global names of a function, those of classes and modules in its annotations too."""
        needed = definitions.global_names(function.__code__)
        source = None if self.guest is None else self.guest.source(function.__code__)
        if source is None:
            return needed
        named = definitions.annotation_names(source, function.__code__)
        found = ((name, function.__globals__.get(name)) for name in named)
        return needed | {name for name, each in found if is_class(each) or type(each) is types.ModuleType}

    def _namespace(self, namespace: dict[str, Any]) -> CapturedNamespace:
        found = self._open.get(id(namespace))
        if found is None:
            found = self._open[id(namespace)] = CapturedNamespace(namespace)
        return found

    @property
    def is_behind(self) -> bool:
        """Return whether a namespace lacks names that `fillings` would add."""
        return any(each.names - each.done for each in self._open.values())

    def fillings(self, encoder: Any) -> Iterator[tuple[Any, ...]]:
        """Return the contents of each namespace, also for code that is met on the way."""
        while True:
            rest = [each for each in self._open.values() if each.names - each.done]
            if not rest:
                return
            for captured in rest:
                names = sorted(captured.names - captured.done)
                captured.done |= captured.names
                yield self._filling(encoder, captured, names)

    def classes(self, encoder: Any) -> Iterator[Any]:
        """Return the classes in the order in which they were made, then their contents."""
        for cls in self._first.values():
            yield encoder.held(cls)
            yield ClassContent(cls, early=True)
        for cls in self._first.values():
            yield ClassContent(cls)

    def fill(self, encoder: Any, filled: ClassContent) -> Any:
        """Take the content of a class apart; nothing for a lost class."""
        state = self._states.get(id(filled.cls))
        if state is not None and filled.early:
            state = self._early_state(encoder, filled.cls)
        return (Builder.fill_class, (encoder.held(filled.cls), state)) if state else (Builder.fillings, ())

    def _early_state(self, encoder: Any, cls: type) -> tuple[Any, ...]:
        """Return the attributes set on a class after its statement: later classes may read them."""
        changed, altered = self._changed(cls), self._altered(cls, self._own_code(cls))
        given = {name: value for name, value in changed.items() if name in altered}
        found = Earlier(self, self.number(cls) + 1).of(given, apart=True)
        return (str.__str__(cls.__qualname__), tops(encoder, found), []) if found else ()

    def early(self, encoder: Any) -> Iterator[NamespaceContent]:
        """Return the contents of the namespaces, first those that hash nothing when they are made."""
        copied: list[NamespaceContent] = []
        for captured, direct, *rest in self.fillings(encoder):
            yield NamespaceContent(captured, direct)
            copied += [NamespaceContent(captured, {}, *rest)] if rest else []
        yield from copied

    def _filling(self, encoder: Any, captured: CapturedNamespace, names: list[str]) -> tuple[Any, ...]:
        """Return a namespace, the values that are referred to in it, and those that are copied."""
        return (captured, *self._parted(encoder, {name: captured.globals[name] for name in names}))

    def _parted(self, encoder: Any, values: dict[str, Any]) -> tuple[Any, ...]:
        """Divide values into those that are referred to and those that are copied."""
        direct: dict[str, Any] = {}
        copied: dict[str, Any] = {}
        for name, value in values.items():
            if is_code(value) or type(value) in _CONSTANT:
                direct[name] = encoder.top(value)
            else:
                copied[name] = value
        return (direct, *(encoder.nested(copied) if copied else ()))

    # -- functions ---------------------------------------------------------------------------

    def take(self, encoder: Any, held: CodeReference) -> Any:
        """Take apart the target of a code reference.

        Raises:
            CannotKeep: it is neither guest code nor registered.
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
        if source is not None and (texts := definitions.annotation_texts(source, code)):
            state["annotations"] = texts
        captured = self._captured(function)
        args = (program, function.__name__, code.co_freevars, cells, captured, *self._home(function))
        return Builder.function, args, state, None, None, Builder.fill_function

    def _home(self, value: Any) -> tuple[str, ...]:
        """Return where a function or class stands in a guest module; an empty tuple for any other."""
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
        contents = {name: each for name, cell in variables.items() for each in cell_contents(cell)}
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


_CONSTANT = ATOMS


def take_cell(encoder: Any, cell: types.CellType) -> Any:
    """Take apart the cell of a captured local variable: functions that share it still do."""
    for content in () if encoder.captures.is_of_class(cell) else cell_contents(cell):
        return Builder.cell, (), encoder.top(content), None, None, Builder.fill_cell
    return Builder.cell, ()


def _captured_by(function: types.FunctionType, names: Iterable[str]) -> Iterator[Any]:
    yield from function.__closure__ or ()
    for name in names:
        if name in function.__globals__:
            yield function.__globals__[name]


def _top_items(encoder: Any, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple([encoder.top(each) for each in values])
