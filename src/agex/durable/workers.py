"""Workers: processes that carry on the open runs of a store, also those that others began."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agex.agent import AsyncTask, Task
from agex.agent.call.call import Call
from agex.agent.durable.carriers import PLACE_LOST, LeaseLost, RunReleased
from agex.agent.durable.decisions import give_up, leave_idle
from agex.agent.durable.records import RunRecord
from agex.agent.durable.saved_runs import open_runs
from agex.agent.task.resumption import Resumption
from agex.durable.leases import Lease, Leases, Standing
from agex.errors import (
    DefinitionError,
    LLMFail,
    ReplayMismatch,
    StateConflict,
    StateCorrupt,
    StateError,
    TaskClarify,
    TaskSuspended,
)
from agex.isolation.wire.error_codec import WorkerLost
from agex.state import Versioned
from agex.state.commits.branches import is_conflict
from agex.state.kv.store import KVStore

__all__ = ["Report", "Worker"]

What: TypeAlias = Literal["done", "failed", "waits", "open", "released", "lost", "left"]
LONGEST_PAUSE = 300.0
"""Seconds between two tries of a run whose model or store does not answer; the first pause is a second."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One thing that became of a run.

    ``done`` and ``failed`` are ends; ``waits`` for an approval or an answer; ``open`` is tried again later,
    for the model or the store did not answer; ``released``, since the worker stops; ``lost``, for another
    process carries it on; ``left`` alone, for this worker cannot go on with it.
    """

    what: What
    branch: str
    run_id: str = ""
    task: str = ""
    text: str = ""
    """Why."""


class Worker:
    """Carry on the open runs of some tasks in a store, one at a time, each under a lease of its branch.

    A run that was enqueued, approved, or left by a worker is taken at once; one whose worker was lost, when
    the lease has ended; one that some program began without a lease, when its branch has stood still for
    as long as a lease lasts. Any number of workers share a store.

    Args:
        tasks: whose runs it carries on.
        store: ``Disk``, ``PostgresStore``, ``RedisStore`` or another `KVStore`.
        lease: seconds without a renewal after which another worker goes on with what this one had.
        poll: seconds between two looks at a store that has nothing to do.
        attempts: how often a run is taken up at one place, where each time its process is lost; then it has
            failed. A run that comes to something new, or is given back, has as many again.
        on_report: told what becomes of each run.

    Raises:
        DefinitionError: there is no task, two have the same name, or a number is out of range.
    """

    def __init__(
        self,
        tasks: Iterable[Task[..., Any] | AsyncTask[..., Any]],
        store: KVStore,
        *,
        lease: float = 30.0,
        poll: float = 1.0,
        attempts: int = 3,
        on_report: Callable[[Report], None] = lambda report: None,
    ) -> None:
        if type(attempts) is not int or attempts < 1:
            raise DefinitionError(f"attempts={attempts!r} is no number of attempts; give 1 or more.")
        self._attempts = attempts
        self._tasks = _by_name(tasks)
        self._store = store
        self._leases = Leases(store, lease)
        self._journal = store.journal()
        self._poll = poll
        self._on_report = on_report
        self._stopping = threading.Event()
        self._call: Call | None = None
        self._known: dict[str, tuple[str, list[RunRecord]]] = {}
        """By branch: its head, and the open runs there."""
        self._told: set[tuple[str, str]] = set()
        self._pauses: dict[str, float] = {}
        """By the run: how long it is left after a try that led to nothing."""
        self._tried: set[str] = set()

    @property
    def owner(self) -> str:
        """How its leases name it: machine, process, and something of chance."""
        return self._leases.owner

    def stop(self) -> None:
        """Let it end, from any thread or a signal handler.

        A request to a model is given up; guest code and a call to the world are waited for. The run stays
        open, and the next worker goes on with it at once.
        """
        self._stopping.set()
        call = self._call
        if call is not None:
            call.wake()

    def run(self, *, once: bool = False) -> None:
        """Carry runs on until `stop`.

        Args:
            once: end when no run is left that this worker can go on with. It waits for leases that are
                not renewed, as their workers may be lost.

        Raises:
            StateError: the store cannot be reached, with *once*; without, it is tried again.
        """
        while not self._stopping.is_set():
            try:
                went_on, is_pending = self._look_around(once=once)
            except StateError as error:
                if once:
                    raise
                self._tell_once("left", "", text=f"the store: {error}")
                went_on, is_pending = False, True
            if once and not went_on and not is_pending:
                return
            if not went_on:
                self._stopping.wait(self._poll)

    # -- what there is to do -----------------------------------------------------------------

    def _look_around(self, *, once: bool) -> tuple[bool, bool]:
        """Go on with what can be; return whether something was, and whether there may be more soon."""
        went_on = is_pending = False
        heads = [(name, head) for name, head in self._journal.branches().items() if not is_conflict(name)]
        random.shuffle(heads)  # so that workers do not all ask for the same lease
        for branch, head in heads:
            due = [one for one in self._open_runs(branch, head) if self._is_due(one, once=once)]
            if not due or self._stopping.is_set():
                continue
            standing = self._leases.look(branch)
            may_go_on = standing.is_over or any(one.idle for one in due) or self._stood_still(branch, head)
            if standing.is_held or not may_go_on:
                is_pending = is_pending or not (once and standing.is_alive)
                continue
            lease = self._leases.take(branch)
            if lease is None:
                is_pending = True
                continue
            went_on = True
            with lease.renewed(self._wake):
                self._carry_on_branch(branch, lease, standing, once=once)
        return went_on, is_pending

    def _stood_still(self, branch: str, head: str) -> bool:
        return self._leases.unchanged(f"head of {branch}", head) >= self._leases.seconds

    def _open_runs(self, branch: str, head: str) -> list[RunRecord]:
        known = self._known.get(branch)
        if known is None or known[0] != head:
            state = Versioned(self._store, branch=branch)
            records, damaged = open_runs(state)
            for run_id, why in damaged.items():
                self._tell_once("left", branch, run_id, text=why)
            known = self._known[branch] = head, [one for one in records if self._is_ours(one, branch)]
        return known[1]

    def _is_ours(self, record: RunRecord, branch: str) -> bool:
        if record.branch != branch:  # of a fork: it is carried on where it began
            return False
        if (record.agent, record.task) in self._tasks:
            return True
        self._tell_once(
            "left", branch, record.run_id, record.task, "it is of a task that is not defined here"
        )
        return False

    def _is_due(self, record: RunRecord, *, once: bool) -> bool:
        run_id = record.run_id
        if ("left", run_id) in self._told or (once and run_id in self._tried):
            return False
        pause = self._pauses.get(run_id, 0.0)
        return self._leases.unchanged(f"pause of {run_id}", pause) >= pause

    # -- going on ----------------------------------------------------------------------------

    def _carry_on_branch(self, branch: str, lease: Lease, before: Standing, *, once: bool) -> None:
        """Go on with the runs of a branch whose lease is held, one after another."""
        state = Versioned(self._store, branch=branch)
        head = state.head
        for record in open_runs(state)[0]:
            if self._stopping.is_set() or not lease.is_held:
                return
            if not (self._is_ours(record, branch) and self._is_due(record, once=once)):
                continue
            if not (record.idle or before.is_over or (head is not None and self._stood_still(branch, head))):
                continue  # another program may be at it
            self._tried.add(record.run_id)
            if record.attempts < self._attempts:
                self._carry_on(branch, record, lease)
            else:
                self._give_up(branch, record)
            state = Versioned(self._store, branch=branch)

    def _carry_on(self, branch: str, record: RunRecord, lease: Lease) -> None:
        task = self._tasks[record.agent, record.task]
        report: Callable[..., None] = lambda what, why="": self._report(what, branch, record, str(why))  # noqa: E731
        try:
            self._resume(task, branch, record, lease)
        except (TaskSuspended, TaskClarify) as stopped:
            report("waits", stopped)
        except RunReleased as released:
            self._give_back(branch, record, lease)
            report("released", released)
        except (LeaseLost, StateConflict) as conflict:
            report("lost", conflict)
        except (ReplayMismatch, DefinitionError, StateCorrupt) as error:
            self._tell_once("left", branch, record.run_id, record.task, f"{type(error).__name__}: {error}")
        except (LLMFail, *PLACE_LOST, StateError) as error:
            self._pause(record.run_id)
            self._give_back(branch, record, lease, lost=isinstance(error, WorkerLost))
            report("open", f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a run ends with, the worker goes on with others
            report("failed", f"{type(error).__name__}: {error}")
        else:
            report("done")
        finally:
            self._call = None

    def _resume(
        self, task: Task[..., Any] | AsyncTask[..., Any], branch: str, record: RunRecord, lease: Lease
    ) -> None:
        state = Versioned(self._store, branch=branch)
        found = Resumption(task, task.call_options, state, record.run_id, {})
        if not found.goes_on:
            raise StateConflict(f"Run {record.run_id} is {found.saved.record.status} meanwhile.")

        def gate(begins: bool) -> None:
            lease.require()
            if begins and self._stopping.is_set():
                raise RunReleased("The worker stops; the run is left to another one.")

        async def go_on() -> None:
            made = found.invocation(found.saved, asyncio.get_running_loop())
            made.call.gate, self._call = gate, made.call
            await made.arun()

        if isinstance(task, AsyncTask):
            asyncio.run(go_on())
            return
        made = found.invocation(found.saved, None)
        made.call.gate, self._call = gate, made.call
        made.run()

    def _give_back(self, branch: str, record: RunRecord, lease: Lease, *, lost: bool = False) -> None:
        """Note that nobody carries a run on, so that the next worker need not wait to be sure."""
        with suppress(StateError):  # then it waits
            if lease.is_held:
                leave_idle(Versioned(self._store, branch=branch), record.run_id, lost=lost)

    def _give_up(self, branch: str, record: RunRecord) -> None:
        """Let a run have failed that was taken up as often as it may be."""
        message = (
            f"Its process was lost {record.attempts} times at the same place, and it did "
            "nothing new in between: its code may end the process that it runs in. Give the code one of its "
            "own, Agent(isolation='process')."
        )
        try:
            give_up(Versioned(self._store, branch=branch), record.run_id, message)
        except StateConflict as conflict:
            self._report("lost", branch, record, str(conflict))
        else:
            self._report("failed", branch, record, message)

    def _pause(self, run_id: str) -> None:
        last = self._pauses.get(run_id, 0.5)
        self._pauses[run_id] = min(last * 2, LONGEST_PAUSE)

    def _wake(self) -> None:
        call = self._call
        if call is not None:
            call.wake()

    # -- telling -----------------------------------------------------------------------------

    def _report(self, what: What, branch: str, record: RunRecord, text: str) -> None:
        self._on_report(Report(what=what, branch=branch, run_id=record.run_id, task=record.task, text=text))

    def _tell_once(self, what: What, branch: str, run_id: str = "", task: str = "", text: str = "") -> None:
        key = (what, run_id or text)
        if key not in self._told:
            self._told.add(key)
            self._on_report(Report(what=what, branch=branch, run_id=run_id, task=task, text=text))


def _by_name(tasks: Iterable[Any]) -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {}
    for task in tasks:
        if not isinstance(task, Task | AsyncTask):
            raise DefinitionError(f"{task!r} is not a task; decorate the function with @agent.task.")
        key = (task.agent.name, task.__name__)
        if found.setdefault(key, task) is not task:
            raise DefinitionError(
                f"Two tasks are called {'.'.join(key)}, and a run knows its task by that: name the agents, "
                "Agent(name=...)."
            )
    if not found:
        raise DefinitionError("A worker needs a task whose runs it carries on.")
    return found
