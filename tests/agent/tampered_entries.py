"""Entries of a state as a stranger writes them: in commits whose hashes are right."""

from __future__ import annotations

import json
import time

from agex import Versioned, values
from agex.state.commits.journal import Draft


def forged(state: Versioned, key: str, payload: bytes) -> Versioned:
    """Return the state with one entry replaced, in a commit whose hashes are right."""
    journal = state.store.journal()
    head = journal.branches()["main"]
    draft = Draft(parents=(head,), changes={f"r/{key}": payload}, time=time.time(), message="forged")
    journal.commit(draft, branch="main", expect=head)
    return Versioned(state.store)


def entry(value: object) -> bytes:
    (group,) = values.encode({"entry": value}, allow=values.Allow())
    return values.cut(group, lambda chunk: b"").payload


def changed(state: Versioned, key: str, **fields: object) -> Versioned:
    """Return the state with other fields in the record."""
    record = {**json.loads(state.entry(key)["record"]), **fields}
    return forged(state, key, entry({"record": json.dumps(record)}))
