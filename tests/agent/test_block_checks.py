"""The errors that the text of a program shows are told together, before anything of it runs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from agex.agent import Agent
from agex.agent.execution.block_checks import BlockChecks
from agex.agent.registration import Registration
from agex.errors import TaskFail
from agex.sandbox import Policy
from agex.testing import ScriptedModel
from agex.tinyagent import TinyCodeAgent, tool


def send(to: str, subject: str, urgent: bool = False) -> None:
    """Send."""


def checks(**settings):
    policy = Policy.default()
    policy.module(pd)
    registrations = [Registration(kind="function", name="send", target=send)]
    return BlockChecks.of(registrations, policy, settings.pop("own_module", None))


def refusal(source, variables=(), given=(), **settings):
    return checks(**settings).refusal(source, lambda: {*variables}, {"task_success", "len", "send", *given})


def solved(*codes, agent=None, **settings):
    """Run scripted code; return the requests and what was sent."""
    sent: list[tuple[str, str]] = []
    model = ScriptedModel([f"```python\n{code}\n```" for code in codes])
    agent = Agent(model=model, **settings)

    @agent.fn
    def send(to: str, subject: str) -> None:
        """Send."""
        sent.append((to, subject))

    agent.module(pd)
    agent.module(np)

    @agent.task
    def work(rows: list[int]) -> int: ...

    try:
        value = work([1, 2])
    except TaskFail as error:
        value = error
    return value, [str(request) for request in model.requests], sent


def test_all_refused_imports_are_told_in_one_message():
    told = refusal("import socket\nimport json\nfrom subprocess import run\nimport pandas as pd\nx = 1")
    first, *lines = told.splitlines()
    assert first == "Nothing of this code was run:"
    assert [line.partition(";")[0] for line in lines] == [
        "SandboxImportError: import of 'socket' is not allowed",
        "SandboxImportError: import of 'subprocess' is not allowed",
    ]
    assert [line.rpartition(" (")[2] for line in lines] == ["line 1)", "line 3)"]


def test_a_refused_member_of_a_library_is_told_with_the_others():
    told = refusal("import ctypes\nfrom pandas import DataFrame, read_clipboard")
    assert "cannot import name 'read_clipboard' from 'pandas'" in told


def test_undefined_names_are_told_with_the_name_that_was_meant():
    told = refusal("result = 1\nprint(reslt)\nlen(nothing_like_it)", given={"print"})
    assert "NameError: name 'reslt' is not defined; did you mean 'result'? (line 2)" in told
    assert "NameError: name 'nothing_like_it' is not defined (line 3)" in told


def test_a_wrong_call_of_a_registered_function_is_told_with_its_signature():
    told = refusal("send('a')")
    assert "TypeError: send() missing a required argument: 'subject'; it is send(to: str" in told
    assert "got an unexpected keyword argument 'cc'" in refusal("send('a', 'b', cc='c')")
    assert refusal("send('a', 'b')\nsend(*args)\nsend(**kw)", {"args", "kw"}) is None


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import socket\nexcept ImportError:\n    socket = None",
        "if False:\n    import socket\n    nowhere",
        "def later():\n    import socket\n    return nowhere",
        "f = lambda: nowhere",
        "x = 0 and nowhere",
        "x = nowhere if False else 1",
        "x = [nowhere for each in []]",
        "for each in []:\n    send()",
        "while False:\n    nowhere",
        "try:\n    nowhere\nexcept NameError:\n    pass",
        "from contextlib import suppress\nwith suppress(NameError):\n    nowhere",
        "exec('nowhere = 1')\nnowhere",
        "globals()['nowhere'] = 1\nnowhere",
        "from math import *\nsqrt(2)",
        "x = 1\ndel x\ntry:\n    x\nexcept NameError:\n    pass",
        "def bind():\n    global made\n    made = 1\nbind()\nmade",
        "if (found := 1):\n    pass\nfound",
        "import json as p\np",
        "task_success(1)\nnowhere",
        "if True:\n    task_success(1)\nnowhere",
        "def end():\n    task_success(1)\nend()\nnowhere",
        "class A:\n    def end(self):\n        task_success(1)\nA().end()\nimport socket",
        "import sys\nsys.exit()\nnowhere",
        "raise SystemExit\nnowhere",
        "match 1:\n    case caught:\n        pass\ncaught",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    text = str(error)\ntext",
        "send = print\nsend(1, 2, 3, 4)",
        "import collections.abc, xml.etree\nfrom pandas.tseries import offsets",
        "__name__",
        "x: nowhere = 1",
        "not python at all",
    ],
)  # fmt: skip
def test_a_program_that_may_run_to_its_end_is_never_refused(source):
    assert refusal(source, given={"print", "exec", "globals", "str"}) is None


def test_a_function_of_an_earlier_turn_may_end_the_program():
    assert checks().refusal("finish()\nnowhere", lambda: {"finish"}, ends=True) is None
    assert checks().refusal("finish()\nnowhere", lambda: {"finish"}) is not None


def test_a_module_of_the_workspace_may_have_any_name():
    own = {"socket", "helpers"}.__contains__
    assert refusal("import socket, helpers", own_module=own) is None
    assert refusal("open('tools.py', 'w').write('')\nimport tools", own_module=own, given={"open"}) is None
    assert "import of 'tools'" in refusal("import tools", own_module=own)


def test_nothing_of_a_block_runs_that_has_a_refused_import_below():
    value, requests, sent = solved(
        "send('a', 'hello')\nimport socket\nimport ctypes\nprint(unknwn)",
        "send('a', 'hello')\ntask_success(1)",
    )
    assert (value, sent) == (1, [("a", "hello")])
    told = requests[1]
    assert all(text in told for text in ("'socket'", "'ctypes'", "'unknwn'", "Nothing of this code was run"))


def test_registered_modules_are_there_under_their_usual_names_without_an_import():
    value, requests, _ = solved(
        "frame = pd.DataFrame({'a': rows})\ntotal = int(np.sum(pandas.Series(frame['a'])))",
        "task_success(total)",
    )
    assert value == 3
    assert len(requests) == 2


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_an_alias_can_be_used_inside_functions_and_at_every_level(isolation):
    value, requests, _ = solved("def work(rows):\n    return int(np.array(rows).sum())", isolation=isolation)
    assert value == 3
    assert len(requests) == 1


def test_a_variable_of_the_same_name_is_left_alone():
    value, _, _ = solved("pd = 4\nnp = 5", "task_success(pd + np)")
    assert value == 9


def test_a_name_error_in_a_module_of_the_workspace_says_what_to_import():
    _, requests, _ = solved(
        "open('helpers.py', 'w').write('def f(): return np.array([1])')\nimport helpers\nhelpers.f()",
        "task_fail('')",
    )
    assert "Note: the module is there; write: import numpy as np" in requests[1]


def test_a_hostile_text_is_answered_in_bounded_time():
    assert checks().refusal("+".join(["1"] * 5_000), set) is None
    many = refusal("\n".join(f"missing_{n}" for n in range(2_000)))
    assert len(many.splitlines()) < 20
    assert math.isfinite(len(many))


@pytest.mark.parametrize("level", ["local", "isolated"])
def test_the_small_agent_checks_its_code_before_it_runs(level):
    sent: list[str] = []

    @tool
    def send(to: str, subject: str) -> None:
        """Send a message."""
        sent.append(to)

    codes = ["send('a', 'b')\nimport socket\nreslt", "final_answer(int(np.arange(4).sum()))"]
    model = ScriptedModel([f"```python\n{code}\n```" for code in codes])
    agent = TinyCodeAgent(model=model, tools=[send], extra_imports=["numpy"], trust_level=level)
    assert agent.run_sync("Go.") == "6"
    assert sent == []
    told = str(model.requests[1])
    assert "Nothing of this code was run:" in told
    assert "import of 'socket' is not allowed" in told
    assert "name 'reslt' is not defined" in told
