"""Tasks whose code runs in a worker: they do as tasks in this process do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agex import (
    Agent,
    AgexError,
    Live,
    Memory,
    TaskCancelled,
    TaskClarify,
    TaskFail,
    UnpicklableVariableError,
    Versioned,
    view,
)
from agex.isolation import executor_of
from agex.testing import ScriptedModel, python_action

DONE = "task_success(None)"


@pytest.fixture(params=["none", "process", "kernel"])
def level(request) -> str:
    return request.param


def scripted(*codes: str) -> ScriptedModel:
    return ScriptedModel([[python_action(code)] for code in codes])


def agent_with(level: str, *codes: str, **settings: Any) -> Agent:
    return Agent(model=scripted(*codes), isolation=level, **settings)


@dataclass
class Order:
    item: str
    count: int = 1


def test_a_value_comes_back(level):
    agent = agent_with(level, "task_success({'a': [len(rows), inputs.rows[0]]})")

    @agent.task
    def work(rows: list[int]) -> dict[str, list[int]]: ...

    assert work([5, 6]) == {"a": [2, 5]}


def test_a_wrong_value_is_an_error_in_the_agents_code(level):
    code = "try:\n    task_success('no')\nexcept TypeError as e:\n    said = str(e)\ntask_success(len(said))"
    agent = agent_with(level, code)

    @agent.task
    def work() -> int: ...

    assert work() > 10


def test_a_wrong_value_that_is_not_caught_is_shown_with_its_line(level):
    agent = agent_with(level, "x = 1\ntask_success('no')", "task_success(3)")

    @agent.task
    def work() -> int: ...

    run = work.run()
    shown = str(agent.model.requests[1])
    assert run.value == 3
    assert "line 2, in <module>" in shown
    assert "expected int" in shown


def test_tables_and_arrays_cross_both_ways(level):
    agent = agent_with(level, "import pandas as pd\nframe['c'] = frame.a * 2\ntask_success((frame, array.T))")
    agent.module(pd)
    agent.module(np)

    @agent.task
    def work(frame: pd.DataFrame, array: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]: ...

    frame, array = work(pd.DataFrame({"a": [1, 2]}), np.arange(6).reshape(2, 3))
    assert frame.c.tolist() == [2, 4]
    assert array.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_large_table_crosses_both_ways(level):
    agent = agent_with(level, "frame['b'] = frame.a + 1\ntask_success(frame)")
    agent.module(pd)

    @agent.task
    def work(frame: pd.DataFrame) -> pd.DataFrame: ...

    found = work(pd.DataFrame({"a": np.arange(1_000_000)}))
    found.loc[0, "b"] = 7  # it is the host's to write to
    assert (found.b.iloc[0], found.b.iloc[-1]) == (7, 1_000_000)


def test_instances_of_host_classes_cross_both_ways(level):
    agent = agent_with(level, "order.count += 1\ntask_success([order, Order('pear')])")
    agent.cls(Order)

    @agent.task
    def work(order: Order) -> list[Order]: ...

    assert work(Order("fig", 2)) == [Order("fig", 3), Order("pear")]


def test_a_function_is_returned_and_called_by_the_host(level):
    agent = agent_with(
        level, "def area(r: float, k=3) -> float:\n    return lookup(k) * r\ntask_success(area)"
    )
    agent.fn(lambda x: x + 1, name="lookup")

    @agent.task
    def work() -> Callable[[float], float]: ...

    area = work()
    assert (area(2), area(2, k=4)) == (8, 10)


def test_a_task_ends_by_its_own_function_once_its_examples_hold(level):
    agent = agent_with(level, "def twice(n):\n    return n + 2", "def twice(n):\n    return n * 2")

    @agent.task(examples=[(((3,), {}), 6)])
    def twice(n: int) -> int: ...

    run = twice.run(5)
    assert (run.value, "n * 2" in run.code) == (10, True)


def test_checks_run_where_the_type_check_runs(level):
    agent = agent_with(level, "try:\n    task_success(1)\nexcept ValueError:\n    task_success(2)")

    @agent.task(checks=[lambda value, inputs: value == inputs.n])
    def work(n: int) -> int: ...

    assert work(2) == 2


def test_a_task_fails_and_asks_with_its_message(level):
    for code, error in (("task_fail('no way')", TaskFail), ("task_clarify('which?')", TaskClarify)):
        agent = agent_with(level, code)

        @agent.task
        def work() -> int: ...

        with pytest.raises(error, match=r"no way|which\?"):
            work()


def test_a_task_goes_on_with_an_answer(level):
    agent = agent_with(level, "x = 20\ntask_clarify('which?')", "task_success(x + 1)")

    @agent.task
    def work() -> int: ...

    with pytest.raises(TaskClarify) as caught:
        work()
    assert caught.value.run.answer("this").value == 21


def test_another_agents_task_is_a_function(level):
    inner = agent_with(level, "task_success(n + 1)", "task_fail('enough')")

    @inner.task
    def step(n: int) -> int: ...

    code = (
        "a = step(1)\ntry:\n    step(2)\nexcept Exception as e:\n    said = str(e)\ntask_success([a, said])"
    )
    outer = agent_with(level, code)
    outer.fn(step)

    @outer.task
    def work() -> list: ...

    assert work() == [2, "enough"]


def test_a_tasks_time_is_not_charged_to_the_action_that_calls_it(level):
    # The guest's own sleep is what is tested: it is longer than the outer action may take.
    inner = agent_with(level, *["import time\ntime.sleep(0.6)\ntask_success(1)"] * 2)

    @inner.task
    def slow() -> int: ...

    outer = agent_with(level, "slow()\ntask_success(slow())", timeout_seconds=0.5)
    outer.fn(slow)

    @outer.task
    def work() -> int: ...

    assert work() == 1


@pytest.mark.parametrize("call", ["fetch(1)", "await fetch(1)"], ids=["called", "awaited"])
def test_an_async_function_is_called_or_awaited_in_an_async_task(level, call):
    agent = agent_with(level, f"a = {call}\ntask_success(a + 1)")

    @agent.fn
    async def fetch(n: int) -> int:
        await asyncio.sleep(0)
        return n * 10

    @agent.task
    async def work() -> int: ...

    assert asyncio.run(work()) == 11


def test_an_async_function_is_refused_in_a_sync_task(level):
    agent = agent_with(level, "try:\n    fetch(1)\nexcept RuntimeError as e:\n    task_success(str(e))")

    @agent.fn
    async def fetch(n: int) -> int: ...

    @agent.task
    def work() -> str: ...

    assert work() == "'fetch' is an async function and cannot be called from a sync task."


def test_a_cancelled_task_ends_its_code(level):
    agent = agent_with(level, "begin()\nwhile True: pass")
    begun = asyncio.Event()

    @agent.task
    async def work() -> int: ...

    async def main() -> None:
        loop = asyncio.get_running_loop()
        agent.fn(lambda: loop.call_soon_threadsafe(begun.set) and None, name="begin")
        task = asyncio.ensure_future(work())
        await begun.wait()
        task.cancel()
        with pytest.raises((asyncio.CancelledError, TaskCancelled)):
            await task

    asyncio.run(main())


def test_help_and_a_setup_work(level):
    agent = agent_with(level, "help(lookup)\nhelp()", "task_success(base)")

    @agent.fn
    def lookup(x: int) -> int:
        """Find it."""
        return x

    @agent.task(setup="base = 4")
    def work() -> int: ...

    assert work() == 4
    assert "Find it." in str(agent.model.requests[1])


def test_an_action_that_does_not_end_is_an_observation_and_the_task_goes_on():
    agent = agent_with("process", "x = 1", "sum(range(10 ** 13))", "task_success(rows)", timeout_seconds=0.3)

    @agent.task
    def work(rows: list[int]) -> list[int]: ...

    assert work([4]) == [4]
    assert "ran longer than 0.3 s and did not stop" in str(agent.model.requests[2])


def test_a_function_of_the_agents_is_called_from_another_thread_while_its_action_waits(level):
    inner = agent_with(level, "task_success(f(20))")

    @inner.task
    async def step(f: Callable[[int], int]) -> int: ...

    outer = agent_with(
        level, "seen = []\ndef g(x):\n    seen.append(x)\n    return x + 1\ntask_success([step(g), seen])"
    )
    outer.fn(step)

    @outer.task
    async def work() -> list: ...

    assert asyncio.run(asyncio.wait_for(work(), 60)) == [21, [20]]


def test_many_threads_of_the_host_call_one_function_of_the_agents(level):
    def each(f: Any, count: int) -> list[int]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(f, range(count)))

    agent = agent_with(level, "task_success(each(lambda x: x + 1, 40))")
    agent.fn(each)

    @agent.task
    def work() -> list: ...

    if level == "none":
        pytest.skip("a session in process is for one thread at a time")
    assert work() == list(range(1, 41))


def test_a_function_that_is_called_late_has_the_time_of_a_run(level):
    # The host's work takes longer than an action may: its own time is not the code's.
    inner = agent_with(level, "import time\ntime.sleep(0.6)\ntask_success(f(20))", timeout_seconds=5.0)

    @inner.task
    def step(f: Callable[[int], int]) -> int: ...

    outer = agent_with(level, "task_success(step(lambda x: x + 1))", timeout_seconds=0.5)
    outer.fn(step)

    @outer.task
    def work() -> int: ...

    assert work() == 21


def killed(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_random_kills_lose_no_commit(monkeypatch):
    state = Versioned(Memory())
    chance = random.Random(11)
    timers: list[threading.Timer] = []
    launcher = executor_of("process")._launcher
    launch = launcher.launch

    def launched(order, directory=None):
        worker = launch(order, directory)
        timers.append(threading.Timer(chance.random() * 0.06, killed, [worker.pid]))
        timers[-1].start()
        return worker

    monkeypatch.setattr(launcher, "launch", launched)
    done = 0
    for number in range(60):
        agent = agent_with(
            "process", f"n = {number}\nkept = n", "n = -1\nfor i in range(3000): pass", DONE, DONE
        )

        @agent.task
        def work() -> None: ...

        with contextlib.suppress(AgexError):
            work(state=state)
            done += 1
        commits = [dict(state.checkout(one)) for one in state.history()]
        assert all(one.get("n") in {one.get("kept"), -1} for one in commits if one)
        assert dict(state) == (commits[0] if commits else {})
    for timer in timers:
        timer.join()
    assert state.fsck() == []
    assert done > 0


# -- state -------------------------------------------------------------------------------------


@pytest.fixture(params=["live", "versioned"])
def state(request):
    return Live() if request.param == "live" else Versioned(Memory())


def run(level: str, state: Any, *codes: str) -> Any:
    agent = agent_with(level, *codes)

    @agent.task
    def work() -> Any: ...

    return work.run(state=state).value


def test_variables_and_the_cache_live_on(level, state):
    run(level, state, "rows = [1]\ncache['k'] = 2", "rows.append(3)", DONE)
    assert (state["rows"], state.cache) == ([1, 3], {"k": 2})
    assert run(level, state, "rows.append(4)\ndel cache['k']\ntask_success(rows)") == [1, 3, 4]
    assert (state["rows"], state.cache) == ([1, 3, 4], {})


class Shop:
    def count(self) -> int:
        return 5


def test_a_live_object_is_a_variable_like_any_other(level, state):
    shop = Shop()

    def made(*codes: str) -> Any:
        agent = agent_with(level, *codes)
        agent.module(shop, name="shop")

        @agent.task
        def work() -> Any: ...

        return work(state=state)

    assert made("x = shop\ny = [shop]", "task_success([x.count(), y[0] is x])") == [5, True]
    assert made("task_success([x.count(), y[0] is shop])") == [5, True]


def test_an_agent_that_is_built_is_a_variable_until_its_task_ends(level, state):
    agent = agent_with(
        level,
        "a = Agent()",
        "@a.task\ndef t(n: int) -> int: ...",
        "task_success(t(1))",
        "task_success(n + 1)",
    )
    agent.cls(Agent)

    @agent.task
    def work() -> int: ...

    assert work(state=state) == 2


def test_a_deleted_variable_is_gone(level, state):
    run(level, state, "a = 1\nb = 2", "del a", DONE)
    assert dict(state) == {"b": 2}


def test_a_variable_that_is_deleted_and_bound_again_to_the_same_is_there(level, state):
    run(level, state, "a = [1]\nb = 2", "del a", "a = [1]", DONE)
    assert dict(state) == {"a": [1], "b": 2}


def test_changes_through_aliases_in_later_actions_are_found(level, state):
    first = "rows = {'n': [1]}\nother = [[0]]\ndef add(x, to=rows['n']): to.append(x)\ninner = other[0]\nsame = [[0]]"
    codes = ["k = 1", "add(2)", "inner.append(3)", "same[0] = other[0]", "add(4); same[0].append(5)"]
    run(level, state, first, *codes, DONE)
    assert (state["rows"], state["other"]) == ({"n": [1, 2, 4]}, [[0, 3, 5]])
    assert state["same"][0] is state["other"][0]


def test_variables_that_share_an_object_share_it_later(level, state):
    run(level, state, "a = [1]\nb = {'a': a}\ncache['a'] = a", DONE)
    assert run(level, state, "a.append(2)\ntask_success([b, cache])") == [{"a": [1, 2]}, {"a": [1, 2]}]


def test_functions_and_classes_live_on_in_the_next_worker(level, state):
    code = (
        "n = 2\nclass C:\n    def __init__(self): self.v = 5\ndef f(x): return x * n\nc = C()\ncache['f'] = f"
    )
    run(level, state, code, DONE)
    later = "n = 100\ntask_success([f(4), c.v, C().v, cache['f'](1), isinstance(c, C)])"
    assert run(level, state, later) == [8, 5, 5, 2, True]


def test_the_host_gives_variables_and_reads_them(level, state):
    state["x"] = [1]
    assert run(level, state, "x.append(2)\ntask_success(sum(x))") == 3
    assert state["x"] == [1, 2]


def test_inputs_are_not_kept_unless_they_are_bound_anew(level, state):
    agent = agent_with(level, "given.append(2)\nother = other + [9]", DONE)

    @agent.task
    def work(given: list, other: list) -> None: ...

    work([1], [1], state=state)
    assert dict(state) == {"other": [1, 9]}


def test_levels_share_plain_variables(state):
    run("process", state, "rows = [1]", DONE)
    run("none", state, "rows.append(2)", DONE)
    assert run("process", state, "rows.append(3)\ntask_success(rows)") == [1, 2, 3]
    assert state["rows"] == [1, 2, 3]


def test_code_of_a_worker_is_not_run_in_this_process(state):
    run("process", state, "def f(x): return x", DONE)
    with pytest.raises(UnpicklableVariableError, match="isolation='process'"):
        state["f"]
    said = "try:\n    f(1)\nexcept Exception as e:\n    task_success(str(e))"
    assert "isolation='process'" in run("none", state, said)
    assert run("process", state, "task_success(f(3))") == 3


def test_code_of_this_process_may_run_in_a_worker(state):
    run("none", state, "k = 3\ndef f(x): return x * k", DONE)
    assert run("process", state, "task_success(f(4))") == 12


def test_a_versioned_state_has_a_commit_for_each_action(level):
    state = Versioned(Memory())
    run(level, state, "a = [1]", "a.append(2)", "b = 1", DONE)
    seen = [dict(state.checkout(one)) for one in state.history()]
    assert seen[-1] == {"a": [1]}
    assert seen[0] == {"a": [1, 2], "b": 1}
    assert {"a": [1, 2]} in seen


def test_what_did_not_change_is_not_stored_again():
    state = Versioned(Memory())
    run("process", state, "a = list(range(100_000))\nb = 0", DONE)
    run("process", state, "b = 1", DONE)
    assert state.diff(list(state.history())[1].hash).changed.keys() == set()
    changed = state.diff(list(state.history())[-1].hash).changed
    assert list(changed) == ["b"]


def test_another_object_reads_what_a_worker_left():
    store = Memory()
    run("process", Versioned(store), "a = {'x': [1]}\ndef f(): return a", DONE)
    assert Versioned(store)["a"] == {"x": [1]}
    assert run("process", Versioned(store), "task_success(f())") == {"x": [1]}


def test_what_was_kept_last_is_there_after_a_kill():
    state = Versioned(Memory())
    agent = agent_with(
        "process", "a = [1]", "a.append(2)\nsum(range(10 ** 13))", "task_success(a)", timeout_seconds=0.3
    )

    @agent.task
    def work() -> list: ...

    assert work(state=state) == [1]


BOMB = "x = ['a'] * 1000\nfor _ in range(9):\n    x = [x] * 10\n"


def test_a_value_that_unfolds_without_end_is_returned_stored_and_told_in_bounded_time(level, state):
    """Printing it is the host's own undoing; whatever is done here with it is not."""
    agent = agent_with(level, f"{BOMB}task_success(x)", timeout_seconds=5.0)

    @agent.task
    def work() -> Any: ...

    run = work.run(state=state)
    assert (len(run.value), run.value[0] is run.value[9]) == (10, True)
    assert all(len(event.model_dump_json()) < 10_000 for event in run.events)
    assert len(view(state)) < 10_000


def test_a_model_is_shown_the_variables_of_earlier_tasks_as_they_are(level):
    """Not as bytes of a worker, nor as classes without a name."""
    made = (
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Point:\n    x: int\n"
        "class Box:\n    def __init__(self, held): self.held = held\n"
        "def twice(n): return 2 * n\n"
        "points, box, by_name = [Point(1)], Box(Point(2)), {'twice': twice}\n"
        "task_success(None)"
    )
    agent = agent_with(level, made, DONE)

    @agent.task
    def work() -> None: ...

    state = Versioned(Memory())
    work(state=state)
    work(state=state)
    [message] = [each for each in agent.model.requests[-1].messages if "Variables kept" in each.content]
    shown = message.content.partition("Variables kept from earlier tasks (abbreviated):\n")[2]
    assert shown.splitlines() == [
        "class Box",
        "class Point",
        "def dataclass(...)",
        "def twice(n)" if level == "none" else "def twice(...)",
        "box: Box = <Box object: held=Point(x=2)>",
        "by_name: dict = {'twice': <function twice>}",
        "points: list = [Point(x=1)]",
    ]
