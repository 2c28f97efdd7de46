"""What a report says: as JSON, whose form is a promise, and as a table."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from agex import Agent, Usage
from agex.evals import Case, Outcome, Report, Verdict, evaluate
from agex.testing import ScriptedModel, python_action


def report(**settings):
    agent = Agent(model=ScriptedModel([
        [python_action("task_success(2 * n)")],
        [python_action("task_fail('too [bold]hard')")],
        [python_action("task_success(2 * n)")],
        [python_action("task_success(2 * n)")],
    ]))  # fmt: skip

    @agent.task
    def double(n: int) -> int: ...

    cases = [Case(name="one", inputs={"n": 1}, expected=2), Case(inputs={"n": 2}, expected=5)]
    return evaluate(double, cases, trials=2, **settings)


def printed(shown, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    return console.file.getvalue()


USAGE = {"requests", "input_tokens", "output_tokens", "cost"}
SUMMARY = {
    "trials", "passed", "failed", "errors", "stopped", "pass_rate", "interval", "score", "turns", "usage",
    "judging", "seconds",
}  # fmt: skip


def test_the_json_of_a_report_has_the_documented_form():
    document = json.loads(report(name="doubles").to_json())
    assert set(document) == {
        "schema", "name", "model", "max_concurrency", "confidence", "seconds", "summary", "cases",
    }  # fmt: skip
    assert document["schema"] == "agex.evals/1"
    assert (document["name"], document["model"]) == ("doubles", "testing:scripted")
    assert set(document["summary"]) == SUMMARY
    assert set(document["summary"]["usage"]) == set(document["summary"]["judging"]) == USAGE
    assert document["summary"]["interval"] == [pytest.approx(0.150, abs=1e-3), pytest.approx(0.850, abs=1e-3)]
    first, second = document["cases"]
    assert set(first) == {"name", "inputs", "expected", "summary", "trials"}
    assert (first["name"], first["inputs"], first["expected"]) == ("one", {"n": "1"}, "2")
    assert (first["summary"]["pass_rate"], second["summary"]["pass_rate"]) == (1.0, 0.0)
    assert set(first["trials"][0]) == {
        "number", "status", "reason", "value", "exception", "verdicts", "run_id", "turns", "usage", "judging",
        "seconds",
    }  # fmt: skip
    assert first["trials"][0]["verdicts"] == {"equals": {"passed": True, "score": None, "reason": ""}}
    failed = second["trials"][0]
    assert (failed["status"], failed["reason"], failed["exception"]) == (
        "failed",
        "TaskFail: too [bold]hard",
        "TaskFail",
    )
    assert second["trials"][1]["value"] == "4"


def test_a_report_is_written_to_a_file(tmp_path):
    made = report()
    made.write(tmp_path / "report.json")
    text = (tmp_path / "report.json").read_text()
    assert json.loads(text) == made.to_dict()
    assert text.endswith("}\n")


def test_what_was_not_measured_is_null():
    def free(n):
        return Outcome(value=n, usage=Usage(requests=1, cost=None))

    document = evaluate(free, [Case(inputs={"n": 1})], judge=lambda value: True).to_dict()
    assert document["model"] is None
    assert document["summary"]["usage"]["cost"] is None
    assert document["cases"][0]["expected"] is None
    json.dumps(document, allow_nan=False)


def test_values_that_are_no_json_are_shown_as_text_and_bounded():
    document = evaluate(
        lambda x: {1: float("nan"), "s": "\ud800" * 5000}, [Case(inputs={"x": {1, 2}})], judge=lambda v: True
    ).to_json()
    (case,) = json.loads(document)["cases"]
    assert case["inputs"] == {"x": "{1, 2}"}
    assert len(case["trials"][0]["value"]) <= 500


def test_figures_of_a_case_are_found_by_its_name():
    made = report()
    assert (made.of_case("one").passed, made.of_case(made.cases[1]).passed) == (2, 0)
    with pytest.raises(KeyError):
        made.of_case("two")


def test_a_terminal_shows_a_row_for_each_case_one_for_all_and_the_mean():
    lines = printed(report()).splitlines()
    assert "double, testing:scripted" in lines[0]
    rows = {
        cells[0]: cells[1:] for line in lines if len(cells := [c.strip() for c in line.split("│")[1:-1]]) > 1
    }
    assert rows["one"][:2] == ["2/2", "100% [34%, 100%]"]
    assert rows["2"][:2] == ["0/2", "0% [0%, 66%]"]
    assert rows["all"][:2] == ["2/4", "50% [15%, 85%]"]
    assert (rows["all"][3], rows["a trial"][3]) == ("4", "1.0")
    assert rows["all"][5] == "0"


def test_a_terminal_shows_costs_scores_errors_and_what_was_stopped():
    def subject(n):
        if n == 2:
            raise LookupError
        return Outcome(value=n, usage=Usage(requests=1, input_tokens=2000, cost=0.5))

    def graded(value):
        return Verdict(passed=True, score=0.25)

    from agex import Budget

    cases = [Case(inputs={"n": n}) for n in (1, 2, 3, 4)]
    shown = printed(evaluate(subject, cases, judge=graded, budget=Budget(calls=2)))
    rows = {
        c[0]: c[1:] for line in shown.splitlines() if len(c := [c.strip() for c in line.split("│")[1:-1]]) > 1
    }
    assert rows["all"][:6] == ["2/3", "67% [21%, 94%]", "1", "0", "4,000", "$1.0000"]
    assert rows["a trial"][1:6] == ["score 0.25", "", "0.0", "1,333", "$0.3333"]
    assert rows["4"][:2] == ["0/0", "-"]
    assert "1 stopped: the budget was used up" in shown


def test_names_are_neither_markup_nor_commands_of_the_terminal():
    shown = printed(evaluate(lambda: 1, [Case(name="[red]x\x1b[2J", expected=1)], name="[b]y"))
    assert "[red]x?[2J" in shown
    assert "[b]y" in shown
    assert "\x1b" not in shown


def test_a_report_says_in_short_what_it_is():
    assert repr(report()) == "<agex report double: 2 of 4 passed>"
    assert Report(name="x", cases=(), trials=()).pass_rate is None
