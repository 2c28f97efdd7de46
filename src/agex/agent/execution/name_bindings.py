"""Names that a program binds: those it may not have, and inputs that it gives another value; what it defines.

It is told from the program's text, so that it holds wherever the code runs, and before any of it has.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from agex._interpreter import syntax_trees
from agex.contract import short_repr
from agex.errors import EvalError, SandboxSyntaxError

__all__ = [
    "RESERVED", "UNBIND", "InputNotes", "awaits", "bindings_in", "definitions", "may_bind_unsaid",
    "refused_binding",
]  # fmt: skip

_CALL = "it is there already, and ends the task: call it, and define nothing of that name"
RESERVED: Mapping[str, str] = {
    "task_success": _CALL,
    "task_fail": _CALL,
    "task_clarify": _CALL,
    "inputs": "it holds the arguments of the task; choose another name, e.g. data",
    "cache": "it is the dict that is kept with the state: write cache['key'] = ..., or choose another name, "
    "e.g. memo",
}
"""Names that guest code reads and never binds, each with what to write instead."""

UNBIND = f"[name for name in {tuple(RESERVED)!r} if name in globals() and (globals().pop(name), True)[1]]"
"""Guest code that unbinds them, and gives those that were bound."""

PREVIEW_CHARS = 60
"""Characters of an input that a note shows."""
MOST_NOTES = 5
"""Notes of one observation."""

_REPLACED = (int, float, complex, str, bytes, tuple, frozenset, bool, type(None))
"""Classes whose ``+=`` always gives another object."""


class Binding(NamedTuple):
    """One place where a name gets a value, or loses it."""

    name: str
    node: ast.AST
    scope: str
    """``module``, ``function`` (a comprehension is one) or ``class``; ``global`` for such a statement."""
    augmented: bool = False
    """Whether it is ``+=`` or the like, which may leave the same object there."""


_Open: TypeAlias = "tuple[ast.AST, str, str]"
"""A node, the scope it is in, and the scope in which ``:=`` binds there."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_INSIDE = frozenset({"body", "elt", "key", "value", "generators", "args"})
"""The fields of a function, class or comprehension that are of the scope it opens."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bindings_in(tree: ast.AST) -> Iterator[Binding]:
    """Yield the places of a program where a name is bound or deleted, in no certain order."""
    rest: list[_Open] = [(tree, "module", "module")]
    while rest:  # no recursion: the text may be nested as deeply as it likes
        node, scope, outer = rest.pop()
        yield from _bound_by(node, scope, outer)
        rest.extend(_below(node, scope, outer))


def _bound_by(node: ast.AST, scope: str, outer: str) -> Iterator[Binding]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield Binding(name, node, scope)
        case ast.AugAssign(target=ast.Name(id=name)):
            yield Binding(name, node, scope, augmented=True)
        case ast.NamedExpr(target=ast.Name(id=name)):
            yield Binding(name, node, outer)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield Binding(name, node, scope)
        case ast.arg(arg=name):
            yield Binding(name, node, "function")
        case ast.alias():
            yield Binding(node.asname or node.name.partition(".")[0], node, scope)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield Binding(name, node, scope)
        case ast.MatchMapping(rest=str(name)):
            yield Binding(name, node, scope)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            for name in names:
                yield Binding(name, node, "global")
        case _ if type(node).__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):
            yield Binding(node.name, node, "function")  # type: ignore[attr-defined]  # Python 3.12
        case _:
            pass


def _below(node: ast.AST, scope: str, outer: str) -> Iterator[_Open]:
    around = inside = (scope, outer)
    if isinstance(node, _FUNCTIONS):
        inside = ("function", "function")
    elif isinstance(node, ast.ClassDef):
        inside = ("class", "class")
    elif isinstance(node, _COMPREHENSIONS):
        inside = ("function", outer)
    skipped = _target_told(node)
    for name, value in ast.iter_fields(node):
        here, beyond = inside if name in _INSIDE else around
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, ast.AST) and each is not skipped:
                yield each, here, beyond


def _target_told(node: ast.AST) -> ast.AST | None:
    """Return the target that the statement itself is a binding of."""
    if isinstance(node, ast.AugAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
        return node.target
    return None


def _may_say(source: str, name: str) -> bool:
    return name in source or not source.isascii()  # Python takes some other letters for plain ones


def _parsed(source: str) -> ast.Module | None:
    """Return the syntax tree; None for what is no program: running it then says why."""
    try:
        return syntax_trees.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def refused_binding(source: str, filename: str) -> str | None:
    """Return why a program may not run: the first place that binds a reserved name, as a traceback shows it.

    An attribute may have such a name, also one that a class body defines.
    """
    if not any(_may_say(source, name) for name in RESERVED):
        return None
    tree = _parsed(source)
    found = [each for each in bindings_in(tree) if each.name in RESERVED] if tree is not None else []
    found = [each for each in found if each.scope != "class"]
    if not found:
        return None
    first = min(found, key=_place)
    line, column = _place(first)
    text = source.splitlines()[line - 1] if line <= len(source.splitlines()) else ""
    offset = len(text.encode()[:column].decode(errors="ignore")) + 1
    told = f"{first.name!r} cannot be bound; {RESERVED[first.name]}"
    error = SandboxSyntaxError(told, (filename, line, offset, text, line, offset + _width(first)))
    shown = "".join(traceback.format_exception_only(error)).replace(f"{SandboxSyntaxError.__module__}.", "")
    return shown.strip()


def may_bind_unsaid(source: str) -> bool:
    """Return whether a program may bind names that its text does not say."""
    return any(way in source for way in ("import *", "exec", "globals", "vars", "locals", "__dict__"))


def _place(binding: Binding) -> tuple[int, int]:
    return getattr(binding.node, "lineno", 1), getattr(binding.node, "col_offset", 0)


def _width(binding: Binding) -> int:
    """Return how many characters to mark: none where only the statement's place is known."""
    is_there = isinstance(binding.node, ast.Name | ast.arg | ast.NamedExpr | ast.AugAssign)
    return len(binding.name) if is_there else 0


class InputNotes:
    """Says once of each input that the code gave its name another value.

    Args:
        values: the inputs by name.
        names: the variables of the code as they are before it runs.
    """

    def __init__(self, values: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        self._values = values
        self._first = {name: names[name] for name in values if name in names}
        self._told: set[str] = set()

    def after(self, source: str, names: Callable[[], Mapping[str, Any]]) -> str:
        """Return the notes for a program that has run; empty for none.

        Args:
            source: the program.
            names: gives the variables as they are now; asked where the program binds an input's name.
        """
        bound = self._bound(source)
        if not bound:
            return ""
        try:
            now = names()
        except EvalError:  # the place is gone, which the code is told
            return ""
        lines = []
        for name in bound:
            if name in now and now[name] is self._first[name]:
                self._told.discard(name)
            elif name not in self._told:
                self._told.add(name)
                was = short_repr(self._values[name], PREVIEW_CHARS).replace("\n", " ")
                lines.append(f"Note: {name} is no longer the input (it was {was}); inputs.{name} still is.")
        return "\n".join(lines[:MOST_NOTES])

    def _bound(self, source: str) -> list[str]:
        """Return the inputs whose names a program binds in its own scope, in the order of the inputs."""
        named = [name for name in self._first if _may_say(source, name)]
        tree = _parsed(source) if named else None
        if tree is None:
            return []
        found = {
            each.name
            for each in bindings_in(tree)
            if each.scope in ("module", "global") and each.name in named and self._changes(each)
        }
        return [name for name in named if name in found]

    def _changes(self, binding: Binding) -> bool:
        return not binding.augmented or isinstance(self._values[binding.name], _REPLACED)


def definitions(source: str) -> str:
    """Return the imports, functions and classes of *source* without what else it did."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    kept: list[ast.stmt] = [node for node in syntax_trees.parse(source).body if isinstance(node, kinds)]
    return ast.unparse(ast.Module(body=kept, type_ignores=[]))


def awaits(source: str) -> bool:
    """Return whether *source* awaits outside of any function."""
    try:
        tree = syntax_trees.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(_suspends(node) for node in _top_level(tree))


def _suspends(node: ast.AST) -> bool:
    if isinstance(node, ast.comprehension):
        return bool(node.is_async)
    return isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _top_level(child)
