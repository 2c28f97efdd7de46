"""What a policy means for the text of a program, and the names that guarded text has more than its source."""

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
"""Every name the rewriting adds, apart from variables of a function and ``case!N``."""


class Rules(NamedTuple):
    """What a policy means for the text of a program. Hashable: part of the cache key."""

    contested: frozenset[str] = ledger.CONTESTED
    """Names whose receiver is checked."""
    only_elsewhere: frozenset[str] = frozenset()
    """Those that are harmless on a builtin class, and taken on trust there."""
    hot: frozenset[str] = frozenset()
    """Private names that host classes use, which a guest may inherit from: never taken on trust."""
    strict: bool = False
    """Check every receiver."""
    lists: bool = LISTS
    """List functions in place of giving them a stop check: none may be made of their code a second time."""

    def asks_for(self, name: str) -> bool:
        """Tell whether the receiver of an attribute that is read is looked at."""
        return self.strict or name in self.contested or ledger.is_private(name)
