"""Programs that do not end by themselves, and how long after their limit they are ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from agex.sandbox import Limits, Policy, Sandbox

__all__ = ["RUNAWAYS", "Ending", "as_json", "measure_here", "measure_runaways"]

_LIMIT = 0.5  # seconds
_PATIENCE = 20.0  # seconds after which a program that cannot be ended is killed

RUNAWAYS = {
    "while True: pass": "while True:\n    pass",
    "time.sleep(60)": "import time\ntime.sleep(60)",
    "10**10**8": "x = 10**10**8",
    "catastrophic regex": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
    "except: pass": "while True:\n    try:\n        while True:\n            pass\n    except:\n        pass",
    "finally: continue": (
        "while True:\n    try:\n        while True:\n            pass\n    finally:\n        continue"
    ),
    "__exit__ returns True": (
        "class Deaf:\n    def __enter__(self): pass\n    def __exit__(self, *error): return True\n"
        "while True:\n    with Deaf():\n        while True:\n            pass"
    ),
    "100 MB of prints": "while True:\n    print('x' * 1000)",
    "generator bomb": (
        "def bomb():\n    yield 1\n    for each in [bomb() for _ in range(100)]:\n        yield from each\n"
        "for _ in bomb():\n    pass"
    ),
    "lambda in a C loop": "list(filter(lambda x: False, iter(int, 1)))",
    "endless recursion, caught": (
        "def f():\n    try:\n        f()\n    except RecursionError:\n        f()\n    f()\nf()"
    ),
    "1 GB under 500 MB": "x = bytearray(1_000_000_000)",
    "sum(range(10**11))": "sum(range(10**11))",
}
"""The last one never looks for signals: only a worker process can end it."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How one program came to its end."""

    program: str
    error: str
    """The error that the host is told, or why there is none."""
    over: float | None
    """Seconds past the limit; negative where another limit was first; None if it had to be killed."""


def measure_here(name: str) -> Ending:
    """Run one program in this process."""
    limits = Limits(seconds=_LIMIT, memory_mb=500 if name.endswith("under 500 MB") else None)
    sandbox = Sandbox(Policy.default(), limits=limits)
    sandbox.exec("import re, time")
    start = time.monotonic()
    result = sandbox.exec(RUNAWAYS[name])
    seconds = time.monotonic() - start
    error = "none" if result.error is None else f"{type(result.error).__name__}: {result.error}"
    return Ending(program=name, error=error[:80], over=seconds - _LIMIT)


def measure_runaways() -> list[Ending]:
    """Run each program in a process of its own."""
    return [_in_child(name) for name in RUNAWAYS]


def _in_child(name: str) -> Ending:
    command = [sys.executable, "-m", "bench.sandbox", "--runaway", name]
    root = Path(__file__).parents[2]
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command, cwd=root, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return Ending(program=name, error=f"killed after {_PATIENCE:g} s", over=None)
    if done.returncode != 0:
        return Ending(program=name, error=f"the process died: {done.stderr[-200:]}", over=None)
    return Ending(**json.loads(done.stdout.splitlines()[-1]))


def as_json(ending: Ending) -> str:
    """Give an ending as the line that `measure_runaways` reads."""
    return json.dumps(asdict(ending))
