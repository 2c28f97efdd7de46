"""The ways in which an agent's code ends its task, as models write them."""

from __future__ import annotations

from typing import Any

import pytest

from agex import Agent, TaskFail
from agex.testing import ScriptedModel, python_action
from agex.tinyagent import TinyCodeAgent

GIVE_UP = "task_fail('the task went on')"


def outcome(code: str, **settings: Any) -> tuple[Any, str]:
    """Return the value for 21, or None, and what the model was shown."""
    model = ScriptedModel([[python_action(code)], [python_action(GIVE_UP)]])
    agent = Agent(model=model, **settings)

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    try:
        return double(21), ""
    except TaskFail:
        return None, model.requests[-1].messages[-1].content


OWN = "def double(n):\n    return n * 2"
ENDINGS = {
    "under lru_cache": f"from functools import lru_cache\n@lru_cache\n{OWN}",
    "under lru_cache with a size": f"import functools\n@functools.lru_cache(maxsize=None)\n{OWN}",
    "under cache": f"import functools\n@functools.cache\n{OWN}",
    "under a decorator of its own": "def loud(f):\n    def wrapper(*args, **kwargs):\n"
    f"        return f(*args, **kwargs)\n    return wrapper\n@loud\n{OWN}",
    "under wraps": "import functools\ndef loud(f):\n    @functools.wraps(f)\n"
    "    def wrapper(*args, **kwargs):\n"
    f"        return f(*args, **kwargs)\n    return wrapper\n@loud\n{OWN}",
    "under both": "import functools\ndef loud(f):\n    return lambda n: f(n)\n"
    f"@functools.lru_cache\n@loud\n{OWN}",
    "a lambda": "double = lambda n: n * 2",
    "an annotated lambda": "helper = double = lambda n: n * 2",
    "a partial": "import functools\ndef times(k, n):\n    return k * n\ndouble = functools.partial(times, 2)",
    "another function under its name": "def twice(n):\n    return n * 2\ndouble = twice",
    "task_success(value=)": "task_success(value=n * 2)",
    "task_success(result=)": "task_success(result=n * 2)",
    "task_success(answer=)": "task_success(answer=n * 2)",
}


@pytest.mark.parametrize("code", ENDINGS.values(), ids=ENDINGS.keys())
def test_a_task_ends_with(code: str) -> None:
    assert outcome(code) == (42, "")


@pytest.mark.parametrize("name", ["under lru_cache", "a lambda", "task_success(result=)"])
def test_a_task_ends_in_a_worker_process_with(name: str) -> None:
    assert outcome(ENDINGS[name], isolation="process") == (42, "")


REFUSED = {
    "two values": (
        "task_success(1, 2)",
        "task_success(value): too many positional arguments; several values",
    ),
    "two names": ("task_success(a=1, b=2)", "several values go as one tuple or dict"),
    "no reason": ("task_fail()", "task_fail(message): missing a required argument: 'message'"),
    "help for two": ("help(1, 2)", "help(thing): too many positional arguments"),
    "an object that can be called": (
        "class Double:\n    def __call__(self, n):\n        return n * 2\ndouble = Double()",
        "double is not a plain function, so the task goes on. To finish with it, define it with def",
    ),
    "a partial that takes too much": (
        "from functools import partial\ndef f(a, b, n):\n    return n\ndouble = partial(f, 1)",
        "Your double does not take the inputs of the task",
    ),
}


@pytest.mark.parametrize(("code", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_wrong_is_said_in_terms_of_the_contract(code: str, words: str) -> None:
    value, shown = outcome(code)
    assert value is None
    assert words in shown
    assert "_task" not in shown
    assert "Execution" not in shown


def test_a_value_under_the_tasks_name_is_no_end() -> None:
    assert outcome("double = n * 2\nprint('went on')")[1].endswith("went on")


@pytest.mark.parametrize("name", ["task_success", "task_fail", "task_clarify", "help", "view_image"])
def test_a_way_to_end_shows_its_own_name_and_nothing_of_the_host(name: str) -> None:
    _, shown = outcome(f"print({name}.__name__, {name})\ngetattr({name}, '__' + 'globals__')")
    assert shown.startswith(f"{name} <function {name} at")
    assert "attribute '__globals__' of 'function' object is not accessible" in shown
    assert "agex." not in shown


def test_a_reason_has_any_name() -> None:
    agent = Agent(model=ScriptedModel([[python_action("task_fail(reason='no data')")]]))

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    with pytest.raises(TaskFail, match="no data"):
        double(1)


@pytest.mark.parametrize(
    "call", ["final_answer(result=42)", "final_answer(42, verified_by='sum')", "final_answer(answer=42)"]
)
def test_a_tiny_agent_ends_with(call: str) -> None:
    assert TinyCodeAgent(model=lambda messages: f"```python\n{call}\n```").run_sync("Double 21.") == "42"
