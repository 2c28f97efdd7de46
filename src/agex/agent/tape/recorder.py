"""Recording: each use of the host is made, and written down with its outcome."""

from __future__ import annotations

import hashlib
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agex.agent.call.call import current_call
from agex.agent.durable.external_functions import printed
from agex.agent.durable.records import ReplyRecord
from agex.agent.loop.loop import Ask
from agex.agent.registration import Registration
from agex.agent.tape.clock_readings import reading
from agex.agent.tape.current_tape import apart
from agex.agent.tape.records import (
    VERSION,
    AnswerLine,
    CallLine,
    ClockLine,
    EndLine,
    Line,
    MessageLine,
    ModelErrorRecord,
    ModelRecord,
    RunLine,
    TapeLine,
    ValueRecord,
)
from agex.agent.tape.redaction import Redact, Redaction
from agex.agent.tape.tape_codec import HostSide
from agex.agent.tape.tape_file import require_writable, write_tape
from agex.agent.tape.taped_objects import parameters_of
from agex.agent.tape.taped_run import Asked, Begins, TapedRun
from agex.contract import preview, same_value
from agex.errors import TapeError
from agex.isolation.wire.error_codec import ProtocolError, pack_error
from agex.models.base import Message, Model, ModelError, Reply
from agex.models.surrogates import encodable
from agex.sandbox import Session
from agex.sandbox.runtime.host_time import in_host_time

__all__ = ["RecordedRun", "Recorder"]

SHOWN_CHARS = 2_000
"""Of the value of a run, in the text of its end."""


class Recorder:
    """A tape that is recorded.

    Args:
        path: where it is written.
        redact: see `Redaction`.

    Raises:
        TapeError: there is another file, which is not overwritten.
    """

    def __init__(self, path: Path, redact: Redact | None = None) -> None:
        require_writable(path)
        self.path = path
        self.redaction = Redaction(redact)
        self.problem: TapeError | None = None
        """The first call that could not be kept."""
        self._lines: list[Line] = [TapeLine(version=VERSION)]
        self._messages: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._runs = 0
        self._lock = threading.Lock()

    def begin(self, begins: Begins) -> RecordedRun:
        """Return the run that begins.

        Raises:
            TapeError: it uses what cannot be kept.
        """
        with self._lock:
            self._runs += 1
            number = self._runs
        try:
            return RecordedRun(self, number, begins)
        except TapeError as error:
            self.failed(error)
            raise

    def add(self, line: Line) -> int:
        """Add a line; return its place."""
        with self._lock:
            self._lines.append(line)
            return len(self._lines) - 1

    def replace(self, place: int, line: Line) -> None:
        """Write a line anew."""
        self._lines[place] = line

    def message(self, message: Message) -> int:
        """Return the number of a message; each is written once."""
        images = tuple(hashlib.sha256(each.data).hexdigest() for each in message.images)
        key = (message.role, message.text, images)
        with self._lock:
            if key not in self._messages:
                number = self._messages[key] = len(self._messages) + 1
                text = encodable(message.text)
                self._lines.append(MessageLine(number=number, role=message.role, text=text, images=images))
            return self._messages[key]

    def failed(self, error: TapeError) -> None:
        """Take note that something could not be kept: the tape is not written."""
        self.problem = self.problem or error

    def write(self) -> None:
        """Write the tape.

        Raises:
            TapeError: something could not be kept.
        """
        if self.problem is not None:
            raise TapeError(f"No tape was written to {self.path}: {self.problem}") from self.problem
        write_tape(self.path, self._lines, self.redaction)


class RecordedRun(TapedRun):
    """A run that is recorded."""

    is_replay = False

    def __init__(self, tape: Recorder, number: int, begins: Begins) -> None:
        super().__init__(number, begins, secrets.randbelow(2**32))
        self._tape = tape
        self._models = begins.models()
        names = self.monitor.builtins
        granted = {one.name: names[one.name] for one in self.staying}
        self._exports = HostSide(
            begins.sandbox,
            self.monitor,
            allow=self.allow,
            granted=granted,
            take=_refused,
            give=lambda _: None,
        )
        descriptions = self._exports.descriptions()
        self._give_out(descriptions)
        self._inputs: dict[str, Any] = {}
        inputs = {name: self._input(name, value) for name, value in begins.inputs.items()}
        self._head = RunLine(
            run=number,
            parent=None if begins.parent is None else begins.parent.number,
            sample=begins.sample,
            agent=begins.agent,
            task=begins.task,
            means=begins.means,
            models=tuple(map(_model, self._models)),
            seed=self._seed,
            inputs=inputs,
            objects=descriptions,
        )
        self._place = tape.add(self._head)

    @property
    def models(self) -> tuple[Model, ...]:
        return self._models

    def tried(self, code: str | None) -> str | None:
        self._tape.replace(self._place, self._head.model_copy(update={"kept_code": code}))
        return code

    @property
    def inputs(self) -> dict[str, Any]:
        return self._inputs

    def _input(self, name: str, value: Any) -> ValueRecord:
        what = f"The input {name!r} of {self.begins.task}"
        record, has_objects = self.codec.encoded(value, self._exports, what)
        self._inputs[name] = self.codec.for_guest(record) if has_objects else value
        redaction = self._tape.redaction
        if redaction.masks(name, value):
            return ValueRecord(masked=True)
        kept, is_changed = redaction.kept(name, value)
        return ValueRecord(masked=True) if is_changed else self._kept(value, kept, record, what)

    def _kept(self, value: Any, kept: Any, record: ValueRecord, what: str) -> ValueRecord:
        """Return the record of a value, or of what is kept in its place."""
        return record if kept is value else self.codec.encoded(kept, self._exports, what)[0]

    # -- the model ---------------------------------------------------------------------------

    def answered(self, ask: Ask, answer: Reply | ModelError) -> None:
        request = ask.request
        is_reply = isinstance(answer, Reply)
        self._tape.add(
            AnswerLine(
                run=self.number,
                turn=ask.turn,
                model=ask.model,
                messages=tuple(self._tape.message(each) for each in request.messages),
                actions=request.actions,
                attempt=request.attempt,
                prefill=request.prefill,
                reply=ReplyRecord.of(answer) if isinstance(answer, Reply) else None,
                error=None if is_reply else _model_error(answer),
            )
        )

    def received(self, value: Any) -> Any:
        """Return a value as the host has it: the objects themselves in the place of their stand-ins."""
        which = self.stubs.of(value)
        if which is not None:
            return self._exports.found(which)
        try:
            record, has_objects = self.codec.of_guest(value, "the value")
        except TapeError:  # it has parts that are no host's, and belong to the run alone
            return value
        return self.codec.decoded(record, self._exports) if has_objects else value

    def ended(self, *, value: Any = None, error: BaseException | None = None) -> None:
        record = None
        if error is None:
            try:
                record, has_objects = self.codec.encoded(value, self._exports, "the value")
                record = None if has_objects else record
                kept, _ = self._tape.redaction.kept(f"{self.begins.task}()", value)
                record = record if record is None else self._kept(value, kept, record, "the value")
            except TapeError:
                record = None
        shown = preview(value, SHOWN_CHARS) if error is None else str(error)[:SHOWN_CHARS]
        status = "done" if error is None else type(error).__name__
        self._tape.add(EndLine(run=self.number, status=status, text=encodable(shown), value=record))

    # -- uses of the host --------------------------------------------------------------------

    def owner(self, of: int | str) -> str:
        return of if isinstance(of, str) else f"{type(self._exports.found(of)).__name__}#{of}"

    def _signature(self, of: int | str, name: str | None) -> Any:
        target = self._exports.found(of)
        if name is None:
            return parameters_of(target)
        method = getattr(type(target), name, None) if not isinstance(target, type) else None
        found = None if method is None else parameters_of(method)
        if found is None:
            return None
        return found.replace(parameters=list(found.parameters.values())[1:])

    def use(self, asked: Asked) -> Any:
        work = self._exports.work({"what": asked.what, "of": asked.of, "name": asked.name})

        def carry_out(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            result = self.monitor.call(in_host_time(work), *args, **kwargs)
            sys.stdout.write(result.stdout)
            if result.stopped is not None:
                raise result.stopped
            if result.error is not None:
                raise result.error
            return result.value

        return self._made(asked, carry_out)

    def call_function(self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self._made(self._asked(one, args, kwargs), lambda given, named: one.target(*given, **named))

    def _made(self, asked: Asked, work: Callable[[tuple[Any, ...], Mapping[str, Any]], Any]) -> Any:
        with self.stopping():
            place, line = self._begun(asked)
            args, kwargs = self._real(asked)
        with printed() as out:
            try:
                with apart():
                    value = work(args, kwargs)
            except Exception as error:
                with self.stopping():
                    self._raised(asked, place, line, error, out.text())
                raise
        with self.stopping():
            return self._returned(asked, place, line, value, out.text())

    async def acall_function(
        self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        asked = self._asked(one, args, kwargs)
        with self.stopping():
            place, line = self._begun(asked)
            given, named = self._real(asked)
        try:
            with apart():
                value = await one.target(*given, **named)
        except Exception as error:
            with self.stopping():
                self._raised(asked, place, line, error, "")
            raise
        with self.stopping():
            return self._returned(asked, place, line, value, "")

    @contextmanager
    def stopping(self) -> Iterator[None]:
        with super().stopping():
            try:
                yield
            except TapeError as error:
                self._tape.failed(error)
                raise

    def _begun(self, asked: Asked) -> tuple[int, CallLine]:
        args, kwargs = self._arguments(asked)
        number, source = self.where()
        line = CallLine(
            run=self.number,
            turn=self.turn,
            line=number,
            source=encodable(source),
            text=encodable(self.text_of(asked, args, kwargs)),
            what=asked.what,  # type: ignore[arg-type]  # the record checks it
            of=asked.of,
            name=asked.name,
            args=args,
            kwargs=kwargs,
            concurrent=asked.concurrent,
        )
        return self._tape.add(line), line

    def _arguments(self, asked: Asked) -> tuple[tuple[ValueRecord, ...], dict[str, ValueRecord]]:
        args: list[ValueRecord] = []
        kwargs: dict[str, ValueRecord] = {}
        for place, name, value in asked.named():
            record = self._argument(asked, str(place), name, value)
            if isinstance(place, str):
                kwargs[place] = record
            else:
                args.append(record)
        return tuple(args), kwargs

    def _argument(self, asked: Asked, place: str, name: str, value: Any) -> ValueRecord:
        redaction = self._tape.redaction
        if redaction.masks(name, value):
            return ValueRecord(masked=True)
        kept, is_changed = redaction.kept(name, value)
        if is_changed:
            return ValueRecord(masked=True)
        return self.codec.of_guest(kept, f"The argument {name or place} of {asked.title}()")[0]

    def _real(self, asked: Asked) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as the host has them."""
        return tuple(map(self.received, asked.args)), {
            name: self.received(each) for name, each in asked.kwargs.items()
        }

    def _returned(self, asked: Asked, place: int, line: CallLine, value: Any, out: str) -> Any:
        self._require_unchanged(asked, line)
        what = f"The result of {line.text} in turn {line.turn}"
        name = f"{asked.title}()"
        record, has_objects = self.codec.encoded(value, self._exports, what)
        given = self.codec.for_guest(record) if has_objects else value
        kept, _ = self._tape.redaction.kept(name, value)
        record = self._kept(value, kept, record, what)
        self._tape.replace(place, line.model_copy(update={"result": record, "out": encodable(out)}))
        return given

    def _require_unchanged(self, asked: Asked, line: CallLine) -> None:
        """Refuse a call that changed its arguments in place: a replay cannot do that.

        In another process guest code does not see such changes.
        """
        call = current_call()
        if call is None or not isinstance(call.session, Session):
            return
        args, kwargs = self._arguments(asked)
        before = (*line.args, *line.kwargs.values())
        for was, now in zip(before, (*args, *kwargs.values()), strict=True):
            if was != now and not same_value(self.codec.by_names(now), self.codec.by_names(was)):
                raise TapeError(
                    f"{line.text} in turn {line.turn} changed an argument in place, and a replay cannot: "
                    "return the new value instead."
                )

    def _raised(self, asked: Asked, place: int, line: CallLine, error: Exception, out: str) -> None:
        if isinstance(error, ProtocolError):
            raise TapeError(f"{line.text} in turn {line.turn}: {error}") from error
        found = {"error": pack_error(error, str(error)), "out": encodable(out)}
        self._tape.replace(place, line.model_copy(update=found))

    def draw(self, name: str, *args: Any) -> Any:
        value = reading(name, args)
        data = value if isinstance(value, bytes) else None
        known: Any = 0 if data is not None else value
        self._tape.add(ClockLine(run=self.number, turn=self.turn, name=name, value=known, data=data))
        return value


def _refused(about: Mapping[str, Any]) -> Any:
    raise ProtocolError("code of the agent is not passed to the host under a tape")


def _model(model: Model) -> ModelRecord:
    profile = model.profile
    return ModelRecord(
        name=model.name,
        provider=model.provider,
        style=profile.style,
        tools=profile.tools,
        images=profile.images,
    )


def _model_error(error: Any) -> ModelErrorRecord:
    return ModelErrorRecord(message=str(error), retryable=error.retryable, retry_after=error.retry_after)
