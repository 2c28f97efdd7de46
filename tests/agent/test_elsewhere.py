"""Maps over processes and clusters: real ones, with a state for each item; what cannot go there; attacks."""

from __future__ import annotations

import os
import pickle
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import NormalDist
from types import MethodType
from typing import Any

import portable_sessions
import portable_tasks
import pytest
import servers

from agex import Agent, Budget, BudgetExceeded, Disk, InputError, Live, TaskFail, Versioned, WorkerLost
from agex.agent.call.call import sharing
from agex.agent.ray import RayExecutor
from agex.agent.task.remote_calls import _for_processes
from agex.errors import DefinitionError
from agex.testing import ScriptedModel, python_action


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def one_process() -> Iterator[ProcessPoolExecutor]:
    """Run a pool that has its process already: code of an agent, and what it calls, can start none."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(int).result()
        yield pool


@pytest.fixture(scope="module")
def dask() -> Iterator[Executor]:
    """Run a Dask cluster of two processes, on loopback, whose port for a page is any that is free."""
    distributed = pytest.importorskip("distributed", reason="the extra `test` has it")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        yield executor


@pytest.fixture(scope="module")
def ray() -> Iterator[Executor]:
    """Run Ray on this machine, without a token in the home directory and without reports on its use."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_AUTH_MODE", "disabled")
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        module = pytest.importorskip("ray", reason="needs Ray, 200 MB: pip install ray")
        module.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
        )
        yield RayExecutor(num_cpus=1)
        module.shutdown()


@pytest.fixture(params=["processes", "dask", "ray"])
def elsewhere(request: pytest.FixtureRequest) -> Executor:
    executor: Executor = request.getfixturevalue(request.param)
    return executor


@pytest.fixture(scope="module")
def postgres_dsn() -> Iterator[str]:
    with servers.postgres_server() as dsn:
        yield dsn


def item_branch(store: Any, item: int) -> Versioned:
    return Versioned(store, branch=f"item-{item}", create=True)


def failing(message: str = "no", **settings: Any) -> Any:
    agent = Agent(model=ScriptedModel([f"```python\ntask_fail({message!r})\n```"]), **settings)

    @agent.task
    def fails(n: int) -> int: ...

    return fails


# -- what goes


def test_values_come_in_the_order_of_the_items_from_other_processes(elsewhere: Executor) -> None:
    answers = portable_sessions.remember.map(range(6), executor=elsewhere)
    assert [answer.n for answer in answers] == list(range(6))
    assert all(type(answer) is portable_sessions.Answer for answer in answers)
    assert os.getpid() not in {answer.worker for answer in answers}


def test_equal_items_are_calls_of_their_own(elsewhere: Executor) -> None:
    first = portable_sessions.remember.map([3, 3], executor=elsewhere)
    second = portable_sessions.remember.map([3, 3], executor=elsewhere)
    assert len({answer.call for answer in [*first, *second]}) == 4


def test_each_item_has_a_session_of_its_own_in_a_shared_directory(elsewhere: Executor, tmp_path: Any) -> None:
    store = Disk(tmp_path / "shared")
    portable_sessions.remember.map(range(4), executor=elsewhere, state=partial(item_branch, store))
    for item in range(4):
        state = Versioned(store, branch=f"item-{item}")
        assert state["seen"] == [item]
        assert state.fsck() == []
    store.close()


def test_each_item_has_a_session_of_its_own_in_a_shared_database(
    elsewhere: Executor, postgres_dsn: str, request: pytest.FixtureRequest
) -> None:
    from agex.state.postgres import PostgresStore

    store = PostgresStore(postgres_dsn, table=f"map{abs(hash(request.node.name))}")
    portable_sessions.remember.map(range(4), executor=elsewhere, state=partial(item_branch, store))
    assert sorted(item_branch(store, 0).branches()) == [f"item-{item}" for item in range(4)]
    assert [item_branch(store, item)["seen"] for item in range(4)] == [[item] for item in range(4)]
    store.close()


def test_a_state_for_each_item_works_in_threads_too() -> None:
    states = {n: Live() for n in range(3)}
    portable_sessions.remember.map(range(3), state=states.__getitem__)
    with ThreadPoolExecutor(2) as pool:
        portable_sessions.remember.map(range(3), executor=pool, state=states.__getitem__)
    assert [states[n]["seen"] for n in range(3)] == [[0], [1], [2]]


async def test_an_async_task_is_mapped_over_other_processes(elsewhere: Executor) -> None:
    answers = await portable_sessions.awaited.map(range(3), executor=elsewhere)
    assert [answer.n for answer in answers] == [0, 1, 2]


async def test_an_async_task_has_a_state_for_each_item() -> None:
    states = {n: Live() for n in range(3)}
    await portable_sessions.awaited.map(range(3), state=states.__getitem__)
    assert [states[n]["seen"] for n in range(3)] == [[0], [1], [2]]


async def test_an_async_task_refuses_threads() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(DefinitionError, match="max_workers="):
        await portable_sessions.awaited.map([1], executor=pool)


def test_a_function_that_has_no_name_in_a_module_goes_by_value(elsewhere: Executor) -> None:
    factor = 3
    agent = Agent(model=ScriptedModel(lambda _: "```python\ntask_success(times(n))\n```"))
    agent.fn(lambda n: n * factor, name="times")

    @agent.task(checks=[lambda value, inputs: value == inputs.n * factor])
    def work(n: int) -> int: ...

    assert work.map([1, 2], executor=elsewhere) == [3, 6]


def test_functions_that_agents_return_come_back_as_functions(elsewhere: Executor) -> None:
    agent = Agent(model=ScriptedModel(lambda _: "```python\ntask_success(lambda x: x + n)\n```"))

    @agent.task
    def adder(n: int) -> Callable[[int], int]: ...

    add_one, add_five = adder.map([1, 5], executor=elsewhere)
    assert (add_one(1), add_five(1)) == (2, 6)


def test_an_error_comes_back_as_it_was(elsewhere: Executor) -> None:
    with pytest.raises(TaskFail, match=r"^no$"):
        failing().map([1], executor=elsewhere)
    with pytest.raises(InputError, match="n"):
        portable_tasks.double.map(["four"], executor=elsewhere)


# -- what it costs


def spending(executor: Executor, task: Any, items: list[Any], **settings: Any) -> Any:
    """Map a task in the code of another one; return how that ended."""
    outer = Agent(model=ScriptedModel(["```python\ntask_success(len(go()))\n```"] * 2), **settings)

    def go() -> list[Any]:
        try:
            return list(task.map(items, executor=executor))
        except TaskFail:
            return []

    outer.fn(go)

    @outer.task
    def work() -> int: ...

    return work.run()


def test_what_a_call_used_is_booked_also_where_it_failed(one_process: Executor) -> None:
    run = spending(one_process, failing(), [1])
    assert (run.value, run.usage.requests) == (0, 2)


class Held(Executor):
    """Carries the first call out at once, and says of the others that they are under way until let go."""

    def __init__(self) -> None:
        self.held: list[tuple[Future[Any], Any]] = []
        self._threads = ThreadPoolExecutor(1)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not self.held:
            self.held.append((Future(), None))
            return self._threads.submit(fn, *args, **kwargs)
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.held.append((future, partial(fn, *args, **kwargs)))
        return future

    def let_go(self) -> None:
        for future, work in self.held[1:]:
            future.set_result(self._threads.submit(work).result())
        self._threads.shutdown()


def test_what_is_under_way_when_a_map_fails_is_booked_once_it_is_over() -> None:
    executor = Held()
    with sharing() as ledger:
        with pytest.raises(TaskFail):
            failing().map([1, 2, 3], executor=executor)
        assert ledger.used.requests == 1
        executor.let_go()
        assert ledger.used.requests == 3


# -- what cannot go


def with_registration(register: Any) -> Any:
    agent = Agent(model=ScriptedModel([]))
    register(agent)

    @agent.task
    def work(n: int) -> int: ...

    return work


def with_state(state: Any) -> Any:
    agent = Agent(model=ScriptedModel([]), state=state)

    @agent.task
    def work(n: int) -> int: ...

    return work


def locked(lock: Any) -> Any:
    def f() -> None:
        lock.acquire()

    return f


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            lambda: with_registration(lambda agent: agent.module(sqlite3.connect(":memory:"), name="db")),
            r"because of 'db', a registered object \(.*\): .*sqlite3.* Register functions of a module",
        ),
        (
            lambda: with_registration(lambda agent: agent.fn(locked(threading.Lock()), name="go")),
            r"'go', a registered function .*lock.* Give a function of a module",
        ),
        (lambda: with_state(Live()), r"its state \(Live\): .*use Versioned\(Disk\(path\)\)"),
        (
            lambda: with_state(Versioned()),
            r"its state \(Versioned\): .*use Disk, RedisStore or PostgresStore",
        ),
        (
            lambda: with_state(None).using(on_event=locked(threading.Lock())),
            r"on_event \(function\): .*lock.* task.using\(on_event=None\)",
        ),
    ],
)
def test_what_cannot_go_says_which_part_it_is_and_what_to_do(
    task: Any, message: str, processes: Executor
) -> None:
    with pytest.raises(DefinitionError, match=message):
        task().map([1], executor=processes)


def test_an_item_that_cannot_go_is_named_by_its_place(elsewhere: Executor) -> None:
    with pytest.raises(DefinitionError, match=r"Item 2 of the map .* the item \(lock\): .*plain data"):
        portable_sessions.remember.map([1, threading.Lock()], executor=elsewhere)


def test_a_state_of_an_item_that_cannot_go_says_what_to_use(elsewhere: Executor) -> None:
    with pytest.raises(DefinitionError, match=r"its state \(Live\): .*Versioned\(Disk\(path\)\)"):
        portable_sessions.remember.map([1], executor=elsewhere, state=lambda item: Live())


def test_a_value_that_cannot_come_back_says_what_to_return(elsewhere: Executor) -> None:
    agent = Agent(model=ScriptedModel(lambda _: "```python\ntask_success((i for i in range(n)))\n```"))

    @agent.task
    def work(n: int) -> object: ...

    with pytest.raises(DefinitionError, match=r"cannot be sent back: .*generator.*Annotate"):
        work.map([1], executor=elsewhere)


def test_a_task_that_cannot_be_opened_there_says_that_it_must_be_importable(
    processes: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    import types

    module = types.ModuleType("only_here")
    exec("def helper(n): return n", vars(module))
    monkeypatch.setitem(sys.modules, "only_here", module)
    agent = Agent(model=ScriptedModel([]))
    agent.fn(module.helper)

    @agent.task
    def work(n: int) -> int: ...

    with pytest.raises(
        DefinitionError, match=r"No module named 'only_here'.*must be installed and importable"
    ):
        work.map([1], executor=processes)


def test_an_executor_for_ray_says_when_it_cannot_be() -> None:
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        pytest.skip("Ray is connected")
    with pytest.raises(DefinitionError, match=r"pip install ray|ray.init\(\)"):
        RayExecutor()


# -- attacks: what an agent wrote runs in the worker's guards, and not where its values are packed or unpacked


ATTACKS = {
    "an instance": "class C:\n    x = 1\nvalue = C()",
    "an instance in a list": "class C:\n    x = 1\nvalue = [C()]",
    "a class": "class C:\n    x = 1\nvalue = C",
    "a function in a list": "value = [lambda: 1]",
    "a method": "class C:\n    def m(self): return 1\nvalue = C().m",
    "a state that never ends": (
        "class C:\n    def __getstate__(self):\n        while True: pass\nvalue = C()"
    ),
    "a subclass of str": "class C(str):\n    pass\nvalue = C('x')",
    "a key of a dict": "class C(str):\n    pass\nvalue = {C('x'): 1}",
    "an exception": "class C(Exception):\n    pass\nvalue = C()",
    "a hook on an instance": (
        "from types import SimpleNamespace\ndef hook(*args):\n    while True: pass\n"
        "value = SimpleNamespace(**{'__reduce_ex__': hook})"
    ),
    "a harmless hook on an instance": (
        "from types import SimpleNamespace\nvalue = SimpleNamespace(**{'__reduce_ex__': print})"
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_code_of_an_agent_is_neither_run_nor_sent_when_its_value_goes_back(
    name: str, processes: Executor
) -> None:
    agent = Agent(
        model=ScriptedModel(lambda _: [python_action(f"{ATTACKS[name]}\ntask_success(value)")]),
        max_iterations=1,
    )

    @agent.task
    def work(n: int) -> object: ...

    here = work.run(1)
    assert here.ok
    with pytest.raises(DefinitionError, match=r"cannot be sent back: .*made of code that the agent wrote"):
        work.map([1], executor=processes)


@pytest.mark.parametrize("hook", ["__getstate__", "__reduce_ex__"])
def test_what_an_agent_hands_to_a_map_is_not_asked_how_it_is_packed(hook: str, one_process: Executor) -> None:
    code = f"""
from types import SimpleNamespace
def hook(*args):
    asked.append(1)
    return ()
class C:
    __getstate__ = hook
asked = []
item = C() if {hook!r} == "__getstate__" else SimpleNamespace(**{{{hook!r}: hook}})
try:
    go([item])
except ValueError as error:
    task_success(f"{{asked}} {{error}}")
"""
    outer = Agent(model=ScriptedModel([[python_action(code)]]), max_iterations=1)
    outer.fn(lambda items: portable_tasks.double.map(items, executor=one_process), name="go")

    @outer.task
    def work() -> str: ...

    assert work().startswith("[] Item 1 of the map cannot be sent to another process, because of the item")


def test_a_message_of_an_agents_own_class_goes_back_as_text(processes: Executor) -> None:
    agent = Agent(
        model=ScriptedModel(["```python\nclass S(str):\n    pass\ntask_fail(S('because'))\n```"]),
        max_iterations=1,
    )

    @agent.task
    def work(n: int) -> int: ...

    with pytest.raises(Exception, match="because") as raised:
        work.map([1], executor=processes)
    assert all(type(arg) is str for arg in raised.value.args)


def test_a_budget_in_dollars_is_kept_where_a_price_elsewhere_is_unknown(one_process: Executor) -> None:
    with pytest.raises(BudgetExceeded):
        spending(one_process, portable_tasks.priceless, [1], budget=Budget(usd=1.0))


@pytest.mark.parametrize(
    ("owner", "name"), [("json.dumps", "__globals__"), ("[1]", "copy"), ("task_fail", "__self__")]
)
def test_a_method_that_an_agent_made_goes_nowhere_by_the_name_of_its_function(
    owner: str, name: str, one_process: Executor
) -> None:
    code = (
        "import types, json\ndef f(self): return 1\n"
        f"f.__name__ = {name!r}\ntask_success(types.MethodType(f, {owner}))"
    )
    agent = Agent(model=ScriptedModel(lambda _: [python_action(code)]), max_iterations=1)

    @agent.task
    def work(given: object) -> object: ...

    made = work(1)
    with pytest.raises(DefinitionError, match=r"Item 1 of the map .*made of code that the agent wrote"):
        work.map([made], executor=one_process)


@pytest.mark.parametrize(
    "method", [NormalDist(5, 1).cdf, NormalDist.from_samples], ids=["of an object", "of a class"]
)
def test_a_method_of_the_hosts_goes_by_its_name(method: MethodType) -> None:
    assert pickle.loads(_for_processes(method)).__func__ is method.__func__


def test_a_map_whose_worker_dies_keeps_what_is_finished() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(WorkerLost) as caught:
        portable_tasks.survive.map([0, 1, 2, 3], pool)
    assert caught.value.finished == {0: 0, 1: 1}
    assert "2 of 4 calls were over" in str(caught.value)


async def test_an_async_map_whose_worker_dies_does_too() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(WorkerLost) as caught:
        await portable_tasks.asurvive.map([0, 2, 3], pool)
    assert caught.value.finished == {0: 0}


def test_a_map_over_a_pool_that_is_broken_already_is_the_same_error() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(WorkerLost):
            portable_tasks.survive.map([2], pool)
        with pytest.raises(WorkerLost) as caught:
            portable_tasks.survive.map([0], pool)
    assert caught.value.finished == {}
