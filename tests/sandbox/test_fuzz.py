"""A search for programs that come by what no guest may have, and the proof that it would see one.

``AGEX_FUZZ=<n>`` runs n examples, drawn anew; see docs/design/0006-fuzzing.md.

Stopped by: sandbox.
"""

from __future__ import annotations

import gc
import io
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fuzz import attack, programs
from hypothesis import HealthCheck, given, settings

from agex.sandbox import Policy, Sandbox

HERE = Path(__file__).parent / "fuzz"
WANTED = os.environ.get("AGEX_FUZZ")
EXAMPLES = int(WANTED) if WANTED else 150


host = attack.host


@pytest.fixture
def swept() -> Iterator[None]:
    """Collect what the programs leave before another test does, which lets no coroutine go unawaited."""
    yield
    gc.collect()


@pytest.mark.usefixtures("swept")
@pytest.mark.filterwarnings(
    "ignore:coroutine:RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@settings(
    max_examples=EXAMPLES,
    derandomize=WANTED is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs.programs())
def test_no_program_comes_by_what_it_may_not_have(program: str) -> None:
    done = attack.Attack(program, prelude=programs.SETUP)

    assert done.findings == [], programs.SETUP + program


# -- the oracle sees what it is there for ----------------------------------------------------------------


def _frame() -> Any:
    return sys._getframe()


def _traceback() -> Any:
    try:
        int("x")
    except ValueError as error:
        return error.__traceback__
    return None


class _Metaclass(type):
    pass


LEAKS: dict[str, Any] = {
    "a frame": _frame,
    "a code object": lambda: _frame.__code__,
    "a traceback": _traceback,
    "a real module": lambda: os,
    "the namespace of a module": lambda: vars(host),
    "the builtins": lambda: vars(sys.modules["builtins"]),
    "the real type": lambda: type,
    "a real metaclass": lambda: _Metaclass,
    "a real builtin": lambda: open,
    "a function that reaches the world": lambda: os.getcwd,
    "a class that reaches the world": lambda: __import__("subprocess").Popen,
    "all subclasses": object.__subclasses__,
    "a stream": lambda: sys.__stderr__,
    "a class of streams": lambda: io.FileIO,
    "the canary": lambda: host.CANARY,
    "a private function": lambda: host._private_function,
    "the secret": lambda: host.SECRET,
    "the secret in a list in a dict": lambda: {"a": [(host.SECRET,)]},
    "a policy": Policy,
    "a sandbox": Sandbox,
    "a session": lambda: Sandbox().session(),
    "a guard": lambda: Sandbox().session()._guards.check,
    "the guards": lambda: Sandbox().session()._guards,
    "the event loop": lambda: __import__("asyncio").new_event_loop(),
}

HOLDERS = {
    "a variable": "v = leak()",
    "an instance": "class A: pass\na = A()\na.x = leak()",
    "a slot": "class A: __slots__ = ('x',)\na = A()\na.x = leak()",
    "a class": "class A: x = leak()",
    "a closure": "def f():\n  x = leak()\n  return lambda: x\nf = f()",
    "a default": "def f(x=leak()): pass",
    "a generator": "def g():\n  x = leak()\n  yield\ng = g()\nnext(g)",
    "an exception": "e = ValueError(leak())",
    "a partial": "import functools\np = functools.partial(print, leak())",
    "a proxy": "import types\np = types.MappingProxyType({'a': leak()})",
    "a deque": "import collections\nd = collections.deque([leak()])",
}


def _leaky(leak: Any) -> Policy:
    policy = host.policy()
    policy.fn(leak, name="leak")
    return policy


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_a_host_function_that_gives_away_what_is_denied_is_found(leak: Any) -> None:
    made = leak()
    try:
        assert attack.Attack("v = leak()", _leaky(lambda: made)).findings != []
    finally:
        if hasattr(made, "run_in_executor"):
            made.close()


@pytest.mark.parametrize("source", HOLDERS.values(), ids=HOLDERS)
def test_what_is_denied_is_found_wherever_a_program_keeps_it(source: str) -> None:
    found = attack.Attack(source, _leaky(lambda: host.CANARY)).findings

    assert any("a private object of the host, a Canary" in each for each in found)


def test_a_module_that_a_policy_grants_raw_is_found() -> None:
    class Raw:
        """A grant that gives the module itself, as a careless host would."""

        per_session = None
        root = module_name = "math"

        def copy(self) -> ModuleType:
            import math

            return math

    policy = host.policy()
    policy.modules["math"] = Raw()  # type: ignore[assignment]

    assert "the real module math" in str(attack.Attack("import math", policy).findings)


def test_what_is_printed_is_looked_at() -> None:
    assert attack.Attack("print(leak())", _leaky(lambda: host.SECRET)).findings != []


CHANGES: dict[str, Any] = {
    "the canary": lambda: host.CANARY.__dict__.update(state="changed"),
    "a registered class": lambda: setattr(host.Vault, "describe", None),
    "a class of a library": lambda: setattr(__import__("string").Template, "x_of_a_test", 1),
    "a module": lambda: setattr(__import__("json"), "x_of_a_test", 1),
    "random": lambda: random.seed(5),  # pytest-randomly seeds before each test
    "an enum": lambda: setattr(host.Color.RED, "_value_", 7),
    "the streams": lambda: setattr(sys, "stdout", io.StringIO()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_host_function_that_changes_the_host_is_found(change: Any) -> None:
    try:
        assert attack.Attack("leak()", _leaky(change)).findings != []
    finally:
        host.restore()
        for module, name in (
            (sys.modules["string"].Template, "x_of_a_test"),
            (sys.modules["json"], "x_of_a_test"),
        ):
            if name in vars(module):
                delattr(module, name)
        host.CANARY.state = host.SECRET


def test_an_exception_that_leaves_a_run_is_found() -> None:
    def leak() -> None:
        raise KeyboardInterrupt

    assert attack.Attack("leak()", _leaky(leak)).findings == ["KeyboardInterrupt escaped to the host"]


HARMLESS = [
    "v = [vault, Vault, bound, vault.describe, Color.RED, host_fn, error] if (error := 1) else 0",
    "import math, json, typing, asyncio, enum, collections\nv = [math, json, typing, json.loads, typing.Any, asyncio.Queue]",
    "v = [type, type(int), getattr, vars, print, int, Exception, map, type(vault), object, super]",
    "class M(type): pass\nclass A(metaclass=M): pass\nv = M, A, A(), type(A), globals(), vars(A)",
    "import io, csv, contextlib\nv = io.StringIO('x'), io.BytesIO, contextlib.nullcontext(vault), vault.items(), host_generator()",
    "class S(Vault): pass\nv = S(), S, S.describe, super(S, S())",
]


@pytest.mark.parametrize("source", HARMLESS)
def test_what_a_guest_is_given_is_no_finding(source: str) -> None:
    done = attack.Attack(source)

    assert (done.result.error, done.findings) == (None, [])


def test_the_programs_do_something() -> None:
    """Most steps of most programs must run: a search among programs that are all refused finds nothing."""
    made: list[str] = []

    @settings(max_examples=50, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(programs.programs())
    def collect(program: str) -> None:
        made.append(program)

    collect()
    ended = [attack.Attack(program, prelude=programs.SETUP).result.error for program in made]

    assert sum(isinstance(error, SyntaxError) for error in ended) < len(made) / 4
