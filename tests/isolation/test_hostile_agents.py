"""A worker that builds agents to do harm: a declaration is data, a class that stays is not its to take apart.

Stopped by: isolation.rpc.declarations, agent.built_agents.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import tokenize
import traceback
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hostile_worker import DONE, sends, session_with, stream, well

from agex import Agent, values
from agex.agent.built_agents import registrations
from agex.agent.execution.grants import policy_with
from agex.agent.registration import Access
from agex.errors import DefinitionError, EvalError
from agex.isolation.rpc.declarations import Unknown, read
from agex.isolation.wire.error_codec import ProtocolError
from agex.sandbox import Policy, Sandbox
from agex.testing import ScriptedModel, python_action
from agex.values.base.guest_code import ForwardedCode

PLAIN: dict[str, Any] = {
    "name": "f", "doc": None, "async": False, "empty": True, "parameters": ["x"], "by_keyword": 0,
    "args": False, "kwargs": False, "defaults": {}, "annotations": {},
}  # fmt: skip
MONITOR = Sandbox(Policy.default()).session()


def form(found: Any) -> Any:
    return read({**PLAIN, "annotations": {"x": found}}, MONITOR).annotations["x"]


@pytest.mark.parametrize(
    "change",
    [
        {"name": 5}, {"doc": []}, {"async": 1}, {"empty": None}, {"parameters": "x"}, {"parameters": ["x", "x"]},
        {"parameters": ["x = exec('1')"]}, {"parameters": ["x"] * 300}, {"parameters": [["x"]]}, {"by_keyword": 2},
        {"by_keyword": -1}, {"by_keyword": 0.5}, {"args": True, "kwargs": True}, {"defaults": []}, {"defaults": {"y": 1}},
        {"annotations": {"y": {}}}, {"annotations": [["x", {}]]}, {"annotations": {"x": {"list": 5}}},
        {"annotations": {"x": {"any": [{}] * 300}}},
    ],
)  # fmt: skip
def test_what_no_function_declares_is_refused(change):
    with pytest.raises(ProtocolError):
        read({**PLAIN, **change}, MONITOR)


@pytest.mark.parametrize("found", [None, 5, [], "f", {}, {"name": "f"}])
def test_what_is_no_declaration_is_refused(found):
    with pytest.raises(ProtocolError):
        read(found, MONITOR)


@pytest.mark.parametrize(
    "found",
    [
        {"name": "os:system"}, {"name": "builtins:exec"}, {"name": "module os"}, {"name": "eval"}, {"name": "print"},
        {"name": "getattr!"}, {"name": "__import__"}, {"name": "sys:modules"}, {"name": "subprocess:Popen"},
        {"name": "agex.agent.built_agents:BuiltAgent"}, {"name": ["int"]}, {"is": "x"}, {"is": []}, {"class": "int"},
        {"literal": [{}]}, {"literal": []}, {"any": []}, {"any": [{}]}, {"of": {"is": "none"}, "args": []},
        {"of": {"name": "list"}, "args": [{}]}, {"of": {"name": "collections.abc:Callable"}, "args": []}, {"a": 1, "b": 2},
    ],
)  # fmt: skip
def test_nothing_that_is_not_granted_is_named(found):
    said = form(found)
    assert said is Unknown or type(said) is Unknown


def test_a_declaration_that_is_deep_is_refused():
    deep: Any = {"name": "int"}
    for _ in range(100):
        deep = {"of": {"name": "list"}, "args": [deep]}
    with pytest.raises(ProtocolError, match="too deep"):
        form(deep)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["is", "name", "of", "args", "any", "list", "literal", "class", "tuple", "bytes"]),
        inner, max_size=2,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(JSON, JSON)
def test_any_declaration_is_read_or_refused(annotation, default):
    try:
        read({**PLAIN, "annotations": {"x": annotation}, "defaults": {"x": default}}, MONITOR)
    except ProtocolError:
        return


def building() -> Policy:
    """Give the policy of a task whose code may build agents."""
    return policy_with(registrations("Agent", Access()), {})


def asking(**asked: Any) -> Any:
    replies: list[Any] = []

    def act(puppet, frame):
        header = {"v": 1, **asked}
        args = header.pop("args", ())
        replies.append(puppet.ask(header, stream((args, {}))).header)
        well(puppet, frame)

    return act, replies


@pytest.mark.parametrize(
    "asked",
    [
        {"what": "call", "of": "BuiltTask", "args": (1,)},
        {"what": "operator", "name": "__call__", "of": "BuiltTask", "args": (1,)},
        {"what": "operator", "name": "__call__", "of": "Agent"},
        {"what": "operator", "name": "__or__", "of": "Agent"},
        {"what": "get", "name": "__globals__", "of": "Agent"},
        {"what": "get", "name": "__subclasses__", "of": "Agent"},
        {"what": "method", "name": "__new__", "of": "Agent"},
        {"what": "method", "name": "_given", "of": "Agent", "args": (1, 2)},
        {"what": "set", "name": "task", "of": "Agent", "args": (1,)},
        {"what": "set", "name": "DEEPEST", "of": "Agent", "args": (1,)},
        {"what": "delete", "name": "task", "of": "Agent"},
    ],
)
def test_a_class_that_stays_is_called_and_nothing_else(asked):
    from agex.agent.built_agents import BuiltAgent

    before = dict(vars(BuiltAgent))
    policy = building()
    act, replies = asking(**asked)
    session, made = session_with(act, policy=policy, granted=("Agent", "BuiltTask"))
    session.run("x")
    assert made[0].killed or "error" in replies[0]
    assert dict(vars(BuiltAgent)) == before
    session.close()


def test_a_built_agent_belongs_to_a_task():
    act, replies = asking(what="call", of="Agent")
    session, _ = session_with(act, policy=building(), granted=("Agent", "BuiltTask"))
    session.run("x")
    assert "Only the code of an agent" in replies[0]["error"]["text"]
    session.close()


@pytest.mark.parametrize("name", ["os", "subprocess", "builtins", "agex", "", "math:sqrt", "nothing"])
def test_a_module_that_is_not_granted_is_not_named(name):
    policy = Policy.default()
    policy.fn(lambda module: module.__name__, name="lookup")
    from agex.sandbox.stored_code import KeptCode

    class Names(KeptCode):
        def host_name(self, value: object) -> str | None:
            return f"m:{name}"

    from agex import values

    (group,) = values.encode(
        {"value": ((json,), {})}, allow=values.Allow(), guest=Names(Sandbox(Policy.default()))
    )
    session, made = session_with(
        sends({"k": "ask", "what": "call", "of": "lookup", "v": 1}, group.stream), policy=policy
    )
    result = session.run("x")
    assert type(result.error) is EvalError
    assert ("was not given" in str(result.error), made[0].killed) == (True, True)
    session.close()


@pytest.mark.parametrize(
    "reply", [{"d": 5}, {"d": {**PLAIN, "name": None}}, {"d": {**PLAIN, "parameters": ["1"]}}]
)
def test_a_worker_that_declares_wrongly_is_killed(reply):
    def act(puppet, frame):
        if frame.kind == "declare":
            puppet.peer.send({"k": "done", **reply})
        else:
            about = json.dumps({"id": 0, "name": "f", "doc": "", "sig": None, "async": False, "text": ""})
            header = {**DONE, "v": 1}
            puppet.peer.send(header, [b"", b"", b"", function(about)])

    session, made = session_with(act)
    f = session.run("f").value
    with pytest.raises(EvalError, match="declares itself wrongly"):
        session.declaration(f)
    assert made[0].killed
    session.close()


def function(about: str) -> bytes:
    from agex import values
    from agex.sandbox.stored_code import KeptCode

    class Names(KeptCode):
        def is_guest_function(self, value: object) -> bool:
            return False

        def host_name(self, value: object) -> str | None:
            return f"g:{about}"

    (group,) = values.encode({"value": well}, allow=values.Allow(), guest=Names(Sandbox(Policy.default())))
    return group.stream


@pytest.mark.parametrize("lie", [{"empty": True}, {"name": "import os"}, {"name": "x, y=__import__('os')"}])
def test_a_declaration_that_lies_makes_a_task_or_an_error(lie):
    from agex.agent.task_stubs import stub_of

    written = read({**PLAIN, **lie}, MONITOR)
    try:
        made = stub_of(written, lambda cls: False)
    except DefinitionError:
        assert "name" in lie
    else:
        assert made(1) is None


@pytest.mark.parametrize("level", ["process", "kernel"])
def test_code_that_left_the_sandbox_gives_an_agent_no_more_than_its_maker_has(level):
    """The guards of the worker are off: it sends what it likes for a function that it wrote."""
    code = "a = Agent(timeout_seconds=1e9, max_iterations=10 ** 9)\n@a.task\ndef t(x: int) -> int:\n    ...\ntask_success(t)"
    agent = Agent(
        model=ScriptedModel([[python_action(code)]]), isolation=level, timeout_seconds=3.0, max_iterations=2
    )
    agent.cls(Agent)

    @agent.task
    def work() -> object: ...

    child = work().task.agent
    assert (child.isolation, child.timeout_seconds, child.max_iterations, child.registrations) == (
        level,
        3.0,
        2,
        (),
    )


ABOUT: dict[str, Any] = {
    "id": 0,
    "name": "f",
    "doc": "",
    "sig": None,
    "async": False,
    "text": "def f(): return 1\n",
}


class Naming(ForwardedCode):
    """Guest code of a worker that describes each function in the same way."""

    def __init__(self, about: dict[str, Any]) -> None:
        super().__init__(MONITOR)
        self._about = about

    def is_guest_function(self, value: object) -> bool:
        return False

    def host_name(self, value: object) -> str | None:
        return "g:" + json.dumps(self._about) if inspect.isfunction(value) else None


def returning(**change: Any):
    """Open a session whose worker returns a function that it describes so; give its result."""

    def f() -> None: ...

    (group,) = values.encode({"value": f}, allow=values.Allow(), guest=Naming({**ABOUT, **change}))
    session, made = session_with(sends({**DONE, "v": 1}, b"", b"", b"", group.stream))
    result = session.run("x")
    session.close()
    return result, made[0]


@pytest.mark.parametrize(
    "change",
    [
        {"text": 5},
        {"text": None},
        {"text": "x" * 20_001},
        {"name": 5},
        {"doc": []},
        {"id": "0"},
        {"id": True},
    ],
)
def test_a_function_that_is_described_wrongly_ends_the_worker(change):
    result, puppet = returning(**change)

    assert puppet.killed
    assert "a function is described wrongly" in str(result.error)


@pytest.mark.parametrize(
    "change",
    [
        {"text": "\x00\ud800\x1b[2J"},
        {"text": "\n" * 20_000},
        {"text": "def f(:\n", "name": "\ud800"},
        {"text": "", "name": "f\n  File '/etc/passwd', line 1\x1b[2J"},
    ],
)
def test_the_lines_of_a_worker_are_text(change):
    result, puppet = returning(**change)

    assert result.error is None
    assert result.value.__name__.isprintable()
    with contextlib.suppress(OSError, SyntaxError, IndexError, tokenize.TokenError):
        inspect.getsource(result.value)
    with pytest.raises(EvalError) as caught:
        result.value()
    assert "\x1b" not in "".join(traceback.format_exception(caught.value))
    assert puppet.killed
