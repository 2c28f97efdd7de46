"""External functions as guest code gets them: each call is journalled before it is made, its result after.

The journal is that of the outermost run above the call, for this is what is resumed. A call that belongs to
no run is refused: nobody would know of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import FrameType
from typing import Any, Literal, NoReturn, Protocol

from agex._interpreter.threads import off_loop
from agex.agent.call.call import Call, current_call, host_time, runs_on
from agex.agent.call.host_errors import HostFault
from agex.agent.durable.host_calls import HostCall
from agex.agent.durable.run_journal import Answer, Made, RunJournal, Waits
from agex.agent.durable.stand_ins import originals
from agex.errors import DefinitionError, ReplayMismatch, StateError, TaskSuspended
from agex.models.surrogates import encodable
from agex.sandbox.runtime.output import CAPTURE, Output

__all__ = ["aexternal", "external", "journal_above", "like", "line_of_guest", "printed"]

OUT_CHARS = 20_000
"""Of what one call prints."""


class Acting(Protocol):
    """A function that acts on the world: a registration, or a part of one."""

    @property
    def name(self) -> str: ...
    @property
    def target(self) -> Any: ...
    @property
    def external(self) -> bool | Literal["idempotent"]: ...
    @property
    def approval(self) -> Any: ...


def external(one: Acting) -> Callable[..., Any]:
    """Return the function that stands in for a function that acts on the world."""

    def called(*args: Any, **kwargs: Any) -> Any:
        external_call = _External(one, args, kwargs)
        with external_call.stopping():
            made = external_call.admitted()
        if made.is_over:
            sys.stdout.write(made.out)
            return made.result
        with printed() as out, external_call.kept(made):
            result = originals(one.target, made.call.args, made.call.kwargs)
        with external_call.stopping():
            external_call.returned(made, result, out.text())
        return result

    return like(one, called)


def aexternal(one: Acting) -> Callable[..., Awaitable[Any]]:
    """Return the coroutine function that stands in for a registered async one that acts on the world."""

    async def called(*args: Any, **kwargs: Any) -> Any:
        external_call = _External(one, args, kwargs)
        with external_call.stopping():
            made = await off_loop(external_call.admitted)
        if made.is_over:
            return made.result
        with external_call.kept(made):
            result = await originals(one.target, made.call.args, made.call.kwargs)
        with external_call.stopping():
            await off_loop(lambda: external_call.returned(made, result))
        return result

    return like(one, called)


def journal_above(call: Call | None) -> RunJournal | None:
    """Return the journal that the calls of some code go to: of the outermost run that is kept, if one is."""
    found: RunJournal | None = None
    for each in call.above() if call is not None else ():
        journal = each.journal
        if isinstance(journal, RunJournal) and (found is None or journal.is_durable or not found.is_durable):
            found = journal
    return found


class _External:
    """One call of an external function."""

    def __init__(self, one: Acting, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        call = current_call()
        journal = journal_above(call)
        if call is None or journal is None:
            raise RuntimeError(
                f"{one.name} acts on the world, so its calls are journalled with the run of a task, and none "
                "is going on here: call it while the task runs."
            )
        with contextlib.suppress(ValueError):  # a builtin need not have a signature
            inspect.signature(one.target).bind(*args, **kwargs)  # a call that cannot be made is none
        self.journal = journal
        self._one = one
        self._call = call
        self._args = args
        self._kwargs = kwargs
        self._line = line_of_guest()

    def admitted(self) -> Made:
        """Return the call as it is to be made, or its recorded outcome."""
        with host_time(self._call):
            self._call.pass_gate(begins=True)
            return self.journal.admit(
                self._as_call,
                repeats=self._one.external == "idempotent",
                needs_approval=self._needs_approval,
                decide=self._decide,
            )

    def returned(self, made: Made, result: Any, out: str = "") -> None:
        """Journal a result, and the text that the call printed."""
        with host_time(self._call):
            self.journal.returned(made, result, encodable(out))

    def _as_call(self, key: str) -> HostCall:
        return HostCall(
            id=key,
            name=self._one.name,
            args=self._args,
            kwargs=self._kwargs,
            line=self._line,
            source=self.journal.line_of(self._line),
        )

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """End the run, past all guest code, where the journal cannot go on."""
        try:
            yield
        except Waits as waits:
            self._stop(self._suspended(waits.call))
        except (StateError, ReplayMismatch, DefinitionError) as error:
            self._stop(error)

    @contextlib.contextmanager
    def kept(self, made: Made) -> Iterator[None]:
        """Journal the error that a call raises."""
        try:
            yield
        except Exception as error:
            with self.stopping(), host_time(self._call):
                self.journal.raised(made, error)
            raise

    def _stop(self, error: BaseException) -> NoReturn:
        session = self._call.session
        assert session is not None
        session.stop(HostFault(error))
        raise HostFault(error)

    def _suspended(self, call: HostCall) -> TaskSuspended:
        record = self.journal.record
        return TaskSuspended(
            f"Task {record.task!r} waits for approval of {call}; go on with run.approve() or "
            f"run.reject(reason), here or in another process with task.resume(run_id={record.run_id!r}).",
            call,
        )

    # -- approval ----------------------------------------------------------------------------

    def _needs_approval(self, call: HostCall) -> bool:
        approval = self._one.approval
        if not callable(approval):
            return bool(approval)
        verdict = approval(call)
        if not isinstance(verdict, bool):
            raise DefinitionError(
                f"approval= of {self._one.name} answered {verdict!r} for {call}; return True or False."
            )
        return verdict

    def _decide(self, call: HostCall) -> Answer | None:
        handler = next((each.on_approval for each in self._call.above() if each.on_approval), None)
        if handler is None:
            if self.journal.is_durable:
                return None
            raise DefinitionError(
                f"{call.name} needs approval, and this run can neither wait nor ask: give the task a "
                "Versioned state, or on_approval=."
            )
        verdict = handler(call)
        if inspect.isawaitable(verdict):
            verdict = self._awaited(verdict)
        if isinstance(verdict, HostCall):
            if (verdict.id, verdict.name) != (call.id, call.name):
                raise DefinitionError(
                    f"on_approval= was asked about {call.id} {call.name}, and answered with {verdict.id} "
                    f"{verdict.name}: return that call, e.g. dataclasses.replace(call, kwargs=...)."
                )
            return Answer(approved=verdict)
        if not isinstance(verdict, bool):
            raise DefinitionError(f"on_approval= answered {verdict!r}; return True, False or the HostCall.")
        return Answer(approved=call) if verdict else Answer(rejected="")

    def _awaited(self, verdict: Awaitable[Any]) -> Any:
        loop = next((each.loop for each in self._call.above() if each.loop is not None), None)

        async def waited() -> Any:
            return await verdict

        if loop is None or runs_on(loop):
            raise DefinitionError("on_approval= is async, and here is no event loop that could wait for it.")
        return asyncio.run_coroutine_threadsafe(waited(), loop).result()


@contextlib.contextmanager
def printed() -> Iterator[Output]:
    """Take what a call prints; pass it on when it is over."""
    out, around = Output(OUT_CHARS), CAPTURE.get()
    token = CAPTURE.set(out)
    try:
        yield out
    finally:
        CAPTURE.reset(token)
        if around is not None and (text := out.text()):
            around.write(text)


def line_of_guest() -> int | None:
    """Return the line of the action that makes the call; None where its code is in another process."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - the line is that of the caller
    found = None
    while frame is not None:
        if frame.f_code.co_filename.startswith(("<turn ", "<before turn ")):
            found = frame.f_lineno
            if frame.f_code.co_name == "<module>":
                return found
        frame = frame.f_back
    return found


def like(one: Acting, call: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function look like the registered one, which `functools.wraps` would hand out."""
    call.__name__ = getattr(one.target, "__name__", one.name)
    call.__qualname__ = getattr(one.target, "__qualname__", one.name)
    call.__doc__ = one.target.__doc__
    call.__module__ = getattr(one.target, "__module__", __name__) or __name__
    with contextlib.suppress(TypeError, ValueError):  # a builtin need not have one
        call.__signature__ = inspect.signature(one.target)  # type: ignore[attr-defined]
    return call
