"""Attacks: answers that want to be judged right, and answers that want to break or hold up a judgement.

Stopped by: evals.
"""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agex import Agent
from agex.evals import Case, Verdict, attempt, evaluate
from agex.testing import ScriptedModel, python_action

LIAR = """
class Liar({base}):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash({expected!r})
    def __bool__(self): return True
task_success({value})
"""


def returning(code, annotation=object, **settings):
    agent = Agent(model=ScriptedModel([[python_action(code)]]), max_iterations=1, **settings)

    def answer(): ...

    answer.__annotations__ = {"return": annotation}
    return agent.task(answer)


@pytest.mark.parametrize(
    ("base", "value", "annotation", "expected"),
    [
        ("str", "Liar('wrong')", str, "right"),
        ("int", "Liar(3)", int, 4),
        ("str", "[Liar('wrong')]", list[str], ["right"]),
        ("str", "{Liar('wrong')}", set[str], {"right"}),
        ("str", "{Liar('wrong'): 1}", dict[str, int], {"right": 1}),
        ("object", "Liar()", object, "right"),
        ("object", "{Liar()}", object, {"right"}),
        ("list", "Liar()", object, [1]),
    ],
)
def test_an_answer_that_says_it_equals_everything_does_not_pass(base, value, annotation, expected):
    code = LIAR.format(base=base, value=value, expected=next(iter(expected), 0) if base == "str" else "right")
    trial = attempt(returning(code, annotation), Case(expected=expected))
    assert trial.run is not None
    assert trial.run.ok
    assert trial.status == "failed"


def test_an_answer_whose_comparison_is_no_bool_is_an_error_and_no_yes():
    code = "class Yes:\n    def __eq__(self, other): return self\ntask_success(Yes())"
    trial = attempt(returning(code), Case(), judge=lambda value: value == 3)
    assert trial.status == "error"
    assert "return True, False or a Verdict" in trial.reason


RAISING = """
class Odd({base}):
    def __str__(self): raise ZeroDivisionError("asked")
    def __repr__(self): raise ZeroDivisionError("asked")
    run = property(lambda self: 3)
def f():
    raise {raised}
task_success(f)
"""


@pytest.mark.parametrize("base", ["Exception", "BaseException", "KeyboardInterrupt", "SystemExit"])
@pytest.mark.parametrize("raised", ["Odd()", "ValueError(Odd())", "SystemExit(0)", "GeneratorExit"])
def test_what_an_answer_raises_in_a_judge_is_an_error_of_that_trial_alone(base, raised):
    agent = Agent(model=ScriptedModel([[python_action(RAISING.format(base=base, raised=raised))]] * 2))

    @agent.task
    def make() -> object: ...

    report = evaluate(make, [Case(), Case()], judge=lambda value: value() == 1)
    assert [trial.status for trial in report.trials] == ["error", "error"]
    assert "the judge '<lambda>'" in report.trials[0].reason
    report.to_json()


def test_an_exception_that_lies_about_its_class_does_not_end_the_evaluation():
    class Lie(Exception):
        __class__ = property(lambda self: KeyboardInterrupt)

    def judge(value):
        raise Lie

    assert attempt(lambda: 1, Case(), judge=judge).status == "error"


@pytest.mark.parametrize("method", ["__repr__", "__str__", "__format__", "__len__", "__iter__", "__bool__"])
def test_a_value_that_never_ends_when_it_is_asked_is_not_asked(method):
    code = (
        f"class Slow(str):\n    def {method}(self, *args):\n        while True: pass\ntask_success(Slow('x'))"
    )
    report = evaluate(returning(code), [Case(expected="x")])
    document = report.to_dict()
    assert report.summary.passed == 1
    assert document["cases"][0]["trials"][0]["value"]


@pytest.mark.parametrize("call", ["task_fail", "task_clarify"])
def test_a_message_that_never_ends_when_it_is_asked_is_asked_within_the_limits_of_the_action(call):
    code = f"class Slow(str):\n    def __str__(self):\n        while True: pass\n{call}(Slow('x'))"
    assert attempt(returning(code, timeout_seconds=0.5), Case(expected=1)).status == "failed"


def test_a_judge_may_not_smuggle_code_into_a_verdict():
    code = """
class Slow(str):
    def __format__(self, spec):
        while True: pass
    def __len__(self):
        while True: pass
class Much(float):
    def __add__(self, other):
        while True: pass
    __radd__ = __add__
task_success(Verdict(passed=False, score=Much(0.5), reason=Slow("because")))
"""
    report = evaluate(lambda: 1, [Case()], judge=returning(code, Verdict))
    (trial,) = report.trials
    assert (trial.status, trial.reason) == ("failed", "the judge 'answer': because")
    (verdict,) = trial.verdicts.values()
    assert (type(verdict.score), type(verdict.reason)) == (float, str)
    assert report.summary.score == 0.5


def test_what_an_agent_says_does_not_reach_the_terminal_in_a_table():
    report = evaluate(returning("task_fail('\\x1b[2J[link=http://x]')"), [Case(expected=1)])
    console = Console(file=io.StringIO(), width=100)
    console.print(report)
    assert "\x1b" not in console.file.getvalue()
    assert "link" not in console.file.getvalue()
