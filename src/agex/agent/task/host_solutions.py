"""A function of the host that is tried before any model is asked: code that a person has reviewed.

It runs in the host, with the powers of the host. Its value is held to the contract that the agent's code is
held to: the annotation, the examples, the checks.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from agex._interpreter.threads import off_loop
from agex.agent.base import AgentBase, resolved_models
from agex.agent.call.acceptance import GOT_CHARS, Acceptance
from agex.agent.call.events import FailEvent, SuccessEvent, SystemNoteEvent
from agex.agent.call.terms import Inputs, Terms, example_inputs
from agex.agent.execution.execution import Execution
from agex.agent.loop.loop import Execute, Loop, Observation, Plan, Progress, Success
from agex.agent.registration import is_async
from agex.agent.rendering.output_text import cut_middle, encodable
from agex.contract import ContractError, Example, describe_failure, outcome_matches, shown_repr
from agex.errors import (
    CheckError,
    DefinitionError,
    ModelNotConfigured,
    ReplayMismatch,
    StateError,
    TaskCancelled,
    TaskFail,
    TaskSuspended,
)
from agex.models.actions import Action, PythonAction
from agex.models.base import Model, Reply

__all__ = [
    "Consult",
    "HostSolution",
    "WithSolution",
    "consulted",
    "is_consulting",
    "models_of",
    "require_address",
]

_ADDRESS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_NOT_ITS_OWN = (TaskCancelled, TaskSuspended, ReplayMismatch, StateError, CheckError, DefinitionError)
"""Errors that end the run: another attempt would not help, or would do something twice."""

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
Outcome: TypeAlias = tuple[Any, Exception | None]
T = TypeVar("T")
Steps: TypeAlias = Generator[Arguments, Outcome, T]


class Consult(PythonAction):
    """A call of the function that ``solution=`` names, in the place of an action of the model."""


class HostSolution:
    """The function that a task names as its solution, imported at the first call.

    Args:
        address: ``package.module:function``.
        fallback: whether the model is asked where it does not solve a call.
        terms: of the task.
    """

    def __init__(self, address: str, *, fallback: bool, terms: Terms) -> None:
        self.address = address
        self.fallback = fallback
        self._terms = terms
        self._tried: tuple[Any, Exception | None] | None = None
        """A function and how it fails the task's examples."""

    def function(self) -> Callable[..., Any]:
        """Return the function.

        Raises:
            DefinitionError: there is none, or the task's inputs do not fit it.
        """
        module, _, name = self.address.partition(":")
        signature = self._terms.signature
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError as error:
            raise DefinitionError(
                f"solution={self.address!r} of task {signature.name!r} cannot be imported: {error}"
            ) from error
        if not callable(found):
            raise DefinitionError(
                f"solution={self.address!r} is no function: module {module!r} has no such one."
            )
        if not signature.accepts(found):
            raise DefinitionError(
                f"solution={self.address!r} does not take the inputs of the task; declare it as\n"
                f"    {signature.render()}"
            )
        if is_async(found) and not signature.is_async:
            raise DefinitionError(
                f"solution={self.address!r} is async, and the task is not: write def instead of async def."
            )
        function: Callable[..., Any] = found
        return function

    def attempt(self, inputs: Mapping[str, Any]) -> Attempt:
        """Call it; return the value as the ending of the task, or why there is none."""
        function = self.function()
        steps = self._steps(function, inputs)
        try:
            args, kwargs = next(steps)
            while True:
                args, kwargs = steps.send(_called(function, args, kwargs))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # of the generator

    async def aattempt(self, inputs: Mapping[str, Any]) -> Attempt:
        """Like :meth:`attempt`, without holding up the event loop."""
        function = self.function()
        steps = self._steps(function, inputs)
        try:
            args, kwargs = next(steps)
            while True:
                args, kwargs = steps.send(await _acalled(function, args, kwargs))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def _steps(self, function: Callable[..., Any], inputs: Mapping[str, Any]) -> Steps[Attempt]:
        """Yield the arguments of each call; receive the value and the error of it."""
        acceptance = Acceptance(self._terms, inputs, Inputs(inputs))
        error = yield from self._examples_hold(function)
        if error is not None:
            return Attempt(error=error)
        value, error = yield self._terms.signature.arguments(inputs)
        if error is not None:
            return Attempt(error=error)
        try:
            return Attempt(value=acceptance.accept(value))
        except (ContractError, TypeError, ValueError, AssertionError) as wrong:
            return Attempt(error=wrong)

    def _examples_hold(self, function: Callable[..., Any]) -> Steps[Exception | None]:
        """Return how the function fails the examples of the task, which are called once."""
        if self._tried is None or self._tried[0] is not function:
            failure: Exception | None = None
            for example in self._terms.examples:
                if example.is_stated:
                    continue  # the function has the powers of the host, and a sentence asks for no call
                failure = failure or (yield from self._example_holds(example))
            self._tried = function, failure
        return self._tried[1]

    def _example_holds(self, example: Example) -> Steps[Exception | None]:
        inputs = example_inputs(example, self._terms.signature)
        if inputs is None:
            return None
        value, error = yield self._terms.signature.arguments(inputs)
        if error is None:
            try:
                value = example.seen(self._terms.signature.check_result(value))
            except (ContractError, TypeError, ValueError) as wrong:
                error = wrong
        shown = shown_repr(value) if error is None else f"{type(error).__name__}: {error}"
        if outcome_matches(example, value=value, error=error, value_repr=shown):
            return None
        failed = ValueError(describe_failure(example, cut_middle(shown, GOT_CHARS)))
        failed.__cause__ = error
        return failed


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The outcome of a solution: a value that the contract accepts, or an error."""

    value: Any = None
    error: Exception | None = None


class WithSolution:
    """Runs actions where the task's code runs, and the task's solution in the host.

    Args:
        execution: of the code.
        solution: the function.
        inputs: of this call, by name.
    """

    def __init__(self, execution: Execution, solution: HostSolution, inputs: Mapping[str, Any]) -> None:
        self._execution = execution
        self._inputs = inputs
        self.solution = solution
        self.error: Exception | None = None
        """Why the solution did not solve the call."""

    def run(self, action: Action, turn: int) -> Observation:
        """Carry out an action in this thread."""
        if type(action) is Consult:
            return self._observed(self.solution.attempt(self._inputs))
        return self._execution.run(action, turn)

    async def arun(self, action: Action, turn: int) -> Observation:
        """Carry out an action without holding up the event loop."""
        if type(action) is Consult:
            return self._observed(await self.solution.aattempt(self._inputs))
        return await self._execution.arun(action, turn)

    def _observed(self, attempt: Attempt) -> Observation:
        self.error = attempt.error
        if attempt.error is None:
            return Observation(ending=Success(attempt.value))
        return Observation(text=f"{type(attempt.error).__name__}: {attempt.error}", failed=True)


def consulted(plan: Plan, runner: WithSolution) -> Loop[Success | None]:
    """Try the solution; return the ending, or None where the model is to be asked.

    Raises:
        TaskFail: it did not solve the call, and no model is to be asked.
    """
    solution = runner.solution
    module, _, name = solution.address.partition(":")
    seen: Observation = yield Execute(Consult(code=f"from {module} import {name}"), 0, _PROGRESS)
    if isinstance(seen.ending, Success):
        yield plan.event(SystemNoteEvent, 0, message=f"Solved by {solution.address}; no model was asked.")
        yield plan.event(SuccessEvent, 0, result=seen.ending.value)
        return seen.ending
    if solution.fallback:
        note = f"{solution.address} did not solve this call; the model is asked.\n{seen.text}"
        yield plan.event(SystemNoteEvent, 0, message=encodable(note))
        return None
    message = encodable(f"{solution.address} did not solve this call: {seen.text}")
    yield plan.event(FailEvent, 0, message=message)
    raise TaskFail(message) from runner.error


def is_consulting(progress: Progress | None) -> bool:
    """Return whether a run stopped while its solution was tried."""
    return progress is not None and progress.turn == 0 and not progress.reply.actions


_PROGRESS = Progress(turn=0, reply=Reply(), seen=(Observation(),))
"""Where the calls of a solution are in the journal: apart from those of setup code and of kept code."""


def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Outcome:
    try:
        return function(*args, **kwargs), None
    except _NOT_ITS_OWN:
        raise
    except Exception as error:  # noqa: BLE001 - the model is told, or the caller
        return None, error


async def _acalled(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Outcome:
    if not is_async(function):
        return await off_loop(lambda: _called(function, args, kwargs))
    try:
        return await function(*args, **kwargs), None
    except _NOT_ITS_OWN:
        raise
    except Exception as error:  # noqa: BLE001
        return None, error


def require_address(address: object, *, fallback: object) -> None:
    """Refuse an address that names no function of a module.

    Raises:
        DefinitionError: it does not.
    """
    if not isinstance(fallback, bool):
        raise DefinitionError(f"fallback={fallback!r} is neither True nor False.")
    if address is None:
        if not fallback:
            raise DefinitionError(
                "fallback=False asks no model, so it needs solution='package.module:function'."
            )
        return
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise DefinitionError(
            f"solution={address!r} is no address; write solution='package.module:function'."
        )


def models_of(
    agent: AgentBase, solution: HostSolution | None
) -> tuple[tuple[Model, ...], ModelNotConfigured | None]:
    """Return the models to ask; for a task with a solution perhaps none, with the error that says so."""
    if solution is None:
        return resolved_models(agent), None
    try:
        return resolved_models(agent) if solution.fallback else (), None
    except ModelNotConfigured as error:
        return (), error
