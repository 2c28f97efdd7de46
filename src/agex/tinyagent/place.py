"""Where the loop carries out an agent's code, and what the model is shown of it."""

from __future__ import annotations

from agex.agent.call import Call
from agex.agent.loop import Failure, Observation, Success
from agex.agent.observation import cut_middle, encodable
from agex.agent.thread import in_thread, or_cancelled, turn_of
from agex.models.actions import Action, PythonAction
from agex.tinyagent.executor import ExecutionResult, PythonExecutor

__all__ = ["Workbench"]

SILENT = "(no output)"


class Workbench:
    """Carries out actions with an executor. It is an `agex.agent.drivers.Place`.

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
        text = self._text(result)
        if result.answer is not None:
            return Observation(text=text, ending=Success(result.answer), seconds=result.duration_ms / 1000)
        return Observation(
            text=text or SILENT,
            failed=not result.success,
            brief=encodable(result.error or ""),
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

    def _text(self, result: ExecutionResult) -> str:
        limit = self._executor.limits.max_output_bytes
        said = [str(signal) for signal in result.signals]
        parts = [result.output, cut_middle("\n".join(said), limit)]
        if not result.success:
            parts.append(cut_middle(result.traceback.strip() or result.error or "", limit))
            parts.extend(f"How to use {tool.name}{tool.signature}:\n{tool.doc}" for tool in result.called)
        return encodable("\n".join(part for part in parts if part))


def _out_of_steps(limit: int) -> Observation:
    text = f"Not executed: {limit} pieces of code were run, which is the limit (ExecutionLimits.max_steps)."
    return Observation(text=text, failed=True, brief=text, ending=Failure(text))
