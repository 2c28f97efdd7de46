"""``python -m pytest`` and ``python -m unittest`` in the terminal: small runners over the workspace.

Stopped by: shell.test_runners, sandbox.stdlib.
"""

from __future__ import annotations

import pytest

from agex import connect_fs
from agex.sandbox import Policy, Sandbox
from agex.shell import Terminal, guest_terminal

CALC = "def add(a, b): return a + b\n"
TESTS = """
import pytest
from calc import add

@pytest.fixture
def two():
    yield 2

@pytest.mark.parametrize("a,b", [(1, 3), (2, 4)])
def test_add(a, b, two):
    assert add(a, two) == b

def test_raises():
    with pytest.raises(TypeError, match="unsupported"):
        add(1, None)
    assert 0.1 + 0.2 == pytest.approx(0.3)

def test_bad(capsys):
    print("hello")
    assert capsys.readouterr().out == "no"

@pytest.mark.skip(reason="later")
def test_later():
    assert False
"""
CASES = """
import unittest
class T(unittest.TestCase):
    def test_a(self): self.assertEqual(1, 1)
    def test_b(self): self.assertEqual([1], [2])
if __name__ == "__main__":
    unittest.main()
"""


@pytest.fixture
def terminal() -> Terminal:
    session = Sandbox(Policy.default(), fs=connect_fs(type="virtual")).session()
    source = "for name, text in files.items():\n    open(name, 'w').write(text)"
    files = {"calc.py": CALC, "test_calc.py": TESTS, "test_cases.py": CASES}
    session.add({"files": files})
    assert session.run(source).error is None
    return guest_terminal(session, {})


def test_pytest_runs_functions_fixtures_and_classes_and_says_which_failed(terminal: Terminal) -> None:
    ran = terminal.run("python -m pytest")

    assert ran.exit_code == 1
    assert "4 passed, 2 failed, 1 skipped" in ran.text
    assert "FAILED test_calc.py::test_bad - AssertionError" in ran.text
    assert "FAILED test_cases.py::T::test_b" in ran.text
    assert "agex's own small runner" in ran.text


def test_pytest_runs_what_a_word_selects(terminal: Terminal) -> None:
    ran = terminal.run("python -m pytest test_calc.py -v -k add")

    assert ran.exit_code == 0
    assert "test_calc.py::test_add[1-3] PASSED" in ran.text


@pytest.mark.parametrize(
    "command", ["python -m unittest", "python -m unittest test_cases", "python test_cases.py"]
)
def test_unittest_runs_classes_and_its_status_is_that_of_the_tests(terminal: Terminal, command: str) -> None:
    ran = terminal.run(command)

    assert ran.exit_code == 1
    assert "Ran 2 tests" in ran.text
    assert "FAILED (failures=1)" in ran.text


def test_a_script_ends_with_the_status_that_it_says(terminal: Terminal) -> None:
    assert terminal.run("python -c 'import sys; sys.exit(3)'").exit_code == 3
    assert terminal.run("python -c 'import sys; sys.exit()'").exit_code == 0
    ran = terminal.run("python -c 'import sys; sys.exit(\"no data\")'")
    assert (ran.exit_code, ran.text.strip()) == (1, "no data")
