"""The command: ``python -m bench.tables``, from the root of the repository.

It tries the problems one after the other and writes a result for each; with ``--out`` a run that is broken
off goes on from there. ``--report A.json B.json`` prints the figures of several files as a table.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bench.tables.problem import HIDDEN_SEED, Problem
from bench.tables.problems import PROBLEMS
from bench.tables.results import Results, line, summary, table
from bench.tables.sides import SIDES, Settings, solve

from agex import LLMFail
from agex.agent import ActionEvent, Run
from agex.evals import Case, Trial, Verdict, attempt
from agex.models import PythonAction, resolve_model

__all__ = ["main", "tried"]

_CODE_CHARS = 4_000
"""Of the last action, for whoever reads the failures."""


def main() -> None:
    """Run one side, or print the figures of several."""
    options = _parser().parse_args()
    if options.report:
        print(table(json.loads(path.read_text(encoding="utf-8")) for path in options.report))
        return
    model = resolve_model(options.model)
    strong = None if options.strong is None else resolve_model(options.strong)
    if options.side == "escalation" and strong is None:
        raise SystemExit("--side escalation needs --strong MODEL, which is asked where --model fails.")
    settings = Settings(options.side, model, turns=options.turns, strong=strong)
    results = Results(options.out, _head(options, settings))
    problems = PROBLEMS[: options.limit]
    for number, problem in enumerate(problems, start=1):
        if problem.name not in results.done:
            row = tried(problem, settings)
            results.add(row)
            print(line(row, number, len(problems)), flush=True)
    document = {**_head(options, settings), "summary": summary(results.rows)}
    print(table([document]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.tables", description=__doc__)
    parser.add_argument("--model", help="as agex takes it, e.g. local or local:/path/to/model.gguf")
    parser.add_argument("--side", choices=SIDES, default="product", help="what is tried")
    parser.add_argument("--strong", help="the second model, for --side escalation")
    parser.add_argument("--turns", type=int, default=4, help="of one task; the bare model has one")
    parser.add_argument("--limit", type=int, default=len(PROBLEMS), help="the first N problems")
    parser.add_argument("--out", type=Path, help="a JSON file; results that it has are not made again")
    parser.add_argument("--report", type=Path, nargs="+", help="print the figures of these files instead")
    return parser


def _head(options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    models = [
        settings.model,
        *([settings.strong] if settings.side == "escalation" and settings.strong else []),
    ]
    return {
        "benchmark": "tables",
        "side": options.side,
        "model": ", ".join(f"{each.provider}:{each.name}" for each in models),
        "turns": 1 if options.side == "bare" else options.turns,
        "seed": HIDDEN_SEED,
    }


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
    accepted = trial.exception is None
    return {
        "task": problem.name,
        "family": problem.family,
        "passed": trial.status == "passed",
        "accepted": accepted,
        "confident_wrong": accepted and trial.status != "passed",
        "reason": trial.reason[:500],
        "turns": trial.turns,
        "requests": trial.usage.requests,
        "input_tokens": trial.usage.input_tokens,
        "output_tokens": trial.usage.output_tokens,
        "seconds": round(trial.seconds, 2),
        "code": _last_code(trial),
    }


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
