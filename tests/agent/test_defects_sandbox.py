"""What agent code can do and cannot do, with the default settings."""

from __future__ import annotations

import builtins
import os
import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agex.agent import Agent
from agex.errors import TaskFail
from agex.state import Disk, Versioned
from agex.testing import ScriptedModel, python_action


def scripted(*codes: str, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def run(code: str, **settings: Any) -> Any:
    agent, model = scripted(code, "task_fail('it went on')", **settings)

    @agent.task
    def f() -> Any:
        """Look."""

    try:
        return f()
    except TaskFail:
        return model.requests[-1].messages[-1].content.splitlines()[-1]


@pytest.mark.parametrize("module", ["pickle", "_pickle", "marshal", "shelve", "subprocess", "ctypes"])
def test_modules_that_run_what_they_read_cannot_be_imported(module: str) -> None:
    assert run(f"import {module}\ntask_success('imported')").startswith(
        f"SandboxImportError: import of {module!r} is not allowed"
    )


SYS = [
    "sys._getframe()",
    "sys.modules.clear()",
    "sys.modules['os'].system('id')",
    "sys.exit(1)",
    "sys.stdin.read()",
]


@pytest.mark.parametrize("expression", SYS)
def test_sys_gives_nothing_of_the_host(expression: str) -> None:
    run("import sys\ntask_success(sys.nothing)")  # loads what agex itself needs first
    before = (dict(sys.modules), list(sys.argv), sys.stdin)
    assert "Error" in run(f"import sys\ntask_success(str({expression}))")
    assert (dict(sys.modules), list(sys.argv), sys.stdin) == before


def test_the_command_line_is_the_agents_own() -> None:
    assert run("import sys\ntask_success(str(sys.argv))") == "['']"


def test_a_task_leaves_the_hosts_own_functions_as_they_were() -> None:
    def hosts() -> list[Any]:
        return [builtins.open, builtins.print, os.listdir, os.open, socket.socket.connect, sys.stdin]

    before = hosts()
    run("import json, io\nprint(json.dumps([1]))\ntask_success(1)")
    assert [now is then for now, then in zip(hosts(), before, strict=True)] == [True] * len(before)


PROGRAMS = {
    "dataclasses": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nanswer = P(1).x",
    "own exceptions": (
        "class Bad(ValueError):\n    pass\n"
        "try:\n    raise Bad('no')\nexcept Bad as e:\n    answer = len(str(e)) - 1"
    ),
    "private attributes": (
        "class C:\n    def __init__(self):\n        self._x = 1\n"
        "    def get(self):\n        return self._x\nanswer = C().get()"
    ),
    "isinstance": "class A: pass\nclass B(A): pass\nanswer = int(isinstance(B(), A))",
    "from math import": "from math import floor\nanswer = floor(1.5)",
    "the usual library": (
        "import collections, functools, itertools, re, statistics\n"
        "answer = functools.reduce(max, collections.Counter(re.findall('a', 'ba')).values())"
    ),
    "generators": "def g():\n    yield 1\nanswer = sum(g())",
    "global": "n = 0\ndef f():\n    global n\n    n += 1\nf()\nanswer = n",
    "class decorators": "def d(c):\n    c.x = 1\n    return c\n@d\nclass C: pass\nanswer = C.x",
    "printing objects": (
        "class C:\n    def __repr__(self):\n        return 'C!'\nanswer = 1 if str([C()]) == '[C!]' else 0"
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_everyday_python_runs(program: str) -> None:
    assert run(f"{PROGRAMS[program]}\ntask_success(answer)") == 1


def test_a_long_loop_over_data_is_no_matter_of_counting_steps() -> None:
    assert run("n = 0\nfor i in range(1_000_000):\n    n += i & 1\ntask_success(n)") == 500_000


def test_the_limit_of_an_action_is_the_one_that_was_set() -> None:
    shown = run("while True:\n    try:\n        while True: pass\n    except: pass", timeout_seconds=0.2)
    assert shown == "EvalError: TimeoutError: the code ran longer than 0.2 s; do less in one step"


COUNT = "def count(n):\n    return sum(1 for _ in range(n))"


def test_a_returned_function_is_not_bound_by_the_limits_of_the_action_that_made_it() -> None:
    count = run(f"{COUNT}\ntask_success(count)", timeout_seconds=0.05)
    assert count(3_000_000) == 3_000_000


def test_a_logger_outlives_its_process_in_a_state(tmp_path: Path) -> None:
    made = (
        "import logging\nlogging.basicConfig(level=logging.INFO, format='%(levelname)s %(message)s')\n"
        "logger = logging.getLogger(__name__)\ntask_success(None)"
    )
    first, _ = scripted(made)
    second, model = scripted("logger.info('again %d', 2)", "task_success(None)")
    for agent in (first, second):

        @agent.task
        def work() -> None:
            """Work."""

        with closing(Versioned(Disk(tmp_path / "state"))) as state:
            work(state=state)

    assert model.requests[-1].messages[-1].content.splitlines()[-1] == "INFO again 2"


def test_a_returned_function_outlives_its_process_in_a_state(tmp_path: Path) -> None:
    with closing(Versioned(Disk(tmp_path / "state"))) as first:
        first["count"] = run(f"{COUNT}\ntask_success(count)")
        first.commit()
    with closing(Versioned(Disk(tmp_path / "state"))) as second:
        assert second["count"](200_000) == 200_000
