"""A state with a history: every step of every task is a commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn

from agex import values
from agex.display import Page, Table
from agex.errors import StateConflict, StateError
from agex.state.base import require_name
from agex.state.commits import codec_hooks
from agex.state.commits.branches import (
    CONFLICTS,
    BranchWriter,
    delete_branch,
    drop_conflicts,
    require_new,
)
from agex.state.commits.history import COMMIT_HEAD, SHORT, Commit, commit_rows
from agex.state.commits.journal import Collected, Draft, HeadMoved
from agex.state.kv.store import KVStore
from agex.state.repository import Repository
from agex.state.snapshot import Snapshot, events_until, readable
from agex.state.tables import counts, held_parts, names_of
from agex.state.working.entries import Entries
from agex.state.working.merging import (
    files_to_take,
    marks_between,
    merge_base,
    take_files,
    to_take,
)
from agex.state.working.open_tasks import LineView, Tasks
from agex.state.working.stored_variables import CACHE, Codec
from agex.state.working.tracked_files import FileChange, FileSpace
from agex.state.working.variables import Change, Variables
from agex.state.working.view import View
from agex.state.working.working_copy import Line, Mark, shown_mark

__all__ = ["Snapshot", "Versioned"]

COMMITS = 10
"""Commits that are shown, the newest first."""


class Versioned(Repository):
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
            from agex.state.kv.memory import Memory

            store = Memory()
        if not isinstance(store, KVStore):
            raise StateError(f"{store!r} is no store; give Memory(), Disk(path) or another KVStore")
        self.store = store
        self.branch = branch
        self._journal = store.journal()
        self._classes = set(classes)
        self._codec = Codec(values.Allow(self._classes), codec_hooks.guest_code())
        self._lock = threading.RLock()
        self.files = FileSpace(self._journal)
        self._tasks = Tasks(
            lock=self._lock,
            files=self.files,
            commit=lambda message, view: self._commit(message, view=view),
            log=self._commit_entries,
            write=self._write_of_host,
            touched=lambda old, new: marks_between(self._journal, old, new),
        )
        head = self._journal.head(branch)
        if head is None:
            require_new(branch, self._journal.branches(), create=create)
        self._point_at(head)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it by its store and branch: what was not committed stays here."""
        return _opened, (self.store, self.branch, tuple(self._classes), self._head is None)

    def _point_at(self, commit: str | None) -> None:
        """Stand on a commit, with nothing on top of it."""
        self._head = commit
        self._writer = BranchWriter(self._journal, self.branch)
        self._tasks.host = Line(Variables(self._journal, self._codec, commit))
        self.files.reset(commit)
        self._known_events: list[Any] | None = None

    @property
    def _variables(self) -> Variables:
        """The variables as the host has them."""
        return self._tasks.host.variables

    # -- as a mapping ------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            if name == CACHE:
                raise KeyError(name)
            found = self._variables[name]
            if type(found) is values.Packed:  # not committed yet
                found = self._variables.opened({name: found})[name]
            return readable(name, found)

    def __setitem__(self, name: str, value: Any) -> None:
        require_name(name)
        if name == CACHE:
            raise StateError("'cache' names the state's own dict; write state.cache['key'] = value")
        with self._lock:
            self._bind(name, value)

    def _bind(self, name: str, value: Any) -> None:
        self._tasks.note(self._tasks.host, name, None)
        self._variables[name] = value

    def __delitem__(self, name: str) -> None:
        with self._lock:
            if name == CACHE:
                raise KeyError(name)
            self._unbind(name)

    def _unbind(self, name: str) -> None:
        self._tasks.note(self._tasks.host, name, None)
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
        at = "no commits" if self.head is None else f"at {self.head[:SHORT]}"
        parts = [*held_parts(self, self.cache, self.files)]
        commits = self.history()[: COMMITS + 1]
        if commits:
            note = "older ones: state.history()" if len(commits) > COMMITS else ""
            rows = commit_rows(commits[:COMMITS], names_of(self))
            parts.append(Table(head=COMMIT_HEAD, rows=rows, label="commits", note=note))
        return Page(title=f"Versioned · {self.branch}", facts=(at, *counts(self)), parts=parts)

    def __repr__(self) -> str:
        return f"Versioned({self.branch} at {self._head[:12] if self._head else 'the beginning'})"

    @property
    def cache(self) -> dict[str, Any]:  # type: ignore[override]
        with self._lock:
            found: dict[str, Any] = self._tasks.host.cache()
            return found

    def packed_cache(self) -> Any:
        with self._lock:
            return self._tasks.host.packed_cache()

    def write_cache(self, cache: Any) -> None:
        with self._lock:
            self._bind(CACHE, cache)

    @property
    def events(self) -> list[Any]:
        with self._lock:
            if self._known_events is None:
                self._known_events = [] if self._head is None else events_until(self._journal, self._head)
            pending = [event for line in self._tasks.lines() for event in line.pending]
            return [*self._known_events, *pending]

    def recent(self) -> list[str]:
        with self._lock:
            return [] if self._head is None else self.checkout(self._head).recent()

    # -- for tasks ---------------------------------------------------------------------------

    def admit(self, classes: Iterable[type], guest: values.GuestCode | None) -> None:
        """Let instances of these classes be kept, and stored guest code be rebuilt by *guest*."""
        with self._lock:
            self._classes |= set(classes)
            self._codec.allow = values.Allow(self._classes)
            self._codec.guest = guest or self._codec.guest

    def view(self, caller: View | None = None) -> View:
        with self._lock:
            return self._tasks.begin(caller)

    def snapshot(self, *, packed: bool = False) -> dict[str, Any]:
        with self._lock:
            return self._variables.all(packed=packed)

    def sketch(self, name: str) -> Any:
        with self._lock:
            if name == CACHE:
                raise KeyError(name)
            return readable(name, self._variables.sketch(name))

    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        with self._lock:
            for name, value in after.items():
                if (name not in before or before[name] is not value) and name != CACHE:
                    self._bind(name, value)
            for name in before.keys() - after.keys():
                if name in self._variables:
                    self._unbind(name)

    @property
    def imports(self) -> dict[str, str]:
        with self._lock:
            return self._variables.imports()

    def write_imports(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        with self._lock:
            self._variables.write_imports(before, after)

    def record(self, event: Any) -> None:
        with self._lock:
            self._tasks.host.pending.append(event)

    def settle(self, message: str, *, last: bool = False) -> str | None:
        with self._lock:
            try:
                return self._commit(message)
            finally:
                if last:
                    self._variables.release()

    # -- commits -----------------------------------------------------------------------------

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

    def _commit(self, message: str, *, merged: str | None = None, view: LineView | None = None) -> str:
        line = self._tasks.host if view is None else view.line
        if line is not self._tasks.host:
            self._tasks.commit_of_host()
        change, files = line.variables.change(), self.files.change()
        is_alone = self._tasks.is_alone(line)
        marks: set[Mark] = set() if is_alone else line.marks(change)
        clash: set[Mark] = set() if is_alone else self._tasks.clash(line, marks)
        if view is not None and (clash or view.refused or line.side is not None):
            self._refuse(view, message, clash)
        entries = None if view is None else view.entries
        own = {} if entries is None else entries.payloads
        unchanged = not (change.payloads or files.payloads or line.pending or own or merged is not None)
        if unchanged and self._head is not None and self._writer.side is None:
            return self._head
        is_behind = line.variables.commit != self._head or line.is_merged
        written = line.onto(self._head, marks, change) if is_behind else change
        parents = tuple(one for one in (self._head, merged) if one is not None)
        draft = _draft(parents, message, written, files, line.pending, entries=entries)
        commit, moved = self._writer.write(draft, self._head)
        if entries is not None:
            entries.written()
        if is_behind:
            line.merged(commit, change)
        else:
            line.variables.committed(commit, change)
        line.given_up()
        self.files.committed(commit, files)
        self._note_events(line, commit, self._head)
        if not is_alone:
            self._tasks.tell(line, marks, written, commit)
        if moved is not None:
            raise self._was_moved(commit, moved)
        return commit

    def _commit_entries(self, message: str, view: LineView) -> str:
        """Commit the entries of a task's run and its events, and no variable or file of anybody."""
        line, before = view.line, self._head
        parents = () if before is None else (before,)
        draft = _draft(parents, message, Change(), FileChange(), line.pending, entries=view.entries)
        try:
            commit = self._writer.write_in_place(draft, before)
        except HeadMoved as moved:
            there = "gone" if moved.head is None else f"at {moved.head[:12]}"
            raise StateConflict(
                f"Branch {self.branch!r} was moved by another writer: it is {there}. {message!r} was not "
                f"written. Go on from the other's with reset({self.branch!r})."
            ) from moved
        view.entries.written()
        self._tasks.advance(before, commit)
        self.files.committed(commit, FileChange())
        self._note_events(line, commit, before)
        return commit

    def _note_events(self, line: Line, commit: str, before: str | None) -> None:
        """Take note that a commit, which is the head now, holds the events of a line."""
        for event in line.pending:
            codec_hooks.events().stamp(event, commit, before)
        if self._known_events is not None:
            self._known_events += line.pending
        line.pending = []
        self._head = commit

    def _was_moved(self, commit: str, moved: HeadMoved) -> StateConflict:
        there = "gone" if moved.head is None else f"at {moved.head[:12]}"
        return StateConflict(
            f"Branch {self.branch!r} was moved by another writer: it is {there}. This commit, "
            f"{commit[:12]}, is on branch {self._writer.side!r}. Go on from the other's with "
            f"reset({self.branch!r}), then change again or merge({self._writer.side!r})."
        )

    def _write_of_host(self, change: Change) -> str:
        """Commit changes of the host before a second task begins."""
        parents = () if self._head is None else (self._head,)
        draft = _draft(parents, "changes of the host", change, FileChange(), ())
        self._head, _ = self._writer.write(draft, self._head)
        return self._head  # where another writer moved the branch, the commit of the task says so

    def _refuse(self, view: LineView, message: str, clash: set[Mark]) -> NoReturn:
        """Commit what a task did beside the branch, for others changed the same."""
        line = view.line
        start = line.began
        change, files = line.onto_side(start, view.refused), self.files.change()
        if line is self._tasks.host:
            self._tasks.commit_of_host()
            self._tasks.part(self._head)
        parents = () if start is None else (start,)
        draft = _draft(parents, message, change, files, line.pending)
        line.side, commit = self._writer.write_aside(draft, line.side, start)
        for event in line.pending:
            codec_hooks.events().stamp(event, commit, start)
        line.pending, line.began = [], commit
        line.lost |= {*map(shown_mark, clash), *view.refused}
        names = ", ".join(sorted(line.lost))
        raise StateConflict(
            f"Changed at the same time by another task or the host, which came first: {names}. "
            f"The state has their change. This task's, {commit[:12]}, is on branch {line.side!r}; call "
            "the task again, it then begins with what is there now."
        )

    def entry(self, key: str, at: str | None = None) -> Any:
        """Return an entry that a run has in a commit, or in the head; None where there is none.

        Raises:
            StateCorrupt: it is damaged.
        """
        with self._lock:
            return self._variables.entries().read(self._head if at is None else at, key)

    def entry_keys(self, at: str | None = None) -> list[str]:
        """Return the keys of all entries of runs in a commit, or in the head, sorted."""
        with self._lock:
            return self._variables.entries().keys(self._head if at is None else at)

    # -- history -----------------------------------------------------------------------------

    def fork(self, name: str | None = None, at: str | Commit | None = None) -> Versioned:
        """Begin a branch at a commit (the head if not given), and return a state on it.

        What was not committed stays here.

        Raises:
            StateError: there is a branch of that name.
        """
        with self._lock:
            start = self._head if at is None else self._journal.resolve(str(at))
            if name is None:
                taken = self._journal.branches()
                stem = self.branch.removeprefix(CONFLICTS)
                names = (f"{stem}-{number}" for number in range(2, len(taken) + 3))
                name = next(one for one in names if one not in taken)
            elif self._journal.head(name) is not None:
                raise StateError(f"There is a branch {name!r} already; choose another name.")
            require_new(name, (), create=True)
            if start is not None:
                try:
                    self._journal.move(name, start, expect=None)
                except HeadMoved as error:
                    raise StateError(f"There is a branch {name!r} already; choose another name.") from error
            return Versioned(self.store, branch=name, create=True, classes=self._classes)

    def forks(self, label: str, count: int) -> VersionedForks:
        return VersionedForks(self, label, count)

    def settle_host(self) -> str | None:
        """Commit what the host changed, and nothing of a task that is at work; return the head."""
        with self._lock:
            line = self._tasks.host
            if self._tasks.is_at_work(line):
                self._tasks.commit_of_host()
            elif self._head is not None or line.pending or line.variables.names() or self.files.is_changed:
                self._commit("changes of the host")
            return self._head

    def take_over(self, fork: Versioned, since: str | None) -> str:
        """Let this branch go on from where a fork of it is, which began at the commit *since*.

        Where others committed meanwhile, what the fork changed is merged, and its events are recorded again.

        Raises:
            StateConflict: both changed the same variable or file. Nothing is taken.
        """
        with self._lock:
            theirs = fork.head
            assert theirs is not None, "a task that is over was committed"
            if self.settle_host() == since:
                self.reset(theirs)
                return theirs
            known = 0 if since is None else len(events_until(self._journal, since))
            try:
                self.merge(fork)
            except StateConflict as error:
                raise StateConflict(f"{error} What was to be taken is on branch {fork.branch!r}.") from error
            self._tasks.host.pending += events_until(self._journal, theirs)[known:]
            return self._commit(f"events of {theirs[:12]}")

    def delete_branch(self, name: str) -> None:
        """Delete a branch. Commits that nothing else reaches stay until `gc`.

        Raises:
            StateError: there is no such branch, this state stands on it, or it is the last one.
            StateConflict: another writer moved it meanwhile.
        """
        with self._lock:
            delete_branch(self._journal, name, standing=(self.branch, self._writer.side))

    def reset(self, ref: str | Commit) -> None:
        """Put the branch on a commit, and drop what was not committed.

        Commits that no branch or tag reaches any more stay until `gc`.

        Raises:
            StateError: there is no such commit.
            StateConflict: another writer moved the branch meanwhile.
        """
        with self._lock:
            commit = self._journal.resolve(str(ref))
            if ref != self.branch and self._journal.head(self.branch) != commit:
                try:
                    self._journal.move(self.branch, commit, expect=self._head)
                except HeadMoved as error:
                    raise StateConflict(
                        f"Branch {self.branch!r} was moved by another writer; reset({self.branch!r}) first."
                    ) from error
            before = self._head
            self._point_at(commit)
            self._tasks.moved(before, commit)

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
                self._bind(name, value)
            for name in gone:
                if name in self._variables:
                    self._unbind(name)
            take_files(self.files, FileSpace(self._journal, theirs), files)
            return self._commit(f"merge {theirs[:12]}", merged=theirs)

    # -- care --------------------------------------------------------------------------------

    def gc(self, conflicts_older_than: float | timedelta | None = None) -> Collected:
        """Drop commits that no branch and no tag reaches, and chunks that no commit needs.

        Args:
            conflicts_older_than: first delete the side branches of conflicts whose newest commit is as old
                as that, in seconds or as a timedelta; not the one that this state is on. None keeps them.
        """
        with self._lock:
            dropped = 0
            if conflicts_older_than is not None:
                keep = (self.branch, self._writer.side)
                dropped = drop_conflicts(self._journal, conflicts_older_than, keep=keep)
        return replace(self._journal.gc(), branches=dropped)


class VersionedForks:
    """Branches that begin at one commit of a state."""

    def __init__(self, state: Versioned, label: str, count: int) -> None:
        self._state = state
        self._start = state.settle_host()
        stem = state.branch.removeprefix(CONFLICTS)
        names = [f"{stem}-sample-{label}-{number}" for number in range(1, count + 1)]
        self.states: Sequence[Versioned] = [state.fork(name, at=self._start) for name in names]

    def take(self, number: int) -> str:
        return self._state.take_over(self.states[number], self._start)

    def drop(self, *, keep: int | None = None) -> None:
        there = self._state.branches()
        for number, fork in enumerate(self.states):
            if number != keep and fork.branch in there:
                self._state.delete_branch(fork.branch)


def _opened(store: KVStore, branch: str, classes: tuple[type, ...], create: bool = False) -> Versioned:
    return Versioned(store, branch=branch, create=create, classes=classes)


def _draft(
    parents: tuple[str, ...],
    message: str,
    change: Change,
    files: FileChange,
    events: Iterable[Any],
    *,
    entries: Entries | None = None,
) -> Draft:
    own, chunks = ({}, {}) if entries is None else (entries.payloads, entries.chunks)
    return Draft(
        parents=parents,
        changes={**change.payloads, **files.payloads, **own},
        chunks={**change.chunks, **files.chunks, **chunks},
        events=[codec_hooks.events().dump(event) for event in events],
        time=time.time(),
        message=message,
    )
