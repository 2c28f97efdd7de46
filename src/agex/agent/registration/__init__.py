"""Records of what an agent's code may use: one for each registered thing, with the settings of its access.

This room only describes. It never runs a target, never builds a policy (``execution.grants``) and never
writes a prompt (``prompt.listing``). In order: `access`, the settings; `marks` of what acts on the
world; `registration`, the record.
"""

from __future__ import annotations

from agex.agent.registration.access import Access, Pattern, Visibility
from agex.agent.registration.keywords import checks_keywords, require_known
from agex.agent.registration.marks import Mark, acting_members, mark_of
from agex.agent.registration.registration import TAKEN, Kind, Registration, add, is_async

__all__ = [
    "TAKEN",
    "Access",
    "Kind",
    "Mark",
    "Pattern",
    "Registration",
    "Visibility",
    "acting_members",
    "add",
    "checks_keywords",
    "is_async",
    "mark_of",
    "require_known",
]
