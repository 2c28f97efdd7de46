"""The pieces of tree that guarding adds, each at the position of the node it stands for."""

from __future__ import annotations

import ast
import functools
from typing import Any, TypeVar

__all__ = [
    "LOAD",
    "at",
    "call",
    "guard",
    "is_docstring",
    "is_future",
    "is_narrow",
    "is_super",
    "look",
    "look_ahead",
    "look_once",
    "no_arguments",
    "prelude_length",
    "shared",
    "stop_check",
    "text",
    "trust_super",
]

N = TypeVar("N", bound=ast.AST)

LOAD = ast.Load()
_STORE = ast.Store()
_IN = ast.In()


def at(node: Any) -> Any:
    """Give the position of *node*, as keyword arguments of a node that takes its place."""
    return {
        "lineno": node.lineno,
        "col_offset": node.col_offset,
        "end_lineno": node.end_lineno,
        "end_col_offset": node.end_col_offset,
    }


def _put(node: N, here: dict[str, int]) -> N:
    """Give a new node a position; as keyword arguments it would take a third longer."""
    node.__dict__.update(here)
    return node


def shared(name: str) -> ast.Name:
    """Build the load of a helper. It cannot fail, so it needs no line: one node serves many places."""
    return ast.Name(name, LOAD, lineno=-1, col_offset=-1, end_lineno=-1, end_col_offset=-1)


_helper = functools.cache(shared)


def text(value: str, node: Any) -> ast.Constant:
    """Build a string constant."""
    return ast.Constant(value, **at(node))


def call(helper: str, node: Any, *args: ast.expr) -> ast.Call:
    """Build a call of a helper."""
    here = at(node)
    return _put(ast.Call(_helper(helper), list(args), []), here)


def no_arguments() -> ast.arguments:
    """Build the signature of a function that takes nothing."""
    return ast.arguments([], [], None, [], [], None, [])


def stop_check(node: Any) -> ast.stmt:
    """Build ``if stop!: raise Stop!`` at the position of *node*."""
    here = at(node)
    return _put(ast.If(_helper("stop!"), [_put(ast.Raise(_helper("Stop!")), here)], []), here)


def guard(node: Any, receiver: ast.expr, check: str, name: str) -> ast.IfExp:
    """Build ``(r if ... else check(r, name))`` at the position of *node*; the test is still to come."""
    here = at(node)
    asked = ast.Call(_helper(check), [receiver, _put(ast.Constant(name), here)], [])
    return _put(ast.IfExp(None, receiver, _put(asked, here)), here)  # type: ignore[arg-type]


def look(guard: ast.IfExp, trusted: str) -> None:
    """Let a guard look at the type of its receiver: ``type!(r) in trusted``."""
    guard.test = _is_trusted(guard.body, trusted, at(guard))


def look_once(guard: ast.IfExp, trusted: str) -> None:
    """Let a guard look likewise, and keep its receiver in the temporary ``tmp!`` of the function."""
    here = at(guard)
    receiver, kept = guard.body, _put(ast.Name("tmp!", LOAD), here)
    guard.test = _is_trusted(
        _put(ast.NamedExpr(_put(ast.Name("tmp!", _STORE), here), receiver), here), trusted, here
    )
    guard.body = guard.orelse.args[0] = kept  # type: ignore[attr-defined]


def look_ahead(node: ast.stmt, trusted: str, name: str) -> ast.stmt:
    """Build ``trusted+name = type!(name) in trusted`` at the position of *node*."""
    here = at(node)
    test = _is_trusted(_put(ast.Name(name, LOAD), here), trusted, here)
    return _put(ast.Assign([_put(ast.Name(trusted + name, _STORE), here)], test), here)


def _is_trusted(receiver: ast.expr, trusted: str, here: dict[str, int]) -> ast.expr:
    kind = _put(ast.Call(_helper("type!"), [receiver], []), here)
    return _put(ast.Compare(kind, [_IN], [_helper(trusted)]), here)


def is_narrow(node: ast.ExceptHandler) -> bool:
    """Tell whether a handler reads as one that nothing reaches which is to be looked at first.

    That is an interrupt of the host; and where the error gets a name, that of a module which lacks
    a member here. A name given to BaseException could pass: what stops guest code is the flag, not
    the exception.
    """
    return _is_narrow(node.type, _WIDE if node.name is None else _WIDE_AND_NAMED)


def _is_narrow(node: ast.expr | None, wide: frozenset[str]) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_is_narrow(each, wide) for each in node.elts)
    if isinstance(node, ast.Attribute):
        return node.attr[0].isupper() and node.attr not in wide
    return isinstance(node, ast.Name) and node.id[0].isupper() and node.id not in wide


_WIDE = frozenset({"BaseException", "BaseExceptionGroup", "KeyboardInterrupt"})
"""The classes that would catch the host's KeyboardInterrupt, by the names they have."""
_WIDE_AND_NAMED = _WIDE | {"AttributeError", "Exception"}
"""Those that would catch a module's AttributeError as well."""


def is_super(node: ast.expr) -> bool:
    """Tell whether an expression reads ``super()``: what ``super`` is then is seen when it runs."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def trust_super(guard: ast.IfExp) -> None:
    """Let a guard pass a super object, which may always be asked for ``__init__``."""
    test = guard.test
    assert isinstance(test, ast.Compare)
    test.ops, test.comparators = [ast.Is()], [ast.Name("super!", LOAD, **at(guard))]


def is_docstring(node: ast.stmt) -> bool:
    """Tell whether a statement is a string by itself."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_future(node: ast.stmt, feature: str) -> bool:
    """Tell whether a statement imports *feature* from ``__future__``."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == feature for alias in node.names)
    )


def prelude_length(body: list[ast.stmt]) -> int:
    """Count the statements that must stay first: the docstring and the future imports."""
    count = 1 if body and is_docstring(body[0]) else 0
    while count < len(body):
        node = body[count]
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        count += 1
    return count
