"""The programs that are timed: plain Python files whose answer is left in ``result``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["WORKLOADS", "Workload", "load"]

_FOLDER = Path(__file__).parent / "workloads"
_SIZE = re.compile(r"^N = ([\d_]+)$", re.MULTILINE)

WORKLOADS = (
    "int_loop", "module_loop", "nbody", "fannkuch", "spectral_norm", "word_count", "richards", "deltablue",
    "fib", "comprehensions", "pandas_frame", "numpy_small", "exceptions", "fstrings", "stdlib_glue",
)  # fmt: skip
"""In the order of the table. Each runs for 30 to 150 ms natively."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One program and the amount of work in it."""

    name: str
    source: str
    size: int
    """What the text says after ``N = ``."""

    def sized(self, size: int) -> Workload:
        """Give the same program with less or more work in it."""
        source = _SIZE.sub(f"N = {size}", self.source, count=1)
        return Workload(name=self.name, source=source, size=size)


def load(name: str) -> Workload:
    """Read a workload.

    Raises:
        ValueError: the text has no line ``N = <number>``.
    """
    source = (_FOLDER / f"{name}.py").read_text()
    found = _SIZE.search(source)
    if found is None:
        raise ValueError(f"{name}.py says no size; begin it with a line such as: N = 1_000")
    return Workload(name=name, source=source, size=int(found[1].replace("_", "")))
