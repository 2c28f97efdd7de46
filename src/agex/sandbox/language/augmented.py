"""Augmented assignments: ``x.n += 1`` reads what it binds, so the receiver is asked about both.

The value that is read reaches the guest: ``__radd__`` of the right side is given it. A receiver that is
not known to be the guest's own is put behind an object that asks at each access
(`agex.sandbox.guards.receivers`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agex.sandbox.language.transformer import Rewriter

__all__ = ["BOTH", "assign"]

BOTH = ast.Store()
"""The context of an attribute that is read and bound. The compiler takes it for one that is bound."""


def assign(rewriter: Rewriter, node: ast.AugAssign) -> ast.AugAssign:
    """Allow; an attribute is read as well."""
    node.target.ctx = BOTH
    node.target = rewriter.expr(node.target)
    node.value = rewriter.expr(node.value)
    return node
