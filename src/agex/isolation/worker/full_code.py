"""Functions and classes of full Python: where they come from, and how they are made again elsewhere.

`FullCode` is the `agex.values.GuestCode` of a worker without guards. Its code is known by the code objects
that were compiled here; its classes by a note that ``__build_class__`` leaves.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import itertools
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from agex.sandbox.runtime.provenance import Notes, Statement

if TYPE_CHECKING:
    from agex.isolation.worker.full_python import FullSession

__all__ = ["DRESSED", "ClassStatements", "CodeNotes", "FullCode"]

T = TypeVar("T")

DRESSED = "__dressed__"
"""The builtin that compiled code calls with each class that a decorated statement made."""
_MODULE = "module "


class CodeNotes:
    """The sources of the code objects that were compiled for guest code."""

    def __init__(self) -> None:
        self._sources: Notes[str] = Notes()

    def add(self, code: types.CodeType, source: str) -> None:
        """Note the source of a code object, and of those in it."""
        self._sources.set(code, source)
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                self.add(each, source)

    def source(self, code: types.CodeType) -> str | None:
        """Return the program that a code object is part of; None for code of the host or of a library."""
        return self._sources.get(code)


class ClassStatements:
    """The class statements of guest code that ran.

    Args:
        notes: the sources of its code.
    """

    def __init__(self, notes: CodeNotes) -> None:
        self._notes = notes
        self._made: Notes[Statement] = Notes()
        self._first: Notes[dict[str, Any]] = Notes()
        self._dressed: Notes[dict[str, Any]] = Notes()
        self._latest: dict[str, weakref.ref[type]] = {}

    def watch(self) -> None:
        """Note each class that guest code makes from now on."""
        build, find_file = builtins.__build_class__, inspect.getfile

        def build_noted(body: Any, name: Any, /, *bases: Any, **keywords: Any) -> Any:
            made = build(body, name, *bases, **keywords)
            code = getattr(body, "__code__", None)
            if isinstance(made, type) and type(code) is types.CodeType and self._notes.source(code):
                self._made.set(made, Statement(body, bases, keywords))
                self._first.set(made, dict(vars(made)))
                self._latest[made.__qualname__] = weakref.ref(made)
            return made

        def getfile(object: Any) -> str:  # noqa: A002 - the parameter of `inspect.getfile`
            statement = self.of(object) if isinstance(object, type) else None
            return find_file(object) if statement is None else statement.body.__code__.co_filename

        setattr(builtins, build.__name__, build_noted)
        setattr(builtins, DRESSED, self.dressed)
        inspect.getfile = getfile

    def of(self, cls: type) -> Statement | None:
        """Return the statement that made a class of guest code; None for any other class."""
        return self._made.get(cls)

    def dressed(self, made: T) -> T:
        """Note that the decorators of a class statement are done; compiled code calls this last.

        One of them may have made another class in place of the statement's: ``dataclass(slots=True)`` does.
        """
        if isinstance(made, type):
            if self.of(made) is None:
                self._succeed(made)
            self._dressed.set(made, dict(vars(made)))
        return made

    def _succeed(self, made: type) -> None:
        """Note the statement of the class that another one replaces."""
        found = self._latest.get(made.__qualname__)
        former = None if found is None else found()
        statement = None if former is None else self.of(former)
        if former is not None and statement is not None and former.__bases__ == made.__bases__:
            self._made.set(made, statement)
            self._first.set(made, self._first.get(former) or {})

    def altered(self, cls: type, *, dressed: bool) -> frozenset[str]:
        """Return the public names that were set or deleted on a class since its statement ended.

        With *dressed* also those that a decorator of the statement set or deleted.
        """
        first, now = self._first.get(cls), dict(vars(cls))
        if first is None:
            return frozenset()
        done = self._dressed.get(cls) or first
        names = {name for name in first.keys() | done.keys() | now.keys() if not _is_special(name)}
        pairs = [(done, now), (first, done)] if dressed else [(done, now)]
        return frozenset(
            name for name in names for a, b in pairs if a.get(name, _NONE) is not b.get(name, _NONE)
        )


_NONE = object()


def _is_special(name: str) -> bool:
    """Return whether the interpreter or a decorator such as ``dataclass`` sets a name."""
    return (name.startswith("__") and name.endswith("__")) or name == "_abc_impl"


_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)


class FullCode:
    """The functions and classes of a session of full Python.

    Args:
        session: where they are made.
    """

    _numbers = itertools.count(1)

    def __init__(self, session: FullSession) -> None:
        self._session = session

    def is_guest_function(self, value: object) -> bool:
        return self._session.is_guest_function(value)

    def is_guest_class(self, value: type) -> bool:
        return self._session.statements.of(value) is not None

    def source(self, code: types.CodeType) -> str | None:
        return self._session.programs.notes.source(code)

    def class_body(self, value: type) -> types.FunctionType | None:
        statement = self._session.statements.of(value)
        return None if statement is None else statement.body

    def class_header(self, value: type) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        statement = self._session.statements.of(value)
        return None if statement is None else (statement.bases, statement.keywords)

    def class_number(self, value: type) -> int:
        statement = self._session.statements.of(value)
        return -1 if statement is None else statement.number

    def home_of(self, value: types.FunctionType | type) -> str | None:
        return None  # functions of modules are no code of a program: they are found by name

    def at_home(self, home: str) -> Any:
        return None

    def may_store(self, value: type, name: str) -> bool:
        return self.is_guest_class(value)

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        return self._session.statements.altered(value, dressed=dressed)

    def written(self, value: object) -> object:
        return value

    def store(self, value: type, name: str, attribute: object) -> None:
        setattr(value, name, attribute)

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        result = self._session.define(source, f"<kept {next(self._numbers)}>", namespace)
        if result.error is not None:
            raise result.error
        return namespace[name]

    def host_name(self, value: object) -> str | None:
        if type(value) is types.ModuleType:
            name = self._session.name_of(value)
            return None if name is None or name == "__main__" else f"{_MODULE}{name}"
        known = next((name for name, each in list(vars(builtins).items()) if each is value), None)
        if known is not None:
            return None if known.startswith("_") else known
        if not isinstance(value, _NAMED):  # to read an attribute of anything else may run its code
            return None
        home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if type(home) is not str or type(name) is not str or home == "__main__" or home not in sys.modules:
            return None
        return f"{home}:{name}" if vars(sys.modules[home]).get(name) is value else None

    def host_object(self, name: str) -> Any:
        home, _, member = name.partition(":")
        try:
            if member:
                return getattr(importlib.import_module(home), member)
            if name.startswith(_MODULE):
                return importlib.import_module(name.removeprefix(_MODULE))
            return vars(builtins)[name]
        except (ImportError, AttributeError) as error:
            raise KeyError(name) from error

    def method_of(self, value: object) -> tuple[Any, str] | None:
        """Name a method by the object or class that it is read of."""
        name, owner = getattr(value, "__name__", None), getattr(value, "__self__", None)
        owner = getattr(value, "__objclass__", None) if owner is None else owner
        if type(name) is not str or owner is None or type(owner) is types.ModuleType:
            return None
        return (owner, name) if getattr(owner, name, None) == value else None

    def method(self, owner: Any, name: str) -> Any:
        try:
            return getattr(owner, name)
        except AttributeError:
            raise KeyError(name) from None
