"""States: an agent's variables, its ``cache``, its files and its events, kept between tasks.

``Live`` is in memory, ``Versioned`` in a store, with a history. This room knows nothing of agents and never
runs guest code.

In order: `base`, the interface of every state; `live`; `versioned` with `repository` and `snapshot`; `tables`
for pages; `working`, the variables on top of a commit; `commits`, the form of commits; their stores `disk`,
`kv`, `redis` and `postgres`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agex.state.base import State
from agex.state.live import Live

if TYPE_CHECKING:
    from agex.state.commits.history import Commit, Diff, History
    from agex.state.disk.disk import Disk
    from agex.state.kv.cache import Cache
    from agex.state.kv.memory import Memory
    from agex.state.kv.store import KVStore
    from agex.state.versioned import Snapshot, Versioned

__all__ = [
    "Cache",
    "Commit",
    "Diff",
    "Disk",
    "History",
    "KVStore",
    "Live",
    "Memory",
    "Snapshot",
    "State",
    "Versioned",
]

# Most programs need a live state only, or none: SQLite and the codecs are imported with what needs them.
_HOMES = {
    "Cache": "kv.cache",
    "Commit": "commits.history",
    "Diff": "commits.history",
    "Disk": "disk.disk",
    "History": "commits.history",
    "KVStore": "kv.store",
    "Memory": "kv.memory",
    "Snapshot": "versioned",
    "Versioned": "versioned",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agex.state' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"agex.state.{_HOMES[name]}"), name)
    return value
