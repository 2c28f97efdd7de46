"""agex: a language model writes the body of a typed function, next to your own objects.

Two rings. The inner one (``sandbox``, ``values``, ``state``, ``files``, ``shell``, ``isolation``)
needs the standard library and a few small ones and knows nothing of agents; the outer one
(``contract``, ``agent``, ``models``, ``mcp``, ``tinyagent``, ``testing``, ``evals``, ``cli``) builds on
it, on pydantic and on pydantic-ai. Imports go outward to inward.

Names are imported when they are first used: a bare ``import agex`` loads no provider, no
pandas, no numpy and none of the rooms.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.agent import (
        ActionEvent,
        Agent,
        AsyncTask,
        Budget,
        CancelledEvent,
        ClarifyEvent,
        ErrorEvent,
        Event,
        FailEvent,
        FileEvent,
        HostCall,
        OutputEvent,
        Run,
        RunInfo,
        Solution,
        SolvedBy,
        SuccessEvent,
        SystemNoteEvent,
        Task,
        TaskStartEvent,
        Token,
        event_from_json,
        events,
        pprint_events,
        pprint_tokens,
        runs,
        view,
    )
    from agex.errors import (
        AgexError,
        BudgetExceeded,
        CallInDoubt,
        CallRejected,
        CheckError,
        DefinitionError,
        EvalError,
        InputError,
        IsolationUnavailable,
        LLMFail,
        ModelNotConfigured,
        ReplayMismatch,
        SandboxError,
        StateConflict,
        StateCorrupt,
        StateFull,
        TapeError,
        TaskCancelled,
        TaskClarify,
        TaskError,
        TaskFail,
        TaskSuspended,
        TaskTimeout,
        TieError,
        ToolError,
        UnpicklableVariableError,
        WeightsCorrupt,
        WorkerLost,
    )
    from agex.files import connect_fs
    from agex.models import Usage
    from agex.sandbox import MemberSpec
    from agex.state import Cache, Disk, Live, Memory, Versioned

__all__ = [
    "ActionEvent",
    "Agent",
    "AgexError",
    "AsyncTask",
    "Budget",
    "BudgetExceeded",
    "Cache",
    "CallInDoubt",
    "CallRejected",
    "CancelledEvent",
    "CheckError",
    "ClarifyEvent",
    "DefinitionError",
    "Disk",
    "ErrorEvent",
    "EvalError",
    "Event",
    "FailEvent",
    "FileEvent",
    "HostCall",
    "InputError",
    "IsolationUnavailable",
    "LLMFail",
    "Live",
    "MemberSpec",
    "Memory",
    "ModelNotConfigured",
    "OutputEvent",
    "ReplayMismatch",
    "Run",
    "RunInfo",
    "SandboxError",
    "Solution",
    "SolvedBy",
    "StateConflict",
    "StateCorrupt",
    "StateFull",
    "SuccessEvent",
    "SystemNoteEvent",
    "TapeError",
    "Task",
    "TaskCancelled",
    "TaskClarify",
    "TaskError",
    "TaskFail",
    "TaskStartEvent",
    "TaskSuspended",
    "TaskTimeout",
    "TieError",
    "Token",
    "ToolError",
    "UnpicklableVariableError",
    "Usage",
    "Versioned",
    "WeightsCorrupt",
    "WorkerLost",
    "connect_fs",
    "event_from_json",
    "events",
    "pprint_events",
    "pprint_tokens",
    "runs",
    "view",
]

_ELSEWHERE = {
    "Cache": "agex.state",
    "Disk": "agex.state",
    "Live": "agex.state",
    "MemberSpec": "agex.sandbox",
    "Memory": "agex.state",
    "Usage": "agex.models",
    "Versioned": "agex.state",
    "connect_fs": "agex.files",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("agex-py")
    if name not in __all__:
        raise AttributeError(f"module 'agex' has no attribute {name!r}")
    if name == "Versioned":
        importlib.import_module("agex.agent")  # it tells the state how events and code are kept
    errors = importlib.import_module("agex.errors")
    home = "agex.errors" if name in errors.__all__ else _ELSEWHERE.get(name, "agex.agent")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%agex`` to a notebook: ``%load_ext agex``."""
    importlib.import_module("agex.notebook").AgexMagics(shell).register()
