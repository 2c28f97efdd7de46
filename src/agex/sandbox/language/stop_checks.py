"""The stop checks of loops, comprehensions, handlers and ``with`` statements.

A run ends at its next stop check, ``if stop!: raise Stop!``. One stands wherever guest code could go on
for ever, or could swallow the exception that ends it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from agex.sandbox.language import nodes
from agex.sandbox.language.local_variables import target_names

if TYPE_CHECKING:
    from agex.sandbox.language.transformer import Transformer

__all__ = ["visit_comprehension", "visit_for", "visit_try", "visit_while", "visit_with"]


def visit_while(transformer: Transformer, node: ast.While) -> ast.While:
    """Allow, with a stop check at the head of the body."""
    node.test = transformer.expr(node.test)
    node.body = [nodes.stop_check(node), *transformer.statements(node.body)]
    node.orelse = transformer.statements(node.orelse)
    return node


def visit_for(transformer: Transformer, node: ast.For | ast.AsyncFor) -> ast.For | ast.AsyncFor:
    """Allow, with a stop check at the head of the body."""
    node.iter = transformer.expr(node.iter)
    node.target = transformer.expr(node.target)
    targets = list(map(transformer.mangle, target_names(node.target)))
    if transformer.locals:
        transformer.locals.enter(node, targets)
    node.body = [nodes.stop_check(node), *transformer.statements(node.body)]
    if transformer.locals:
        transformer.locals.leave(targets)
    node.orelse = transformer.statements(node.orelse)
    return node


def visit_with(transformer: Transformer, node: ast.With | ast.AsyncWith) -> Any:
    """Allow; a stop check follows (see `Transformer.statements`)."""
    transformer.children(node.items)
    node.body = transformer.statements(node.body)
    return node


def visit_try(transformer: Transformer, node: Any) -> Any:
    """Allow, with stop checks where an exception could be swallowed."""
    node.body = transformer.statements(node.body)
    for handler in node.handlers:
        _handler(transformer, handler)
    node.orelse = transformer.statements(node.orelse)
    if node.finalbody:
        node.finalbody = [nodes.stop_check(node), *transformer.statements(node.finalbody)]
    return node


def _handler(transformer: Transformer, node: ast.ExceptHandler) -> None:
    transformer.bind(node, node.name)
    caught = ast.Expr(nodes.call("caught!", node), **nodes.at(node))
    check = nodes.stop_check(node) if nodes.is_narrow(node) else caught
    node.type = nodes.caught(transformer.optional(node.type))
    node.body = [check, *transformer.statements(node.body)]


def visit_comprehension(transformer: Transformer, node: Any) -> Any:
    """Allow, with a stop check for each element."""
    transformer.bare += 1
    first, around = node.generators[0], transformer.targets
    first.iter = transformer.expr(first.iter)  # evaluated in the scope around it
    known, transformer.known = transformer.known, transformer.within
    transformer.targets = frozenset(name for each in node.generators for name in target_names(each.target))
    for generator in node.generators:
        if generator is not first:
            generator.iter = transformer.expr(generator.iter)
        generator.target = transformer.expr(generator.target)
        if generator.ifs:
            transformer.children(generator.ifs)
    for field in ("elt", "key", "value"):
        if hasattr(node, field):
            setattr(node, field, transformer.expr(getattr(node, field)))
    transformer.targets, transformer.known = around, known
    transformer.bare -= 1
    first.ifs.insert(0, nodes.stop_condition(node))
    return node
