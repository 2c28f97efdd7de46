"""The executor of the loop's actions, and the observations that the model is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agex.agent.call.call import Call
from agex.agent.execution.block_checks import BlockChecks, hides_ending
from agex.agent.execution.worker_threads import in_thread, or_cancelled, turn_of
from agex.agent.loop.loop import Failure, Observation, Success
from agex.agent.prompt.listing import signature_text
from agex.agent.registration import Registration
from agex.agent.rendering.output_text import cut_middle, encodable, error_text, quoted
from agex.models.actions import Action, PythonAction
from agex.tinyagent.python_executor import ExecutionResult, PythonExecutor
from agex.tinyagent.tools import Tool
from agex.tinyagent.trust import TrustLevel

if TYPE_CHECKING:
    from agex.isolation import GuestSession

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
        self._checks = _checks_of(executor)
        self._ends_in_calls = False

    def run(self, action: Action, turn: int) -> Observation:
        """Carry out an action in this thread."""
        if not isinstance(action, PythonAction):
            raise TypeError(f"{action.kind} was not offered to the model and cannot be carried out")
        if self._executor.steps_left <= 0:
            return _out_of_steps(self._executor.limits.max_steps)
        refused = self._prepared(action.code)
        if refused is not None:
            return Observation(text=refused, failed=True, brief=refused)
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

    def _prepared(self, code: str) -> str | None:
        """Import what the code uses without an import; or return why nothing of it may run."""
        session = self._executor.opened()
        names, given = partial(_variables, session), session.builtins
        refused = self._checks.refusal(code, names, given, ends=self._ends_in_calls)
        if refused is not None:
            return refused
        imports = self._checks.missing_imports(code, names)
        if imports:
            session.run(imports, filename="<agex>")
        self._ends_in_calls = self._ends_in_calls or hides_ending(code)
        return None

    async def arun(self, action: Action, turn: int) -> Observation:
        """Carry out an action in a worker thread: the event loop stays free."""
        async with turn_of(self._call.depth):
            return await or_cancelled(in_thread(lambda: self.run(action, turn)), self._call.cancel)

    def taken(self) -> list[ExecutionResult]:
        """Return the results since this was last asked."""
        new = self.results[self._taken :]
        self._taken = len(self.results)
        return new


def _checks_of(executor: PythonExecutor) -> BlockChecks:
    records = [Registration(kind="function", name=one.name, target=one.fn) for one in executor.tools]
    checks = BlockChecks.of(records, executor.policy, _own_module(executor))
    return replace(checks, registered=executor.extra_imports)


def _own_module(executor: PythonExecutor) -> Callable[[str], bool] | None:
    """Return whether the working directory has a module; code in this process imports none of it."""
    files = executor.files
    if files is None or executor.trust_level is TrustLevel.LOCAL:
        return None

    def is_there(name: str) -> bool:
        top = files.root / name.partition(".")[0]
        return top.is_dir() or top.with_suffix(".py").is_file()

    return is_there


def _variables(session: GuestSession) -> set[str]:
    return {*session.namespace, *session.modules}


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
