"""Variables of full Python: what the next worker has, what the host reads, and what is nobody else's.

Stopped by: values.decoder, isolation.wire.codec.
"""

from __future__ import annotations

import builtins
import contextlib
from pathlib import Path
from typing import Any

import pytest

from agex import Agent, Live, OutputEvent, UnpicklableVariableError, Versioned
from agex.isolation.kernel import missing
from agex.isolation.worker.sealed_objects import _Seals
from agex.testing import ScriptedModel, python_action

needs_kernel = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold: {missing()}")
LEVELS = ["process", pytest.param("kernel", marks=needs_kernel)]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return request.param


def outputs(state: Any, level: str, *codes: str, python: Any = "full") -> list[str]:
    """Run each code as a task of its own over one state; return what was printed."""
    model = ScriptedModel([[python_action(f"{code}\ntask_success(None)")] for code in codes])
    agent = Agent(model=model, state=state, isolation=level, python=python)

    @agent.task
    def work() -> None:
        """Work."""

    runs = [work.run() for _ in codes]
    return ["".join(e.text for e in run.events if isinstance(e, OutputEvent)).strip() for run in runs]


@pytest.mark.parametrize("make", [Versioned, Live], ids=["versioned", "live"])
def test_an_object_of_a_type_that_only_the_worker_has_is_there_in_the_next_task(level, make):
    printed = outputs(
        make(),
        level,
        "import xml.etree.ElementTree as ET\ntree = ET.fromstring('<a><b/></a>')",
        "print(tree.tag, len(tree))",
    )
    assert printed[1] == "a 1"


def test_variables_that_share_such_an_object_still_share_it(level):
    printed = outputs(
        Versioned(),
        level,
        "import xml.etree.ElementTree as ET\na = ET.Element('a')\npair = [a, a]\nkept = {'one': a, 'n': 3}",
        "print(pair[0] is a, pair[1] is a, kept['one'] is a, kept['n'])",
    )
    assert printed[1] == "True True True 3"


def test_functions_and_classes_of_the_code_are_there_in_the_next_task(level):
    first = (
        "class Node:\n    count = 0\n    def __init__(self, v, next=None):\n        self.v, self.next = v, next\n"
        "    def total(self):\n        return self.v + (self.next.total() if self.next else 0)\n"
        "b = Node(2)\na = Node(1, b)\nfactor = 10\ndef scaled(x):\n    return x * factor + a.total()\n"
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 1\np = P(4)"
    )
    second = "print(a.total(), a.next is b, isinstance(b, Node), scaled(2), p, P(), scaled.__name__)"
    assert outputs(Versioned(), level, first, second)[1] == "3 True True 23 P(x=4) P(x=1) scaled"


@pytest.mark.parametrize("python", ["full", "guarded"])
def test_functions_have_the_types_of_their_parameters_in_the_next_task(level, python):
    first = """
import decimal, typing
class Foo: pass
def f(x: int, y: typing.Optional[Foo] = None, *rest: 'decimal.Decimal', k: "list[Foo]" = ()) -> Foo:
    return x
def outer():
    def inner(x: float) -> str: return x
    return inner
g = outer()
def plain(x): return x
"""
    second = """
import inspect, typing
hints = typing.get_type_hints(f)
print(hints["x"] is int, hints["return"] is Foo, hints["y"] == typing.Optional[Foo], hints["k"] == list[Foo])
print(hints["rest"].__name__, typing.get_type_hints(g)["x"].__name__, plain.__annotations__, inspect.signature(g))
"""
    printed = outputs(Versioned(), level, first, second, python=python)[1]
    assert printed == "True True True True\nDecimal float {} (x: 'float') -> 'str'"


def test_variables_whose_objects_hold_one_another_still_do(level):
    first = """
import xml.etree.ElementTree as ET
root = ET.fromstring("<a><b/><c/></a>")
child = root[0]
kept = {"c": root[1]}
alone = ET.fromstring("<a><b/></a>")
"""
    second = "child.set('n', '1')\nprint(root[0] is child, kept['c'] is root[1], root[0].get('n'), alone[0].get('n'))"
    assert outputs(Versioned(), level, first, second)[1] == "True True 1 None"


def test_names_of_types_are_there_in_the_next_task(level):
    first = """
import typing
UserId = typing.NewType("UserId", int)
T = typing.TypeVar("T", bound=int)
P = typing.ParamSpec("P")
ids = [UserId, {"t": T}]
"""
    second = "print(UserId(3), UserId.__supertype__, UserId is ids[0], T is ids[1]['t'], T.__bound__, P.__name__, UserId)"
    shown = "3 <class 'int'> True True <class 'int'> P __main__.UserId"
    assert outputs(Versioned(), level, first, second)[1] == shown


def test_an_estimator_is_still_that_of_its_pipeline(level):
    pytest.importorskip("sklearn")
    first = """
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
model = LinearRegression()
pipeline = make_pipeline(model)
"""
    second = "pipeline.fit([[1.0], [2.0]], [2.0, 4.0])\nprint(pipeline[-1] is model, round(float(model.coef_[0]), 6))"
    assert outputs(Versioned(), level, first, second)[1] == "True 2.0"


class Alone:
    """An object that can be pickled only alone, as one can that takes long."""

    pickled = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        Alone.pickled += 1
        if Alone.pickled > 1:
            raise TimeoutError("it takes too long")
        return Alone, (self.name,)


def test_objects_that_cannot_be_sealed_together_are_sealed_one_by_one():
    def in_time(work: Any, _seconds: float) -> Any:
        Alone.pickled = 0
        return work()

    seals = _Seals(in_time)
    sealed, failed = seals.sealed([Alone("a"), Path("p"), (_ for _ in ()), Alone("b")])
    opened = seals.unsealed(sealed)
    assert list(failed) == [2]
    assert "generator" in failed[2]
    assert [opened[0].name, opened[1], opened[3].name] == ["a", Path("p"), "b"]


DECORATED = {
    "a dataclass whose fields have factories": (
        """
from dataclasses import dataclass, field
@dataclass
class A:
    xs: list = field(default_factory=list)
@dataclass(order=True)
class B(A):
    n: int = field(default=3, repr=False)
b = B([1])
same = b
""",
        "(b.xs, b.n, B().xs, same is b, B.__mro__[1] is A, B([1]) == b)",
        "([1], 3, [], True, True, True)",
    ),
    "one with slots, which is another class than its statement made": (
        """
from dataclasses import dataclass, field
@dataclass(slots=True)
class Q:
    a: int
    b: list = field(default_factory=list)
    def twice(self):
        return self.a * 2
q = Q(4)
q.b.append(1)
""",
        "(q.twice(), q.b, type(q) is Q, Q(1).b, hasattr(q, '__dict__'))",
        "(8, [1], True, [], False)",
    ),
    "one with a mark among its fields": (
        """
from dataclasses import KW_ONLY, MISSING, dataclass
@dataclass(frozen=True, slots=True)
class K:
    x: int
    _: KW_ONLY
    y: object = MISSING
k = K(1, y=3)
mark = MISSING
""",
        "(k, K(5, y=6), mark is MISSING, K.__slots__)",
        "(K(x=1, y=3), K(x=5, y=6), True, ('x', 'y'))",
    ),
    "an inner one": (
        """
from dataclasses import dataclass, field
class Out:
    @dataclass
    class In:
        xs: list = field(default_factory=list)
    def make(self):
        return Out.In([1])
o = Out()
i = o.make()
""",
        "(o.make().xs, type(i) is Out.In, Out.In().xs)",
        "([1], True, [])",
    ),
    "one that a call makes": (
        """
from dataclasses import dataclass, field
def make():
    @dataclass
    class L:
        xs: list = field(default_factory=list)
    return L
L = make()
l = L([4])
""",
        "(l.xs, type(l) is L, L().xs)",
        "([4], True, [])",
    ),
    "what a decorator of the code puts on a class": (
        """
def tagged(cls):
    cls.tag = 't'
    cls.more = lambda self: self.tag * 2
    return cls
@tagged
class K:
    pass
k = K()
K.later = 7
""",
        "(k.tag, k.more(), k.later)",
        "('t', 'tt', 7)",
    ),
    "a decorator that returns something else": (
        "def five(cls):\n    return 5\n@five\nclass F: pass",
        "F",
        "5",
    ),
}


@pytest.mark.parametrize("what", DECORATED)
def test_decorated_classes_are_there_in_the_next_task(level, what):
    first, expression, shown = DECORATED[what]
    assert outputs(Versioned(), level, first, f"print({expression})")[1] == shown


def test_a_decorated_class_that_lost_an_attribute_later_is_said(level):
    lost = "import functools\n@functools.total_ordering\nclass K:\n    a = 1\n    def __lt__(self, other):\n        return 1\n"
    lost += "    def go(self):\n        return 2\nk = K()\ndel K.go"
    said = "try:\n    k.a\nexcept Exception as error:\n    print(error)"
    assert "its go was set or deleted after the class statement" in outputs(Versioned(), level, lost, said)[1]


def test_modules_and_their_submodules_are_imported_again(level):
    printed = outputs(
        Versioned(),
        level,
        "import xml.etree.ElementTree\nimport numpy as np",
        "print(xml.etree.ElementTree.__name__, np.__name__)",
    )
    assert printed[1] == "xml.etree.ElementTree numpy"


def test_what_cannot_be_kept_is_said_leaf_by_leaf(level):
    _, read = outputs(
        Versioned(),
        level,
        "import threading\nthings = {'n': 3, 'lock': threading.Lock()}\nlines = (n for n in range(3))",
        "print(things['n'])\nfor use in (lambda: things['lock'].acquire(), lambda: next(lines)):\n"
        "    try:\n        use()\n    except Exception as error:\n        print(error)",
    )
    assert read.startswith("3\n")
    assert "The part things['lock'] (_thread.lock) is not available." in read
    assert "cannot pickle '_thread.lock' object" in read
    assert "Variable 'lines' (generator) is not available." in read
    assert "cannot pickle 'generator' object" in read


EVIL = (
    "class Evil:\n    def __reduce__(self):\n"
    "        return exec, ('import builtins; builtins.opened_a_seal = True',)\n"
    "import xml.etree.ElementTree as ET\nholder = ET.Element('a')\nholder.set('k', 'v')\n"
    "import random\nclass Odd(random.Random):\n    def __reduce__(self):\n"
    "        return exec, ('import builtins; builtins.opened_a_seal = True',)\n"
    "import copyreg, fractions, io\n"
    "copyreg.pickle(ET.Element, lambda e: (exec, ('import builtins; builtins.opened_a_seal = True',)))\n"
)


def test_the_host_opens_no_seal(level):
    state = Versioned()
    outputs(state, level, EVIL)
    with pytest.raises(UnpicklableVariableError, match="kept for the code that made it"):
        len(state["holder"])
    for name in state:
        with contextlib.suppress(UnpicklableVariableError):
            repr(state[name])
    assert not hasattr(builtins, "opened_a_seal")


def test_a_worker_of_the_level_opens_it(level):
    assert (
        outputs(Versioned(), level, EVIL, "import builtins\nprint(hasattr(builtins, 'opened_a_seal'))")[1]
        == "True"
    )


def test_a_guarded_worker_opens_no_seal(level):
    state = Versioned()
    outputs(state, level, "import xml.etree.ElementTree as ET\ntree = ET.fromstring('<a/>')\nn = 3")
    code = "try:\n    print(tree.tag)\nexcept Exception as error:\n    print(n, error)"
    assert outputs(state, level, code, python="guarded")[0].startswith("3 Variable 'tree'")


def test_a_guarded_task_between_leaves_the_seal_whole(level):
    state = Versioned()
    outputs(state, level, "import xml.etree.ElementTree as ET\ntree = ET.fromstring('<a/>')\nn = 3")
    outputs(state, level, "n = 4", python="guarded")
    assert outputs(state, level, "print(n, tree.tag)") == ["4 a"]


@needs_kernel
def test_code_from_behind_a_boundary_does_not_run_where_there_is_none(tmp_path: Path):
    state, canary = Versioned(), tmp_path / "canary"
    outputs(
        state,
        "kernel",
        "import copyreg, os, xml.etree.ElementTree as ET\n"
        f"copyreg.pickle(ET.Element, lambda e: (open, ({str(canary)!r}, 'w')))\nholder = ET.Element('a')\n"
        f"class Made:\n    if os.path.isdir({str(tmp_path)!r}):\n        open({str(canary)!r}, 'w').close()\n"
        "def f(): return 1\nplain = [1]",
    )
    code = "print(plain)\nfor name in ('holder', 'Made', 'f'):\n    try:\n        globals()[name].x\n    except Exception as error:\n        print(type(error).__name__)"
    printed = outputs(state, "process", code)[0]
    assert not canary.exists()
    assert printed.splitlines() == ["[1]", *["UnpicklableVariableError"] * 3]


def test_an_object_whose_pickling_never_ends_is_lost_alone(level):
    source = (
        "import xml.etree.ElementTree as ET, copyreg\nbad, good = [ET.Element('a')], 3\n"
        "def endless(_):\n    while True: pass\ncopyreg.pickle(ET.Element, endless)"
    )
    printed = outputs(
        Versioned(),
        level,
        source,
        "try:\n    bad[0].tag\nexcept Exception as e:\n    print(good, str(e).splitlines()[1])",
    )
    assert "takes longer than" in printed[1]
    assert printed[1].startswith("3 ")


def test_a_function_that_a_task_returns_runs_at_its_level_after_it(level):
    model = ScriptedModel(
        [
            [
                python_action(
                    "import os, sys\ndef f(x):\n    return [x * 2, os.getpid(), ().__class__.__base__ is object]\ntask_success(f)"
                )
            ]
        ]
    )
    agent = Agent(model=model, isolation=level, python="full")

    @agent.task
    def make() -> Any:
        """Make a function."""

    import os

    function = make()
    value, pid, is_full = function(4)
    assert (value, is_full) == (8, True)
    assert pid != os.getpid()


def test_functions_of_evaluated_text_and_those_that_a_library_makes_are_kept(level):
    made = "exec('def twice(x, k=2): return x * k + base', {'base': 3}, made := {})\ntwice = made['twice']\n"
    made += "import sympy\nx = sympy.Symbol('x')\nsquare = sympy.lambdify(x, x**2)"
    assert outputs(Versioned(), level, made, "print(twice(4), square(3))")[1] == "11 9"
