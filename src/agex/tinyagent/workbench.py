"""The executor of the loop's actions, and the observations that the model is shown."""

from __future__ import annotations

from agex.agent.call.call import Call
from agex.agent.execution.worker_threads import in_thread, or_cancelled, turn_of
from agex.agent.loop.loop import Failure, Observation, Success
from agex.agent.prompt.listing import signature_text
from agex.agent.rendering.output_text import cut_middle, encodable, error_text, quoted
from agex.models.actions import Action, PythonAction
from agex.tinyagent.python_executor import ExecutionResult, PythonExecutor
from agex.tinyagent.tools import Tool

__all__ = ["Workbench"]

SILENT = "(no output)"
SAID_CHARS = 4_000
"""Of a traceback, and of the signals of a step, in what the model is shown."""


class Workbench:
    """Carries out actions with an executor. It is an `agex.agent.loop.drivers.ActionRunner`.

    Attributes:
        results: of everything that was executed, in order.
    """

    def __init__(self, executor: PythonExecutor, call: Call) -> None:
        self.results: list[ExecutionResult] = []
        self._executor = executor
        self._call = call
        self._taken = 0

    def run(self, action: Action, turn: int) -> Observation:
        """Carry out an action in this thread."""
        if not isinstance(action, PythonAction):
            raise TypeError(f"{action.kind} was not offered to the model and cannot be carried out")
        if self._executor.steps_left <= 0:
            return _out_of_steps(self._executor.limits.max_steps)
        result = self._executor.run(action.code)
        self.results.append(result)
        text = _text(result)
        if result.answer is not None:
            return Observation(text=text, ending=Success(result.answer), seconds=result.duration_ms / 1000)
        return Observation(
            text=text or SILENT,
            failed=not result.success,
            brief=error_text(encodable(result.error or "")),
            seconds=result.duration_ms / 1000,
        )

    async def arun(self, action: Action, turn: int) -> Observation:
        """Carry out an action in a worker thread: the event loop stays free."""
        async with turn_of(self._call.depth):
            return await or_cancelled(in_thread(lambda: self.run(action, turn)), self._call.cancel)

    def taken(self) -> list[ExecutionResult]:
        """Return the results since this was last asked."""
        new = self.results[self._taken :]
        self._taken = len(self.results)
        return new


def _text(result: ExecutionResult) -> str:
    said = "\n".join(str(signal) for signal in result.signals)
    parts = [result.output, cut_middle(said, SAID_CHARS)]
    if not result.success:
        parts.append(cut_middle(error_text(result.traceback or result.error or ""), SAID_CHARS))
        parts.extend(map(_usage, result.called))
    return encodable(quoted("\n".join(part for part in parts if part)))


def _usage(tool: Tool) -> str:
    return f"How to use {tool.name}{signature_text(tool.fn)}:\n{tool.doc}"


def _out_of_steps(limit: int) -> Observation:
    text = f"Not executed: {limit} pieces of code were run, which is the limit (ExecutionLimits.max_steps)."
    return Observation(text=text, failed=True, brief=text, ending=Failure(text))
