"""Calls to the world are journalled: a run that is resumed makes none of them a second time."""

from __future__ import annotations

import threading

import pytest

from agex import (
    Agent,
    CallInDoubt,
    DefinitionError,
    Live,
    ReplayMismatch,
    StateConflict,
    Versioned,
    runs,
)
from agex.testing import ScriptedModel


class World:
    """Counts what is done to it, and keeps what a process killed in the middle of a call leaves behind."""

    def __init__(self, state: Versioned | None) -> None:
        self.state = state
        self.calls: list[tuple[str, object]] = []
        self.killed: list[Versioned] = []

    def charge(self, amount: int) -> str:
        """Charge."""
        if self.state is not None:
            self.killed.append(self.state.fork())
        self.calls.append(("charge", amount))
        return f"receipt {amount}"

    def ship(self, item: str) -> str:
        """Ship."""
        if self.state is not None:
            self.killed.append(self.state.fork())
        self.calls.append(("ship", item))
        return f"parcel with {item}"


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def shop(world: World, replies: object, *, external: object = True, **settings: object):
    agent = Agent(model=ScriptedModel(replies), name="shop", **settings)
    agent.fn(world.charge, external=external)
    agent.fn(world.ship, external=external)

    @agent.task
    def sell(amount: int, item: str) -> str:
        """Sell an item."""

    return sell


ONE_ACTION = [code("receipt = charge(amount)\nparcel = ship(item)\ntask_success(receipt + ', ' + parcel)")]


def test_a_call_is_committed_before_it_is_made_and_after_it():
    state = Versioned()
    sell = shop(World(state), ONE_ACTION, state=state)
    assert sell(3, "pen") == "receipt 3, parcel with pen"
    assert [commit.message for commit in state.history()][::-1] == [
        "sell: turn 0",
        "sell: turn 1, charge begins",
        "sell: turn 1, charge is over",
        "sell: turn 1, ship begins",
        "sell: turn 1, ship is over",
        "sell: done",
    ]


def test_a_function_that_is_not_external_costs_no_commit():
    state = Versioned()
    sell = shop(World(state), ONE_ACTION, state=state, external=False)
    sell(3, "pen")
    assert [commit.message for commit in state.history()] == ["sell: done"]


def test_a_resumed_run_is_given_the_results_of_the_calls_that_it_made():
    state = Versioned()
    world = World(state)
    shop(world, ONE_ACTION, state=state)(3, "pen")
    killed = world.killed[1]  # in the middle of ship, which is in doubt
    again = World(None)
    retry = [*ONE_ACTION, code("task_success('asked')")]
    run = shop(again, retry[1:], state=killed).resume()
    assert again.calls == []
    assert run.value == "asked"
    shown = [event.text for event in run.events if event.type == "output"]
    assert "CallInDoubt: ship('pen') was begun" in shown[0]


def test_code_can_catch_a_call_in_doubt():
    state = Versioned()
    world = World(state)
    catching = code(
        "receipt = charge(amount)\ntry:\n    parcel = ship(item)\nexcept RuntimeError as doubt:\n"
        "    parcel = type(doubt).__name__\ntask_success(receipt + ', ' + parcel)"
    )
    shop(world, [catching], state=state)(3, "pen")
    again = World(None)
    run = shop(again, [], state=world.killed[1]).resume()
    assert run.value == "receipt 3, CallInDoubt"
    assert again.calls == []


def test_an_idempotent_call_in_doubt_is_made_again():
    state = Versioned()
    world = World(state)
    shop(world, ONE_ACTION, state=state, external="idempotent")(3, "pen")
    again = World(None)
    run = shop(again, [], state=world.killed[1], external="idempotent").resume()
    assert run.value == "receipt 3, parcel with pen"
    assert again.calls == [("ship", "pen")]


def test_an_error_that_a_call_raised_is_raised_again():
    state = Versioned()
    killed: list[Versioned] = []
    calls: list[str] = []

    def pay() -> None:
        calls.append("pay")
        raise ValueError("no money", 7)

    def note(text: str) -> str:
        killed.append(state.fork())
        return text

    def made(replies: object, where: Versioned):
        agent = Agent(model=ScriptedModel(replies), name="shop", state=where)
        agent.fn(pay, external=True)
        agent.fn(note, external="idempotent")

        @agent.task
        def buy() -> str:
            """Buy."""

        return buy

    made([code("try:\n    pay()\nexcept ValueError as error:\n    task_success(note(repr(error)))")], state)()
    assert made([], killed[0]).resume().value == "ValueError('no money', 7)"
    assert calls == ["pay"]


def test_a_run_goes_on_in_the_turn_where_it_stopped_with_its_variables_and_its_conversation():
    state = Versioned()
    world = World(state)
    model = [
        code("receipt = charge(amount)\nseen = [receipt]\nprint('charged')"),
        code("seen.append(ship(item))\nprint(seen)"),
        code("task_success(' + '.join(seen))"),
    ]
    shop(world, model, state=state)(3, "pen")
    again = World(None)
    replies = ScriptedModel(
        [code("seen.append('lost parcel')\nprint('noted')"), code("task_success(' + '.join(seen))")]
    )
    agent_task = shop(again, replies._replies, state=world.killed[1])
    run = agent_task.resume()
    assert run.value == "receipt 3 + lost parcel"
    assert again.calls == []
    request = agent_task.agent.model.requests[0]
    assert "charged" in str(request)
    assert run.turns == 4
    assert run.events[0].type == "task_start"


def test_spent_budget_and_turns_are_those_of_the_run():
    state = Versioned()
    world = World(state)
    shop(world, ONE_ACTION, state=state, max_iterations=2)(3, "pen")
    first = state.events[1].usage
    again = World(None)
    run = shop(again, [code("task_success('x')")], state=world.killed[1], max_iterations=2).resume()
    assert run.usage.requests == 2
    assert run.usage.input_tokens > first.input_tokens


def test_another_call_than_the_recorded_one_is_a_mismatch_that_names_both():
    state = Versioned()
    world = World(state)
    chance = iter(["pen", "ink"])

    def lucky(replies: object, where: Versioned, it: World):
        agent = Agent(model=ScriptedModel(replies), name="shop", state=where)
        agent.fn(it.ship, external=True)
        agent.fn(it.charge, external=True)
        agent.fn(lambda: next(chance), name="chance")

        @agent.task
        def sell() -> str:
            """Sell."""

        return sell

    lucky([code("ship(chance())\ntask_success(charge(1))")], state, world)()
    again = World(None)
    with pytest.raises(ReplayMismatch) as raised:
        lucky([], world.killed[1], again).resume()
    assert raised.value.expected == "ship('pen')"
    assert raised.value.got == "ship('ink')"
    assert again.calls == []


def test_code_that_makes_fewer_calls_than_before_is_a_mismatch():
    state = Versioned()
    world = World(state)
    first = iter([True, False])

    def made(replies: object, where: Versioned, it: World):
        agent = Agent(model=ScriptedModel(replies), name="shop", state=where)
        agent.fn(it.charge, external=True)
        agent.fn(it.ship, external=True)
        agent.fn(lambda: next(first), name="first")

        @agent.task
        def sell() -> str:
            """Sell."""

        return sell

    made(
        [code("if first():\n    ship('pen')\n    charge(1)\nprint('over')"), code("task_success('x')")],
        state,
        world,
    )()
    with pytest.raises(ReplayMismatch, match="the end of the action"):
        made([], world.killed[1], World(None)).resume()


def test_arguments_that_are_sets_are_the_same_in_another_order():
    state = Versioned()
    killed: list[Versioned] = []

    def tell(names: set[str]) -> int:
        killed.append(state.fork())
        return len(names)

    def made(where: Versioned):
        agent = Agent(
            model=ScriptedModel([code("tell({'a', 'b', 'c'})\ntask_success(tell({'d'}))")]), state=where
        )
        agent.fn(tell, external="idempotent")

        @agent.task
        def send() -> int:
            """Send."""

        return send

    made(state)()
    assert made(killed[1]).resume().value == 1


def test_a_result_that_cannot_be_kept_is_usable_and_in_doubt_afterwards():
    state = Versioned()
    killed: list[Versioned] = []

    def lock() -> object:
        return threading.Lock()

    def note(text: str) -> str:
        killed.append(state.fork())
        return text

    def made(replies: object, where: Versioned):
        agent = Agent(model=ScriptedModel(replies), state=where, name="a")
        agent.fn(lock, external=True)
        agent.fn(note, external="idempotent")

        @agent.task
        def hold() -> str:
            """Hold."""

        return hold

    made([code("got = lock()\ntask_success(note('held'))")], state)()
    run = made([code("task_success('gave up')")], killed[0]).resume()
    assert run.value == "gave up"
    assert any("after it: note('held')" in getattr(event, "text", "") for event in run.events)


def test_without_versioned_state_calls_are_made_as_ever():
    for state in (None, Live()):
        world = World(None)
        assert shop(world, ONE_ACTION, state=state)(3, "pen") == "receipt 3, parcel with pen"
        assert world.calls == [("charge", 3), ("ship", "pen")]


def test_a_call_outside_of_any_run_is_refused():
    world = World(None)
    agent = Agent(model=ScriptedModel([code("def later(n: int) -> object:\n    return lambda: charge(n)")]))
    agent.fn(world.charge, external=True)

    @agent.task
    def later(n: int) -> object:
        """Return a function that charges."""

    function = later(3)
    with pytest.raises(RuntimeError, match="charge acts on the world"):
        function()
    assert world.calls == []


def test_the_function_behind_an_external_one_cannot_be_reached():
    world = World(None)
    sell = shop(
        world, [code("charge.__wrapped__(1)"), code("task_success(str(hasattr(charge, '__wrapped__')))")]
    )
    assert sell(1, "x") == "False"
    assert world.calls == []


def test_calls_of_a_task_that_the_code_calls_are_journalled_with_the_outer_run():
    state = Versioned()
    world = World(state)
    inner = Agent(model=ScriptedModel([code("task_success(charge(amount))")] * 3), name="inner")
    inner.fn(world.charge, external=True)

    @inner.task
    def pay(amount: int) -> str:
        """Pay."""

    def outer_of(where: Versioned, it: World):
        outer = Agent(
            model=ScriptedModel([code("a = pay(1)\ntask_success(a + ship('pen'))")]), state=where, name="o"
        )
        outer.fn(pay)
        outer.fn(it.ship, external="idempotent")

        @outer.task
        def buy() -> str:
            """Buy."""

        return buy

    outer_of(state, world)()
    assert world.calls == [("charge", 1), ("ship", "pen")]
    again = World(None)
    assert outer_of(world.killed[1], again).resume().value == "receipt 1parcel with pen"
    assert world.calls == [("charge", 1), ("ship", "pen")]
    assert again.calls == [("ship", "pen")]


def test_two_that_resume_one_run_are_a_conflict():
    state = Versioned()
    world = World(state)
    shop(world, ONE_ACTION, state=state)(3, "pen")
    killed = world.killed[0]
    other = Versioned(killed.store, branch=killed.branch)
    first, second = World(None), World(None)
    run = shop(first, [code("task_success('one')")], state=killed).resume()
    assert run.value == "one"
    with pytest.raises(StateConflict):
        shop(second, [code("task_success('two')")], state=other).resume()
    assert second.calls == []


def test_a_run_resumed_twice_in_one_process_is_a_conflict_for_the_first():
    state = Versioned()
    world = World(state)
    shop(world, ONE_ACTION, state=state, external="idempotent")(3, "pen")
    killed = world.killed[0]
    late = World(None)
    seen: list[str] = []
    values: list[object] = []

    def first_charge(amount: int) -> str:
        seen.append("first")
        if len(seen) == 1:  # meanwhile somebody else carries the run on
            other = threading.Thread(target=lambda: values.append(made(lambda amount: "r").resume().value))
            other.start()
            other.join()
        return "never kept"

    def made(charge: object):
        agent = Agent(model=ScriptedModel([]), state=killed, name="shop")
        agent.fn(charge, name="charge", external="idempotent")
        agent.fn(late.ship, external="idempotent")

        @agent.task
        def sell(amount: int, item: str) -> str:
            """Sell an item."""

        return sell

    with pytest.raises(StateConflict, match="carries it on now"):
        made(first_charge).resume()
    assert values == ["r, parcel with pen"]
    assert late.calls == [("ship", "pen")]


def test_a_resume_with_other_registrations_is_refused_by_name():
    state = Versioned()
    world = World(state)
    shop(world, ONE_ACTION, state=state)(3, "pen")
    agent = Agent(model=ScriptedModel([]), name="shop", state=world.killed[1])
    agent.fn(lambda amount, currency: "x", name="charge", external=True)

    @agent.task
    def sell(amount: int, item: str) -> str:
        """Sell an item."""

    with pytest.raises(DefinitionError, match=r"charge was .*; ship is not registered"):
        sell.resume()


def test_the_runs_of_a_state_are_listed_with_where_they_stand():
    state = Versioned()
    world = World(state)
    sell = shop(world, ONE_ACTION, state=state)
    sell(3, "pen")
    (done,) = runs(state)
    assert (done.task, done.status, done.turn, done.call) == ("sell", "done", 1, None)
    (killed,) = runs(world.killed[1])
    assert (killed.run_id, killed.status) == (done.run_id, "open")
    assert sell.resume(run_id=done.run_id).value == "receipt 3, parcel with pen"


def test_a_run_without_external_functions_is_kept_from_its_first_turn_on():
    state = Versioned()
    kept: list[Versioned] = []
    agent = Agent(model=ScriptedModel([code("n += 1"), code("look()\ntask_success(n)")]), state=state)
    agent.fn(lambda: kept.append(state.fork()), name="look")

    @agent.task
    def count(n: int) -> int:
        """Count."""

    assert count(1) == 2
    agent.model = ScriptedModel([code("task_success(n * 10)")])
    assert count.resume(state=kept[0]).value == 20


def test_inputs_that_code_changed_in_place_are_as_they_were_left():
    state = Versioned()
    kept: list[Versioned] = []
    agent = Agent(
        model=ScriptedModel([code("rows.append(2)"), code("look()\ntask_success(sum(rows))")]), state=state
    )
    agent.fn(lambda: kept.append(state.fork()), name="look")

    @agent.task
    def total(rows: list[int]) -> int:
        """Total."""

    assert total([1]) == 3
    agent.model = ScriptedModel([code("task_success(sum(rows) * 10)")])
    assert total.resume(state=kept[0]).value == 30


def test_an_input_that_cannot_be_kept_is_asked_for_by_name():
    state = Versioned()
    kept: list[Versioned] = []
    agent = Agent(model=ScriptedModel([code("x = 1"), code("look()\ntask_success(x)")]), state=state)
    agent.fn(lambda: kept.append(state.fork()), name="look")

    @agent.task
    def use(lock: object) -> int:
        """Use."""

    use(threading.Lock())
    agent.model = ScriptedModel([code("task_success(x if lock == 'mine' else 0)")])
    with pytest.raises(DefinitionError, match=r"lock \(_thread.lock"):
        use.resume(state=kept[0])
    assert use.resume(state=kept[0], inputs={"lock": "mine"}).value == 1


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_inputs_are_as_they_were_when_the_half_done_action_began(isolation):
    state = Versioned()
    killed: list[Versioned] = []

    def send(text: str) -> str:
        killed.append(state.fork())
        return text

    def made(where: Versioned):
        rows_and_n = code("rows.append(n)\nn = n + 1\ntask_success(send(f'{rows} {n}'))")
        agent = Agent(model=ScriptedModel([rows_and_n]), state=where, name="a", isolation=isolation)
        agent.fn(send, external="idempotent")

        @agent.task
        def use(rows: list[int], n: int) -> str:
            """Use."""

        return use

    assert made(state)([0], 1) == "[0, 1] 2"
    assert made(killed[0]).resume().value == "[0, 1] 2"


def test_an_input_whose_name_was_bound_anew_stays_an_input():
    state = Versioned()
    kept: list[Versioned] = []
    replies = [code("n = n + 1"), code("look()\ntask_success(n * 10 + inputs.n)")]
    agent = Agent(model=ScriptedModel(replies), state=state)
    agent.fn(lambda: kept.append(state.fork()), name="look")

    @agent.task
    def use(n: int) -> int:
        """Use."""

    assert use(1) == 21
    agent.model = ScriptedModel(replies[1:])
    assert use.resume(state=kept[0]).value == 21


async def test_async_functions_are_journalled_too():
    state = Versioned()
    killed: list[Versioned] = []
    calls: list[int] = []

    async def charge(amount: int) -> str:
        killed.append(state.fork())
        calls.append(amount)
        return f"receipt {amount}"

    def made(where: Versioned):
        agent = Agent(
            model=ScriptedModel([code("a = charge(1)\ntask_success(a + charge(2))")]), state=where, name="a"
        )
        agent.fn(charge, external="idempotent")

        @agent.task
        async def pay() -> str:
            """Pay."""

        return pay

    assert await made(state)() == "receipt 1receipt 2"
    assert (await made(killed[1]).resume()).value == "receipt 1receipt 2"
    assert calls == [1, 2, 2]


@pytest.mark.parametrize("isolation", ["process"])
def test_calls_of_code_in_a_worker_are_journalled_in_the_host(isolation):
    state = Versioned()
    world = World(state)
    shop(world, ONE_ACTION, state=state, isolation=isolation)(3, "pen")
    again = World(None)
    catching = [code("task_success(receipt)")]
    run = shop(again, catching, state=world.killed[1], isolation=isolation).resume()
    assert run.value == "receipt 3"
    assert again.calls == []
    assert any("CallInDoubt" in getattr(event, "text", "") for event in run.events)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"external": "sometimes"}, "external='sometimes'"),
        ({"approval": True}, "add external=True"),
        ({"external": True, "approval": "yes"}, "approval='yes'"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(DefinitionError, match=message):
        Agent().fn(print, name="say", **settings)


def test_the_error_for_code_is_a_runtime_error():
    assert issubclass(CallInDoubt, RuntimeError)
