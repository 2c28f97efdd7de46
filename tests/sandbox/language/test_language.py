"""What the sandbox runs, it runs as CPython does."""

import asyncio
import decimal
import io
import subprocess
import sys
import textwrap
from contextlib import redirect_stdout
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox import Policy, Sandbox

SANDBOX = Sandbox()

SNIPPETS = {
    "private attributes": """
        class Counter:
            __slots__ = ("_n", "__secret")
            def __init__(self): self._n = 0; self.__secret = [1]
            def tick(self): self._n += 1; self.__secret += [self._n]; return self.__secret
        c = Counter(); c.tick(); print(c.tick(), c._n, sorted(n for n in dir(c) if "n" in n and n[:2] != "__"))
        """,
    "in-place operators keep the object": """
        class A: pass
        a = A(); a.l = []; alias = a.l; a.l += [1]; print(alias is a.l, alias)
        """,
    "attribute targets anywhere": """
        class A: pass
        a = A()
        a.x, (a.y, *a.z) = 1, iter([2, 3, 4])
        for a.i in range(3): pass
        with __import_free() as a.w: pass
        [0 for a.j in [7]]
        print(a.x, a.y, a.z, a.i, a.w, a.j)
        """.replace("__import_free()", "Ctx()").replace(
        "class A: pass",
        "class A: pass\n        class Ctx:\n            def __enter__(self): return 5\n            def __exit__(self, *e): pass",
    ),
    "evaluation happens once": """
        class A: pass
        a = A(); calls = []
        def get(): calls.append(1); return a
        get()._x = 1; get()._x += 1; del get()._x
        def f(): get()._y = 3; return get()._y
        print(f(), len(calls))
        """,
    "generators": """
        def inner(): 
            got = yield 1
            print("got", got)
            return "done"
        def outer():
            result = yield from inner()
            yield result
        g = outer(); print(next(g), g.send("hello")); g.close()
        print(list(x * y for x in range(3) for y in range(x) if x), {k: v for k, v in zip("ab", (1, 2))})
        """,
    "closures, global and nonlocal": """
        n = 0
        def make():
            m = 10
            def bump():
                global n
                nonlocal m
                n += 1; m += 1
                return n, m
            return bump
        b = make(); b(); print(b(), n)
        """,
    "dataclasses, enums, named tuples, protocols": """
        from dataclasses import dataclass, field, asdict, replace
        from enum import Enum, auto
        from typing import NamedTuple, Protocol
        from collections import namedtuple
        @dataclass(order=True, frozen=True, slots=True)
        class P:
            x: int
            y: list = field(default_factory=list, compare=False)
        class Color(Enum):
            RED = auto()
            BLUE = auto()
        class N(NamedTuple):
            a: int
            b: str = "x"
        T = namedtuple("T", "a b")
        class HasArea(Protocol):
            def area(self) -> float: ...
        print(P(1) < P(2), asdict(P(3)), replace(P(3), x=4), Color["RED"], list(Color), N(1)._replace(a=2), T(1, 2)._asdict())
        try: P(1).x = 2
        except AttributeError as e: print(type(e).__name__, e)
        """,
    "metaclasses and descriptors": """
        class Meta(type):
            def __new__(mcls, name, bases, ns, **kw):
                ns["tag"] = kw.get("tag", "none")
                return super().__new__(mcls, name, bases, ns)
            def __init__(cls, name, bases, ns, **kw): super().__init__(name, bases, ns)
            def __call__(cls, *a): obj = super().__call__(*a); obj.made = True; return obj
        class Base(metaclass=Meta, tag="t"): pass
        class Positive:
            def __set_name__(self, owner, name): self.name = "_" + name
            def __get__(self, obj, t=None): return self if obj is None else getattr(obj, self.name)
            def __set__(self, obj, v):
                if v < 0: raise ValueError(f"{self.name} must be positive")
                setattr(obj, self.name, v)
        class Child(Base):
            size = Positive()
            def __init__(self, n): self.size = n
        print(Child(3).size, Child.tag, Base.tag, type(Child).__name__, isinstance(Child, Meta), isinstance(Meta, type), Child(1).made)
        try: Child(-1)
        except ValueError as e: print(e)
        print(type(3) is int, type(int) is type, type("X", (Child,), {"extra": 1})(2).extra, issubclass(Meta, type))
        """,
    "exceptions": """
        class MyError(ValueError):
            def __init__(self, code): super().__init__(f"code {code}"); self.code = code
        try:
            try: raise MyError(3)
            except MyError as e: raise RuntimeError("outer") from e
            finally: print("finally")
        except RuntimeError as e: print(e, repr(e.__cause__), e.__cause__.code)
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
        except* ValueError as g: print("v", g.exceptions)
        except* TypeError as g: print("t", g.exceptions)
        def f():
            for i in range(5):
                try: continue
                finally:
                    if i == 3: return i
        print(f())
        try: {}["missing"]
        except: print("bare")
        else: print("no")
        """,
    "match": """
        from dataclasses import dataclass
        @dataclass
        class P:
            x: int
            _y: int = 5
        def kind(v):
            match v:
                case 0 | 1: return "small"
                case int(n) if n > 100: return f"big {n}"
                case str() as s: return s.upper()
                case [first, *rest]: return (first, rest)
                case {"k": [a, b], **more}: return (a, b, more)
                case P(0, _y=y): return ("zero", y)
                case P(x, y): return (x, y)
                case None: return "none"
                case _: return "other"
        print([kind(v) for v in (0, 500, "s", [1, 2, 3], {"k": [1, 2], "z": 3}, P(0), P(4), None, 2.5)])
        """,
    "with statements and context managers": """
        from contextlib import contextmanager, suppress, ExitStack
        @contextmanager
        def ctx(n):
            print("in", n)
            try: yield n
            finally: print("out", n)
        with ctx(1) as a, ctx(2) as b: print(a + b)
        with suppress(KeyError): {}["x"]
        with ExitStack() as stack: stack.enter_context(ctx(3))
        """,
    "functions": """
        import functools
        def f(a, /, b=2, *args, c, d=4, **kw): return a, b, args, c, d, kw
        print(f(1, c=3), f(1, 2, 3, c=4, z=5), (lambda *a, k=1: (a, k))(1, 2))
        @functools.lru_cache
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        def deco(g):
            @functools.wraps(g)
            def inner(*a): inner.calls += 1; return g(*a)
            inner.calls = 0
            return inner
        @deco
        def named(x): "doc"; return x
        named(1); print(fib(50), named.__name__, named.__doc__, named.calls, named.__wrapped__(3))
        print(functools.reduce(lambda p, q: p * q, range(1, 6)), sorted("bca", key=lambda s: -ord(s)))
        """,
    "strings": """
        name, width = "x", 8
        print(f"{name!r:>{width}}|{3.14159:.2f}|{1000000:,}|{ {'a': 1}['a'] }")
        print("{0:>{1}} {a[k]} {b.real}".format("r", 5, a={"k": 1}, b=3), "%s %05.1f" % ("s", 2.5), "{:.1%}".format(0.25))
        print("{x}".format_map({"x": 1}), str.format("{}", 2), list(map("{}!".format, "ab")))
        """,
    "scopes": """
        x = "global"
        class A:
            x = "class"
            y = [x for _ in range(1)]
            def f(self): return x
        def g():
            print(sorted(locals()), "x" in globals())
            if (n := 10) > 5: return n
        print(A.y, A().f(), g(), [z := 3, z ** 2], z)
        del x
        try: x
        except NameError as e: print(e)
        """,
    "builtin types as bases": """
        class Stack(list):
            def push(self, v): self.append(v); return self
        class D(dict):
            def __missing__(self, k): return k * 2
        class Int(int):
            def __add__(self, o): return Int(int(self) + o + 1)
        print(Stack().push(1).push(2), D()["ab"], Int(3) + 4, issubclass(Stack, list), D(a=1).get("a"))
        """,
    "abstract classes": """
        from abc import ABC, ABCMeta, abstractmethod
        class Shape(ABC):
            @abstractmethod
            def area(self): ...
            @property
            def name(self): return type(self).__name__
        class Square(Shape):
            def __init__(self, s): self._s = s
            def area(self): return self._s ** 2
        try: Shape()
        except TypeError as e: print("abstract" in str(e))
        class Other(metaclass=ABCMeta): pass
        Shape.register(Other)
        print(Square(3).area(), Square(3).name, isinstance(Other(), Shape), isinstance(3, type), isinstance(Shape, type))
        """,
    "eval and exec of text": """
        x = 3
        def f(y): return eval("x + y") + eval("a * b", {"a": 2}, {"b": 5})
        ns = {}
        exec("def g(n):\\n    return n + 1\\nz = g(1)", ns)
        print(f(4), ns["z"], sorted(k for k in ns if not k.startswith("__")))
        """,
}


def native(source: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(source, "<agent>", "exec", dont_inherit=True), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_program_prints_what_cpython_prints(name: str) -> None:
    source = textwrap.dedent(SNIPPETS[name])
    result = SANDBOX.exec(source)

    assert result.traceback == ""
    assert result.stdout == native(source)


@pytest.mark.parametrize(
    "source",
    ["1/0", "undefined", "{}['k']", "[].nope", "int('x')", "def f(a): pass\nf()", "x = 1\nx()", "raise ValueError('v')",
     "assert 1 == 2, 'msg'", "a, b = 1", "import math\nmath.nope", "class A:\n  __slots__ = ('a',)\nA().b = 1"],
)  # fmt: skip
def test_an_error_is_the_one_of_cpython(source: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whichever it is, ours must be the same
        native(source)
    error = SANDBOX.exec(source).error

    assert (type(error), str(error)) == (type(expected.value), str(expected.value))


def test_a_syntax_error_shows_line_and_caret() -> None:
    result = SANDBOX.exec("x = 1\nif x = 2: pass\n")

    assert isinstance(result.error, SyntaxError)
    assert "line 2" in result.traceback
    assert "if x = 2" in result.traceback
    assert "^" in result.traceback


def test_a_traceback_shows_the_guests_own_frames_and_lines() -> None:
    result = SANDBOX.session().run("def f(x):\n    return 10 / x\n\nprint('a')\nf(0)\n", "<turn 1>")

    assert result.stdout == "a\n"
    assert result.traceback.splitlines() == [
        "Traceback (most recent call last):",
        '  File "<turn 1>", line 5, in <module>',
        "    f(0)",
        '  File "<turn 1>", line 2, in f',
        "    return 10 / x",
        "ZeroDivisionError: division by zero",
    ]


def test_a_traceback_shows_what_a_group_of_exceptions_holds() -> None:
    source = (
        "def low(): return {}['k']\n"
        "try: low()\n"
        "except KeyError as error: kept = error\n"
        "raise ExceptionGroup('many', [kept, ExceptionGroup('few', [ValueError('v')])])\n"
    )
    result = Sandbox().exec(source)

    assert result.traceback.splitlines() == [
        "Traceback (most recent call last):",
        '  File "<agent>", line 4, in <module>',
        "    raise ExceptionGroup('many', [kept, ExceptionGroup('few', [ValueError('v')])])",
        "ExceptionGroup: many (2 sub-exceptions)",
        "  +---------------- 1 ----------------",
        "  | Traceback (most recent call last):",
        '  |   File "<agent>", line 2, in <module>',
        "  |     try: low()",
        '  |   File "<agent>", line 1, in low',
        "  |     def low(): return {}['k']",
        "  | KeyError: 'k'",
        "  +---------------- 2 ----------------",
        "  | ExceptionGroup: few (1 sub-exception)",
        "  |   +---------------- 1 ----------------",
        "  |   | ValueError: v",
        "  |   +------------------------------------",
        "  +------------------------------------",
    ]


def test_a_traceback_of_many_exceptions_is_short() -> None:
    many = "error = ExceptionGroup('g', [ValueError(i) for i in range(99)])\n"
    deep = "for _ in range(99): error = ExceptionGroup('g', [error])\n"
    wide = Sandbox().exec(f"{many}raise error").traceback.splitlines()
    nested = Sandbox().exec(f"{many}{deep}raise error").traceback.splitlines()

    assert wide[-2:] == ["  | ValueError: 14", "  +---------------- ... [84 exceptions cut] ..."]
    assert "  |   |   |   |   ... [exceptions cut] ..." in nested
    assert len(nested) < 20


def test_the_value_of_a_last_expression_is_echoed() -> None:
    result = SANDBOX.exec("x = [1, 2]\nx")

    assert (result.value, result.echo, result.namespace) == ([1, 2], "[1, 2]", {"x": [1, 2]})


def test_names_live_on_in_a_session_and_functions_see_later_values() -> None:
    session = SANDBOX.session({"factor": 2})
    session.run("def scale(x):\n    return x * factor")
    session.run("factor = 10")

    assert session.run("scale(3)").value == 30
    assert sorted(session.namespace) == ["factor", "scale"]


def test_a_decimal_context_lives_on_in_a_session_and_is_none_of_the_hosts() -> None:
    session = SANDBOX.session()
    for source in ("import decimal\ncontext = decimal.getcontext()", "context.prec = 5"):
        assert session.run(source).error is None
        assert decimal.getcontext().prec == 28

    assert session.run("decimal.Decimal(1) / 3").echo == "Decimal('0.33333')"
    assert SANDBOX.exec("import decimal\ndecimal.Decimal(1) / 3").echo == f"Decimal('0.{'3' * 28}')"


def test_a_sandbox_keeps_no_names_between_programs() -> None:
    SANDBOX.exec("leftover = 1")

    assert isinstance(SANDBOX.exec("leftover").error, NameError)


async def test_top_level_await_runs_in_the_callers_loop() -> None:
    async def fetch(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    result = await SANDBOX.aexec(
        "import asyncio\nawait asyncio.gather(*(fetch(i) for i in range(3)))", {"fetch": fetch}
    )

    assert result.value == [1, 2, 3]


def test_recursion_goes_as_deep_as_in_cpython() -> None:
    source = "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nf(900)"

    assert SANDBOX.exec(source).value == 900
    assert isinstance(SANDBOX.exec("def f(n): return f(n)\nf(1)").error, RecursionError)


def test_a_guest_function_runs_in_the_host_after_the_run() -> None:
    double = SANDBOX.exec("def double(x):\n    return [v * 2 for v in x]").namespace["double"]

    assert double([1, 2]) == [2, 4]


expressions = st.recursive(
    st.integers(-5, 5).map(str) | st.sampled_from(["x", "y", "'s'", "None", "True", "[]"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "*", "-", "==", "and", "or", "in", "is not"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        )
        | st.tuples(inner, inner).map(lambda t: f"[{t[0]}, *[{t[1]}]]")
        | st.tuples(inner, inner).map(lambda t: f"({t[0]} if {t[1]} else x)")
        | inner.map(lambda e: f"(lambda x: {e})(2)")
        | inner.map(lambda e: f"[x for x in [{e}] if x]")
    ),
    max_leaves=8,
)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=150, deadline=None)
@given(expressions)
def test_a_random_expression_has_the_value_or_the_error_of_cpython(expression: str) -> None:
    def outcome(run: Any) -> object:
        try:
            return run()
        except Exception as error:  # noqa: BLE001 - the outcome compared is the error
            return type(error), str(error)

    names = {"x": 1, "y": [2]}
    expected = outcome(lambda: eval(expression, dict(names)))
    result = SANDBOX.exec(expression, dict(names))
    actual = (type(result.error), str(result.error)) if result.error else result.value

    assert actual == expected


# -- what is left out is told, and where it was hidden it stays hidden


def test_a_member_that_a_module_has_and_the_guest_does_not_is_refused_with_advice() -> None:
    result = SANDBOX.exec("import json\nwith_file = 1\njson.load(with_file)")

    assert isinstance(result.error, SandboxAttributeError)
    assert str(result.error) == "'json.load' exists, but is not available here; use json.loads(text)"
    assert "line 3" in result.traceback


@pytest.mark.parametrize(
    ("module", "instead"),
    [
        ("os.path", "this sandbox has no file system; work with the values and text you were given"),
        ("runpy", "work with the modules that are registered"),
        ("typing_extensions", "use typing"),
        ("statstics", "did you mean 'statistics'?"),
    ],
)
def test_a_module_that_is_not_granted_is_refused_with_what_to_do_instead(module: str, instead: str) -> None:
    assert str(SANDBOX.exec(f"import {module}").error) == f"import of '{module}' is not allowed; {instead}"


def test_a_handler_of_the_guest_reads_the_same_text() -> None:
    result = SANDBOX.exec("import sys\ntry: sys.settrace\nexcept Exception as error: print(error)")

    assert result.stdout.startswith("'sys.settrace' exists, but is not available here; ")


def test_a_member_that_no_module_has_is_missing_as_in_cpython() -> None:
    result = SANDBOX.exec("import json\njson.nope")

    assert type(result.error) is AttributeError
    assert str(result.error) == "module 'json' has no attribute 'nope'"


@pytest.mark.parametrize(
    ("module", "member", "instead"),
    [
        ("asyncio", "Barrier", "dir(asyncio) lists what is there"),
        ("json", "dump", "use json.dumps(value)"),
        ("random", "randomint", "did you mean 'randint'?"),
    ],
)
def test_an_import_of_a_member_that_is_left_out_says_what_to_do(
    module: str, member: str, instead: str
) -> None:
    result = SANDBOX.exec(f"from {module} import {member}")

    assert str(result.error) == f"cannot import name '{member}' from '{module}'; {instead}"


class Vault:
    """A host class with a secret."""

    def __init__(self) -> None:
        self._secret = 42

    def open(self) -> int:
        return self._secret


PRELUDE = """
def spy(self, name): return name
HOOK = {"__getattribute__": spy}
class N(type): pass
class N2(N): pass
class MM(type):
    def order(cls): return super().mro()
    def line(cls): return super().__mro__
class M(type, metaclass=MM): pass
class Plain(metaclass=N): pass
class Empty(tuple):
    def __iter__(self): return iter(())
class Silent(dict):
    def get(self, *args): return args[-1]
    def items(self): return []
    def keys(self): return []
    def __iter__(self): return iter(())
    def __contains__(self, key): return False
class Liar(type):
    def __getattribute__(cls, name):
        if name == "__mro__": return (cls, object)
        return type.__getattribute__(cls, name)
class Base(metaclass=Liar): pass
"""


@pytest.mark.parametrize(
    "expression",
    [
        "type.__call__(type, 'X', (Vault,), HOOK)",
        "type.__call__(M, 'X', (Vault,), HOOK)",
        "M('X', (Vault,), HOOK)",
        "M.__call__(M, 'X', (Vault,), HOOK)",
        "getattr(M, '__call__')(M, 'X', (Vault,), HOOK)",
        "getattr(M, '__new__')(M, 'X', (Vault,), HOOK)",
        "super(N, N2).__call__(N2, 'X', (Vault,), HOOK)",
        "MM('X', (type, Vault), HOOK)",
        "N('X', Empty((Vault,)), HOOK)",
        "N('X', (Vault,), Silent(HOOK))",
        "type.__new__(N, 'X', Empty((Vault,)), Silent(HOOK))",
        "Liar('X', (Vault,), {})",
        "Liar('X', (Base, Vault), {})",
    ],
)
def test_no_way_of_calling_a_metaclass_hooks_a_host_class(expression: str) -> None:
    policy = Policy.default()
    policy.cls(Vault)

    result = Sandbox(policy).exec(PRELUDE + expression)

    assert isinstance(result.error, SandboxTypeError)
    assert "it inherits from a class of the host" in str(result.error)


def test_no_member_of_a_class_hides_behind_a_name_that_is_no_plain_text() -> None:
    source = """
class Name(str):
    def __hash__(self): return str.__hash__(self)
    def __eq__(self, other): return False
type("X", (), {Name("__del__"): print})
"""

    result = SANDBOX.exec(source)

    assert isinstance(result.error, SandboxTypeError)


@pytest.mark.parametrize(
    "expression",
    [
        "M.order()",
        "M.line()",
        "M.__mro__",
        "getattr(M, '__mro__')",
        "getattr(M, 'mro')()",
        "super(N, N2).mro(N2)",
        "super(N, N2).mro(Plain)",
        "super(N, N2).__mro__",
        "MM.order(M)",
    ],
)
def test_the_order_of_a_metaclass_is_not_told(expression: str) -> None:
    result = SANDBOX.exec(PRELUDE + expression)

    assert isinstance(result.error, SandboxAttributeError)


@pytest.mark.parametrize(
    "source",
    [
        "class T(type, metaclass=O): pass",
        "O('T', (type,), {})",
        "type.__new__(O, 'T', (type,), {})",
        "class A(metaclass=O): pass\nclass T(A, type): pass",
    ],
)
def test_no_metaclass_orders_the_bases_of_a_metaclass(source: str) -> None:
    prelude = "def order(cls): return [cls, object]\nclass O(type): mro = order\n"

    result = SANDBOX.exec(prelude + source)

    assert isinstance(result.error, SandboxTypeError)
    assert "defines mro()" in str(result.error)


def test_the_order_of_a_metaclass_is_not_stored_later() -> None:
    result = SANDBOX.exec(
        "class P(type): pass\nclass Q(type, metaclass=P): pass\nP.mro = lambda cls: [cls, object]"
    )

    assert isinstance(result.error, SandboxAttributeError)


def test_text_in_annotations_is_guest_code_for_single_dispatch() -> None:
    source = """
        from functools import singledispatch, singledispatchmethod
        seen = []
        class Spy(singledispatchmethod):
            def __setattr__(self, name, value): seen.append(value)
        def f(x): pass
        def no_class(x: "[].append"): pass
        def refused(x: "int.__subclasses__"): pass
        both = singledispatch(f), Spy(f), Spy(f).dispatcher
        for dispatcher in both:
            for function in (no_class, refused):
                try: dispatcher.register(function)
                except (TypeError, SyntaxError) as error: print(type(error).__name__)
        print(seen)
        """

    result = SANDBOX.exec(textwrap.dedent(source))

    assert result.stdout == "TypeError\nSandboxSyntaxError\n" * 3 + "[]\n"


def test_a_class_over_a_model_of_pydantic_is_a_model() -> None:
    policy = Policy.default()
    policy.cls(pydantic.BaseModel)
    result = Sandbox(policy).exec(
        "class Order(BaseModel):\n    lines: list[str] = []\n    def total(self): return len(self.lines)\n"
        "class Late(Order):\n    days: int = 1\n"
        "found = Late(lines=['a'], days='2').model_dump(), Late().total()"
    )
    assert result.error is None
    assert result.namespace["found"] == ({"lines": ["a"], "days": 2}, 0)


def test_a_module_of_the_standard_set_is_imported_where_the_host_has_not_done_it_yet() -> None:
    program = "from agex.sandbox import Sandbox\nprint(Sandbox().exec('import asyncio').error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"


OF_NO_FIELD = """\
from __future__ import annotations
import dataclasses, typing
from dataclasses import dataclass, fields, KW_ONLY, InitVar
from typing import ClassVar
@dataclass
class A:
    x: int
    known: ClassVar[dict] = {}
    count: typing.ClassVar[int] = 3
    more: InitVar[int] = 5
    most: dataclasses.InitVar[int] = 6
    _: KW_ONLY
    k: int = 1
    def __post_init__(self, more, most): self.x += more + most
found = [field.name for field in fields(A)], repr(A(1)), A.known, dict(A.__init__.__annotations__)
try: A(1, 2, 3, 4)
except TypeError as error: message = str(error)
"""


def test_a_text_in_the_annotations_of_a_dataclass_says_that_there_is_no_field() -> None:
    result = Sandbox(Policy.default()).exec(OF_NO_FIELD)

    said = {
        "x": "int",
        "more": "InitVar[int]",
        "most": "dataclasses.InitVar[int]",
        "k": "int",
        "return": None,
    }
    assert result.namespace["found"] == (["x", "k"], "A(x=12, k=1)", {}, said)
    assert (
        result.namespace["message"] == "A.__init__() takes from 2 to 4 positional arguments but 5 were given"
    )
