"""The walk through nodes that are allowed as they are, whose children alone are transformed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.language.transformer import Transformer

__all__ = ["LOADED", "visits"]

LOADED = ast.parse("_").body[0].value.ctx  # type: ignore[attr-defined]
"""The context of every name that a parsed program reads: the parser has only one."""

_CHILDREN: dict[str, tuple[str, ...]] = {
    # statements
    "Return": ("value",),
    "Assign": ("targets", "value"),
    "Delete": ("targets",),
    "Raise": ("exc", "cause"),
    "Assert": ("test", "msg"),
    "Expr": ("value",),
    "Pass": (),
    "Break": (),
    "Continue": (),
    # expressions
    "BoolOp": ("values",),
    "UnaryOp": ("operand",),
    "IfExp": ("test", "body", "orelse"),
    "Dict": ("keys", "values"),
    "Set": ("elts",),
    "Await": ("value",),
    "Yield": ("value",),
    "YieldFrom": ("value",),
    "Compare": ("left", "comparators"),
    "Call": ("func", "args", "keywords"),
    "keyword": ("value",),
    "FormattedValue": ("value", "format_spec"),
    "JoinedStr": ("values",),
    "Constant": (),
    "Subscript": ("value", "slice"),
    "Starred": ("value",),
    "List": ("elts",),
    "Tuple": ("elts",),
    "Slice": ("lower", "upper", "step"),
    "withitem": ("context_expr", "optional_vars"),
    # patterns
    "MatchValue": ("value",),
    "MatchSingleton": (),
    "MatchSequence": ("patterns",),
    "MatchOr": ("patterns",),
    # template strings, Python 3.14: a value object that nothing renders by itself
    "TemplateStr": ("values",),
    "Interpolation": ("value", "format_spec"),
}

_Visit = Callable[["Transformer", Any], Any]


def visits(of_all: dict[type, _Visit]) -> dict[type, _Visit]:
    """Return the functions that walk the nodes that are allowed as they are, by type of node.

    Args:
        of_all: the visits of nodes of any type; may be filled afterwards.
    """
    found = {name: fields for name, fields in _CHILDREN.items() if hasattr(ast, name)}
    return {getattr(ast, name): _walking(fields, of_all) for name, fields in found.items()}


def _walking(fields: tuple[str, ...], of_all: dict[type, _Visit]) -> _Visit:
    # Most of a program is walked here: no call for a name that is known or a constant.
    name, constant, loaded = ast.Name, ast.Constant, LOADED

    def walk(transformer: Transformer, node: Any) -> Any:
        said, known = node.__dict__, transformer.known
        for field in fields:
            child = said.get(field)
            kind = type(child)
            if kind is name:
                if child.id not in known or child.ctx is not loaded:
                    transformer.name(child)
            elif kind is list:
                if child:
                    transformer.children(child)
            elif kind is not constant and child is not None:
                visit = of_all.get(kind)
                said[field] = (
                    visit(transformer, child) if visit else transformer.expr(child)
                )  # which refuses it
        return node

    return walk
