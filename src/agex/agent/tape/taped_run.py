"""One run under a tape, recorded or replayed: what both have in common.

The run stands between guest code and the host: it gives out the stand-ins, and is asked for each use of them.
It stands between the loop and the model, too, as a generator around the loop.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from agex import values
from agex.agent.call.call import current_call
from agex.agent.call.host_errors import HostFault
from agex.agent.durable.external_functions import line_of_guest
from agex.agent.loop.loop import Ask, Effect, Execute, Loop, Wait
from agex.agent.registration import Registration
from agex.agent.tape.records import CallLine, ValueRecord
from agex.agent.tape.redaction import MASK
from agex.agent.tape.tape_codec import TapeCodec
from agex.agent.tape.taped_objects import parameters_of, staying, taped
from agex.contract import preview
from agex.errors import ReplayMismatch, TapeError
from agex.isolation.rpc.host_proxies import Stubs
from agex.models.actions import PythonAction
from agex.models.base import Model, ModelError, Reply
from agex.sandbox import Sandbox, Session
from agex.sandbox.runtime.host_time import in_host_time

__all__ = ["Asked", "Begins", "TapedRun"]

T = TypeVar("T")

_SEEDING = "import {name} as to_seed\nto_seed{path}.seed({seed})\ndel to_seed"
_GENERATORS = {"random": "", "numpy": ".random"}
"""Modules with a generator that can be seeded, each with the way to it."""
_OVER_NUMPY = ("numpy", "np.", "pandas", "pd.", "scipy", "sklearn")
"""Texts of code that may draw from the generator of numpy."""


@dataclass(frozen=True, kw_only=True)
class Begins:
    """A run that begins."""

    agent: str
    task: str
    means: dict[str, str]
    models: Callable[[], tuple[Model, ...]]
    inputs: Mapping[str, Any]
    registrations: tuple[Registration, ...]
    sandbox: Sandbox
    """Of the task, as it is without a tape."""
    classes: set[type]
    """Classes whose instances are kept by their fields."""
    parent: TapedRun | None
    sample: int | None = None
    """Which of the samples of a call it is."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A use of something of the host."""

    what: str
    of: str | int
    name: str | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    owner: str
    """Of what it is, as it is shown."""
    signature: inspect.Signature | None = None
    concurrent: bool = False

    @property
    def title(self) -> str:
        """The name of what is called."""
        return self.owner if self.name is None else f"{self.owner}.{self.name}"

    def named(self) -> Iterator[tuple[int | str, str, Any]]:
        """Yield the arguments: the place or the keyword of each, its name, and its value."""
        names: list[str] = []
        if self.signature is not None:
            by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            names = [one.name for one in self.signature.parameters.values() if one.kind in by_place]
        for place, value in enumerate(self.args):
            yield place, names[place] if place < len(names) else "", value
        for name, value in self.kwargs.items():
            yield name, name, value


class TapedRun(ABC):
    """One run under a tape.

    Args:
        number: of the run on the tape.
        begins: the run.
        seed: of its generators of random numbers.

    Attributes:
        registrations: what the code of the run may use, by way of the tape.
    """

    is_replay: bool

    def __init__(self, number: int, begins: Begins, seed: int) -> None:
        self.number = number
        self.begins = begins
        self.turn = 0
        self._seed = seed
        self._is_seeded: set[str] = set()
        self._source: tuple[str, ...] = ()
        self.monitor: Session = begins.sandbox.session()
        self.monitor.serves = True
        self.staying = staying(begins.registrations)
        stay = {id(one.target) for one in self.staying}
        self.allow = values.Allow(each for each in begins.classes if id(each) not in stay)
        self.stubs = Stubs(in_host_time(self.ask))
        self._granted: dict[str, Any] = {}
        self.codec = TapeCodec(begins.sandbox, self.monitor, self.allow, self.stubs, self._granted)
        self.registrations: tuple[Registration, ...] = ()

    def _give_out(self, descriptions: Mapping[str, dict[str, Any]]) -> None:
        """Make the stand-ins of what is registered."""
        for one in self.staying:
            self._granted[one.name] = self.stubs.get(one.name, descriptions[one.name])
        self.registrations = taped(self.begins.registrations, self._granted, self)

    # -- the model ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def models(self) -> tuple[Model, ...]:
        """The models to ask."""

    @abstractmethod
    def tried(self, code: str | None) -> str | None:
        """Return the kept code that is tried, of that which was found."""

    @property
    @abstractmethod
    def inputs(self) -> dict[str, Any]:
        """The inputs as guest code gets them."""

    @abstractmethod
    def answered(self, ask: Ask, answer: Reply | ModelError) -> None:
        """Take note of the answer to a request."""

    @abstractmethod
    def ended(self, *, value: Any = None, error: BaseException | None = None) -> None:
        """Take note of how the run ended.

        Raises:
            ReplayMismatch: it ended otherwise.
        """

    @abstractmethod
    def received(self, value: Any) -> Any:
        """Return a value of guest code as the host gets it."""

    def observed(self, loop: Loop[T]) -> Loop[T]:
        """Carry the loop on, and take note of its effects."""
        answer: Any = None
        thrown: ModelError | None = None
        try:
            while True:
                try:
                    effect = loop.send(answer) if thrown is None else loop.throw(thrown)
                except StopIteration as stop:
                    value: T = stop.value
                    return value
                answer = thrown = None
                if self.is_replay and isinstance(effect, Wait):
                    continue
                yield from self._before(effect)
                try:
                    answer = yield effect
                except ModelError as error:
                    thrown = error
                if isinstance(effect, Ask):
                    self.answered(effect, answer if thrown is None else thrown)
        finally:
            loop.close()

    def _before(self, effect: Effect) -> Iterator[Effect]:
        """Take note of an effect, and seed the generators of random numbers before the first code."""
        match effect:
            case Ask(turn=turn):
                self.turn = turn
            case Execute(action=PythonAction(code=code), turn=turn):
                self.turn = turn
                self._source = ()
                yield from self._seeding(code)
                self._source = tuple(code.splitlines())
            case Execute(turn=turn):
                self.turn, self._source = turn, ()
            case _:
                pass

    def _seeding(self, code: str) -> Iterator[Effect]:
        wanted = ["random", *(["numpy"] if any(text in code for text in _OVER_NUMPY) else [])]
        for name in wanted:
            if name not in self._is_seeded:
                self._is_seeded.add(name)
                text = _SEEDING.format(name=name, path=_GENERATORS[name], seed=self._seed)
                yield Execute(PythonAction(code=text), 0)

    # -- uses of the host --------------------------------------------------------------------

    def ask(self, what: str, of: int | str, name: str | None, args: Any, kwargs: Any) -> Any:
        """Do what a stand-in is asked for."""
        asked = Asked(
            what=what,
            of=of,
            name=name,
            args=tuple(args),
            kwargs=dict(kwargs),
            owner=self.owner(of),
            signature=self._signature(of, name),
        )
        return self.use(asked)

    @abstractmethod
    def use(self, asked: Asked) -> Any:
        """Do what a stand-in is asked for."""

    def owner(self, of: int | str) -> str:
        """Return how an object is shown."""
        return of if isinstance(of, str) else f"object {of}"

    def _signature(self, of: int | str, name: str | None) -> inspect.Signature | None:
        return None

    @abstractmethod
    def call_function(self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call a registered function."""

    @abstractmethod
    async def acall_function(
        self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call a registered async function."""

    @abstractmethod
    def draw(self, name: str, *args: Any) -> Any:
        """Return a value of a clock, or of chance."""

    def _asked(self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Asked:
        return Asked(
            what="call",
            of=one.name,
            name=None,
            args=args,
            kwargs=kwargs,
            owner=one.name,
            signature=parameters_of(one.target),
            concurrent=one.is_async,
        )

    def shown(self, record: ValueRecord) -> str:
        """Return a value of a tape as it is shown."""
        return MASK if record.masked else preview(self.codec.by_names(record), 200)

    def text_of(self, asked: Asked, args: tuple[ValueRecord, ...], kwargs: dict[str, ValueRecord]) -> str:
        """Return a call as it is shown."""
        if asked.what == "get":
            return asked.title
        parts = [self.shown(each) for each in args]
        parts += [f"{name}={self.shown(each)}" for name, each in kwargs.items()]
        verb = {"set": " = ", "delete": " deleted"}.get(asked.what)
        return (
            f"{asked.title}({', '.join(parts)})" if verb is None else f"{asked.title}{verb}{', '.join(parts)}"
        )

    def where(self) -> tuple[int | None, str]:
        """Return the line of guest code that runs, and its text."""
        number = line_of_guest()
        is_there = number is not None and 0 < number <= len(self._source)
        return number, self._source[number - 1].strip() if is_there and number is not None else ""

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """End the run, past all guest code, where the tape cannot go on."""
        try:
            yield
        except (ReplayMismatch, TapeError) as error:
            self._stop(error)

    def _stop(self, error: BaseException) -> NoReturn:
        call = current_call()
        if call is not None and call.session is not None:
            call.session.stop(HostFault(error))
        raise HostFault(error)

    def mismatch(self, expected: str, got: str, line: CallLine | None = None) -> ReplayMismatch:
        """Return the error for a difference."""
        number, source = self.where()
        place = f"turn {self.turn}" + (f", line {number}" if number else "")
        code = f" ({source})" if source else ""
        was = (
            f" (there at line {line.line})" if line is not None and line.line and line.line != number else ""
        )
        return ReplayMismatch(
            f"The replay of {self.begins.task!r} differs from the tape at {place}{code}.\n"
            f"expected: {expected}{was}\n"
            f"got:      {got}",
            expected,
            got,
            turn=self.turn,
            line=number,
        )
