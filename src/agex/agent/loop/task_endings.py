"""The choice between several pieces of code that would each end the task.

Models write a draft and then its correction in one reply. Run in order, the draft would end the task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from agex.models.actions import Action, PythonAction
from agex.models.source import parse

__all__ = ["without_drafts"]


def without_drafts(
    actions: Sequence[Action], endings: Iterable[str], function: str | None
) -> tuple[Action, ...]:
    """Return *actions* without those that would end the task before another one does.

    A draft that defines what later code uses is run without its end, together with that code.

    Args:
        actions: in their order.
        endings: names of the functions that end the task.
        function: the name whose definition ends the task; None for none.
    """
    names = frozenset(endings)
    trees = [parse(one.code) if isinstance(one, PythonAction) else None for one in actions]
    ending = [
        number for number, tree in enumerate(trees) if tree is not None and _ends(tree, names, function)
    ]
    if len(ending) < 2:
        return tuple(actions)
    kept = list(actions)
    for number in reversed(ending[:-1]):
        tree = trees[number]
        assert tree is not None
        user = _first_user(tree, kept[number + 1 :])
        if user is not None:
            rest = [one for one in tree.body if not _surely(one, names)]
            earlier = ast.unparse(ast.Module(body=rest, type_ignores=[]))
            later = kept[number + 1 + user]
            assert isinstance(later, PythonAction)
            kept[number + 1 + user] = PythonAction(code=f"{earlier}\n\n{later.code}")
        del kept[number]
    return tuple(kept)


def _ends(tree: ast.Module, names: frozenset[str], function: str | None) -> bool:
    return any(_surely(one, names) or _defines(one, function) for one in tree.body)


def _defines(statement: ast.stmt, function: str | None) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == function


def _surely(statement: ast.stmt, names: frozenset[str]) -> bool:
    """Return whether a statement ends the task for all values; one that only may is a check."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names
    if isinstance(statement, ast.If):
        return all(any(_surely(one, names) for one in part) for part in (statement.body, statement.orelse))
    if isinstance(statement, ast.With | ast.Try):
        return any(_surely(one, names) for one in statement.body)
    return False


def _first_user(draft: ast.Module, later: Sequence[Action]) -> int | None:
    """Return the number of the first later piece of code that needs a name which only the draft binds."""
    bound = set(_bound(draft))
    for number, one in enumerate(later):
        tree = parse(one.code) if isinstance(one, PythonAction) else None
        if tree is None:
            continue
        read = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        own = set(_bound(tree))
        if bound & (read - own):
            return number
        bound -= own
    return None


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((one.asname or one.name).partition(".")[0] for one in node.names)
