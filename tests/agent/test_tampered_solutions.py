"""A solution from a stranger's store: its commits are whole, and what they hold is what he liked."""

from __future__ import annotations

import json
import pickle

import pytest
from tampered_entries import changed, entry, forged

from agex import Agent, StateCorrupt, SystemNoteEvent, Versioned, values
from agex.errors import AgexError
from agex.testing import ScriptedModel, python_action

MADE: list[object] = []


class Bomb:
    def __reduce__(self):
        return MADE.append, ("code of the entry was run",)


def task_over(state: Versioned, *codes: str, isolation: str = "none"):
    model = ScriptedModel([[python_action(code)] for code in codes])
    agent = Agent(model=model, state=state, isolation=isolation)

    @agent.task(reuse=True)
    def f(x: int) -> int:
        """Double it."""

    return f, model


def solved() -> tuple[Versioned, str]:
    """Return a state with a solution, and its key."""
    MADE.clear()
    state = Versioned()
    task, _ = task_over(state, "def f(x):\n    return x * 2")
    assert task(2) == 4
    (key,) = [key for key in state.entry_keys() if key.startswith("solution/") and not key.endswith("/calls")]
    return state, key


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no recipe at all",
        entry(["a list"]),
        entry({"record": 3}),
        entry({"record": "{}"}),
        entry({"record": json.dumps({"task": "f", "source": "", "created": 1e300, "terms": {}})}),
        entry({"record": json.dumps({"task": "f", "source": "", "created": -1, "used": -1, "terms": {}})}),
    ],
    ids=["empty", "noise", "list", "number", "nothing", "date", "negative"],
)
def test_an_entry_that_is_none_is_corrupt_and_no_model_is_asked(payload):
    state, key = solved()
    task, model = task_over(forged(state, key, payload))
    for use in (lambda: task(1), lambda: task.solution):
        with pytest.raises(StateCorrupt):
            use()
    assert model.requests == []


@pytest.mark.parametrize("fields", [{"task": "g"}, {"terms": {}}, {"terms": {"the signature": "0"}}])
def test_a_solution_of_another_task_or_for_other_terms_is_corrupt(fields):
    state, key = solved()
    task, _ = task_over(changed(state, key, **fields))
    with pytest.raises(StateCorrupt, match="of another task, or for other terms"):
        task(1)


def test_a_solution_under_another_key_is_corrupt():
    state, key = solved()
    other = forged(state, "solution/f/" + "0" * 32, entry(state.entry(key)))
    task, _ = task_over(other, "task_success(0)")
    assert task(3) == 6  # its own is whole

    @task.agent.task("Other terms.", reuse=True)
    def f(x: int) -> int:
        """Double it."""

    with pytest.raises(StateCorrupt, match="for other terms"):
        f(3)


def test_a_pickle_that_calls_is_not_loaded():
    state, key = solved()
    for place in (key, f"{key}/calls"):
        stream = pickle.dumps({"entry": Bomb()}, protocol=5)
        payload = values.cut(values.Group(names=("entry",), stream=stream, buffers=()), lambda c: b"").payload
        task, _ = task_over(forged(state, place, payload))
        with pytest.raises(AgexError):
            task(1)
    assert MADE == []


@pytest.mark.parametrize("calls", [3, [1], [({}, 1, 2)], [({1: 2}, 3)], [(["x"], 1)]])
def test_calls_that_are_none_are_corrupt(calls):
    state, key = solved()
    task, _ = task_over(forged(state, f"{key}/calls", entry(calls)))
    with pytest.raises(StateCorrupt, match="holds no calls of a task"):
        task(1)


@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef f(x):\n    return os.getpid()",
        "import subprocess\ndef f(x):\n    return len(subprocess.run(['id'], capture_output=True).stdout)",
        "def f(x):\n    return len(open('/etc/passwd').read())",
        "def f(x):\n    return len(().__class__.__base__.__subclasses__())",
        "import agex\ndef f(x):\n    return 1",
        "task_success(1) if __import__('os') else None",
        "def f(x: '",
        "\x00",
    ],
    ids=["os", "subprocess", "open", "dunder", "agex", "import", "syntax", "zero"],
)
def test_code_of_a_stranger_runs_under_the_guards_and_the_model_is_asked_instead(source):
    state, key = solved()
    task, model = task_over(changed(state, key, source=source), "def f(x):\n    return x + x")
    run = task.run(7)
    assert (run.value, len(model.requests)) == (14, 1)
    (said,) = [event.message for event in run.events if isinstance(event, SystemNoteEvent)]
    assert said.startswith("The code kept from an earlier call did not solve this one")


def test_code_of_a_stranger_is_held_to_the_contract():
    state, key = solved()
    task, model = task_over(
        changed(state, key, source="def f(x):\n    return 'text'"), "def f(x):\n    return x + x"
    )
    assert (task(7), len(model.requests)) == (14, 1)


def test_code_of_a_stranger_runs_in_the_worker_where_the_agents_code_does():
    state, key = solved()
    source = "import os\ndef f(x):\n    return os.getpid()"
    task, model = task_over(
        changed(state, key, source=source), "def f(x):\n    return x + x", isolation="process"
    )
    assert (task(7), len(model.requests)) == (14, 1)
