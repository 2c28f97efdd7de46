"""Functions without a stop check end with their run, however they are called, and run in the next one.

Stopped by: sandbox.runtime.kill_switch.
"""

import gc
import pickle
import sys
import threading
import time
import types
import weakref

import cloudpickle
import pytest

from agex._interpreter import threads
from agex.sandbox import Limits, Sandbox

if not threads.CAN_START:
    pytest.skip("in a browser tab every function has a stop check", allow_module_level=True)

NEVER = "def f(n):\n    f(n - 1) if n else None\n    f(n - 1) if n else None\n"
"""Takes for ever, without a loop: 2 ** 200 calls."""

ENDLESS = {
    "a function": NEVER + "f(200)",
    "one that is decorated": "import functools\n@functools.wraps(len)\n" + NEVER + "f(200)",
    "one that was made in a loop": "for i in range(3):\n    " + NEVER.replace("\n", "\n    ") + "\nf(200)",
    "one that was made in a text": f"exec({NEVER!r})\nf(200)",
    "one that a function made": "def make():\n    "
    + NEVER.replace("\n", "\n    ")
    + "\n    return f\nmake()(200)",
    "a method": """
class A:
    def f(self, n):
        n and (self.f(n - 1), self.f(n - 1))
A().f(200)
""",
    "a method that asks super": """
class A:
    def f(self, n):
        super().__init__()
        n and (self.f(n - 1), self.f(n - 1))
A().f(200)
""",
    "operators": """
class A:
    def __init__(self, n): self.n = n
    def __add__(self, other): return self.n and A(self.n - 1) + other, self.n and A(self.n - 1) + other
A(200) + 1
""",
    "a property": """
class A:
    def __init__(self, n): self.n = n
    @property
    def f(self): return self.n and (A(self.n - 1).f, A(self.n - 1).f)
A(200).f
""",
    "what is got by subscript": """
class A:
    def __getitem__(self, n): return n and (self[n - 1], self[n - 1])
A()[200]
""",
    "attributes that are not there": """
class A:
    def __init__(self, n): self.n = n
    def __getattr__(self, name): return self.n and (A(self.n - 1).x, A(self.n - 1).x)
A(200).x
""",
    "a generator": """
def f(n):
    if n:
        yield from f(n - 1)
        yield from f(n - 1)
next(f(200), None)
""",
    "callbacks of weak references, each of which ends at a strike": """
class A: pass
def f(n):
    n = n if type(n) is int else 200
    n and (f(n - 1), f(n - 1))
many = [A() for _ in range(50)]
refs = [ref(each, f) for each in many]
many.clear()
""",
    "keys, where an error is dropped": """
import functools
class A:
    def f(self, n):
        n and (self.f(n - 1), self.f(n - 1))
    def __eq__(self, other): self.f(200); return False
    def __hash__(self): return 1
[A() in {A(): 1} for _ in range(50)]
""",
    "a class over one of the standard library": """
import collections
class D(collections.UserDict):
    def __missing__(self, n): return n and (self[n - 1], self[n - 1])
D()[200]
""",
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("place", ["the main thread", "another thread"])
@pytest.mark.parametrize("program", ENDLESS.values(), ids=ENDLESS)
def test_it_ends_with_the_time(program: str, place: str) -> None:
    done = []

    def run() -> None:
        session = Sandbox(limits=Limits(seconds=0.2)).session()
        session.bind("ref", weakref.ref)
        done.append(session.run(program))

    if place == "the main thread":
        run()
    else:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(20)
    (result,) = done
    assert "longer than 0.2 s" in str(result.error)
    assert result.duration < 5


def test_it_ends_when_another_thread_says_so() -> None:
    session = Sandbox(limits=Limits(seconds=60)).session()
    threading.Timer(0.3, session.interrupt, [RuntimeError("given up")]).start()

    result = session.run(NEVER + "f(200)")

    assert str(result.stopped) == "given up"
    assert result.duration < 10


async def test_it_ends_beside_an_event_loop() -> None:
    result = await Sandbox(limits=Limits(seconds=0.2)).aexec(
        "async def f(n):\n    n and (await f(n - 1), await f(n - 1))\nawait f(200)"
    )

    assert "longer than 0.2 s" in str(result.error)


def test_it_ends_with_the_session_that_calls_it() -> None:
    function = Sandbox().exec(NEVER + "f").value
    session = Sandbox(limits=Limits(seconds=0.2)).session()
    session.bind("other", function)

    result = session.run("other(200)")

    assert "longer than 0.2 s" in str(result.error)
    assert function(3) is None


def test_it_runs_again_afterwards() -> None:
    session = Sandbox(limits=Limits(seconds=0.2)).session()
    session.run(
        "class A:\n    def m(self): return super().__eq__(self)\ndef g(): yield 7\ndef h(x, *, y=1): return x + y"
    )
    before = [session.namespace["h"].__code__, session.namespace["g"].__code__]

    assert session.run(NEVER + "f(200)").error is not None

    assert [session.namespace["h"].__code__, session.namespace["g"].__code__] == before
    assert session.namespace["h"](2, y=3) == 5
    assert session.run("[A().m(), *g(), h(1)]").value == [True, 7, 2]
    assert session.run("f(3)").error is None


def test_what_types_coroutine_made_of_it_stays() -> None:
    session = Sandbox(limits=Limits(seconds=0.2)).session()
    session.run("import types\n@types.coroutine\ndef g(): yield 1\nasync def h(): return await g()")
    before = session.namespace["g"].__code__

    assert session.run(NEVER + "f(200)").error is not None

    assert session.namespace["g"].__code__ is before
    assert session.namespace["h"]().send(None) == 1


def test_those_that_are_gone_are_not_held() -> None:
    session = Sandbox(limits=Limits(seconds=60)).session()
    session.run("for i in range(10_000):\n    def f(): return i")
    gc.collect()

    assert len(session._switch._listed) < 200


def test_many_do_not_hold_up_the_end() -> None:
    session = Sandbox(limits=Limits(seconds=3)).session()
    session.run("many = []\nfor i in range(200_000):\n    def f(): return i\n    many.append(f)")

    start = time.perf_counter()
    result = session.run("while True: pass")

    assert "longer than" in str(result.error)
    assert time.perf_counter() - start < 10
    assert session.run("many[0]() == many[-1]()").value is True


BY_VALUE = {
    "a function": "def f():\n    return open('/etc/passwd').read()\nf",
    "its class": "class A:\n    def f(self): return open('/etc/passwd').read()\nA",
    "a function that loops": "def f():\n    open('/etc/passwd')\n    for i in []: pass\nf",
}


@pytest.mark.parametrize("program", BY_VALUE.values(), ids=BY_VALUE)
def test_it_is_not_packed_by_value(program: str) -> None:
    value = Sandbox().exec(program).value

    with pytest.raises((pickle.PicklingError, TypeError), match=r"runs in its session only|weakref"):
        cloudpickle.dumps(value)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of Python 3.12")
@pytest.mark.parametrize(
    "program",
    [
        "def f[T](x: T): return open('/etc/passwd')\nf",
        "class A[T]:\n    def f(self, x: T): return open(x)\nA",
    ],
)
def test_nor_with_type_parameters(program: str) -> None:
    value = Sandbox().exec(program).value

    with pytest.raises((pickle.PicklingError, TypeError)):
        cloudpickle.dumps(value)


def test_one_that_is_made_a_second_time_of_its_code_ends_too() -> None:
    """As a stored function is: over other variables, and listed nowhere."""
    session, names = Sandbox(limits=Limits(seconds=0.2)).session(), {}
    assert session.define(NEVER, "<kept 1>", names).error is None
    code, namespace = names["f"].__code__, names["f"].__globals__
    namespace["f"] = types.FunctionType(code, namespace)
    session.bind("f", namespace["f"])

    result = session.run("f(200)")

    assert "longer than 0.2 s" in str(result.error)
    assert "stop!" in code.co_names


@pytest.mark.parametrize("wrap", ["types.coroutine(g)", "functools.wraps(g)(g)"])
def test_what_takes_a_function_and_gives_it_back_leaves_it_listed(wrap: str) -> None:
    program = f"""
import functools, types
def g(n):
    if n:
        yield from g(n - 1)
        yield from g(n - 1)
try:
    g = {wrap}
except AttributeError as refused:
    print(refused)
next(g(200), None)
"""
    result = Sandbox(limits=Limits(seconds=0.2)).exec(program)

    assert "longer than 0.2 s" in str(result.error)
