"""Branches: the rules for their names, and the writer of commits to one.

The commits that a conflict put aside are on a branch whose name begins with `CONFLICTS`. Only a
state gives such names, so that `drop_conflicts` never takes a branch that somebody began.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING

from agex.errors import StateConflict, StateError
from agex.state.commits.journal import HeadMoved

if TYPE_CHECKING:
    from agex.state.commits.journal import Draft, Journal

__all__ = [
    "CONFLICTS",
    "BranchWriter",
    "conflict_name",
    "delete_branch",
    "drop_conflicts",
    "is_conflict",
    "require_new",
]

CONFLICTS = "conflict/"
"""How the names of branches begin that hold the commits of a conflict."""


def is_conflict(name: str) -> bool:
    """Return whether a conflict made the branch of that name."""
    return name.startswith(CONFLICTS)


def conflict_name(branch: str, head: str | None, taken: Collection[str]) -> str:
    """Return a new name for the branch that takes the commits of a conflict on *branch*."""
    stem = f"{CONFLICTS}{branch.removeprefix(CONFLICTS)}-{(head or 'start')[:8]}"
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"


def require_new(name: str, branches: Collection[str], *, create: bool) -> None:
    """Refuse to begin a branch of that name where it may be a typing mistake.

    Raises:
        StateError: the store has other branches, or the name is one of those that conflicts get.
    """
    if branches and not create:
        raise StateError(
            f"There is no branch {name!r} in this store; {_listed(branches)}. "
            f"To begin one, write Versioned(store, branch={name!r}, create=True)."
        )
    if is_conflict(name):
        raise StateError(
            f"Branch {name!r} cannot be begun: {CONFLICTS!r} begins the names of conflicts. Choose another."
        )


def delete_branch(journal: Journal, name: str, *, standing: Collection[str | None]) -> None:
    """Delete a branch.

    Args:
        journal: of the store.
        name: of the branch.
        standing: the branches that the caller's state commits to.

    Raises:
        StateError: there is no such branch, the state stands on it, or it is the last one.
        StateConflict: another writer moved it meanwhile.
    """
    branches = journal.branches()
    if name not in branches:
        raise StateError(f"There is no branch {name!r} in this store; {_listed(branches)}.")
    if len(branches) == 1:
        raise StateError(f"Branch {name!r} cannot be deleted: it is the last one of the store.")
    if name in standing:
        raise StateError(
            f"Branch {name!r} cannot be deleted: this state stands on it. "
            "Delete it with a state on another branch."
        )
    try:
        journal.move(name, None, expect=branches[name])
    except HeadMoved as error:
        raise StateConflict(f"Branch {name!r} was moved by another writer meanwhile; look again.") from error


def drop_conflicts(journal: Journal, older_than: float | timedelta, *, keep: Collection[str | None]) -> int:
    """Delete the branches of conflicts whose newest commit is as old as *older_than* or older.

    Args:
        journal: of the store.
        older_than: seconds, or a timedelta.
        keep: branches that stay whatever their age.

    Returns:
        How many were deleted.

    Raises:
        StateError: that is no length of time.
    """
    limit = time.time() - _seconds(older_than)
    branches = journal.branches()
    dropped = 0
    for name, head in branches.items():
        if not is_conflict(name) or name in keep or journal.record(head).time > limit:
            continue
        if dropped + 1 == len(branches):  # the last branch stays
            break
        try:
            journal.move(name, None, expect=head)
        except HeadMoved:  # somebody works on it
            continue
        dropped += 1
    return dropped


class BranchWriter:
    """Write the commits of one state to its branch, or to a side branch that is its own alone.

    Args:
        journal: of the store.
        branch: of the state.

    Attributes:
        side: the side branch that takes the commits, once another writer moved the branch.
    """

    def __init__(self, journal: Journal, branch: str) -> None:
        self._journal = journal
        self.branch = branch
        self.side: str | None = None

    def write(self, draft: Draft, head: str | None) -> tuple[str, HeadMoved | None]:
        """Commit to the branch, which is expected at *head*; beside it if another writer moved it.

        Returns:
            The commit, and the error if the branch was moved.
        """
        if self.side is None:
            try:
                return self._journal.commit(draft, branch=self.branch, expect=head), None
            except HeadMoved as error:
                moved = error
        else:
            moved = HeadMoved(self.branch, self._journal.head(self.branch))
        self.side, commit = self.write_aside(draft, self.side, head)
        return commit, moved

    def write_in_place(self, draft: Draft, head: str | None) -> str:
        """Commit to the branch, which is expected at *head*, or do nothing.

        Raises:
            HeadMoved: another writer moved the branch.
        """
        if self.side is not None:
            raise HeadMoved(self.branch, self._journal.head(self.branch))
        return self._journal.commit(draft, branch=self.branch, expect=head)

    def write_aside(self, draft: Draft, side: str | None, start: str | None) -> tuple[str, str]:
        """Commit on a side branch, or on a new one where it is gone; return its name and the commit.

        Args:
            draft: what to commit.
            side: the side branch; None for a new one.
            start: the commit that the side branch stands on.
        """
        if side is not None:
            with contextlib.suppress(HeadMoved):  # it was deleted, or somebody goes on with it
                return side, self._journal.commit(draft, branch=side, expect=start)
        while True:
            side = conflict_name(self.branch, start, self._journal.branches())
            with contextlib.suppress(HeadMoved):  # another state has taken the name meanwhile
                return side, self._journal.commit(draft, branch=side, expect=None)


def _seconds(length: object) -> float:
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise StateError(
            f"conflicts_older_than={length!r} is no length of time; give seconds, a timedelta, or None."
        )
    return seconds


def _listed(branches: Collection[str]) -> str:
    if not branches:
        return "it has none yet"
    shown = sorted(branches, key=lambda name: (is_conflict(name), name))
    more = f" and {len(shown) - 20:,} more" if len(shown) > 20 else ""
    return f"there {'is' if len(shown) == 1 else 'are'} {', '.join(map(repr, shown[:20]))}{more}"
