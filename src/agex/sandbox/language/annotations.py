"""Annotations, evaluated where they stand also on a Python that evaluates them lazily.

From Python 3.14 on (PEP 649) an annotation is evaluated when ``__annotations__`` is read: guest code
would run in the caller's hands, after its run and outside every limit. So the transformer takes annotations
out of the tree that is compiled. The program itself evaluates them, as in earlier versions, and puts them
into ``__annotations__``:

* of a function, by a decorator below all others: ``@noted!(("a", "int", lambda: int), ...)``
* of a class or module, by statements behind the name: ``__annotations__['a'] = int``

An annotation that names something undefined, which 3.14 allows, becomes its text: a forward reference.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex.sandbox.language import nodes

if TYPE_CHECKING:
    from agex.sandbox.language.transformer import Transformer

__all__ = ["ARE_LATE", "Note", "annotated", "are_taken", "decorate", "noted", "start", "take"]

ARE_LATE = sys.version_info >= (3, 14)
"""Whether the interpreter evaluates annotations lazily."""


Note = tuple[str, str, Callable[[], Any]]
"""A name, the text of its annotation, and the function that evaluates it."""

_LATER = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
"""Nodes that no annotation may hold: a lambda around them would change their meaning."""


def noted(*notes: Note) -> Callable[[Any], Any]:
    """Return the decorator that sets the annotations of a function, evaluated now."""
    found = {name: _evaluated(text, evaluate) for name, text, evaluate in notes}

    def decorate(function: Any) -> Any:
        function.__annotations__ = found
        return function

    return decorate


def _evaluated(text: str, evaluate: Callable[[], Any]) -> Any:
    try:
        return evaluate()
    except NameError:
        return text


def are_taken(transformer: Transformer) -> bool:
    """Return whether the program evaluates its annotations itself; those that stay text need nothing."""
    return ARE_LATE and not transformer.texts


def take(transformer: Transformer, name: str, node: ast.expr) -> ast.Tuple:
    """Transform an annotation of a function, and build its note."""
    text = _text(transformer, node)
    value = transformer.annotation(node)
    assert value is not None
    here = nodes.at(node)
    if isinstance(value, ast.Starred):  # *args: *Ts is the one element of the unpacked tuple (PEP 646)
        whole = ast.Tuple([value], nodes.LOAD, **here)
        value = ast.Subscript(whole, ast.Constant(0, **here), nodes.LOAD, **here)
    thunk = ast.Lambda(nodes.no_arguments(), value, **here)
    return ast.Tuple([nodes.text(name, node), nodes.text(text, node), thunk], nodes.LOAD, **here)


def decorate(node: ast.FunctionDef | ast.AsyncFunctionDef, notes: list[ast.expr]) -> None:
    """Set the annotations of a function before any decorator sees it."""
    if notes:
        node.decorator_list.append(nodes.call("noted!", node, *notes))


def annotated(transformer: Transformer, node: ast.AnnAssign) -> list[ast.stmt]:
    """Return the statements for an annotated name of a class or a module: the assignment, then the note."""
    node.target = transformer.expr(node.target)
    node.value = transformer.optional(node.value)
    transformer.notes = transformer.notes or bool(node.simple)
    text = _text(transformer, node.annotation)
    value = transformer.annotation(node.annotation)
    out: list[ast.stmt] = []
    here = nodes.at(node)
    if node.value is not None:
        out.append(ast.Assign([node.target], node.value, **here))
    if isinstance(node.target, ast.Name) and node.simple:
        name = transformer.mangle(node.target.id)
        assert value is not None
        handler = ast.ExceptHandler(
            ast.Name("NameError", nodes.LOAD, **here), None, [_put(name, nodes.text(text, node))], **here
        )
        out.append(ast.Try([_put(name, value)], [handler], [], [], **here))
    return out or [ast.Pass(**here)]


def start(node: ast.stmt) -> ast.stmt:
    """Build ``__annotations__ = {}``, for the head of a class or module with annotations."""
    here = nodes.at(node)
    return ast.Assign([ast.Name("__annotations__", ast.Store(), **here)], ast.Dict([], [], **here), **here)


def _put(name: str, value: ast.expr) -> ast.stmt:
    here = nodes.at(value)
    known = ast.Name("__annotations__", nodes.LOAD, **here)
    target = ast.Subscript(known, nodes.text(name, value), ast.Store(), **here)
    return ast.Assign([target], value, **here)


def _text(transformer: Transformer, node: ast.expr) -> str:
    for part in ast.walk(node):
        if isinstance(part, _LATER):
            transformer.refuse(
                part, f"{type(part).__name__} is not allowed in an annotation", "compute it before"
            )
    return ast.unparse(node)
