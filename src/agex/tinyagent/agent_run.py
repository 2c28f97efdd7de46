"""One run of an agent, from its task to its record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agex.agent.call.budget import Ledger
from agex.agent.call.call import Call, OnEvent, current_call, payer
from agex.agent.call.events import TaskStartEvent
from agex.agent.loop.drivers import adrive, drive
from agex.agent.loop.loop import Loop, Plan, Talk, solve
from agex.agent.loop.telemetry import task_span
from agex.agent.task.run import Run, close
from agex.errors import BudgetExceeded, StepLimitReached, TaskCancelled, TaskError, TaskFail, TaskTimeout
from agex.models.base import Model
from agex.tinyagent.dialogue import Dialogue
from agex.tinyagent.prompt import Instructions
from agex.tinyagent.python_executor import PythonExecutor
from agex.tinyagent.result import FinalAnswer, RunResult
from agex.tinyagent.step_memory import MemoryManager, PruneStrategy
from agex.tinyagent.workbench import Workbench

__all__ = ["AgentRun"]


class AgentRun:
    """A run in progress. It has everything to itself but the agent's memory.

    Raises:
        IsolationUnavailable: the trust level does not hold here. No model was asked yet.
    """

    def __init__(
        self,
        *,
        task: str,
        steps: int,
        model: Model,
        executor: PythonExecutor,
        instructions: Instructions,
        manager: MemoryManager,
        prune: PruneStrategy | None,
        on_event: OnEvent | None,
    ) -> None:
        parent = current_call()
        self._executor = executor
        self._model = model
        self._task = task
        self._ledger = Ledger(parent=payer())
        self._call = Call(ledger=self._ledger, parent=parent, on_event=on_event)
        self._call.session = executor.opened()
        self._bench = Workbench(executor, self._call)
        self._plan = Plan(
            agent="TinyCodeAgent",
            task="run",
            models=(model.full_name,),
            max_iterations=min(steps, executor.limits.max_steps),
            endings=("final_answer",),
            ends_by_function=False,
        )
        self._record: Run[Any] = Run(
            run_id=self._plan.run_id,
            agent=self._plan.agent,
            task=self._plan.task,
            state=None,
            call=self._call,
        )
        self._answer: FinalAnswer | None = None
        self._error: TaskError | None = None
        self._dialogue = Dialogue(
            manager=manager,
            system=instructions.text(executor, self._plan.max_iterations, model.profile),
            task=task,
            memory=executor.memory,
            taken=self._bench.taken,
            prune=prune,
            profile=model.profile,
        )
        self._ledger.begin()

    def run(self) -> RunResult:
        """Carry out the run in this thread."""
        with self._recorded(), self._call.entered(), task_span(self._plan, self._call):
            self._answer = drive(self._steps(), self._plan, self._call, (self._model,), self._bench)
        return self._result()

    async def arun(self) -> RunResult:
        """Carry out the run without blocking the event loop."""
        with self._recorded(), self._call.entered(), task_span(self._plan, self._call):
            self._answer = await adrive(self._steps(), self._plan, self._call, (self._model,), self._bench)
        return self._result()

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Close the record; keep the error of a run that ended without an answer, and raise any other."""
        try:
            yield
        except TaskCancelled as error:
            self._close(error)
            raise
        except TaskError as error:
            self._error = self._told(error)
            self._close(self._error)
        except BaseException as error:
            close(self._record, error=error)
            raise
        else:
            close(self._record, value=self._answer)
        finally:
            self._ledger.pause()
            self._executor.close()

    def _close(self, error: TaskError) -> None:
        error.run = self._record
        close(self._record, error=error)

    def _steps(self) -> Loop[Any]:
        yield self._plan.event(TaskStartEvent, 0, inputs={"task": self._task})
        return (yield from solve(self._plan, Talk(self._dialogue), self._ledger))

    def _told(self, error: TaskError) -> TaskError:
        """Return the error under its public class of this room."""
        is_late = isinstance(error, TaskTimeout | TaskFail) and not isinstance(error, BudgetExceeded)
        if not is_late:
            return error
        limit = StepLimitReached(self._no_answer(), steps_taken=len(self._dialogue.steps))
        limit.__cause__ = error
        return limit

    def _no_answer(self) -> str:
        steps = self._dialogue.steps
        told = f"No answer after {len(steps)} steps (max_steps={self._plan.max_iterations})."
        last = steps[-1].error if steps else ""
        return f"{told} The last error was:\n{last}" if last else told

    def _result(self) -> RunResult:
        answer, error, results = self._answer, self._error, self._bench.results
        is_late = isinstance(error, StepLimitReached)
        return RunResult(
            output=answer.text if answer is not None else "",
            final_answer=answer,
            state="completed" if error is None else "step_limit_reached" if is_late else "error",
            steps_taken=len(self._dialogue.steps),
            duration_seconds=self._ledger.seconds,
            error=error,
            metadata={"model": f"{self._model.provider}:{self._model.name}", "run_id": self._plan.run_id},
            signals=tuple(self._executor.signals),
            steps=tuple(self._dialogue.steps),
            usage=self._ledger.used,
            trust_level=self._executor.trust_level,
            enforcement=results[-1].enforcement if results else None,
        )
