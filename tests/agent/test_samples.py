"""Several samples of one task call: who wins, what is left of the others, and what they may spend."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agex import (
    Agent,
    Budget,
    BudgetExceeded,
    CheckError,
    DefinitionError,
    Live,
    StateConflict,
    TaskCancelled,
    TaskClarify,
    TaskFail,
    TieError,
    Versioned,
    connect_fs,
    runs,
)
from agex.testing import ScriptedModel

GIVES_UP = "```python\nmine = 1\ntask_fail('too hard')\n```"
ASKS = "```python\ntask_clarify('In which unit?')\n```"


def gives(value: object) -> str:
    return f"```python\nfound = {value!r}\ntask_success(found)\n```"


def model_of(*replies: str) -> ScriptedModel:
    """Return a model whose sample k, from 1, always answers with reply k."""
    model = ScriptedModel([])
    model._next = lambda request: (model.requests.append(request), replies[request.sample - 1])[1]  # type: ignore[method-assign]
    return model


def task_of(
    model: Any, *, samples: int = 3, choose: Any = "first", settings: Any = None, **agent: Any
) -> Any:
    @Agent(model, **agent).task(samples=samples, choose=choose, **(settings or {}))
    def answer(question: str) -> int:
        """Answer it."""

    return answer


# -- first


def test_the_first_value_that_passes_everything_is_the_tasks() -> None:
    def is_large(value: int, inputs: Any) -> bool:
        return value > 10

    model = model_of(gives("text"), gives(3), gives(42))
    run = task_of(model, settings={"checks": [is_large]}).run("?")
    assert (run.value, run.sample) == (42, 3)


def test_samples_that_are_still_running_are_cancelled() -> None:
    is_waiting, may_go_on = threading.Event(), threading.Event()

    def pause() -> None:
        is_waiting.set()
        may_go_on.wait(20)

    def after_the_other(messages: Any) -> str:
        assert is_waiting.wait(20)
        return gives(42)

    answers = iter(["```python\npause()\n```", after_the_other])
    lock = threading.Lock()

    def answer_of(messages: Any) -> str:
        with lock:
            answer: Any = next(answers)
        return answer if isinstance(answer, str) else answer(messages)

    agent = Agent(ScriptedModel(answer_of))
    agent.fn(pause)

    @agent.task(samples=2)
    def answer(question: str) -> int:
        """Answer it."""

    try:
        run = answer.run("?")
    finally:
        may_go_on.set()
    assert run.value == 42
    loser = next(each for each in run.samples if not each.ok)
    assert isinstance(loser.error, TaskCancelled)


# -- agree


def test_the_value_that_most_samples_agree_on_is_taken() -> None:
    run = task_of(model_of(gives(1), gives(2), gives(2)), choose="agree").run("?")
    assert (run.value, run.sample) == (2, 2)


def test_a_sample_without_a_value_has_no_vote() -> None:
    assert task_of(model_of(GIVES_UP, GIVES_UP, gives(5)), choose="agree")("?") == 5


def test_a_tie_names_the_candidates() -> None:
    with pytest.raises(TieError, match=r"1 \(sample 1\); 2 \(samples 2, 4\)|1 \(samples 1, 3\)") as caught:
        task_of(model_of(gives(1), gives(2), gives(1), gives(2)), samples=4, choose="agree")("?")
    assert caught.value.candidates == (1, 2)
    assert caught.value.run is not None
    assert len(caught.value.run.samples) == 4


def test_tables_agree_by_their_own_equality() -> None:
    pandas = pytest.importorskip("pandas")
    agent = Agent(
        model_of(*[f"```python\ntask_success(pd.DataFrame({{'x': [{n}]}}))\n```" for n in (1, 2, 2)])
    )
    agent.module(pandas, name="pd")

    @agent.task(samples=3, choose="agree")
    def table() -> pandas.DataFrame:
        """Make one."""

    assert table()["x"].tolist() == [2]


# -- a function of the caller


def test_a_function_of_the_values_chooses() -> None:
    seen: list[list[int]] = []

    def largest(values: list[int]) -> int:
        seen.append(values)
        return max(values)

    assert task_of(model_of(gives(1), gives(7), gives(3)), choose=largest)("?") == 7
    assert seen == [[1, 7, 3]]


def test_a_choice_that_is_none_of_the_values_ends_the_run() -> None:
    with pytest.raises(CheckError, match=r"<lambda> returned 2, which is none of the 2 values"):
        task_of(model_of(gives(1), gives(3)), samples=2, choose=lambda values: 2)("?")


def test_a_choice_that_raises_ends_the_run_with_its_error_as_the_cause() -> None:
    with pytest.raises(CheckError, match=r"choose: <lambda> raised ZeroDivisionError") as caught:
        task_of(model_of(gives(1), gives(3)), samples=2, choose=lambda values: 1 / 0)("?")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# -- what is left


@pytest.mark.parametrize("state_of", [Live, Versioned], ids=["live", "versioned"])
def test_the_state_becomes_what_the_winner_made_of_it(state_of: Callable[[], Any]) -> None:
    state = state_of()
    state["rows"] = [0]
    codes = [
        f"```python\nrows.append({n})\nopen('note.txt', 'w').write('{n}')\ncache['k'] = {n}\nonly_{n} = 1\n"
        f"task_success({n})\n```"
        for n in (1, 2, 3)
    ]
    assert task_of(model_of(*codes), choose=lambda values: values[1], state=state)("?") == 2
    assert (state["rows"], state.cache) == ([0, 2], {"k": 2})
    assert sorted(name for name in state if name.startswith("only")) == ["only_2"]
    assert state.files["note.txt"] == b"2"
    assert {event.sample for event in state.events} == {2}


def test_the_branch_goes_on_with_the_winners_commits_and_no_other_branch_is_left() -> None:
    state = Versioned()
    state["before"] = 1
    task = task_of(model_of(gives(1), gives(1)), samples=2, state=state)
    run = task.run("?")
    assert list(state.branches()) == ["main"]
    assert state.head == run.commit
    assert [one.run_id for one in runs(state)] == [run.run_id]
    assert [event.type for event in state.events][-1] == "success"
    assert state["before"] == 1
    assert run.events[-1].commit_hash is not None


@pytest.mark.parametrize("state_of", [Live, Versioned], ids=["live", "versioned"])
def test_samples_that_all_fail_leave_no_variable_but_their_events(state_of: Callable[[], Any]) -> None:
    state = state_of()
    with pytest.raises(TaskFail):
        task_of(model_of(GIVES_UP, GIVES_UP), samples=2, state=state)("?")
    assert list(state) == []
    assert [event.type for event in state.events].count("fail") == 2


def test_samples_do_not_see_what_the_others_do_to_an_input() -> None:
    @Agent(model_of(*["```python\nrows.append(1)\ntask_success(len(rows))\n```"] * 3)).task(
        samples=3, choose="agree"
    )
    def count(rows: list[int]) -> int:
        """Count them."""

    rows = [0]
    assert count(rows) == 2
    assert rows == [0]


def test_what_another_task_committed_meanwhile_stays() -> None:
    state = Versioned()
    agent = Agent(model_of(gives(1), gives(1)), state=state)

    def meanwhile(values: list[int]) -> int:
        state["other"] = "kept"
        state.commit()
        return values[0]

    @agent.task(samples=2, choose=meanwhile)
    def answer(question: str) -> int:
        """Answer it."""

    assert answer("?") == 1
    assert (state["other"], state["found"]) == ("kept", 1)
    assert [event.type for event in state.events][-1] == "success"


def test_a_change_of_the_same_variable_meanwhile_is_a_conflict_that_names_the_branch() -> None:
    state = Versioned()

    def meanwhile(values: list[int]) -> int:
        state["found"] = "mine"
        state.commit()
        return values[0]

    with pytest.raises(StateConflict, match="is on branch 'main-sample-"):
        task_of(model_of(gives(1), gives(1)), samples=2, choose=meanwhile, state=state)("?")
    assert state["found"] == "mine"
    assert len(state.branches()) == 2


# -- one record


def test_one_run_has_the_events_and_the_usage_of_all_samples() -> None:
    told: list[Any] = []
    run = task_of(model_of(gives(1), gives(2), gives(2)), choose="agree").run("?", on_event=told.append)
    assert run.usage.requests == 3
    assert [event.sample for event in run.events if event.type == "task_start"] == [1, 2, 3]
    assert {event.run_id for event in run.events} == {run.run_id}
    assert told == list(run.events)
    assert run.turns == 1


def test_one_budget_holds_for_all_samples() -> None:
    model = ScriptedModel(lambda messages: "```python\nprint('looking')\n```")
    with pytest.raises(BudgetExceeded):
        task_of(model, samples=3, budget=Budget(calls=4))("?")
    assert len(model.requests) == 4


def test_each_sample_asks_with_a_number_of_its_own() -> None:
    model = model_of(gives(1), gives(2), gives(2))
    task_of(model, choose="agree")("?")
    assert sorted(request.sample for request in model.requests) == [1, 2, 3]
    assert len({str(request) for request in model.requests}) == 1


# -- failures


def test_the_most_telling_failure_is_raised_and_names_the_others() -> None:
    looks = "```python\nprint('looking')\n```"
    with pytest.raises(
        TaskFail, match=r"too hard\nThat was sample 2 of 2.\nSample 1: TaskTimeout: "
    ) as caught:
        task_of(model_of(looks, GIVES_UP), samples=2, max_iterations=2)("?")
    assert caught.value.run is not None
    assert caught.value.run.sample == 2


def test_a_check_that_fails_itself_ends_all_samples() -> None:
    def broken(value: int, inputs: Any) -> None:
        raise KeyError(value)

    with pytest.raises(CheckError, match="the check broken raised KeyError"):
        task_of(model_of(gives(1), gives(2)), samples=2, settings={"checks": [broken]})("?")


@pytest.mark.parametrize("state_of", [lambda: None, Live, Versioned], ids=["none", "live", "versioned"])
def test_a_question_can_be_answered_and_its_sample_goes_on(state_of: Callable[[], Any]) -> None:
    state = state_of()
    replies = iter([ASKS, gives(3)])
    task = task_of(ScriptedModel(lambda messages: next(replies)), samples=1, state=state)
    model = ScriptedModel(lambda messages: gives(3) if "metres" in str(messages[-1].content) else ASKS)
    task.agent.model = model
    with pytest.raises(TaskClarify, match="In which unit") as caught:
        task.using(samples=2)("?")
    run = caught.value.run
    assert run is not None
    assert run.answer("metres").value == 3
    if state is not None:
        assert state["found"] == 3
    if isinstance(state, Versioned):
        assert list(state.branches()) == ["main"]


# -- where it is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples=0: give a number of runs, 1 or more"),
        ({"samples": True}, "samples=True: give"),
        ({"samples": "3"}, "samples='3': give"),
        ({"samples": 2, "choose": "best"}, "choose='best': give 'first', 'agree' or a function"),
        ({"samples": 2, "choose": None}, "choose=None: give 'first', 'agree' or a function"),
    ],
    ids=["none", "a bool", "a text", "another word", "nothing"],
)
def test_a_number_or_a_choice_that_there_is_not_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Agent(model_of()).task(**settings)
    plain = task_of(model_of(), samples=1)
    with pytest.raises(DefinitionError, match=message):
        plain("?", **settings)
    with pytest.raises(DefinitionError, match=message):
        plain.using(**settings)("?")


def test_functions_that_act_on_the_world_are_refused_those_of_called_tasks_too() -> None:
    inner, outer = Agent(model_of()), Agent(model_of())

    @inner.fn(external=True)
    def send(text: str) -> None: ...

    @outer.fn
    @inner.task
    def helper(text: str) -> int:
        """Help."""

    @outer.task(samples=2)
    def answer(question: str) -> int:
        """Answer it."""

    with pytest.raises(DefinitionError, match=r"cannot have 2 samples: each would call send, which acts"):
        answer("?")


def test_a_directory_of_the_host_is_refused(tmp_path: Any) -> None:
    with pytest.raises(DefinitionError, match="they would share one directory of the host"):
        task_of(model_of(), fs=connect_fs(type="isolated", root=tmp_path))("?")


def test_a_task_called_by_another_on_the_same_state_is_refused() -> None:
    state = Versioned()
    outer = Agent(ScriptedModel(["```python\ntask_success(answer('?'))\n```"]), state=state, max_iterations=1)
    outer.fn(task_of(model_of(), samples=2, state=state))

    @outer.task
    def ask() -> int:
        """Ask."""

    with pytest.raises(DefinitionError, match="the task that calls it is at work on the same state"):
        ask()


# -- everywhere that tasks are called


def test_async_tasks_have_samples() -> None:
    @Agent(model_of(gives(1), gives(2), gives(2))).task(samples=3, choose="agree")
    async def answer(question: str) -> int:
        """Answer it."""

    async def main() -> tuple[int, list[int]]:
        return await answer("?"), await answer.map(["a", "b"])

    assert asyncio.run(main()) == (2, [2, 2])


def test_map_has_samples_for_each_item() -> None:
    state = Versioned()
    task = task_of(model_of(*["```python\nlast = question\ntask_success(len(question))\n```"] * 2), samples=2)
    assert task.map(["a", "bb", "ccc"], max_workers=2) == [1, 2, 3]
    assert task.using(state=state).map(["dddd"]) == [4]
    assert "last" in state


def test_a_task_with_samples_is_called_by_the_code_of_another() -> None:
    outer = Agent(ScriptedModel(["```python\ntask_success(answer('?') + 1)\n```"]))
    outer.fn(task_of(model_of(gives(1), gives(2), gives(2)), choose="agree"))

    @outer.task
    def ask() -> int:
        """Ask."""

    run = ask.run()
    assert run.value == 3
    assert run.usage.requests == 4


def test_a_started_run_of_samples_can_be_cancelled() -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def answer_of(messages: Any) -> str:
        asked.set()
        may_answer.wait(20)
        return gives(1)

    run = task_of(ScriptedModel(answer_of)).start("?")
    assert asked.wait(20)
    assert run.cancel()
    try:
        with pytest.raises(TaskCancelled):
            run.result(20)
    finally:
        may_answer.set()


def test_a_parameter_of_that_name_is_the_tasks_own() -> None:
    @Agent(ScriptedModel(["```python\ntask_success(sum(samples))\n```"])).task
    def total(samples: list[int]) -> int:
        """Add them up."""

    assert total(samples=[1, 2]) == 3


def test_code_kept_from_an_earlier_call_is_tried_once_before_any_sample() -> None:
    solution = "```python\ndef answer(question):\n    return len(question)\n```"
    model = model_of(solution, solution)
    task = task_of(model, samples=2, settings={"reuse": True})
    assert task("??") == 2
    asked = len(model.requests)
    run = task.run("???")
    assert (run.value, run.sample, len(model.requests)) == (3, None, asked)


def test_samples_run_in_workers() -> None:
    state = Versioned()
    run = task_of(
        model_of(gives(1), gives(1)), samples=2, choose="agree", isolation="process", state=state
    ).run("?")
    assert (run.value, run.sample, state["found"]) == (1, 1, 1)


@pytest.mark.parametrize("state", [None, Versioned()], ids=["memory", "versioned"])
def test_the_code_of_the_chosen_sample_is_kept(state: Versioned | None) -> None:
    def solved(value: int) -> str:
        return f"```python\ndef answer(question):\n    return {value}\n```"

    model = model_of(solved(1), solved(2), solved(2))
    task = task_of(model, samples=3, choose="agree", state=state, settings={"reuse": True})
    assert task("?") == 2
    assert task.solution is not None
    assert "return 2" in task.solution.source
    run = task.run("!")
    assert (run.value, run.sample, len(model.requests)) == (2, None, 3)
    assert (task.solved_by.model, task.solved_by.kept) == (1, 1)


def test_of_errors_that_end_all_samples_none_is_left_to_asyncio(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(value: int, inputs: Any) -> bool:
        return bool({}[value])

    async def all_at_once(waited: Any, **_: Any) -> Any:  # by chance: the loop was busy as they ended
        return await wait(waited)

    def called() -> str:
        try:
            task_of(model_of(*[gives(1)] * 3), choose="agree", settings={"checks": [broken]})("?")
        except CheckError as error:
            return str(error)
        return "no error"

    wait = asyncio.wait
    monkeypatch.setattr(asyncio, "wait", all_at_once)
    logging.disable()  # records would hold the errors, and with them the samples
    try:
        assert called() == "the check broken raised KeyError: 1"
    finally:
        logging.disable(logging.NOTSET)
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
