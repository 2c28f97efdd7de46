"""A run that a state has is run again and compared; and it is told what its value came from."""

from __future__ import annotations

from typing import Any

import pytest

from agex import Agent, DefinitionError, Versioned, runs
from agex.agent.views.traces import why
from agex.testing import ScriptedModel, python_action


def say(*codes: str) -> ScriptedModel:
    return ScriptedModel([[python_action(code)] for code in codes])


class Shop:
    """A task over a function that acts on the world, and one that does not."""

    def __init__(self, *codes: str, state: Versioned | None = None) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.tax = 2
        self.state = Versioned() if state is None else state
        agent = self.agent = Agent(state=self.state, model=say(*codes) if codes else None)

        @agent.fn(external=True)
        def charge(amount: int) -> str:
            """Charge."""
            self.calls.append(("charge", amount))
            return f"receipt {amount}, call {len(self.calls)}"

        @agent.fn
        def rate() -> int:
            """Return the rate."""
            self.calls.append(("rate", None))
            return self.tax

        @agent.task
        def sell(amount: int, items: list[str]) -> str:
            """Sell."""

        self.sell = sell


CODES = ("total = amount * rate()\nitems.append('x')", "print(total)", "task_success(charge(total))")


def test_a_run_is_replayed_without_acting_on_the_world_again() -> None:
    shop = Shop(*CODES)
    run = shop.sell.run(20, ["a"])
    before, branches = shop.state.head, shop.state.branches()
    found = run.replay()
    assert (found.same, found.first_difference) == (True, None)
    assert found.run.value == run.value == "receipt 40, call 2"
    assert shop.calls == [("rate", None), ("charge", 40), ("rate", None)]
    assert (shop.state.head, shop.state.branches()) == (before, branches)


def test_a_changed_function_shows_as_the_first_difference() -> None:
    shop = Shop(*CODES)
    run = shop.sell.run(20, [])
    shop.tax = 3
    found = run.replay().first_difference
    assert found is not None
    assert (found.turn, found.what, found.expected, found.got) == (2, "output", "40", "60")
    assert shop.calls.count(("charge", 60)) == 0


def test_another_call_to_the_world_is_the_difference_and_is_not_made() -> None:
    shop = Shop("task_success(charge(amount * rate()))")
    run = shop.sell.run(20, [])
    shop.tax = 3
    found = run.replay().first_difference
    assert found is not None
    assert (found.turn, found.line, found.what) == (1, 1, "call")
    assert (found.expected, found.got) == ("charge(40)", "charge(60)")
    assert [name for name, _ in shop.calls] == ["rate", "charge", "rate"]


def test_a_further_call_to_the_world_is_not_made() -> None:
    shop = Shop("if rate() == 3:\n    charge(1)\ntask_success('')")
    run = shop.sell.run(20, [])
    shop.tax = 3
    found = run.replay().first_difference
    assert found is not None
    assert (found.expected, found.got, found.line) == ("no further call", "charge(1)", 2)
    assert ("charge", 1) not in shop.calls


def test_another_model_is_compared_with_the_recorded_answers() -> None:
    shop = Shop("task_success('a')")
    run = shop.sell.run(20, [])
    assert run.replay(say("task_success('a')")).same
    found = run.replay(say("task_success('b')")).first_difference
    assert found is not None
    assert (found.what, found.got) == ("answer", "task_success('b')")


def test_another_process_replays_by_the_id_of_the_run() -> None:
    shop = Shop(*CODES)
    shop.sell.run(20, [])
    other = Shop(state=Versioned(shop.state.store))
    (info,) = runs(other.state)
    assert other.sell.resume(run_id=info.run_id).replay().same
    assert other.calls == [("rate", None)]


def test_a_run_after_others_begins_from_the_variables_of_then() -> None:
    shop = Shop("kept = 5\ntask_success('')", "task_success(str(kept))", "kept = 6\ntask_success('')")
    shop.sell.run(1, [])
    run = shop.sell.run(2, [])
    shop.sell.run(3, [])
    assert run.value == "5"
    assert run.replay().same


def test_a_run_without_a_versioned_state_cannot_be_replayed() -> None:
    agent = Agent(model=say("task_success(1)"))

    @agent.task
    def one() -> int:
        """Return 1."""

    with pytest.raises(DefinitionError, match="from a Versioned state"):
        one.run().replay()


async def test_a_run_of_an_async_task_is_replayed() -> None:
    agent = Agent(state=Versioned(), model=say("task_success(await twice(n))"))

    @agent.fn
    async def twice(n: int) -> int:
        """Double."""
        return n * 2

    @agent.task
    async def work(n: int) -> int:
        """Work."""

    run = await work.arun(4)
    assert (await run.areplay()).same


# -- why ---------------------------------------------------------------------------------------------


def test_the_trace_has_what_the_value_depends_on_and_nothing_else() -> None:
    shop = Shop(
        "unused = 1\nprices = [amount, 2]",
        "print('looking around', len(items))",
        "import math\nprices.append(3)\nother = [math.pi]\ntotal = sum(prices)",
        "receipt = charge(total)\ncharge(0)\ntask_success(receipt)",
    )
    run = shop.sell.run(20, ["a"])
    found = why(shop.state, run.run_id)
    assert found["value"] == "'receipt 25, call 1'"
    assert found["inputs"] == {"amount": "20"}
    assert [(one["turn"], [part["text"] for part in one["code"]]) for one in found["turns"]] == [
        (1, ["prices = [amount, 2]"]),
        (3, ["prices.append(3)", "total = sum(prices)"]),
        (4, ["receipt = charge(total)", "task_success(receipt)"]),
    ]
    assert [call["text"] for one in found["turns"] for call in one["calls"]] == ["charge(25)"]
    assert found["turns"][0]["changed"] == ["prices"]
    assert found["left_out"] == [2]


def test_a_run_that_failed_has_its_reason() -> None:
    from agex import TaskFail

    shop = Shop("task_fail('nothing there')")
    with pytest.raises(TaskFail) as caught:
        shop.sell.run(20, [])
    assert caught.value.run is not None
    found = why(shop.state, caught.value.run.run_id)
    assert (found["status"], found["value"]) == ("failed", "TaskFail: nothing there")
