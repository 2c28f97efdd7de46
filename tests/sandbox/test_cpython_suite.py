"""CPython's own tests pass inside the sandbox, but for those in the ledger, each with its reason.

By default the modules about the language run; ``AGEX_DIFFERENTIAL=all`` adds builtin types and the standard set.
"""

from __future__ import annotations

import functools
import gc
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from differential import cpython

HERE = Path(__file__).parent / "differential"
ALL = os.environ.get("AGEX_DIFFERENTIAL") == "all"


@functools.cache
def _ledger() -> dict[str, Any]:
    return tomllib.loads((HERE / "cpython_ledger.toml").read_text("utf-8"))


def _ledgered(module: str) -> set[str]:
    rows = _ledger().get(module, [])
    return {method for row in rows if cpython.version() in row["on"] for method in row["methods"]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", cpython.MODULES if ALL else cpython.CORE)
def test_what_passes_in_cpython_passes_in_the_sandbox_but_for_the_ledger(module: str) -> None:
    source = cpython.source_of(module)
    if source is None:
        pytest.skip(f"this interpreter has no test.{module}")

    run = cpython.compare(source)
    gc.collect()  # coroutines and finalisers of these tests warn while that is still expected

    ledgered = _ledgered(module)
    assert {method: why for method, why in run.differing.items() if method not in ledgered} == {}
    assert ledgered & run.equal == set()
    assert ledgered <= run.differing.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", cpython.DOCTESTS)
def test_an_example_of_cpythons_tests_does_the_same_in_the_sandbox_but_for_the_ledger(module: str) -> None:
    source = cpython.source_of(module)
    if source is None:
        pytest.skip(f"this interpreter has no test.{module}")

    run = cpython.compare_examples(source)
    gc.collect()

    ledgered = _ledgered(f"{module}_examples")
    assert {example: why for example, why in run.differing.items() if example not in ledgered} == {}
    assert ledgered & run.equal == set()


def test_every_entry_of_the_ledger_has_a_reason() -> None:
    kinds = {row["why"].partition(": ")[0] for rows in _ledger().values() for row in rows}

    assert kinds <= {"refused", "not granted", "follows", "text", "differs"}


def test_the_ledger_names_modules_that_are_run() -> None:
    assert set(_ledger()) <= {*cpython.MODULES, *(f"{module}_examples" for module in cpython.DOCTESTS)}
