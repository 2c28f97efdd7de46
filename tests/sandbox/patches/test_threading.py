"""Threads of libraries: whose code runs in them, under which guards, and for how long.

Stopped by: sandbox.patches.threading.
"""

from __future__ import annotations

import copy
import os
import re
import threading
import time
import types
import typing
import weakref
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import joblib
import matplotlib as mpl
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from matplotlib import ticker

from agex.errors import SandboxError
from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox

SECRET = "s3cr3t"
WALK = "{x.set_axis.__globals__[logging].os.environ[AGEX_SECRET]}"
HEAD = f"""import polars as pl
import matplotlib.ticker as mt
F = mt.StrMethodFormatter({WALK!r})
x = mt.ScalarFormatter()
S = pl.Series([x], dtype=pl.Object)
L = pl.LazyFrame({{'a': S, 'b': S, 'g': [1]}})
"""
WAYS = {
    "an expression": "L.select(pl.col('a').map_elements(F, return_dtype=pl.String)).collect()",
    "two expressions": "L.select(pl.col('a', 'b').map_elements(F, return_dtype=pl.String)).collect()",
    "the streaming engine": "L.select(pl.col('a').map_elements(F, return_dtype=pl.String)).collect(engine='streaming')",
    "all queries at once": "pl.collect_all([L.select(pl.col('a').map_elements(F, return_dtype=pl.String))] * 2)",
    "a frame": "L.collect().with_columns(pl.col('a').map_elements(F, return_dtype=pl.String))",
    "a series": "S.map_elements(F, return_dtype=pl.String)",
    "rows": "L.collect().map_rows(lambda row: F(row[0]))",
    "batches": "L.select(pl.col('a').map_batches(lambda s: pl.Series([F(each) for each in s]))).collect()",
    "batches of the library's own": "L.select(pl.col('a').map_batches(F)).collect()",
    "a batch of a frame": "L.map_batches(lambda f: pl.DataFrame([F(each) for each in f['a']])).collect()",
    "groups": "L.group_by('g').map_groups(lambda f: pl.DataFrame([F(each) for each in f['a']]), schema=None).collect()",
    "a fold": "L.select(pl.fold(pl.lit('x'), lambda a, s: pl.Series([F(each) for each in s]), [pl.col('a')])).collect()",
    "a rolling function": "L.select(pl.col('g').rolling_map(lambda s: len(F(x)), 1)).collect()",
    "a name": "L.select(pl.col('g').name.map(lambda name: F(x))).collect()",
    "a method of the library's object": "L.select(pl.col('a').map_elements(F.format_ticks, return_dtype=pl.String)).collect()",
    "a partial": "import functools\nL.select(pl.col('a').map_elements(functools.partial(F, pos=1), return_dtype=pl.String)).collect()",
    "an object of its own": "class C:\n    def __call__(self, x): return F(x)\nL.select(pl.col('a').map_elements(C(), return_dtype=pl.String)).collect()",
    "a subclass": "class G(mt.StrMethodFormatter): pass\nL.select(pl.col('a').map_elements(G(F.fmt), return_dtype=pl.String)).collect()",
    "a name by rename": "L.select('g').rename(lambda name: F(x)).collect()",
    "a schema": "L.pipe_with_schema(lambda f, schema: f.with_columns(pl.lit(F(x)))).collect()",
    "names of columns": "import io\npl.scan_csv(io.BytesIO(b'a\\n1'), with_column_names=lambda names: [F(x)]).collect()",
    "another formatter": "L.select(pl.col('a').map_elements(mt.FormatStrFormatter(F.fmt).__call__, return_dtype=pl.String)).collect()\nF(x)",
}


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setenv("AGEX_SECRET", SECRET)


def policy(*modules: types.ModuleType, strict: bool = False) -> Policy:
    made = Policy.default(strict=strict)
    for module in modules:
        made.module(module)
    return made


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_formatter_walks_to_nothing_of_the_hosts_in_whatever_thread(way, strict, secret):
    *before, last = way.split("\n")
    program = HEAD + "\n".join([*before, f"out = {last}"])
    result = Sandbox(policy(pl, mpl, strict=strict)).exec(program)
    assert SECRET not in f"{result.namespace.get('out')}{result.error}{result.stdout}"
    assert result.error is not None


def as_foreign(function):
    """Call a function in a thread that the interpreter did not start, as compiled code does."""
    made = []

    def call(value):
        made.append(function())
        return value

    query = pl.LazyFrame({"a": [1], "b": [2]}).select(
        pl.col("a", "b").map_elements(call, return_dtype=pl.Int64)
    )
    query.collect()
    return made[0]


HOSTS_WORK = {
    "copy": lambda: copy.copy([1]) + copy.deepcopy([2]),
    "hints": lambda: typing.get_type_hints(policy),
    "patterns": lambda: re.compile("a+").findall("aa"),
    "formats": lambda: ticker.StrMethodFormatter("{x.real:.1f}")(2.0),
}


def while_a_session_runs(work):
    """Call a function in this thread, the host's own, while guest code runs in another."""
    begun, over = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        over.wait(30)

    made = policy(pl, mpl)
    made.fn(wait)
    other = threading.Thread(target=Sandbox(made).exec, args=("wait()",))
    other.start()
    try:
        assert begun.wait(30)
        return work()
    finally:
        over.set()
        other.join()


@pytest.mark.parametrize("work", HOSTS_WORK.values(), ids=HOSTS_WORK)
def test_the_hosts_own_threads_work_on_while_guest_code_runs(work):
    def in_a_pool():
        with ThreadPoolExecutor(1) as pool, ThreadPool(1) as other:
            return pool.submit(work).result(), other.apply(work), as_foreign(work), work()

    assert while_a_session_runs(in_a_pool)


def test_a_pool_of_the_hosts_may_call_a_library_without_a_function_of_the_hosts():
    with ThreadPoolExecutor(1) as pool:
        assert while_a_session_runs(lambda: pool.submit(copy.copy, [1]).result()) == [1]


def test_a_thread_of_compiled_code_is_nobodys_while_guest_code_runs():
    format_ = ticker.StrMethodFormatter("{x.real}")
    frame = pl.LazyFrame({"a": [1.5], "b": [2.5]}).select(
        pl.col("a", "b").map_elements(format_, return_dtype=pl.String)
    )
    assert frame.collect().rows() == [("1.5", "2.5")]
    with pytest.raises(Exception, match="belongs to no run"):
        while_a_session_runs(frame.collect)
    assert frame.collect().rows() == [("1.5", "2.5")]


def test_a_function_that_a_library_calls_prints_for_its_session_and_meets_its_files():
    program = """
def f(x):
    print('seen', x)
    with open('log.txt', 'a') as log:
        log.write(str(x))
    return x + 1
out = pl.LazyFrame({'a': [1], 'b': [2]}).select(pl.col('a', 'b').map_elements(f, return_dtype=pl.Int64)).collect()
"""
    files = connect_fs()
    result = Sandbox(policy(pl), fs=files).exec("import polars as pl" + program)
    assert result.error is None
    assert sorted(result.stdout.split("\n")) == ["", "seen 1", "seen 2"]
    assert sorted(files.read("log.txt").decode()) == ["1", "2"]


def test_the_second_wall_stands_in_the_threads_of_a_library(tmp_path):
    def opens(x):
        return len(list(tmp_path.iterdir()))

    made = policy(pl)
    made.fn(opens)
    columns = "pl.LazyFrame({'a': [1], 'b': [2]}).select(pl.col('a', 'b').map_elements"
    for call in ("opens", "lambda x: opens(x)"):
        result = Sandbox(made).exec(
            f"import polars as pl\n{columns}({call}, return_dtype=pl.Int64)).collect()"
        )
        assert re.search(r"os\.(listdir|scandir)", str(result.error))


ENDLESS = """
def f(x):
    while True:
        pass
"""
HELD_UP = {
    "one": "pl.LazyFrame({'a': [1]}).select(pl.col('a').map_elements(f, return_dtype=pl.Int64)).collect()",
    "two": "pl.LazyFrame({'a': [1], 'b': [2]}).select(pl.col('a', 'b').map_elements(f, return_dtype=pl.Int64)).collect()",
    "two lambdas": "pl.LazyFrame({'a': [1], 'b': [2]}).select(pl.col('a', 'b').map_elements(lambda x: f(x), return_dtype=pl.Int64)).collect()",
    "queries": "q = pl.LazyFrame({'a': [1]}).select(pl.col('a').map_elements(f, return_dtype=pl.Int64))\npl.collect_all([q, q])",
    "streaming": "pl.LazyFrame({'a': [1], 'b': [2]}).select(pl.col('a', 'b').map_elements(f, return_dtype=pl.Int64)).collect(engine='streaming')",
}


@pytest.mark.parametrize("how", HELD_UP.values(), ids=HELD_UP)
def test_endless_functions_in_the_threads_of_a_library_end_at_the_limit(how):
    session = Sandbox(policy(pl), limits=Limits(seconds=0.3)).session()
    begun = time.monotonic()
    result = session.run(f"import polars as pl{ENDLESS}{how}")
    assert "ran longer than 0.3 s" in str(result.error)
    assert time.monotonic() - begun < 10
    assert session.run("f = 2\nf + 1").value == 3


def test_no_query_runs_beside_its_run():
    for way in ("collect(background=True)", "collect_async()", "profile()\npl.collect_all_async([L])"):
        program = f"import polars as pl\nL = pl.LazyFrame({{'a': [1]}})\nL.{way}"
        assert re.search("not (available|accessible)", str(Sandbox(policy(pl)).exec(program).error))


def test_a_function_held_by_a_library_is_not_called_in_its_threads_after_the_run():
    program = """import polars as pl
seen = []
q = pl.LazyFrame({'a': [1], 'b': [2]}).select(pl.col('a', 'b').map_elements(seen.append, return_dtype=pl.Int64))
"""
    session = Sandbox(policy(pl)).session()
    query = session.run(program).namespace["q"]
    with pytest.raises(SandboxError, match="its run is over"):
        query.collect()
    assert session.namespace["seen"] == []
    session.run("q.collect()")
    assert sorted(session.namespace["seen"]) == [1, 2]


def test_a_thread_of_pythons_own_carries_the_session_that_started_it(secret):
    made = policy(mpl)
    made.module(joblib, include=["Parallel", "delayed"])
    program = f"""import joblib, matplotlib.ticker as mt
F, x = mt.StrMethodFormatter({WALK!r}), mt.ScalarFormatter()
def f(x):
    print('seen')
    return 1
fine = joblib.Parallel(2, backend='threading')(joblib.delayed(f)(x) for _ in range(4))
out = joblib.Parallel(2, backend='threading')([joblib.delayed(F)(x)] * 2)
"""
    result = Sandbox(made).exec(program)
    assert result.namespace["fine"] == [1] * 4
    assert result.stdout == "seen\n" * 4
    assert SECRET not in f"{result.namespace.get('out')}{result.error}"
    assert isinstance(result.error, SandboxError | AttributeError)


def library(source: str, pool: ThreadPoolExecutor) -> types.ModuleType:
    """Make an installed library of Python, with threads of its own."""
    module = types.ModuleType("pools")
    vars(module).update(_pool=pool, _threading=threading)
    text = source.replace("pool.", "_pool.").replace("threading.", "_threading.")
    exec(compile(text, f"{os.sep}site-packages{os.sep}pools.py", "exec"), vars(module))
    return module


@pytest.mark.parametrize("kind", ["executor", "thread", "timer"])
def test_what_a_library_calls_in_a_thread_is_the_guests_and_ends_with_its_run(kind, secret):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # its thread is the host's
        begin = {
            "executor": "pool.submit(f)",
            "thread": "threading.Thread(target=f).start()",
            "timer": "threading.Timer(0.01, f).start()",
        }[kind]
        module = library(f"def begin(f): {begin}", pool)
        made = policy(mpl)
        made.module(module)
        session = Sandbox(made, limits=Limits(seconds=0.5)).session()
        result = session.run(
            "import pools, time\nseen = []\ndef f():\n    seen.append(1)\n    while True: pass\npools.begin(f)\n"
            "while not seen: time.sleep(0.01)\n'over'"
        )
        assert result.value == "over"
        assert session.run("seen").value == [1]
        pool.shutdown()  # its thread is free: nothing of the guest's runs in it


def test_an_ended_session_leaves_a_pool_of_the_hosts_as_it_was(tmp_path):
    (tmp_path / "a").write_text("x")
    with ThreadPoolExecutor(1) as pool:
        module = library("def begin(f): return pool.submit(f).result()", pool)
        made = policy()
        made.module(module)
        assert Sandbox(made).exec("import pools\npools.begin(lambda: 7)").value == 7
        assert pool.submit((tmp_path / "a").read_text).result() == "x"


def test_every_method_of_polars_that_takes_a_function_carries_it():
    from agex.sandbox.libraries.polars.policy import CALLING

    found = set()
    for owner in (pl.DataFrame, pl.Expr, pl.LazyFrame, pl.Series, type(pl.col("a").name)):
        for name in vars(owner):
            annotations = getattr(getattr(owner, name), "__annotations__", {})
            said = [key for key, kind in annotations.items() if "Callable[" in str(kind) and key != "return"]
            if said and not name.startswith("_"):
                found.add(name)
    # Called at once, in the thread that says so; or not available at all.
    assert found - CALLING.keys() <= {"pipe", "sink_batches"}


def test_objects_of_arrow_call_no_function_of_the_guests():
    result = Sandbox(policy(pa, np)).exec("import pyarrow.compute as pc\npc.register_scalar_function")
    assert result.error is not None


def test_what_a_guest_lets_go_of_goes_at_once_also_where_a_run_is_watched_from_another_thread():
    class Thing:
        """It is known by a weak reference."""

    thing = Thing()
    left = weakref.ref(thing)
    session = Sandbox().session({"thing": thing})
    del thing

    session.run("x = 1")
    session.run("del thing")

    assert left() is None
