"""A small conversational agent: a task in words, solved by Python that a model writes.

This room is a facade: the loop is `agex.agent.loop.loop`, the code runs in a session of `agex.sandbox`,
the model is asked by `agex.models`. It never asks a provider itself, never runs code past the
guards, and never runs it at a weaker trust level than was asked for.

Reading order: ``code_agent`` (the agent), ``agent_run`` (one run), ``dialogue`` (requests), ``workbench``
(actions), ``python_executor`` with ``limits``, ``trust``, ``imports`` and ``tools``; ``readonly_directory``
and ``readonly_workspace`` (files); ``steps`` with ``step_memory``, ``scratchpad`` and ``signals``;
``prompt``, ``result``, ``panels``.
"""

from __future__ import annotations

from agex.errors import ExecutionTimeout, StepLimitReached, ToolDefinitionError
from agex.tinyagent.code_agent import TinyCodeAgent
from agex.tinyagent.limits import ExecutionLimits
from agex.tinyagent.python_executor import ExecutionResult, Executor, PythonExecutor
from agex.tinyagent.result import FinalAnswer, RunResult
from agex.tinyagent.scratchpad import AgentMemory
from agex.tinyagent.signals import Signal, SignalType, commit, explore, uncertain
from agex.tinyagent.step_memory import (
    MemoryManager,
    PruneStrategy,
    keep_last_n_steps,
    no_pruning,
    prune_old_observations,
)
from agex.tinyagent.steps import ActionStep, ScratchpadStep, Step, SystemPromptStep, TaskStep
from agex.tinyagent.tools import Tool, tool
from agex.tinyagent.trust import TrustLevel

__all__ = [
    "ActionStep",
    "AgentMemory",
    "ExecutionLimits",
    "ExecutionResult",
    "ExecutionTimeout",
    "Executor",
    "FinalAnswer",
    "MemoryManager",
    "PruneStrategy",
    "PythonExecutor",
    "RunResult",
    "ScratchpadStep",
    "Signal",
    "SignalType",
    "Step",
    "StepLimitReached",
    "SystemPromptStep",
    "TaskStep",
    "TinyCodeAgent",
    "Tool",
    "ToolDefinitionError",
    "TrustLevel",
    "commit",
    "explore",
    "keep_last_n_steps",
    "no_pruning",
    "prune_old_observations",
    "tool",
    "uncertain",
]
