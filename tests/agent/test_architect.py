"""Agents that agents build: with a part of what their makers may, and nothing more."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from agex import Agent, Budget, TaskFail, TaskTimeout
from agex.errors import AgexError, BudgetExceeded
from agex.testing import ScriptedModel

BUILD = """\
solver = Agent(name="solver", primer="You solve equations.")

@solver.task
def solve(problem: str) -> str:
    \"\"\"Solve it.\"\"\"
    pass

task_success(solve)
"""


LEVEL: list[Any] = ["none"]


@pytest.fixture(autouse=True, params=["none", "process", "kernel"])
def level(request: pytest.FixtureRequest) -> str:
    LEVEL[0] = request.param
    return str(request.param)


def scripted(*codes: str, **settings: Any) -> Agent:
    agent = Agent(
        isolation=LEVEL[0], model=ScriptedModel([f"```python\n{code}\n```" for code in codes]), **settings
    )
    agent.cls(Agent)
    return agent


def requests(agent: Agent) -> list[Any]:
    return agent.resolved_model().requests  # type: ignore[attr-defined, no-any-return]


def built(agent: Agent) -> Any:
    @agent.task
    def create(prompt: str) -> Callable:  # type: ignore[type-arg]
        """Make a specialist."""

    return create("solve equations")


def problem_of(code: str, *more: str, **settings: Any) -> str:
    """Run one turn of an agent that may build agents; return what it is shown of it."""
    agent = scripted(code, 'task_fail("seen")', **settings)

    @agent.task
    def work() -> object: ...

    with pytest.raises(TaskFail):
        work()
    return str(requests(agent)[-1].messages[-1].content)


def test_the_task_of_a_built_agent_is_the_hosts_to_call() -> None:
    agent = scripted(BUILD, 'task_success(f"{problem}: x = 2")')
    solve = built(agent)
    assert solve("4x + 5 = 13") == "4x + 5 = 13: x = 2"
    asked = str(requests(agent)[-1])
    assert "You solve equations." in asked
    assert "def solve(problem: str) -> str" in asked


NESTED = """
def make(agent):
    @agent.task
    {kind} square(n: int) -> int:
        {body}
    return square

{call}
"""
PLACES = [
    "task_success(make(Agent()))",
    "class Maker:\n    def make(self):\n        return make(Agent())\ntask_success(Maker().make())",
    "task_success((lambda: make(Agent()))())",
    "for _ in range(2):\n    made = make(Agent())\ntask_success(made)",
]


BODIES = ["...", "pass", '"""Square it."""', '"""Square it."""\n        ...']


@pytest.mark.parametrize(
    ("body", "place"),
    [*((body, PLACES[0]) for body in BODIES), *(("...", place) for place in PLACES[1:])],
)
def test_a_task_is_declared_inside_a_function_as_well_as_outside(body: str, place: str) -> None:
    agent = scripted(NESTED.format(kind="def", body=body, call=place), "task_success(9)")
    assert built(agent)(3) == 9


def test_so_is_an_async_one_and_one_in_a_function_in_a_function() -> None:
    inner = NESTED.format(kind="async def", body="...", call="").strip().replace("\n", "\n    ")
    agent = scripted(f"def outer():\n    {inner}\n    return make(Agent())\ntask_success(outer())")
    assert built(agent).is_async


@pytest.mark.parametrize("body", ["return n", "x = 1", "make()", "yield", "print()", "while True: pass"])
def test_one_with_a_body_is_refused_inside_a_function_too(body: str) -> None:
    said = problem_of(NESTED.format(kind="def", body=body, call="make(Agent())"))
    assert "DefinitionError: The body of square must be empty: its agent writes it." in said


def test_it_is_called_in_the_code_that_built_it_too() -> None:
    agent = scripted(
        BUILD.replace("task_success(solve)", 'answer = solve("1 + 1")\ntask_success(answer)'),
        "task_success('2')",
    )

    @agent.task
    def work() -> str: ...

    run = work.run()
    assert run.value == "2"
    assert {event.agent for event in run.events} == {"agent", "solver"}


async def test_an_async_task_of_a_built_agent_is_called_like_a_function() -> None:
    code = BUILD.replace("def solve", "async def solve").replace(
        "task_success(solve)", 'task_success(solve("1"))'
    )
    agent = scripted(code, "task_success('one')")

    @agent.task
    async def work() -> str: ...

    assert await asyncio.wait_for(work(), 60) == "one"


def test_it_is_given_functions_that_the_agent_wrote() -> None:
    agent = scripted(
        "def twice(x):\n    return 2 * x\n"
        "worker = Agent()\nworker.fn(twice)\n"
        "@worker.task\ndef work(x: int) -> int:\n    ...\n"
        "task_success(work)",
        "task_success(twice(x))",
    )
    assert built(agent)(21) == 42


def test_of_a_function_that_the_agent_wrote_only_what_is_plain_is_shown() -> None:
    agent = scripted(
        "class Odd:\n    def __repr__(self): return touch()\n"
        "class Text(str):\n    def expandtabs(self, *a): return touch()\n"
        "def twice(x: Odd, y: int = 1, *rest: str, z=Odd(), **more: Odd()) -> list[int]:\n"
        "    return [2 * y]\n"
        "twice.__doc__ = Text('Double it.')\n"
        "worker = Agent()\nworker.fn(twice)\n"
        "@worker.task\ndef work(x: int) -> list[int]:\n    ...\n"
        "task_success(work)",
        "task_success(twice(1, y=x))",
    )
    agent.fn(lambda: CANARY.append("touched"), name="touch")
    assert built(agent)(4) == [8]
    asked = str(requests(agent)[-1])
    assert "def twice(x, y: int = ..., *rest: str, z=..., **more) -> list[int]" in asked
    assert "Double it." in asked
    assert CANARY == []


def test_it_is_given_what_its_maker_was_given() -> None:
    agent = scripted(
        "import math\n"
        "worker = Agent()\nworker.fn(secret, docstring='Tell it.')\n"
        "worker.module(math)\nworker.module(table)\n"
        "@worker.task\ndef work(x: int) -> int:\n    ...\n"
        "task_success(work)",
        "import math\ntask_success(math.isqrt(secret() + x + table['k']))",
    )
    agent.fn(lambda: 6, name="secret")
    agent.module(math)
    agent.module({"k": 3}, name="table")
    assert built(agent)(7) == 4
    assert "Tell it." in str(requests(agent)[-1])


def test_agents_it_builds_call_each_other_and_build_agents_themselves() -> None:
    agent = scripted(
        BUILD.replace("task_success(solve)", "")
        + "boss = Agent()\nboss.fn(solve)\nboss.cls(Agent)\n"
        + "@boss.task\ndef lead(problem: str) -> str:\n    ...\ntask_success(lead)",
        "helper = Agent(name='third')\n@helper.task\ndef check(text: str) -> bool:\n    ...\n"
        "answer = solve(problem)\ntask_success(answer if check(answer) else '')",
        "task_success('x = 2')",
        "task_success(True)",
    )
    assert built(agent)("4x = 8") == "x = 2"


def test_a_failure_of_a_built_agent_can_be_caught_by_its_maker() -> None:
    agent = scripted(
        BUILD.replace(
            "task_success(solve)", 'try:\n    solve("1")\nexcept Exception as e:\n    task_success(str(e))'
        ),
        "task_fail('too hard')",
    )

    @agent.task
    def work() -> str: ...

    assert work() == "too hard"


# -- a part, never more


def test_what_the_maker_was_not_given_cannot_be_given() -> None:
    said = problem_of("import json\nAgent().module(json)")
    assert "DefinitionError" in said
    assert "what you were given yourself" in said


@pytest.mark.parametrize(
    "code",
    [
        "Agent().fn(print)",
        "Agent().fn(open)",
        "Agent().fn(task_success)",
        "Agent().cls(dict)",
        "Agent().module(inputs)",
        "class F:\n    def __call__(self): pass\nAgent().fn(F())",
    ],
)
def test_nothing_else_of_the_agents_own_code_is_taken(code: str) -> None:
    said = problem_of(code)
    assert "DefinitionError" in said or (LEVEL[0] != "none" and "cannot leave the place" in said)


def test_the_limits_of_the_maker_hold_for_what_it_builds() -> None:
    agent = scripted(
        BUILD.replace(
            'name="solver"',
            'name="solver", max_iterations=99, timeout_seconds=999.0, budget=Budget(calls=50)',
        ),
        *["1"] * 9,
        max_iterations=3,
        timeout_seconds=5.0,
        budget=Budget(calls=2, tokens=10**6),
    )
    solve = built(agent)
    child = solve.task.agent
    assert (child.max_iterations, child.timeout_seconds, child.budget) == (
        3,
        5.0,
        Budget(calls=2, tokens=10**6),
    )
    with pytest.raises(BudgetExceeded):
        solve("1")


def test_what_it_spends_is_charged_to_the_caller() -> None:
    agent = scripted(BUILD.replace("task_success(solve)", 'solve("1")'), *["1"] * 9, budget=Budget(calls=3))

    @agent.task
    def work() -> str: ...

    with pytest.raises(TaskTimeout) as raised:
        work()
    assert raised.value.run.usage.requests == 3


def test_agents_that_build_agents_come_to_an_end() -> None:
    forever = "a = Agent()\na.cls(Agent)\n@a.task\ndef go(n: int) -> int:\n    ...\ntask_success(go(1))"
    agent = Agent(
        isolation=LEVEL[0],
        model=ScriptedModel(lambda _messages: f"```python\n{forever}\n```"),
        max_iterations=1,
    )
    agent.cls(Agent)

    @agent.task
    def work() -> int: ...

    with pytest.raises(TaskTimeout):
        work()
    assert 8 <= len(requests(agent)) <= 10


@pytest.mark.parametrize(
    "code",
    [
        "a._agent", "a.agent", "a._maker", "t.task", "t._task", "t.task.agent", "t.agent", "vars(t)",
        "getattr(a, '_agent')", "getattr(t, 'task')", "Agent.task.__globals__", "t.__call__.__func__",
        "object.__getattribute__(t, 'task')", "import operator\noperator.attrgetter('task')(t)",
        "'{0.task}'.format(t)", "match t:\n    case object(task=x): print(x)",
        "class B(Agent):\n    pass", "class T(BuiltTask):\n    pass\nT(1)", "BuiltTask(1)",
        "a._maker = None", "t.task = None", "Agent.task = print", "import copy\ncopy.copy(t).task",
        "t.__dict__", "t.__init__(1)", "a.__init__(name='x')\na._agent",
    ],
)  # fmt: skip
def test_there_is_no_way_from_the_stand_ins_to_the_agent_itself(code: str) -> None:
    head = "a = Agent()\n@a.task\ndef t(x: int) -> int:\n    ...\n"
    said = problem_of(head + code)
    # In a worker a stand-in leads to other stand-ins at most, whose functions only ask the host.
    harmless = ("printed nothing", "<function _asking.<locals>.method")
    assert "Error" in said or (LEVEL[0] != "none" and any(each in said for each in harmless))


def test_nor_in_the_code_of_an_agent_that_was_built() -> None:
    agent = scripted(
        "boss = Agent()\nboss.cls(Agent)\n"
        "@boss.task\ndef lead(problem: str) -> str:\n    ...\ntask_success(lead)",
        "h = Agent()\n@h.task\ndef check(text: str) -> bool:\n    ...\ntask_success(check.task.agent.name)",
        "task_success('refused')",
    )
    assert built(agent)("4x = 8") == "refused"
    assert "attribute 'task' of 'BuiltTask' object" in str(requests(agent)[-1])


@pytest.mark.parametrize("name", ["state", "on_event", "on_token", "budget"])
def test_the_options_of_a_call_are_the_hosts(name: str) -> None:
    said = problem_of(f"a = Agent()\n@a.task\ndef t(x: int) -> int:\n    ...\nt(1, {name}=print)")
    refused = "InputError" in said or "TypeError" in said
    assert refused or (LEVEL[0] != "none" and "cannot leave the place" in said)


# -- declarations are data

CANARY: list[str] = []


@pytest.mark.parametrize(
    "declaration",
    [
        "def t(x: 'touch()') -> int:\n    ...",
        "def t(x: list['touch()']) -> int:\n    ...",
        "def t(x) -> typing.Optional['touch()']:\n    ...",
        "def t(x) -> typing.Annotated[int, touch]:\n    ...",
        "def t(x: typing.Literal[Odd()]) -> int:\n    ...",
        "def t(x=Odd()) -> int:\n    ...",
        "def t(x: Odd) -> int:\n    ...",
        "def t(x: Odd()) -> int:\n    ...",
        "def t(*args) -> int:\n    ...",
        "def t(x: int) -> int:\n    return touch()",
        "def t(x: int) -> int:\n    x = 1",
        "t = lambda x: ...",
    ],
)
def test_a_declaration_says_plain_things_only(declaration: str) -> None:
    code = (
        "import typing\n"
        "class Odd:\n"
        "    def __repr__(self): return touch()\n"
        "    def __eq__(self, other): return touch()\n"
        "    def __hash__(self): return 1\n"
        f"{declaration}\n"
        "task_success(Agent().task(t))"
    )
    agent = scripted(code, 'task_fail("seen")')
    agent.fn(lambda: CANARY.append("touched") or "touched", name="touch")

    @agent.task
    def work() -> object: ...

    with pytest.raises(TaskFail):
        work()
    assert "DefinitionError" in str(requests(agent)[-1].messages[-1].content)
    assert CANARY == []


def test_examples_in_the_docstring_of_a_built_task_are_not_evaluated() -> None:
    agent = scripted(
        "a = Agent()\n@a.task\ndef t(x: int) -> int:\n"
        '    """Do.\n\n    >>> t(__import__("os").getpid())\n    1\n    """\n'
        "task_success(t)",
        "def t(x):\n    return 5",
    )
    assert built(agent)(1) == 5


def test_an_annotation_that_changes_its_mind_is_not_asked() -> None:
    code = (
        "def t(x: int) -> int:\n    ...\n"
        "class D(dict):\n"
        "    def items(self): return [('x', touch())]\n"
        "    def __getitem__(self, name): return touch()\n"
        "t.__annotations__ = D(x=int)\n"
        "Agent().task(t)"
    )
    agent = scripted(code, 'task_fail("seen")')
    agent.fn(lambda: CANARY.append("touched"), name="touch")

    @agent.task
    def work() -> object: ...

    with pytest.raises(TaskFail):
        work()
    assert CANARY == []


def test_an_agent_cannot_be_built_beside_a_task() -> None:
    from agex.agent.built_agents import BuiltAgent

    with pytest.raises(RuntimeError, match=r"agex\.Agent"):
        BuiltAgent()


def test_without_the_registration_there_is_no_agent_in_the_code() -> None:
    agent = Agent(model=ScriptedModel(["```python\nAgent()\n```", "```python\ntask_fail('seen')\n```"]))

    @agent.task
    def work() -> object: ...

    with pytest.raises(AgexError):
        work()
    assert "NameError" in str(requests(agent)[-1].messages[-1].content)
