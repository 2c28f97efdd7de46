"""Ways round the guards that were found once: each stays shut.

Stopped by: sandbox.guards.guards, sandbox.guards.attribute_doors, sandbox.classes.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any

import pytest

from agex.errors import SandboxError
from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox

SECRET = "S3CRET"
GLOBALS = "{0.__globals__}"


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Record:
    a: int
    _secret: str = SECRET


class Vault:
    _key = SECRET
    kept = SECRET

    def __init__(self) -> None:
        self._secret = SECRET

    @functools.cached_property
    def heavy(self) -> int:
        return 1


def host_function(x: int = 1) -> int:
    return x


def run(source: str, **names: Any) -> Any:
    policy = Policy.default()
    for class_ in (Color, Record, Vault):
        policy.cls(class_)
    policy.fn(host_function)
    return Sandbox(policy, limits=Limits(seconds=5)).exec(
        source, {"vault": Vault(), "record": Record(1), **names}
    )


FORMATS = {
    "super": f"class S(str):\n  def f(self, *a): return super().format(*a)\nS('{GLOBALS}').f(host_function)",
    "subclass": f"class S(str): pass\ns = S('{GLOBALS}')\ns.format(host_function)",
    "generic alias": f"import types\ntypes.GenericAlias(str, ()).format('{GLOBALS}', host_function)",
    "annotated": f"import typing\ntyping.Annotated[str, 1].format('{GLOBALS}', host_function)",
    "generic class": f"import typing\nT = typing.TypeVar('T')\nclass S(str, typing.Generic[T]): pass\n"
    f"S[int].format('{GLOBALS}', host_function)",
    "user string": f"import collections\ncollections.UserString('{GLOBALS}').format(host_function)",
    "its subclass": f"import collections\nclass S(collections.UserString): pass\nS('{GLOBALS}').format(host_function)",
    "format_map": "import collections\ncollections.UserString('{x.__globals__}').format_map(dict(x=host_function))",
    "enum": f"import enum\nclass S(enum.StrEnum):\n  A = '{GLOBALS}'\nS.A.format(host_function)",
    "getattr": f"class S(str): pass\ngetattr(S('{GLOBALS}'), 'format')(host_function)",
    "attrgetter": f"import operator\nclass S(str): pass\noperator.attrgetter('format')(S('{GLOBALS}'))(host_function)",
    "pattern": f"class S(str): pass\nmatch S('{GLOBALS}'):\n  case S(format=f): pass\nf(host_function)",
    "augmented assignment": f"class S(str): pass\nclass E:\n  def __radd__(self, f): return f(host_function)\n"
    f"s = S('{GLOBALS}')\ns.format += E()\ns.format",
    "nested field": f"'{{:{GLOBALS[:-1]}}}}}'.format(1, host_function)",
}


@pytest.mark.parametrize("source", FORMATS.values(), ids=FORMATS)
def test_a_format_string_walks_no_denied_attribute_however_it_is_reached(source: str) -> None:
    """Stopped by: sandbox.stdlib.string_format."""
    result = run(source)
    assert isinstance(result.error, SandboxError | ValueError)
    assert "__builtins__" not in str(result.value)


READS = {
    "wraps": "import functools\nfunctools.wraps(vault, assigned=['_secret'])(lambda: 0)._secret",
    "asdict": "import dataclasses\ndataclasses.asdict(record)",
    "astuple": "import dataclasses\ndataclasses.astuple([record][0])",
    "asdict nested": "import dataclasses\n@dataclasses.dataclass\nclass N:\n  r: object\ndataclasses.asdict(N(record))",
    "getattribute of a class with a metaclass": "class M(type): pass\nclass A(metaclass=M): pass\n"
    "A.__getattribute__(vault, '_secret')",
    "getstate": "class M(type): pass\nclass A(metaclass=M): pass\nA.__getstate__(vault)",
    "dir": "class A: pass\nA.__dir__(vault)",
    "metaclass that lies about identity": "class Pure: pass\nclass M(type):\n"
    "  def __hash__(cls): return hash(Pure)\n  def __eq__(cls, other): return True\n"
    "class S(Vault, metaclass=M):\n  def leak(self): return self._secret\nS().leak()",
    "augmented assignment": "class E:\n  def __radd__(self, read): return read(vault)\n"
    "class A: pass\nA.__getstate__ += E()\nA.__getstate__",
    "where an array is": "import array\narray.array('i', [1]).buffer_info()",
    "where functions of datetime are": "import datetime\ndatetime.datetime_CAPI",
    "a time zone of made up data": "import io, zoneinfo\nzoneinfo.ZoneInfo.from_file(io.BytesIO(b'TZif' + bytes(40)))",
    "a time zone of made up data, by a zone": "import io, zoneinfo\n"
    "getattr(zoneinfo.ZoneInfo('UTC'), 'from_file')(io.BytesIO(b'TZif' + bytes(40)))",
    "walrus in a lazy generator": "class Own:\n  _secret = _a = 1\ndef f(v):\n  x = Own()\n"
    "  g = (x := v for _ in [1])\n  x._a\n  next(g)\n  return x._secret\nf(vault)",
}


@pytest.mark.parametrize("source", READS.values(), ids=READS)
def test_private_state_of_the_host_is_not_read(source: str) -> None:
    result = run(source)
    assert isinstance(result.error, SandboxError)
    assert SECRET not in str(result.value)


CRASHES = {
    "on an object": "d.ctime()",
    "by name": "import operator\noperator.methodcaller('ctime')(d)",
    "of the class": "list(map(datetime.date.ctime, [d]))",
    "of a time": "datetime.datetime(bytes([0, 0, 1, 1, 0, 0, 0, 0, 0, 0])).ctime()",
    "of a class of its own": "class D(datetime.date):\n  year = 1\n  def f(self): return super().ctime()\nD(bytes([0, 0, 1, 1])).f()",
}


@pytest.mark.parametrize("source", CRASHES.values(), ids=CRASHES)
def test_a_date_of_the_year_0_does_not_end_the_process(source: str) -> None:
    """Stopped by: sandbox.stdlib.datetime."""
    result = run(f"import datetime\nd = datetime.date(bytes([0, 0, 1, 1]))\n{source}")
    assert isinstance(result.error, ValueError)


def test_a_date_shows_itself_as_c_does() -> None:
    """Stopped by: sandbox.stdlib.datetime."""
    source = "import datetime, time\nd = datetime.datetime(2024, 2, 29, 1)\n"
    shown = "[d.ctime(), datetime.datetime.ctime(d), datetime.date.ctime(d), time.ctime(0)[-4:]]"
    assert run(source + shown).value == [
        *["Thu Feb 29 01:00:00 2024"] * 2,
        "Thu Feb 29 00:00:00 2024",
        "1970",
    ]


KEPT = Record(1)
"""A record of the host's."""


def test_pprint_shows_as_a_namespace_only_what_is_one() -> None:
    """Stopped by: sandbox.patches.methods."""
    source = """
import pprint, types
class P(pprint.PrettyPrinter):
    def format(self, o, *a): return "x" * 200, True, False
class S(Vault):
    __repr__ = super(types.SimpleNamespace, types.SimpleNamespace).__repr__
pprint.pprint({"a": "a" * 50, "b": ["b" * 50]})
P().pprint(S())
"""
    result = run(source)

    assert result.stdout == f"{{'a': {'a' * 50!r},\n 'b': {['b' * 50]!r}}}\n"
    assert isinstance(result.error, TypeError)


WRITES = {
    "members ==": "class E:\n  def __eq__(self, o): o['X'] = 1; return True\nColor.__members__ == E()",
    "members |": "class E:\n  def __ror__(self, o): o['X'] = 1; return o\nColor.__members__ | E()",
    "dataclass fields": "Record.__dataclass_fields__['X'] = 1",
    "final": "import typing\ntyping.final(Vault)",
    "no_type_check": "import typing\ntyping.no_type_check(host_function)",
    "dataclass_transform": "import typing\ntyping.dataclass_transform()(Vault)",
    "abstractmethod": "import abc\nabc.abstractmethod(host_function)",
    "augmented assignment": "class E:\n  def __radd__(self, store): store(host_function, 'X', 1)\n"
    "class A: pass\nA.__setattr__ += E()",
    "init of a class with a metaclass": "class M(type):\n  def f(cls): return cls.__init__\n"
    "class A(Record, metaclass=M): pass\nA.f()(record, 2)",
    "init of a class with a metaclass that hashes": "class M(type):\n  def __hash__(c): return 1\nclass P(metaclass=M): pass\n"
    "class N(type):\n  def f(cls): return cls.__init__\nclass A(Record, metaclass=N): pass\nA.f()(record, 2)",
    "augmented init": "class E:\n  def __radd__(self, init): init(record, 2)\n"
    "class A(Record): pass\nA.__init__ += E()",
    "total_ordering": "import functools\nfunctools.total_ordering(Color)",
    "register": "import numbers\nnumbers.Number.register(str)",
    "calendar": "import calendar\ncalendar.setfirstweekday(6)",
    "reprlib": "import reprlib\nreprlib.aRepr.maxlist = 1",
    "decimal": "import decimal\ndecimal.getcontext().prec = 5\ndecimal.getcontext().traps[decimal.Inexact] = True",
    "random": "import random\nrandom.seed(1)",
}


@pytest.mark.parametrize("source", WRITES.values(), ids=WRITES)
def test_the_host_is_not_changed(source: str) -> None:
    import calendar
    import decimal
    import numbers
    import random
    import reprlib

    def state() -> tuple[Any, ...]:
        return (
            list(Color.__members__), KEPT.a, list(Record.__dataclass_fields__), vars(host_function), set(vars(Vault)),
            isinstance("", numbers.Number), calendar.firstweekday(), reprlib.aRepr.maxlist,
            decimal.getcontext().prec, dict(decimal.getcontext().traps), random.getstate(),
        )  # fmt: skip

    before = state()
    run(source, record=KEPT)
    assert state() == before


PLANTED = {
    "an event": "import asyncio\nasyncio.Event.clear(vault)",
    "a semaphore": "import asyncio\nasyncio.Semaphore.release(vault)",
    "a calendar": "import calendar\ncalendar.Calendar.setfirstweekday(vault, 1)",
    "a comparison of texts": "import difflib\ndifflib.SequenceMatcher.set_seq1(vault, 1)",
    "a list": "import collections\ncollections.UserList.__iadd__(vault, [1])",
    "a stack": "import contextlib\ncontextlib.ExitStack.pop_all(vault)",
    "a partial method": "import functools\nfunctools.partialmethod(Vault.heavy).__get__(record)",
    "a partial method of a class method": "import functools\n"
    "functools.partialmethod(classmethod(Vault.heavy)).__get__(None, record)",
    "a partial method over the real one": "import functools\nclass P(functools.partialmethod):\n"
    "  def __init__(self): self.func, self.args, self.keywords = Vault.heavy, (), {}\nP().__get__(record)",
    "a method that dispatches": "import functools\nm = functools.singledispatchmethod(lambda self, x: 1)\n"
    "m.register(int, Vault.heavy)\nm.__get__(record)(1)",
    "a method that dispatches by another": "import functools\nclass D:\n  def dispatch(self, cls): return Vault.heavy\n"
    "class M(functools.singledispatchmethod): pass\nm = M(lambda self, x: 1)\nm.dispatcher = D()\nm.__get__(record)(1)",
}
if sys.version_info >= (3, 13):
    PLANTED["a queue that is shut down"] = "import asyncio\nasyncio.Queue.shutdown(vault)"


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_nothing_is_planted_in_an_object_that_a_method_is_not_of(source: str) -> None:
    """Stopped by: sandbox.patches.methods, sandbox.stdlib.functools."""
    vault, record = Vault(), Record(1)
    vault.__dict__.update(_value=1, a=1, data=[], _exit_callbacks=[])
    before = dict(vars(vault)), dict(vars(record))
    result = run(source, vault=vault, record=record)

    assert isinstance(result.error, SandboxError | TypeError)
    assert (vars(vault), vars(record)) == before
    assert vault.__dict__["data"] == []


TABLES = {
    "enumerations": "import enum\nclass E(enum.IntEnum):\n  A = 1\nsuper(E, E)._member_names_.append('x')",
    "their values": "import enum\nclass E(enum.IntEnum):\n  A = 1\n  def f(self): super()._value2member_map_[2] = 1\nE.A.f()",
    "defaults": "import decimal\ndecimal.DecimalTuple._field_defaults['x'] = 1",
    "slots": "import statistics\nstatistics.NormalDist.__slots__['x'] = 1",
    "names of a module": "import typing\ntyping.io.__all__.append('x')",
}


@pytest.mark.parametrize("source", TABLES.values(), ids=TABLES)
def test_what_classes_of_python_hold_stays_as_it_is(source: str) -> None:
    import decimal
    import statistics
    import typing

    def state() -> tuple[Any, ...]:
        old = vars(typing).get("io")  # until Python 3.12
        return (
            list(enum.IntEnum._member_names_), dict(enum.IntEnum._value2member_map_),
            dict(decimal.DecimalTuple._field_defaults), dict(statistics.NormalDist.__slots__),
            list(vars(old)["__all__"]) if old is not None else None,
        )  # fmt: skip

    before = state()
    run(source)
    assert state() == before


def test_methods_that_are_bound_anew_do_what_the_real_ones_do() -> None:
    """Stopped by: sandbox.stdlib.functools."""
    source = """
import functools
class C:
    def f(self, a, b=0, *, c=0): return a, b, c
    g = functools.partialmethod(f, 1, c=3)
    h = functools.partialmethod(g, 2)
    @classmethod
    def k(cls, a): return cls.__name__, a
    of_class = functools.partialmethod(k, 5)
    @functools.singledispatchmethod
    def d(self, x): return "other"
    @d.register
    def _(self, x: int): return "int"
    @d.register(str)
    @classmethod
    def _(cls, x): return cls.__name__
c = C()
print(c.g(), c.h(), C.g(c), c.of_class(), C.of_class(), c.d(1), c.d("x"), c.d([]), c.d.__name__)
"""
    done = run(source)
    assert done.stdout == "(1, 0, 3) (1, 2, 3) (1, 0, 3) ('C', 5) ('C', 5) int C other d\n"


GIVES = "  def __new__(cls): return {}\n"
ALIASES = {
    "of typing, over a function": "import typing\ntyping.Annotated[lambda: {}, 1]()",
    "of typing, over an enumeration": "import typing\ntyping.Annotated[Color, 1](1)",
    "of typing, over a class": f"import typing\nT = typing.TypeVar('T')\nclass G(typing.Generic[T]):\n{GIVES}G[int]()",
    "of type": "type[int](vault)",
    "of type, with another parameter": "import typing\nT = typing.TypeVar('T')\ntype[T][int](vault)",
    "of type, unpacked": "try: next(iter(type[int]))(vault)\nexcept TypeError: pass",
    "made by hand": f"import types\nclass G:\n{GIVES}types.GenericAlias(G, (int,))()",
    "a class says it": f"import types\nclass G:\n{GIVES}  __class_getitem__ = classmethod(types.GenericAlias)\nG[int]()",
    "inherited": f"class G(list):\n{GIVES}G[int]()",
    "inherited from an abstract class": f"import collections.abc\nclass G(collections.abc.Sized):\n{GIVES}"
    "class H(G, list): pass\nH[int]()",
    "inherited, by super": f"class G(list):\n{GIVES}  @classmethod\n"
    "  def of(cls): return super().__class_getitem__(int)\nG.of()()",
    "called by a metaclass": "class M(type):\n  def __call__(cls): return {}\nclass G(list, metaclass=M): pass\nG[int]()",
}


@pytest.fixture
def without_the_call_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what pandera, which other tests import, puts in place of Python's: it fails for a function."""
    alias: Any = vars(typing)["_GenericAlias"]
    if "__call__" in vars(alias):
        monkeypatch.delattr(alias, "__call__")


@pytest.mark.usefixtures("without_the_call_of_a_library")
@pytest.mark.parametrize("given", ["vault", "Vault", "host_function", "Color.RED"])
@pytest.mark.parametrize("source", ALIASES.values(), ids=ALIASES)
def test_what_the_call_of_an_alias_gives_is_not_written_to(source: str, given: str) -> None:
    """Stopped by: sandbox.classes.generic_classes, sandbox.stdlib.generic_alias."""
    vault = Vault()
    result = run(source.replace("{}", given), vault=vault)

    assert result.error is None
    assert not any("__orig_class__" in vars(each) for each in (vault, Vault, host_function, Color.RED))


IN_A_PROCESS_WITH_A_LIBRARY = """
import typing

def of_the_library(self, *args, **kwargs):
    return real(self, *args, **kwargs)

real = typing._GenericAlias.__call__
typing._GenericAlias.__call__ = of_the_library  # as pandera does when it is imported
from agex.sandbox import Policy, Sandbox

class Vault: pass

policy, vault = Policy.default(), Vault()
policy.cls(Vault)
source = "import typing\\nT = typing.TypeVar('T')\\nclass G(typing.Generic[T]):\\n  def __new__(cls): return vault\\nG[int]()"
result = Sandbox(policy).exec(source, {"vault": vault})
print(result.error, vars(vault))
"""


def test_a_library_that_replaces_the_call_of_aliases_opens_no_way() -> None:
    """Stopped by: sandbox.classes.generic_classes."""
    command = [sys.executable, "-c", IN_A_PROCESS_WITH_A_LIBRARY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "None {}\n"


def test_an_object_of_the_code_knows_the_alias_it_was_made_by() -> None:
    """Stopped by: sandbox.classes.generic_classes."""
    source = """
import typing
T = typing.TypeVar("T")
class Box(typing.Generic[T]): pass
class Names(list): pass
print(Box[int]().__orig_class__, Names[T][str]("a").__orig_class__, Names[int] == Names[int])
print(type[T][int], typing.get_origin(type[int]) is type, "__class_getitem__" in vars(Names))
"""
    assert run(source).stdout == "__main__.Box[int] __main__.Names[str] True\ntype[int] True False\n"


LAZIES = [
    "filter(None, it)", "zip(it)", "enumerate(it)", "map(str, it)", "chain(it)", "islice(it, 3)", "takewhile(bool, it)",
    "chain.from_iterable([it])", "chain(tee(it)[0])", "cycle(it)", "zip_longest(it, it)", "map.__new__(map, str, it)",
]  # fmt: skip


@pytest.mark.parametrize("nested", LAZIES)
def test_iterators_do_not_nest_until_the_process_dies(nested: str) -> None:
    """Stopped by: sandbox.stdlib.itertools."""
    source = f"from itertools import *\nit = iter([1])\nfor _ in range(500_000): it = {nested}\nnext(it)"
    assert isinstance(run(source).error, RecursionError)


@pytest.mark.parametrize("lazy", ["enumerate", "filter", "map", "reversed", "zip"])
def test_a_guarded_iterator_type_shows_itself_as_the_builtin(lazy: str) -> None:
    """Stopped by: sandbox.stdlib.itertools."""
    value = run(f"{lazy}.__name__, repr({lazy}), type({lazy}) is type, issubclass({lazy}, object)").value
    assert value == (lazy, f"<class '{lazy}'>", True, True)


ADDRESS = "D = {'data': (id(1), False), 'shape': (4,), 'typestr': '|u1', 'version': 3}\n"
RAW = {
    "getattr": "class A:\n  def __getattr__(self, n):\n    if n == '__array_interface__': return D\n"
    "    raise AttributeError(n)\na = A()",
    "getattribute": "class A:\n  def __getattribute__(self, n):\n    if n == '__array_interface__': return D\n"
    "    return object.__getattribute__(self, n)\na = A()",
    "vars": "class A: pass\na = A()\nvars(a)['__array_interface__'] = D",
    "dict": "class A: pass\na = A()\na.__dict__.update(__array_interface__=D)",
    "namespace": "import types\na = types.SimpleNamespace(**{'__array_interface__': D})",
    "protocol": "import typing\nclass P(typing.Protocol):\n  def __init__(self): pass\n"
    "a = object.__new__(P)\nvars(a)['__array_interface__'] = D",
    "type": "a = type('A', (), {'__array_interface__': D})()",
    "function": "def a(): pass\nvars(a)['__array_interface__'] = D",
}


@pytest.mark.parametrize("source", RAW.values(), ids=RAW)
def test_numpy_is_told_no_address_of_memory(source: str) -> None:
    """Stopped by: sandbox.classes.unsafe_protocols."""
    numpy = pytest.importorskip("numpy", reason="the extra `test` has numpy")
    given = run(ADDRESS + source).namespace.get("a")
    assert numpy.asarray(given).dtype == object


HOOK = "class A:\n  def {name}(self, *a):\n    {body}\na = A()"


@pytest.mark.parametrize("body", ["raise SystemExit(3)", "raise BaseException('x')", "raise GeneratorExit"])
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("__repr__", repr),
        ("__str__", str),
        ("__hash__", hash),
        ("__bool__", bool),
        ("__add__", lambda a: a + 1),
        ("__radd__", lambda a: 1 + a),
        ("__getattr__", lambda a: hasattr(a, "x")),
        ("_repr_html_", lambda a: a._repr_html_()),  # as a notebook does
        ("_repr_mimebundle_", lambda a: a._repr_mimebundle_(None, None)),
        ("_ipython_display_", lambda a: a._ipython_display_()),
    ],
)
def test_what_the_host_asks_of_a_guest_object_raises_nothing_that_would_end_it(
    name: str, use: Any, body: str
) -> None:
    """Stopped by: sandbox.classes.hook_guards, sandbox.classes.host_calls."""
    given = run(HOOK.format(name=name, body=body)).namespace["a"]
    with pytest.raises(SandboxError):
        use(given)


def test_a_generator_that_the_host_iterates_over_raises_nothing_that_would_end_it() -> None:
    """Stopped by: sandbox.classes.hook_guards, sandbox.classes.host_calls."""
    given = run("class A:\n  def __iter__(self):\n    yield 1\n    raise SystemExit\na = A()").namespace["a"]
    found = iter(given)
    assert next(found) == 1
    with pytest.raises(SandboxError):
        next(found)


def test_a_generator_of_a_guest_class_gives_the_host_its_values() -> None:
    """Stopped by: sandbox.classes.hook_guards, sandbox.classes.host_calls."""
    assert list(run("class A:\n  def __iter__(self): yield from 'abc'\na = A()").namespace["a"]) == [
        "a",
        "b",
        "c",
    ]


def test_what_the_host_asks_of_a_guest_object_has_a_time_limit() -> None:
    """Stopped by: sandbox.classes.hook_guards, sandbox.classes.host_calls."""
    source = "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E"
    result = Sandbox(limits=Limits(seconds=0.1)).exec(source)
    with pytest.raises(Exception, match=r"ran longer than 0\.1 s"):
        str(result.error)


def test_who_asks_an_abstract_class_of_a_guest_waits_so_long_only() -> None:
    """Stopped by: sandbox.classes.abc_register, sandbox.classes.host_calls."""
    source = (
        "import abc\nclass A(abc.ABC):\n  @classmethod\n  def __subclasshook__(cls, other):\n"
        "    while other.__name__ != 'int': pass\n    return True\nheld = vars(A)['__subclasshook__']"
    )
    session = Sandbox(limits=Limits(seconds=0.1)).session()
    given = session.run(source).namespace["A"]

    with pytest.raises(Exception, match=r"ran longer than 0\.1 s"):
        isinstance("", given)
    assert isinstance(1, given)
    assert session.run("vars(A)['__subclasshook__'] is held, isinstance(2, A)").value == (True, True)


def test_the_methods_of_a_guest_class_are_its_own_again_in_the_next_run() -> None:
    """Stopped by: sandbox.classes.hook_guards."""
    session = Sandbox().session()
    session.run("class A:\n  def __repr__(self): return 'A!'\na = A()\nown = A.__repr__")
    assert repr(session.namespace["a"]) == "A!"
    assert session.run("A.__repr__ is own, repr(a)").value == (True, "A!")


def test_a_refused_ending_has_its_line() -> None:
    assert 'File "<agent>", line 2' in run("x = 1\nraise SystemExit(3)").traceback


def test_guest_dunder_methods_called_between_runs_can_call_each_other() -> None:
    """Stopped by: sandbox.classes.hook_guards."""
    source = "@functools.total_ordering\nclass N:\n  def __init__(self, n): self.n = n\n"
    source += "  def __eq__(self, o): return self.n == o.n\n  def __lt__(self, o): return self.n < o.n\n"
    source += "  def __repr__(self): return f'N({self.n})'\nitems = [N(2), N(1)]"
    items = run("import functools\n" + source).namespace["items"]
    assert repr(sorted(items)) == "[N(1), N(2)]"
    assert functools.reduce(max, items).n == 2


def test_a_result_shows_itself_without_asking_the_guests_objects() -> None:
    """Stopped by: sandbox.runtime.result."""
    program = (
        "class C(Exception):\n    def __repr__(self): asked.append(1); return 'x'\n    __str__ = __repr__\n"
    )
    asked: list[int] = []
    given = Sandbox().exec(program + "raise C()", {"asked": asked})
    asked.clear()

    assert repr(given) == "Result(echo=None, stdout='', error=C)"
    assert asked == []


def test_the_type_that_is_revealed_is_said_in_the_output_of_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Stopped by: sandbox.stdlib.typing."""
    done = run("import typing\ntyping.reveal_type(5)")

    assert (done.value, done.stdout) == (5, "Runtime type is 'int'\n")
    assert capsys.readouterr().err == ""


def test_an_object_of_the_guests_may_have_names_that_mean_something_elsewhere() -> None:
    result = run("""
import dataclasses
@dataclasses.dataclass
class P:
    format: str
    obj: int
p = P("a", 1)
p.format += "b"
p.obj += 1
match p:
    case P(format=f, obj=o):
        found = f, o
(*found, getattr(p, "format"), p.obj)
""")
    assert result.value == ("ab", 2, "ab", 2)


def test_an_augmented_assignment_asks_whether_it_may_read() -> None:
    """Stopped by: sandbox.language.transformer."""
    policy = Policy.default()
    policy.cls(Record, exclude=["a"])
    source = "class A(Record): pass\nx = A(1)\nx.a += 1"
    result = Sandbox(policy).exec(source)
    assert isinstance(result.error, SandboxError)


STARS = ["__dict__", "__class__", "__reduce_ex__", "__builtins__", "check!"]


@pytest.mark.parametrize("name", STARS)
def test_a_module_of_the_guests_hands_out_only_what_it_defines(name: str) -> None:
    """Stopped by: sandbox.guards.workspace_modules."""
    text = f"__all__ = ['a', {name!r}]\na = 1\n"
    source = f"open('m.py', 'w').write({text!r})\nfrom m import *\nfound = globals()[{name!r}]"
    result = Sandbox(Policy.default(), fs=connect_fs()).exec(source)
    assert isinstance(result.error, SandboxError | KeyError | AttributeError)
    assert "found" not in result.namespace


@pytest.mark.parametrize("names", ["", "__all__ = ['a', '_b']"])
def test_a_module_of_the_guests_is_imported_with_a_star(names: str) -> None:
    """Stopped by: sandbox.guards.workspace_modules."""
    text = f"{names}\na = 1\n_b = 2\n"
    result = Sandbox(Policy.default(), fs=connect_fs()).exec(
        f"open('m.py', 'w').write({text!r})\nfrom m import *\na, '_b' in globals(), 'm' in globals()"
    )
    assert result.value == (1, "_b" in names, False)


@pytest.mark.parametrize("name", ["__dict__", "__class__", "__annotations__", "__name__"])
@pytest.mark.parametrize("statement", ["import m.{} as found", "from m import {} as found"])
def test_a_file_is_no_way_to_what_every_module_has(name: str, statement: str) -> None:
    """Stopped by: sandbox.guards.workspace_modules."""
    files = (
        f"import os\nos.mkdir('m')\nopen('m/__init__.py', 'w').close()\nopen('m/{name}.py', 'w').close()\n"
    )
    result = Sandbox(Policy.default(), fs=connect_fs()).exec(files + statement.format(name))
    found = result.namespace.get("found", "")
    assert isinstance(found, str)
    assert isinstance(result.error, ImportError) or found == "workspace.m"


LOSING = """
import io, os
os.mkdir("{home}")
open("{home}/__init__.py", "w").write("a = 1")
open("{home}/{member}.py", "w").write("{code}")
import {home}, {home}.{member}
class F(io.BytesIO):
    def close(self):
        del {home}.{member}
        super().close()
a = F()
{statement}
"""
"""The interpreter looks in ``sys.modules`` for what a module has not."""

TAKEN = {
    "from": ("", "from importlib import a, util as found"),
    "as": ("import importlib\\ndel importlib.util", "import importlib.util as found"),
    "several": ("", "import importlib as a, importlib.util as found"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_module_of_the_guests_that_loses_a_member_leads_to_no_real_one(name: str) -> None:
    """Stopped by: sandbox.guards.workspace_modules."""
    code, statement = TAKEN[name]
    source = LOSING.format(home="importlib", member="util", code=code, statement=statement)
    result = Sandbox(Policy.default(), fs=connect_fs()).exec(source)
    found = result.namespace.get("found")
    assert found is not sys.modules["importlib.util"]
    assert "sys" not in vars(found or types.SimpleNamespace())


@pytest.mark.parametrize(
    "statement",
    [
        "import p.q.r as x, p.q, p.s as y\nx.n, y.n, p.q.r.n",
        "from p import q as x, s\nx.r.n, s.n",
        "from p.q import r as x\nx.n",
        "import collections.abc as x, os.path as y\nx.Mapping.__name__, y.join('a', 'b')",
        "class A:\n  import p.q.r as x\n  from p.s import n\nA.x.n, A.n",
        "def f():\n  import p.q.r as x\n  return x.n\nf()",
        "try:\n  import p.nothing as x\nexcept ImportError as e: str(e)\nstr(e) if False else 1",
    ],
)
def test_modules_of_the_guests_are_imported_by_any_statement(statement: str, tmp_path: Path) -> None:
    """Stopped by: sandbox.guards.workspace_modules, sandbox.guards.import_statement."""
    files = {"p/__init__": "", "p/q/__init__": "from p.q import r", "p/q/r": "n = 1", "p/s": "n = 2"}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{path}.py").write_text(text)
    writing = "import os\nos.makedirs('p/q')\n" + "".join(
        f"open({path + '.py'!r}, 'w').write({text!r})\n" for path, text in files.items()
    )
    program, _, last = statement.rpartition("\n")
    expected = subprocess.run(
        [sys.executable, "-c", f"{program}\nprint({last})"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

    result = Sandbox(Policy.default(), fs=connect_fs()).exec(f"{writing}{program}\nprint({last})")

    assert (result.error, result.stdout.strip()) == (None, expected)


@pytest.mark.parametrize("reading", ["A.f()", "g(A)", "A().h()"])
def test_a_class_with_a_metaclass_does_not_tell_what_was_left_out(reading: str) -> None:
    policy = Policy.default()
    policy.cls(Vault, exclude=["kept"])
    source = (
        "class M(type):\n  def f(cls): return cls.kept\n"
        "class A(Vault, metaclass=M):\n  def h(self): return type(self).kept\n"
        "def g(x): return x.kept\n"
    )
    result = Sandbox(policy).exec(source + reading)
    assert isinstance(result.error, SandboxError)
