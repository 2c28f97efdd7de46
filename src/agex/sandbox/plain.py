"""The kinds of node that mean no harm: only their children are looked at."""

from __future__ import annotations

import ast

__all__ = ["FIELDS"]

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
    # template strings, Python 3.14: a value object, rendered by whoever reads it
    "TemplateStr": ("values",),
    "Interpolation": ("value", "format_spec"),
}

FIELDS = {getattr(ast, name): fields for name, fields in _CHILDREN.items() if hasattr(ast, name)}
"""Node types that are allowed as they are, with the fields that hold children."""
