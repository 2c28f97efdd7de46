"""The command: ``python -m bench.tables``, from the root of the repository.

It tries each problem on each side and writes the result; with ``--out`` a run that is broken off goes on from
there. ``--report A.json B.json`` prints the figures of files as tables; ``agex bench compare`` compares them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.tables.problem import HIDDEN_SEED, Problem
from bench.tables.problems import PROBLEMS
from bench.tables.sides import SIDES, Settings, solve

from agex import LLMFail
from agex.agent import ActionEvent, Run
from agex.cli.benchmark import Results, figures, provenance, table
from agex.evals import Case, Trial, Verdict, attempt
from agex.models import PythonAction, resolve_model

__all__ = ["main", "tried"]

_CODE_CHARS = 4_000
"""Of the last action, for whoever reads the failures."""


def main() -> None:
    """Run sides, or print the figures of some files."""
    options = _parser().parse_args()
    if options.report:
        for path in options.report:
            print(table(json.loads(path.read_text(encoding="utf-8"))))
        return
    model = resolve_model(options.model)
    strong = None if options.strong is None else resolve_model(options.strong)
    if "escalation" in options.side and strong is None:
        raise SystemExit("--side escalation needs --strong MODEL, which is asked where --model fails.")
    head = {
        "benchmark": "tables",
        "model": f"{model.provider}:{model.name}",
        "strong": None if strong is None else f"{strong.provider}:{strong.name}",
        "turns": options.turns,
        "seed": HIDDEN_SEED,
        **provenance(),
    }
    results = Results(head, options.out)
    problems = PROBLEMS[: options.limit]
    for number, problem in enumerate(problems, start=1):
        for side in options.side:
            if results.of(side, problem.name) is None:
                row = tried(problem, Settings(side, model, turns=options.turns, strong=strong))
                results.add(side, problem.name, row, family=problem.family)
                print(_line(row, side, problem.name, f"{number}/{len(problems)}"), flush=True)
    print(table(results.document()))


def _line(row: Mapping[str, Any], side: str, name: str, place: str) -> str:
    mark = "pass" if row["passed"] else "WRONG" if row["confident_wrong"] else "none"
    spent = f"{row['turns']} turns {row['seconds']:6.1f} s"
    return f"[{place}] {name:<30} {side:<8} {mark:<5} {spent}  {row['reason'][:90]}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.tables", description=__doc__)
    parser.add_argument("--model", help="as agex takes it, e.g. local or local:/path/to/model.gguf")
    parser.add_argument(
        "--side", choices=SIDES, nargs="+", default=["product", "bare"], help="the sides to try"
    )
    parser.add_argument("--strong", help="the second model, for --side escalation")
    parser.add_argument("--turns", type=int, default=4, help="of one task; the bare model has one")
    parser.add_argument("--limit", type=int, default=len(PROBLEMS), help="the first N problems")
    parser.add_argument("--out", type=Path, help="a JSON file; results that it has are not made again")
    parser.add_argument("--report", type=Path, nargs="+", help="print the figures of these files instead")
    return parser


def tried(problem: Problem, settings: Settings) -> dict[str, Any]:
    """Try a problem on one side, and return its result.

    Raises:
        LLMFail: the model cannot be asked.
        Exception: the judge fails. Any other error is a result: a run that goes on would meet it again.
    """
    case = Case(name=problem.name, inputs={"problem": problem, "settings": settings})
    trial = attempt(solve, case, judge=_right)
    is_of_judge = trial.reason.startswith("the judge")
    if trial.exception is not None and (is_of_judge or isinstance(trial.exception, LLMFail)):
        raise trial.exception
    return {**figures(trial, accepted=trial.exception is None), "code": _last_code(trial)}


def _right(value: Any, problem: Problem) -> Verdict:
    """Judge a value by the reference solution, on data that is made anew."""
    wrong = problem.judge(value)
    return Verdict(passed=wrong is None, reason=wrong or "")


def _last_code(trial: Trial) -> str:
    """Return the code of the last action of a run."""
    run: Run[Any] | None = trial.run
    actions = [] if run is None else [each.actions for each in run.events if isinstance(each, ActionEvent)]
    last = next((each for each in reversed(actions) if each), ())
    return "\n".join(each.code for each in last if isinstance(each, PythonAction))[:_CODE_CHARS]


if __name__ == "__main__":
    sys.exit(main())
