"""A state with a history: every step of every task is a commit."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agex import values
from agex.errors import StateConflict, StateError
from agex.state import outside
from agex.state.base import Past, State, require_name
from agex.state.branches import CONFLICTS, conflict_name, delete_branch, drop_conflicts, require_new
from agex.state.files import Files, FileSpace
from agex.state.history import Commit, Diff, History
from agex.state.journal import Collected, Draft, HeadMoved, Journal, Record
from agex.state.kv import KVStore
from agex.state.merging import difference, files_to_take, merge_base, take_files, to_take
from agex.state.variables import CACHE, Codec, Stored, Variables, variables_at

if TYPE_CHECKING:
    from agex.display import Page

__all__ = ["Snapshot", "Versioned"]


class Snapshot(Past):
    """The variables as they were at a commit; read-only, each read from the store once.

    Attributes:
        commit: the commit.
    """

    def __init__(self, journal: Journal, codec: Codec, commit: Commit) -> None:
        self._variables = Variables(journal, codec, commit.hash)
        self._names = variables_at(journal, commit.hash)
        self._files = Files(journal, commit.hash)
        self._journal = journal
        self._codec = codec
        self.commit = commit

    @property
    def cache(self) -> Mapping[str, Any]:
        """The state's ``cache`` then."""
        return MappingProxyType(self._variables.cache() if CACHE in self._variables else {})

    @property
    def files(self) -> Files:
        """The files of the workspace then, by path; each read from the store when it is asked for."""
        return self._files

    @property
    def events(self) -> tuple[Any, ...]:
        """All events up to then, oldest first."""
        return tuple(_events_until(self._journal, self.commit.hash))

    def size(self, name: str) -> int:
        """Return how many bytes a variable takes in the store, with those that share objects with it.

        Raises:
            KeyError: there is no such variable.
        """
        recipe = Stored(self._journal, self.commit.hash, self._codec).recipe(name)
        if recipe is None or name == CACHE:
            raise KeyError(name)
        return recipe.size

    def sketch(self, name: str) -> Any:
        if name == CACHE:
            raise KeyError(name)
        return _readable(name, self._variables.sketch(name))

    def recent(self) -> list[str]:
        changed = difference(self._journal, self._codec, self.commit.parent, self.commit.hash, texts=False)
        return [name for name in changed if name not in changed.removed]

    def __getitem__(self, name: str) -> Any:
        if name == CACHE:
            raise KeyError(name)
        return _readable(name, self._variables[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def page(self) -> Page:
        from agex.state.pages import snapshot_page

        return snapshot_page(self)

    def __repr__(self) -> str:
        return f"Snapshot({self.commit.hash[:12]}: {', '.join(self._names)})"


class Versioned(State):
    """Keep an agent's variables, its ``cache``, its files and its events in a store, a commit a step.

    Changes are found in the objects themselves, also those made in place. The objects stay
    live between tasks; what a task could not have kept, and the functions and classes that
    its agent wrote, are read anew once it is over.

    Args:
        store: where to keep it; in memory if not given.
        branch: the line of commits to go on with. The first one of a store begins empty.
        create: begin the branch also in a store that has others, where there is none of that name.
        classes: classes of the host whose instances are kept. Those an agent is given with
            ``agent.cls`` need not be named again where that agent uses the state.

    Raises:
        StateError: the store cannot be opened, or has other branches and none of that name.
    """

    def __init__(
        self,
        store: KVStore | None = None,
        *,
        branch: str = "main",
        create: bool = False,
        classes: Iterable[type] = (),
    ) -> None:
        if store is None:
            from agex.state.memory import Memory

            store = Memory()
        if not isinstance(store, KVStore):
            raise StateError(f"{store!r} is no store; give Memory(), Disk(path) or another KVStore")
        self.store = store
        self.branch = branch
        self._journal = store.journal()
        self._classes = set(classes)
        self._codec = Codec(values.Allow(self._classes), outside.guest_code())
        self._lock = threading.RLock()
        self.files = FileSpace(self._journal)
        branches = self._journal.branches()
        if branch not in branches:
            require_new(branch, branches, create=create)
        self._point_at(branches.get(branch))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it by its store and branch: what was not committed stays here."""
        return _opened, (self.store, self.branch, tuple(self._classes), self._head is None)

    def _point_at(self, commit: str | None) -> None:
        """Stand on a commit, with nothing on top of it."""
        self._head = commit
        self._side: str | None = None
        self._variables = Variables(self._journal, self._codec, commit)
        self.files.reset(commit)
        self._pending: list[Any] = []
        self._known_events: list[Any] | None = None

    # -- as a mapping ------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            if name == CACHE:
                raise KeyError(name)
            found = self._variables[name]
            if type(found) is values.Packed:  # not committed yet
                found = self._variables.opened({name: found})[name]
            return _readable(name, found)

    def __setitem__(self, name: str, value: Any) -> None:
        require_name(name)
        if name == CACHE:
            raise StateError("'cache' names the state's own dict; write state.cache['key'] = value")
        with self._lock:
            self._variables[name] = value

    def __delitem__(self, name: str) -> None:
        with self._lock:
            if name == CACHE:
                raise KeyError(name)
            del self._variables[name]

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return isinstance(name, str) and name != CACHE and name in self._variables

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(self._variables.names())

    def __len__(self) -> int:
        with self._lock:
            return len(self._variables.names())

    def page(self) -> Page:
        from agex.state.pages import versioned_page

        return versioned_page(self)

    def __repr__(self) -> str:
        return f"Versioned({self.branch} at {self._head[:12] if self._head else 'the beginning'})"

    @property
    def cache(self) -> dict[str, Any]:  # type: ignore[override]
        with self._lock:
            if CACHE not in self._variables:
                self._variables[CACHE] = {}
            cache = self._variables.cache()
            if type(cache) is values.Packed:  # not committed yet
                cache = self._variables[CACHE] = self._variables.opened({CACHE: cache})[CACHE]
            found: dict[str, Any] = cache
            return found

    def packed_cache(self) -> Any:
        with self._lock:
            return self._variables.cache(packed=True) if CACHE in self._variables else {}

    def write_cache(self, cache: Any) -> None:
        with self._lock:
            self._variables[CACHE] = cache

    @property
    def events(self) -> list[Any]:
        with self._lock:
            if self._known_events is None:
                self._known_events = [] if self._head is None else _events_until(self._journal, self._head)
            return [*self._known_events, *self._pending]

    def recent(self) -> list[str]:
        with self._lock:
            return [] if self._head is None else self.checkout(self._head).recent()

    # -- for tasks ---------------------------------------------------------------------------

    def admit(self, classes: Iterable[type], guest: values.GuestCode | None) -> None:
        """Let instances of these classes be kept, and the code of guests be made by *guest*."""
        with self._lock:
            self._classes |= set(classes)
            self._codec.allow = values.Allow(self._classes)
            self._codec.guest = guest or self._codec.guest

    def snapshot(self, *, packed: bool = False) -> dict[str, Any]:
        with self._lock:
            return self._variables.all(packed=packed)

    def sketch(self, name: str) -> Any:
        with self._lock:
            if name == CACHE:
                raise KeyError(name)
            return _readable(name, self._variables.sketch(name))

    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        with self._lock:
            for name, value in after.items():
                if (name not in before or before[name] is not value) and name != CACHE:
                    self._variables[name] = value
            for name in before.keys() - after.keys():
                if name in self._variables:
                    del self._variables[name]

    @property
    def imports(self) -> dict[str, str]:
        with self._lock:
            return self._variables.imports()

    def write_imports(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        with self._lock:
            self._variables.write_imports(before, after)

    def record(self, event: Any) -> None:
        with self._lock:
            self._pending.append(event)

    def settle(self, message: str, *, last: bool = False) -> str | None:
        with self._lock:
            try:
                return self._commit(message)
            finally:
                if last:
                    self._variables.release()

    # -- commits -----------------------------------------------------------------------------

    @property
    def head(self) -> str | None:
        """The commit that this state stands on; None before the first."""
        return self._head

    def commit(self, message: str | None = None) -> str:
        """Keep the variables, the cache and the events as they are now.

        Returns:
            The hash of the commit; of the last one, where nothing changed since.

        Raises:
            StateConflict: another writer moved the branch. What was to be committed is on a
                side branch, which the error names; go on with ``reset`` or ``merge``.
            StateFull: it does not fit. Nothing is lost here; make room and commit again.
        """
        with self._lock:
            return self._commit(message or "")

    def _commit(self, message: str, *, merged: str | None = None) -> str:
        change, files = self._variables.change(), self.files.change()
        payloads = {**change.payloads, **files.payloads}
        unchanged = not payloads and not self._pending and merged is None
        if unchanged and self._head is not None and self._side is None:
            return self._head
        parents = tuple(one for one in (self._head, merged) if one is not None)
        draft = Draft(
            parents=parents,
            changes=payloads,
            chunks={**change.chunks, **files.chunks},
            events=[outside.events().dump(event) for event in self._pending],
            time=time.time(),
            message=message,
        )
        commit, moved = self._write(draft)
        self._variables.committed(commit, change)
        self.files.committed(commit, files)
        for event in self._pending:
            outside.events().stamp(event, commit, self._head)
        if self._known_events is not None:
            self._known_events += self._pending
        self._pending = []
        self._head = commit
        if moved is not None:
            there = "gone" if moved.head is None else f"at {moved.head[:12]}"
            raise StateConflict(
                f"Branch {self.branch!r} was moved by another writer: it is {there}. This commit, "
                f"{commit[:12]}, is on branch {self._side!r}. Go on from the other's with "
                f"reset({self.branch!r}), then change again or merge({self._side!r})."
            )
        return commit

    def _write(self, draft: Draft) -> tuple[str, HeadMoved | None]:
        """Commit to the branch; if another writer moved it, beside it."""
        if self._side is None:
            try:
                return self._journal.commit(draft, branch=self.branch, expect=self._head), None
            except HeadMoved as error:
                return self._commit_aside(draft), error
        there = self._journal.branches().get(self.branch)
        return self._commit_aside(draft), HeadMoved(self.branch, there)

    def _commit_aside(self, draft: Draft) -> str:
        """Commit on the side branch of this state, which is its own alone."""
        if self._side is not None:
            with contextlib.suppress(HeadMoved):  # it was deleted, or somebody goes on with it
                return self._journal.commit(draft, branch=self._side, expect=self._head)
        while True:
            side = conflict_name(self.branch, self._head, self._journal.branches())
            try:
                commit = self._journal.commit(draft, branch=side, expect=None)
            except HeadMoved:  # another state has taken the name meanwhile
                continue
            self._side = side
            return commit

    # -- history -----------------------------------------------------------------------------

    def checkout(self, ref: str | Commit) -> Snapshot:
        """Return the state as it was at a commit, branch or tag.

        Raises:
            StateError: there is no such commit.
        """
        commit = self._journal.resolve(str(ref))
        return Snapshot(self._journal, self._codec, _as_commit(self._journal, self._journal.record(commit)))

    def history(self, ref: str | Commit | None = None) -> History:
        """Return the commits up to the head, or to *ref*, newest first; each is read when it is asked for.

        Raises:
            StateError: there is no such commit.
        """
        from agex.state.pages import names_of

        commit = self._head if ref is None else self._journal.resolve(str(ref))

        def begin() -> Iterator[Record]:
            return iter(()) if commit is None else self._journal.history(commit)

        return History(begin, partial(_as_commit, self._journal), lambda: names_of(self))

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

    def fork(self, name: str | None = None, at: str | Commit | None = None) -> Versioned:
        """Begin a branch at a commit (the head if not given), and return a state on it.

        What was not committed stays here.

        Raises:
            StateError: there is a branch of that name.
        """
        with self._lock:
            start = self._head if at is None else self._journal.resolve(str(at))
            taken = self._journal.branches()
            if name is None:
                stem = self.branch.removeprefix(CONFLICTS)
                names = (f"{stem}-{number}" for number in range(2, len(taken) + 3))
                name = next(one for one in names if one not in taken)
            if name in taken:
                raise StateError(f"There is a branch {name!r} already; choose another name.")
            require_new(name, taken, create=True)
            if start is not None:
                try:
                    self._journal.move(name, start, expect=None)
                except HeadMoved as error:
                    raise StateError(f"There is a branch {name!r} already; choose another name.") from error
            return Versioned(self.store, branch=name, create=True, classes=self._classes)

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

    def delete_branch(self, name: str) -> None:
        """Delete a branch. Commits that nothing else reaches stay until `gc`.

        Raises:
            StateError: there is no such branch, this state stands on it, or it is the last one.
            StateConflict: another writer moved it meanwhile.
        """
        with self._lock:
            delete_branch(self._journal, name, standing=(self.branch, self._side))

    def delete_tag(self, name: str) -> None:
        """Delete a tag; the name may be given again.

        Raises:
            StateError: there is no such tag.
        """
        self._journal.untag(name)

    def reset(self, ref: str | Commit) -> None:
        """Put the branch on a commit, and drop what was not committed.

        Commits that no branch or tag reaches any more stay until `gc`.

        Raises:
            StateError: there is no such commit.
            StateConflict: another writer moved the branch meanwhile.
        """
        with self._lock:
            commit = self._journal.resolve(str(ref))
            if ref != self.branch and self._journal.branches().get(self.branch) != commit:
                try:
                    self._journal.move(self.branch, commit, expect=self._head)
                except HeadMoved as error:
                    raise StateConflict(
                        f"Branch {self.branch!r} was moved by another writer; reset({self.branch!r}) first."
                    ) from error
            self._point_at(commit)

    def merge(self, other: Versioned | str | Commit) -> str:
        """Take over what another branch or commit changed since both were one.

        It goes variable by variable and file by file.

        Returns:
            The commit of the merge; the head, where there is nothing to take.

        Raises:
            StateConflict: both changed the same variable or file. Nothing is taken then.
        """
        with self._lock:
            mine = self._commit("before a merge")
            theirs = other.head if isinstance(other, Versioned) else self._journal.resolve(str(other))
            if theirs is None:
                return mine
            base = merge_base(self._journal, mine, theirs)
            if base == theirs:
                return mine
            taken, gone = to_take(self._journal, base, mine, theirs)
            files = files_to_take(self._journal, base, mine, theirs)
            source = Variables(self._journal, self._codec, theirs)
            found = {name: source[name] for name in taken}  # if one cannot be read, none is taken
            for name, value in found.items():
                self._variables[name] = value
            for name in gone:
                if name in self._variables:
                    del self._variables[name]
            take_files(self.files, FileSpace(self._journal, theirs), files)
            return self._commit(f"merge {theirs[:12]}", merged=theirs)

    # -- care --------------------------------------------------------------------------------

    def fsck(self) -> list[str]:
        """Check the whole store; return what is wrong, a line each."""
        return self._journal.fsck()

    def gc(self, conflicts_older_than: float | timedelta | None = None) -> Collected:
        """Drop commits that no branch and no tag reaches, and chunks that no commit needs.

        Args:
            conflicts_older_than: first delete the side branches of conflicts whose newest commit is as old
                as that, in seconds or as a timedelta; not the one that this state is on. None keeps them.
        """
        with self._lock:
            dropped = 0
            if conflicts_older_than is not None:
                keep = (self.branch, self._side)
                dropped = drop_conflicts(self._journal, conflicts_older_than, keep=keep)
        return replace(self._journal.gc(), branches=dropped)

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


def _opened(store: KVStore, branch: str, classes: tuple[type, ...], create: bool = False) -> Versioned:
    return Versioned(store, branch=branch, create=create, classes=classes)


def _readable(name: str, value: Any) -> Any:
    """Return a variable, or raise what there is to say of one that could not be kept."""
    if issubclass(type(value), values.NotKept):  # isinstance() asks the value
        raise values.not_kept_error(value, name)
    return value


def _as_commit(journal: Journal, record: Record) -> Commit:
    parent = record.parents[0] if record.parents else None
    return Commit(
        hash=record.hash,
        parent=parent,
        time=record.time,
        message=record.message,
        events=tuple(_events_of(journal, record)) if record.events else (),
        merged=record.parents[1:],
    )


def _events_of(journal: Journal, record: Record) -> Iterator[Any]:
    parent = record.parents[0] if record.parents else None
    for data in journal.events(record.hash):
        event = outside.events().load(data)
        outside.events().stamp(event, record.hash, parent)
        yield event


def _events_until(journal: Journal, commit: str) -> list[Any]:
    records = [record for record in journal.history(commit) if record.events]
    return [event for record in reversed(records) for event in _events_of(journal, record)]
