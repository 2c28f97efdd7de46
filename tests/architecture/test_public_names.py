"""The names a caller may rely on: adding one is a decision, losing one is a break."""

from __future__ import annotations

import pytest

import agex

PUBLIC_NAMES = [
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


def test_the_public_names_are_these() -> None:
    assert list(agex.__all__) == PUBLIC_NAMES


@pytest.mark.parametrize("name", agex.__all__)
def test_a_public_name_can_be_imported(name: str) -> None:
    assert getattr(agex, name) is not None


def test_dir_shows_the_public_names() -> None:
    assert set(agex.__all__) <= set(dir(agex))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        agex.no_such_name  # noqa: B018 - the look-up itself is what is tested
