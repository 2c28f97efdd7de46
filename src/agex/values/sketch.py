"""What a guest's functions and classes look like, where none of its code may run.

A host that shows the variables of a worker has them as bytes, and must not run what is in those. It makes
empty functions, and classes with the names, the bases and the fields that their statements say: then an
instance is shown by its class and its attributes, as it is where the guest runs.
"""

from __future__ import annotations

import ast
import builtins
import collections
import dataclasses
import enum
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from agex import parsing
from agex.values.builder import MADE, RUN

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
"""The classes of Python's own that one of the guest's may be over, by the last part of their names."""


class Sketch:
    """The `GuestCode` of who only looks: what it makes is empty, and runs nothing."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._hosts: dict[str, type] = {}

    # -- making ----------------------------------------------------------------------

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        """Make what looks like what a program makes.

        Raises:
            ValueError: it is a class over one that is not known here.
            SyntaxError: it is no program.
        """
        found = _statement(parsing.parse(source).body)
        if isinstance(found, ast.ClassDef):
            return self._noted(self._class(found, namespace))
        return self._function(getattr(found, "name", "<lambda>"))

    def host_object(self, name: str) -> Any:
        """Make something that is shown as an object of the host, and is none."""
        module, _, last = name.rpartition(":")
        if name.startswith("module "):
            return ModuleType(name.removeprefix("module "))
        if isinstance(vars(sys.modules.get(module, builtins)).get(last), type):
            self._hosts[last] = type(last, (), {"__module__": module or "builtins"})
            return self._hosts[last]
        return self._function(last)

    def store(self, value: type, name: str, attribute: object) -> None:
        """Do nothing: what a class was given shows nowhere."""

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
            return enum.Enum(node.name, [*_assigned(node)], module="__main__")
        found = dict.fromkeys(self._base(name, namespace) for name in over)
        bases = tuple([base for base in found if base is not object])
        content: dict[str, Any] = {name: self._function(name) for name in _methods(node)} | _slots(node)
        made = type(node.name, bases, {**content, "__module__": "__main__"})
        for decorator in node.decorator_list:
            if _last_name(decorator) == "dataclass":
                made.__annotations__ = dict.fromkeys(_annotated(node), object)
                slots = "slots=True" in ast.unparse(decorator)
                made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(made)
        return made

    def _base(self, name: str, namespace: Mapping[str, Any]) -> type:
        """Find a base: a class made before, or one of Python's own."""
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
        return isinstance(value, FunctionType)  # there are no others here

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

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        return frozenset()

    def written(self, value: object) -> object:
        return value

    def host_name(self, value: object) -> str | None:
        return None


def _nothing() -> None:
    """Be what is in a function that is only shown."""


def _statement(body: Sequence[ast.stmt]) -> ast.stmt:
    """Find the statement that a program is made of, which may stand in functions of the program's own."""
    found = next(each for each in body if not isinstance(each, ast.ImportFrom))
    while isinstance(found, ast.FunctionDef) and found.name in {MADE, RUN}:
        found = found.body[-2]  # the last one returns it
    return found


def _last_name(node: ast.expr) -> str:
    """Give ``Generic`` of ``typing.Generic[T]``, and ``dataclass`` of ``dataclass(frozen=True)``."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _annotated(node: ast.ClassDef) -> Iterator[str]:
    """Give the names of the fields of a class."""
    found = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    for target in [
        each.target for each in found if _last_name(each.annotation) not in {"ClassVar", "InitVar"}
    ]:
        if isinstance(target, ast.Name):
            yield target.id


def _assigned(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.Assign):
            names = [target.id for target in each.targets if isinstance(target, ast.Name)]
            yield from (name for name in names if not name.startswith("_"))


def _slots(node: ast.ClassDef) -> dict[str, Any]:
    for each in node.body:
        if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == ["__slots__"]:
            return {"__slots__": ast.literal_eval(each.value)}
    return {}


def _methods(node: ast.ClassDef) -> Iterator[str]:
    """Give the names of the methods of a class that the interpreter does not call by itself."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("__"):
            yield each.name
