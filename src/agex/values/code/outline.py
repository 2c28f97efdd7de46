"""Outlines of guest functions and classes, for a process that may not run guest code.

A host that shows the variables of a worker has them as bytes, and must not run code in them. It makes empty
functions, and classes with the names, the bases and the fields of their statements. So an instance is shown
by its class and its attributes, as in the worker.
"""

from __future__ import annotations

import ast
import builtins
import collections
import dataclasses
import enum
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from agex._interpreter import syntax_trees
from agex._interpreter.type_slots import mro_of
from agex.values.adapters.callable_builder import LIBRARY
from agex.values.code.reconstructor import MADE, RUN

__all__ = ["Sketch"]

_BASES: Mapping[str, type] = {
    **dict.fromkeys(("object", "ABC", "Generic", "Protocol"), object),
    **{cls.__name__: cls for cls in (dict, list, set, frozenset, tuple, int, float, str, bytes)},
    **{
        name: value
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    },
}
"""Builtin and standard classes that a guest class may derive from, by the last part of their names."""

_MOST_TEXT = 1 << 18
"""Characters of all programs together. A tree takes some hundred times the bytes of its text."""
_MOST_BASES = 64
"""Classes above one, each counted as often as there are ways to it: the order of them is of that size."""
_LARGEST = 1024
"""Bytes of an instance, which are of its slots: in a stream it takes ten."""


class Sketch:
    """A `GuestCode` for display: the code that it makes is empty and runs nothing."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._hosts: dict[str, type] = {}
        self._text_left = _MOST_TEXT

    # -- making ----------------------------------------------------------------------

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        """Make an outline of the function or class that a program makes.

        Raises:
            ValueError: it is a class over an unknown base, or too large.
            SyntaxError: it is no program.
        """
        self._text_left -= len(source)
        if type(source) is not str or self._text_left < 0:
            raise ValueError("there is too much code to show all of it")
        found = _statement(syntax_trees.parse(source).body)
        if isinstance(found, ast.ClassDef):
            return self._noted(self._class(found, namespace))
        return self._function(getattr(found, "name", "<lambda>"))

    def host_object(self, name: str) -> Any:
        """Make an object that is shown as a host object, and is none."""
        module, _, last = name.rpartition(":")
        if name in LIBRARY:
            return getattr(importlib.import_module(module), last)
        if name.startswith("module "):
            return ModuleType(name.removeprefix("module "))
        if isinstance(vars(sys.modules.get(module) or builtins).get(last), type):
            self._hosts[last] = type(last, (), {"__module__": module or "builtins"})
            return self._hosts[last]
        return self._function(last)

    def store(self, value: type, name: str, attribute: object) -> None:
        """Do nothing: attributes of a class are not shown."""

    def _noted(self, made: Any) -> Any:
        self._made[id(made)] = made
        return made

    def _function(self, name: str) -> FunctionType:
        function: FunctionType = self._noted(FunctionType(_nothing.__code__, {}, name))
        return function

    def _class(self, node: ast.ClassDef, namespace: Mapping[str, Any]) -> Any:
        over = [_last_name(base) for base in node.bases]
        if over == ["NamedTuple"]:
            return collections.namedtuple(node.name, [*_annotated(node)], module="__main__")  # noqa: PYI024
        if over == ["Enum"]:
            # With values: `enum` goes through all earlier members for each new one.
            numbered = [(name, number) for number, name in enumerate(_assigned(node))]
            return enum.Enum(node.name, numbered, module="__main__")
        found = dict.fromkeys(self._base(name, namespace) for name in over)
        bases = tuple([base for base in found if base is not object])
        if sum(len(mro_of(base)) for base in bases) > _MOST_BASES:
            raise ValueError(f"a class over so many as {node.name} cannot be shown")
        content: dict[str, Any] = {name: self._function(name) for name in _methods(node)} | _slots(node)
        made = type(node.name, bases, {**content, "__module__": "__main__"})
        for decorator in node.decorator_list:
            if _last_name(decorator) == "dataclass":
                made.__annotations__ = dict.fromkeys(_annotated(node), object)
                slots = "slots=True" in ast.unparse(decorator)
                made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(made)
        if made.__basicsize__ > _LARGEST:
            raise ValueError(f"an object with so many slots as one of {node.name} cannot be shown")
        return made

    def _base(self, name: str, namespace: Mapping[str, Any]) -> type:
        """Find a base: a class made before, or one of the standard ones."""
        known = namespace.get(name)
        if known is None or known is self._hosts.get(name):
            known = _BASES.get(name)
        elif id(known) not in self._made:
            known = None
        if isinstance(known, type):
            return known
        raise ValueError(f"a class over {name} cannot be shown")

    # -- what else is asked ------------------------------------------------------------

    def is_guest_function(self, value: object) -> bool:
        return type(value) is FunctionType and value.__code__ is _nothing.__code__

    def is_guest_class(self, value: type) -> bool:
        return id(value) in self._made

    def may_store(self, value: type, name: str) -> bool:
        return True

    def source(self, code: CodeType) -> str | None:
        return None

    def class_body(self, value: type) -> FunctionType | None:
        return None

    def class_header(self, value: type) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        return None

    def class_number(self, value: type) -> int:
        return -1

    def home_of(self, value: FunctionType | type) -> str | None:
        return None

    def at_home(self, home: str) -> Any:
        return None

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        return frozenset()

    def written(self, value: object) -> object:
        return value

    def host_name(self, value: object) -> str | None:
        return None

    def method_of(self, value: object) -> tuple[Any, str] | None:
        return None

    def method(self, owner: Any, name: str) -> Any:
        """Make an object that is shown as a method, and is none."""
        return self._function(name)


def _nothing() -> None:
    """Serve as the code of a function that is only shown."""


def _statement(body: Sequence[ast.stmt]) -> ast.stmt:
    """Find the statement of a program, which may stand in functions that the program adds."""
    found = next(each for each in body if not isinstance(each, ast.ImportFrom))
    while isinstance(found, ast.FunctionDef) and found.name in {MADE, RUN}:
        found = found.body[-2]  # the last one returns it
    return found


def _last_name(node: ast.expr) -> str:
    """Return ``Generic`` of ``typing.Generic[T]``, and ``dataclass`` of ``dataclass(frozen=True)``."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _annotated(node: ast.ClassDef) -> Iterator[str]:
    """Return the names of the fields of a class that are shown."""
    found = [each for each in node.body if isinstance(each, ast.AnnAssign) and not _is_hidden(each.value)]
    for target in [
        each.target for each in found if _last_name(each.annotation) not in {"ClassVar", "InitVar"}
    ]:
        if isinstance(target, ast.Name) and not _is_special(target.id):
            yield target.id


def _is_hidden(value: ast.expr | None) -> bool:
    """Return whether a field is made by ``field(repr=False)``."""
    said = value.keywords if isinstance(value, ast.Call) else []
    return any(each.arg == "repr" and ast.unparse(each.value) == "False" for each in said)


def _assigned(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.Assign):
            names = [target.id for target in each.targets if isinstance(target, ast.Name)]
            yield from (name for name in names if not name.startswith("_"))


def _slots(node: ast.ClassDef) -> dict[str, Any]:
    for each in node.body:
        if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == ["__slots__"]:
            said = ast.literal_eval(each.value)
            names = [said] if type(said) is str else [*said]
            return {"__slots__": [name for name in names if name in _OF_OBJECTS or not _is_special(name)]}
    return {}


def _is_special(name: str) -> bool:
    """Return whether the interpreter itself calls the attribute of a name, also through a slot."""
    return name.startswith("__") and name.endswith("__")


_OF_OBJECTS = frozenset({"__dict__", "__weakref__"})


def _methods(node: ast.ClassDef) -> Iterator[str]:
    """Return the names of the methods of a class that the interpreter does not call itself."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("__"):
            yield each.name
