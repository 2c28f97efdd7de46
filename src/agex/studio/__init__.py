"""A page that shows what agents did: the history in a store, and in a browser tab a live agent.

It describes states as plain JSON and serves that, with the page, on loopback. It never runs an
agent, never prints, and writes nothing but branches that somebody forks.
"""

from __future__ import annotations

from agex.studio.api import Api, NotHere, Refused
from agex.studio.steps import steps

__all__ = ["Api", "NotHere", "Refused", "steps"]
