"""The workspace of a task whose code runs in a worker: it stays in the host, and code finds it as in process."""

from __future__ import annotations

import gc
import socket
import sqlite3
from typing import Any

import native_attacks
import numpy as np
import pandas as pd
import plotly
import pytest
from file_attacks import ATTACKS, HOST, SECRET

from agex import Agent, FileEvent, Live, OutputEvent, Versioned, connect_fs
from agex.isolation import executor_of
from agex.isolation.wire.framing import Channel, SocketStream
from agex.isolation.wire.worker_channel import WorkerChannel
from agex.sandbox import Limits, Policy
from agex.testing import ScriptedModel, edit_file, python_action, write_file


@pytest.fixture(params=["none", "process", "kernel"])
def level(request) -> str:
    return request.param


def solving(level: str, *replies: Any, **settings: Any) -> tuple[Agent, Any]:
    """An agent with one task."""
    model = ScriptedModel([[python_action(one)] if isinstance(one, str) else one for one in replies])
    agent = Agent(model=model, isolation=level, **settings)
    agent.module(pd)

    @agent.task
    def work() -> Any:
        """Work."""

    return agent, work


def outputs(run: Any) -> list[str]:
    return [event.text for event in run.events if isinstance(event, OutputEvent)]


def changes(run: Any) -> list[tuple[Any, ...]]:
    return [(e.added, e.modified, e.removed) for e in run.events if isinstance(e, FileEvent)]


def test_tables_are_read_and_written(level):
    state = Live()
    agent, work = solving(
        level,
        "import pandas as pd\nframe = pd.read_csv('data.csv')\nframe.to_csv('out.csv', index=False)\n"
        "task_success(float(frame.value.mean()))",
        state=state,
    )
    agent.fs().write("data.csv", "id,value\n1,10\n2,20\n")
    assert work() == 15.0
    assert state.files["out.csv"] == b"id,value\n1,10\n2,20\n"


@pytest.mark.parametrize("make", [Live, Versioned], ids=["live", "versioned"])
def test_files_live_on_in_the_state(level, make):
    state = make()
    _, work = solving(
        level,
        "open('a.txt', 'w').write('x')\ntask_success(1)",
        "task_success(open('a.txt').read())",
        state=state,
    )
    assert (work(), work()) == (1, "x")
    assert dict(state.files) == {"a.txt": b"x"}


def test_a_commit_has_the_files_of_its_action(level):
    state = Versioned()
    _, work = solving(
        level, "open('a', 'w').write('1')", "open('a', 'w').write('2')", "task_success(0)", state=state
    )
    run = work.run()
    seen = [dict(state.checkout(one.hash).files) for one in reversed(list(state.history()))]
    assert ([{"a": b"1"} in seen, seen[-1]], len(changes(run))) == ([True, {"a": b"2"}], 2)


def test_events_and_the_recap_say_what_changed(level):
    _, work = solving(
        level, "open('a.txt', 'w').write('x')", "import os\nos.remove('a.txt')", "task_success(0)"
    )
    run = work.run()
    assert changes(run) == [(("a.txt",), (), ()), ((), (), ("a.txt",))]


def test_actions_on_files_are_seen_by_code_and_its_files_by_them(level):
    _, work = solving(
        level,
        [
            write_file("m.py", "def f():\n    return 1\n"),
            python_action("import m\nopen('b', 'w').write('old')"),
        ],
        [edit_file("m.py", "return 1", "return 2"), edit_file("b", "old", "new")],
        "import m\ntask_success((m.f(), open('b').read()))",
    )
    assert work() == (2, "new")


def test_a_function_of_a_module_of_the_workspace_lives_on(level):
    state = Versioned()
    _, work = solving(
        level,
        [
            write_file("m.py", "k = 5\n\n\ndef f(x):\n    return x * k\n"),
            python_action("from m import f\ntask_success(f(1))"),
        ],
        "task_success(f(2))",
        state=state,
    )
    assert (work(), work()) == (5, 10)


def test_a_directory_of_the_host_is_worked_on_and_nothing_outside_it(level, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "in.txt").write_text("given")
    (tmp_path / "secret").write_text("s")
    _, work = solving(
        level,
        "open('out.txt', 'w').write(open('in.txt').read())\nsaid = []\n"
        "for path in ('../secret', '/etc/machine-id', '/proc/self/environ'):\n"
        "    try:\n        open(path)\n    except OSError as e:\n        said.append(type(e).__name__)\n"
        "task_success(said)",
        fs=connect_fs(type="isolated", root=root),
    )
    assert work() == ["FileNotFoundError"] * 3
    assert (root / "out.txt").read_text() == "given"


def test_with_no_workspace_there_are_no_files(level):
    _, work = solving(level, "open('a')", "task_success(0)", fs=None)
    said = outputs(work.run())[0]
    # Of full Python the kernel has no file of that name; of guarded Python nothing has files.
    assert "no file system" in said or (level in ("kernel", "container") and "FileNotFoundError" in said)


@pytest.mark.parametrize("level", ["process", "kernel"])
def test_a_file_that_an_error_leaves_open_is_written_before_the_run_is_over(level):
    files = connect_fs()
    session = executor_of(level).session(Policy.default(), Limits(seconds=5.0), {}, files=files)
    result = session.run("def f():\n    g = open('lost', 'w')\n    g.write('kept')\n    1 / 0\nf()")
    assert (type(result.error), files.read("lost")) == (ZeroDivisionError, b"kept")
    session.close()


def test_while_the_host_has_the_turn_nothing_is_collected_that_would_ask_it():
    ours, theirs = socket.socketpair()
    link, host = WorkerChannel(Channel(SocketStream(ours)), lambda frame: None), Channel(SocketStream(theirs))
    host.send({"k": "run"})
    try:
        link.hand_over({"k": "done"})
        between = gc.isenabled()
        assert (link.receive().kind, between, gc.isenabled()) == ("run", False, True)
    finally:
        gc.enable()
        ours.close()
        theirs.close()


def test_a_task_in_a_task_has_files_of_its_own(level):
    _, inner = solving(level, "open('a', 'w').write('inner')\ntask_success(open('a').read())")
    agent, work = solving(
        level, "open('a', 'w').write('outer')\nx = inner()\ntask_success((x, open('a').read()))"
    )
    agent.fn(inner, name="inner")
    assert work() == ("inner", "outer")


@pytest.fixture(scope="module")
def granted():
    policy = Policy.default()
    for module in (np, pd, plotly, sqlite3):
        policy.module(module)
    return policy


@pytest.mark.parametrize("walled", ["process", "kernel"])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_leads_from_a_worker_to_the_host(attack, walled, granted, tmp_path, monkeypatch):
    (tmp_path / SECRET).write_text("secret\n1\n")
    monkeypatch.chdir(tmp_path)
    given = tmp_path / SECRET
    names = {"HOST": HOST, "SECRET": SECRET, "FULL": str(given), "given": given}
    session = executor_of(walled).session(granted, Limits(seconds=20.0), names, files=connect_fs())
    try:
        result = session.run(attack)
    finally:
        session.close()
    assert result.error is not None
    assert "secret" not in repr(result.value)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {SECRET: "secret\n1\n"}


@pytest.fixture(scope="module")
def granted_natives():
    policy = Policy.default()
    for module in native_attacks.LIBRARIES:
        policy.module(module)
    return policy


@pytest.mark.parametrize("walled", ["process", "kernel"])
def test_no_compiled_library_leads_from_a_worker_to_the_host(walled, granted_natives, tmp_path):
    there = native_attacks.put_secrets(tmp_path)
    names = {"FOLDER": f"{tmp_path}/", "OUT": f"{tmp_path}/new"}
    session = executor_of(walled).session(granted_natives, Limits(seconds=20.0), names, files=connect_fs())
    found = []
    for name, attack in native_attacks.ATTACKS.items():
        session.run("x = None")
        done = session.run(attack)
        shown = session.run("repr(x)").value
        changed = {each.name: each.read_bytes() for each in tmp_path.iterdir()} != there
        if done.error is None or "secret" in repr(shown) or changed:
            found.append(name)
    session.close()
    assert found == []
