"""Replay: each use of the host, and each request to a model, is answered from the tape, in its order.

Nothing of the host is called. The first difference ends the run. A request that differs is not told at once:
the code of its answer is run first, for a call that differs says more, with its line.
"""

from __future__ import annotations

import difflib
import hashlib
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agex.agent.loop.loop import Ask
from agex.agent.registration import Registration
from agex.agent.tape.records import (
    AnswerLine,
    CallLine,
    ClockLine,
    EndLine,
    Entry,
    MessageLine,
    ModelRecord,
    ValueRecord,
)
from agex.agent.tape.redaction import is_same, matches
from agex.agent.tape.tape_codec import described
from agex.agent.tape.tape_file import Recorded, read_tape
from agex.agent.tape.taped_run import Asked, Begins, TapedRun
from agex.contract import preview
from agex.errors import ReplayMismatch, TapeError
from agex.isolation.wire.error_codec import ProtocolError, unpack_error
from agex.models.base import Message, Model, ModelError, OnText, Reply, Request
from agex.sandbox.host_names import named

__all__ = ["Player", "ReplayedRun"]

_SHOWN_LINES = 12
"""Of the difference between two requests."""


class Player:
    """A tape that is replayed.

    Args:
        path: of the tape.

    Raises:
        TapeError: it is no tape.
        OSError: it is not there, or no regular file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._left, self.messages = read_tape(path)
        self._lock = threading.Lock()

    def begin(self, begins: Begins) -> ReplayedRun:
        """Return the run of the tape that begins now: of the task, and with the same inputs if one has them.

        Raises:
            ReplayMismatch: the tape has no such run.
            TapeError: it began with other registrations.
        """
        parent = None if begins.parent is None else begins.parent.number
        with self._lock:
            found = [
                one
                for one in self._left
                if (one.head.agent, one.head.task, one.head.parent, one.head.sample)
                == (begins.agent, begins.task, parent, begins.sample)
            ]
            if not found:
                rest = ", ".join(f"{one.head.agent}.{one.head.task}" for one in self._left) or "none"
                got = f"{begins.agent}.{begins.task}"
                raise ReplayMismatch(f"The tape has no further run of {got}. Left on it: {rest}.", rest, got)
            recorded = found[0]
            if len(found) > 1:
                recorded = next((one for one in found if _has_inputs(one, begins)), recorded)
            self._left.remove(recorded)
        return ReplayedRun(self, recorded, begins)

    def require_over(self) -> None:
        """Refuse to leave runs of the tape behind.

        Raises:
            ReplayMismatch: a run was not replayed.
        """
        if self._left:
            rest = ", ".join(f"{one.head.agent}.{one.head.task}" for one in self._left)
            raise ReplayMismatch(f"The tape has runs that were not replayed: {rest}.", rest, "the end")


def _has_inputs(one: Recorded, begins: Begins) -> bool:
    """Return whether the plain inputs of a run are those on the tape."""
    return all(
        record.masked or record.stream is not None or is_same(record.plain, begins.inputs.get(name))
        for name, record in one.head.inputs.items()
    )


class _TapedModel(Model):
    """A model whose answers are on the tape."""

    def __init__(self, record: ModelRecord, place: int, run: ReplayedRun) -> None:
        self.name, self.provider, self.profile = record.name, record.provider, record.profile()
        self._place = place
        self._run = run

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the recorded answer."""
        reply = self._run.answer(self._place, request)
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply


class ReplayedRun(TapedRun):
    """A run that is replayed."""

    is_replay = True

    def __init__(self, tape: Player, recorded: Recorded, begins: Begins) -> None:
        super().__init__(recorded.head.run, begins, recorded.head.seed)
        head = recorded.head
        _require_same_means(head.means, begins.means)
        self._tape = tape
        self._head = head
        self._entries = recorded.entries
        self._is_taken = [False] * len(recorded.entries)
        self._at = 0
        self._lock = threading.Lock()
        self._late: ReplayMismatch | None = None
        """A difference that is told where no call differs first."""
        self._is_told = False
        """Whether code of an answer was run since."""
        missing = [one.name for one in self.staying if one.name not in head.objects]
        if missing:
            raise TapeError(f"The tape does not describe {', '.join(missing)}, which is registered.")
        self._give_out({name: described(about) for name, about in head.objects.items()})
        self._models = tuple(_TapedModel(one, place, self) for place, one in enumerate(head.models))
        if not self._models:
            raise TapeError("The tape names no model of its run.")
        self._inputs = {name: self._input(name, value) for name, value in begins.inputs.items()}

    @property
    def models(self) -> tuple[Model, ...]:
        return self._models

    def tried(self, code: str | None) -> str | None:
        return self._head.kept_code

    @property
    def inputs(self) -> dict[str, Any]:
        return self._inputs

    def _input(self, name: str, value: Any) -> Any:
        record = self._head.inputs.get(name)
        if record is None:
            self._differs_late(f"no input {name!r}", f"an input {name!r}")
            return value
        if record.masked:
            return value
        if record.stream is not None and self.codec.has_objects(record):
            return self.codec.for_guest(record)
        try:
            now, _ = self.codec.of_guest(value, f"The input {name!r}")
            is_known = self._is_same(record, now)
        except TapeError:
            is_known = False
        if not is_known:
            self._differs_late(f"{name}={self.shown(record)}", f"{name}={preview(value, 200)}")
        return value

    def _differs_late(self, expected: str, got: str) -> None:
        if self._late is None:
            self._late = self.mismatch(expected, got)

    def _is_same(self, record: ValueRecord, now: ValueRecord) -> bool:
        if record.masked or record == now:
            return True
        return is_same(self.codec.by_names(record), self.codec.by_names(now))

    # -- the order of the tape ---------------------------------------------------------------

    def _take(self, fits: Callable[[Entry], bool], got: str) -> Entry:
        """Return the next entry, which is to fit; among calls that overlap, the first that fits.

        Raises:
            ReplayMismatch: it does not.
        """
        with self._lock:
            first = self._first()
            place = first
            while place < len(self._entries):
                entry = self._entries[place]
                if not self._is_taken[place] and fits(entry):
                    self._is_taken[place] = True
                    return entry
                if not self._is_taken[place] and not (isinstance(entry, CallLine) and entry.concurrent):
                    break
                place += 1
            expected = self._entries[first] if first < len(self._entries) else None
        raise self._differs(expected, got)

    def _first(self) -> int:
        while self._at < len(self._entries) and self._is_taken[self._at]:
            self._at += 1
        return self._at

    def _differs(self, expected: Entry | None, got: str) -> ReplayMismatch:
        line = expected if isinstance(expected, CallLine) else None
        found = self.mismatch(_shown(expected), got, line)
        if self._late is None:
            return found
        late, self._late = self._late, None
        return ReplayMismatch(
            f"{found}\nBefore that, the run was already another one: {late}",
            found.expected,
            found.got,
            turn=found.turn,
            line=found.line,
        )

    def _require_no_late(self) -> None:
        if self._late is not None:
            raise self._late

    # -- the model ---------------------------------------------------------------------------

    def answer(self, model: int, request: Request) -> Reply:
        """Return the recorded answer to a request.

        Raises:
            ReplayMismatch: another thing comes next.
            ModelError: as the model did.
        """
        if self._is_told:
            self._require_no_late()
        entry = self._take(lambda each: isinstance(each, AnswerLine), f"a request to model {model}")
        assert isinstance(entry, AnswerLine)
        self._compare(entry, model, request)
        self._is_told = self._late is not None
        if entry.error is not None:
            raise entry.error.error()
        if entry.reply is None:
            raise TapeError(f"The tape has no answer to the request of turn {entry.turn}.")
        return entry.reply.reply()

    def _compare(self, entry: AnswerLine, model: int, request: Request) -> None:
        asked = (entry.model, entry.actions, entry.attempt, entry.prefill)
        now = (model, request.actions, request.attempt, request.prefill)
        if asked != now:
            self._differs_late(f"a request with {asked}", f"one with {now}")
            return
        recorded = [self._tape.messages.get(number) for number in entry.messages]
        pairs = zip(recorded, request.messages, strict=False)
        is_known = len(recorded) == len(request.messages) and all(_is_message(*pair) for pair in pairs)
        if not is_known:
            self._differs_late(*_difference(recorded, request.messages))

    def answered(self, ask: Ask, answer: Reply | ModelError) -> None:
        pass

    def received(self, value: Any) -> Any:
        try:
            _, has_objects = self.codec.of_guest(value, "the value")
        except TapeError:
            return value
        if not has_objects:
            return value
        end = next((each for each in self._entries if isinstance(each, EndLine)), None)
        if end is None or end.value is None:
            raise TapeError(f"The value of {self.begins.task} is a live object, which no tape can hold.")
        return self.codec.decoded(end.value, self.codec.plain_side())

    def ended(self, *, value: Any = None, error: BaseException | None = None) -> None:
        self._require_no_late()
        status = "done" if error is None else type(error).__name__
        text = preview(value, 200) if error is None else str(error)
        got = f"the end: {status}, {text}"
        entry = self._take(lambda each: isinstance(each, EndLine) and each.status == status, got)
        assert isinstance(entry, EndLine)
        if error is None and entry.value is not None:
            try:
                now, _ = self.codec.of_guest(value, "the value")
                is_known = self._is_same(entry.value, now)
            except TapeError:
                is_known = False
            if not is_known:
                raise self._differs(entry, got)
        elif error is not None and not matches(entry.text, text[: len(entry.text)]):
            raise self._differs(entry, got)

    # -- uses of the host --------------------------------------------------------------------

    def owner(self, of: int | str) -> str:
        if isinstance(of, str):
            return of
        known = self.stubs.known(of)
        return f"object {of}" if known is None else f"{type(known).__name__}#{of}"

    def use(self, asked: Asked) -> Any:
        return self._replayed(asked)

    def call_function(self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self._replayed(self._asked(one, args, kwargs))

    async def acall_function(
        self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        return self._replayed(self._asked(one, args, kwargs))

    def _replayed(self, asked: Asked) -> Any:
        with self.stopping():
            args = tuple(self._now(each) for each in asked.args)
            kwargs = {name: self._now(each) for name, each in asked.kwargs.items()}
            entry = self._take(
                lambda each: isinstance(each, CallLine) and self._is_call(each, asked, args, kwargs),
                self.text_of(asked, args, kwargs),
            )
            assert isinstance(entry, CallLine)
            if entry.out:
                sys.stdout.write(entry.out)
            if entry.error is not None:
                error = self._error(entry.error)
            elif entry.result is None:
                raise TapeError(f"The tape has no outcome of {entry.text}: it was cut off.")
            else:
                return self.codec.for_guest(entry.result)
        raise error

    def _now(self, value: Any) -> ValueRecord:
        try:
            return self.codec.of_guest(value, "an argument")[0]
        except TapeError:
            return ValueRecord(plain=f"<{type(value).__name__}>")

    def _is_call(
        self, entry: CallLine, asked: Asked, args: tuple[ValueRecord, ...], kwargs: dict[str, ValueRecord]
    ) -> bool:
        if (entry.what, entry.of, entry.name) != (asked.what, asked.of, asked.name):
            return False
        if len(entry.args) != len(args) or entry.kwargs.keys() != kwargs.keys():
            return False
        pairs = [*zip(entry.args, args, strict=True)]
        pairs += [(entry.kwargs[name], each) for name, each in kwargs.items()]
        return all(self._is_same(record, now) for record, now in pairs)

    def _error(self, packed: Any) -> Exception:
        try:
            return unpack_error(packed, self._class_of_error)
        except ProtocolError as error:
            raise TapeError(f"The tape describes an error wrongly: {error}") from None

    def _class_of_error(self, full: str) -> type | None:
        """Return a class of errors that guest code can name."""
        found = self.allow.registered(full)
        if found is None:
            module, _, name = full.rpartition(".")
            try:
                found = named(self.monitor, f"{module}:{name}")
            except KeyError:
                return None
        return found if isinstance(found, type) and issubclass(found, Exception) else None

    def draw(self, name: str, *args: Any) -> Any:
        with self.stopping():
            entry = self._take(lambda each: isinstance(each, ClockLine) and each.name == name, f"{name}()")
            assert isinstance(entry, ClockLine)
            return entry.value if entry.data is None else entry.data


def _shown(entry: Entry | None) -> str:
    match entry:
        case None:
            return "nothing more: the record of the run ends here"
        case AnswerLine():
            return f"a request to the model, in turn {entry.turn}"
        case CallLine():
            return entry.text
        case ClockLine():
            return f"{entry.name}()"
        case EndLine():
            return f"the end: {entry.status}, {entry.text}"


def _is_message(recorded: MessageLine | None, message: Message) -> bool:
    if recorded is None or recorded.role != message.role or not matches(recorded.text, message.text):
        return False
    return recorded.images == tuple(hashlib.sha256(each.data).hexdigest() for each in message.images)


def _difference(recorded: list[MessageLine | None], messages: tuple[Message, ...]) -> tuple[str, str]:
    """Return what differs between two requests: the lines of the first message that does."""
    for was, now in zip(recorded, messages, strict=False):
        if was is None:
            return "a message that the tape does not have", now.text
        if not _is_message(was, now):
            if was.text == now.text:
                return f"a message of the {was.role}", f"one of the {now.role}, or with other pictures"
            return _changed(was.text, now.text)
    return f"a request of {len(recorded)} messages", f"one of {len(messages)}"


def _changed(was: str, now: str) -> tuple[str, str]:
    lines = [*difflib.unified_diff(was.splitlines()[:2000], now.splitlines()[:2000], n=0, lineterm="")][2:]
    gone = [line[1:] for line in lines if line.startswith("-")][:_SHOWN_LINES]
    come = [line[1:] for line in lines if line.startswith("+")][:_SHOWN_LINES]
    return f"in the request: {' / '.join(gone) or 'nothing'}", f"{' / '.join(come) or 'nothing'}"


def _require_same_means(then: Mapping[str, str], now: Mapping[str, str]) -> None:
    wrong = [
        f"{name} was {then.get(name, 'not registered')!r} and is {now.get(name, 'not registered')!r}"
        for name in sorted({*then, *now})
        if now.get(name) != then.get(name)
    ]
    if wrong:
        raise TapeError(f"The tape was recorded with other registrations: {'; '.join(wrong)}.")
