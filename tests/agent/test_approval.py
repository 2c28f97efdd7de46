"""A call that needs a person's yes stops the run; the answer comes here, or in another process."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agex import (
    Agent,
    Budget,
    BudgetExceeded,
    DefinitionError,
    Disk,
    Live,
    ReplayMismatch,
    StateConflict,
    TaskClarify,
    TaskSuspended,
    Versioned,
    runs,
)
from agex.agent.durable.decisions import decide, waiting_runs
from agex.errors import StateError
from agex.testing import ScriptedModel


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def bank(
    made: list[object],
    replies: list[str],
    state: object = None,
    *,
    approval: object = True,
    **settings: object,
):
    agent = Agent(model=ScriptedModel(replies), name="bank", state=state, **settings)

    def transfer(amount: int, to: str = "ann") -> str:
        """Transfer money."""
        made.append((amount, to))
        return f"{amount} to {to}"

    agent.fn(transfer, external=True, approval=approval)

    @agent.task
    def settle(amount: int) -> str:
        """Settle."""

    return settle


PAY = code("before = amount\ndone = transfer(amount)\ntask_success(done)")


def suspended(task, *args: object) -> TaskSuspended:
    with pytest.raises(TaskSuspended) as raised:
        task(*args)
    return raised.value


def test_the_call_suspends_the_run_and_is_made_once_it_is_approved():
    made: list[object] = []
    settle = bank(made, [PAY], Versioned())
    stopped = suspended(settle, 5)
    assert made == []
    call = stopped.call
    assert (call.name, call.args, call.kwargs, call.line) == ("transfer", (5,), {}, 2)
    assert call.source == "done = transfer(amount)"
    run = stopped.run
    assert run.call == call
    assert run.approve().value == "5 to ann"
    assert made == [(5, "ann")]
    assert run.result() == "5 to ann"


def test_the_answer_comes_in_another_process_with_other_arguments(tmp_path):
    made: list[object] = []
    state = Versioned(Disk(tmp_path / "s"))
    run_id = suspended(bank(made, [PAY], state), 5).run.run_id
    state.close()
    later = Versioned(Disk(tmp_path / "s"))
    (info,) = runs(later)
    assert (info.status, info.call.name, info.call.args) == ("suspended", "transfer", (5,))
    run = bank(made, [], later).resume(run_id=run_id)
    assert isinstance(run.error, TaskSuspended)
    assert run.approve({"amount": 3, "to": "bob"}).value == "3 to bob"
    assert made == [(3, "bob")]
    assert runs(later)[0].status == "done"
    later.close()


def test_a_rejected_call_raises_the_reason_in_the_code():
    made: list[object] = []
    settle = bank(made, [PAY, code("task_success('gave up')")], Versioned())
    run = suspended(settle, 5).run.reject("too much")
    assert run.value == "gave up"
    assert made == []
    assert any("transfer was not approved: too much" in getattr(event, "text", "") for event in run.events)


def test_a_second_answer_is_refused():
    made: list[object] = []
    state = Versioned()
    settle = bank(made, [PAY], state)
    first = suspended(settle, 5).run
    second = settle.resume(run_id=first.run_id)
    first.approve()
    with pytest.raises(RuntimeError, match="waits for no approval"):
        first.approve()
    with pytest.raises(RuntimeError, match="waits for this no more"):
        second.reject("late")
    assert made == [(5, "ann")]


def test_two_processes_that_answer_are_a_conflict():
    made: list[object] = []
    state = Versioned()
    run = suspended(bank(made, [PAY], state), 5).run
    other = bank(made, [], Versioned(state.store)).resume()
    assert run.approve().value == "5 to ann"
    with pytest.raises(StateConflict):
        other.approve()
    assert made == [(5, "ann")]


# -- decided where the program is not -----------------------------------------------------------


@pytest.mark.parametrize(
    ("rejected", "value", "calls"), [(None, "5 to ann", [(5, "ann")]), ("no", "gave up", [])]
)
def test_a_decision_that_is_written_into_the_state_is_taken_when_the_run_is_resumed(rejected, value, calls):
    made: list[object] = []
    state = Versioned()
    run_id = suspended(bank(made, [PAY], state), 5).run.run_id
    elsewhere = Versioned(state.store)
    (waiting,) = waiting_runs(elsewhere)
    assert (waiting.task, waiting.text, waiting.source) == (
        "settle",
        "transfer(5)",
        "done = transfer(amount)",
    )
    decide(elsewhere, run_id, waiting.call, rejected=rejected)
    assert list(waiting_runs(elsewhere)) == made == []
    later = Versioned(state.store)
    assert bank(made, [code("task_success('gave up')")], later).resume(run_id=run_id).value == value
    assert made == calls


def test_a_call_is_decided_once_and_only_the_one_that_was_seen():
    made: list[object] = []
    state = Versioned()
    run_id = suspended(bank(made, [PAY], state), 5).run.run_id
    here, there = Versioned(state.store), Versioned(state.store)
    (waiting,) = waiting_runs(here)
    head = here.head
    with pytest.raises(StateConflict, match=r"waits for another call now: transfer\(5\)"):
        decide(here, run_id, f"{run_id}/0001.01.0002")
    for unknown in ("nobody", f"{run_id}/call/0001.01.0001"):
        with pytest.raises(StateError, match="There is no run"):
            decide(here, unknown, waiting.call)
    assert here.head == head
    decide(here, run_id, waiting.call)
    with pytest.raises(StateConflict, match="moved by another writer"):
        decide(there, run_id, waiting.call, rejected="no")
    with pytest.raises(StateConflict, match="waits for no approval any more: it is open"):
        decide(Versioned(state.store), run_id, waiting.call, rejected="no")
    assert bank(made, [], Versioned(state.store)).resume(run_id=run_id).value == "5 to ann"


def test_the_program_that_asked_learns_that_the_call_was_decided_elsewhere():
    made: list[object] = []
    state = Versioned()
    run = suspended(bank(made, [PAY], state), 5).run
    elsewhere = Versioned(state.store)
    decide(elsewhere, run.run_id, run.call.id)
    with pytest.raises(StateConflict):
        run.reject("no")
    assert made == []


def test_an_approval_for_another_call_is_refused_and_the_run_still_waits():
    made: list[object] = []
    state = Versioned()
    two = code("transfer(1)\ntask_success(transfer(2))")
    settle = bank(made, [two], state)
    first = suspended(settle, 5).run
    stale = settle.resume(run_id=first.run_id)
    one = first.call
    with pytest.raises(TaskSuspended) as raised:
        first.approve(call=one)
    assert made == [(1, "ann")]
    assert raised.value.call.args == (2,)
    with pytest.raises(RuntimeError, match="waits for this no more"):
        stale.approve()
    with pytest.raises(DefinitionError, match="the one that waits is"):
        first.approve(call=one)
    with pytest.raises(DefinitionError, match="takes no argument 'sum'"):
        first.approve({"sum": 1})
    assert made == [(1, "ann")]
    assert first.approve(call=raised.value.call).value == "2 to ann"
    assert made == [(1, "ann"), (2, "ann")]


def test_an_answer_for_a_question_is_no_approval():
    settle = bank([], [PAY], Versioned())
    run = suspended(settle, 5).run
    with pytest.raises(RuntimeError, match="waits for no answer"):
        run.answer("yes")
    assert run.approve().value == "5 to ann"


def test_a_predicate_says_which_calls_need_approval():
    made: list[object] = []
    settle = bank(
        made,
        [code("transfer(1)\ntask_success(transfer(100))")],
        Versioned(),
        approval=lambda call: call.args[0] > 10,
    )
    stopped = suspended(settle, 5)
    assert made == [(1, "ann")]
    assert stopped.run.approve().value == "100 to ann"
    assert made == [(1, "ann"), (100, "ann")]


def test_a_predicate_that_answers_no_bool_ends_the_run_without_a_call():
    made: list[object] = []
    settle = bank(made, [PAY], Versioned(), approval=lambda call: None)
    with pytest.raises(DefinitionError, match="answered None"):
        settle(5)
    assert made == []


@pytest.mark.parametrize("state", [None, Live(), Versioned()], ids=["none", "live", "versioned"])
def test_on_approval_answers_in_place(state):
    made: list[object] = []
    asked: list[str] = []

    def answer(call):
        asked.append(str(call))
        return replace(call, args=(call.args[0] - 1,)) if call.args[0] > 3 else call.args[0] == 2

    replies = [code("a = transfer(5)\nb = transfer(2)\ntransfer(3)"), code("task_success(a + b)")]
    assert bank(made, replies, state).using(on_approval=answer)(0) == "4 to ann2 to ann"
    assert asked == ["transfer(5)", "transfer(2)", "transfer(3)"]
    assert made == [(4, "ann"), (2, "ann")]


def test_on_approval_that_answers_with_another_call_ends_the_run():
    made: list[object] = []
    settle = bank(made, [PAY], Versioned())
    with pytest.raises(DefinitionError, match="was asked about"):
        settle.using(on_approval=lambda call: replace(call, id="x"))(5)
    assert made == []


def test_on_approval_answers_a_run_that_was_suspended():
    made: list[object] = []
    settle = bank(made, [PAY], Versioned())
    suspended(settle, 5)
    assert settle.using(on_approval=lambda call: True).resume().value == "5 to ann"
    assert made == [(5, "ann")]


@pytest.mark.parametrize("state", [None, Live()], ids=["none", "live"])
def test_a_run_that_can_neither_wait_nor_ask_is_refused_before_the_model_is_asked(state):
    settle = bank([], [PAY], state)
    with pytest.raises(DefinitionError, match="transfer needs approval"):
        settle(5)
    assert settle.agent.model.requests == []


def test_what_the_action_did_before_the_call_is_not_kept_twice():
    made: list[object] = []
    state = Versioned()
    state["log"] = ["start"]
    state["host"] = 1
    settle = bank(
        made,
        [code("log.append('once')\nopen('f.txt', 'w').write('x')\ntask_success(transfer(amount))")],
        state,
    )
    run = suspended(settle, 5).run
    assert state["log"] == ["start"]
    assert list(state.files) == []
    assert state["host"] == 1
    run.approve()
    assert state["log"] == ["start", "once"]
    assert len(list(state.files)) == 1


def test_code_cannot_catch_the_suspension():
    made: list[object] = []
    sneaky = code(
        "try:\n    transfer(1)\nexcept BaseException:\n    pass\nfinally:\n    x = 1\ntask_success('caught')"
    )
    suspended(bank(made, [sneaky], Versioned()), 5)
    assert made == []


def test_a_budget_that_is_used_up_holds_after_the_answer():
    made: list[object] = []
    state = Versioned()
    settle = bank(
        made, [code("print(transfer(amount))"), code("task_success('x')")], state, budget=Budget(calls=1)
    )
    run = suspended(settle, 5).run
    with pytest.raises(BudgetExceeded):
        run.approve()
    assert made == [(5, "ann")]
    assert runs(state)[0].status == "failed"
    with pytest.raises(StateError, match="has failed"):
        settle.resume(run_id=run.run_id)


def test_code_that_does_otherwise_after_the_answer_is_a_mismatch():
    made: list[object] = []
    amounts = iter([1, 2])
    settle = bank(made, [code("task_success(transfer(chance()))")], Versioned())
    settle.agent.fn(lambda: next(amounts), name="chance")
    run = suspended(settle, 5).run
    with pytest.raises(ReplayMismatch):
        run.approve()
    assert made == []


def test_a_question_is_answered_in_another_process():
    state = Versioned()
    settle = bank([], [code("task_clarify('to whom?')")], state)
    with pytest.raises(TaskClarify) as raised:
        settle(5)
    assert runs(state)[0].status == "asking"
    assert runs(state)[0].question == "to whom?"
    later = Versioned(state.store)
    again = bank([], [code("task_success('asked')")], later)
    run = again.resume()
    assert isinstance(run.error, TaskClarify)
    assert run.answer("to bob").value == "asked"
    assert "The caller answers your question: to bob" in str(again.agent.model.requests[0])
    with pytest.raises(StateConflict):
        raised.value.run.answer("to carl")


def test_a_question_answered_elsewhere_is_not_answered_here_again():
    state = Versioned()
    settle = bank([], [code("task_clarify('to whom?')"), code("task_success('one')")], state)
    with pytest.raises(TaskClarify) as raised:
        settle(5)
    assert settle.resume().answer("bob").value == "one"
    with pytest.raises(StateConflict, match="carried on meanwhile"):
        raised.value.run.answer("carl")


def test_async_tasks_wait_too():
    made: list[int] = []
    agent = Agent(model=ScriptedModel([code("task_success(transfer(amount))")] * 2), state=Versioned())

    @agent.fn(external=True, approval=True)
    async def transfer(amount: int) -> int:
        made.append(amount)
        return amount

    @agent.task
    async def settle(amount: int) -> int:
        """Settle."""

    async def scenario() -> None:
        with pytest.raises(TaskSuspended) as raised:
            await settle(5)
        assert (await raised.value.run.aapprove({"amount": 6})).value == 6

        async def yes(call: object) -> bool:
            return True

        assert await settle.using(on_approval=yes)(7) == 7

    asyncio.run(scenario())
    assert made == [6, 7]


def test_a_suspended_task_of_another_agent_suspends_the_outer_run():
    made: list[object] = []
    inner = bank(made, [code("task_success(transfer(amount))")] * 3)
    outer = Agent(
        model=ScriptedModel([code("task_success(settle(amount))")]), state=Versioned(), name="outer"
    )
    outer.fn(inner)

    @outer.task
    def close(amount: int) -> str:
        """Close."""

    stopped = suspended(close, 5)
    assert stopped.run.task == "close"
    assert stopped.run.approve().value == "5 to ann"
    assert made == [(5, "ann")]


def test_an_agent_that_code_builds_is_not_spared_the_approval():
    made: list[object] = []
    settle = bank(
        made,
        [
            code(
                "helper = Agent(name='helper')\nhelper.fn(transfer)\n"
                "@helper.task\ndef go(amount: int) -> str:\n    '''Transfer.'''\n\ntask_success(go(amount))"
            ),
            code("task_success(transfer(amount))"),
            code("task_success('no')"),
        ],
        Versioned(),
    )
    settle.agent.cls(Agent)
    suspended(settle, 5)
    assert made == []


@pytest.mark.parametrize("isolation", ["process"])
def test_a_call_of_code_in_a_worker_waits_too(isolation):
    made: list[object] = []
    settle = bank(made, [PAY], Versioned(), isolation=isolation)
    stopped = suspended(settle, 5)
    assert (stopped.call.name, stopped.call.args) == ("transfer", (5,))
    assert made == []
    assert stopped.run.approve().value == "5 to ann"
    assert made == [(5, "ann")]
