"""Trials, judges and budgets, with a script where the model would be."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from agex import Agent, Budget, Live, ModelNotConfigured, TaskFail
from agex.errors import BudgetExceeded, DefinitionError, InputError
from agex.evals import Case, Outcome, Verdict, attempt, evaluate
from agex.models import ModelError, Reply, Usage
from agex.testing import ScriptedModel, python_action

CASES = [Case(inputs={"n": n}, expected=2 * n) for n in (1, 2, 3)]


def doubling(*replies, **settings):
    """Give a task whose model answers with these pieces of code, or as given."""
    model = ScriptedModel([[python_action(one)] if isinstance(one, str) else one for one in replies])
    agent = Agent(model=model, **settings)

    @agent.task
    def double(n: int) -> int:
        """Double a number."""

    return double


def answering(answer, **settings):
    """Give a task that answers every request the same way."""
    agent = Agent(model=ScriptedModel(answer), **settings)

    @agent.task
    def double(n: int) -> int:
        """Double a number."""

    return double


def test_a_report_counts_what_passed_turns_tokens_and_cost():
    right = Reply(
        text="```python\ntask_success(2 * n)\n```",
        usage=Usage(requests=1, input_tokens=100, output_tokens=10, cost=0.25),
    )
    wrong = Reply(
        text="```python\nx = 1\n```", usage=Usage(requests=1, input_tokens=10, output_tokens=1, cost=0.5)
    )
    report = evaluate(doubling(right, wrong, right, right), CASES)
    summary = report.summary
    assert (summary.trials, summary.passed, summary.failed, summary.errors) == (3, 3, 0, 0)
    assert summary.turns == 4
    assert summary.usage == Usage(requests=4, input_tokens=310, output_tokens=31, cost=1.25)
    assert [trial.turns for trial in report.trials] == [1, 2, 1]
    assert [trial.usage.cost for trial in report.trials] == [0.25, 0.75, 0.25]
    assert (report.name, report.model) == ("double", "testing:scripted")
    assert report.interval == pytest.approx((0.4385, 1.0), abs=0.000_05)
    assert all(trial.seconds > 0 for trial in report.trials)
    assert summary.seconds == sum(trial.seconds for trial in report.trials) <= report.seconds


def test_failures_and_errors_are_kept_apart_and_both_count_against_the_rate():
    task = doubling(
        "task_success(2 * n)",
        "task_success(7)",
        "task_fail('too hard')",
        "task_clarify('which?')",
        "x = 1",
        ModelError("no such key", retryable=False),
        max_iterations=1,
    )
    report = evaluate(task, [Case(inputs={"n": n}, expected=2 * n) for n in range(6)])
    assert [trial.status for trial in report.trials] == [
        "passed", "failed", "failed", "failed", "failed", "error",
    ]  # fmt: skip
    assert [trial.reason.split(":")[0] for trial in report.trials] == [
        "", "the judge 'equals'", "TaskFail", "TaskClarify", "TaskTimeout", "LLMFail",
    ]  # fmt: skip
    summary = report.summary
    assert (summary.passed, summary.failed, summary.errors, summary.pass_rate) == (1, 4, 1, 1 / 6)
    assert [trial.run is not None for trial in report.trials] == [True] * 6
    assert "no such key" in report.trials[5].reason


def test_the_price_is_unknown_as_soon_as_one_is():
    unknown = Reply(text="```python\ntask_success(2 * n)\n```", usage=Usage(requests=1, cost=None))
    report = evaluate(doubling("task_success(2 * n)", unknown, "task_success(2 * n)"), CASES)
    assert (report.summary.passed, report.summary.cost) == (3, None)


def test_an_async_task_is_tried_like_any_other():
    agent = Agent(model=ScriptedModel(lambda _: [python_action("task_success(2 * n)")]))

    @agent.task
    async def double(n: int) -> int: ...

    assert evaluate(double, CASES, trials=2, max_concurrency=2).summary.passed == 6


# -- order and concurrency


def test_trials_stand_in_the_order_of_the_cases_and_are_made_case_by_case():
    made = []

    def subject(n):
        made.append(n)
        return 2 * n

    report = evaluate(subject, CASES, trials=2)
    assert made == [1, 2, 3, 1, 2, 3]
    order = [(trial.case.name, trial.number) for trial in report.trials]
    assert order == [("1", 1), ("1", 2), ("2", 1), ("2", 2), ("3", 1), ("3", 2)]


def test_the_order_does_not_depend_on_which_trial_ends_first():
    last = threading.Event()

    def subject(n):
        if n == 3:
            last.set()
        assert last.wait(60)
        return 2 * n

    told = []
    report = evaluate(subject, CASES, max_concurrency=3, on_trial=lambda trial: told.append(trial.case.name))
    assert sorted(told) == ["1", "2", "3"]
    assert [trial.case.name for trial in report.trials] == ["1", "2", "3"]
    assert report.summary.passed == 3


def test_no_more_trials_run_at_once_than_said():
    both = threading.Barrier(2)  # a third one at once would leave a trial waiting alone, and break it
    running = []

    def subject(n):
        running.append(n)
        assert len(running) <= 2
        both.wait(60)
        both.wait(60)
        running.remove(n)
        return 2 * n

    cases = [Case(inputs={"n": n}, expected=2 * n) for n in range(4)]
    assert evaluate(subject, cases, max_concurrency=2).summary.passed == 4


def test_one_at_a_time_is_in_the_callers_thread():
    threads = set()
    evaluate(lambda n: threads.add(threading.current_thread()), CASES, judge=lambda value: value is None)
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_the_listener_raises_ends_the_evaluation(at_once):
    begun = []

    def stop(trial):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        evaluate(begun.append, [Case(inputs={"n": n}) for n in range(50)], judge=lambda value: True,
                 max_concurrency=at_once, on_trial=stop)  # fmt: skip
    assert len(begun) < 50


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_keyboard_ends_the_evaluation(at_once):
    def subject(n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(subject, CASES, max_concurrency=at_once)


# -- budgets


def test_once_the_budget_of_all_is_used_up_no_trial_is_begun():
    task = answering(lambda _: [python_action("task_success(2 * n)")])
    report = evaluate(task, CASES, trials=3, budget=Budget(calls=4))
    assert [trial.status for trial in report.trials].count("stopped") == 5
    assert [report.of_case(case).passed for case in report.cases] == [2, 1, 1]
    summary = report.summary
    assert (summary.passed, summary.ended, summary.pass_rate, summary.usage.requests) == (4, 4, 1.0, 4)
    assert "The budget of 4 calls is used up" in report.trials[-1].reason
    assert len(task.agent.model.requests) == 4


def test_a_trial_that_the_budget_of_all_ends_is_neither_passed_nor_failed():
    report = evaluate(answering(lambda _: [python_action("x = 1")]), CASES, budget=Budget(calls=2))
    assert [trial.status for trial in report.trials] == ["stopped"] * 3
    assert [trial.usage.requests for trial in report.trials] == [2, 0, 0]
    assert (report.pass_rate, report.interval) == (None, None)


def test_a_tasks_own_budget_holds_for_each_trial_and_going_past_it_is_a_failure():
    task = answering(lambda _: [python_action("x = 1")], budget=Budget(calls=2))
    report = evaluate(task, CASES, budget=Budget(calls=100))
    assert [(trial.status, trial.usage.requests) for trial in report.trials] == [("failed", 2)] * 3


def test_the_budget_counts_judges_and_what_a_function_says_it_used():
    asked = Outcome(value=2, turns=1, usage=Usage(requests=2, input_tokens=5))
    critic = answering(lambda _: [python_action("task_success(value)")]).agent

    @critic.task
    def fine(value: int) -> bool: ...

    critic.model = ScriptedModel(lambda _: [python_action("task_success(True)")])
    report = evaluate(lambda n: asked, CASES, judge=fine, budget=Budget(calls=5))
    assert [trial.status for trial in report.trials] == ["passed", "stopped", "stopped"]
    assert (report.summary.usage.requests, report.summary.judging.requests) == (4, 1)
    assert report.trials[0].turns == 1


def test_an_evaluation_within_a_task_is_charged_to_it():
    inner = answering(lambda _: [python_action("task_success(2 * n)")])
    outer = Agent(model=ScriptedModel([[python_action("task_success(rate())")]] * 2), budget=Budget(calls=3))
    outer.fn(lambda: evaluate(inner, CASES).summary.passed, name="rate")

    @outer.task
    def work() -> int: ...

    run = work.run()
    assert (run.value, run.usage.requests) == (2, 3)


def test_a_price_that_is_unknown_breaks_a_budget_in_dollars():
    def subject(n):
        return Outcome(value=2 * n, usage=Usage(requests=1, cost=None))

    report = evaluate(subject, CASES, budget=Budget(usd=1.0))
    assert [trial.status for trial in report.trials] == ["stopped"] * 3
    assert "unknown" in report.trials[0].reason or "None usd" in report.trials[0].reason


# -- what is tried


def test_a_function_is_tried_and_the_tasks_it_calls_are_counted():
    task = answering(lambda _: [python_action("task_success(n + 1)")])

    def twice(n):
        return task(n) + task(n)

    report = evaluate(twice, [Case(inputs={"n": 1}, expected=4)])
    assert (report.summary.passed, report.summary.usage.requests) == (1, 2)
    assert (report.name, report.model) == ("twice", None)


def test_a_function_may_return_a_run():
    task = doubling("task_success(2 * n)", "task_fail('no')")
    returned = attempt(task.run, CASES[0])
    assert (returned.status, returned.turns, returned.run.value) == ("passed", 1, 2)

    def failed(n):
        try:
            return task.run(n)
        except TaskFail as error:
            return error.run

    trial = attempt(failed, CASES[0])
    assert (trial.status, trial.reason) == ("failed", "TaskFail: no")


def test_what_a_function_raises_is_an_error():
    def broken(n):
        raise LookupError("no such\ntable")

    trial = attempt(broken, CASES[0])
    assert (trial.status, trial.reason) == ("error", "LookupError: no such table")
    assert isinstance(trial.exception, LookupError)


def test_a_task_with_a_state_is_refused_and_says_what_to_do():
    task = answering(lambda _: [python_action("task_success(2 * n)")], state=Live())
    with pytest.raises(DefinitionError, match=r"task.using\(state=None\)"):
        evaluate(task, CASES)
    assert evaluate(task.using(state=None), CASES).summary.passed == 3
    assert evaluate(lambda n: task(n, state=Live()), CASES).summary.passed == 3
    with pytest.raises(DefinitionError, match="state"):
        evaluate(task.using(state=Live()), CASES)


def test_a_task_that_would_reuse_its_code_is_refused():
    agent = Agent(model=ScriptedModel([]))

    @agent.task(reuse=True)
    def double(n: int) -> int: ...

    with pytest.raises(DefinitionError, match="reuse"):
        evaluate(double, CASES)


def test_inputs_that_do_not_fit_are_found_before_a_model_is_asked():
    task = doubling()
    with pytest.raises(InputError, match="case 'odd'"):
        evaluate(task, [*CASES, Case(name="odd", inputs={"n": "three"}, expected=6)])
    assert task.agent.model.requests == []


def test_a_model_that_is_missing_is_said_before_the_first_trial(monkeypatch):
    monkeypatch.setenv("AGEX_LOCAL_MODEL", "missing.gguf")
    agent = Agent(model="local")

    @agent.task
    def double(n: int) -> int: ...

    with pytest.raises(ModelNotConfigured):
        evaluate(double, CASES)


async def async_function(n):
    return n


@pytest.mark.parametrize(
    ("subject", "settings", "message"),
    [
        (3, {}, "3 cannot be tried"),
        (async_function, {}, "def, not async def"),
        (abs, {"trials": 0}, "trials=0"),
        (abs, {"trials": True}, "trials=True"),
        (abs, {"max_concurrency": 0}, "max_concurrency=0"),
        (abs, {"confidence": 95}, "confidence=95"),
        (abs, {"judge": []}, "no judge"),
        (abs, {"judge": [3]}, "3 cannot judge"),
        (abs, {"judge": async_function}, "cannot judge"),
        (abs, {"judge": lambda value, other: True}, "asks for 'other', which case '1' does not have"),
    ],
)
def test_what_cannot_work_is_refused(subject, settings, message):
    with pytest.raises(DefinitionError, match=message):
        evaluate(subject, CASES, **settings)


def test_an_expected_value_is_asked_for_only_by_judges_that_compare():
    with pytest.raises(DefinitionError, match="'equals' asks for 'expected'"):
        evaluate(abs, [Case(inputs={"n": 1})])
    assert evaluate(lambda n: None, [Case(inputs={"n": 1}, expected=None)]).summary.passed == 1


# -- judges


@pytest.mark.parametrize(
    ("judge", "status"),
    [
        (lambda value: value == 6, "passed"),
        (lambda got: got == 6, "passed"),
        (lambda got, expected: got == expected, "passed"),
        (lambda value, inputs: value == 2 * inputs["n"], "passed"),
        (lambda value, n: value == 2 * n, "passed"),
        (lambda run: run.turns == 1, "passed"),
        (lambda case, value: value == case.expected, "passed"),
        (lambda value, *, least=6: value >= least, "passed"),
        (lambda value: np.bool_(value == 6), "passed"),
        (lambda value: value == 7, "failed"),
        ([lambda value: True, lambda value: False], "failed"),
        (lambda value: Verdict(passed=True), "passed"),
        (lambda value: Verdict(passed=False, reason="no good"), "failed"),
        (lambda value: None, "error"),
        (lambda value: value, "error"),
        (lambda value: "yes", "error"),
        (lambda value: 1 / 0, "error"),
        (lambda value: Verdict(passed="yes"), "error"),
        (lambda value: Verdict(passed=True, score=float("nan")), "error"),
    ],
)
def test_a_judge_is_shown_what_its_parameters_name_and_nothing_but_true_is_yes(judge, status):
    task = doubling("task_success(2 * n)")
    assert attempt(task, CASES[2], judge=judge).status == status


def test_a_judge_in_c_without_a_signature_is_given_the_value():
    assert attempt(lambda: 3, Case(), judge=bool).status == "passed"
    assert attempt(lambda: 0, Case(), judge=bool).status == "failed"


def test_every_judge_is_heard_and_says_why():
    def long(value):
        return Verdict(passed=False, score=0.25, reason="too short")

    def loud(value):
        return Verdict(passed=True, score=0.75)

    trial = attempt(lambda: "x", Case(), judge=[long, loud, long])
    assert trial.status == "failed"
    assert trial.reason == "the judge 'long': too short; the judge 'long 2': too short"
    assert list(trial.verdicts) == ["long", "loud", "long 2"]
    assert trial.score == pytest.approx(1.25 / 3)
    assert evaluate(lambda: "x", [Case()], judge=loud, trials=2).summary.score == 0.75


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_task_judges_and_what_it_uses_is_counted_apart(kind):
    critic = Agent(model=ScriptedModel(lambda _: [python_action(
        "task_success(Verdict(passed=value == 2 * n, score=0.5, reason=f'{n} gives {value}'))"
    )]))  # fmt: skip

    if kind == "sync":

        @critic.task
        def doubled(n: int, value: int) -> Verdict:
            """Tell whether the value is twice n."""
    else:

        @critic.task
        async def doubled(n: int, value: int) -> Verdict:
            """Tell whether the value is twice n."""

    report = evaluate(doubling("task_success(2)", "task_success(2)", "task_fail('no')"), CASES, judge=doubled)
    assert [trial.status for trial in report.trials] == ["passed", "failed", "failed"]
    assert report.trials[1].reason == "the judge 'doubled': 2 gives 2"
    assert (report.summary.usage.requests, report.summary.judging.requests) == (3, 2)
    assert report.summary.score == 0.5


def test_a_judging_task_that_ends_without_a_verdict_is_an_error():
    critic = Agent(model=ScriptedModel([[python_action("task_fail('hard to say')")]]))

    @critic.task
    def fine(value: int) -> bool: ...

    trial = attempt(lambda n: n, CASES[0], judge=fine)
    assert (trial.status, trial.reason) == ("error", "the judge 'fine': TaskFail: hard to say")
    assert trial.judging.requests == 1


def test_a_judge_that_runs_out_of_its_own_budget_is_an_error():
    critic = Agent(model=ScriptedModel(lambda _: [python_action("x = 1")]), budget=Budget(calls=1))

    @critic.task
    def fine(value: int) -> bool: ...

    trial = attempt(lambda n: n, CASES[0], judge=fine)
    assert trial.status == "error"
    assert isinstance(trial.exception, BudgetExceeded)
