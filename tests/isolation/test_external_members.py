"""Calls of marked members are journalled when code runs in a worker: the host makes and judges each.

Stopped by: agent.durable.external_members, isolation.rpc.host_objects.
"""

from __future__ import annotations

from typing import Any

import pytest

from agex import Agent, MemberSpec, TaskSuspended, Versioned
from agex.testing import ScriptedModel, python_action

LEVELS = [("process", "guarded"), ("process", "full"), ("kernel", "guarded"), ("kernel", "full")]
EXTERNAL = MemberSpec(external=True)


class Mail:
    """Letters."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.hook = self.write

    def write(self, text: str) -> str:
        """Write a letter."""
        self.sent.append(text)
        return f"sent {text}"

    def count(self) -> int:
        return len(self.sent)

    def holder(self) -> Holder:
        return Holder(self)


class Holder:
    def __init__(self, mail: Mail) -> None:
        self.mail = mail


def scripted(level: tuple[str, str], mail: Mail, codes: list[str], **settings: Any) -> Any:
    isolation, python = level
    model = ScriptedModel([[python_action(code)] for code in codes])
    agent = Agent(model=model, isolation=isolation, python=python, **settings)
    agent.module(mail, name="mail", configure={"write": EXTERNAL})

    @agent.task
    def work() -> str: ...

    return work


def begun(state: Versioned) -> int:
    return sum(commit.message.endswith("mail.write begins") for commit in state.history())


WAYS = """
from functools import partial
from operator import methodcaller
import copy
mail.write("1")
write = mail.write
write("2")
getattr(mail, "write")("3")
type(mail).write(mail, "4")
list(map(mail.write, "5"))
partial(mail.write, "6")()
methodcaller("write", "7")(mail)
print("8", file=mail, end="")
mail.hook("9")
refused = 0
for way in ("mail.holder().mail.write('a')", "mail._mail", "mail.write.__self__"):
    try:
        exec(way)
    except BaseException:
        refused += 1
task_success(f"{mail.count()} {refused}")
"""


@pytest.mark.parametrize("level", LEVELS, ids="-".join)
def test_each_way_to_a_method_is_journalled_or_closed(level):
    mail, state = Mail(), Versioned()
    code = (
        WAYS if level[1] == "full" else WAYS.replace("exec(way)", "getattr(mail.holder().mail, 'write')('a')")
    )
    work = scripted(level, mail, [code], state=state)
    made = work().split()
    assert [text for text in mail.sent if text] == [*"123456789"]
    assert made[0] == str(begun(state)) == str(len(mail.sent))
    assert made[1] == ("3" if level[1] == "guarded" else made[1])


@pytest.mark.parametrize("level", LEVELS[1:3], ids="-".join)
def test_a_call_waits_for_approval_and_is_made_once(level):
    mail, state = Mail(), Versioned()
    isolation, python = level

    def made(codes: list[str]) -> Any:
        model = ScriptedModel([[python_action(code)] for code in codes])
        agent = Agent(model=model, isolation=isolation, python=python, state=state, name="a")
        agent.module(mail, name="mail", external=True, approval=True, exclude=["_*", "holder"])

        @agent.task
        def work() -> str: ...

        return work

    with pytest.raises(TaskSuspended) as stopped:
        made(["task_success(mail.write('a'))"])()
    assert str(stopped.value.call) == "mail.write('a')"
    assert made([]).resume().approve({"text": "b"}).value == "sent b"
    assert mail.sent == ["b"]


def test_a_module_of_the_host_with_one_function_that_acts_is_used_from_a_worker():
    from types import ModuleType

    tools, sent = ModuleType("tools"), list[str]()

    def send(text: str) -> str:
        sent.append(text)
        return f"sent {text}"

    def look() -> int:
        return len(sent)

    vars(tools).update(send=send, look=look)
    state = Versioned()
    code = "import tools\ntools.send('a')\nlist(map(tools.send, 'b'))\ntask_success(str(tools.look()))"
    agent = Agent(model=ScriptedModel([[python_action(code)]]), isolation="process", state=state)
    agent.module(tools, configure={"send": EXTERNAL})

    @agent.task
    def work() -> str: ...

    assert work() == "2"
    assert sum(commit.message.endswith("tools.send begins") for commit in state.history()) == 2
