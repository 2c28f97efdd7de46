"""A module that was made in the host, as that of an MCP server's tools is, is imported in workers, too.

Stopped by: isolation.rpc.policy_codec, isolation.rpc.host_objects.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NotRequired, TypedDict

import pytest

from agex import Agent, DefinitionError, TaskSuspended, Versioned
from agex.testing import ScriptedModel, python_action

LEVELS = [("process", "guarded"), ("process", "full"), ("kernel", "guarded"), ("kernel", "full")]


def tools(calls: list[Any]) -> ModuleType:
    module = ModuleType("tools", "Tools of the host.")

    def double(n: int) -> int:
        """Double a number."""
        calls.append(n)
        return 2 * n

    def fail() -> None:
        raise ValueError("no luck")

    def _inner() -> None:
        raise AssertionError

    vars(module).update(double=double, fail=fail, _inner=_inner, LIMIT=7)
    return module


def scripted(code: str, level: tuple[str, str], **settings: Any) -> Agent:
    isolation, python = level
    return Agent(
        model=ScriptedModel([[python_action(code)]] * 2), isolation=isolation, python=python, **settings
    )


@pytest.mark.parametrize("level", LEVELS, ids="-".join)
def test_its_functions_are_called_in_the_host(level):
    calls: list[Any] = []
    agent = scripted(
        "import tools as t\nfrom tools import double\ntry: t.fail()\nexcept ValueError as e: text = str(e)\n"
        "task_success([double(4), t.double(n=5), t.LIMIT, '_inner' in dir(t), text, t.double.__doc__])",
        level,
    )
    agent.module(tools(calls))

    @agent.task
    def work() -> list[Any]: ...

    assert work() == [8, 10, 7, False, "no luck", "Double a number."]
    assert calls == [4, 5]


@pytest.mark.parametrize("level", LEVELS[:1], ids="-".join)
def test_a_member_that_can_neither_be_copied_nor_called_is_named(level):
    module = tools([])
    vars(module)["Thing"] = type("Thing", (), {})
    agent = scripted("task_success(1)", level)
    agent.module(module)

    @agent.task
    def work() -> int: ...

    with pytest.raises(DefinitionError, match="these are neither: Thing"):
        work()


@pytest.mark.parametrize("level", LEVELS, ids="-".join)
def test_its_typed_dicts_are_there_too_even_one_that_contains_itself(level):
    node: Any = TypedDict("Node", {"size": int, "below": NotRequired[list[Any]]})
    node.__annotations__["below"] = NotRequired[list[node]]
    node.__module__ = "tools"
    module = tools([])
    vars(module)["Node"] = node
    agent = scripted(
        "import tools\nn: tools.Node = tools.Node(size=1)\n"
        "task_success([n, tools.Node.__name__, sorted(tools.Node.__optional_keys__)])",
        level,
    )
    agent.module(module)

    @agent.task
    def work() -> list[Any]: ...

    assert work() == [{"size": 1}, "Node", ["below"]]


@pytest.mark.parametrize("level", [LEVELS[0], LEVELS[3]], ids="-".join)
def test_calls_that_act_on_the_world_wait_for_approval(level):
    calls: list[Any] = []
    agent = scripted("import tools\ntask_success(tools.double(4))", level, state=Versioned())
    agent.module(tools(calls), external=True, approval=True)

    @agent.task
    def work() -> int: ...

    with pytest.raises(TaskSuspended) as stopped:
        work()
    assert (stopped.value.call.name, calls) == ("tools.double", [])
    assert stopped.value.run.approve({"n": 5}).value == 10
    assert calls == [5]


RAW = """
import tools
ask = next(cell.cell_contents for cell in tools.double.__closure__ if callable(cell.cell_contents))
"""


@pytest.mark.parametrize(
    "request_",
    [
        "'call', 'tools._inner', None, (), {}",
        "'call', 'tools', None, (), {}",
        "'method', 'tools', '_inner', (), {}",
        "'method', 'tools.double', '__globals__', (), {}",
        "'method', 'tools.double', '__getattribute__', ('__globals__',), {}",
        "'get', 'tools.double', '__globals__', (), {}",
    ],
)
def test_a_raw_request_for_what_was_not_granted_is_refused_or_ends_the_worker(request_):
    calls: list[Any] = []
    replies = [f"{RAW}task_success(repr(ask({request_})))", "task_success('refused')"]
    model = ScriptedModel([[python_action(code)] for code in replies])
    agent = Agent(model=model, isolation="process", python="full")
    agent.module(tools(calls))

    @agent.task
    def work() -> str: ...

    assert work() == "refused"
    assert calls == []


def test_a_raw_request_is_journalled_as_well():
    """Stopped by: isolation.rpc.policy_codec, agent.durable.external_functions."""
    calls: list[Any] = []
    code = RAW + "task_success(ask('call', 'tools.double', None, (4,), {}))"
    agent = scripted(code, ("process", "full"), state=Versioned())
    agent.module(tools(calls), external=True, approval=True)

    @agent.task
    def work() -> int: ...

    with pytest.raises(TaskSuspended):
        work()
    assert calls == []
