"""`agex demo`: what it shows, and what it calls solved."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from agex.cli import demo
from agex.cli.demo import run_demo
from agex.cli.progress import LINES, Progress
from agex.models.local import LocalModel
from agex.testing import ScriptedModel

pytest.importorskip("pandas", reason="the demo works on a pandas DataFrame")

PRIME = """\
def next_prime(n):
    candidate = max(n + 1, 2)
    while any(candidate % d == 0 for d in range(2, candidate)):
        candidate += 1
    return candidate
task_success(next_prime)
"""
NOT_LARGER = PRIME.replace("n + 1", "n")
"""Gives 101 for 100, which the task's check asks for, and 7 for 7."""
ENDLESS = PRIME.replace("candidate = max(n + 1, 2)", "candidate = max(n + 1, 2)\n    while n == 7: pass")
MEANS = "task_success(df.groupby('region')[column].mean().to_dict())"
FIRST_AVERAGE = "task_success(sum(float(each) for each in readings) / len(readings))"
AVERAGE = """\
found = []
for each in readings:
    try:
        found.append(float(each))
    except ValueError:
        pass
task_success(sum(found) / len(found))
"""


def report_of(*code: str, console: Console | None = None) -> dict[str, Any]:
    model = ScriptedModel([f"```python\n{each}\n```" for each in code])
    return run_demo(model, quiet=console is None, console=console)


def shown_by(*code: str, width: int = 100, terminal: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, highlight=False, soft_wrap=True)
    report_of(*code, console=console)
    return file.getvalue()


def test_three_solved_tasks_are_right_on_the_hidden_cases() -> None:
    report = report_of(PRIME, MEANS, FIRST_AVERAGE, AVERAGE)
    told = [(one["solved"], one["hidden_cases"], one["turns"]) for one in report["tasks"]]
    assert told == [(True, "8 of 8", 1), (True, "5 of 5", 1), (True, "1 of 1", 2)]


def test_a_function_that_gives_7_for_7_is_not_called_solved() -> None:
    first = report_of(NOT_LARGER, MEANS, AVERAGE)["tasks"][0]
    assert (first["solved"], first["hidden_cases"]) == (False, "3 of 8")
    shown = shown_by(NOT_LARGER, MEANS, AVERAGE)
    assert "accepted, but wrong on a hidden case: finder(2) gave 2, not 3" in shown


def test_a_function_that_does_not_end_is_wrong_on_a_hidden_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "CASE_SECONDS", 0.2)
    first = report_of(ENDLESS, MEANS, AVERAGE)["tasks"][0]
    assert (first["solved"], first["hidden_cases"]) == (False, "7 of 8")


def test_means_that_are_wrong_are_not_called_solved() -> None:
    second = report_of(PRIME, "task_success({'north': 10.5})", AVERAGE)["tasks"][1]
    assert (second["solved"], second["hidden_cases"]) == (False, "1 of 5")


def test_each_turn_says_how_long_the_model_and_the_code_took() -> None:
    shown = shown_by(PRIME, MEANS, FIRST_AVERAGE, AVERAGE)
    assert re.search(r"tokens · \d+\.\d s", shown)
    assert re.search(r" · \d+\.\d\d s", shown)


def test_every_line_of_the_code_is_shown() -> None:
    code = f"{PRIME}{'# ' + 'x' * 150}\n"
    shown = shown_by(code, MEANS, AVERAGE, width=60)
    assert shown.replace("\n", "").replace(" ", "").count("x" * 150) == 1


def test_the_model_is_named_with_the_size_of_its_weights(tmp_path: Any) -> None:
    weights = tmp_path / "tiny-0.5b.gguf"
    weights.write_bytes(b"GGUF" + bytes(2_999_996))
    assert demo._described(LocalModel(weights)) == (
        "local:tiny-0.5b (3 MB of weights, on this machine's CPU)"
    )


def test_a_model_of_a_provider_is_named() -> None:
    shown = shown_by(PRIME, MEANS, AVERAGE)
    assert shown.splitlines()[0].endswith("(its provider does not say how large it is)")


def test_no_colour_is_one_that_a_light_terminal_swallows() -> None:
    shown = shown_by(PRIME, MEANS, FIRST_AVERAGE, AVERAGE, terminal=True)
    used = {part for found in re.findall(r"\x1b\[([\d;]+)m", shown) for part in found.split(";")}
    # Yellow and white; the bright ones; none of a palette of its own, which knows no background.
    assert used.isdisjoint({"33", "37", *map(str, range(90, 98)), "38", "48"})
    assert {"32", "31"} <= used


def test_what_the_model_writes_is_shown_as_it_comes_and_a_cut_is_marked() -> None:
    console = Console(file=io.StringIO(), width=80)
    progress = Progress(console)
    from agex.agent import Token

    progress.token(Token("\n".join(f"x = {n}" for n in range(40)), agent="a", task="t", turn=1))
    console.print(progress)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[0].startswith("... (")
    assert lines[1:LINES] == [f"x = {n}" for n in range(41 - LINES, 40)]
