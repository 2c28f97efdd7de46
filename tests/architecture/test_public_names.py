"""The names a caller may rely on: adding one is a decision, losing one is a break."""

from __future__ import annotations

import inspect

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


SETTINGS = [
    "budget",
    "escalate_after",
    "isolation",
    "llm_retries",
    "llm_timeout",
    "max_actions",
    "max_iterations",
    "max_memory_mb",
    "max_open_files",
    "max_output_chars",
    "model",
    "name",
    "primer",
    "python",
    "state",
    "timeout_seconds",
]
"""Of an agent, as attributes."""

OF_AN_AGENT = [
    "cls",
    "fn",
    "fs",
    "mcp",
    "module",
    "page",
    "registrations",
    "resolved_model",
    "skill",
    "task",
    "terminal",
]

OF_A_RUN = [
    "aanswer",
    "aapprove",
    "agent",
    "answer",
    "approve",
    "areject",
    "areplay",
    "call",
    "cancel",
    "code",
    "commit",
    "cost",
    "done",
    "duration",
    "error",
    "events",
    "ok",
    "page",
    "reject",
    "replay",
    "result",
    "run_id",
    "sample",
    "samples",
    "state",
    "task",
    "turns",
    "usage",
    "usage_by_model",
    "value",
]


def names_of(thing: object) -> list[str]:
    """Return the names that an object has, whatever its `__dir__` would hide."""
    return sorted(name for name in object.__dir__(thing) if not name.startswith("_"))


def test_an_agent_has_its_settings_and_what_users_call_and_nothing_else() -> None:
    assert names_of(agex.Agent()) == sorted(SETTINGS + OF_AN_AGENT)


def test_a_run_has_what_users_ask_it_and_nothing_else() -> None:
    run = agex.Run[int](run_id="1", agent="a", task="t", state=None, call=None)
    assert names_of(run) == OF_A_RUN


@pytest.mark.parametrize(
    ("owner", "name"),
    [(agex.Agent, name) for name in OF_AN_AGENT]
    + [(agex.Run, name) for name in OF_A_RUN if hasattr(agex.Run, name)],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_a_name_of_an_agent_or_a_run_is_in_the_reference(owner: type, name: str) -> None:
    assert inspect.getdoc(getattr(owner, name))


def test_completion_hides_nothing_of_an_agent_or_a_run() -> None:
    run = agex.Run[int](run_id="1", agent="a", task="t", state=None, call=None)
    for thing in (agex.Agent(), run):
        assert dir(thing) == sorted(object.__dir__(thing))


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
