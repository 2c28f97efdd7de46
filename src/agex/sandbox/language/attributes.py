"""The attributes of a program: allowed by name, or with a guard around the receiver.

Augmented assignments stand here too. ``x.n += 1`` reads what it binds, so the receiver is checked for both.
The value that is read reaches guest code: ``__radd__`` of the right side receives it. A receiver whose class
guest code did not make is put behind an object that checks each access (`agex.sandbox.guards.receivers`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from agex.sandbox.language import nodes
from agex.sandbox.language.format_fields import is_plain_format
from agex.sandbox.language.traversal import LOADED
from agex.sandbox.rules import names as ledger

if TYPE_CHECKING:
    from agex.sandbox.language.transformer import Transformer

__all__ = ["visit", "visit_augmented"]

_BOTH = ast.Store()
"""The context of an attribute that is read and bound. The compiler takes it for one that is bound."""


def visit_augmented(transformer: Transformer, node: ast.AugAssign) -> ast.AugAssign:
    """Allow; an attribute is read as well."""
    node.target.ctx = _BOTH
    node.target = transformer.expr(node.target)
    node.value = transformer.expr(node.value)
    return node


def visit(transformer: Transformer, node: ast.Attribute) -> ast.Attribute:
    """Allow by name; guard the receiver where the name is contested."""
    receiver, name = node.value, node.attr
    if type(receiver) is not ast.Name or receiver.id not in transformer.known:
        node.value = transformer.expr(receiver)
    if name not in transformer.open:
        if _is_open(transformer, name):
            transformer.open.add(name)
        elif ledger.is_denied(name):
            transformer.refuse(
                node, f"attribute '{name}' is not accessible", "use the object's public methods"
            )
    if node.ctx is not LOADED and not isinstance(node.ctx, ast.Load):
        _store(transformer, node)
    elif name not in transformer.open:
        _load(transformer, node, receiver)
    return node


def _is_open(transformer: Transformer, name: str) -> bool:
    """Return whether *name* may be read of any object, and storing it needs no more than the usual guard."""
    rules = transformer.rules
    special = name[0] == "_" or name in rules.contested or name in rules.hot or name in ledger.DENIED
    return not (special or rules.strict)


def _load(transformer: Transformer, node: ast.Attribute, receiver: ast.expr) -> None:
    name, rules = node.attr, transformer.rules
    if ledger.is_private(name):
        mangled = transformer.mangle(name)
        if name in rules.hot or mangled in rules.hot:
            node.value = nodes.call("check!", node, node.value, nodes.text(mangled, node))
        else:
            node.value = _guard(transformer, "own!", "check!", node, mangled)
    elif name in rules.contested:
        if name == "format" and isinstance(receiver, ast.Constant) and is_plain_format(receiver.value):
            return
        if name not in ledger.INHERITED:
            trusted = "ok!" if name in rules.only_elsewhere else "own!"
            node.value = _guard(transformer, trusted, "check!", node, name)
            if name == "__init__" and nodes.is_super(receiver) and isinstance(node.value, ast.IfExp):
                nodes.trust_super(node.value)
        else:
            node.value = nodes.call("check!", node, node.value, nodes.text(name, node))
    elif rules.strict:
        node.value = _guard(transformer, "ok!", "check!", node, name)


def _store(transformer: Transformer, node: ast.Attribute) -> None:
    name = node.attr
    check = "store!" if isinstance(node.ctx, ast.Store) else "delete!"
    if name in transformer.open:
        node.value = _guard(transformer, "own!", check, node, name)
        return
    if ledger.is_dunder(name) and name not in ledger.STORABLE:
        transformer.refuse(node, f"attribute '{name}' cannot be changed", "define it in the class body")
    mangled, is_asked = transformer.mangle(name), ledger.is_dunder(name)
    if node.ctx is _BOTH:
        check, is_asked = "asked!", name in ledger.INHERITED or is_asked
    if name in transformer.rules.hot or mangled in transformer.rules.hot or is_asked:
        node.value = nodes.call(check, node, node.value, nodes.text(mangled, node))
    else:
        node.value = _guard(transformer, "own!", check, node, mangled)


def _guard(transformer: Transformer, trusted: str, check: str, node: ast.Attribute, name: str) -> ast.expr:
    """Return the guarded receiver of *node*: ``(r if type!(r) in trusted else check(r, name))``.

    A receiver that is a variable is guarded at the end of its function, when its bindings are known.
    """
    receiver, here = node.value, transformer.locals
    steady = transformer.bare and isinstance(receiver, ast.Name) and receiver.id in transformer.targets
    if not steady and (transformer.bare or here is None or not transformer.is_function):
        return nodes.call(check, node, receiver, nodes.text(name, node))  # no temporary may live here
    asks = nodes.Look(trusted, check, name)
    if steady or here is None:
        return nodes.look(receiver, node, asks)
    if isinstance(receiver, ast.Name):
        here.rest(node, receiver, asks, transformer.mangle(receiver.id))
        return receiver
    return nodes.look_once(receiver, node, asks)
