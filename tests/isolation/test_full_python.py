"""Full Python in a worker: code is CPython's own, with real builtins and every installed package."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agex.errors import DefinitionError, EvalError
from agex.isolation import executor_of
from agex.isolation.kernel import missing
from agex.isolation.worker.full_programs import Programs
from agex.isolation.worker.host_session import RemoteSession
from agex.sandbox import Limits, Policy, Result

KERNEL = pytest.param(
    "kernel", marks=pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold: {missing()}")
)


@pytest.fixture(params=["process", KERNEL])
def level(request: pytest.FixtureRequest) -> str:
    return request.param


Opener = Callable[..., RemoteSession]


def double(x: Any) -> Any:
    """Return twice as much."""
    return x * 2


@pytest.fixture
def opened(level: Any) -> Iterator[Opener]:
    """Opens sessions of full Python at a level."""
    made: list[RemoteSession] = []

    def open_session(policy: Policy | None = None, seconds: float = 10.0, **settings: Any) -> RemoteSession:
        policy = policy or Policy.default()
        policy.fn(double)
        limits = Limits(seconds=seconds, **settings)
        session: Any = executor_of(level).session(policy, limits, {"rows": [1, 2]}, python="full")
        made.append(session)
        return session

    yield open_session
    for each in made:
        each.close()


def ran(session: RemoteSession, source: str, **options: Any) -> Result:
    """Run code that must raise nothing."""
    result = session.run(source, **options)
    assert result.traceback == ""
    return result


# -- what there is ---------------------------------------------------------------------------------


def test_code_that_guards_refuse_runs(opened):
    session = opened()
    assert ran(session, "().__class__.__base__ is object").echo == "True"
    assert ran(session, "import os, sys, ctypes, gc, inspect\nsys.getrefcount(rows) > 1").echo == "True"
    assert ran(session, "exec('y = 1')\nglobals()['y'], eval('y + 1')").echo == "(1, 2)"


def test_the_last_expression_is_shown_and_no_other(opened):
    session = opened()
    assert ran(session, "1\n2\nrows").echo == "[1, 2]"
    assert ran(session, "x = 3").echo is None
    assert ran(session, "None").echo is None
    assert ran(session, "rows", echo=False).echo is None


def test_names_live_on_from_action_to_action(opened):
    session = opened()
    ran(session, "def f(): return n\nn = 3")
    assert ran(session, "n += 1\nf()").echo == "4"


def test_the_module_of_the_code_is_main(opened):
    session = opened()
    assert ran(session, "class A: pass\n__name__, A.__module__").echo == "('__main__', '__main__')"
    assert ran(session, "import sys\nsys.modules['__main__'].A is A").echo == "True"


def test_instances_of_own_classes_can_be_pickled(opened):
    session = opened()
    source = "import pickle\nclass A:\n    def __init__(self): self.v = 1\npickle.loads(pickle.dumps(A())).v"
    assert ran(session, source).echo == "1"


def test_the_source_of_functions_and_classes_is_kept(opened):
    session = opened()
    ran(session, "def f(x):\n    return x + 1\n\nclass A:\n    n = 1\n", filename="<turn 1>")
    assert (
        ran(session, "import inspect\nprint(inspect.getsource(f))").stdout
        == "def f(x):\n    return x + 1\n\n"
    )
    assert ran(session, "print(inspect.getsource(A))").stdout == "class A:\n    n = 1\n\n"


def test_futures_hold_for_the_last_expression(opened):
    source = "from __future__ import annotations\ndef f(x: undefined): pass\n(lambda: f)().__annotations__"
    assert ran(opened(), source).echo == "{'x': 'undefined'}"


def test_an_installed_package_needs_no_registration(opened):
    assert ran(opened(), "import pandas as pd\npd.DataFrame({'a': [1, 2]}).a.sum()").echo in {
        "3",
        "np.int64(3)",
    }


def test_a_registered_module_has_the_name_that_it_is_registered_under(opened):
    policy = Policy.default()
    policy.module(math, name="numbers_of_mine")
    assert ran(opened(policy), "import numbers_of_mine as m\nm.sqrt(9)").echo == "3.0"


def test_the_builtins_are_real(opened):
    session = opened()
    assert ran(session, "import builtins\n__builtins__ is builtins").echo == "True"
    assert ran(session, "builtins.answer = 42\nanswer").echo == "42"


def test_threads_run_and_use_functions_of_the_host(opened):
    source = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n    r = list(pool.map(double, range(20)))\nr == [2 * x for x in range(20)]"
    )
    assert ran(opened(), source).echo == "True"


def test_code_awaits_at_its_top_level(opened):
    session = opened()
    source = "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return double(x)\nawait f(4)"
    assert asyncio.run(session.arun(source)).echo == "8"
    assert asyncio.run(session.arun("r = [await f(x) for x in rows]\nr")).echo == "[2, 4]"


def test_the_enforcement_says_that_it_was_full(opened, level):
    enforcement = ran(opened(), "1").enforcement
    assert (enforcement.python, enforcement.isolation) == ("full", level)


# -- errors ----------------------------------------------------------------------------------------


def test_a_traceback_shows_the_frames_of_the_code_and_no_others(opened):
    source = "import json\n\ndef f(text):\n    return json.loads(text)\n\nf('{')"
    result = opened().run(source, filename="<turn 1>")
    assert result.traceback == (
        "Traceback (most recent call last):\n"
        "  File \"<turn 1>\", line 6, in <module>\n    f('{')\n"
        '  File "<turn 1>", line 4, in f\n    return json.loads(text)\n'
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    )


def test_a_syntax_error_is_told(opened):
    result = opened().run("x = = 1")
    assert isinstance(result.error, SyntaxError)


def test_sys_exit_ends_the_program_and_no_worker(opened):
    session = opened()
    assert ran(session, "import sys\nx = 1\nsys.exit()\nx = 2").echo is None
    assert ran(session, "raise SystemExit(0)").echo is None
    result = session.run("sys.exit(3)")
    assert "the program ended itself by sys.exit(3); sys.exit() is a normal end" in str(result.error)
    assert ran(session, "x").echo == "1"


def test_an_error_of_a_library_crosses_under_its_nearest_known_base(opened):
    result = opened().run("import json\njson.loads('{')")
    assert isinstance(result.error, ValueError)


def test_an_error_whose_text_never_ends_is_told_without_it(opened):
    session = opened()
    result = session.run("class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E")
    assert "E" in result.traceback
    assert ran(session, "1").echo == "1"


# -- output ----------------------------------------------------------------------------------------


def test_all_that_is_printed_is_output(opened):
    session = opened()
    assert (
        ran(
            session,
            "import sys\nprint('a')\nsys.stderr.write('b\\n')\nsys.stdout.buffer.write(b'c\\n')\nNone",
        ).stdout
        == "a\nb\nc\n"
    )
    assert (
        ran(
            session, "import threading\nt = threading.Thread(target=print, args=('d',))\nt.start()\nt.join()"
        ).stdout
        == "d\n"
    )
    assert ran(session, "import ctypes\nctypes.CDLL(None).puts(b'e')\nNone").stdout == "e\n"
    assert ran(session, "import os\nos.write(1, b'f\\n')\nNone").stdout == "f\n"


def test_output_is_bounded(opened):
    session = opened(output_chars=1_000)
    result = ran(session, "for i in range(100_000): print('line', i)")
    assert len(result.stdout) < 4_000
    assert "characters cut" in result.stdout


def test_output_of_code_in_c_never_blocks(opened):
    session = opened()
    ran(session, "import ctypes\nputs = ctypes.CDLL(None).puts\nfor i in range(20_000): puts(b'x' * 20)")
    assert ran(session, "1").echo == "1"


# -- time and memory -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("while True: pass", id="a loop"),
        pytest.param(
            "while True:\n    try:\n        time.sleep(0.01)\n    except Exception: pass", id="retries"
        ),
        pytest.param("import threading\nthreading.Event().wait()", id="a wait"),
        pytest.param("2 ** 10**8 % 7 and [x for x in iter(int, 1)]", id="numbers"),
        pytest.param("class A:\n    def __repr__(self):\n        while True: pass\nA()", id="a repr"),
    ],
)
def test_code_past_its_deadline_ends_and_its_variables_stay(opened, source):
    session = opened(seconds=0.5)
    ran(session, "import time\nx = 5")
    result = session.run(source)
    assert isinstance(result.error, EvalError)
    assert "ran longer than 0.5 s" in str(result.error)
    assert result.enforcement.time == "signal"
    assert ran(session, "x").echo == "5"


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(
            "",
            id="a loop right behind",
            marks=pytest.mark.skipif(
                sys.version_info[:2] == (3, 12),
                reason="CPython 3.12 looks for the handler of what a signal raises in a jump back one instruction "
                "before the loop, which is in the try: the code catches all, and is killed",
            ),
        ),
        pytest.param("y = 3\n", id="a statement between"),
    ],
)
def test_code_that_catches_everything_once_ends_at_its_deadline(opened, between):
    session = opened(seconds=0.3)
    # The call into C that the deadline breaks off after 0.3 s.
    blocked = "import threading\nx = 1\ntry:\n    threading.Event().wait()\nexcept:\n    x = 2\n"
    source = f"{blocked}{between}while True: len(rows)\n"
    assert "ran longer" in str(session.run(source).error)
    assert ran(session, "x").echo == "2"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("sum(range(10**13))", id="a call into C"),
        pytest.param(
            "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass", id="ignored"
        ),
    ],
)
def test_code_that_does_not_stop_is_killed(opened, source):
    session = opened(seconds=0.3)
    result = session.run(source)
    assert "did not stop, so it was killed" in str(result.error)
    assert ran(session, "rows").echo == "[1, 2]"


def test_the_deadline_of_a_later_action_holds_after_code_set_its_own_alarm(opened):
    session = opened(seconds=0.3)
    ran(session, "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\nNone")
    assert session.run("while True: pass").enforcement.time == "signal"


def test_the_time_of_a_host_function_is_not_the_codes(level):
    import time

    policy = Policy.default()
    policy.fn(lambda: time.sleep(0.5), name="rest")
    session = executor_of(level).session(policy, Limits(seconds=0.3), {}, python="full")
    try:
        assert session.run("rest()\n1").echo == "1"
    finally:
        session.close()


def test_too_much_memory_is_an_error(opened):
    session = opened(memory_mb=1_500)
    result = session.run("x = bytearray(3 << 30)")
    assert isinstance(result.error.__cause__, MemoryError)
    assert ran(session, "1").echo == "1"


def test_less_memory_than_libraries_need_is_refused(opened):
    with pytest.raises(DefinitionError, match=r"max_memory_mb=100 is too little.*1,024 MB"):
        opened(memory_mb=100)


# -- endings ---------------------------------------------------------------------------------------


class Over(BaseException):
    """How a host function ends a run."""


def ending(session: RemoteSession) -> None:
    def finish(value: Any) -> None:
        session.stop(Over(value))

    session.bind("finish", finish)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("finish(1)", id="called"),
        pytest.param("try:\n    finish(1)\nexcept BaseException:\n    pass\nx = 1", id="caught"),
        pytest.param("try:\n    finish(1)\nexcept BaseException:\n    finish(2)", id="called twice"),
        pytest.param("try:\n    finish(1)\nexcept BaseException:\n    raise ValueError", id="replaced"),
        pytest.param(
            "import threading\nt = threading.Thread(target=finish, args=(1,))\nt.start()\nt.join()",
            id="thread",
        ),
        pytest.param("try:\n    finish(1)\nexcept BaseException:\n    while True: pass", id="held up"),
        pytest.param("import sys\ntry:\n    finish(1)\nfinally:\n    sys.exit(0)", id="exit"),
    ],
)
def test_an_ending_holds_whatever_the_code_catches(opened, source):
    session = opened(seconds=1.0)
    ending(session)
    result = session.run(source)
    assert result.stopped is not None
    assert result.stopped.args == (1,)
    assert ran(session, "1 + 1").echo == "2"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import os.path", ["os.path"]),
        ("import json, xml.dom as d, sys", ["xml.dom"]),
        ("def f():\n    import json, \\\n        email . mime \\\n        . text", ["email.mime.text"]),
        ("import json\njson.dumps", []),
        ("from os import path", []),
        ("x = 'import a.b'", []),
    ],
)
def test_imports_of_dotted_names_are_noted(source, names):
    programs = Programs()
    programs.compiled(source, "<a>", echo=True, awaits=False)
    assert list(programs.dotted) == names
