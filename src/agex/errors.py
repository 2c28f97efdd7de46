"""Exceptions that agex raises. The class of an error says who is to blame.

::

    Exception
    └── AgexError
        ├── DefinitionError      host: an agent, task or registration is declared wrongly   (ValueError)
        │   ├── KeywordError         a keyword is none that is taken; names the one meant       (TypeError)
        │   └── ToolDefinitionError  a tool of a TinyCodeAgent is
        ├── InputError           host: an argument of a task call breaks its annotation     (TypeError)
        ├── CheckError           host: a check of a task's value failed itself; ends the run
        ├── ModelNotConfigured   host: no usable model; says the ways to get one
        │   └── WeightsCorrupt   host: local model weights do not match their digest
        ├── IsolationUnavailable host: this machine cannot hold the isolation asked for
        ├── WorkerLost           host: a worker of an executor died, and what it worked on with it
        ├── StateError           host: the store refuses
        │   ├── StateConflict        another writer or task came first
        │   ├── StateCorrupt         stored bytes do not match their hash
        │   └── StateFull            the size limit would be passed
        ├── TaskError            a task ended without a value; carries ``.run``
        │   ├── TaskFail             the agent gave up, with its reason
        │   ├── TaskClarify          the agent needs an answer first
        │   ├── TaskTimeout          out of turns
        │   │   ├── BudgetExceeded   out of tokens, money, seconds or calls
        │   │   └── StepLimitReached a TinyCodeAgent is out of steps                        (RuntimeError)
        │   ├── TieError             no value has more of the task's samples than the next
        │   ├── TaskCancelled        the host cancelled it
        │   └── LLMFail              the model or its provider failed, retries included
        ├── TaskSuspended        a call waits for approval; carries ``.run`` and ``.call``
        ├── ReplayMismatch       a resumed or replayed run did otherwise than it did before
        ├── TapeError            a tape cannot be written, or is none
        ├── CallInDoubt          guest: a call to the world that may have been made            (RuntimeError)
        ├── CallRejected         guest: a person refused a call                              (RuntimeError)
        ├── ToolError            another program: an MCP server or a tool of it failed   (RuntimeError)
        ├── EvalError            guest: the code ran out of a resource (time, memory, ...)
        │   └── ExecutionTimeout     a step of a TinyCodeAgent ran out of time              (TimeoutError)
        └── SandboxError         guest: the code asked for what is not allowed
            ├── SandboxAttributeError   (AttributeError)
            ├── SandboxImportError      (ModuleNotFoundError)
            ├── SandboxNameError        (NameError)
            ├── SandboxSyntaxError      (SyntaxError)
            ├── SandboxTypeError        (TypeError)
            ├── SandboxValueError       (ValueError)
            └── UnpicklableVariableError  a variable could not be kept from an earlier turn

Guest code sees the ``Sandbox*`` classes and can catch them like the builtin they also are. Control flow
that guest code must never catch (its time limit, the end of its task) derives from ``BaseException`` and
lives in :mod:`agex.sandbox`; it does not leave that room.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.agent.durable.host_calls import HostCall
    from agex.agent.task.run import Run

__all__ = [
    "AgexError",
    "BudgetExceeded",
    "CallInDoubt",
    "CallRejected",
    "CheckError",
    "DefinitionError",
    "EvalError",
    "ExecutionTimeout",
    "InputError",
    "IsolationUnavailable",
    "KeywordError",
    "LLMFail",
    "ModelNotConfigured",
    "ReplayMismatch",
    "SandboxAttributeError",
    "SandboxError",
    "SandboxImportError",
    "SandboxNameError",
    "SandboxSyntaxError",
    "SandboxTypeError",
    "SandboxValueError",
    "StateConflict",
    "StateCorrupt",
    "StateError",
    "StateFull",
    "StepLimitReached",
    "TapeError",
    "TaskCancelled",
    "TaskClarify",
    "TaskError",
    "TaskFail",
    "TaskSuspended",
    "TaskTimeout",
    "TieError",
    "ToolDefinitionError",
    "ToolError",
    "UnpicklableVariableError",
    "WeightsCorrupt",
    "WorkerLost",
]


class AgexError(Exception):
    """The root of all errors raised by agex."""

    _run: Run[Any] | None = None

    @property
    def run(self) -> Run[Any] | None:
        """The run that was going on, with its events and usage; None outside a task. Not for agents' code."""
        asks = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - the answer depends on the caller's frame
        if self._run is not None and _is_guests(asks):
            raise SandboxAttributeError("the run of an error is not accessible; its text says what was wrong")
        return self._run

    @run.setter
    def run(self, run: Run[Any] | None) -> None:
        self._run = run

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error as it is: its constructor takes other arguments than it keeps."""
        return _again, (type(self), self.args, vars(self))


def _is_guests(frame: types.FrameType | None) -> bool:
    """Return whether a frame runs guest code, or a sandbox function that guest code calls."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("agex.sandbox."):
        frame = frame.f_back
    return frame is not None and "check!" in frame.f_builtins


def _again(kind: type[AgexError], args: tuple[Any, ...], own: dict[str, Any]) -> AgexError:
    error = kind.__new__(kind, *args)
    vars(error).update(own)
    return error


class DefinitionError(AgexError, ValueError):
    """An agent, a task or a registration is declared in a way that cannot work."""


class KeywordError(DefinitionError, TypeError):
    """A keyword is none that is taken here; the message names the one that was meant."""


class ToolDefinitionError(DefinitionError):
    """A tool is declared in a way that cannot work."""


class InputError(AgexError, TypeError):
    """An argument of a task call does not fit the parameter's annotation."""


class CheckError(AgexError):
    """A check of a task's value failed itself; ``__cause__`` is its error.

    A check says what is wrong by an AssertionError, a ValueError, a TypeError or a message. Anything else
    is a mistake in the check, which the agent cannot correct, so the run ends.
    """


class ModelNotConfigured(AgexError):
    """No model can be used as things stand; the message names the ways to get one."""


class WeightsCorrupt(ModelNotConfigured):
    """The weights of the local model are not the bytes they should be."""


class IsolationUnavailable(AgexError):
    """This machine cannot hold the isolation level that was asked for."""


class WorkerLost(AgexError):
    """A worker of an executor died while it mapped a task.

    Attributes:
        finished: the values of the calls that were over, by the item's number from 0.
    """

    def __init__(self, message: str, finished: dict[int, Any] | None = None) -> None:
        super().__init__(message)
        self.finished: dict[int, Any] = {} if finished is None else finished


class StateError(AgexError):
    """A state store refused an operation."""


class StateConflict(StateError):
    """Another writer moved the head, or another task changed the same variable, since this one began."""


class StateCorrupt(StateError):
    """Stored bytes are damaged or missing; nothing is answered from them."""


class StateFull(StateError):
    """The commit would pass the store's size limit."""


class TaskError(AgexError):
    """A task ended without a value.

    Attributes:
        message: what the agent, the model or the limit said.
        run: the :class:`~agex.Run`, with every event up to the end.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TaskFail(TaskError):
    """The agent called ``task_fail``."""


class TaskClarify(TaskError):
    """The agent called ``task_clarify``: it needs an answer before it can go on."""


class TaskTimeout(TaskError):
    """The task used up its turns."""


class BudgetExceeded(TaskTimeout):
    """The task, with all it called, used up its budget."""


class StepLimitReached(TaskTimeout, RuntimeError):
    """A `agex.tinyagent.TinyCodeAgent` used up its steps without an answer.

    Attributes:
        steps_taken: how many steps it took.
        final_attempt_made: whether it was asked once more for an answer alone; it never is.
    """

    def __init__(self, message: str, steps_taken: int = 0, *, final_attempt_made: bool = False) -> None:
        super().__init__(message)
        self.steps_taken = steps_taken
        self.final_attempt_made = final_attempt_made


class TieError(TaskError):
    """The samples of a task agree on no value: two or more have the same number of them.

    Attributes:
        candidates: the values that as many samples agree on, in the order of the samples.
    """

    def __init__(self, message: str, candidates: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.candidates = candidates


class TaskCancelled(TaskError):
    """The host cancelled the task."""


class LLMFail(TaskError):
    """The model gave no usable reply.

    Attributes:
        provider: who was asked, e.g. ``"openai"`` or ``"local"``.
        model: the model's name.
        retries: how often the request was repeated after the first failure.
    """

    def __init__(self, message: str, provider: str, model: str, retries: int) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.retries = retries


class TaskSuspended(AgexError):
    """A call of the agent's code waits for approval; the run goes on with ``run.approve()`` or ``reject()``.

    Attributes:
        call: the :class:`~agex.HostCall`.
        run: the :class:`~agex.Run`.
    """

    def __init__(self, message: str, call: HostCall) -> None:
        super().__init__(message)
        self.call = call


class ReplayMismatch(AgexError):
    """A run that is resumed or replayed did otherwise than before; no call was made.

    Attributes:
        expected: the call, the request or the value that is recorded, as text.
        got: the one that came instead.
        turn: where it came; None where the difference is in no turn.
        line: of the action's code; None where it is not known, as for code in another process.
    """

    def __init__(
        self,
        message: str,
        expected: str = "",
        got: str = "",
        *,
        turn: int | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.expected = expected
        self.got = got
        self.turn = turn
        self.line = line


class TapeError(AgexError):
    """A call cannot be kept on a tape, which is then not written; or a file is no tape to be replayed."""


class CallInDoubt(AgexError, RuntimeError):
    """A call to the world was begun, and its result was lost with the process: it may have been made."""


class CallRejected(AgexError, RuntimeError):
    """A person, or the host, refused a call that needs approval; the message has the reason."""


class ToolError(AgexError, RuntimeError):
    """An MCP server cannot be reached, or answered that a tool failed; the message is the server's."""


class EvalError(AgexError):
    """Guest code ran out of a resource; ``__cause__`` is the builtin error behind it."""


class ExecutionTimeout(EvalError, TimeoutError):
    """The code of one step ran longer than it may.

    Attributes:
        timeout_seconds: what it had.
    """

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(f"the code ran longer than {timeout_seconds:g} s; do less in one step")
        self.timeout_seconds = timeout_seconds


class SandboxError(AgexError):
    """Guest code asked for something that is not allowed."""


class SandboxAttributeError(SandboxError, AttributeError):
    """An attribute is not allowed."""


class SandboxImportError(SandboxError, ModuleNotFoundError):
    """An import is not allowed: to the guest the module, ``name``, is not there."""


class SandboxNameError(SandboxError, NameError):
    """A name is not allowed."""


class SandboxSyntaxError(SandboxError, SyntaxError):
    """A construct is not allowed; carries the line like any SyntaxError."""


class SandboxTypeError(SandboxError, TypeError):
    """An operation on this type is not allowed."""


class SandboxValueError(SandboxError, ValueError):
    """A value asks for something that is not allowed."""


class UnpicklableVariableError(SandboxError):
    """A variable of an earlier turn could not be kept; the message says what to do."""
