"""Holes in the granted libraries, each by its smallest program; what is come by is in ``leak``.

Stopped by: sandbox.libraries, sandbox.stdlib.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import enum
import gc
import pathlib
import subprocess
import sys
import typing
import warnings
from typing import Any

import pytest
from fuzz import attack

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox

CODE = "a,(box.append(exec) or 1)"
DATACLASS = "import dataclasses, typing\nbox = []\n"
ATTACKS = {
    # names of fields that become source code
    "annotations whose items lie": DATACLASS + f"class D(dict):\n  def items(self): return [({CODE!r}, int)]\n"
    "@dataclasses.dataclass(init=False, repr=False)\nclass A:\n  __annotations__ = D()\n  a = 1\n"
    "leak = [m for m in A.__match_args__ if 'exec' in m] or None",
    "annotations changed by a default's __get__": DATACLASS + "class G:\n  def __get__(self, o, c):\n"
    f"    c.__annotations__.pop('b', 0)\n    c.__annotations__[{CODE!r}] = int\n    return 1\n"
    "@dataclasses.dataclass(init=False, repr=False)\nclass A:\n  a: int = G()\n  b: int = 2\n"
    "leak = [m for m in A.__match_args__ if 'exec' in m] or None",
    "a default that says it is a field": DATACLASS + "class F:\n  kw_only = False\n  init = repr = compare = True\n"
    f"  hash = None\n  name = property(lambda s: {CODE!r}, lambda s, v: None)\n"
    "F = type('F2', (F,), {'__class__': property(lambda s: dataclasses.Field)})\n"
    "try:\n  @dataclasses.dataclass(init=False, repr=False)\n  class A:\n    a: int = F()\n"
    "  leak = [m for m in A.__match_args__ if 'exec' in m] or None\nexcept TypeError: pass",
    "a subclass of Field": DATACLASS + "class F(dataclasses.Field): pass\nleak = F",
    "a subclass of a field's class": DATACLASS + "class F(type(dataclasses.field())): pass\nleak = F",
    "fields of a base written by hand": DATACLASS + f"class F: name = {CODE!r}\n"
    "B = type('B', (), {'__dataclass_fields__': {'a': F()}})\n@dataclasses.dataclass\nclass A(B): pass\nleak = A",
    "fields of a base that lie": DATACLASS + "class D(dict): pass\n"
    "B = type('B', (), {'__dataclass_fields__': D()})\n@dataclasses.dataclass\nclass A(B): pass\nleak = A",
    "fields answered by a metaclass": DATACLASS + "class M(type):\n  def __getattr__(cls, n): return {}\n"
    "class B(metaclass=M): pass\n@dataclasses.dataclass\nclass A(B): pass\nleak = A",
    "annotations answered by a metaclass": DATACLASS
    + "M = type('M', (type,), {'__dict__': property(lambda c: {})})\n"
    "A = M('A', (), {})\nleak = dataclasses.dataclass(A)",
    "a __post_init__ that is found by running": DATACLASS + "class G:\n  def __get__(self, o, c): box.append(c)\n"
    "@dataclasses.dataclass\nclass A:\n  a: int = 1\n  __post_init__ = G()\nleak = A",
    "a field named by a traceback": DATACLASS + "@dataclasses.dataclass\nclass A(Exception):\n"
    "  __annotations__ = {'__traceback__': object}\nleak = A",
    "an excluded member as a default": DATACLASS + "@dataclasses.dataclass(init=False)\nclass A(Vault): size: object\n"
    "leak = dataclasses.fields(A)[0].default",
    "a private field over the host": DATACLASS + "@dataclasses.dataclass(init=False)\nclass A(Vault): _secret: str\n"
    "leak = repr(A())",
    # fields shared with the host
    "a field of the host initialised again": DATACLASS + "f = dataclasses.fields(Record)[0]\n"
    "type(f).__init__(f, 1, 2, False, False, False, False, {}, False)\nleak = None",
    "the metadata of all fields": DATACLASS + "class E:\n  def __ror__(self, o): o['x'] = 1; return o\n"
    "for f in (dataclasses.field(), *dataclasses.fields(Record)): f.metadata | E()\n"
    "leak = dict(dataclasses.field().metadata) or None",
    # the real type
    "typing.Type": "import typing\nleak = None if typing.Type.__origin__ is type else typing.Type.__origin__",
    "get_origin of typing.Type": "import typing\nt = typing.get_origin(typing.Type[int])\nleak = None if t is type else t",
    "a hint of the host": "import typing\nt = typing.get_type_hints(host_hinted)['kind']\nleak = None if t is type else t",
    "an alias of an object": "import types\nleak = types.GenericAlias(vault, int)",
    "a subclass of GenericAlias": "import types\nclass G(types.GenericAlias): pass\nleak = G",
    "a subclass of a metaclass's alias": "import types\nleak = types.GenericAlias(type, ()).__base__",
    "the default of a type parameter": "leak = None if getattr(host_parameter, '__default__', type) is type else 1",
    "metadata of a hint": "leak = None if host_hinted.__annotations__['also'].__metadata__ == (type,) else 1",
    "the module behind a path": "leak = getattr(host_path, 'parser', None)",
    "the module behind the class of a path": "leak = type(host_path).parser",
    "the module behind a path of its own": "class P(type(host_path)):\n  def f(self): return super().parser\nleak = P('a').f()",
    # what an __init__ of the host's or of a library's puts into an object of another class
    "what the host keeps in its objects": "class A: pass\na = A()\nVault.__init__(a)\nleak = a._secret",
    "the stream of a printer": "import pprint\nclass A: pass\na = A()\npprint.PrettyPrinter.__init__(a)\nleak = a._stream",
    "the lock of a queue": "import queue\nclass A: pass\na = A()\ntype(queue.Queue().mutex).__init__(a)\nleak = a._lock",
    "a lock of a condition": "import queue\nclass L(list): remove = print\nclass A(type(queue.Queue().not_empty)): pass\na = A()\n"
    "a._waiters = L()\na.acquire()\na.wait(0.01)\nleak = a._waiters[0]",
    # cached_property
    "cached_property reads the host": "import functools\nclass A: _secret = functools.cached_property(len)\n"
    "leak = vars(A)['_secret'].__get__(vault)",
    "cached_property writes the host": "import functools\nclass A: describe = functools.cached_property(lambda s: 1)\n"
    "vars(A)['describe'].__get__(vault)",
    "cached_property in a class over the host": "import functools\nclass A: _secret = functools.cached_property(len)\n"
    "class B(Vault): pass\nleak = vars(A)['_secret'].__get__(B())",
    "cached_property subclassed": "import functools\nclass C(functools.cached_property): pass\n"
    "class A: x = C(len)\nc = vars(A)['x']\nc._name = '_secret'\nleak = c.__get__(vault)",
    "cached_property of the host's kind": "import functools\nC = type(Vault.length)\n"
    "class A: _secret = C(lambda s: None)\nleak = vars(A)['_secret'].__get__(vault)",
    # copies
    "memo of the host's object": "import copy\nmemo = {}\ncopy.deepcopy(vault, memo)\nleak = [*memo.values()] or None",
    "memo in a hook": "import copy\nclass A:\n  def __deepcopy__(self, memo): seen.append(memo); return self\n"
    "seen = []\nvault.label = A()\ncopy.deepcopy(vault)\nm = seen[0]\n"
    "leak = m.get(id(m)) or [m[k] for k in [id(m)] if k in m] or m._noted",
    "memo asked by the host": "import copy\nclass A:\n  def __deepcopy__(self, memo): seen.append(memo); return self\n"
    "seen = []\nvault.label = A()\ncopy.deepcopy(vault)\nleak = host_apply(seen[0].get, id(seen[0]))",
    "memo copied": "import copy\nclass A:\n  def __deepcopy__(self, memo): seen.append(memo); return self\n"
    "seen = []\ncopy.deepcopy([vault, A()])\nleak = copy.copy(seen[0])",
    "memo of a copy the host makes": "class A:\n  def __deepcopy__(self, memo): seen.append(memo); return self\n"
    "seen = []\nhost_deepcopy(A())\nleak = seen[0] if isinstance(seen[0], dict) else None",
    "a method by the name of its function": "import copy, types\ndef f(self): pass\nf.__name__ = '_secret'\n"
    "leak = [m for m in [copy.copy(types.MethodType(f, vault))] if type(m) is str] or None",
    "globals by the name of a function": "import copy\nclass A:\n  def f(self): pass\nA.f.__name__ = '__globals__'\n"
    "leak = [m for m in [copy.copy(type(A().f)(A.f, host_fn))] if type(m) is dict] or None",
    **{
        f"memo of a copy the host makes, in {what}": f"import copy, functools, types\nclass A:\n  def __getstate__(self): return {{**vars(self), **more}}\n"
        f"seen, more = [], {{}}\nhow = {{'__deepcopy__': lambda memo: seen.append(memo)}}\na = A()\n{source}\nhost_deepcopy(a)\nleak = seen or None"
        for what, source in {
            "the dict of an object": "vars(a).update(how)",
            "its state": "more = how\na = copy.copy(a)",
            "what a cached property keeps": "class C(functools.cached_property): pass\nc = C(lambda self: how['__deepcopy__'])\n"
            "c.__set_name__(A, '__deepcopy__')\nc.__get__(a)",
            "a namespace": "a = types.SimpleNamespace(**how)",
        }.items()
    },
    **{
        f"{how} of a namespace that is another object, by {name}": "import copy, types\n"
        f"ns = types.SimpleNamespace(**{{'{name}': lambda *a: (lambda: vault, (), {{'_secret': 'x', 'describe': 5}})}})\n"
        f"copy.{how}(ns)"
        for name in ("__reduce__", "__reduce_ex__")
        for how in ("copy", "deepcopy")
    },
    "state by a __getattr__": "import copy\nseen = []\nclass A(Vault):\n  def __getattr__(self, n):\n"
    "    if n == '__setstate__': return lambda s: seen.append(s)\n    raise AttributeError(n)\ncopy.copy(A())\nleak = seen or None",
    "globals copied": "import copy\nleak = [k for k in copy.deepcopy({'g': 1} | copy.copy(globals())) if '!' in k] or None",
    # real classes behind the guarded ones
    "the real formatter": "import string\nleak = string.Formatter.__mro__[-2]().format('{0._secret}', vault)",
    "the real normal distribution": "import statistics\nleak = [c for c in statistics.NormalDist.__mro__[1:] if c is not object] or None",
    "a class of a host's map": "leak = type(host_map)(str, 'a') if type(host_map) is not map else None",
    "a class of a host's namespace": "import types, time\nt = type(time.get_clock_info('time'))\n"
    "leak = None if t is types.SimpleNamespace else t",
    # writing decorators
    "wraps with a name that lies": "import functools\nclass S(str):\n  def startswith(self, *a): return False\n"
    "  def endswith(self, *a): return False\n  def __hash__(self): return 0\nclass K: pass\n"
    "functools.wraps(Vault, assigned=[S('__bases__')], updated=())(K)\nleak = K()._secret",
    "no_type_check that finds the host": "import typing\nclass K: f = host_fn\nK.__qualname__, K.__module__ = '', 'x'\n"
    "typing.no_type_check(K)",
    # state of the host
    "the command line": "import random\nleak = random.main(['a'])",
    "state of what is no generator": "import random\nrandom.Random.setstate(Vault, (3, 0, 1))",
    "state of what is no generator, by its class": "import secrets\nsecrets.SystemRandom.__mro__[1].setstate(Vault, (3, 0, 1))",
    "the end of what is no queue": "import asyncio\nasyncio.Queue.shutdown(vault)",
    "the shared calendar": "import calendar\nleak = calendar.c",
    "the locale of the process": "import calendar\nleak = calendar.LocaleTextCalendar",
    "the interpreter's description": "import sys\nsys.implementation.x = 1",
    "samples": "import statistics\n(statistics.NormalDist() + 1).samples(3)",
    "samples of a constructor": "import statistics\nstatistics.NormalDist.from_samples([1, 2]).samples(3)",
    "a warning with the host's line": "import warnings\nhost_apply(lambda: warnings.warn('x', UserWarning, 3))",
    "overloads of the host": "import typing\ntyping.clear_overloads()",
    # enumerations made by a call
    "enum over the host": "import enum\nseen = []\nleak = enum.Enum('E', {'__setattr__': print, 'A': ()}, type=Vault)",
    "enum with a hook": "import enum\nleak = enum.IntEnum('E', {'__del__': print, 'A': 1})",
    "enum with raw memory": "import enum\nleak = enum.Flag('E', [('__array_interface__', {}), ('A', 1)])",
    "a property of an enum that reads": "import enum\nclass P(enum.property): pass\np = P(lambda s: None)\n"
    "p._attr_type, p._cls_type, p.name = 'attr', vault, '_secret'\nleak = p.__get__(vault)",
    "a property of an enum over a value": "import enum\nclass P(enum.property): pass\np = P(lambda s: None)\n"
    "p._attr_type, p.name = 'desc', '_secret'\nclass I: _value_ = vault\nleak = p.__get__(I())",
    "enum with names that lie": "import enum\nclass S(str):\n  def __str__(self): return 'x'\n"
    "leak = [m for m in dir(enum.Enum('E', [S('__del__')])) if m == '__del__'] or None",
}  # fmt: skip


def host_hinted(kind: type, also: int = 0) -> None:
    """Has the real ``type`` in a hint."""


def host_deepcopy(value: Any) -> Any:
    """Copy something of the guest's together with what is the host's."""
    return copy.deepcopy([attack.host.CANARY, value])


host_hinted.__annotations__.update(kind=type, also=typing.Annotated[int, type])
_DEFAULT: Any = {"default": type} if sys.version_info >= (3, 13) else {}
NAMES = {
    "host_hinted": host_hinted,
    "host_parameter": typing.TypeVar("T", **_DEFAULT),  # pyright: ignore[reportGeneralTypeIssues]
    "host_deepcopy": host_deepcopy,
    "host_map": map(str, ()),
    "host_path": pathlib.PurePosixPath("a"),
}


def cases() -> list[Any]:
    return [pytest.param(source, id=name) for name, source in ATTACKS.items()]


@pytest.fixture(autouse=True)
def _host_as_before() -> Any:
    """Undo what an open hole did, so that the order of tests does not matter."""
    yield
    attack.host.restore()


@pytest.mark.parametrize("source", cases())
def test_the_library_is_no_way_to_the_host(source: str) -> None:
    done = attack.Attack(source, **NAMES)

    assert done.findings == []
    assert done.result.namespace.get("leak") is None
    assert done.result.error is None or isinstance(
        done.result.error, (SandboxError, TypeError, AttributeError, ValueError, KeyError)
    )


LOOP = """
import asyncio
box = []
class Loop:
  def get_debug(self): return False
  def call_soon(self, callback, *args, context=None): box.append(context)
loop = Loop()
async def nothing(): pass
"""
ON_LOOPS = {
    "a future of its own class": "class F:\n  def add_done_callback(self, cb, *, context=None): self.cb = cb\n"
    "  cancelled = done = lambda s: False\n  exception = lambda s: None\n  result = lambda s: 1\n"
    "  def __await__(self): yield\n"
    "F._asyncio_future_blocking = False\nf = type('F', (F,), {'get_' + 'loop': lambda s: loop})()\n"
    "g = asyncio.gather(f)\ng.add_done_callback(print)\nf.cb(f)\nleak = box or None",
    "a future on a loop of its own": "f = asyncio.sleep(1).send(None)\ng = type(f)(loop=loop)\n"
    "g.add_done_callback(print)\ng.set_result(1)\nleak = box or None",
    "a subclass of a task": "class T(type(asyncio.create_task(nothing()))): pass\nleak = T(nothing())._loop",
    "a subclass of a future": "class T(type(asyncio.sleep(1).send(None))): pass\nleak = T()._loop",
    "a subclass of a queue": "class Q(asyncio.Queue): pass\nleak = Q()._get_loop()",
    "the start of a group, of an object": "class A: _entered, _loop = False, None\na = A()\n"
    "try: await asyncio.TaskGroup.__aenter__(a)\nfinally: leak = a._loop",
    "the start of a real group, of an object": "class A: _entered, _loop = False, None\na = A()\n"
    "try: await type(host_group).__aenter__(a)\nfinally: leak = a._loop",
    "the start of a limit, of an object": "class A:\n  def reschedule(self, when): pass\na = A()\nT = type(asyncio.timeout(None))\nT.__init__(a, None)\n"
    "await T.__aenter__(a)\nleak = a._task",
    "what a limit calls, of an object": "class A:\n  _on_timeout = None\n  def reschedule(self, when): T.reschedule(self, 0)\na = A()\n"
    "T = type(asyncio.timeout(None))\nT.__init__(a, None)\nawait T.__aenter__(a)\nleak = a._timeout_handler",
    "what an iterator calls, of an object": "class A:\n  def _handle_completion(self, f): box.append(f)\n  _handle_timeout = None\na = A()\n"
    "type(asyncio.as_completed([nothing()])).__init__(a, [asyncio.create_task(nothing())], 0)\nleak = a._timeout_handle",
    "a gathering future": "leak = type(asyncio.gather(nothing()))([], loop=loop)",
}
AN_EVENT = """
class E(asyncio.Event):
  def add_done_callback(self, callback, *, context=None): box.append((callback, context))
  def cancel(self, msg=None): return not box[-1][0](self)
  def result(self): pass
  def __await__(self): yield self
blocking = '_asyncio_' + 'future_blocking'
"""
AWAITED = """
step = event.wait()
step.send(None)
step.close()  # the event has the loop of the host now
async def go(): await event
asyncio.create_task(go())
await asyncio.sleep(0)
leak = box or None
"""
ON_LOOPS |= {
    f"an event that says that it is a future, {way}": AN_EVENT + source + AWAITED
    for way, source in {
        "in its class": "event = type('F', (E,), {blocking: True})()",
        "later": "setattr(E, blocking, True)\nevent = E()",
        "itself": "event = E()\nsetattr(event, blocking, True)",
        "when asked": "class F(E):\n  def __getattr__(self, name): return name == blocking\nevent = F()",
    }.items()
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "source",
    [pytest.param(source, id=name) for name, source in ON_LOOPS.items()],
)
def test_asyncio_gives_neither_loop_nor_context(source: str) -> None:
    """Stopped by: sandbox.stdlib.asyncio_tasks."""

    async def run() -> Any:
        result = await Sandbox(Policy.default()).aexec(LOOP + source, {"host_group": asyncio.TaskGroup()})
        return result.namespace.get("leak")

    leak = asyncio.run(run())
    gc.collect()  # coroutines and futures that were left behind say so, outside the next test's sandbox

    assert leak is None


DEEP = {
    "type.__call__": "it = type.__call__(map, str, it)",
    "new": "it = map.__new__(map, str, it)",
    "a keyword": "it = enumerate(iterable=it)",
    "from an iterator": "it = itertools.chain.from_iterable(iter([it]))",
    "from a generator": "it = itertools.chain.from_iterable(x for x in [it])",
    "super": "it = super(itertools.chain, itertools.chain).from_iterable([it])",
}


@pytest.mark.parametrize("line", DEEP.values(), ids=DEEP)
def test_iterators_nested_too_deeply_end_the_program_only(line: str) -> None:
    """Stopped by: sandbox.stdlib.itertools."""
    program = f"import itertools\nit = iter('a')\nfor _ in range(200_000):\n  {line}\nnext(it)"
    host = (
        "import sys; from agex.sandbox import Limits, Sandbox\n"
        f"r = Sandbox(limits=Limits(seconds=100)).exec({program!r})\nprint(type(r.error).__name__)"
    )

    done = subprocess.run(  # a crash would end this process
        [sys.executable, "-c", host], capture_output=True, text=True, check=False, timeout=150
    )

    assert (done.returncode, done.stdout.strip()) == (0, "RecursionError")


# -- what goes on working


def value_of(source: str) -> Any:
    result = Sandbox().exec(source)
    assert result.error is None, result.traceback
    return result.namespace["x"]


def test_a_program_is_the_first_of_the_process_to_import_a_module() -> None:
    names = [name for name in Policy.default().modules if name != "__future__"]
    program = "".join(f"import {name}\n" for name in names)
    host = f"from agex.sandbox import Sandbox\nprint(Sandbox().exec({program!r}).error)"

    done = subprocess.run(
        [sys.executable, "-c", host], capture_output=True, text=True, check=False, timeout=150
    )

    assert done.stdout.strip() == "None"


def test_a_copy_of_a_method_is_that_method() -> None:
    """Stopped by: sandbox.patches.copy."""
    source = (
        "import copy\nclass A:\n  def f(self): return 1\na = A()\nx = copy.copy(a.f) == a.f, copy.copy(a.f)()"
    )

    assert value_of(source) == (True, 1)


def test_a_memo_keeps_what_a_hook_of_the_guest_puts_there() -> None:
    """Stopped by: sandbox.classes.deepcopy_memo, sandbox.stdlib.copy."""
    source = """
import copy
class Node:
    def __init__(self): self.next = self
    def __deepcopy__(self, memo):
        new = Node()
        memo[id(self)] = new
        new.next = copy.deepcopy(self.next, memo)
        return new
a = copy.deepcopy(Node())
b = copy.deepcopy([Node()], {})[0]
x = a.next is a and b.next is b
"""
    assert value_of(source) is True


def test_fields_of_every_kind_stay_what_they_are() -> None:
    """Stopped by: sandbox.stdlib.dataclass_fields."""
    source = """
import dataclasses, functools, typing
class Celsius:
    def __set_name__(self, owner, name): self.name = '_' + name
    def __get__(self, instance, owner=None): return 20 if instance is None else getattr(instance, self.name, 20)
    def __set__(self, instance, value): setattr(instance, self.name, value)
class Point: pass
ORIGIN = Point()
@dataclasses.dataclass
class Base:
    start: object = ORIGIN
@dataclasses.dataclass(order=True)
class Room(Base):
    heat: int = Celsius()
    tags: list = dataclasses.field(default_factory=list, compare=False)
    kind: typing.ClassVar[object] = Celsius()
    size: dataclasses.InitVar[int] = 3
    def __post_init__(self, size): self.area = size
    @functools.cached_property
    def loud(self): return self.heat * 2
@dataclasses.dataclass(slots=True)
class Tight:
    a: int
    b: object = ORIGIN
r = Room(heat=25)
x = [
    r.heat, r.loud, r.area, Room.heat, Room.kind, type(vars(Room)['heat']).__name__, r.start is ORIGIN,
    [f.name for f in dataclasses.fields(Room)], dataclasses.fields(Room) == dataclasses.fields(r),
    Tight(1).b is ORIGIN, dataclasses.replace(Tight(1), a=2).a, dataclasses.asdict(Tight(1, 2)),
    Room.__annotations__ is Room.__annotations__ and [*Room.__annotations__],
]
"""
    assert value_of(source) == [
        25, 50, 3, 20, 20, "Celsius", True, ["start", "heat", "tags"], True, True, 2, {"a": 1, "b": 2},
        ["heat", "tags", "kind", "size"],
    ]  # fmt: skip


def test_samples_follow_the_seed_of_the_session() -> None:
    """Stopped by: sandbox.stdlib.random."""
    source = """
import random, statistics
random.seed(7)
a = statistics.NormalDist(1, 2).samples(3)
random.seed(7)
x = a == statistics.NormalDist(1, 2).samples(3) and isinstance(statistics.NormalDist() * 2, statistics.NormalDist)
"""
    assert value_of(source) is True


def test_time_zones_are_listed() -> None:
    """Stopped by: sandbox.stdlib.standard_set."""
    assert value_of("import zoneinfo\nx = 'Europe/Berlin' in zoneinfo.available_timezones()") is True


def test_an_enumeration_made_by_a_call_is_one() -> None:
    """Stopped by: sandbox.patches.enum."""
    source = """
import enum
class Base(enum.Enum):
    def twice(self): return self.value * 2
A = enum.Enum('A', 'one two')
B = enum.IntEnum('B', {'x': 5})
C = Base('C', [('p', 7)])
D = enum.Flag('D', ['r', 'w'])
x = [A.two.value, B.x + 1, C.p.twice(), (D.r | D.w).value, A.__module__ == __name__]
"""
    assert value_of(source) == [2, 6, 14, 3, True]
    assert enum.Enum("Mine", "a b").__module__ == __name__


def test_a_warning_is_about_the_line_of_the_guest() -> None:
    """Stopped by: sandbox.stdlib.warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Sandbox().exec(
            "import warnings\ndef f():\n  warnings.warn('old', DeprecationWarning, stacklevel=2)\nf()"
        )

    assert [(w.filename, w.lineno, w.category) for w in seen] == [("<agent>", 4, DeprecationWarning)]


def test_overloads_are_those_of_the_session() -> None:
    """Stopped by: sandbox.stdlib.typing."""
    source = """
import typing
@typing.overload
def f(a: int) -> int: ...
@typing.overload
def f(a: str) -> str: ...
def f(a): return a
x = len(typing.get_overloads(f))
"""
    assert value_of(source) == 2
    assert typing.get_overloads(host_hinted) == []


def test_a_record_of_the_host_is_copied_with_changes() -> None:
    """Stopped by: sandbox.stdlib.dataclasses, sandbox.stdlib.copy."""

    @dataclasses.dataclass
    class Config:
        name: str
        _token: str = "t"

    policy = Policy.default()
    policy.cls(Config)

    source = "import dataclasses\nx = dataclasses.replace(c, name='b').name, [f.name for f in dataclasses.fields(c)]"
    result = Sandbox(policy).exec(source, {"c": Config("a")})

    assert result.namespace["x"] == ("b", ["name"])
