"""A store's commits, branches and tags, as the host reads and names them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from agex.errors import StateError
from agex.state.base import State
from agex.state.commits.history import Commit, Diff, History
from agex.state.commits.journal import CommitInfo, Journal
from agex.state.kv.store import KVStore
from agex.state.snapshot import Snapshot, as_commit
from agex.state.tables import names_of
from agex.state.working.merging import difference
from agex.state.working.stored_variables import Codec

__all__ = ["Repository"]


class Repository(State):
    """A state whose variables are commits of a store: what can be read of them, and their names.

    Attributes:
        store: where the commits are.
    """

    store: KVStore
    _journal: Journal
    _codec: Codec
    _head: str | None

    @property
    def head(self) -> str | None:
        """The commit that this state stands on; None before the first."""
        return self._head

    def checkout(self, ref: str | Commit) -> Snapshot:
        """Return the state as it was at a commit, branch or tag.

        Raises:
            StateError: there is no such commit.
        """
        commit = self._journal.resolve(str(ref))
        return Snapshot(self._journal, self._codec, as_commit(self._journal, self._journal.record(commit)))

    def history(self, ref: str | Commit | None = None) -> History:
        """Return the commits up to the head, or to *ref*, newest first; each is read when it is asked for.

        Raises:
            StateError: there is no such commit.
        """
        commit = self._head if ref is None else self._journal.resolve(str(ref))

        def begin() -> Iterator[CommitInfo]:
            return iter(()) if commit is None else self._journal.history(commit)

        return History(begin, partial(as_commit, self._journal), lambda: names_of(self))

    def diff(self, old: str | Commit | None, new: str | Commit | None = None, *, texts: bool = True) -> Diff:
        """Compare the variables and the files of two commits.

        Args:
            old: a commit, branch or tag; None for the empty state.
            new: another; the head if not given.
            texts: show what changed, where it is small.
        """
        start = None if old is None else self._journal.resolve(str(old))
        end = self._head if new is None else self._journal.resolve(str(new))
        if end is None:
            return Diff({}, {}, {})
        return difference(self._journal, self._codec, start, end, texts=texts)

    def branches(self) -> dict[str, str]:
        """Return the head of each branch."""
        return self._journal.branches()

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""
        return self._journal.tags()

    def tag(self, name: str, ref: str | Commit | None = None) -> None:
        """Name a commit (the head if not given) for good.

        Raises:
            StateError: the name is given, or there is no commit yet.
        """
        commit = self._head if ref is None else self._journal.resolve(str(ref))
        if commit is None:
            raise StateError("There is no commit to tag yet; call commit() first.")
        if name in self._journal.tags():
            raise StateError(f"The tag {name!r} is given already; choose another name.")
        self._journal.tag(name, commit)

    def delete_tag(self, name: str) -> None:
        """Delete a tag; the name may be given again.

        Raises:
            StateError: there is no such tag.
        """
        self._journal.untag(name)

    def fsck(self) -> list[str]:
        """Check the whole store; return what is wrong, a line each."""
        return self._journal.fsck()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store, with all branches, to a directory that is not there yet, also while it is in use.

        The copy is checked. To restore it, open it: ``Disk(path)``. What was not committed is not in it.

        Raises:
            StateCorrupt: the store is damaged; no copy is made.
            StateError: there is something at *path*, or the store is none on disk.
        """
        self.store.backup(path)

    def close(self) -> None:
        """Let go of the store's files and connections; what was not committed is dropped."""
        self._journal.close()
        self.store.close()
