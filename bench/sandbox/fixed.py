"""What a run costs before the program does anything: start, compile, import; and how deep it may recurse."""

from __future__ import annotations

import functools
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.sandbox.workload import WORKLOADS, load

from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.language.compiler import compile_module

__all__ = ["measure_fixed"]

_LINES = 500

_DEPTH = """
def deeper(n):
    global depth
    depth = n
    deeper(n + 1)

depth = 0
try:
    deeper(1)
except RecursionError:
    pass
result = depth
"""


def measure_fixed(pairs: int) -> dict[str, float]:
    """Measure every fixed cost; the unit is part of the name."""
    return {**_starts(pairs * 100), **_compiling(pairs), **_importing(pairs), **_depths()}


def _median(work: Callable[[], object], times: int) -> float:
    """Give the median CPU seconds of one call."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def _starts(times: int) -> dict[str, float]:
    policy = Policy.default()
    sandbox = Sandbox(policy)
    session = sandbox.session()
    full = sandbox.session()
    full.run("\n".join(f"class C{i}:\n  def __eq__(self, other): return self is other" for i in range(100)))
    names: dict[str, object] = {}
    return {
        "x = 1, plain exec of text, us": 1e6 * _median(lambda: exec("x = 1", names), times),  # noqa: S102
        "x = 1, reused session, us": 1e6 * _median(lambda: session.run("x = 1"), times),
        "x = 1, reused session of 100 classes, us": 1e6 * _median(lambda: full.run("x = 1"), times),
        "x = 1, fresh sandbox, us": 1e6 * _median(lambda: Sandbox(policy).exec("x = 1"), times),
        "x = 1, fresh policy and sandbox, us": 1e6 * _median(lambda: Sandbox().exec("x = 1"), times),
        "x = 1, fresh sandbox, no time limit, us": 1e6
        * _median(lambda: Sandbox(policy, limits=Limits(seconds=None)).exec("x = 1"), times),
    }


def _compiling(pairs: int) -> dict[str, float]:
    """Compile a program of everyday constructs: the workloads, one after the other."""
    source = ""
    for name in WORKLOADS:
        source += load(name).source + "\n"
    source = "\n".join(source.splitlines()[:_LINES])
    while not _is_whole(source):
        source = source.rpartition("\n")[0]
    rules = Policy.default().text
    native, guarded = [], []
    for i in range(pairs * 3):
        native.append(_median(lambda: compile(source, "<bench>", "exec"), 1))
        # Another file name is another key of the cache.
        guarded.append(_median(functools.partial(compile_module, source, f"<{i}>", rules), 1))
    hit = _median(lambda: compile_module(source, "<0>", rules), pairs * 100)
    lines = source.count("\n") + 1
    return {
        f"compile {lines} lines, CPython, ms": 1e3 * statistics.median(native),
        f"compile {lines} lines, agex, ms": 1e3 * statistics.median(guarded),
        "compile, ratio": statistics.median(g / n for g, n in zip(guarded, native, strict=True)),
        "compile, from the cache, us": 1e6 * hit,
    }


def _is_whole(source: str) -> bool:
    try:
        compile(source, "<bench>", "exec")
    except SyntaxError:
        return False
    return True


def _importing(pairs: int) -> dict[str, float]:
    programs = {
        "bare": "pass",
        "agex": "import agex",
        "agex.sandbox": "import agex.sandbox",
        # What it loads late: all that a sandbox needs.
        "agex.sandbox.Sandbox": "import agex.sandbox; agex.sandbox.Sandbox",
    }
    # An installed package has its bytecode files; here they may be neither made nor wanted.
    _started("import sys; sys.dont_write_bytecode = False; import agex.sandbox; agex.sandbox.Sandbox")
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(pairs + 4):
        for name, program in programs.items():
            seconds[name].append(_started(program))
    bare = seconds.pop("bare")
    return {
        f"import {name} over bare Python, ms CPU": 1e3
        * statistics.median(s - b for s, b in zip(found, bare, strict=True))
        for name, found in seconds.items()
    }


def _started(program: str) -> float:
    """Give the CPU seconds of an interpreter that runs *program*: the wall would time the neighbours, too."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - this interpreter
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def _depths() -> dict[str, float]:
    plain: dict[str, Any] = {"__name__": "__main__"}
    exec(_DEPTH, plain)  # noqa: S102 - the yardstick
    guest = Sandbox().exec(_DEPTH).namespace["depth"]
    return {"recursion depth, plain exec": plain["depth"], "recursion depth, guest": guest}
