"""Which receivers a guard may look at twice: local variables that only their own function binds.

``(v if type!(v) in own! else check!(v, n)).n`` loads ``v`` twice, and between the two a set may ask
a metaclass of the guest for a hash. So ``v`` must be a variable that this code cannot bind anew: a
local one that no nested function declares ``nonlocal``. Any other is put into a temporary first.
"""

from __future__ import annotations

import ast

from agex.sandbox import nodes

__all__ = ["STORE", "Locals"]

STORE = ast.parse("_ = 0").body[0].targets[0].ctx  # type: ignore[attr-defined]
"""The context of every name that a parsed program binds: the parser has but one."""


class Locals:
    """The variables of one function, as far as they are seen, and the guards that rest on them."""

    def __init__(self, args: ast.arguments) -> None:
        given = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
        self._bound = {arg.arg for arg in given if arg is not None}
        self._shared: set[str] = set()
        self._guards: list[tuple[ast.IfExp, str]] = []

    def bind(self, name: str) -> None:
        """Note a name that the function binds."""
        self._bound.add(name)

    def share(self, names: list[str]) -> None:
        """Note names that are not the function's own, or that a function in it binds."""
        self._shared.update(names)

    def rest(self, guard: ast.IfExp, name: str) -> None:
        """Note a guard that looks at a name twice."""
        self._guards.append((guard, name))

    def settle(self) -> None:
        """Let guards on names that others can bind look once. The whole function has been seen."""
        for guard, name in self._guards:
            if name not in self._bound or name in self._shared:
                nodes.look_once(guard)
