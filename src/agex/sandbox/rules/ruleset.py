"""The part of a policy that the transformer applies, and the names of its helpers."""

from __future__ import annotations

from typing import NamedTuple

from agex.sandbox.language import annotations as hints
from agex.sandbox.language import match_patterns as patterns
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime.kill_switch import LISTS

__all__ = ["HELPERS", "Rules"]

HELPERS = (
    "stop!", "Stop!", "trip!", "caught!", "type!", "super!", "subject!", "own!", "ok!", "check!", "store!",
    "delete!", "catches!", "asked!", "value!", "dressed!", "listed!", *patterns.HELPERS, *hints.HELPERS,
)  # fmt: skip
"""Every name that the transformer adds, apart from variables of a function and ``case!N``."""


class Rules(NamedTuple):
    """The part of a policy that applies to the text of a program. Hashable: part of the cache key."""

    contested: frozenset[str] = ledger.CONTESTED
    """Attribute names whose receiver is checked."""
    only_elsewhere: frozenset[str] = frozenset()
    """Contested names that are harmless on a builtin class, and trusted there."""
    hot: frozenset[str] = frozenset()
    """Private names that host classes use from which guest classes may inherit: never trusted."""
    strict: bool = False
    """Check every receiver."""
    lists: bool = LISTS
    """List functions, which then need no stop check. Their code must not make a second function."""

    def asks_for(self, name: str) -> bool:
        """Return whether the receiver is checked when the attribute *name* is read."""
        return self.strict or name in self.contested or ledger.is_private(name)
