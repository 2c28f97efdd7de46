"""The executor: Python code, run piece after piece in one guarded namespace."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from agex.agent.execution.guest_callable import under_name
from agex.contract.real_types import class_name
from agex.errors import EvalError, ExecutionTimeout, StepLimitReached, TaskCancelled
from agex.tinyagent import signals
from agex.tinyagent.imports import grant, require_import_names
from agex.tinyagent.limits import ExecutionLimits
from agex.tinyagent.readonly_directory import Directory
from agex.tinyagent.result import FinalAnswer
from agex.tinyagent.scratchpad import AgentMemory, functions_of
from agex.tinyagent.signals import Signal, SignalType
from agex.tinyagent.tools import Tool, checked_tools, guest_function
from agex.tinyagent.trust import TrustLevel, level_of, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from agex.isolation import GuestSession
    from agex.sandbox import Policy, Result
    from agex.sandbox.runtime.result import Enforcement

__all__ = ["ExecutionResult", "Executor", "PythonExecutor"]

MAX_SIGNALS = 1_000
"""Of one executor between two resets: a loop that says one each time round must not fill the memory."""


class _Answered(BaseException):
    """Ends the code after its answer."""

    def __init__(self, value: Any, verified_by: Any) -> None:
        super().__init__()
        self.value = value
        self.verified_by = verified_by


class _Killed(BaseException):
    """Ends the code after a call of ``kill`` by the host."""


@dataclass(frozen=True, kw_only=True)
class ExecutionResult:
    """The result of one piece of code."""

    output: str = ""
    """The printed text and the value of a last expression; bounded."""
    is_final: bool = False
    """Whether it gave an answer."""
    answer: FinalAnswer | None = None
    """The answer, if it gave one."""
    duration_ms: float = 0.0
    error: str | None = None
    """The error's type and text."""
    traceback: str = ""
    """The same with the lines of the code it came from."""
    exception: Exception | None = field(default=None, repr=False)
    """The error itself; an ``ExecutionTimeout`` where the time was up."""
    timeout: bool = False
    """Whether the time was up."""
    namespace: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The variables of the code after it ran; those of a worker are decoded when they are read."""
    signals: tuple[Signal, ...] = ()
    """The signals of the code about its reasoning."""
    called: tuple[Tool, ...] = ()
    """The tools that it called."""
    enforcement: Enforcement | None = None
    """The limits and isolation in force while it ran."""

    @property
    def success(self) -> bool:
        """Whether it ran without an error."""
        return self.error is None

    @property
    def final_value(self) -> Any:
        """The value of the answer; None without one."""
        return self.answer.value if self.answer is not None else None


class Executor(Protocol):
    """The interface of an executor, for code that accepts others than `PythonExecutor`."""

    def run(self, code: str) -> ExecutionResult:
        """Run a piece of code; errors are part of the result."""
        ...

    def inject(self, name: str, value: Any) -> None:
        """Set a variable of the code."""

    def reset(self) -> None:
        """Forget the variables of the code."""

    def kill(self) -> None:
        """End the code that is running, from any thread."""


class PythonExecutor:
    """Runs code in a namespace that lives from piece to piece. For one thread at a time.

    Args:
        extra_imports: what the code may import beside the standard set.
        limits: of time, output, memory and the number of pieces.
        tools: what it may call by name.
        trust_level: where it runs.
        memory: what its ``memory``, ``store``, ``recall``, ``observe`` and ``fail`` work on; a new one
            if not given.
        working_directory: the directory whose files it may read; None for no files.

    Raises:
        DefinitionError: a setting cannot work.
        ToolDefinitionError: a tool cannot be used here.
    """

    def __init__(
        self,
        extra_imports: Iterable[str] = (),
        limits: ExecutionLimits | None = None,
        *,
        tools: Iterable[Tool] = (),
        trust_level: TrustLevel | str = TrustLevel.LOCAL,
        memory: AgentMemory | None = None,
        working_directory: str | Path | None = ".",
    ) -> None:
        self.extra_imports = require_import_names(extra_imports)
        self.limits = ExecutionLimits() if limits is None else limits
        self.tools = checked_tools(tools)
        self.trust_level = level_of(trust_level)
        self.memory = AgentMemory() if memory is None else memory
        self.files = None if working_directory is None else Directory(working_directory)
        self.signals: list[Signal] = []
        self._injected: dict[str, Any] = {}
        self._called: list[Tool] = []
        self._session: GuestSession | None = None
        self._steps = 0

    @property
    def steps_left(self) -> int:
        """How many pieces of code it will still run before a `reset`."""
        return self.limits.max_steps - self._steps

    @cached_property
    def policy(self) -> Policy:
        """The policy of the code."""
        from agex.sandbox import Policy

        policy = Policy.default()
        grant(policy, self.extra_imports, self.files)
        policy.module(self.memory, name="memory", include=("store", "recall", "observe", "fail"))
        return policy

    def run(self, code: str) -> ExecutionResult:
        """Run a piece of code. Its errors are in the result; none is raised.

        Raises:
            StepLimitReached: it has run as many pieces as it may.
            IsolationUnavailable: its trust level does not hold here.
        """
        if self.steps_left <= 0:
            raise StepLimitReached(
                f"{self._steps} pieces of code were run, which is the limit (ExecutionLimits.max_steps).",
                steps_taken=self._steps,
            )
        session = self.opened()
        self._steps += 1
        self._called = []
        said = len(self.signals)
        active = _ACTIVE.set(session)
        try:
            with signals.collected(self._collect):
                result = session.run(code, filename=f"<step {self._steps}>")
                return self._settled(result, said)
        finally:
            _ACTIVE.reset(active)

    def inject(self, name: str, value: Any) -> None:
        """Set a variable of the code. It is there again after a `reset`."""
        self._injected[name] = value
        if self._session is not None:
            self._session.add({name: value})

    def reset(self) -> None:
        """Forget the variables of the code, its signals, and how many pieces it ran.

        Tools, what was injected and the memory stay.
        """
        self.close()
        self._steps = 0
        self.signals = []

    def close(self) -> None:
        """End the place where the code ran. Functions of an answer can still be called."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def kill(self) -> None:
        """End the code that is running, from any thread; without effect where none is."""
        if self._session is not None and self._session.is_running:
            self._session.interrupt(_Killed())

    # -- the session -----------------------------------------------------------------------

    def opened(self) -> GuestSession:
        """Return the session in which the code runs.

        Raises:
            IsolationUnavailable: the trust level does not hold here.
        """
        if self._session is None:
            session = open_session(self.trust_level, self.policy, self.limits, self.files)
            for name, value in self._names().items():
                session.bind(name, value)
            session.add(self._injected)
            session.open()
            self._session = session
        return self._session

    def _names(self) -> dict[str, Callable[..., Any]]:
        helpers = (_final_answer, signals.uncertain, signals.explore, signals.commit, _help)
        names = {each.__name__.removeprefix("_"): each for each in helpers}
        for name, ends in (("final_answer", True), ("help", False)):
            names[name] = under_name(name, names[name], ends=ends)
        names |= functions_of(self.memory)
        return names | {each.name: guest_function(each, self._called_one) for each in self.tools}

    def _called_one(self, tool: Tool) -> None:
        if tool not in self._called:
            self._called.append(tool)

    def _collect(self, kind: SignalType, message: str) -> Signal:
        if len(self.signals) >= MAX_SIGNALS:
            raise RuntimeError(f"{MAX_SIGNALS} signals were given already; go on without them")
        signal = Signal(kind, message, step=self._steps)
        self.signals.append(signal)
        return signal

    # -- the result ------------------------------------------------------------------------

    def _settled(self, result: Result, said: int) -> ExecutionResult:
        exception, error, traceback = self._failure(result)
        answered = result.stopped if isinstance(result.stopped, _Answered) else None
        return ExecutionResult(
            output=self._output(result),
            is_final=answered is not None,
            answer=None if answered is None else self._answer(answered),
            duration_ms=result.duration * 1000,
            error=error,
            traceback=traceback,
            exception=exception,
            timeout=isinstance(exception, ExecutionTimeout),
            namespace=self._variables(result),
            signals=tuple(self.signals[said:]),
            called=tuple(self._called),
            enforcement=result.enforcement,
        )

    def _variables(self, result: Result) -> Mapping[str, Any]:
        """Return the variables after a run. A worker gives them back now: it may be lost in the next one."""
        session = self.opened()
        if not session.packs:
            return result.namespace
        return _Variables(session.namespace)

    def _output(self, result: Result) -> str:
        parts = [part for part in (result.stdout.rstrip("\n"), result.echo or "") if part]
        return self.limits.truncate_output("\n".join(parts))[0]

    def _answer(self, answered: _Answered) -> FinalAnswer:
        told = {} if answered.verified_by is None else {"verified_by": answered.verified_by}
        return FinalAnswer(value=answered.value, text=self._text(answered.value), metadata=told)

    def _text(self, value: Any) -> str:
        """Return the text of an answer, inside the limits: its ``__str__`` may be guest code."""
        shown = self.opened().call(str, value)
        if isinstance(shown.value, str):
            return str.__str__(shown.value)
        why = f": {_last_words(shown.traceback)}" if shown.error is not None else ""
        return f"<{class_name(type(value))} whose text could not be made{why}>"

    def _failure(self, result: Result) -> tuple[Exception | None, str | None, str]:
        """Return the error of a run, its text, and its traceback."""
        if isinstance(result.stopped, _Killed):
            killed = TaskCancelled("the code was ended by kill()")
            return killed, f"Killed: {killed.message}", ""
        if result.stopped is not None and not isinstance(result.stopped, _Answered):
            raise result.stopped  # the call around this run was cancelled
        if result.error is None:
            return None, None, ""
        # By type: isinstance() would call ``__class__`` of a guest exception.
        if type(result.error) is EvalError and type(result.error.__cause__) is TimeoutError:
            timeout = ExecutionTimeout(self.limits.timeout_seconds)
            timeout.__cause__ = result.error
            told = f"ExecutionTimeout: {timeout}"
            return timeout, told, _with_words(result.traceback, told)
        return result.error, _last_words(result.traceback), result.traceback


# Functions that an earlier run left end the run that calls them, not their own.
_ACTIVE: ContextVar[GuestSession | None] = ContextVar("agex_tinyagent_session", default=None)


class _Variables(Mapping[str, Any]):
    """Variables as a run left them, each decoded when it is read.

    Functions and instances of classes that the code wrote stay where it ran: in their place is a
    ``NotKept``, which says so.

    Args:
        packed: the variables, as the session gave them back.
    """

    def __init__(self, packed: Mapping[str, Any]) -> None:
        self._packed = dict(packed)

    def __getitem__(self, name: str) -> Any:
        from agex import values

        one = {name: self._packed[name]}
        return values.opened(one, allow=values.Allow(()), guest=None)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)

    def __repr__(self) -> str:
        return f"Variables({', '.join(self)})"


def _final_answer(value: Any = None, *, verified_by: Any = None) -> NoReturn:
    """End the task with its answer, a value of any type.

    verified_by: how the answer was checked, in words.
    """
    session = _ACTIVE.get()
    if session is None:
        raise RuntimeError("final_answer() ends a run, and none is going on")
    session.stop(_Answered(value, verified_by))


def _help(thing: Any = None) -> None:
    """Print how to use a thing."""
    from agex.agent.prompt.listing import documentation

    text = "help(x) tells how to use x" if thing is None else documentation(thing, ())
    sys.stdout.write(f"{inspect.cleandoc(text)}\n")  # captured, while the agent's code runs


def _frames_end(lines: list[str]) -> int:
    """Return where the lines that quote the code end: what follows says what went wrong."""
    return max((number for number, line in enumerate(lines) if line.startswith("  ")), default=-1) + 1


def _last_words(traceback: str) -> str:
    lines = traceback.rstrip().splitlines()
    return "\n".join(lines[_frames_end(lines) :] or lines[-1:])


def _with_words(traceback: str, words: str) -> str:
    lines = traceback.rstrip().splitlines()
    return "\n".join([*lines[: _frames_end(lines)], words])
