"""The part of a policy that the transformer applies, and the names of its helpers."""

from __future__ import annotations

from typing import NamedTuple

from agex._interpreter import threads
from agex.sandbox.rules import names as ledger

__all__ = ["HELPERS", "LISTS", "Rules"]

LISTS = threads.CAN_START
"""Whether functions are listed. In a browser tab the stop checks look at the clock."""

HELPERS = (
    "stop!", "Stop!", "trip!", "caught!", "type!", "super!", "subject!", "own!", "ok!", "check!", "store!",
    "delete!", "catches!", "asked!", "value!", "dressed!", "listed!", "pattern!", "late!", "named!", "path!",
    "noted!",
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
