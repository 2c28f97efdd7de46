"""Writing commits to a branch; beside it where another writer moved it."""

from __future__ import annotations

import contextlib

from agex.state.commits.branch_names import conflict_name
from agex.state.commits.journal import Draft, HeadMoved, Journal

__all__ = ["BranchWriter"]


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
            moved = HeadMoved(self.branch, self._journal.branches().get(self.branch))
        self.side, commit = self.write_aside(draft, self.side, head)
        return commit, moved

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
