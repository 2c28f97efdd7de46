from __future__ import annotations

import math
import sqlite3

import pytest

from agex.agent import Agent
from agex.errors import DefinitionError
from agex.testing import ScriptedModel, python_action


def run(agent, code):
    """Run code as the agent; return the value it ends with."""
    agent.model = ScriptedModel([[python_action(f"task_success({code})")]])

    @agent.task
    def f() -> object: ...

    return f()


def test_registering_gives_back_what_was_given_in_every_form():
    agent = Agent()

    @agent.fn
    def one(): ...

    @agent.fn(name="deux", visibility="low")
    def two(): ...

    @agent.cls
    class Three: ...

    @agent.cls(constructable=False)
    class Four: ...

    assert agent.module(math) is math
    assert [two.__name__, Three.__name__, Four.__name__] == ["two", "Three", "Four"]
    assert [item.name for item in agent.registrations] == ["one", "deux", "Three", "Four", "math"]


def test_the_agents_code_uses_what_is_registered():
    agent = Agent()
    db = sqlite3.connect(":memory:")

    class Point:
        def __init__(self, x):
            self.x = x

    agent.fn(lambda n: n + 1, name="inc")
    agent.cls(Point)
    agent.module(db, name="db")
    try:
        assert run(agent, "inc(Point(db.execute('select 41').fetchone()[0]).x)") == 42
    finally:
        db.close()


def test_the_same_thing_again_replaces_its_record():
    agent = Agent()
    agent.fn(len, name="size", visibility="high")
    agent.fn(len, name="size", visibility="low")
    assert [item.visibility for item in agent.registrations] == ["low"]


def test_another_thing_under_a_taken_name_is_refused():
    agent = Agent()
    agent.fn(len, name="size")
    with pytest.raises(DefinitionError, match="'size' is already registered"):
        agent.fn(max, name="size")


@pytest.mark.parametrize("name", ["<lambda>", "two words", "class", "1st", "a.b"])
def test_a_name_that_cannot_be_written_is_refused(name):
    with pytest.raises(DefinitionError, match="cannot be a name"):
        Agent().fn(len, name=name)


@pytest.mark.parametrize("name", ["task_success", "inputs", "cache", "help"])
def test_a_name_the_agents_code_has_already_is_refused(name):
    with pytest.raises(DefinitionError, match="of its own"):
        Agent().fn(len, name=name)


def test_a_module_may_have_a_dotted_name():
    import xml.etree.ElementTree as ET

    agent = Agent()
    agent.module(ET)
    assert agent.registrations[0].name == "xml.etree.ElementTree"


def test_the_wrong_kind_of_thing_is_refused_with_the_right_call():
    agent = Agent()
    with pytest.raises(DefinitionError, match=r"agent\.cls"):
        agent.fn(int)
    with pytest.raises(DefinitionError, match=r"agent\.module"):
        agent.cls(5)
    with pytest.raises(DefinitionError, match="name="):
        agent.module(object())
    with pytest.raises(DefinitionError, match="visibility='loud'"):
        agent.fn(len, visibility="loud")


def test_help_prints_signature_and_docstring():
    agent = Agent()

    @agent.fn(docstring="Look a word up.")
    def lookup(word: str) -> str: ...

    agent.model = model = ScriptedModel(
        [[python_action("help(lookup)\nhelp()\nhelp([].append)")], [python_action("task_success(1)")]]
    )

    @agent.task
    def f() -> int: ...

    f()
    shown = model.requests[1].messages[-1].content
    assert "def lookup(word: str) -> str:" in shown
    assert "Look a word up." in shown
    assert "function lookup" in shown
    assert "append(object, /)" in shown


def test_a_function_reaches_files_only_when_it_was_granted_them(tmp_path):
    (tmp_path / "note").write_text("hello")
    agent = Agent()

    def read() -> str:
        return (tmp_path / "note").read_text()

    agent.fn(read, host_fs_access=True)
    agent.fn(lambda: str(read()), name="read_without")
    assert run(agent, "read()") == "hello"
    agent.model = model = ScriptedModel(
        [[python_action("read_without()")], [python_action("task_success(1)")]]
    )

    @agent.task
    def f() -> int: ...

    f()
    assert "host_fs_access=True" in model.requests[1].messages[-1].content


async def test_an_async_function_reaches_files_only_when_it_was_granted_them(tmp_path):
    (tmp_path / "note").write_text("hello")
    model = ScriptedModel([[python_action("read_without()")], [python_action("task_success(read())")]])
    agent = Agent(model=model)

    async def read() -> str:
        return (tmp_path / "note").read_text()

    agent.fn(read, host_fs_access=True)
    agent.fn(read, name="read_without")

    @agent.task
    async def f() -> str: ...

    assert await f() == "hello"
    assert "host_fs_access=True" in model.requests[1].messages[-1].content
