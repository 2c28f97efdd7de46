"""Annotations that are evaluated where they stand, on a Python that would put it off.

From Python 3.14 on (PEP 649) an annotation is evaluated when somebody asks for it: code of the guest
would run in the hands of whoever asks, after its run and outside every limit. So annotations are taken
off what the interpreter compiles, evaluated as earlier versions do, and put into ``__annotations__``
by the program itself:

* of a function, by a decorator below all others: ``@noted!(("a", "int", lambda: int), ...)``
* of a class or module, by statements behind the name: ``__annotations__['a'] = int``

One that names what is not there yet, which 3.14 allows, is kept as its text: a forward reference.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex.sandbox.language import nodes

if TYPE_CHECKING:
    from agex.sandbox.language.transformer import Rewriter

__all__ = ["ARE_LATE", "Note", "annotated", "are_taken", "decorate", "noted", "start", "take"]

ARE_LATE = sys.version_info >= (3, 14)
"""Whether the interpreter puts annotations off."""


Note = tuple[str, str, Callable[[], Any]]
"""A name, the text of its annotation, and what evaluates it."""

_LATER = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
"""What no annotation may hold; a lambda around it would make it mean something else."""


def noted(*notes: Note) -> Callable[[Any], Any]:
    """Return the decorator that gives a function its annotations, which are evaluated now."""
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


def are_taken(rewriter: Rewriter) -> bool:
    """Tell whether the program evaluates its annotations itself: those that stay text are as ever."""
    return ARE_LATE and not rewriter.texts


def take(rewriter: Rewriter, name: str, node: ast.expr) -> ast.Tuple:
    """Rewrite an annotation of a function, and build its note."""
    text = _text(rewriter, node)
    value = rewriter.annotation(node)
    assert value is not None
    here = nodes.at(node)
    if isinstance(value, ast.Starred):  # *args: *Ts is the one element of what is unpacked (PEP 646)
        whole = ast.Tuple([value], nodes.LOAD, **here)
        value = ast.Subscript(whole, ast.Constant(0, **here), nodes.LOAD, **here)
    thunk = ast.Lambda(nodes.no_arguments(), value, **here)
    return ast.Tuple([nodes.text(name, node), nodes.text(text, node), thunk], nodes.LOAD, **here)


def decorate(node: ast.FunctionDef | ast.AsyncFunctionDef, notes: list[ast.expr]) -> None:
    """Have a function be given its annotations before any decorator sees it."""
    if notes:
        node.decorator_list.append(nodes.call("noted!", node, *notes))


def annotated(rewriter: Rewriter, node: ast.AnnAssign) -> list[ast.stmt]:
    """Give what stands for an annotated name of a class or a module: the assignment, then the note."""
    node.target = rewriter.expr(node.target)
    node.value = rewriter.optional(node.value)
    rewriter.notes = rewriter.notes or bool(node.simple)
    text = _text(rewriter, node.annotation)
    value = rewriter.annotation(node.annotation)
    out: list[ast.stmt] = []
    here = nodes.at(node)
    if node.value is not None:
        out.append(ast.Assign([node.target], node.value, **here))
    if isinstance(node.target, ast.Name) and node.simple:
        name = rewriter.mangle(node.target.id)
        assert value is not None
        handler = ast.ExceptHandler(
            ast.Name("NameError", nodes.LOAD, **here), None, [_put(name, nodes.text(text, node))], **here
        )
        out.append(ast.Try([_put(name, value)], [handler], [], [], **here))
    return out or [ast.Pass(**here)]


def start(node: ast.stmt) -> ast.stmt:
    """Build ``__annotations__ = {}``, for the head of a class or module that has any."""
    here = nodes.at(node)
    return ast.Assign([ast.Name("__annotations__", ast.Store(), **here)], ast.Dict([], [], **here), **here)


def _put(name: str, value: ast.expr) -> ast.stmt:
    here = nodes.at(value)
    known = ast.Name("__annotations__", nodes.LOAD, **here)
    target = ast.Subscript(known, nodes.text(name, value), ast.Store(), **here)
    return ast.Assign([target], value, **here)


def _text(rewriter: Rewriter, node: ast.expr) -> str:
    for part in ast.walk(node):
        if isinstance(part, _LATER):
            rewriter.refuse(
                part, f"{type(part).__name__} is not allowed in an annotation", "compute it before"
            )
    return ast.unparse(node)
