"""The loop, driven by hand: no model, no sandbox, no clock."""

from __future__ import annotations

import pytest

from agex.agent.call.budget import Budget, Ledger
from agex.agent.call.events import (
    ActionEvent,
    ErrorEvent,
    FailEvent,
    OutputEvent,
    SuccessEvent,
    SystemNoteEvent,
)
from agex.agent.loop.loop import (
    Ask,
    Clarification,
    Emit,
    Execute,
    Failure,
    Observation,
    Plan,
    Success,
    Talk,
    Wait,
    solve,
)
from agex.errors import BudgetExceeded, LLMFail, TaskClarify, TaskFail, TaskTimeout
from agex.models.actions import python_action, terminal_action, write_file
from agex.models.base import Message, ModelError, Reply, Request, Usage

CODE = python_action("code")


class Notebook:
    """A conversation that remembers what it was told."""

    def __init__(self):
        self.turns: list[tuple[int, int]] = []
        self.seen: list[Observation] = []

    def request(self, turn, turns_left):
        self.turns.append((turn, turns_left))
        return Request(messages=(Message(role="user", content=f"turn {turn}"),))

    def add(self, reply, seen):
        self.seen.append(seen)


class Hands:
    """Answers a loop's effects from lists, and keeps them."""

    def __init__(self, plan=None, *, replies=(), outcomes=(), budget=None):
        self.plan = plan or Plan(agent="a", task="t", models=("p:m",))
        self.notebook = Notebook()
        self.replies, self.outcomes = list(replies), list(outcomes)
        self.effects: list[object] = []
        self.ledger = Ledger(budget)

    def run(self):
        loop = solve(self.plan, Talk(self.notebook), self.ledger)
        effect = next(loop)
        while True:
            self.effects.append(effect)
            answer = self.answer(effect)
            try:
                effect = loop.throw(answer) if isinstance(answer, ModelError) else loop.send(answer)
            except StopIteration as stop:
                return stop.value

    def answer(self, effect):
        if isinstance(effect, Ask):
            return self.replies.pop(0)
        if isinstance(effect, Execute):
            return self.outcomes.pop(0)
        return None

    def of(self, kind):
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def events(self, kind):
        return [effect.event for effect in self.of(Emit) if isinstance(effect.event, kind)]


def reply(*actions, **fields):
    return Reply(actions=actions, **fields)


def test_a_turn_is_ask_then_execute_then_show():
    hands = Hands(
        replies=[reply(CODE), reply(CODE)],
        outcomes=[Observation(text="seen"), Observation(ending=Success(7))],
    )
    assert hands.run() == 7
    assert [type(effect).__name__ for effect in hands.effects] == [
        *("Ask", "Emit", "Execute", "Emit", "Commit"),
        *("Ask", "Emit", "Execute", "Emit"),
    ]
    assert hands.notebook.seen[0].text == "seen"
    assert [event.result for event in hands.events(SuccessEvent)] == [7]


def test_events_name_their_turn():
    hands = Hands(
        replies=[reply(CODE), reply(CODE)], outcomes=[Observation(text="x"), Observation(ending=Success(1))]
    )
    hands.run()
    assert [(type(e.event).__name__, e.event.turn) for e in hands.of(Emit)] == [
        ("ActionEvent", 1),
        ("OutputEvent", 1),
        ("ActionEvent", 2),
        ("SuccessEvent", 2),
    ]


def test_several_actions_run_in_order_until_the_task_ends():
    first, second, third = (python_action(name) for name in "abc")
    hands = Hands(
        replies=[reply(first, second, third)],
        outcomes=[Observation(text="1"), Observation(ending=Success(None))],
    )
    assert hands.run() is None
    assert [effect.action for effect in hands.of(Execute)] == [first, second]


def test_an_action_that_fails_stops_those_after_it_and_the_model_is_told():
    hands = Hands(
        replies=[reply(CODE, CODE, CODE), reply(CODE)],
        outcomes=[Observation(text="boom", failed=True), Observation(ending=Success(1))],
    )
    hands.run()
    assert len(hands.of(Execute)) == 2
    assert hands.notebook.seen[0].text == "boom\nThe 2 after this were not executed."


def test_the_outputs_of_several_actions_are_told_apart():
    hands = Hands(
        replies=[reply(CODE, CODE), reply(CODE)],
        outcomes=[Observation(text="one"), Observation(text="two"), Observation(ending=Success(1))],
    )
    hands.run()
    assert hands.notebook.seen[0].text == "[action 1]\none\n[action 2]\ntwo"


def test_a_truncated_tool_call_is_never_executed():
    hands = Hands(
        replies=[reply(CODE, truncated=True), reply(CODE)], outcomes=[Observation(ending=Success(1))]
    )
    hands.run()
    assert len(hands.of(Execute)) == 1
    assert "cut off" in hands.notebook.seen[0].text


@pytest.mark.parametrize("action", [terminal_action("ls"), write_file("a", "b")])
def test_an_action_that_was_not_offered_is_not_executed_nor_are_its_neighbours(action):
    hands = Hands(replies=[reply(CODE, action), reply(CODE)], outcomes=[Observation(ending=Success(1))])
    hands.run()
    assert len(hands.of(Execute)) == 1
    assert f"{action.kind} is not available here" in hands.notebook.seen[0].text
    assert hands.events(OutputEvent)[0].error


def test_an_empty_completion_is_a_turn_and_the_model_is_told_how_to_answer():
    hands = Hands(replies=[Reply(text=" \n"), reply(CODE)], outcomes=[Observation(ending=Success(1))])
    hands.run()
    assert hands.notebook.turns == [(1, 9), (2, 8)]
    assert hands.notebook.seen[0].text.startswith("Your answer was empty. Answer with Python code")


def test_prose_without_code_is_told_apart_from_an_empty_answer():
    hands = Hands(replies=[Reply(text="Sure!"), reply(CODE)], outcomes=[Observation(ending=Success(1))])
    hands.run()
    assert hands.notebook.seen[0].text.startswith("Your answer contained no code to run.")


def test_what_the_parser_noted_is_shown():
    hands = Hands(
        replies=[reply(CODE, notes=("bad JSON",)), Reply(notes=("bad fence",)), reply(CODE)],
        outcomes=[Observation(text="ok"), Observation(ending=Success(1))],
    )
    hands.run()
    assert hands.notebook.seen[0].text == "ok\nbad JSON"
    assert hands.notebook.seen[1].text.endswith("bad fence")


def test_a_task_that_never_ends_times_out_with_the_last_error():
    plan = Plan(agent="a", task="t", max_iterations=2)
    hands = Hands(
        plan,
        replies=[reply(CODE)] * 2,
        outcomes=[Observation(text="fine"), Observation(text="ValueError: no", failed=True)],
    )
    with pytest.raises(TaskTimeout, match=r"(?s)'t' was not finished in 2 turns.*ValueError: no"):
        hands.run()
    assert [event.error for event in hands.events(ErrorEvent)] == ["TaskTimeout"]


def test_the_conversation_knows_how_many_turns_are_left():
    plan = Plan(agent="a", task="t", max_iterations=3)
    hands = Hands(plan, replies=[reply(CODE)] * 3, outcomes=[Observation(text="x")] * 3)
    with pytest.raises(TaskTimeout):
        hands.run()
    assert hands.notebook.turns == [(1, 2), (2, 1), (3, 0)]


def test_a_request_that_may_succeed_later_is_repeated_after_growing_pauses():
    busy = ModelError("busy", retryable=True)
    hands = Hands(replies=[busy, busy, reply(CODE)], outcomes=[Observation(ending=Success(1))])
    assert hands.run() == 1
    first, second = (effect.seconds for effect in hands.of(Wait))
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert [event.recoverable for event in hands.events(ErrorEvent)] == [True, True]
    assert hands.ledger.used.requests == 2


def test_a_model_that_stays_unusable_fails_the_task_with_everything_in_the_error():
    plan = Plan(agent="a", task="t", models=("p:m",), llm_retries=1)
    busy = ModelError("busy", retryable=True)
    hands = Hands(plan, replies=[busy, busy])
    with pytest.raises(LLMFail, match="p:m gave no usable reply after 1 retry: busy") as caught:
        hands.run()
    error = caught.value
    assert (error.provider, error.model, error.retries, error.__cause__) == ("p", "m", 1, busy)
    assert [event.recoverable for event in hands.events(ErrorEvent)] == [True, False]


def test_a_request_that_can_never_succeed_is_not_repeated():
    hands = Hands(replies=[ModelError("bad key", retryable=False)])
    with pytest.raises(LLMFail) as caught:
        hands.run()
    assert caught.value.retries == 0
    assert hands.of(Wait) == []


def test_no_request_is_sent_past_the_budget():
    hands = Hands(
        budget=Budget(tokens=10),
        replies=[reply(CODE, usage=Usage(requests=1, input_tokens=10))],
        outcomes=[Observation(text="x")],
    )
    with pytest.raises(BudgetExceeded):
        hands.run()
    assert len(hands.of(Ask)) == 1
    assert [event.error for event in hands.events(ErrorEvent)] == ["BudgetExceeded"]


def test_a_retry_is_not_sent_past_the_budget():
    hands = Hands(budget=Budget(calls=1), replies=[ModelError("busy", retryable=True)])
    with pytest.raises(BudgetExceeded):
        hands.run()


def test_nothing_of_a_reply_with_an_unknown_price_is_executed_under_a_budget_in_dollars():
    unpriced = reply(CODE, usage=Usage(requests=1, cost=None))
    hands = Hands(budget=Budget(usd=1.0), replies=[unpriced])
    with pytest.raises(BudgetExceeded, match="unknown"):
        hands.run()
    assert hands.of(Execute) == []


@pytest.mark.parametrize(
    ("ending", "error"), [(Failure("no data"), TaskFail), (Clarification("which?"), TaskClarify)]
)
def test_an_ending_without_a_value_is_an_error_with_the_agents_words(ending, error):
    hands = Hands(replies=[reply(CODE)], outcomes=[Observation(ending=ending)])
    with pytest.raises(error) as caught:
        hands.run()
    assert caught.value.message == ending.message


def test_giving_up_is_an_event():
    hands = Hands(replies=[reply(CODE)], outcomes=[Observation(ending=Failure("no"))])
    with pytest.raises(TaskFail):
        hands.run()
    assert [event.message for event in hands.events(FailEvent)] == ["no"]


def test_kept_code_that_works_asks_no_model():
    plan = Plan(agent="a", task="t", kept_code="old")
    hands = Hands(plan, outcomes=[Observation(ending=Success(5))])
    assert hands.run() == 5
    assert hands.of(Ask) == []
    assert "no model was asked" in hands.events(SystemNoteEvent)[0].message


@pytest.mark.parametrize("outcome", [Observation(text="boom", failed=True), Observation(ending=Failure("x"))])
def test_kept_code_that_does_not_work_gives_the_task_to_the_model(outcome):
    plan = Plan(agent="a", task="t", kept_code="old")
    hands = Hands(plan, replies=[reply(CODE)], outcomes=[outcome, Observation(ending=Success(6))])
    assert hands.run() == 6
    assert "the model is asked" in hands.events(SystemNoteEvent)[0].message


def test_an_action_event_says_what_the_model_said_and_took():
    usage = Usage(requests=1, input_tokens=3, output_tokens=4)
    hands = Hands(replies=[reply(CODE, text="said", usage=usage)], outcomes=[Observation(ending=Success(1))])
    hands.run()
    (event,) = hands.events(ActionEvent)
    assert (event.actions, event.text, event.usage) == ((CODE,), "said", usage)
