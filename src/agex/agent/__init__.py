"""Agents: what their code may use, their tasks, and the loop that carries a task out.

This room decides what a model is told and what its answers mean. It never asks a provider itself
(``models``), never runs code itself (``sandbox``), never decides what fits a type (``contract``).

In order (imports run to the right only): `views`, `ray`; `agent`; `built_agents` with `task_stubs`; `task`;
`base`, an agent without tasks; `execution` of actions; `prompt`; `durable` runs; `loop` of turns; `call` in
progress; `registration`; `rendering`.
"""

from __future__ import annotations

from agex.agent.agent import Agent
from agex.agent.call.budget import Budget
from agex.agent.call.call import Token
from agex.agent.call.events import (
    ActionEvent,
    CancelledEvent,
    ClarifyEvent,
    ErrorEvent,
    Event,
    FailEvent,
    FileEvent,
    OutputEvent,
    SuccessEvent,
    SystemNoteEvent,
    TaskStartEvent,
    event_from_json,
)
from agex.agent.durable.host_calls import HostCall
from agex.agent.durable.saved_runs import RunInfo, runs
from agex.agent.durable.solution_entries import Solution
from agex.agent.task.kept_solutions import SolvedBy
from agex.agent.task.run import Run
from agex.agent.task.state_codec import remember
from agex.agent.task.task import AsyncTask, Task
from agex.agent.views.inspection import events, view
from agex.agent.views.printing import pprint_events, pprint_tokens

remember()

__all__ = [
    "ActionEvent",
    "Agent",
    "AsyncTask",
    "Budget",
    "CancelledEvent",
    "ClarifyEvent",
    "ErrorEvent",
    "Event",
    "FailEvent",
    "FileEvent",
    "HostCall",
    "OutputEvent",
    "Run",
    "RunInfo",
    "Solution",
    "SolvedBy",
    "SuccessEvent",
    "SystemNoteEvent",
    "Task",
    "TaskStartEvent",
    "Token",
    "event_from_json",
    "events",
    "pprint_events",
    "pprint_tokens",
    "runs",
    "view",
]
