"""Tasks that overlap on one state: nobody's change is lost without a word."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agex import Disk, Live, Memory, StateConflict, TaskClarify, Versioned
from agex.agent import ActionEvent, Agent, SuccessEvent
from agex.models.base import Reply, Request
from agex.testing import ScriptedModel, python_action


def always(code: str, **settings: Any) -> Agent:
    return Agent(model=ScriptedModel(lambda messages: f"```python\n{code}\n```"), **settings)


class Beside(ScriptedModel):
    """Before its reply number *when*, it does something else: that overlaps."""

    def __init__(self, codes: list[str], meanwhile: Callable[[], Any], when: int = 0) -> None:
        super().__init__([[python_action(code)] for code in codes])
        self._meanwhile, self._when, self._count = meanwhile, when, 0

    def ask(self, request: Request, on_text: Any = None) -> Reply:
        if self._count == self._when:
            other = threading.Thread(target=self._meanwhile)  # it is not called by the task
            other.start()
            other.join()
        self._count += 1
        return super().ask(request, on_text)


def work_of(agent: Agent) -> Any:
    @agent.task
    def work() -> Any:
        """Work."""

    return work


def overlap(state: Any, outer: str | list[str], inner: str, when: int = 0, **settings: Any) -> Any:
    """Run *inner* after *outer* began, and before its reply number *when*; return the outer run."""
    codes = [outer] if isinstance(outer, str) else outer
    beside = work_of(always(f"{inner}\ntask_success(1)", **settings))
    own = [*codes[:-1], f"{codes[-1]}\ntask_success(1)"]
    model = Beside(own, lambda: beside(state=state), when)
    return work_of(Agent(model=model, **settings)).run(state=state)


def seeded(store: Any = None, **variables: Any) -> Versioned:
    state = Versioned(store)
    state.update(variables)
    state.commit("seed")
    return state


def values(state: Versioned) -> dict[str, Any]:
    found = Versioned(state.store)
    assert found.fsck() == []
    assert repr_of(state) == repr_of(found)
    return {**found, **({"cache": found.cache} if found.cache else {})}


def repr_of(past: Any) -> str:
    """Return the variables and the cache as text, with what functions return."""
    found = {name: value() if callable(value) else value for name, value in sorted(past.items())}
    return repr({**found, "cache": dict(past.cache)})


# -- what goes together ------------------------------------------------------------------------

TOGETHER = {
    "different variables": ("a = 1", "b = 2", {"a": 1, "b": 2}),
    "different variables that there were": ("x.append(1)", "y.append(2)", {"x": [0, 1], "y": [0, 2]}),
    "a change and a deletion": ("x.append(1)", "del y", {"x": [0, 1]}),
    "a change and a new alias": ("x.append(1)", "z = y", {"x": [0, 1], "y": [0], "z": [0]}),
    "one of two that share an object is bound anew": ("p = 1", "x.append(1)", {"p": 1, "x": [0, 1]}),
    "each binds one of two that share an object": ("p = 1", "q = 2", {"p": 1, "q": 2}),
    "keys of the cache": ("cache['a'] = 1", "cache['b'] = 2", {"cache": {"a": 1, "b": 2}}),
    "a key of the cache and a variable": ("cache['a'] = 1", "a = 2", {"a": 2, "cache": {"a": 1}}),
    "what the other only reads": ("a = len(x)", "x.append(1)", {"a": 1, "x": [0, 1]}),
    "a function and a variable": ("def f(): return 1", "a = 1", {"a": 1}),
}
SEED = {"x": [0], "y": [0]}


@pytest.mark.parametrize("case", TOGETHER)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_changes_of_different_variables_go_together(case: str, turned: bool) -> None:
    first, second, expected = TOGETHER[case]
    shared = [5]
    state = seeded(x=[0], y=[0], p=shared, q=shared)
    overlap(state, *((second, first) if turned else (first, second)))
    found = values(state)
    found.pop("f", None)
    whole = {"x": [0], "y": [0], "p": [5], "q": [5], **expected}
    if "del" in second:
        del whole["y"]
    assert found == whole


# -- what does not -----------------------------------------------------------------------------

CONFLICTS = {
    "a counter": ("n += 1", "n += 10", "n"),
    "both add one": ("n += 1", "n += 1", "n"),
    "a list in place": ("x.append(1)", "x.append(2)", "x"),
    "a new variable": ("rows = [1]", "rows = [2]", "rows"),
    "deep inside": ("d['k'].append(1)", "d['k'].append(2)", "d"),
    "one binds, one changes in place": ("x.append(1)", "x = [2]", "x"),
    "one deletes, one changes": ("del x", "x.append(2)", "x"),
    "one changes, one deletes": ("x.append(1)", "del x", "x"),
    "through a shared object": ("p.append(1)", "q.append(2)", "p, q"),
    "one key of the cache": ("cache['k'] = 1", "cache['k'] = 2", "cache['k']"),
    "a key of the cache in place": ("cache['seed'].append(1)", "cache['seed'].append(2)", "cache['seed']"),
    "functions": ("def f(): return 1", "def f(): return 2", "f"),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_a_change_of_what_another_changed_is_a_conflict_and_is_on_a_side_branch(case: str) -> None:
    second, first, names = CONFLICTS[case]
    shared = [5]
    state = Versioned()
    state.update(n=100, x=[0], d={"k": [0]}, p=shared, q=shared)
    state.cache["seed"] = [0]
    seed = state.commit()
    with pytest.raises(StateConflict, match="came first: ") as caught:
        overlap(state, second, first)
    assert f"came first: {names}. " in str(caught.value)
    (side,) = set(state.branches()) - {"main"}
    assert repr(side) in str(caught.value)
    ours, theirs = seeded_with(first), seeded_with(second)
    assert repr_of(state.checkout("main")) == repr_of(ours)
    assert repr_of(state.checkout(side)) == repr_of(theirs)
    assert state.checkout(side).commit.parent == seed
    assert values(state).keys() == {*ours, "cache"}
    if first != second:  # a merge takes the same value for the same change
        with pytest.raises(StateConflict, match="Both sides changed"):
            state.merge(side)


def seeded_with(code: str) -> Versioned:
    shared = [5]
    state = Versioned()
    state.update(n=100, x=[0], d={"k": [0]}, p=shared, q=shared)
    state.cache["seed"] = [0]
    work_of(always(f"{code}\ntask_success(1)"))(state=state)
    return state


def test_a_task_may_change_what_another_committed_before_it_began() -> None:
    state = seeded(n=0)
    with pytest.raises(StateConflict):  # for the first one, which changes it again and has not seen that
        overlap(state, ["n = 1", "n += 1"], "n += 10", when=1)
    assert values(state) == {"n": 11}


def test_a_task_that_changed_a_variable_may_change_it_again() -> None:
    state = seeded(n=0, m=0)
    overlap(state, ["n = 1", "n += 1", "n += 1"], "m = 5", when=1)
    assert values(state) == {"n": 3, "m": 5}


def test_a_later_step_that_comes_to_the_same_value_is_a_conflict_all_the_same() -> None:
    state = seeded(n=0)
    with pytest.raises(StateConflict):
        overlap(state, ["a = 1", "b = 1", "n += 1"], "n += 1", when=1)
    assert values(state) == {"n": 1, "a": 1, "b": 1}


def test_each_action_is_one_commit_and_its_event_names_it() -> None:
    state = seeded()
    record = overlap(state, ["a = 1", "b = 1", "c = 1"], "z = 1", when=1)
    history = list(state.history())
    assert [one.message for one in history] == [
        *("work: done", "work: turn 2", "work: done", "work: turn 1", "seed")
    ]
    actions = [one for one in record.events if isinstance(one, ActionEvent)]
    for action, name in zip(actions, "abc", strict=True):
        there = state.checkout(action.commit_hash)
        assert there[name] == 1
        assert action.model_dump_json() in [one.model_dump_json() for one in there.commit.events]
        assert name in state.diff(action.parent_hash, action.commit_hash)
    assert record.commit == history[0].hash
    assert len(state.events) == len(Versioned(state.store).events)


def test_the_run_of_a_conflict_is_there_and_its_events_are_on_the_side_branch() -> None:
    state = seeded(n=0)
    with pytest.raises(StateConflict) as caught:
        overlap(state, "n = 1", "n = 2")
    record: Any = caught.value.run
    (side,) = set(state.branches()) - {"main"}
    ended = next(one for one in record.events if isinstance(one, SuccessEvent))
    assert ended.commit_hash == state.branches()[side]


# -- the host ----------------------------------------------------------------------------------


def test_what_the_host_did_not_commit_is_there_for_both_and_goes_with_no_task() -> None:
    state = seeded(x=[0])
    state["n"], state["rows"] = 5, []
    state["x"].append(1)
    with pytest.raises(StateConflict):
        overlap(state, "x.append(n)\nrows.append(1)", "rows.append(n)\nassert x == [0, 1]")
    assert values(state) == {"n": 5, "rows": [5], "x": [0, 1]}


def test_what_the_host_binds_meanwhile_is_a_change_like_any_other() -> None:
    for code in ("x = [1]", "x.append(1)", "del x"):
        state = seeded(x=[0], y=1)
        model = Beside([f"{code}\ntask_success(1)"], lambda state=state: state.update(x=[9], z=[2]))
        with pytest.raises(StateConflict, match="came first: x"):
            work_of(Agent(model=model)).run(state=state)
        state.commit()
        assert values(state) == {"x": [9], "y": 1, "z": [2]}


def test_what_the_host_binds_meanwhile_stays_beside_other_changes() -> None:
    state = seeded(x=[0])
    model = Beside(["x.append(1)\ntask_success(1)"], lambda: state.update(z=[2]))
    work_of(Agent(model=model)).run(state=state)
    assert values(state) == {"x": [0, 1], "z": [2]}


def test_objects_stay_the_hosts_own_where_one_task_runs_at_a_time() -> None:
    state, rows = Versioned(), [0]
    state["rows"] = rows
    for _ in range(2):
        work_of(always("rows.append(1)\ntask_success(1)"))(state=state)
    assert state["rows"] is rows
    assert rows == [0, 1, 1]


def test_a_cache_that_was_looked_at_before_it_had_anything_is_kept_later() -> None:
    state = seeded(a=1)
    cache = state.cache
    state["a"] = 2
    state.commit()
    cache["k"] = 1
    state.commit()
    assert values(state) == {"a": 2, "cache": {"k": 1}}


# -- tasks that call tasks ---------------------------------------------------------------------


def nested(outer: str, inner: str, **variables: Any) -> Versioned:
    state = seeded(**variables)
    sub = work_of(always(f"{inner}\ntask_success(1)", state=state))
    agent = always(f"{outer}\ntask_success(1)", state=state)
    agent.fn(sub, name="sub")
    work_of(agent)()
    return state


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("x.append(1)\nsub()\nx.append(3)", "x.append(2)", {"x": [0, 1, 2, 3], "n": 0}),
        ("sub()\nx.append(1)", "n += 1", {"x": [0, 1], "n": 1}),
        ("x.append(1)\nsub()\nsub()", "n += 1", {"x": [0, 1], "n": 2}),
        ("cache['a'] = 1\nsub()\ncache['c'] = 3", "cache['b'] = 2", {"cache": {"a": 1, "b": 2, "c": 3}}),
    ],
)
def test_a_task_and_the_task_it_calls_have_the_same_objects(
    outer: str, inner: str, expected: dict[str, Any]
) -> None:
    assert values(nested(outer, inner, x=[0], n=0)) == {"x": [0], "n": 0, **expected}


@pytest.mark.parametrize(
    ("outer", "inner"), [("sub()\nn += 1", "n += 10"), ("sub()\nx.append(1)", "x = [9]")]
)
def test_a_caller_that_changes_what_the_called_task_bound_is_told(outer: str, inner: str) -> None:
    with pytest.raises(StateConflict, match=r"came first: [nx]\."):
        nested(outer, inner, x=[0], n=0)


def test_a_called_task_may_be_called_again_and_its_caller_is_told() -> None:
    state = seeded(n=0)
    other, sub = work_of(always("n += 10\ntask_success(1)")), work_of(always("n += 1\ntask_success(1)"))
    agent = always("again()\ntask_success(1)")

    @agent.fn
    def again() -> None:
        """Call a task that another one comes before, and once more."""
        beside = threading.Thread(target=other, kwargs={"state": state})
        beside.start()
        beside.join()
        with contextlib.suppress(StateConflict):
            sub(state=state)
        sub(state=state)

    with pytest.raises(StateConflict, match=r"came first: n\."):
        work_of(agent)(state=state)
    assert values(state) == {"n": 11}


# -- many --------------------------------------------------------------------------------------


async def retried(call: Callable[[], Awaitable[Any]], turn: asyncio.Lock) -> Any:
    """Call until nobody came first; after a conflict one at a time (as docs/async.md has it)."""
    try:
        return await call()
    except StateConflict:
        async with turn:
            while True:
                with contextlib.suppress(StateConflict):
                    return await call()


def counting(code: str) -> Any:
    @always(code).task
    async def add() -> int:
        """Add one."""

    return add


async def test_two_hundred_tasks_that_count_lose_nothing_with_the_documented_retry(tmp_path: Any) -> None:
    state = seeded(Disk(tmp_path / "s", durable=False), total=0)
    add, turn = counting("total += 1\ntask_success(total)").using(state=state), asyncio.Lock()
    found = await asyncio.gather(*(retried(add, turn) for _ in range(200)))
    assert sorted(found) == list(range(1, 201))
    assert values(state) == {"total": 200}
    assert len(list(state.history())) == 201


async def test_without_a_retry_each_lost_one_is_raised(tmp_path: Any) -> None:
    state = seeded(Disk(tmp_path / "s", durable=False), total=0)
    add = counting("total += 1\ntask_success(total)").using(state=state)
    found = await asyncio.gather(*(add() for _ in range(50)), return_exceptions=True)
    lost = [one for one in found if isinstance(one, StateConflict)]
    assert len(lost) + values(state)["total"] == 50
    assert len(state.branches()) == len(lost) + 1


async def test_tasks_that_append_to_a_new_list_lose_no_row() -> None:
    state = Versioned()

    @always("rows = [*globals().get('rows', []), n]\ntask_success(n)").task
    async def add(n: int) -> int:
        """Add a row."""

    turn, task = asyncio.Lock(), add.using(state=state)
    await asyncio.gather(*(retried(lambda n=n: task(n), turn) for n in range(24)))
    assert sorted(values(state)["rows"]) == list(range(24))


def test_threads_that_count_lose_nothing_with_retries() -> None:
    state = Versioned(Memory())
    state["n"] = 0  # not committed
    task = work_of(always("n += 1\ntask_success(n)"))

    def count() -> None:
        for _ in range(3):
            while True:
                with contextlib.suppress(StateConflict):
                    task(state=state)
                    break

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(state) == {"n": 24}


async def test_tasks_of_different_variables_all_go_through() -> None:
    state = Versioned()

    @always("globals()[name] = [name]\ncache[name] = 1\ntask_success(name)").task
    async def put(name: str) -> str:
        """Put it."""

    names = [f"v{n}" for n in range(20)]
    await put.using(state=state).map(names)
    assert values(state) == {**{name: [name] for name in names}, "cache": dict.fromkeys(names, 1)}


def test_a_map_over_one_state_tells_what_was_lost() -> None:
    state = seeded(n=0)

    @always("n += 1\ntask_success(n)").task
    def add(item: int) -> int:
        """Add one."""

    with contextlib.suppress(StateConflict):
        add.using(state=state).map(range(4), max_workers=2)
    assert values(state)["n"] == 4 - (len(state.branches()) - 1) or len(state.branches()) > 1


# -- other places ------------------------------------------------------------------------------


def test_tasks_in_workers_overlap_by_the_same_rules() -> None:
    state = seeded(n=0, m=[0])
    overlap(state, "m.append(1)", "n += 1", isolation="process")
    assert values(state) == {"n": 1, "m": [0, 1]}
    with pytest.raises(StateConflict, match="came first: n"):
        overlap(state, "n += 1", "n += 10", isolation="process")
    assert values(state) == {"n": 11, "m": [0, 1]}
    overlap(state, "cache['a'] = 1", "cache['b'] = 2", isolation="process")
    assert state.cache == {"a": 1, "b": 2}


def test_a_live_state_tells_of_a_name_that_was_bound_meanwhile_and_shares_objects() -> None:
    state = Live({"n": 0, "x": [0]})
    overlap(state, "x.append(1)\na = 1", "x.append(2)\nb = 2")
    assert dict(state) == {"n": 0, "x": [0, 2, 1], "a": 1, "b": 2}
    with pytest.raises(StateConflict, match="came first: n"):
        overlap(state, "n += 1", "n += 10")
    assert state["n"] == 10


def test_a_task_that_goes_on_with_an_answer_does_not_overwrite_what_was_done_meanwhile() -> None:
    state = seeded(n=0, x=[0])
    asking = Agent(model=ScriptedModel([[python_action(code)] for code in (
        "task_clarify('which?')", "n += 1\nx.append(1)\ntask_success(1)")]))  # fmt: skip
    with pytest.raises(TaskClarify) as asked:
        work_of(asking)(state=state)
    work_of(always("n += 10\ntask_success(1)"))(state=state)
    with pytest.raises(StateConflict, match="came first: n"):
        asked.value.run.answer("this")  # type: ignore[union-attr]
    assert values(state)["n"] == 10
