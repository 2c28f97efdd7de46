"""Modules that a task imported: there in every later task, and no variables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agex import Disk, Live, Memory, UnpicklableVariableError, Versioned, view
from agex.agent import Agent
from agex.state import State
from agex.testing import ScriptedModel, python_action

FORMS = {
    "a module": ("import json", "json.dumps([1])", "[1]"),
    "another name": ("import json as j", "j.dumps([1])", "[1]"),
    "a module with a state of each session": ("import random", "random.choice([5])", 5),
    "a module that is run for each session": ("import logging", "logging.getLogger('a').name", "a"),
    "a module over the workspace": ("import io", "io.StringIO('a').read()", "a"),
    "a module below": ("import collections.abc", "issubclass(list, collections.abc.Sequence)", True),
    "a module below, by another name": ("import collections.abc as c", "issubclass(list, c.Sized)", True),
    "a module from its package": ("from collections import abc", "issubclass(list, abc.Sized)", True),
    "a package that is granted for what is in it": (
        "import xml.etree.ElementTree",
        "xml.etree.ElementTree.fromstring('<a/>').tag",
        "a",
    ),
    "one of those, by another name": (
        "import xml.etree.ElementTree as ET",
        "ET.fromstring('<a/>').tag",
        "a",
    ),
    "one of those, from its package": ("from urllib import parse", "parse.quote('a b')", "a%20b"),
    "a registered module": ("import numpy as np", "int(np.arange(3).sum())", 3),
    "a registered module below": ("import numpy.linalg as la", "float(la.norm([3, 4]))", 5.0),
    "one that was reached by its package": (
        "import numpy\nla = numpy.linalg",
        "float(la.norm([3, 4]))",
        5.0,
    ),
    "a module that is registered by another name": ("import table", "int(table.Series([1, 2]).sum())", 3),
    "two names of one module": ("import math\nm = math", "m is math", True),
    "a module that another variable was": ("math = 1\nimport math", "math.floor(1.5)", 1),
    "a name that was a module before": ("import math\nmath = 1", "math", 1),
    "a module in a list": (
        "import math, random\nfound = [math, random]",
        "found[1].choice([math.floor(1.5)])",
        1,
    ),
    "a module that a function reads": (
        "import table\ndef f(): return table.Series([1]).sum()",
        "int(f())",
        1,
    ),
    "a module in a class": ("import math\nclass A:\n    lib = math", "A.lib.floor(1.5)", 1),
}

MAKE: dict[str, Callable[[], State]] = {"live": Live, "versioned": Versioned}


def agent_of(*codes: str, **settings: Any) -> Agent:
    agent = Agent(
        model=ScriptedModel([[python_action(code)] for code in codes]), max_iterations=2, **settings
    )
    agent.module(np)
    agent.module(pd, name="table")
    return agent


def run(agent: Agent, state: State) -> Any:
    @agent.task
    def work() -> object:  # type: ignore[empty-body]
        """Do what the script says."""

    return work(state=state)


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("form", FORMS)
def test_what_a_task_imported_is_there_in_every_later_one(form: str, make: Callable[[], State]) -> None:
    code, asked, answer = FORMS[form]
    state = make()
    run(agent_of(code, "task_success(None)"), state)
    found = [run(agent_of(f"task_success({asked})", "pass"), state) for _ in range(3)]
    assert found == [answer] * 3


@pytest.mark.parametrize("form", FORMS)
def test_it_is_there_when_the_store_is_opened_again(form: str) -> None:
    code, asked, answer = FORMS[form]
    store = Memory()
    run(agent_of(code, "task_success(None)"), Versioned(store))
    assert [run(agent_of(f"task_success({asked})", "pass"), Versioned(store)) for _ in range(2)] == [
        answer
    ] * 2


@pytest.mark.parametrize(("isolation", "make"), [("process", Live), ("kernel", Versioned)])
def test_it_is_there_where_the_code_runs_in_a_worker(isolation: Any, make: Callable[[], State]) -> None:
    chosen = [FORMS[form] for form in FORMS if "before" not in form and "was" not in form]
    state = make()
    code = "\n".join(code for code, _, _ in chosen)
    run(agent_of(code, "task_success(None)", isolation=isolation), state)
    asked = ", ".join(asked for _, asked, _ in chosen)
    found = [run(agent_of(f"task_success([{asked}])", "pass", isolation=isolation), state) for _ in range(2)]
    assert found == [[answer for _, _, answer in chosen]] * 2
    assert "json" not in state


def test_another_process_goes_on_with_what_was_imported(tmp_path) -> None:
    run(agent_of("import json as j, xml.etree.ElementTree", "task_success(None)"), Versioned(Disk(tmp_path)))
    code = f"""
from agex import Agent, Disk, Versioned
from agex.testing import ScriptedModel, python_action
for _ in range(2):
    asked = "task_success([j.dumps(1), xml.etree.ElementTree.fromstring('<a/>').tag])"
    agent = Agent(model=ScriptedModel([[python_action(asked)]]))
    @agent.task
    def work() -> list: ...
    print(work(state=Versioned(Disk({str(tmp_path)!r}))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['1', 'a']"] * 2


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_module_of_the_workspace_is_imported_anew(make: Callable[[], State]) -> None:
    state = make()
    agent = agent_of("import pack.part\nimport tool as t\nfrom pack import other", "task_success(None)")
    files = agent.fs(state)
    for path, text in {
        "tool.py": "print('loaded')\ndef f(): return 1\n",
        "pack/__init__.py": "",
        "pack/part.py": "def g(): return 2\n",
        "pack/other.py": "N = 3\n",
    }.items():
        files.write(path, text.encode())
    run(agent, state)
    asked = "task_success([t.f(), pack.part.g(), other.N])"
    assert [run(agent_of(asked, "pass"), state) for _ in range(2)] == [[1, 2, 3]] * 2
    agent.fs(state).write("tool.py", b"def f(): return 10\n")
    assert run(agent_of(asked, "pass"), state) == [10, 2, 3]


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_modules_are_no_variables(make: Callable[[], State]) -> None:
    state = make()
    run(agent_of("x = 1\nimport json, math as m", "task_success(None)"), state)
    assert list(state) == ["x"]
    assert len(state) == 1
    assert "json" not in state
    assert view(state, focus="full") == "x = 1"
    assert "json" not in str(state.page())
    seen: list[Any] = []

    def answer(asked: Any) -> Any:
        seen.append(asked)
        return [python_action("task_success(m.floor(1.5))")]

    agent = Agent(model=ScriptedModel(answer))
    assert run(agent, state) == 1
    shown = seen[0][-1].content
    assert shown.partition("Variables kept from earlier tasks (abbreviated):\n")[2] == "x: int = 1"


def test_a_difference_and_a_log_tell_variables_only() -> None:
    state = Versioned()
    run(agent_of("x = 1\nimport json", "task_success(None)"), state)
    assert state.head is not None
    assert list(state.diff(None, state.head)) == ["x"]
    assert state.recent() in (["x"], [])
    assert list(state.checkout(state.head)) == ["x"]


def test_what_both_sides_imported_is_merged() -> None:
    state = Versioned()
    run(agent_of("x = 1", "task_success(None)"), state)
    other = state.fork("other")
    run(agent_of("import json, math", "task_success(None)"), other)
    run(agent_of("import json, random", "task_success(None)"), state)
    state.merge(other)
    assert run(agent_of("task_success([json.dumps(1), math.floor(1.5), random.choice([2])])"), state) == [
        "1",
        1,
        2,
    ]


def test_a_module_that_is_deleted_is_not_imported_again() -> None:
    state = Versioned()
    run(agent_of("import json", "task_success(None)"), state)
    run(agent_of("del json\ntask_success(None)"), state)
    assert run(agent_of("task_success('json' in dir())"), state) is False
    assert state.imports == {}


def test_an_input_stands_before_a_module_for_its_task_only() -> None:
    state = Versioned()
    run(agent_of("import json", "task_success(None)"), state)
    agent = agent_of("task_success(json + 1)")

    @agent.task
    def add(json: int) -> int:  # type: ignore[empty-body]
        """Add."""

    assert add(1, state=state) == 2
    assert run(agent_of("task_success(json.dumps(1))"), state) == "1"


@pytest.mark.parametrize(
    ("make", "code", "asked"),
    [
        (Live, "import table", "table.Series"),
        (Versioned, "import table", "table.Series"),
        (Versioned, "import table\ndef f(): return table.Series", "f()"),
        (Versioned, "import table\nlibs = {'t': table}", "libs['t'].Series"),
    ],
)
def test_a_module_that_is_granted_no_longer_says_so_where_it_is_used(
    make: Callable[[], State], code: str, asked: str
) -> None:
    state = make()
    run(agent_of(code, "task_success(None)"), state)
    said = (
        "x = 1\n"
        f"try: {asked}\n"
        "except Exception as error: told = [type(error).__name__, str(error)]\n"
        "task_success(told)"
    )
    without = Agent(model=ScriptedModel([[python_action(said)]]))
    name, text = run(without, state)
    assert name == UnpicklableVariableError.__name__
    assert text.splitlines() == [
        f"'table' was imported in an earlier task and cannot be imported now: {text.partition('now: ')[2]}"
    ]
    assert "import of 'table' is not allowed" in text
    assert run(agent_of(f"task_success({asked} is not None)", "pass"), state) is True


def test_what_a_worker_names_is_imported_under_the_grants() -> None:
    state = Versioned()
    state.write_imports(
        {},
        {
            "a": "socket",
            "b": "json.decoder",
            "c": "collections._sys",
            "d": "",
            "e": "json ..",
            "f": "__main__",
        },
    )
    state.commit()
    asked = (
        "def told(use):\n"
        "    try: return str(use())\n"
        "    except Exception as error: return type(error).__name__\n"
    )
    uses = ", ".join(f"told(lambda: {name}.x)" for name in "abcdef")
    found = run(Agent(model=ScriptedModel([[python_action(f"{asked}task_success([{uses}])")]])), state)
    assert found == ["UnpicklableVariableError"] * 6


POINT = b"""from __future__ import annotations
from dataclasses import dataclass
SEEN = []
@dataclass
class Point:
    x: int
    def double(self): return twice(self.x)
class _Hidden:
    pass
def twice(x):
    SEEN.append(x)
    return 2 * x
def hidden(): return _Hidden()
"""


@pytest.mark.parametrize("again", [False, True], ids=["one object", "opened again"])
def test_what_a_module_of_the_workspace_defines_is_that_modules_in_every_task(again: bool) -> None:
    store = Memory()
    state = Versioned(store)
    code = (
        "import shapes\nfrom shapes import Point, twice\np, h = Point(1), shapes.hidden()\ntask_success(None)"
    )
    agent = agent_of(code)
    agent.fs(state).write("shapes.py", POINT)
    run(agent, state)
    asked = (
        "p == shapes.Point(1), isinstance(p, shapes.Point), Point is shapes.Point, p.double(), twice(5), "
        "shapes.SEEN, twice is shapes.twice, type(p).__module__, type(h) is type(shapes.hidden())"
    )
    for _ in range(2):
        state = Versioned(store) if again else state
        found = run(agent_of(f"task_success([{asked}])", "pass"), state)
        assert found == [True, True, True, 2, 10, [1, 5], True, "shapes", True]
    assert repr(Versioned(store)["p"]) == "Point(x=1)"


def test_a_module_that_is_gone_leaves_what_it_defined() -> None:
    state = Versioned()
    agent = agent_of("from shapes import Point\np = Point(1)\ntask_success(None)")
    agent.fs(state).write("shapes.py", POINT)
    run(agent, state)
    agent.fs(state).remove("shapes.py")
    assert run(agent_of("task_success([p.double(), p == Point(1)])", "pass"), state) == [2, True]
