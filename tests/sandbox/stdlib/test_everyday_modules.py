"""Everyday modules as guest sources: how programs end, event loops of their own, threads one after the other.

Stopped by: sandbox.stdlib, sandbox.run, sandbox.program_exit.
"""

from __future__ import annotations

import asyncio

import pytest

from agex import connect_fs
from agex.errors import EvalError, SandboxError
from agex.sandbox import Limits, Policy, Sandbox

LOOP = "import asyncio\nasync def main():\n    while True:\n        await asyncio.sleep(0)\n"


def printed(source: str, seconds: float = 20.0) -> str:
    sandbox = Sandbox(Policy.default(), fs=connect_fs(type="virtual"), limits=Limits(seconds=seconds))
    result = sandbox.exec(source)
    assert result.traceback == ""
    return result.stdout


@pytest.mark.parametrize(
    "end", ["import sys; sys.exit()", "import sys; sys.exit(0)", "exit()", "quit()", "raise SystemExit(0)"]
)
def test_a_program_ends_by_an_exit_without_a_status(end: str) -> None:
    assert printed(f"print(1)\n{end}\nprint(2)") == "1\n"


def test_an_exit_with_a_status_is_an_error_that_says_it() -> None:
    result = Sandbox().exec("import sys\nsys.exit(3)")

    assert isinstance(result.error, SandboxError)
    assert "sys.exit(3)" in str(result.error)


def test_a_method_that_the_host_calls_ends_by_no_exit() -> None:
    result = Sandbox().exec("class A:\n    def __eq__(self, other): raise SystemExit\na = A()")

    with pytest.raises(SandboxError, match="SystemExit is not available"):
        assert result.namespace["a"] == 1


async def test_an_exit_beside_an_event_loop_ends_the_program_and_not_the_loop() -> None:
    result = await Sandbox().aexec("import sys\nprint(1)\nsys.exit()")

    assert (result.stdout, result.error) == ("1\n", None)
    assert asyncio.get_running_loop().is_running()


@pytest.mark.parametrize(
    "body",
    [
        "    while True: pass",
        "    while True: await asyncio.sleep(0)",
        "    await asyncio.sleep(60)",
        "    try:\n        await asyncio.sleep(60)\n    finally:\n        while True: pass",
        "    while True:\n        try: await asyncio.sleep(60)\n        except BaseException: pass",
    ],
)
def test_the_time_limit_ends_a_loop_of_the_codes_own(body: str) -> None:
    sandbox = Sandbox(limits=Limits(seconds=0.3))
    session = sandbox.session()

    result = session.run(f"import asyncio\nasync def main():\n{body}\nasyncio.run(main())")

    assert isinstance(result.error, EvalError)
    assert session.run("1 + 1").value == 2


def test_time_in_a_loop_counts_for_the_program_around_it() -> None:
    source = "import asyncio\nfor _ in range(100):\n    asyncio.run(asyncio.sleep(0.1))"
    result = Sandbox(limits=Limits(seconds=0.5)).exec(source)

    assert isinstance(result.error, EvalError)
    assert result.duration < 5


def test_tasks_that_a_coroutine_leaves_end_with_its_loop() -> None:
    source = (
        LOOP + "async def run():\n    asyncio.create_task(main())\n    return 5\nprint(asyncio.run(run()))"
    )

    assert printed(source) == "5\n"


async def test_where_a_loop_runs_asyncio_run_says_what_to_write() -> None:
    result = await Sandbox().aexec(LOOP + "asyncio.run(main())")

    assert isinstance(result.error, RuntimeError)
    assert "await main()" in str(result.error)


def test_a_setting_that_is_made_in_a_loop_is_put_back() -> None:
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    policy = Policy.default()
    policy.module(mpl)
    before = mpl.rcParams["lines.linewidth"]
    source = """
import asyncio, matplotlib
async def main():
    matplotlib.rcParams["lines.linewidth"] = 9
asyncio.run(main())
print(matplotlib.rcParams["lines.linewidth"])
"""

    assert Sandbox(policy).exec(source).stdout == "9.0\n"
    assert mpl.rcParams["lines.linewidth"] == before


def test_a_wait_for_a_later_thread_raises_and_does_not_hang() -> None:
    source = "import threading\ntry:\n    threading.Event().wait()\nexcept RuntimeError as error:\n    print(error)"

    assert "one after the other" in printed(source)


_CONTEXTS = """
import asyncio
from contextvars import ContextVar
v = ContextVar("v", default=0)
async def task(n):
    v.set(n)
    await asyncio.sleep(0)
    return v.get()
async def main():
    print(await asyncio.gather(task(1), task(2)), v.get())
asyncio.run(main())
"""


def test_context_variables_belong_to_tasks() -> None:
    assert printed(_CONTEXTS) == "[1, 2] 0\n"


@pytest.mark.parametrize("changes", range(1, 5))
def test_the_context_of_another_session_is_none_of_this_one(changes: int) -> None:
    printed(f"from contextvars import ContextVar\nv = ContextVar('v')\nfor i in range({changes}): v.set(i)")

    assert printed(_CONTEXTS) == "[1, 2] 0\n"


def test_a_value_of_a_context_variable_is_dropped_with_its_context() -> None:
    source = """
import gc, weakref
from contextvars import ContextVar
class Big: pass
v = ContextVar("v")
v.set(Big())
old = weakref.ref(v.get())
for i in range(100): v.set(i)
gc.collect()
print(old(), v.get())
"""

    assert printed(source) == "None 99\n"


@pytest.mark.parametrize(
    "attack",
    [
        "import inspect\ninspect.signature(host)",
        "import inspect\ninspect.getsource(host)",
        "import inspect\ninspect.currentframe()",
        "import inspect\ninspect.stack()",
        "import inspect\ninspect.sys.modules['os']",
        "import unittest\nunittest.main_names()['__builtins__']['check!']",
        "import sys\nsys.modules['os']",
        "import importlib\nimportlib.import_module('os')",
        "import importlib\nimportlib.util",
        "import ast\ncompile(ast.parse('1'), '', 'eval')",
        "import gc\ngc.get_objects()",
        "import threading\nthreading._active",
        "import argparse\nargparse.FileType()('/etc/passwd').read()",
        "import configparser\nassert configparser.ConfigParser().read('/etc/passwd')",
        "import linecache\nassert linecache.getline('/etc/passwd', 1)",
        "import email.message as m\nm.sys",
        "import asyncio\nasyncio.new_event_loop()._run_once",
        "import multiprocessing\nmultiprocessing.Process(target=print).start()",
    ],
)
def test_an_everyday_module_leads_no_further(attack: str) -> None:
    policy = Policy.default()
    policy.fn(lambda a=object(): a, name="host")  # noqa: B008 - a default that guest code may not see

    assert Sandbox(policy).exec(attack).error is not None


def test_a_library_comes_with_what_its_users_take_for_granted() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    policy = Policy.default()
    policy.module(pd, name="pd")
    policy.module(plt)
    source = "import numpy as np\nfrom matplotlib.patches import Circle\nimport matplotlib as mpl\nprint(np.sum([1, 2]))"

    assert Sandbox(policy).exec(source).stdout == "3\n"


def test_a_registration_of_ones_own_comes_before_what_a_library_brings() -> None:
    np = pytest.importorskip("numpy", reason="numpy is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    for first, second in (("np", "pd"), ("pd", "np")):
        policy = Policy.default()
        for name in (first, second):
            if name == "np":
                policy.module(np, name="np", exclude=("_*", "*._*", "linalg"))
            else:
                policy.module(pd)
        sandbox = Sandbox(policy)

        assert isinstance(sandbox.exec("import numpy").error, ImportError)
        assert isinstance(sandbox.exec("import np\nnp.linalg").error, AttributeError)
