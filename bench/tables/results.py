"""Results in a file that grows by a problem at a time, and their figures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agex.evals.summary import wilson_interval

__all__ = ["Results", "line", "summary", "table"]

Row = Mapping[str, Any]


class Results:
    """The results of one side, in memory and in a file.

    Args:
        path: of the JSON file; None keeps them in memory only.
        head: what all of them have in common; a file with another one is refused.
    """

    def __init__(self, path: Path | None, head: Mapping[str, Any]) -> None:
        self._path = path
        self._head = dict(head)
        self.rows: list[Row] = []
        if path is not None and path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            other = {name: found.get(name) for name in self._head}
            if other != self._head:
                raise SystemExit(f"{path} has results of {other}, not of {self._head}; give another --out.")
            self.rows = found["tasks"]

    @property
    def done(self) -> set[str]:
        """The names of the problems that have a result."""
        return {row["task"] for row in self.rows}

    def add(self, row: Row) -> None:
        """Add a result, and write all of them: a run that is broken off goes on from there."""
        self.rows.append(row)
        if self._path is not None:
            document = {**self._head, "summary": summary(self.rows), "tasks": self.rows}
            part = self._path.with_name(f"{self._path.name}.part")
            part.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            os.replace(part, self._path)  # noqa: PTH105 - whole, or not at all


def summary(rows: Iterable[Row]) -> dict[str, Any]:
    """Add results up."""
    each = list(rows)
    passed = sum(row["passed"] for row in each)
    wrong = sum(row["confident_wrong"] for row in each)
    return {
        "tasks": len(each),
        "passed": passed,
        "pass_rate": round(passed / len(each), 4) if each else None,
        "interval": [round(bound, 4) for bound in wilson_interval(passed, len(each))] if each else None,
        "confident_wrong": wrong,
        "without_value": sum(not row["accepted"] for row in each),
        "turns": sum(row["turns"] for row in each),
        "requests": sum(row["requests"] for row in each),
        "input_tokens": sum(row["input_tokens"] for row in each),
        "output_tokens": sum(row["output_tokens"] for row in each),
        "seconds": round(sum(row["seconds"] for row in each), 1),
        "families": {
            family: [
                sum(row["passed"] for row in each if row["family"] == family),
                sum(row["family"] == family for row in each),
            ]
            for family in dict.fromkeys(row["family"] for row in each)
        },
    }


def line(row: Row, number: int, count: int) -> str:
    """Return a result as one line of progress."""
    mark = "pass" if row["passed"] else "WRONG" if row["confident_wrong"] else "none"
    reason = "" if row["passed"] else f"  {row['reason'][:90]}"
    return (
        f"[{number}/{count}] {mark:<5} {row['task']:<30} {row['turns']} turns {row['seconds']:6.1f} s{reason}"
    )


def table(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the figures of several sides as a table of Markdown."""
    lines = [
        "| side | model | passed | 95 % interval | confident wrong | turns | tokens in / out | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for each in documents:
        found = each["summary"]
        low, high = found["interval"] or (0.0, 1.0)
        lines.append(
            f"| {each['side']} | {each['model']} | {found['passed']}/{found['tasks']} | "
            f"{low:.0%} to {high:.0%} | "
            f"{found['confident_wrong']} | {found['turns']} | "
            f"{found['input_tokens']} / {found['output_tokens']} | {found['seconds']} |"
        )
    return "\n".join(lines)
