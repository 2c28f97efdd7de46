"""The agent before it has tasks: settings, what its code may use, and the means of one call.

`Agent` in ``agex.agent.agent`` adds the tasks; tasks and calls know no more of an agent than `AgentBase`.
This room never asks a model and never runs code. In order: `settings`, `registry`, `agent_base`, `page`.
"""

from __future__ import annotations

from agex.agent.base.agent_base import (
    AgentBase,
    command_names_of,
    extras_of,
    is_forkable,
    resolved_models,
    sandbox_of,
    session_of,
    task_files_of,
)
from agex.agent.base.registry import register
from agex.agent.base.settings import VIRTUAL_FS, Isolation, Python

__all__ = [
    "VIRTUAL_FS",
    "AgentBase",
    "Isolation",
    "Python",
    "command_names_of",
    "extras_of",
    "is_forkable",
    "register",
    "resolved_models",
    "sandbox_of",
    "session_of",
    "task_files_of",
]
