"""Names that the agent's code cannot bind, and inputs that it binds to something else."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agex.agent import Agent
from agex.agent.call.events import SystemNoteEvent
from agex.agent.execution.name_bindings import RESERVED, refused_binding
from agex.errors import DefinitionError
from agex.state import Disk, Live, Versioned
from agex.testing import ScriptedModel, python_action

LEVELS = pytest.mark.parametrize("level", ["none", "process", "kernel"])

BINDS = [
    "NAME = 3",
    "x = NAME = 3",
    "x, (y, *NAME) = 1, (2, 3)",
    "[NAME] = [1]",
    "NAME: int = 3",
    "NAME: int",
    "NAME += 3",
    "(NAME := 3)",
    "print([y for x in range(3) if (NAME := x)])",
    "def NAME(value): pass",
    "async def NAME(value): pass",
    "class NAME: pass",
    "for NAME in range(3): pass",
    "for x, NAME in {}.items(): pass",
    "async def f():\n    async for NAME in g(): pass",
    "with open('x') as NAME: pass",
    "with open('x') as (a, NAME): pass",
    "try:\n    pass\nexcept ValueError as NAME:\n    pass",
    "import json as NAME",
    "import NAME",
    "import NAME.sub",
    "from json import loads as NAME",
    "from json import NAME",
    "def f(NAME): pass",
    "def f(x, /, NAME=1): pass",
    "def f(*, NAME): pass",
    "def f(*NAME): pass",
    "def f(**NAME): pass",
    "f = lambda NAME: 1",
    "f = lambda *NAME: 1",
    "def f():\n    NAME = 1\n    return NAME",
    "def f():\n    global NAME\n    NAME = 1",
    "def f():\n    def g():\n        nonlocal NAME",
    "class A:\n    def f(self, NAME): pass",
    "class A:\n    def f(self):\n        NAME = 1",
    "[NAME for NAME in range(3)]",
    "{NAME: 1 for NAME in range(3)}",
    "list(NAME for NAME in range(3))",
    "match 3:\n    case NAME: pass",
    "match [3]:\n    case [*NAME]: pass",
    "match {}:\n    case {**NAME}: pass",
    "match 3:\n    case int() as NAME: pass",
    "match 3:\n    case int(real=NAME): pass",
    "del NAME",
    "if False:\n    NAME = 1",
    "class A((NAME := object)): pass",
    "def f(x=(NAME := 1)): pass",
    "@(NAME := print)\nclass A: pass",
    "x = 1; NAME = 2",
]
NEWER = ["type NAME = int", "def f[NAME](x): pass", "class A[*NAME]: pass"]
LETS = [
    "x = NAME",
    "NAME.x",
    "x.NAME = 3",
    "NAME['x'] = 3",
    "del NAME['x']",
    "f(NAME=3)",
    "class A:\n    NAME: int = 3",
    "class A:\n    def NAME(self): return 1",
    "x = 'NAME = 3'",
    "# NAME = 3",
    "NAMES = 3",
    "my_NAME = 3",
    "match x:\n    case NAME.y: pass",
    "import x.NAME",
    "NAME == 3",
    "print(f'{NAME=}')",
    "x = = NAME",
]


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("code", BINDS)
def test_whatever_binds_a_reserved_name_is_refused_with_a_hint(code, name):
    told = refused_binding(code.replace("NAME", name), "<turn 1>")
    assert told is not None
    assert told.startswith('File "<turn 1>", line ')
    assert f"SandboxSyntaxError: {name!r} cannot be bound; {RESERVED[name]}" in told


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is Python 3.12's")
@pytest.mark.parametrize("code", NEWER)
def test_the_newer_ways_to_bind_a_name_are_refused_too(code):
    assert refused_binding(code.replace("NAME", "cache"), "<turn 1>") is not None


@pytest.mark.parametrize("code", LETS)
def test_what_binds_no_variable_of_the_name_is_let_through(code):
    assert refused_binding(code.replace("NAME", "cache"), "<turn 1>") is None


def test_other_letters_that_python_takes_for_the_name_are_the_name():
    assert refused_binding("\uff43ache = 3", "<turn 1>") is not None


def test_the_first_place_is_shown_as_a_traceback_shows_it():
    assert refused_binding("x = 1\ndef f(x, cache):\n    inputs = 3", "<turn 2>") == (
        'File "<turn 2>", line 2\n'
        "    def f(x, cache):\n"
        "             ^^^^^\n"
        "SandboxSyntaxError: 'cache' cannot be bound; it is the dict that is kept with the state: write "
        "cache['key'] = ..., or choose another name, e.g. memo"
    )


def test_code_that_is_nested_too_deeply_is_left_to_whoever_runs_it():
    assert refused_binding("cache = " + "(" * 5000 + ")" * 5000, "<turn 1>") is None


def scripted(*codes: str, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def shown(model: ScriptedModel, request: int = -1) -> str:
    return str(model.requests[request].messages[-1].content)


@LEVELS
def test_at_every_level_nothing_of_such_code_runs_and_the_next_turn_has_the_names(level):
    agent, model = scripted(
        "print('ran')\ntask_success = 5", "cache['n'] = inputs.n\ntask_success(cache['n'])", isolation=level
    )

    @agent.task
    def solve(n: int) -> int: ...

    assert solve(4) == 4
    assert "'task_success' cannot be bound" in shown(model)
    assert "ran" not in shown(model).replace("print('ran')", "")


@LEVELS
@pytest.mark.parametrize("code", ["exec('cache = 3')", "globals()['cache'] = 3", "from helper import *"])
def test_a_name_bound_in_a_way_that_the_text_does_not_say_is_given_back(level, code):
    head = "open('helper.py', 'w').write('cache = 3')\n"
    agent, model = scripted(head + code, "cache['n'] = 1\ntask_success(len(cache))", isolation=level)

    @agent.task
    def solve() -> int: ...

    state = Live()
    assert solve(state=state) == 1
    assert (dict(state), state.cache) == ({}, {"n": 1})
    assert "Note: cache cannot be bound; what agex has under the name is there again.\n" in shown(model)


def test_setup_code_is_held_to_it_too():
    agent, _ = scripted("task_success(1)")

    @agent.task(setup="cache = {}")
    def solve() -> int: ...

    with pytest.raises(Exception, match="'cache' cannot be bound"):
        solve()


@LEVELS
@pytest.mark.parametrize("kind", ["live", "versioned"])
def test_an_old_state_that_has_such_a_name_still_works_and_loses_nothing(level, kind, tmp_path):
    state: Any = Live() if kind == "live" else Versioned(Disk(tmp_path))
    names = [name for name in RESERVED if kind == "live" or name != "cache"]  # which the other refuses itself
    for name in names:
        state[name] = ["old", name]
    state["x"] = 1
    if kind == "versioned":
        state.commit()
    agent, _ = scripted("cache['y'] = x + inputs.n\nz = 3", "task_success(cache['y'])", isolation=level)

    @agent.task
    def solve(n: int) -> int: ...

    run = solve.run(2, state=state)
    assert run.value == 3
    assert {name: state[name] for name in names} == {name: ["old", name] for name in names}
    assert (state["x"], state["z"], state.cache["y"]) == (1, 3, 3)
    notes = [each.message for each in run.events if isinstance(each, SystemNoteEvent)]
    assert len(notes) == len(names)
    assert "The state's variable 'inputs' stays as it is" in " ".join(notes)


@pytest.mark.parametrize("name", RESERVED)
def test_neither_a_task_nor_its_parameter_has_such_a_name(name):
    agent, _ = scripted()
    space: dict[str, Any] = {}
    exec(f"def {name}(x: int) -> int: ...\ndef f({name}: int) -> int: ...", space)
    with pytest.raises(DefinitionError, match=f"cannot be named '{name}'"):
        agent.task(space[name])
    with pytest.raises(DefinitionError, match=f"cannot have a parameter named '{name}'"):
        agent.task(space["f"])


# --- inputs ------------------------------------------------------------------------------------------------

NOTE = "Note: n is no longer the input (it was 5); inputs.n still is."


def observed(code: str, value: Any = 5, level: Any = "none", **settings: Any) -> str:
    agent, model = scripted(code, "task_success(1)", isolation=level, **settings)

    @agent.task
    def solve(n: Any) -> int: ...

    solve(value)
    return shown(model)


@LEVELS
@pytest.mark.parametrize(
    "code",
    [
        "for n in range(3): pass",
        "n = 6",
        "n += 1",
        "del n",
        "import json as n",
        "def n(): pass",
        "[(n := x) for x in range(3)]",
        "def f():\n    global n\n    n = 7\nf()",
        "with open('x', 'w') as n: pass",
        "try:\n    1 / 0\nexcept ZeroDivisionError as n:\n    pass",
        "n = 6\n1 / 0",
    ],
)
def test_a_rebound_input_is_said_at_the_end_of_what_the_model_sees(level, code):
    text = observed(code, level=level)
    assert text.count("Note: ") == 1
    assert NOTE in text
    assert "inputs.n" in text.strip().splitlines()[-1] or NOTE in text.strip()[-400:]


@LEVELS
@pytest.mark.parametrize(
    "code",
    [
        "print(n)",
        "m = n",
        "n = n",
        "n = inputs.n",
        "[n for n in range(3)]",
        "def f(n): n = 3\nf(1)",
        "class A:\n    n = 3",
        "if False:\n    n = 6",
        "x = (lambda n: n)(3)",
        "n.bit_length()",
    ],
)
def test_an_input_that_is_still_bound_is_not_spoken_of(level, code):
    assert "Note: " not in observed(code, level=level)


@LEVELS
@pytest.mark.parametrize("code", ["n.append(3)", "n += [3]", "n[0] = 4"])
def test_an_input_changed_in_place_is_still_the_input(level, code):
    assert "Note: " not in observed(code, [1, 2], level=level)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a\nb", "(it was 'a\\nb')"),
        (None, "(it was None)"),
        (pd.DataFrame({"a": range(1000), "b": range(1000)}), "(it was "),
        (np.zeros((100, 100)), "(it was "),
        (list(range(100_000)), "(it was [0, 1, 2"),
        ("x" * 10_000, "(it was 'xxx"),
        (object(), "(it was <object object"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_whatever_it_was_is_shown_in_one_short_line(value, told):
    (line,) = [each for each in observed("n = 6", value).splitlines() if each.startswith("Note: ")]
    assert told in line
    assert line.endswith("inputs.n still is.")
    assert len(line) < 200


def test_it_is_said_once_and_again_where_the_input_came_back_meanwhile():
    agent, model = scripted("n = 6", "n = 7", "n = inputs.n", "n = 8", "task_success(1)")

    @agent.task
    def solve(n: int) -> int: ...

    solve(5)
    assert [NOTE in shown(model, turn) for turn in range(1, 5)] == [True, False, False, True]


def test_each_of_several_inputs_has_a_line():
    agent, model = scripted("a, b = 3, 4", "task_success(1)")

    @agent.task
    def solve(a: int, b: str) -> int: ...

    solve(1, "x")
    assert (
        "Note: a is no longer the input (it was 1); inputs.a still is.\n"
        "Note: b is no longer the input (it was 'x'); inputs.b still is."
    ) in shown(model)
