"""What a worker needs is loaded while the caller does something else; whoever needs the worker waits for it."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator

import pytest

from agex import Agent
from agex.errors import IsolationUnavailable
from agex.isolation import ProcessExecutor
from agex.isolation.wire.codec import CannotCross
from agex.sandbox import Limits, Policy
from agex.testing import ScriptedModel, python_action


@pytest.fixture
def executor() -> Iterator[ProcessExecutor]:
    made = ProcessExecutor()
    yield made
    made.close()


def registered(monkeypatch, folder, name, source):
    """Return a policy with a module that only workers import."""
    (folder / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    policy = Policy.default()
    policy.module(module)
    return policy


def test_a_session_begins_while_the_modules_of_its_worker_are_loaded(executor, tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    policy = registered(
        monkeypatch, tmp_path, "slow_one", f"with open({str(pipe)!r}) as f:\n    x = f.read()"
    )
    session = executor.session(policy, Limits(seconds=30), {"rows": [1]}, python="full")
    session.begin()  # the import waits for a writer, and this does not wait for it
    pipe.write_text("loaded")
    assert session.run("import slow_one\nslow_one.x, rows").echo == "('loaded', [1])"
    session.close()


def test_where_all_is_loaded_a_session_begins_with_its_worker(executor):
    policy = Policy.default()
    first = executor.session(policy, Limits(), {})
    first.open()
    second = executor.session(policy, Limits(), {})
    second.begin()
    assert second._connection.worker is not None
    first.close()
    second.close()


class Unknown:
    """A class that nobody registered: neither it nor a proxy of it crosses."""


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_variable_that_cannot_cross_is_told_at_the_beginning(executor, is_loaded):
    if is_loaded:
        executor.session(Policy.default(), Limits(), {}).open()
    session = executor.session(Policy.default(), Limits(), {"cls": Unknown})
    with pytest.raises(CannotCross):
        session.begin()


def test_a_module_that_workers_cannot_import_ends_the_run(executor, tmp_path, monkeypatch):
    policy = registered(monkeypatch, tmp_path, "only_there", "raise ImportError('not in a worker')")
    session = executor.session(policy, Limits(), {})
    session.begin()
    with pytest.raises(IsolationUnavailable, match="only_there"):
        session.run("1")


def test_a_module_that_workers_cannot_import_ends_the_task(tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("raise ImportError('not in a worker')")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = types.ModuleType("only_here")
    monkeypatch.setitem(sys.modules, "only_here", module)
    agent = Agent(model=ScriptedModel([[python_action("task_success(1)")]]), isolation="process")
    agent.module(module)

    @agent.task
    def work() -> int:
        """Do it."""

    with pytest.raises(IsolationUnavailable, match="only_here"):
        work()
