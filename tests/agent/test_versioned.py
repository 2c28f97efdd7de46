"""Tasks over a versioned state: each executed action is a commit."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import threading
from dataclasses import dataclass

import pytest

from agex import (
    Disk,
    Live,
    Memory,
    StateConflict,
    TaskFail,
    TaskTimeout,
    UnpicklableVariableError,
    Versioned,
    events,
    view,
)
from agex.agent import ActionEvent, Agent, OutputEvent, SuccessEvent, TaskStartEvent
from agex.testing import ScriptedModel, python_action


def agent_of(*codes, **settings):
    return Agent(model=ScriptedModel([[python_action(code)] for code in codes]), **settings)


def task_of(agent):
    @agent.task
    def work() -> object:
        """Do what the script says."""

    return work


def run(state, *codes, **settings):
    """Run one task whose turns are *codes*."""
    return task_of(agent_of(*codes, **settings)).run(state=state)


DONE = "task_success(None)"


def test_one_commit_for_each_executed_action():
    state = Versioned()
    record = run(state, "a = 1", "b = 2", "task_success(a + b)")
    found = list(state.history())
    assert [sorted(state.checkout(one.hash)) for one in found] == [["a", "b"], ["a", "b"], ["a"]]
    assert record.commit == state.head == found[0].hash
    assert record.value == 3
    assert [one.message for one in found] == ["work: done", "work: turn 2", "work: turn 1"]


def test_an_event_names_the_commit_that_holds_it_and_its_effect():
    state = Versioned()
    record = run(state, "a = 1", "a = 2", DONE)
    (first, second, _) = [one for one in record.events if isinstance(one, ActionEvent)]
    (output, _) = [one for one in record.events if isinstance(one, OutputEvent)]
    assert first.commit_hash == output.commit_hash
    assert state.checkout(first.commit_hash)["a"] == 1
    assert state.checkout(second.commit_hash)["a"] == 2
    assert second.parent_hash == first.commit_hash
    assert [type(one) for one in state.checkout(first.commit_hash).commit.events] == [
        *(TaskStartEvent, ActionEvent, OutputEvent)
    ]


def test_events_come_back_from_the_store_as_they_were():
    state = Versioned()
    record = run(state, "a = 1", DONE)
    assert events(state) == list(record.events)
    found = Versioned(state.store).events
    assert [one.model_dump_json() for one in found] == [one.model_dump_json() for one in record.events]
    assert isinstance(found[-1], SuccessEvent)


def test_variables_and_the_cache_live_on_in_the_next_task_and_in_another_object():
    store = Memory()
    run(Versioned(store), "rows = [1]\ncache['k'] = rows", DONE)
    run(Versioned(store), "rows.append(2)\ncache['n'] = 1", DONE)
    assert run(Versioned(store), "task_success([rows, cache])").value == [[1, 2], {"k": [1, 2], "n": 1}]


def test_another_process_goes_on(tmp_path):
    store = Disk(tmp_path / "state")
    run(Versioned(store), "import math\nrows = [1]\ndef area(r): return math.pi * r * r", DONE)
    code = f"""
from agex import Agent, Disk, Versioned
from agex.testing import ScriptedModel, python_action
agent = Agent(model=ScriptedModel([[python_action("rows.append(round(area(1), 2)); task_success(rows)")]]))
@agent.task
def work() -> list: ...
print(work(state=Versioned(Disk({str(tmp_path / "state")!r}))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1, 3.14]"
    assert Versioned(store)["rows"] == [1, 3.14]


def test_the_host_gives_and_takes_variables():
    state = Versioned()
    state["x"] = [1]
    run(state, "x.append(2)\ny = len(x)", DONE)
    assert (state["x"], state["y"]) == ([1, 2], 2)


def test_a_task_that_fails_keeps_what_it_did():
    state = Versioned()
    with pytest.raises(TaskFail) as caught:
        run(state, "a = 1", "task_fail('no')")
    assert caught.value.run.commit == state.head
    assert Versioned(state.store)["a"] == 1
    with pytest.raises(TaskTimeout):
        run(state, "b = 2", max_iterations=1)
    assert Versioned(state.store)["b"] == 2


def test_an_action_that_raises_keeps_what_came_before_the_error():
    state = Versioned()
    run(state, "a = 1\nb = 1 / 0", DONE)
    assert dict(Versioned(state.store)) == {"a": 1}


# -- code that the agent wrote -----------------------------------------------------------------


def test_functions_and_classes_live_on():
    store = Memory()
    run(
        Versioned(store),
        "import math\nscale = 2\ndef area(r):\n    return math.pi * r * r * scale\n"
        "class Point:\n    def __init__(self, x): self.x = x\n    def far(self): return abs(self.x) > 10\n"
        "points = [Point(1), Point(20)]",
        DONE,
    )
    value = run(
        Versioned(store),
        "task_success([area(1), [p.far() for p in points], type(points[0]) is Point, Point(11).far()])",
    ).value
    assert value == [2 * math.pi, [False, True], True, True]


def test_what_a_function_captures_is_frozen_when_its_task_ends():
    state = Versioned()
    first = "factor = 2\ndef multiplier(x): return x * factor\nbefore = multiplier(3)\nfactor = 3"
    run(state, first, "after = multiplier(3)", DONE)
    assert (state["before"], state["after"]) == (6, 9), "it follows the variable while its task runs"
    assert run(state, "factor = 10\ntask_success(multiplier(3))").value == 9
    assert run(Versioned(state.store), "task_success([multiplier(3), factor])").value == [9, 10]


def test_closures_and_recursion_live_on():
    state = Versioned()
    run(
        state,
        "def make(n):\n    def add(x): return x + n\n    return add\nadd5 = make(5)\n"
        "def fact(n): return 1 if n < 2 else n * fact(n - 1)\n"
        "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)\n"
        "double = lambda x: 2 * x",
        DONE,
    )
    value = run(Versioned(state.store), "task_success([add5(1), fact(5), even(10), double(4)])").value
    assert value == [6, 120, True, 8]


def test_classes_made_by_calls_live_on_with_what_they_captured():
    store = Memory()
    code = """
from dataclasses import dataclass
def make(base, n):
    total = 0
    @dataclass(slots=True)
    class Item(base):
        name: str = 'x'
        def add(self, k):
            nonlocal total
            total += k * n
            return total
        def label(self):
            return f'{super(type(self), self).label()}{n}'
    return Item, lambda: total
class Base:
    __slots__ = ()
    def label(self):
        return 'item'
Item, total = make(Base, 3)
Other, _ = make(Base, 5)
items = [Item('a'), Other('b')]
items[0].add(1)
"""
    check = (
        "[i.label() for i in items], type(items[0]) is Item, items[0].add(1), total(), items[0] == Item('a')"
    )
    run(Versioned(store), code, DONE)
    for expected in (6, 9):
        value = run(Versioned(store), f"task_success([{check}])").value
        assert value == [["item3", "item5"], True, expected, expected, True]


REGISTERED = """
import operator, functools
REG, ops = {}, {"<": operator.lt, "up": str.upper}
def register(cls):
    REG[cls.__name__] = cls
    return cls
class Base:
    known = []
    def __init_subclass__(cls): Base.known.append(cls)
@register
class A(Base): pass
@functools.singledispatch
def show(x): return "object"
@show.register
def _(x: A): return "A"
a = A()
"""


@pytest.mark.parametrize("isolation", ["none", "kernel"])
@pytest.mark.parametrize("make", [Live, Versioned])
def test_what_registered_itself_and_tables_of_functions_live_on_in_every_task(make, isolation):
    state = make()
    asked = "[REG['A'] is A, Base.known == [A], type(a) is A, show(a), ops['<'](1, 2), ops['up']('x')]"
    run(state, f"{REGISTERED}\ntask_success(None)", isolation=isolation)
    for _ in range(2):
        found = run(state, f"task_success({asked})", isolation=isolation).value
        assert found == [True, True, True, "A", True, "X"]


def test_the_host_can_call_a_function_that_was_kept():
    state = Versioned()
    run(state, "def double(x): return 2 * x", DONE)
    assert Versioned(state.store)["double"](4) == 8


def test_a_cached_property_of_the_agents_lives_on():
    store = Memory()
    run(
        Versioned(store),
        "import functools\nclass A:\n    @functools.cached_property\n    def x(self): return 7\na = A()",
        DONE,
    )
    assert run(Versioned(store), "task_success([a.x, A().x])").value == [7, 7]


@pytest.mark.parametrize("name", ["cached_property", "property", "staticmethod", "partial", "other"])
def test_no_code_of_the_guest_runs_while_its_classes_are_kept(name):
    code = (
        f"class {name}:\n    @property\n    def func(self): raise BaseException('ran')\n"
        "    fget = fset = fdel = args = func\n"
        f"class A:\n    x = {name}()\na = A()\nb = [{name}()]"
    )
    state = Versioned()
    run(state, code, DONE)
    assert set(Versioned(state.store)) >= {"A", "a", "b"}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy", "ndarray"),
        ("pandas.core.internals.blocks", "Block"),
        ("pandas", "DataFrame"),
        ("polars", "Series"),
    ],
)
def test_a_class_that_says_it_is_a_librarys_is_asked_for_nothing(module, name):
    code = (
        f"class {name}:\n    __module__ = {module!r}\n"
        "    @property\n    def shape(self): raise BaseException('ran')\n"
        "    values = dtype = base = array = ravel = to_frame = shape\n"
        f"lost = [iter([1]), {name}()]\na = {name}()"
    )
    state = Versioned()
    run(state, code, DONE)
    newest = state.history()[0]
    assert "lost" in state.diff(None, newest)
    assert "lost" in view(state, focus="full") + view(Versioned(state.store), focus="full")


# -- what cannot be kept -----------------------------------------------------------------------


def test_an_unpicklable_variable_is_usable_until_its_task_ends_and_says_so_later():
    import sqlite3

    connection = sqlite3.connect(":memory:")
    agent = agent_of(
        "cursor = db.execute('select 7')",
        "found = cursor.fetchone()[0]",
        DONE,
        "cursor.fetchone()",
        "task_success(found)",
    )
    agent.fn(lambda: None, name="unused")

    @agent.task
    def work(db: sqlite3.Connection) -> object: ...

    agent.cls(sqlite3.Connection)
    agent.cls(sqlite3.Cursor)
    state = Versioned()
    work(connection, state=state)
    assert state["found"] == 7
    record = work.run(connection, state=state)
    assert record.value == 7
    (said,) = [one.text for one in record.events if isinstance(one, OutputEvent) and one.error]
    assert "UnpicklableVariableError" in said
    assert "'cursor' (sqlite3.Cursor)" in said
    connection.close()


# -- several at once ---------------------------------------------------------------------------


def test_a_conflict_ends_the_task_and_loses_nothing():
    state = Versioned()
    state["x"] = 0
    state.commit()
    agent = agent_of("x = 1", DONE)
    other = Versioned(state.store)

    @agent.fn
    def meddle() -> None:
        other["x"] = 5
        other.commit()

    agent2 = agent_of("meddle()\nx = 1", DONE)
    agent2.fn(meddle)
    with pytest.raises(StateConflict) as caught:
        task_of(agent2)(state=state)
    assert caught.value.run is not None
    side = next(name for name in state.branches() if name != "main")
    assert side in str(caught.value)
    assert (Versioned(state.store)["x"], Versioned(state.store, branch=side)["x"]) == (5, 1)


def test_tasks_in_threads_share_one_state():
    state = Versioned()
    agent = Agent(model=ScriptedModel(lambda messages: "```python\ncache[n] = n * n\ntask_success(n)\n```"))

    @agent.task
    def square(n: int) -> int: ...

    threads = [threading.Thread(target=square, args=(n,), kwargs={"state": state}) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Versioned(state.store).cache == {n: n * n for n in range(8)}


async def test_an_async_task_commits_too():
    state = Versioned()
    agent = agent_of("a = 1", DONE)

    @agent.task
    async def work() -> None: ...

    await work(state=state)
    assert Versioned(state.store)["a"] == 1
    assert len(list(state.history())) == 2


def test_a_task_below_keeps_its_own_state_and_its_events_are_in_both():
    inner = agent_of("a = 1", "task_success(5)")
    below = Versioned()

    @inner.task
    def help_out() -> int: ...

    outer = agent_of("b = help_out(state=below)\ntask_success(b)")
    outer.fn(lambda: help_out(state=below), name="assist")
    state = Versioned()
    agent = agent_of("b = assist()\ntask_success(b)")
    agent.fn(lambda: help_out(state=below), name="assist")
    record = task_of(agent).run(state=state)
    assert record.value == 5
    assert below["a"] == 1
    assert len(events(state)) == len(record.events)
    assert len(events(below)) < len(record.events)


def test_a_live_state_has_no_commits():
    record = run(Live(), "a = 1", DONE)
    assert record.commit is None
    assert all(one.commit_hash is None for one in record.events)


# -- looking at it -----------------------------------------------------------------------------


def test_a_view_shows_the_variables_of_a_state_or_a_checkout():
    state = Versioned()
    record = run(state, "a = [1, 2]\ncache['k'] = 3", "b = 'text'", DONE)
    then = state.checkout(next(one for one in record.events if isinstance(one, ActionEvent)).commit_hash)
    assert view(then, focus="full") == "a = [1, 2]\ncache = {'k': 3}"
    assert view(state, focus="full") == "a = [1, 2]\nb = 'text'\ncache = {'k': 3}"
    assert view(state.checkout(list(state.history())[1].hash)) == "b = 'text'"
    assert view(then, focus="tokens") == "a = 2\ncache = 2"
    assert view(Live({"x": 1})) == "x = 1"
    assert len(events(then)) < len(events(state))
    with pytest.raises(ValueError, match="recent, full, tokens"):
        view(state, focus="other")
    with pytest.raises(TypeError):
        view(5)


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_what_a_later_task_does_to_a_class_is_kept_or_said_to_be_lost(tmp_path, isolation) -> None:
    def step(code: str) -> object:
        with contextlib.closing(Versioned(Disk(tmp_path))) as state:
            return run(state, code, isolation=isolation).value

    step("class C:\n    def old(self): return 1\nc = C()\ntask_success(None)")
    step("C.__len__ = lambda self: 7\ntask_success(None)")
    assert step("task_success([len(c), c.old()])") == [7, 1]
    step("C.old = lambda self: 2\ntask_success(None)")
    assert step("task_success([len(c), c.old()])") == [7, 2]
    step("C.p = property(lambda self: 3)\ntask_success(None)")
    code = "try:\n    c.old()\nexcept Exception as error:\n    said = str(error)\ntask_success(said)"
    assert "its p was set or deleted after the class statement" in str(step(code))


# -- values that cannot be read again ------------------------------------------------------------


@dataclass
class Point:
    """A class of the host, whose instances are read only where it is named."""

    x: int


def stored(**variables):
    """Give a store with points in it; where it is opened later they cannot be read."""
    store = Memory()
    state = Versioned(store, classes=[Point])
    state.write_cache(variables.pop("cache", {}))
    state.update(variables, keep=41)
    state.commit()
    return store


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_task_starts_beside_a_variable_that_cannot_be_read_and_may_replace_it(isolation):
    store = stored(x=[Point(1)])
    use = "try:\n    len(x)\nexcept Exception as error:\n    said = str(error)\ntask_success([keep, said])"
    keep, said = run(Versioned(store), use, isolation=isolation).value
    assert keep == 41
    assert "Variable 'x'" in said
    assert "Point" in said
    with pytest.raises(UnpicklableVariableError, match="'x' is stored, but cannot be read again"):
        Versioned(store)["x"]  # the marker was not written over it
    run(Versioned(store), "x = 5\ndel said", DONE, isolation=isolation)
    assert dict(Versioned(store)) == {"keep": 41, "x": 5}


def test_the_host_takes_away_what_cannot_be_read_and_the_next_task_goes_on():
    store = stored(x=[Point(1)])
    state = Versioned(store)
    del state["x"]
    state.commit()
    assert dict(Versioned(store)) == {"keep": 41}
    assert run(Versioned(store), "task_success(keep)").value == 41


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_task_starts_with_a_cache_that_cannot_be_read(isolation):
    store = stored(cache={"k": Point(1)})
    use = (
        "try:\n    cache['k']\nexcept Exception as error:\n    said = str(error)\ntask_success([keep, said])"
    )
    keep, said = run(Versioned(store), use, isolation=isolation).value
    assert keep == 41
    assert "Variable 'cache'" in said
    assert "state.write_cache({})" in said
    state = Versioned(store)
    state.write_cache({})
    state.commit()
    assert run(Versioned(store), "cache['n'] = 1\ntask_success(len(cache))", isolation=isolation).value == 1


TELLING = """class M(type):
    def __getattribute__(cls, name): return 1 // on and type.__getattribute__(cls, name)
class C(metaclass=M): pass"""


@pytest.mark.parametrize(
    "code",
    [
        "class M(type):\n    def __hash__(cls): return 1 // on\nclass C(metaclass=M): pass",
        TELLING,
        "class M(type):\n    def __getattr__(cls, name): raise ZeroDivisionError\nclass C(metaclass=M): pass",
        "class C:\n    def __getattribute__(self, name): raise ZeroDivisionError",
        "class C: __module__ = 3",
    ],
)
@pytest.mark.parametrize("make", [Versioned, Live])
def test_what_a_class_raises_that_is_asked_ends_no_task_and_hides_no_variable(make, code):
    state = make()
    record = run(state, f"on = 1\n{code}\nc = C()\ncs = [C]\non = 0\ntask_success(c)")

    assert "C object" in repr(record.events[-1])
    assert "c = " in view(state, focus="full")
