"""What a guard may know of a local variable, so that it need not look at each use.

``(v if type!(v) in own! else check!(v, n)).n`` loads ``v`` twice, and between the two a set may ask
a metaclass of the guest for a hash. So ``v`` must be a variable that this code cannot bind anew: a
local one that no nested function declares ``nonlocal``. Any other is put into a temporary first.

Where a variable keeps its value for a whole block, a parameter in its function or a target in its
loop, the type is looked at once, at the start of the block::

    own!self = type!(self) in own!
    (self if own!self else store!(self, 'x')).x = 1

An object's type stays what it is: guest code cannot assign ``__class__``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from agex.sandbox import nodes

__all__ = ["Locals", "target_names"]

Owner = ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.AsyncFor


class _Guard(NamedTuple):
    node: ast.IfExp
    trusted: str
    name: str
    block: _Block | None


class _Block:
    """A stretch of code at whose start a variable has its value."""

    def __init__(self, owner: Owner, around: _Block | None) -> None:
        self.owner = owner
        self.around = around
        self.keeps = True
        """Whether nothing in it binds the variable anew."""


class Locals:
    """The variables of one function, as far as they are seen, and the guards that rest on them.

    A variable goes by the name that CPython gives it: in a class ``C``, ``__v`` and ``_C__v`` are one.

    Args:
        parameters: their names.
        owner: the function; None for a lambda, whose body has no place for a statement.
    """

    def __init__(
        self, parameters: Iterable[str], owner: ast.FunctionDef | ast.AsyncFunctionDef | None
    ) -> None:
        self._bound = set(parameters)
        self._shared: set[str] = set()
        self._guards: list[_Guard] = []
        self._blocks: dict[str, _Block | None] = {}
        if owner is not None:
            self._blocks.update((name, _Block(owner, None)) for name in self._bound)

    def bind(self, name: str) -> None:
        """Note a name that the function binds."""
        self._bound.add(name)
        block = self._blocks.get(name)
        while block is not None:
            block.keeps = False
            block = block.around

    def share(self, names: Iterable[str]) -> None:
        """Note names that are not the function's own, or that a function in it binds."""
        self._shared.update(names)

    def enter(self, loop: ast.For | ast.AsyncFor, targets: list[str]) -> None:
        """Enter the body of a loop, at whose start its targets have their values."""
        for name in targets:
            self._blocks[name] = _Block(loop, self._blocks.get(name))

    def leave(self, targets: list[str]) -> None:
        """Leave the body of a loop."""
        for name in targets:
            block = self._blocks[name]
            self._blocks[name] = None if block is None else block.around

    def rest(self, guard: ast.IfExp, trusted: str, name: str) -> None:
        """Note a guard, without its test yet, that looks at a name."""
        self._guards.append(_Guard(guard, trusted, name, self._blocks.get(name)))

    def settle(self) -> None:
        """Give each guard its test. The whole function has been seen."""
        alike: dict[tuple[str, str, _Block], list[ast.IfExp]] = {}
        for node, trusted, name, block in self._guards:
            if name not in self._bound or name in self._shared:
                nodes.look_once(node, trusted)
            elif block is None or not block.keeps:
                nodes.look(node, trusted)
            else:
                alike.setdefault((trusted, name, block), []).append(node)
        for (trusted, name, block), guards in alike.items():
            if len(guards) == 1:
                nodes.look(guards[0], trusted)
            else:
                body = block.owner.body
                # behind the docstring and the stop check
                body.insert(2 if nodes.is_docstring(body[0]) else 1, nodes.look_ahead(body[0], trusted, name))
                known = nodes.shared(trusted + name)
                for guard in guards:
                    guard.test = known


def target_names(target: ast.expr) -> Iterable[str]:
    """Give the names that a target binds by itself."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from target_names(each)
