"""`TinyCodeAgent`: a task in words, solved by Python that a model writes and that is run step by step."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, overload

from agex.errors import DefinitionError
from agex.models.base import Model
from agex.models.resolve import resolve_model
from agex.tinyagent.agent_run import AgentRun
from agex.tinyagent.imports import require_import_names
from agex.tinyagent.limits import ExecutionLimits
from agex.tinyagent.panels import show_panel
from agex.tinyagent.prompt import Instructions
from agex.tinyagent.python_executor import PythonExecutor
from agex.tinyagent.result import RunResult
from agex.tinyagent.scratchpad import AgentMemory
from agex.tinyagent.step_memory import MemoryManager, keep_last_n_steps
from agex.tinyagent.tools import Tool, checked_tools
from agex.tinyagent.trust import TrustLevel, level_of

__all__ = ["TinyCodeAgent"]

_FAMILIES = {
    "gpt": "openai",
    "chatgpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "mistral": "mistral",
    "codestral": "mistral",
}
"""How the name of a model begins that is given without its provider."""


class TinyCodeAgent:
    """Solves tasks given in words by writing Python and having it run.

    Each run begins with empty variables and a new conversation; only `memory` stays from run to run.
    Runs may go on at the same time, from many threads and coroutines.

    Args:
        tools: functions that the code may call by name, made with `tool`; sync ones only.
        model: a name such as ``"gpt-4o-mini"``, or anything ``agex.Agent(model=...)`` takes.
        api_key: the provider's key; by default the environment has it.
        trust_level: where the code runs; a level that does not hold here is refused by `run`.
        limits: of each step's time, output and memory, and of all steps.
        extra_imports: modules that the code may import beside the standard set. The
            code can do anything that they can do: choose them with care.
        system_suffix: added to the system prompt.
        prompt_file: a file with the rules of the system prompt, in place of the default ones. The names
            in the agent's code are listed where it says ``{helpers}``, or else behind it.
        memory_manager: to keep the steps of the conversation in; it serves one run at a time. By default
            each run has its own.
        enable_pruning: drop old steps from the conversation.
        prune_keep_last: how many of them to keep then.
        working_directory: the directory whose files the code may read, never write; None for no files.

    Attributes:
        memory: notes of the code and of the host; they stay until cleared.
        memory_manager: the one given; else that of the run begun last, None before the first.

    Raises:
        DefinitionError: a setting cannot work.
        ToolDefinitionError: a tool cannot be used here.
        FileNotFoundError: there is no such prompt file.
    """

    def __init__(
        self,
        *,
        tools: Sequence[Tool] = (),
        model: object = "gpt-4o-mini",
        api_key: str | None = None,
        trust_level: TrustLevel | str = TrustLevel.LOCAL,
        limits: ExecutionLimits | None = None,
        extra_imports: Sequence[str] = (),
        system_suffix: str | None = None,
        prompt_file: str | Path | None = None,
        memory_manager: MemoryManager | None = None,
        enable_pruning: bool = False,
        prune_keep_last: int = 3,
        working_directory: str | Path | None = ".",
    ) -> None:
        self.tools = checked_tools(tools)
        self.model = model
        self.trust_level = level_of(trust_level)
        self.limits = ExecutionLimits() if limits is None else limits
        self.extra_imports = require_import_names(extra_imports)
        self.enable_pruning = enable_pruning
        self.prune_keep_last = prune_keep_last
        self.working_directory = working_directory
        self.memory = AgentMemory()
        self.memory_manager = memory_manager
        self._own_manager = memory_manager
        self._in_use = threading.Lock()
        self._api_key = api_key
        self._resolved: tuple[object, Model] | None = None
        self._instructions = Instructions.read(prompt_file, system_suffix)
        keep_last_n_steps(prune_keep_last)  # refuses a number that cannot be, now

    def __repr__(self) -> str:
        return f"<TinyCodeAgent {self.model!r} {self.trust_level.value}>"

    @overload
    async def run(
        self, task: str, max_steps: int = 10, verbose: bool = False, return_result: Literal[False] = False
    ) -> str: ...

    @overload
    async def run(
        self, task: str, max_steps: int = 10, verbose: bool = False, *, return_result: Literal[True]
    ) -> RunResult: ...

    @overload
    async def run(
        self, task: str, max_steps: int = 10, verbose: bool = False, return_result: bool = False
    ) -> str | RunResult: ...

    async def run(
        self, task: str, max_steps: int = 10, verbose: bool = False, return_result: bool = False
    ) -> str | RunResult:
        """Solve a task; the event loop stays free meanwhile.

        Args:
            task: what is wanted, in words.
            max_steps: turns of the model.
            verbose: print each step while it happens.
            return_result: return the whole record in place of the answer's text. A run that ends
                without an answer is then a record too, with its ``state`` and ``error``.

        Raises:
            StepLimitReached: no answer in so many steps.
            LLMFail: the model could not be asked.
            IsolationUnavailable: the trust level does not hold here; no model was asked.
            ModelNotConfigured: there is no model to ask.
        """
        with self._manager() as manager:
            # It may have a library to import, or the machinery of a provider.
            running = await asyncio.to_thread(self._running, task, max_steps, verbose, manager)
            result = await running.arun()
        return result if return_result else _text(result)

    @overload
    def run_sync(
        self, task: str, max_steps: int = 10, verbose: bool = False, return_result: Literal[False] = False
    ) -> str: ...

    @overload
    def run_sync(
        self, task: str, max_steps: int = 10, verbose: bool = False, *, return_result: Literal[True]
    ) -> RunResult: ...

    @overload
    def run_sync(
        self, task: str, max_steps: int = 10, verbose: bool = False, return_result: bool = False
    ) -> str | RunResult: ...

    def run_sync(
        self, task: str, max_steps: int = 10, verbose: bool = False, return_result: bool = False
    ) -> str | RunResult:
        """Like `run`, blocking. It needs no event loop, and works inside a running one."""
        with self._manager() as manager:
            result = self._running(task, max_steps, verbose, manager).run()
        return result if return_result else _text(result)

    # -- a run -----------------------------------------------------------------------------

    def _running(self, task: str, max_steps: int, verbose: bool, manager: MemoryManager) -> AgentRun:
        if max_steps < 1:
            raise DefinitionError(f"max_steps={max_steps}: a run needs at least 1 step.")
        executor = PythonExecutor(
            self.extra_imports,
            self.limits,
            tools=self.tools,
            trust_level=self.trust_level,
            memory=self.memory,
            working_directory=self.working_directory,
        )
        executor.opened()  # a level that does not hold is said before anything of a model
        return AgentRun(
            task=task,
            steps=max_steps,
            model=self.resolved_model(),
            executor=executor,
            instructions=self._instructions,
            manager=manager,
            prune=keep_last_n_steps(self.prune_keep_last) if self.enable_pruning else None,
            on_event=show_panel if verbose else None,
        )

    @contextmanager
    def _manager(self) -> Iterator[MemoryManager]:
        """Return the memory manager of the run."""
        if self._own_manager is None:
            self.memory_manager = MemoryManager()
            yield self.memory_manager
            return
        if not self._in_use.acquire(blocking=False):
            raise DefinitionError(
                "Another run uses this agent's memory_manager. Wait for it to end, or leave "
                "memory_manager= out: then each run has one of its own."
            )
        try:
            yield self._own_manager
        finally:
            self._in_use.release()

    def resolved_model(self) -> Model:
        """Return the model to ask, looked up once for each value of ``model``.

        Raises:
            ModelNotConfigured: there is none.
        """
        known = self._resolved
        if known is None or known[0] is not self.model:
            known = self._resolved = (
                self.model,
                resolve_model(_with_provider(self.model), api_key=self._api_key),
            )
        return known[1]


def _with_provider(model: object) -> object:
    """Return a model's name with its provider, where it is well known by its name alone."""
    if not isinstance(model, str) or ":" in model:
        return model
    family = model.partition("-")[0]
    provider = _FAMILIES.get(family)
    return model if provider is None else f"{provider}:{model}"


def _text(result: RunResult) -> str:
    if result.error is not None:
        raise result.error
    return result.output
