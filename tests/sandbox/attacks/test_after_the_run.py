"""What the host does with a guest's objects runs no code of the guest's without a limit.

Stopped by: sandbox.classes.hook_guards, sandbox.classes.host_calls, sandbox.classes.class_registry.
"""

import contextlib
import copy
import pickle
import subprocess
import sys
import time
import types
import typing
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import pytest

from agex.errors import EvalError, SandboxError
from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.runtime.context import CURRENT

ERRORS = {
    **{
        name: f"class E(Exception): pass\nE.{name} = property(hostile)\nraise E(1)"
        for name in ("__cause__", "__context__", "__suppress_context__", "__notes__", "__traceback__")
    },
    "exceptions": "class E(ExceptionGroup):\n  exceptions = message = property(hostile)\n  derive = split = hostile\n"
    "raise E('x', [ValueError(1)])",
    "text": "class S(str):\n  rstrip = strip = lstrip = encode = split = expandtabs = hostile\n"
    "raise SyntaxError('x', ('f', 1, 1, S('abc'), 1, 2))",
    "fields of a SyntaxError": "class E(SyntaxError):\n  text = filename = lineno = offset = msg = property(hostile)\n"
    "raise E('x', ('f', 1, 1, 'abc', 1, 2))",
    "the class of the error": "class M(type):\n  __module__ = property(hostile)\nclass E(Exception, metaclass=M): pass\nraise E(1)",
}  # fmt: skip

SHOWN = {
    **{
        name: f"class C:\n  {name} = property(hostile)\nC()"
        for name in ("__doc__", "__match_args__", "__name__", "__annotations__")
    },
    "the name of a method": "import types\nclass C:\n  __name__ = property(hostile)\n  __call__ = hostile\ntypes.MethodType(C(), 1)",
    "a name that is kept": "import functools\nclass C:\n  __name__ = functools.cached_property(hostile)\nC()",
    "__wrapped__": "class C: pass\nC.__wrapped__ = property(hostile)\nC()",
    "keys": "import collections.abc\nclass C:\n  keys = hostile\nC()",
    "a dict": "class C(dict):\n  keys = items = __iter__ = hostile\nC(a=1)",
    "a time zone": "import datetime\nclass T(datetime.tzinfo):\n  utcoffset = tzname = dst = hostile\n"
    "datetime.datetime(2020, 1, 1, tzinfo=T())",
}

HOST = """
import copy, functools, inspect, json, sys, threading, time, traceback, os
from agex.sandbox import Limits, Sandbox

hostile = {"forever": "while True: pass", "exit": "raise SystemExit(3)"}[sys.argv[1]]
session = Sandbox(limits=Limits(seconds=0.2)).session()
result = session.run("def hostile(*args, **kwargs):\\n    " + hostile + "\\n" + sys.argv[2])
value = result.value
uses = [
    lambda: traceback.format_exception(result.error), lambda: inspect.getdoc(value), lambda: inspect.unwrap(value),
    lambda: dict(value), lambda: {}.update(value), lambda: json.dumps(value), lambda: str(value), lambda: hash(value),
    lambda: copy.copy(value), lambda: repr(value), lambda: functools.update_wrapper(lambda: None, value),
]
for use in uses:
    try:
        use()
    except Exception:
        pass
"""


@pytest.mark.parametrize("how", ["forever", "exit"])
@pytest.mark.parametrize("name", [*ERRORS, *SHOWN])
def test_it_ends_and_raises_no_exit(name: str, how: str) -> None:
    source = {**ERRORS, **SHOWN}[name]
    subprocess.run([sys.executable, "-c", HOST, how, source], timeout=40, check=True)


def test_what_a_guest_made_of_the_chain_of_an_error_is_not_what_the_host_reads() -> None:
    session = Sandbox(limits=Limits(seconds=1)).session()
    result = session.run(
        "class E(Exception): pass\nE.__cause__ = property(lambda self: 1)\nE.__notes__ = property(lambda self: 'n')\n"
        "e = E(1)\nraise e from KeyError(2)"
    )

    assert isinstance(result.error.__cause__, KeyError)
    result.error.__cause__ = None
    assert result.error.__cause__ is None
    assert not hasattr(result.error, "__notes__")
    assert session.run("[e.__cause__, e.__notes__]").value == [1, "n"]


def test_a_name_that_an_object_says_itself_is_what_it_says() -> None:
    source = """
import functools
class A:
    def __init__(self): self.asked = 0
    @property
    def __name__(self): self.asked += 1; return f"a{self.asked}"
    @__name__.setter
    def __name__(self, name): self.asked = name
class B:
    @functools.cached_property
    def __name__(self): return "b"
class C:
    __name__ = "c"
a, b, c = A(), B(), C()
a.__name__ = 4
found = [a.__name__, A.__name__, B.__name__, C.__name__, b.__name__, vars(b), c.__name__]
"""
    session = Sandbox(limits=Limits(seconds=5)).session()

    assert session.run(source).error is None
    assert session.namespace["found"] == ["a5", "A", "B", "C", "b", {"__name__": "b"}, "c"]
    assert session.namespace["a"].__name__ == "a6"


CLOSED = {
    "its class": "class C(io.StringIO):\n    def close(self):\n        while True: pass\nfile = C()",
    "a class below": "class B(io.BytesIO):\n    def close(self):\n        while True: pass\nclass C(B): pass\nfile = C()",
    "the file itself": "class C(io.StringIO): pass\ndef forever():\n    while True: pass\n"
    "file = C()\ntry: file.close = forever\nexcept AttributeError: pass",
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED)
def test_a_file_that_the_host_drops_is_closed_under_a_limit(name: str) -> None:
    """Stopped by: sandbox.runtime.workspace_files."""
    code = """
import sys
from agex.sandbox import Limits, Sandbox
session = Sandbox(limits=Limits(seconds=0.2)).session()
assert session.run("import io\\n" + sys.argv[1]).error is None
session.globals.pop("file")
"""

    subprocess.run([sys.executable, "-c", code, CLOSED[name]], timeout=30, check=True)


def test_a_file_of_a_guest_is_its_own_again_in_the_next_run() -> None:
    """Stopped by: sandbox.runtime.workspace_files."""
    session = Sandbox().session()
    session.run("import io\nclass C(io.StringIO):\n    def close(self): print('closed')\n"
                "class D(io.StringIO): pass\nc, d = C(), D('text')")  # fmt: skip

    assert session.globals["d"].read() == "text"
    assert session.run("c.close()\nd.close()\nd.closed").value is True
    assert session.run("c.close()").stdout == "closed\n"


IDENTITY = """
asked = []
def exit(why): raise SystemExit(why)
class L(type):
    def __hash__(cls): return type.__hash__(cls) if not asked else exit("hash")
    def __eq__(cls, other): return cls is other if not asked else exit("eq")
class M(L): pass
class N(type):
    def __getattribute__(cls, name):
        if not asked: return type.__getattribute__(cls, name)
        exit(name)
class C(metaclass=M): pass
class D(metaclass=N): pass
c, d = C(), D()
asked.append(1)
"""


CHANGED = {
    "a method is replaced": "C.__repr__ = lambda self: [][0]",
    "a method is new": "C.__str__ = lambda self: [][0]",
    "a method comes from another class": "class D(C):\n  __repr__ = lambda self: [][0]\nc = D()",
    "a method is deleted and made again": "del C.__repr__\nC.__repr__ = lambda self: [][0]",
    "nothing is": "",
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_what_a_later_run_changes_in_a_class_is_guarded_as_well(change: str) -> None:
    session = Sandbox(limits=Limits(seconds=0.2)).session()
    session.run("class C:\n  def __repr__(self):\n    while True: pass\nc = C()")
    for _ in range(3):
        session.run("x = 1")

    assert session.run(change).error is None

    for _ in range(2):  # a second time, when the class is known as it is
        with pytest.raises((EvalError, IndexError)):
            str(session.namespace["c"])
        session.run("x = 1")


def test_a_metaclass_is_not_asked_between_runs_which_class_is_which() -> None:
    session = Sandbox().session()
    assert session.run(IDENTITY).error is None
    class_, other = type(session.globals["c"]), type(session.globals["d"])

    assert {class_: 1, int: 2}[class_] == 1
    assert other.__qualname__ == "D"
    for ask in ("hash(C)", "[int].index(C)", "D.x"):
        assert "SystemExit" in str(session.run(ask).error)


def test_a_metaclass_is_not_asked_while_the_host_works_in_the_midst_of_a_run() -> None:
    session = Sandbox().session()

    def work(value: object) -> int:
        with session.paused(), session.paused():
            return {type(value): 1}[type(value)]

    session.bind("work", work)

    assert session.run(IDENTITY + "work(c)").value == 1
    assert "SystemExit" in str(session.run(IDENTITY + "work(c)\nhash(C)").error)


@typing.runtime_checkable
class Named(typing.Protocol):
    """What has a name."""

    name: str


PROPERTIES = """
class Endless:
    @property
    def name(self):
        while True: pass
class Ending:
    @property
    def name(self): raise SystemExit
class Plain:
    @property
    def name(self): return "own"
found = Endless(), Ending(), Plain(), Plain
isinstance(Plain(), Named), isinstance(Plain, Named), isinstance(1, Named)
"""


def test_to_ask_whether_an_object_is_of_a_protocol_has_a_limit() -> None:
    """Stopped by: sandbox.patches.typing."""
    done = Sandbox(limits=Limits(seconds=0.2)).exec(PROPERTIES, {"Named": Named})
    *hostile, plain, class_ = done.namespace["found"]
    began = time.monotonic()

    for each in hostile:  # since Python 3.12 nobody asks the property
        with contextlib.suppress(EvalError, SandboxError):
            assert isinstance(each, Named)

    assert time.monotonic() - began < 5
    assert done.value == (True, True, False)
    assert isinstance(plain, Named)
    assert not isinstance(class_(), typing.SupportsInt)


def test_a_protocol_that_is_none_at_run_time_is_asked_by_no_program() -> None:
    """Stopped by: sandbox.patches.typing."""

    class Silent(typing.Protocol):
        name: str

    given = Sandbox().exec("class A: name = 'a'\na = A()").namespace["a"]

    for each in (given, 1):
        with pytest.raises(TypeError, match="runtime_checkable"):
            isinstance(each, Silent)  # type: ignore[misc]


def worked(definitions: str, use: Callable[[Any], Any], program: str = "work(x)", **names: Any) -> Any:
    """Run a program in which the host uses, in time of its own, what the guest hands it."""
    session = Sandbox(limits=Limits(seconds=0.3)).session()

    def work(value: object) -> Any:
        with session.paused():
            return use(value)

    session.add(names)
    session.bind("work", work)
    session.bind("end", lambda: session.stop(Ended()))
    return session.run(f"{definitions}\n{program}")


class Ended(BaseException):
    """Ends a run."""


ENDLESS = "    def __repr__(self):\n        while True: pass"
KEPT = "    def __getattr__(self, name): return name * 2\n    def __eq__(self, other): return 'own'"


def test_what_the_host_asks_for_in_the_midst_of_a_run_has_the_limits_of_one() -> None:
    began = time.monotonic()
    assert "longer than 0.3 s" in str(worked(f"class C:\n{ENDLESS}\nx = C()", repr).error)
    assert time.monotonic() - began < 5


def test_it_runs_as_a_guest_behind_the_second_wall(capfd: pytest.CaptureFixture[str]) -> None:
    """Stopped by: sandbox.runtime.audit_hook."""
    guests: list[object] = []
    program = "class C:\n    def __repr__(self):\n        note()\n        print('said')\n        return 'C'\nx = C()"
    result = worked(program, repr, note=lambda: guests.append(CURRENT.get()))
    assert (result.value, guests == [None], capfd.readouterr().out) == ("C", False, "")


def test_what_ends_the_run_there_ends_it() -> None:
    def use(value: object) -> str:
        with pytest.raises(SandboxError):
            repr(value)
        return "went on"

    result = worked("class C:\n    def __repr__(self): end()\nx = C()", use, "x = work(x)\nwhile True: pass")
    assert type(result.stopped) is Ended


def test_a_run_that_was_to_end_ends_after_the_host_has_asked_an_object() -> None:
    session = Sandbox().session()

    def work(value: object) -> None:
        with session.paused():
            session.interrupt(Ended())
            assert repr(value) == "C"

    session.bind("work", work)
    result = session.run("class C:\n    def __repr__(self): return 'C'\nwork(C())\nwhile True: pass")
    assert type(result.stopped) is Ended


@pytest.mark.parametrize(
    ("body", "use", "value"),
    [
        (KEPT, lambda x: (x.name, x == 1), ("namename", "own")),
        ("    def __iter__(self):\n        yield from [1, 2]", list, [1, 2]),
        ("    @property\n    def __doc__(self): return 'own'", lambda x: x.__doc__, "own"),
        ("    def __repr__(self): return f'<{[D()]!r}>'\nclass D:\n    def __repr__(self): return 'D'", repr, "<[D]>"),
    ],
)  # fmt: skip
def test_objects_answer_in_the_midst_of_a_run_as_they_do_after_it(
    body: str, use: Callable[[Any], Any], value: object
) -> None:
    result = worked(f"class C:\n{body}\nx = C()", use, "work(x), work(x)")
    assert result.value == (value, value)


def test_another_guest_that_works_meanwhile_asks_them_as_its_own() -> None:
    other = Sandbox().session()

    def use(value: object) -> Any:
        other.add({"x": value})
        return other.run("sum(1 for _ in range(2000) if x == 1), [x, x].count(3), repr(x)").value

    program = (
        "class C:\n    def __eq__(self, other): return True\n    def __repr__(self): return 'C'\nx = C()"
    )
    assert worked(program, use).value == (2000, 2, "C")


def test_what_a_guest_makes_of_its_class_while_the_host_works_stays() -> None:
    def use(value: Any) -> str:
        value.change()
        return repr(value)

    program = """
class C:
    def __repr__(self): return "before"
    def change(self):
        C.__repr__ = lambda self: "after"
x = C()
"""
    assert worked(program, use, "work(x), repr(x)").value == ("after", "after")


# -- functions that the host calls later ----------------------------------------------------------


class Vault:
    """A class of the host's with private state, and a member that its registration leaves out."""

    hidden = "left out"

    def __init__(self) -> None:
        self._secret = "secret"

    def size(self) -> int:
        return len(self._secret)


class Ticket:
    """A class of the host's that the guest gets objects of, and makes none."""


LATER = {
    "a class made by type()": (
        "box = []\n"
        "    type('S', (Vault,), {'__setattr__': lambda s, k, v: box.append((k, v))})()\n"
        "    return box"
    ),
    "a class that a library makes by type()": (
        "box = []\n"
        "    hook = {'__setattr__': lambda s, k, v: box.append((k, v))}\n"
        "    pandas.Series([hook]).map(functools.partial(type, 'S', (Vault,)))[0]()\n"
        "    return box"
    ),
    "a class that may not be called": "return type(ticket)()",
    "a metaclass": "return type(Vault)('S', (Vault,), {'__setattr__': lambda s, k, v: None})",
    "a cache over a class": "return functools.cache(Vault).hidden",
    "a context manager over a class": "return contextlib.contextmanager(Vault).hidden",
    "a member of an enumeration": (
        "class E(enum.Enum):\n"
        "        def __new__(cls, *a): return vault\n"
        "        A = 1\n"
        "    return vault._name_"
    ),
    "a copy": (
        "class A:\n"
        "        def __new__(cls): return vault\n"
        "        def __getstate__(self): return (None, {'size': 5})\n"
        "    return copy.copy(object.__new__(A))"
    ),
    "a dataclass's method": (
        "@dataclasses.dataclass\n    class D:\n        _secret: str = ''\n    return D.__repr__(vault)"
    ),
    "an attribute getter": "return operator.attrgetter('_secret')(vault)",
    "a format string": "return '{0._secret}'.format(vault)",
}


@pytest.mark.parametrize("body", [pytest.param(each, id=name) for name, each in LATER.items()])
def test_a_function_that_the_host_calls_later_gets_no_more_than_in_its_run(body: str) -> None:
    policy = Policy.default()
    policy.cls(Vault, exclude=["hidden"])
    policy.cls(Ticket, constructable=False)
    if "pandas" in body:
        policy.module(pytest.importorskip("pandas"))
    vault = Vault()
    imports = "import contextlib, copy, dataclasses, enum, functools, operator\n"
    session = Sandbox(policy).session()
    session.bind("vault", vault)
    session.bind("ticket", Ticket())
    if "pandas" in body:
        imports += "import pandas\n"
    assert session.run(f"{imports}def later():\n    {body}\n").error is None
    later = session.namespace["later"]

    with pytest.raises((AttributeError, TypeError, SandboxError)):
        later()

    assert vars(vault) == {"_secret": "secret"}
    with pytest.raises((AttributeError, TypeError, SandboxError)):
        raise session.call(later).error or AssertionError("in a run it is refused, too")


@pytest.mark.parametrize("name", ["_member_map_", "_value2member_map_", "_member_names_"])
def test_the_tables_of_an_enumeration_stay_what_they_are(name: str) -> None:
    """Whoever stores a member asks them for it.

    Stopped by: sandbox.patches.enum.
    """
    result = Sandbox().exec(f"import enum\nclass E(enum.Enum):\n  A = 1\nE.{name} = 5")
    assert isinstance(result.error, SandboxError)
    result = Sandbox().exec(f"import enum\nclass E(enum.Enum):\n  A = 1\nE.extra = 5\nE.{name}, E.extra")
    assert result.error is None


@pytest.mark.parametrize("name", ["__globals__", "upper", "__self__"])
def test_a_method_is_pickled_by_no_name_that_the_guest_gave_its_function(name: str) -> None:
    """Stopped by: sandbox.patches.copy."""

    def answer() -> int:
        return 1

    policy = Policy.default()
    policy.fn(answer)
    source = f"import types\ndef f(self): return 5\nf.__name__ = {name!r}\n"
    for owner in ("answer", "'text'"):
        made = Sandbox(policy).exec(f"{source}types.MethodType(f, {owner})").value
        assert type(copy.copy(made)) is types.MethodType
        assert (copy.copy(made)(), copy.copy(made).__self__) == (5, made.__self__)
        with pytest.raises(pickle.PicklingError):
            pickle.dumps(made)


def test_methods_of_the_host_are_pickled_as_ever() -> None:
    """Stopped by: sandbox.patches.copy."""
    for method in (NormalDist(5, 1).cdf, NormalDist.from_samples, {"a": 1}.get):
        assert pickle.loads(pickle.dumps(method)).__self__ == method.__self__
        assert copy.copy(method) == method
