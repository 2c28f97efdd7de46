"""The tasks that are on a `Versioned` state, each from its beginning to its end."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from agex import values
from agex.errors import StateConflict, StateError
from agex.state.working.stored_variables import CACHE, is_import
from agex.state.working.tracked_files import FileSpace
from agex.state.working.variables import Change
from agex.state.working.view import View
from agex.state.working.working_copy import GONE, Line, Mark, overlap, put

__all__ = ["LineLog", "LineView", "Tasks"]

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, values.Packed})
"""Types whose objects nobody changes in place."""
_TRIES = 5
"""Of looking at objects of the host that a task may be changing."""


class LineView(View):
    """A task on a line of work, alone or with the tasks that it called.

    Attributes:
        line: where its variables are.
        entries: those that its run put and no commit has yet.
        is_acting: whether its code may be running: its objects are not looked at meanwhile.
        is_over: whether the task has ended. One that asked its caller something may go on.
        run: the one that it carries on, if it is kept.
        refused: variables that it wrote after another party of its line had written them.
    """

    def __init__(self, tasks: Tasks, line: Line) -> None:
        self.tasks = tasks
        self.line = line
        self.entries = line.variables.entries()
        self.log = LineLog(self)
        self.is_acting = False
        self.is_over = False
        self.run: str | None = None
        self.refused: dict[str, Any] = {}
        self._since = line.writes.count
        self._own = 0
        """Writes of its own since then: others are those of other parties."""
        self._old: dict[str, tuple[Any, Any]] = {}
        """Objects that were replaced under the task, and how they looked then."""

    @property
    def files(self) -> FileSpace:  # type: ignore[override]  # it is the state's
        return self.tasks.files

    @property
    def cache(self) -> dict[str, Any]:  # type: ignore[override]
        with self.tasks.lock:
            found: dict[str, Any] = self.line.cache()
            return found

    def packed_cache(self) -> Any:
        with self.tasks.lock:
            return self.line.packed_cache()

    def write_cache(self, cache: Any) -> None:
        with self.tasks.lock:
            self._write(CACHE, cache)

    def snapshot(self, *, packed: bool = False) -> dict[str, Any]:
        with self.tasks.lock:
            return self.line.variables.all(packed=packed)

    def act(self, known: Mapping[str, Any], cache: Any) -> None:
        with self.tasks.lock:
            self.tasks.reopen(self)
            self.is_acting = True
            if self.line.writes.count - self._since > self._own:
                for name, value in {**known, CACHE: cache}.items():
                    if self._is_lost(name):
                        self.keep_old(name, value)

    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        with self.tasks.lock:
            for name, value in after.items():
                if (name not in before or before[name] is not value) and name != CACHE:
                    self._write(name, value)
            for name in before.keys() - after.keys():
                if name in self.line.variables or self._is_lost(name):
                    self._write(name, GONE)

    @property
    def imports(self) -> dict[str, str]:
        with self.tasks.lock:
            return self.line.variables.imports()

    def write_imports(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        with self.tasks.lock:
            self.line.variables.write_imports(before, after)

    def _write(self, name: str, value: Any) -> None:
        if self._is_lost(name):
            self.refused[name] = value
            return
        self.line.keep_given(name)
        self.tasks.note(self.line, name, self)
        self._own += 1
        put(self.line.variables, name, value)

    def _is_lost(self, name: str) -> bool:
        return self.line.writes.is_lost(name, self, self._since)

    def keep_old(self, name: str, value: Any) -> None:
        """Remember an object that is no longer the variable's, to see whether the task changes it."""
        if name not in self._old and type(value) not in _ATOMS:
            self._old[name] = value, self.line.variables.look_of(value)

    def record(self, event: Any) -> None:
        with self.tasks.lock:
            self.line.pending.append(event)

    def settle(self, message: str, *, last: bool = False) -> str | None:
        with self.tasks.lock:
            self.tasks.reopen(self)
            for name, (value, look) in self._old.items():
                if name not in self.refused and self.line.variables.look_of(value) != look:
                    self.refused[name] = value
            try:
                self.tasks.require_own(self)
                commit = self.tasks.commit(message, self)
            except StateError:
                self.leave()
                raise
            self.is_acting = False
            if last:
                self.leave()
            return commit

    def leave(self) -> None:
        with self.tasks.lock:
            self.is_acting = False
            self.tasks.close(self)


class LineLog:
    """The `RunLog` of a task on a line of work."""

    def __init__(self, view: LineView) -> None:
        self._view = view

    def put(self, key: str, value: Any) -> tuple[Any, ...]:
        with self._view.tasks.lock:
            return self._view.entries.put(key, value)

    def remove(self, key: str) -> None:
        with self._view.tasks.lock:
            self._view.entries.remove(key)

    def read(self, key: str) -> Any:
        tasks = self._view.tasks
        with tasks.lock:
            return self._view.entries.read(tasks.host.variables.commit, key)

    def keys(self, prefix: str) -> list[str]:
        tasks = self._view.tasks
        with tasks.lock:
            return self._view.entries.keys(tasks.host.variables.commit, prefix)

    def is_same(self, one: Any, other: Any) -> bool:
        with self._view.tasks.lock:
            return self._view.line.variables.look_of(one) == self._view.line.variables.look_of(other)

    def claim(self, run: str) -> None:
        tasks = self._view.tasks
        with tasks.lock:
            self._view.run = run
            tasks.runs[run] = self._view

    def write(self, message: str) -> str:
        view = self._view
        with view.tasks.lock:
            try:
                view.tasks.require_own(view)
                return view.tasks.log(message, view)
            except StateError:
                view.entries.drop()
                raise

    def abandon(self) -> None:
        with self._view.tasks.lock:
            self._view.tasks.abandon(self._view)

    def held(self) -> AbstractContextManager[Any]:
        return self._view.tasks.lock


class Tasks:
    """The open views of a state, and the line of its host.

    The line of the host stands on the head of the state at all times. A task that finds it free works on
    it; once another task's commit is the head, it goes on with a line of its own.

    Args:
        lock: held while any of it is read or changed.
        files: of the state; tasks share them.
        commit: commits what a task did.
        log: commits the entries of a task's run, alone.
        write: commits a change on the line of the host that no task did.
        touched: gives what differs between two commits.
    """

    def __init__(
        self,
        *,
        lock: threading.RLock,
        files: FileSpace,
        commit: Callable[[str, LineView], str | None],
        log: Callable[[str, LineView], str],
        write: Callable[[Change], str],
        touched: Callable[[str | None, str], set[Mark]],
    ) -> None:
        self.lock = lock
        self.files = files
        self.commit = commit
        self.log = log
        self.runs: dict[str, LineView] = {}
        """By the run: the task that carries it on."""
        self.host: Line
        """The line with the changes of the host; it stands on the head."""
        self._write = write
        self._touched = touched
        self._open: list[weakref.ref[LineView]] = []
        """By when they began. One whose call was dropped before it ended goes with it."""

    # -- views -------------------------------------------------------------------------------

    def begin(self, caller: View | None) -> LineView:
        """Return the view of a task that begins now.

        Args:
            caller: the view of the task whose code calls it. They share a line, unless another task
                that was called is at work on it already, or it was refused.
        """
        line: Line | None = None
        if isinstance(caller, LineView) and caller.tasks is self and not caller.is_over:
            *_, innermost = self._on(caller.line)
            line = caller.line if innermost is caller and caller.line.side is None else None
        if line is None:
            line = self.host
            if self._on(line):
                self.commit_of_host()
                line = Line(line.variables.at(self.host.variables.commit))
            line.began = line.variables.commit
        view = LineView(self, line)
        self._open.append(weakref.ref(view))
        return view

    def close(self, view: LineView) -> None:
        """Take note that a task is over."""
        view.is_over = True
        if view.run is not None and self.runs.get(view.run) is view:
            del self.runs[view.run]
        self._open = [one for one in self._open if one() not in (None, view)]
        if not self._on(view.line):
            view.line.variables.release()

    def reopen(self, view: LineView) -> None:
        """Go on with a task that was over, for its caller answered what it asked."""
        if not view.is_over:
            return
        view.is_over = False
        self._open.append(weakref.ref(view))
        base, head = view.line.variables.commit, self.host.variables.commit
        if view.line is not self.host and head is not None and base != head:
            view.line.told(self._touched(base, head))

    def _views(self) -> Iterator[LineView]:
        for one in self._open:
            view = one()
            if view is not None:
                yield view

    def _on(self, line: Line) -> list[LineView]:
        return [view for view in self._views() if view.line is line]

    def is_at_work(self, line: Line) -> bool:
        """Return whether a task is on a line."""
        return bool(self._on(line))

    def lines(self) -> list[Line]:
        """Return the line of the host and those of tasks."""
        return list({id(line): line for line in (self.host, *(view.line for view in self._views()))}.values())

    def require_own(self, view: LineView) -> None:
        """Refuse a task whose run another one carries on.

        Raises:
            StateConflict: another one does.
        """
        if view.run is not None and self.runs.get(view.run) is not view:
            raise StateConflict(
                f"Run {view.run} was resumed somewhere else in this process, which carries it on now. "
                "Nothing was written here."
            )

    def abandon(self, view: LineView) -> None:
        """Drop what a task did since its last commit, and close it; what the host did stays."""
        self.commit_of_host()
        head = self.host.variables.commit
        if view.line is self.host:
            self.part(head)
        view.entries.drop()
        view.line.pending = []
        view.is_acting = False
        self.close(view)
        if not list(self._views()):
            self.files.reset(head)

    def advance(self, old: str | None, new: str) -> None:
        """Let the lines on a commit stand on the next one, which changed no variable."""
        for line in self.lines():
            if line.variables.commit == old:
                line.variables.stand_on(new)

    # -- who changed what --------------------------------------------------------------------

    def note(self, line: Line, name: str, party: LineView | None) -> None:
        """Take note that a party (None: the host) is going to write a variable of a line."""
        for view in self._on(line) if line.variables.is_live(name) else ():
            if view is party or not view.is_acting:
                continue
            value = line.variables[name]
            view.keep_old(name, value)
            if party is None and name not in view.refused and line.variables.is_touched(name):
                view.refused[name] = value  # the task changed it in place, and it is not committed yet
        line.writes.note(name, party)

    def is_alone(self, line: Line) -> bool:
        """Return whether a line is that of the host, and no task is on another one."""
        return line is self.host and all(view.line is line for view in self._views())

    def clash(self, line: Line, marks: set[Mark]) -> set[Mark]:
        """Return the marks others changed too: committed since the line began, or pending of the host."""
        found = overlap(marks, line.others)
        if line is not self.host:
            found |= overlap(marks, self._pending_of_host())
        return {mark for mark in found if not is_import(mark[0])}  # of two imports the later one stays

    def _pending_of_host(self) -> set[Mark]:
        line = self.host
        if self._on(line):
            return {(name,) for name in line.of_host()}
        return line.marks(line.variables.change())

    def tell(self, line: Line, marks: set[Mark], change: Change, commit: str | None) -> None:
        """Pass on to all other lines what a commit of one changed and wrote."""
        for other in self.lines():
            if other is not line and other is not self.host:
                other.told(marks)
        if line is self.host:
            return
        if self._on(self.host):
            self.host.told(marks)
            self.part(commit)
        else:
            self.host.follow(commit, marks, change)

    def part(self, head: str | None) -> None:
        """Leave the line of the host to the tasks on it, and begin another one for the host."""
        self.host = Line(self.host.variables.at(head))

    def moved(self, old: str | None, new: str) -> None:
        """Let the tasks know that the state stands on another commit."""
        lines = {id(view.line): view.line for view in self._views()}
        marks = self._touched(old, new) if lines else set()
        for line in lines.values():
            line.told(marks)

    def commit_of_host(self) -> None:
        """Commit what the host changed, where a task is on its line that soon has one of its own.

        So it is neither that task's change, nor does another task miss it.
        """
        line, head = self.host, self.host.variables.commit
        if not self._on(line):
            return
        is_acting = any(view.is_acting for view in self._on(line))
        names = list(line.of_host())
        change = _while_it_changes(line) if is_acting else line.variables.change()
        marks: set[Mark] = {(name,) for name in names} if is_acting else line.marks(change)
        commit = self._write(change) if change.payloads else head
        if is_acting:
            line.variables.written(commit, change, [name for name in names if line.writes.is_by(name, None)])
            line.given_up()
        else:
            line.variables.committed(commit, change)
        if line.began == head:
            line.began = commit
        self.tell(line, marks if change.payloads else set(), change, commit)


def _while_it_changes(line: Line) -> Change:
    """Return the change of what the host bound, which a task may be changing in place meanwhile."""
    for _ in range(_TRIES):
        try:
            return line.change_of_host()
        except RuntimeError:  # changed in size while it was iterated over
            continue
    raise StateConflict(
        f"A task is changing {', '.join(sorted(line.of_host()))}, which were never committed. Call commit() "
        "before you begin tasks that overlap."
    )
