"""Programs of full Python: compiled by CPython as they are, with their source kept."""

from __future__ import annotations
import __future__

import ast
import linecache
import re
import types
from collections.abc import Iterator

from agex.isolation.worker.full_code import DRESSED, CodeNotes
from agex.sandbox.runtime.scopes import defined_in

__all__ = ["Programs"]


class Programs:
    """The programs of one session.

    Attributes:
        notes: the sources of their code objects.
        sources: the lines of each program, by its file name.
        dotted: the modules that ``import a.b`` named, in order.
        defined: names that the last program binds by ``def`` or ``class`` at its top level.
    """

    def __init__(self) -> None:
        self.notes = CodeNotes()
        self.sources: dict[str, list[str]] = {}
        self.dotted: dict[str, None] = {}
        self.defined: frozenset[str] = frozenset()

    def compiled(self, source: str, filename: str, *, echo: bool, awaits: bool) -> list[types.CodeType]:
        """Compile a program; with *echo* its last expression apart, whose value is shown.

        With *awaits*, ``await`` is allowed at its top level.

        Raises:
            SyntaxError: it is not Python.
        """
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if awaits else 0
        tree: ast.Module = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        if _MAY_IMPORT_DOTTED.search(source):
            self.dotted.update(dict.fromkeys(_dotted_imports(tree)))
        last = tree.body.pop() if echo and tree.body and isinstance(tree.body[-1], ast.Expr) else None
        first = self.noted(source, filename, tree, flags)
        self.defined = frozenset(defined_in(first))
        if last is None:
            return [first]
        assert isinstance(last, ast.Expr)
        futures = first.co_flags & _FUTURES
        shown = self.noted(source, filename, ast.Expression(last.value), flags | futures)
        return [first, shown] if tree.body else [shown]

    def noted(
        self, source: str, filename: str, tree: ast.Module | ast.Expression, flags: int = 0
    ) -> types.CodeType:
        """Compile a tree; keep its source for tracebacks, for `inspect` and for the next worker."""
        for node in ast.walk(tree) if "@" in source else ():
            if isinstance(node, ast.ClassDef) and node.decorator_list:
                dressed = ast.Name(DRESSED, ast.Load())
                node.decorator_list.insert(0, ast.copy_location(dressed, node.decorator_list[0]))
        mode = "eval" if isinstance(tree, ast.Expression) else "exec"
        code: types.CodeType = compile(tree, filename, mode, flags, dont_inherit=True)
        lines = source.splitlines(keepends=True)
        self.sources[filename] = [line.rstrip("\r\n") for line in lines]
        linecache.cache[filename] = (len(source), None, lines, filename)
        self.notes.add(code, source)
        return code

    def modules_in(self, package: str) -> Iterator[str]:
        """Return the modules of a package that programs imported by their full names."""
        return (name for name in self.dotted if name.startswith(f"{package}."))


_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


_MAY_IMPORT_DOTTED = re.compile(r"\bimport\b(?:\\\r?\n|[^\n.])*\.")
"""Matches where ``a.b`` is imported, and elsewhere: a walk through a tree costs as much as a compile."""


def _dotted_imports(tree: ast.AST) -> Iterator[str]:
    """Return the names of modules that a program imports out of packages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if "." in each.name)
