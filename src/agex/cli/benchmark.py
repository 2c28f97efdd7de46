"""The results of a benchmark: a file that grows by a problem at a time, its figures, and two files compared.

A benchmark tries the same problems on several *sides*: the product, the bare model, the product with samples,
the product with a second, stronger model.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agex import __version__
from agex.errors import DefinitionError
from agex.evals import Trial, wilson_interval

__all__ = [
    "Difference",
    "Results",
    "compared",
    "comparison_table",
    "differences",
    "figures",
    "provenance",
    "table",
]

Document = Mapping[str, Any]
_ADDED_UP = ("turns", "requests", "input_tokens", "output_tokens", "seconds")
_REASON_CHARS = 500


def figures(trial: Trial, *, accepted: bool) -> dict[str, Any]:
    """Return the result of one problem on one side.

    Args:
        trial: of the problem.
        accepted: whether there was an answer: a value that the product returned, a function that the bare
            model wrote. If such an answer does not pass, it is a *confident wrong* one.
    """
    passed = trial.status == "passed"
    return {
        "passed": passed,
        "accepted": accepted,
        "confident_wrong": accepted and not passed,
        "reason": "" if passed else trial.reason[:_REASON_CHARS],
        "turns": trial.turns,
        "requests": trial.usage.requests,
        "input_tokens": trial.usage.input_tokens,
        "output_tokens": trial.usage.output_tokens,
        "seconds": round(trial.seconds, 2),
    }


def provenance() -> dict[str, str]:
    """Return what figures depend on beside the model (commit, interpreter, machine), and the day."""
    return {
        "date": dt.date.today().isoformat(),  # noqa: DTZ011 - where it is read
        "commit": _commit(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def _commit() -> str:
    """Return the commit of this source, with ``+`` where files differ; its version where it is installed."""
    version: str = __version__
    here = Path(__file__).parent
    asked = ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 - git
    except FileNotFoundError:
        return version
    return done.stdout.strip() if done.returncode == 0 else version


class Results:
    """The results of some problems on some sides, in memory and in a file.

    Args:
        head: the benchmark, models and settings that all results have in common.
        path: of the JSON file; None keeps them in memory only. Results that it has are not made again.

    Raises:
        DefinitionError: the file has results of something else.
    """

    def __init__(self, head: Mapping[str, Any], path: Path | None = None) -> None:
        self._head = dict(head)
        self._path = path
        self._rows: dict[str, dict[str, Any]] = {}
        if path is None or not path.exists():
            return
        found = _read(path)
        for name, wanted in self._head.items():
            if name != "date" and found.get(name) != wanted:
                raise DefinitionError(
                    f"{path} has results for {name} = {found.get(name)!r}, not {wanted!r}. "
                    "Name another file, or remove it to begin anew."
                )
        self._rows = {row["task"]: dict(row) for row in found["problems"]}

    def of(self, side: str, task: str) -> dict[str, Any] | None:
        """Return the result of a problem on a side, or None if there is none yet."""
        found: dict[str, Any] | None = self._rows.get(task, {}).get(side)
        return found

    def add(self, side: str, task: str, result: Mapping[str, Any], *, family: str = "") -> None:
        """Add a result, and write all of them: a run that is broken off goes on from there."""
        row = self._rows.setdefault(task, {"task": task, **({"family": family} if family else {})})
        row[side] = dict(result)
        if self._path is not None:
            part = self._path.with_name(f"{self._path.name}.part")
            part.write_text(json.dumps(self.document(), indent=1) + "\n", encoding="utf-8")
            os.replace(part, self._path)  # noqa: PTH105 - whole, or not at all

    def document(self) -> dict[str, Any]:
        """Return the head, the figures of each side, and all results, as JSON has them."""
        rows = list(self._rows.values())
        return {**self._head, "sides": {side: _total(rows, side) for side in _sides(rows)}, "problems": rows}


def _read(path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DefinitionError(f"{path} is not a file of results: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("problems"), list):
        raise DefinitionError(f"{path} is not a file of results; agex bench humaneval --out writes one.")
    return found


def _sides(rows: Sequence[Document]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, dict)))


def _total(rows: list[dict[str, Any]], side: str) -> dict[str, Any]:
    """Add the results of a side up."""
    tried = [row for row in rows if side in row]
    each = [row[side] for row in tried]
    passed = sum(one["passed"] for one in each)
    total: dict[str, Any] = {
        "problems": len(each),
        "passed": passed,
        "pass_rate": round(passed / len(each), 4),
        "interval": [round(bound, 4) for bound in wilson_interval(passed, len(each))],
        "confident_wrong": sum(one["confident_wrong"] for one in each),
        **{name: round(sum(one[name] for one in each), 1) for name in _ADDED_UP},
    }
    if families := dict.fromkeys(row["family"] for row in tried if "family" in row):
        total["families"] = {
            family: [
                sum(row[side]["passed"] for row in tried if row["family"] == family),
                sum(row["family"] == family for row in tried),
            ]
            for family in families
        }
    return total


def table(document: Document) -> str:
    """Return the figures of each side as a table of Markdown."""
    lines = [
        "| side | passed | 95 % interval | confident wrong | turns | tokens in / out | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for side, found in document["sides"].items():
        low, high = found["interval"]
        lines.append(
            f"| {side} | {found['passed']}/{found['problems']} | {low:.0%} to {high:.0%} | "
            f"{found['confident_wrong']} | {found['turns']} | "
            f"{found['input_tokens']:,} / {found['output_tokens']:,} | {found['seconds']:,.0f} |"
        )
    return "\n".join(lines)


# -- two of them


class Difference(NamedTuple):
    """Two sides on the problems that both have tried."""

    name: str
    problems: int
    before: int
    """Passed."""
    after: int
    won: tuple[str, ...]
    """Passed after, and not before."""
    lost: tuple[str, ...]
    p: float
    """How often chance alone makes as many wins and losses differ as much: the exact sign test, two-sided
    (McNemar, 1947)."""


def compared(before: Path, after: Path | None = None) -> list[Difference]:
    """Compare the sides of one file with its bare model, or each side of a file with that of another.

    Raises:
        DefinitionError: a file has no results, or they have no side and problem in common.
    """
    return differences(_read(before), None if after is None else _read(after))


def differences(before: Document, after: Document | None = None) -> list[Difference]:
    """Compare documents of results, like `compared`."""
    rows = {row["task"]: row for row in before["problems"]}
    if after is None:
        pairs = [(f"{side} over bare", "bare", side) for side in _sides(before["problems"]) if side != "bare"]
        others = rows
    else:
        if before.get("benchmark") != after.get("benchmark"):
            raise DefinitionError("the two files are of different benchmarks.")
        pairs = [(side, side, side) for side in _sides(after["problems"])]
        others = {row["task"]: row for row in after["problems"]}
    found = [
        each
        for name, one, other in pairs
        if (each := _difference(name, list(_pairs(rows, one, others, other)))) is not None
    ]
    if not found:
        raise DefinitionError("there is nothing to compare: no side has a problem in common.")
    return found


def _pairs(
    rows: Mapping[str, Document], side: str, others: Mapping[str, Document], other: str
) -> Iterator[tuple[str, bool, bool]]:
    for task, row in rows.items():
        if side in row and other in others.get(task, {}):
            yield task, row[side]["passed"], others[task][other]["passed"]


def _difference(name: str, pairs: list[tuple[str, bool, bool]]) -> Difference | None:
    if not pairs:
        return None
    won = tuple(task for task, before, after in pairs if after and not before)
    lost = tuple(task for task, before, after in pairs if before and not after)
    return Difference(
        name=name,
        problems=len(pairs),
        before=sum(before for _, before, _ in pairs),
        after=sum(after for _, _, after in pairs),
        won=won,
        lost=lost,
        p=_sign_test(len(won), len(lost)),
    )


def _sign_test(won: int, lost: int) -> float:
    count = won + lost
    tail: float = sum(math.comb(count, k) for k in range(min(won, lost) + 1)) / 2**count
    return min(1.0, 2 * tail)


def comparison_table(differences: list[Difference]) -> str:
    """Return comparisons as a table of Markdown."""
    lines = [
        "| side | problems | before | after | points | won | lost | p |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each.name} | {each.problems} | {each.before} | {each.after} | "
        f"{100 * (each.after - each.before) / each.problems:+.1f} | "
        f"{len(each.won)} | {len(each.lost)} | {each.p:.3f} |"
        for each in differences
    ]
    return "\n".join(lines)
