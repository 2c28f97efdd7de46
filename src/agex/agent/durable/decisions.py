"""A person's decision about a call that waits, or answer to a question, without the program of the task.

It is written into the state. The run goes on with it when its task is resumed, in whatever process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agex.agent.durable.records import RunRecord, known_call, read_record, written
from agex.errors import StateConflict, StateCorrupt, StateError
from agex.models.surrogates import encodable

__all__ = ["WaitingRun", "answer", "decide", "give_up", "leave_idle", "waiting_runs"]


@dataclass(frozen=True, kw_only=True)
class WaitingRun:
    """A run that waits for approval of a call, or for the answer to a question."""

    run_id: str
    task: str
    call: str = ""
    """The id of the call that it waits to make, or of its question; empty where it cannot be read here."""
    text: str
    """The call, as it is shown, or the question."""
    asks: bool = False
    """Whether it is a question."""
    source: str = ""
    """The line of the agent's code that makes the call."""


def waiting_runs(state: Any) -> Iterator[WaitingRun]:
    """Yield the runs of a state that wait for approval, or for an answer.

    Raises:
        StateCorrupt: the record of a run is damaged.
    """
    for run_id in state.entry_keys():
        if "/" in run_id:
            continue
        record = read_record(RunRecord, state.entry(run_id), run_id)
        if record.status == "suspended":
            yield _waiting(state, record)
        elif record.status == "asking":
            asked = _question_id(record)
            yield WaitingRun(run_id=run_id, task=record.task, call=asked, text=record.question, asks=True)


def _waiting(state: Any, record: RunRecord) -> WaitingRun:
    key = _call_key(record)
    try:
        call = known_call(state.entry(key), key)[1].record
    except StateCorrupt as error:  # or of classes that only the program of the task has
        text = f"a call that cannot be read here, decide it with agex resume: {error}"
        return WaitingRun(run_id=record.run_id, task=record.task, text=text)
    return WaitingRun(
        run_id=record.run_id,
        task=record.task,
        call=f"{record.run_id}/{record.call}",
        text=call.text,
        source=call.source,
    )


def decide(state: Any, run_id: str, call: str, *, rejected: str | None = None) -> None:
    """Let a call be made when its run is resumed, or not be made.

    Args:
        state: a ``Versioned`` state that nobody else uses.
        run_id: the run.
        call: the id of the call, as the person saw it.
        rejected: why it may not be made; None where it may.

    Raises:
        StateError: the run is not there, waits no more, or waits for another call.
        StateConflict: another writer was faster. Nothing was written.
    """
    view = state.view()
    log = view.log
    try:
        log.claim(run_id)
        entry = log.read(run_id) if "/" not in run_id else None
        if entry is None:
            raise StateError(f"There is no run {run_id!r} in this state.")
        record = read_record(RunRecord, entry, run_id)
        if record.status != "suspended":
            raise StateConflict(f"Run {run_id} waits for no approval any more: it is {record.status}.")
        key = _call_key(record)
        _, known = known_call(log.read(key), key)
        if call != f"{run_id}/{record.call}":
            raise StateConflict(f"Run {run_id} waits for another call now: {known.record.text}.")
        word = "approved" if rejected is None else "rejected"
        made = known.record.model_copy(update={"state": word, "reason": encodable(rejected or "")})
        log.put(key, written(made, **known.values))
        log.put(run_id, written(record.model_copy(update={"status": "open", "idle": True, "call": ""})))
        log.write(f"{record.task}: {known.record.name} is {word}")
    finally:
        log.abandon()


def answer(state: Any, run_id: str, question: str, text: str) -> None:
    """Answer the question of a run: it goes on with that when it is resumed.

    Args:
        state: a ``Versioned`` state that nobody else uses.
        run_id: the run.
        question: the id of the question, as the person saw it.
        text: the answer.

    Raises:
        StateError: the run is not there, asks no more, or asks something else; or the answer is empty.
        StateConflict: another writer was faster. Nothing was written.
    """
    if not text.strip():
        raise StateError("The answer is empty.")
    log = state.view().log
    try:
        log.claim(run_id)
        entry = log.read(run_id) if "/" not in run_id else None
        if entry is None:
            raise StateError(f"There is no run {run_id!r} in this state.")
        record = read_record(RunRecord, entry, run_id)
        if record.status != "asking":
            raise StateConflict(f"Run {run_id} asks nothing any more: it is {record.status}.")
        if question != _question_id(record):
            raise StateConflict(f"Run {run_id} asks something else now: {record.question}")
        told = {"status": "open", "idle": True, "question": "", "answer": encodable(text)}
        log.put(run_id, written(record.model_copy(update=told)))
        log.write(f"{record.task}: is answered")
    finally:
        log.abandon()


def leave_idle(state: Any, run_id: str, *, lost: bool = False) -> None:
    """Note that nobody carries an open run on.

    Args:
        state: a ``Versioned`` state that nobody else uses.
        run_id: the run; one that is not open stays as it is.
        lost: whether the place where its code ran was lost, so that the attempt counts.

    Raises:
        StateError: the run is not there, or the state cannot be written.
    """
    log = state.view().log
    try:
        log.claim(run_id)
        record = read_record(RunRecord, log.read(run_id), run_id)
        left = record.model_copy(update={"idle": True, "attempts": record.attempts if lost else 0})
        if record.status == "open" and left != record:
            log.put(run_id, written(left))
            log.write(f"{record.task}: is left")
    finally:
        log.abandon()


def give_up(state: Any, run_id: str, message: str) -> None:
    """Let an open run have failed, without a further step.

    Raises:
        StateError: the run is not there, or the state cannot be written.
        StateConflict: it is not open any more, or another writer was faster. Nothing was written.
    """
    log = state.view().log
    try:
        log.claim(run_id)
        record = read_record(RunRecord, log.read(run_id), run_id)
        if record.status != "open":
            raise StateConflict(f"Run {run_id} is {record.status} meanwhile.")
        failed = {"status": "failed", "idle": False, "message": message, "unkept": {}}
        log.put(run_id, written(record.model_copy(update=failed)))
        log.write(f"{record.task}: is given up")
    finally:
        log.abandon()


def _question_id(record: RunRecord) -> str:
    return f"{record.run_id}/question/{record.waits}"


def _call_key(record: RunRecord) -> str:
    return f"{record.run_id}/call/{record.call}"
