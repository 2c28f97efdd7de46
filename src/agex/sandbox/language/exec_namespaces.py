"""The dicts passed to ``exec(text, names)``, and the real globals of the code that runs in them.

Code cannot run in a dict of guest code, which could shadow a helper there. So it runs in another dict, and
the two are kept equal: when the code begins and ends to run, and from then on by the functions that it
made. Those begin with ``pull!(*names)``, which takes over assignments to the dict since, and call it again
behind each pause. Behind an assignment to a global stands ``push!(*names)``.
"""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from agex.sandbox.language.nodes import at, is_docstring, parameters
from agex.sandbox.runtime.scopes import Names, own_names, replace_names

__all__ = ["Spaces", "keep_equal", "renew", "runs_apart"]

_NOTHING = object()
_SPACES = 32
"""How many dicts are remembered, and thus kept alive."""


class _Space:
    """A dict of guest code, and the globals of the code that runs in it.

    An assignment on one side only, since the last comparison, is carried over to the other.
    """

    def __init__(self, given: dict[Any, Any]) -> None:
        self.given = given
        self.before = own_names(given)
        self.names: dict[str, Any] = {**self.before, "pull!": self.pull, "push!": self.push}

    def enter(self) -> None:
        now = own_names(self.given)
        for name, value in own_names(self.names).items():
            if now.get(name, _NOTHING) is self.before.get(name, _NOTHING) is not value:
                now[name] = value
        replace_names(self.names, now)

    def leave(self) -> None:
        self.before = own_names(self.names)
        replace_names(self.given, self.before)

    def pull(self, *wanted: str) -> None:
        """Take over assignments to the dict."""
        for name in wanted:
            now = self.given.get(name, _NOTHING)
            if now is not self.before.get(name, _NOTHING):
                _put(self.names, name, now)
                _put(self.before, name, now)

    def push(self, *assigned: str) -> None:
        """Hand over assignments to the globals."""
        for name in assigned:
            now = self.names.get(name, _NOTHING)
            _put(self.given, name, now)
            _put(self.before, name, now)


def _put(names: dict[str, Any], name: str, value: Any) -> None:
    if value is _NOTHING:
        names.pop(name, None)
    else:
        names[name] = value


class Spaces:
    """The dicts passed to ``exec``, each with globals that stay the same."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, _Space] = OrderedDict()

    def enter(self, given: dict[Any, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the globals for a dict, which also hold *fixed*."""
        space = self._known.get(id(given))
        if space is None or space.given is not given:
            space = self._known[id(given)] = _Space(given)
        else:
            space.enter()
        self._known.move_to_end(id(given))
        if len(self._known) > _SPACES:
            self._known.popitem(last=False)
        space.names.update(fixed)
        return space.names

    def leave(self, names: dict[str, Any]) -> None:
        """Carry the bindings of the globals over to the dict."""
        names["pull!"].__self__.leave()


def renew(names: Mapping[str, Any]) -> bool:
    """Take over assignments to the dict of these globals; return whether they belong to a dict."""
    if "pull!" not in names:
        return False
    names["pull!"].__self__.enter()
    return True


def runs_apart(given: Any, around: Mapping[str, Any]) -> bool:
    """Return whether code is to run in a dict of guest code, or already does in *around*."""
    return "pull!" in around if given is None or type(given) is Names else True


def keep_equal(tree: ast.Module | ast.Expression) -> None:
    """Make the functions of a program keep its globals equal to the dict that it runs in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            wanted = _wanted(node.args, node)
            if wanted:
                node.body = ast.BoolOp(
                    ast.Or(), [_call("pull!", wanted, node.body), node.body], **at(node.body)
                )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _keep_equal(node)


def _keep_equal(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    assigned = {name for node in _own(function) if isinstance(node, ast.Global) for name in node.names}
    wanted = _wanted(function.args, *function.body)
    if assigned or any(isinstance(node, _PAUSES) for node in _own(function)):
        for node in list(_own(function)):
            for block in _blocks(node):
                block[:] = [each for said in block for each in _followed(said, assigned, wanted)]
    if wanted:
        first = 1 if is_docstring(function.body[0]) else 0
        here = function.body[min(first, len(function.body) - 1)]
        function.body.insert(first, ast.Expr(_call("pull!", wanted, here), **at(here)))


def _followed(statement: ast.stmt, assigned: set[str], wanted: set[str]) -> Iterator[ast.stmt]:
    yield statement
    bound = _bound(statement) & assigned
    if bound:
        yield ast.Expr(_call("push!", bound, statement), **at(statement))
    parts = () if isinstance(statement, _DEFINITIONS) else _own(statement)
    if wanted and any(isinstance(node, _PAUSES) for node in parts):
        yield ast.Expr(_call("pull!", wanted, statement), **at(statement))


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions and classes inside of it."""
    parts = [function]  # in a loop: a chain of operators can be longer than recursion goes
    while parts:
        part = parts.pop()
        yield part
        parts += [child for child in ast.iter_child_nodes(part) if not isinstance(child, _DEFINITIONS)]


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block


def _bound(statement: ast.AST) -> set[str]:
    """Return the names that a statement may bind or delete."""
    if isinstance(statement, _DEFINITIONS):
        return set() if isinstance(statement, ast.Lambda) else {statement.name}
    found: set[str] = set()
    for node in _own(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return found


def _wanted(args: ast.arguments, *parts: ast.AST) -> set[str]:
    """Return the names that may be read as globals, without the dunders of the module."""
    own = {arg.arg for arg in parameters(args)}
    nodes = [node for part in parts for node in ast.walk(part)]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return {name for name in read - own if not name.startswith("__") and "!" not in name}


def _call(helper: str, names: set[str], node: ast.expr | ast.stmt) -> ast.Call:
    here = at(node)
    listed: list[ast.expr] = [ast.Constant(name, **here) for name in sorted(names)]
    return ast.Call(ast.Name(helper, ast.Load(), **here), listed, [], **here)


_PAUSES = (ast.Yield, ast.YieldFrom, ast.Await)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
