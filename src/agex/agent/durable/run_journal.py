"""The journal of one run: where it stands, and its calls of external functions.

A call is at a place: the turn, the action in it, the number of the call in that action. A run that is
resumed runs its half-done action again; the call at a place where one is recorded is not made, its result is
given back. Each call costs two commits of the state, one before it and one after.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from agex.agent.call.budget import Ledger
from agex.agent.durable.differences import mismatch, rejected, unrecorded
from agex.agent.durable.host_calls import HostCall
from agex.agent.durable.records import (
    CallRecord,
    CallState,
    ExchangeRecord,
    KnownCall,
    MeansRecord,
    MessageRecord,
    ObservationRecord,
    OpeningRecord,
    ReplyRecord,
    RunRecord,
    Status,
    TurnRecord,
    UsageRecord,
    known_call,
    read_record,
    written,
)
from agex.agent.loop.loop import Observation, Progress
from agex.contract import same_value
from agex.errors import CallInDoubt, CallRejected, StateConflict
from agex.models.actions import Action, PythonAction
from agex.models.base import Message, Reply

if TYPE_CHECKING:
    from agex.state.working.view import RunLog

__all__ = ["GIVEN", "Answer", "KnownCall", "Made", "RunJournal", "Saved", "Waits"]


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A run as a state has it."""

    record: RunRecord
    means: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    opening: tuple[Message, ...] = ()
    progress: Progress | None = None
    exchanges: tuple[ExchangeRecord, ...] = ()
    calls: Mapping[str, KnownCall] = field(default_factory=dict)
    value: Any = None
    has_value: bool = False

    def waiting(self) -> HostCall | None:
        """Return the call that waits for approval."""
        known = self.calls.get(self.record.call)
        return None if known is None else _as_call(self.record.run_id, known)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a run that waits, as it is written."""

    text: str = ""
    """To its question."""
    approved: HostCall | None = None
    """The call that may be made, with its arguments."""
    rejected: str | None = None
    """Why the call may not be made."""


@dataclass(frozen=True)
class Made:
    """The outcome of a call that is not made now, or the call that is."""

    wanted: HostCall
    """As guest code asked for it."""
    call: HostCall
    """As it was approved."""
    key: str
    result: Any = None
    is_over: bool = False
    out: str = ""
    """The text that it printed then."""


class Steps(Protocol):
    """The journal of another engine, in the place of a state's."""

    def admit(
        self, wanted: HostCall, key: str, *, repeats: bool, decide: Callable[[], Answer | None]
    ) -> Made: ...

    def over(self, made: Made, state: CallState, outcome: Mapping[str, Any], out: str) -> None: ...


class RunJournal:
    """The record of a run in a state; in memory only where the state keeps none.

    Args:
        record: where the run stands.
        log: of the state; None for none.
        ledger: what the run spends.
        means: the things that its code may use.
        inputs: its inputs by name.
        names: returns the variables of the agent's code.
        saved: what the state has of it, for a run that goes on.
        again: the calls of a run that is replayed: no other one is made.
    """

    def __init__(
        self,
        record: RunRecord,
        *,
        log: RunLog | None,
        ledger: Ledger,
        means: dict[str, str],
        inputs: Mapping[str, Any],
        names: Callable[[], Mapping[str, Any]],
        saved: Saved | None = None,
        again: Mapping[str, KnownCall] | None = None,
    ) -> None:
        self.record = record
        self._is_replay = again is not None
        self._log = log
        self._ledger = ledger
        self._inputs = inputs
        self._names = names
        self._known = dict(saved.calls if saved is not None else again or {})
        self._progress = saved.progress if saved is not None else None
        self._exchanges = list(saved.exchanges) if saved is not None else []
        self._unwritten = len(self._exchanges)
        """From here on exchanges are not in the state."""
        self._means = means if saved is None else None
        self._opening: tuple[Message, ...] | None = None
        self._rebound: set[str] = set(record.rebound)
        self._action = ""
        self._number = 0
        self._source: tuple[str, ...] = ()
        self._is_staged = False
        self._is_in_doubt = False
        """Whether a call of the action was, so that the code need not come to those after it."""
        self._lock = threading.RLock()
        self.steps: Steps | None = None
        """Of another engine, which keeps the calls."""

    @property
    def is_durable(self) -> bool:
        """Whether the run outlives this process."""
        return self._log is not None

    def _key(self, *parts: str) -> str:
        return "/".join((self.record.run_id, *parts))

    # -- told by the driver ------------------------------------------------------------------

    def begin_action(self, action: Action, turn: int, progress: Progress | None) -> None:
        """Take note that an action begins."""
        self._progress = progress
        number = 0 if progress is None else len(progress.seen) + 1
        self._action, self._number = f"{turn:04}.{number:02}", 0
        self._source = tuple(action.code.splitlines()) if isinstance(action, PythonAction) else ()
        self._is_staged = self._is_in_doubt = False
        self._update(turn=turn)

    def end_action(self) -> None:
        """Take note that an action is over.

        Raises:
            ReplayMismatch: when it ran before, it made more calls.
        """
        left = self._left()
        if left and not self._is_in_doubt:
            raise mismatch(left[0], "the end of the action")

    @property
    def made(self) -> int:
        """How many calls the action has come to."""
        return self._number

    def rewind(self, after: int = 0) -> bool:
        """Let an action be run again after its first calls, with the results of the others given back.

        Returns:
            False where it made no call, or they are not kept: then there is nothing to be given back.
        """
        if self._log is None:
            return False
        keys = self._log.keys(self._key("call", f"{self._action}."))
        self._known.update(known_call(self._log.read(key), key) for key in keys)
        self._number, self._is_in_doubt = after, False
        return bool(keys)

    def made_calls(self) -> list[str]:
        """Return the calls of the action that were made, or may have been, as they are shown."""
        log = self._log
        keys = [] if log is None else log.keys(self._key("call", f"{self._action}."))
        found = [known_call(log.read(key), key)[1].record for key in keys] if log is not None else []
        return [record.text for record in found if record.state in ("begun", "returned", "raised")]

    def _left(self) -> list[CallRecord]:
        """Return the recorded calls of the action that it did not come to yet."""
        keys = sorted(key for key in self._known if key.rpartition(".")[0] == self._action)
        return [self._known[key].record for key in keys[self._number :]]

    def advance(self, turn: int, progress: Progress | None) -> None:
        """Take note of what an action did: it is committed next."""
        self._progress = progress
        self._update(turn=turn)

    def opened(self, messages: Iterable[Message], setup_shown: str) -> None:
        """Take note of what the conversation began with."""
        self._opening = tuple(messages)
        if self._log is not None and self._inputs:
            self._log.put(self._key(GIVEN), _named(self._inputs))
        self._update(setup_shown=setup_shown)

    def set_up(self, shown: str) -> None:
        """Take note that the setup code was run."""
        self._update(setup_shown=shown)

    def exchanged(self, reply: Reply, shown: Observation) -> None:
        """Take note that a turn is over."""
        record = ExchangeRecord(reply=ReplyRecord.of(reply), shown=ObservationRecord.of(shown))
        self._exchanges.append(record)
        self._progress = None

    def _update(self, **fields: Any) -> None:
        self.record = self.record.model_copy(update=fields)

    # -- the record in the state -------------------------------------------------------------

    def stage(self) -> None:
        """Let the next commit hold where the run stands, between two actions."""
        if self._log is None:
            return
        self._stage_inputs()
        self._stage_turns()

    def _stage_inputs(self) -> None:
        """Put the inputs, never in an action: it is run again from its beginning, and so are they."""
        assert self._log is not None
        names = self._names()
        self._rebound |= {name for name, value in self._inputs.items() if names.get(name, _NONE) is not value}
        lost = self._log.put(self._key("inputs"), _named(self._inputs)) if self._inputs else ()
        unkept = {name: why for name in self._inputs if (why := _why(lost, f"entry['{_INPUT}{name}']"))}
        self._update(rebound=tuple(sorted(self._rebound)), unkept=unkept)

    def _stage_turns(self) -> None:
        assert self._log is not None
        self._put_record()
        if self._means is not None:
            self._log.put(self._key("means"), written(MeansRecord(means=self._means)))
            self._means = None
        if self._opening is not None:
            opening = OpeningRecord(messages=tuple(map(MessageRecord.of, self._opening)))
            self._log.put(self._key("opening"), written(opening))
            self._opening = None
        for number in range(self._unwritten, len(self._exchanges)):
            self._log.put(self._key("exchange", f"{number:04}"), written(self._exchanges[number]))
        self._unwritten = len(self._exchanges)
        if self._progress is not None:
            self._log.put(self._key("turn"), written(TurnRecord.of(self._progress)))
        elif self._log.keys(self._key("turn")):
            self._log.remove(self._key("turn"))

    def _put_record(self, **values: Any) -> tuple[Any, ...]:
        assert self._log is not None
        self._update(used=UsageRecord.of(self._ledger.used), seconds=self._ledger.seconds)
        return self._log.put(self.record.run_id, written(self.record, **values))

    def claim(self) -> None:
        """Be the one that carries the run on.

        Raises:
            StateConflict: it is not where it was when it was read.
        """
        if self._log is None:
            return
        self._log.claim(self.record.run_id)
        run_id = self.record.run_id
        entry = self._log.read(run_id)
        if entry is not None and read_record(RunRecord, entry, run_id) != self.record:
            raise StateConflict(
                f"Run {self.record.run_id} was carried on meanwhile: it is not where it was when this one "
                "was read. Nothing was written."
            )

    def take(self, answer: Answer | None, *, last_turn: int, branch: str = "") -> None:
        """Write that the run goes on, with the answer to what it waits for.

        Raises:
            StateConflict: somebody else carries it on.
        """
        self.claim()
        if answer is not None and answer.text and self._exchanges:
            last = len(self._exchanges) - 1
            self._exchanges[last] = self._exchanges[last].model_copy(update={"answer": answer.text})
            self._unwritten = min(self._unwritten, last)
        known = self._known.get(self.record.call)
        if answer is not None and known is not None:
            self._decide(known, answer)
        attempts = self.record.attempts + 1 if answer is None else 0
        self._update(
            status="open",
            idle=False,
            branch=branch,
            call="",
            question="",
            answer="",
            last_turn=last_turn,
            attempts=attempts,
        )
        if self._log is not None:
            self.stage()
            self._log.write(f"{self.record.task}: goes on")
        self._update(attempts=0)  # as any further commit says

    def _decide(self, known: KnownCall, answer: Answer) -> None:
        state: CallState = "approved" if answer.rejected is None else "rejected"
        values = dict(known.values)
        if answer.approved is not None:
            values["approved"] = (answer.approved.args, dict(answer.approved.kwargs))
        record = known.record.model_copy(update={"state": state, "reason": answer.rejected or ""})
        self._known[record.key] = KnownCall(record, values)
        self._put(record, values)

    def finish(self, status: Status, *, value: Any = None, message: str = "") -> None:
        """Let the next commit hold how the run ended, or what it waits for."""
        if self._log is None:
            return
        question = message if status == "asking" else ""
        waits = self.record.waits + (status == "asking")
        message = "" if question else message
        idle = status == "open"
        self._update(status=status, idle=idle, question=question, message=message, waits=waits)
        if status in ("asking", "open"):
            self.stage()
            return
        for key in self._log.keys(self._key("")):
            if key != self._key(GIVEN):
                self._log.remove(key)
        self._update(unkept={}, call="")
        lost = self._put_record(**({"value": value} if status == "done" else {}))
        if lost:
            self._update(unkept={"value": f"{lost[0].type}: {lost[0].reason}"})
            self._put_record()

    # -- calls -------------------------------------------------------------------------------

    def admit(
        self,
        call: Callable[[str], HostCall],
        *,
        repeats: bool,
        needs_approval: Callable[[HostCall], bool],
        decide: Callable[[HostCall], Answer | None],
    ) -> Made:
        """Return the recorded outcome of the next call, or journal that it is made now.

        Args:
            call: the call, by its id.
            repeats: whether a call in doubt is made again.
            needs_approval: whether a person has to say yes.
            decide: answers in place; None where nobody does.

        Raises:
            ReplayMismatch: another call is recorded here.
            CallInDoubt, CallRejected: for guest code.
            Waits: the run stops for an answer.
            StateError: it could not be written; the call must not be made.
        """
        with self._lock:
            self._number += 1
            key = f"{self._action}.{self._number:04}"
        wanted = call(f"{self.record.run_id}/{key}")
        if self.steps is not None:
            answer = lambda: decide(wanted) if needs_approval(wanted) else None  # noqa: E731
            return self.steps.admit(wanted, key, repeats=repeats, decide=answer)
        known = self._known.get(key)
        if known is not None:
            return self._again(key, wanted, known, repeats=repeats, decide=decide)
        if self._is_replay:
            raise unrecorded(self.record.turn, wanted)
        if needs_approval(wanted):
            return self._asked(key, wanted, decide)
        self._write(key, wanted, "begun", {})
        return Made(wanted, wanted, key)

    def _asked(self, key: str, wanted: HostCall, decide: Callable[[HostCall], Answer | None]) -> Made:
        answer = decide(wanted)
        if answer is None:
            self._suspend(key, wanted)
            raise Waits(wanted)
        if answer.rejected is not None:
            self._write(key, wanted, "rejected", {}, reason=answer.rejected)
            raise CallRejected(rejected(wanted, answer.rejected))
        given = answer.approved or wanted
        self._write(key, wanted, "begun", {"approved": (given.args, dict(given.kwargs))})
        return Made(wanted, given, key)

    def _again(
        self,
        key: str,
        wanted: HostCall,
        known: KnownCall,
        *,
        repeats: bool,
        decide: Callable[[HostCall], Answer | None],
    ) -> Made:
        record = known.record
        if record.name != wanted.name or not self._is_same(wanted, known):
            raise mismatch(record, str(wanted))
        call = _with_approved(wanted, known)
        match record.state:
            case "asked":
                return self._asked(key, wanted, decide)
            case "rejected":
                raise CallRejected(rejected(wanted, record.reason))
            case "approved":
                self._write(key, wanted, "begun", {"approved": (call.args, dict(call.kwargs))})
                return Made(wanted, call, key)
            case "begun" if repeats:
                return Made(wanted, call, key)
            case "begun":
                raise self._in_doubt(
                    f"{record.text} was begun before the process ended, and its result is not known: it may "
                    "have been made. Find out whether it was before you call it again."
                )
            case _:
                pass
        if record.reason:
            raise self._in_doubt(
                f"{record.text} was made, but its result could not be kept: {record.reason}."
            )
        if record.state == "raised":
            error = known.values.get("error")
            raise error if isinstance(error, Exception) else self._in_doubt(f"{record.text} raised an error.")
        return Made(wanted, call, key, known.values.get("result"), is_over=True, out=record.out)

    def _in_doubt(self, message: str) -> CallInDoubt:
        """Return the error for guest code, which also names the calls that were made after that one."""
        self._is_in_doubt = True
        later = "; ".join(record.text for record in self._left())
        return CallInDoubt(f"{message} Calls that this code made after it: {later}." if later else message)

    def _is_same(self, wanted: HostCall, known: KnownCall) -> bool:
        was = (known.values.get("args"), known.values.get("kwargs"))
        now = (wanted.args, dict(wanted.kwargs))
        if self._log is not None and self._log.is_same(was, now):
            return True
        try:
            return same_value(was, now)
        except Exception:  # noqa: BLE001 - objects that cannot be compared are not the same
            return False

    def returned(self, made: Made, result: Any, out: str = "") -> None:
        """Journal the result of a call and the text that it printed, before guest code sees it."""
        self._over(made, "returned", {"result": result}, out)

    def raised(self, made: Made, error: Exception) -> None:
        """Journal the error that a call raised, before guest code sees it."""
        self._over(made, "raised", {"error": error})

    def _over(self, made: Made, state: CallState, outcome: dict[str, Any], out: str = "") -> None:
        if made.call is not made.wanted:
            outcome["approved"] = (made.call.args, dict(made.call.kwargs))
        if self.steps is not None:
            self.steps.over(made, state, outcome, out)
            return
        self._write(made.key, made.wanted, state, outcome, last=True, out=out)

    def _suspend(self, key: str, call: HostCall) -> None:
        if self._log is None:
            return
        self._update(status="suspended", call=key, waits=self.record.waits + 1)
        self._is_staged = False
        self._write(key, call, "asked", {})

    def _write(
        self,
        key: str,
        call: HostCall,
        state: CallState,
        values: dict[str, Any],
        *,
        reason: str = "",
        last: bool = False,
        out: str = "",
    ) -> None:
        """Journal a call, with where the run stands if this action has not written that yet."""
        record = CallRecord(
            key=key,
            name=call.name,
            turn=self.record.turn,
            state=state,
            text=str(call),
            line=call.line,
            source=call.source,
            reason=reason,
            out=out,
        )
        if self._log is None:
            return
        with self._lock:
            if not self._is_staged and not last:
                self._stage_turns()
                self._is_staged = True
            lost = self._put(record, {"args": call.args, "kwargs": dict(call.kwargs), **values})
            outcome = _why(lost, "entry['result']") or _why(lost, "entry['error']")
            if outcome:
                unkept = record.model_copy(update={"reason": outcome})
                self._put(unkept, {"args": call.args, "kwargs": dict(call.kwargs)})
            self._log.write(f"{self.record.task}: turn {record.turn}, {call.name} {_SAID[state]}")

    def _put(self, record: CallRecord, values: Mapping[str, Any]) -> tuple[Any, ...]:
        assert self._log is not None
        return self._log.put(self._key("call", record.key), written(record, **values))

    def line_of(self, number: int | None) -> str:
        """Return the text of a line of the action."""
        return self._source[number - 1].strip() if number and number <= len(self._source) else ""


class Waits(Exception):
    """A call waits for approval."""

    def __init__(self, call: HostCall) -> None:
        super().__init__(call)
        self.call = call


GIVEN = "given"
"""The entry with the inputs as they were given, from which a run can be replayed."""
_NONE: Any = object()
_INPUT = "="
"""How an input's name begins in the entry: no name of the record's own."""
_SAID = {
    "begun": "begins",
    "returned": "is over",
    "raised": "failed",
    "asked": "waits for approval",
    "approved": "is approved",
    "rejected": "is rejected",
}


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{_INPUT}{name}": value for name, value in values.items()}


def _why(lost: Iterable[Any], path: str) -> str:
    """Return why a part of an entry could not be kept; empty where it was."""
    found = (one for one in lost if one.path == path or one.path.startswith((f"{path}[", f"{path}.")))
    return next((f"{one.type}: {one.reason}" for one in found), "")


def _as_call(run_id: str, known: KnownCall) -> HostCall:
    args, kwargs = known.values.get("args"), known.values.get("kwargs")
    return HostCall(
        id=f"{run_id}/{known.record.key}",
        name=known.record.name,
        args=args if type(args) is tuple else (),
        kwargs=kwargs if type(kwargs) is dict else {},
        line=known.record.line,
        source=known.record.source,
    )


def _with_approved(call: HostCall, known: KnownCall) -> HostCall:
    match known.values.get("approved"):
        case (tuple() as args, dict() as kwargs):
            return replace(call, args=args, kwargs=kwargs)
        case _:
            return call
