"""``df.query`` and ``df.eval`` for guest code: expressions over columns, without calls and attributes.

pandas evaluates the text itself, and looks ``@name`` up in the frames of its callers. Here a text may only
compare and compute, as pandas parses it, and uses the names that its caller has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.runtime.context import asking, frames_of
from agex.sandbox.runtime.scopes import is_bindable

__all__ = ["evaluate"]

_ALLOWED = (
    ast.Module, ast.Expr, ast.Assign, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Name, ast.Constant,
    ast.List, ast.Tuple, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def evaluate(
    real: Callable[..., Any], expr: Any, *, inplace: Any = None, engine: Any = "python", **others: Any
) -> Any:
    """Call ``query`` or ``eval`` of a table after a check of its text."""
    if type(engine) is not str or engine != "python" or others:
        raise SandboxError(f"{real.__name__}() takes the text and inplace= here; write names as @name")
    if not isinstance(expr, str):
        raise TypeError(f"expr must be a string to be evaluated, {type(expr)} given")
    text = str.__str__(expr)
    for line in text.splitlines():
        if line.strip():
            _check(line.strip(), real.__name__)
    if inplace is not None:
        others["inplace"] = inplace
    return real(text, engine=engine, local_dict=_named(text), global_dict={}, **others)


def _check(line: str, name: str) -> None:
    expressions: Any = import_module("pandas.core.computation.expr")
    # As pandas parses it: it rewrites `@name` and quoted columns first.
    written = expressions.PandasExprVisitor(None, "python", "pandas").preparser(line)
    for node in ast.walk(ast.parse(written)):
        if not isinstance(node, _ALLOWED):
            raise SandboxError(
                f"{name}() compares and computes columns, constants and @variables here, without calls and "
                "attributes; write df[df['a'].str.contains('x')] for those"
            )


def _named(text: str) -> dict[str, Any]:
    """Return the variables that a text names, from the frame of the calling guest code."""
    guards = asking()
    frame = next(frames_of(guards), None) if guards else None
    if frame is None:
        return {}
    wanted = [name for name in re.findall(r"@\s*(\w+)", text) if is_bindable(name)]
    known = {**frame.f_globals, **frame.f_locals}
    return {name: known[name] for name in wanted if name in known}
