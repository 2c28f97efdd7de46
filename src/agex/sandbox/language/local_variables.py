"""Local variables whose bindings are known, so that a guard need not check each use.

``(v if type!(v) in own! else check!(v, n)).n`` loads ``v`` twice, and in between the set may call
``__hash__`` of a guest metaclass. So ``v`` must be a variable that this code cannot bind anew: a
local one that no nested function declares ``nonlocal``. Any other is put into a temporary first.

A variable may keep its value for a whole block: a parameter in its function, a target in its loop. Then its
type is checked once, at the start of the block::

    own!?p = type!(p) in own!
    (p if own!?p else store!(p, 'x')).x = 1

The ``self`` of a method is nearly always a guest object. Accesses to it use a variable that is checked at
the start::

    own!self = self if type!(self) in own! else asked!(self)
    own!self.x = 1

where ``asked!`` returns an object that checks each access and forwards it
(see :mod:`agex.sandbox.guards.receivers`).

The type of an object does not change: guest code cannot assign ``__class__``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from agex.sandbox.language import nodes

__all__ = ["Locals", "target_names"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor
_Use = tuple[ast.Attribute, ast.Name, nodes.Look]
"""An attribute, the variable that is its receiver, and the check of that."""


class _Block:
    """The body of a loop, at whose start a target has its value."""

    def __init__(self, loop: _Loop, around: _Block | None) -> None:
        self.loop = loop
        self.around = around
        self.keeps = True
        """Whether nothing in it binds the variable anew."""


class Locals:
    """The variables of one function, as far as it has been walked, and the guards that rest on them.

    A variable goes by the name that CPython gives it: in a class ``C``, ``__v`` and ``_C__v`` are one.

    Args:
        parameters: the names of the parameters.
        owner: the function; None for a lambda, whose body has no place for a statement.
        in_class: whether it is defined in the body of a class.
    """

    def __init__(self, parameters: list[str], owner: _Function | None, *, in_class: bool) -> None:
        self._parameters = parameters
        self._owner = owner
        self._in_class = in_class
        self._bound: set[str] = set()
        self._shared: set[str] = set()
        self._guards: list[tuple[_Use, str, _Block | None]] = []
        self._blocks: dict[str, _Block | None] = {}

    def bind(self, name: str) -> None:
        """Note a name that the function binds in its body."""
        self._bound.add(name)
        block = self._blocks.get(name)
        while block is not None:
            block.keeps = False
            block = block.around

    def share(self, names: Iterable[str]) -> None:
        """Note names that belong to another scope, or that a nested function binds."""
        self._shared.update(names)

    def enter(self, loop: _Loop, targets: list[str]) -> None:
        """Enter the body of a loop, at whose start its targets have their values."""
        for name in targets:
            self._blocks[name] = _Block(loop, self._blocks.get(name))

    def leave(self, targets: list[str]) -> None:
        """Leave the body of a loop."""
        for name in targets:
            block = self._blocks[name]
            self._blocks[name] = None if block is None else block.around

    def rest(self, node: ast.Attribute, receiver: ast.Name, asks: nodes.Look, name: str) -> None:
        """Note an attribute whose receiver, a variable of that name, is to be guarded."""
        self._guards.append(((node, receiver, asks), name, self._blocks.get(name)))

    def settle(self) -> None:
        """Guard the attributes noted. The whole function has been walked."""
        alike: dict[tuple[str, str, _Block | None], list[_Use]] = {}
        for use, name, block in self._guards:
            node, receiver, asks = use
            if name in self._shared or not (name in self._bound or name in self._parameters):
                node.value = nodes.look_once(receiver, node, asks)
            elif (self._owner is not None and name not in self._bound) or (block is not None and block.keeps):
                alike.setdefault((asks.trusted, name, block), []).append(use)
            else:
                node.value = nodes.look(receiver, node, asks)
        for (trusted, name, block), uses in alike.items():
            if len(uses) == 1:
                node, receiver, asks = uses[0]
                node.value = nodes.look(receiver, node, asks)
            else:
                self._look_ahead(trusted, name, block, uses)

    def _look_ahead(self, trusted: str, name: str, block: _Block | None, uses: list[_Use]) -> None:
        """Guard the uses of a variable that keeps its value by one check at the start of the block."""
        owner = self._owner if block is None else block.loop
        assert owner is not None
        first = owner.body[0]
        if block is None and self._in_class and name == self._parameters[0] and _is_method(owner):
            ahead: ast.stmt = nodes.take(first, trusted, name, trusted + name)
            for _, receiver, _ in uses:
                receiver.id = trusted + name
        else:
            known = nodes.shared(f"{trusted}?{name}")
            ahead = nodes.look_ahead(first, trusted, name, known.id)
            for node, receiver, asks in uses:
                node.value = nodes.know(known, receiver, node, asks)
        # Behind the stop check of a loop; that of a function, if it has one, comes ahead of this.
        owner.body.insert(1 if block is not None or nodes.is_docstring(first) else 0, ahead)


def _is_method(owner: _Function | _Loop) -> bool:
    """Return whether the first parameter of a function is, by its decorators, an object of the class."""
    return (
        isinstance(owner, _Function)
        and owner.name not in {"__new__", "__init_subclass__", "__class_getitem__"}
        and not any(isinstance(each, ast.Name) and each.id in _NO_METHODS for each in owner.decorator_list)
    )


_NO_METHODS = frozenset({"classmethod", "staticmethod"})


def target_names(target: ast.expr) -> Iterable[str]:
    """Yield the names that a target binds."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from target_names(each)
