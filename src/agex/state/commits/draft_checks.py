"""Checks that every journal makes of a draft before it is written, and of a text that names a commit."""

from __future__ import annotations

from collections.abc import Collection

from agex.errors import StateError
from agex.state.commits.digests import addresses_in
from agex.state.commits.journal import Draft, HeadMoved

__all__ = ["Unsure", "choose", "named_chunks", "no_tag", "size"]

_SHORTEST = 6  # characters of a hash; journal.py promises them


class Unsure:
    """Moves of branches that failed in a way that leaves open whether they are stored.

    A head that a journal set without getting to know of it is no other writer's. Nobody was promised its
    commit, so that the next one takes its place.
    """

    def __init__(self) -> None:
        self._moves: dict[str, tuple[str | None, str | None]] = {}

    def require_head(self, branch: str, head: str | None, expect: str | None) -> None:
        """Refuse to go on where a branch is not where its writer left it.

        Raises:
            HeadMoved: it is elsewhere.
        """
        if head != expect and (head is None or self._moves.get(branch) != (expect, head)):
            raise HeadMoved(branch, head)

    def note(self, branch: str, expect: str | None, to: str | None) -> None:
        """Keep in mind that a branch may have been moved."""
        self._moves[branch] = expect, to

    def settle(self, branch: str) -> None:
        """Forget it: it is known where the branch is."""
        self._moves.pop(branch, None)


def named_chunks(draft: Draft) -> set[bytes]:
    """Return the addresses that a draft's payloads name. The collector finds them in the same way.

    Raises:
        StateError: the draft has a chunk that no payload names, so that it would be collected.
    """
    named: set[bytes] = set()
    for payload in draft.changes.values():
        if payload is not None:
            named |= addresses_in(payload)
    if not draft.chunks.keys() <= named:
        raise StateError(
            "A chunk of the commit is named by none of its payloads. A payload holds the addresses of its "
            "chunks byte for byte: not compressed, not as text."
        )
    return named


def size(draft: Draft) -> int:
    """Return about how many bytes a draft takes in a store."""
    payloads = sum(len(key) + len(payload or b"") + 100 for key, payload in draft.changes.items())
    chunks = sum(memoryview(chunk).nbytes for chunk in draft.chunks.values())
    return 300 + payloads + chunks + sum(map(len, draft.events))


def choose(text: str, found: Collection[str]) -> str:
    """Return the one commit that a text may stand for, of those whose hash begins so.

    Raises:
        StateError: there is none, or more than one.
    """
    if len(text) < _SHORTEST or not found:
        raise StateError(
            f"There is no branch, tag or commit {text!r}; of a commit, write {_SHORTEST} characters or more."
        )
    if len(found) > 1:
        raise StateError(f"{len(found)} commits begin with {text!r}; write more of the one you mean.")
    return next(iter(found))


def no_tag(name: str) -> StateError:
    """Return the error for a tag that is not there."""
    return StateError(f"There is no tag {name!r} in this store.")
