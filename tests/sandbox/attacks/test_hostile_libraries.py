"""Attacks through the standard library: objects that act, forward or remember; what is come by is in ``leak``.

Stopped by: sandbox.stdlib, sandbox.patches.
"""

from __future__ import annotations

from typing import Any

import pytest
from fuzz import attack

from agex.sandbox import Policy, Sandbox


def cases(attacks: dict[str, str]) -> list[Any]:
    """Give the attacks as parameters."""
    return [pytest.param(source, id=name) for name, source in attacks.items()]


ATTACKS = {
    "reduce of an iterator": "import itertools\nleak = itertools.chain([vault]).__reduce__()",
    "setstate of a chain": "import itertools\nitertools.chain([1]).__setstate__((iter([vault]),))",
    "setstate of a partial": "import functools\np = functools.partial(len)\np.__setstate__((getattr, (vault, '_secret'), {}, {}))\nleak = p()",
    "setstate of an exception": "e = ValueError()\ne.__setstate__({'__traceback__': 1, '_x': vault})\nleak = e._x",
    "partial of the guarded getattr": "import functools\nleak = functools.partial(getattr, vault)('_secret')",
    "partialmethod of getattr": "import functools\nclass A: f = functools.partialmethod(getattr, '_secret')\nleak = A().f()",
    "map of getattr": "leak = list(map(getattr, [vault], ['_secret']))",
    "starmap of getattr": "import itertools\nleak = list(itertools.starmap(getattr, [(vault, '_secret')]))",
    "sort key that reads": "import operator\nleak = sorted([vault], key=operator.attrgetter('_secret'))",
    "merge key that reads": "import heapq, operator\nleak = list(heapq.merge([vault], [vault], key=operator.attrgetter('_secret')))",
    "groupby key that reads": "import itertools, operator\nleak = [k for k, _ in itertools.groupby([vault], operator.attrgetter('_secret'))]",
    "attrgetter of a dotted path": "import operator\nleak = operator.attrgetter('describe.__self__._secret')(vault)",
    "attrgetter of a str subclass": "import operator\nclass S(str):\n  def split(self, *a): return ['_secret']\nleak = operator.attrgetter(S('label'))(vault).missing",
    "methodcaller of getattribute": "import operator\nleak = operator.methodcaller('__getattribute__', '_secret')(vault)",
    "methodcaller of format": "import operator\nleak = operator.methodcaller('format', vault)('{0._secret}')",
    "scanner action": "import re\nseen = []\ns = re.Scanner([('.', lambda sc, t: seen.append(sc) or sc)])\ns.scan('a')\nleak = seen[0].scanner.__self__",
    "sub with a callback on the match": "import re\nleak = re.sub('(?P<x>.)', lambda m: m.re.__class__.__base__.__subclasses__(), 'a')",
    "template with a mapping that reads": "import string\nclass D(dict):\n  def __missing__(self, k): return getattr(vault, k)\nleak = string.Template('$_secret').substitute(D())",
    "template with a pattern of its own": "import string\nclass T(string.Template): idpattern = '_secret'\nleak = T('$_secret').substitute(vault)",
    "formatter that says its own field": "import string\nclass F(string.Formatter):\n  def parse(self, t): yield '', '0._secret', '', None\nleak = F().format('', vault)",
    "formatter that gives its own value": "import string\nclass F(string.Formatter):\n  def get_value(self, k, a, kw): return vault\nleak = F().format('{0._secret}', 1)",
    "formatter made without init": "import string\nf = string.Formatter.__new__(string.Formatter)\nleak = f.format('{0._secret}', vault)",
    "format of a format": "class A:\n  def __format__(self, s): return s.format(vault)\nleak = f'{A():{{0._secret}}}'",
    "percent with a mapping": "class D(dict):\n  def __missing__(self, k): return getattr(vault, k)\nleak = '%(_secret)s' % D()",
    "json default that reads": "import json\nleak = json.dumps(vault, default=lambda o: o.__dict__)",
    "json encoder of its own": "import json\nclass E(json.JSONEncoder):\n  def default(self, o): return o._secret\nleak = json.dumps(vault, cls=E)",
    "json hooks": "import json\nleak = json.loads('{}', object_hook=lambda d: vault._secret)",
    "json decoder's scanner": "import json\nleak = json.JSONDecoder().scan_once.__self__",
    "csv of host objects": "import csv, io\nf = io.StringIO()\ncsv.DictWriter(f, ['_secret']).writerow(vault)\nleak = f.getvalue()",
    "csv dialect of its own": "import csv\nclass D(csv.Dialect):\n  delimiter = vault\nleak = csv.reader(['a'], dialect=D)",
    "stream's raw": "import io\nleak = io.BytesIO().raw",
    "stream's base": "import io\nleak = io.StringIO.__mro__[1].__subclasses__()",
    "stream by a descriptor": "import io\nleak = io.StringIO().fileno()",
    "tzinfo of its own": "import datetime\nclass Z(datetime.tzinfo):\n  def utcoffset(self, d): return vault._secret\nleak = datetime.datetime(2020, 1, 1, tzinfo=Z()).isoformat()",
    "strftime names": "import datetime\nleak = f'{datetime.date(2020, 1, 1):{{0._secret}}}'.format(vault).partition('S3')[1] or None",
    "userdict's data": "import collections\nclass U(collections.UserDict): pass\nu = U()\nu.data = vault\nleak = u['_secret']",
    "userdict with the host as data": "import collections\nu = collections.UserDict()\nu.data = vault\nleak = u.get('_secret')",
    "chainmap over globals": "import collections\nleak = collections.ChainMap(globals()).get('__builtins__')",
    "chainmap writes a helper": "import collections\ncollections.ChainMap(globals())['check!'] = lambda o, n: o\nleak = vault._secret",
    "globals updated with a helper": "globals().update({'own!': {type(vault)}})\nleak = vault._secret",
    "globals with a str subclass": "class S(str):\n  def isidentifier(self): return True\nglobals()[S('own!')] = {Vault}\nleak = vault._secret",
    "globals or": "leak = (globals() | {}).get('__builtins__')",
    "globals equal to a spy": "seen = []\nclass E:\n  def __eq__(self, o): seen.append(o); return True\nglobals() == E()\nleak = [s for s in seen if '__builtins__' in s] or None",
    "globals copied": "import copy\nleak = copy.copy(globals()).get('__builtins__')",
    "vars of a module": "import math\nvars(math)['pi'] = 3",
    "defaultdict of globals": "import collections\nd = collections.defaultdict(globals)\nleak = d['a'].get('__builtins__')",
    "iter with a sentinel of globals": "leak = next(iter(globals, 1)).get('__builtins__')",
    "statistics over liars": "import statistics\nclass N(float):\n  def as_integer_ratio(self): return vault._secret, 1\nleak = statistics.mean([N(1), N(2)])",
    "fractions of liars": "import fractions\nclass N(int):\n  numerator = denominator = vault\nleak = fractions.Fraction(N(1), N(2))._numerator._secret",
    "decimal context of its own": "import decimal\nclass C(decimal.Context): pass\nwith decimal.localcontext(C(prec=3)): decimal.getcontext().prec = 2",
    "decimal context left open": "import decimal\ndef g():\n  with decimal.localcontext() as c:\n    c.prec = 2\n    yield\nkept = g()\nnext(kept)",
    "random state": "import random\nrandom.setstate(random.getstate())\nrandom.shuffle([1, 2, 3])",
    "random of its own": "import random\nclass R(random.Random):\n  def random(self): return 0.5\nR().choice([1, 2])",
    "length hint": "class A:\n  def __length_hint__(self): return vault._secret\n  def __iter__(self): return iter(())\nleak = list(A()) or None",
    "memoryview of a host buffer": "leak = memoryview(b'ab').obj.__class__.__base__.__subclasses__()",
    "bytearray under a view": "b = bytearray(8)\nm = memoryview(b)\nb.extend(b'12345678' * 100)\nleak = m",
    "array from liars": "import array\nclass L(list):\n  def __len__(self): return 10**6\nleak = array.array('b', L()).__reduce_ex__(3)",
    "struct over a view": "import struct\nleak = struct.unpack_from('Q', memoryview(b'12345678'), 8)",
    "namedtuple with code as a name": "import collections\nleak = collections.namedtuple('N', ['a, __import__(\"os\")'])",
    "namedtuple with str that lies": "import collections\nclass S(str):\n  def isidentifier(self): return True\nclass O:\n  def __str__(self): return S('a=print')\nleak = collections.namedtuple('N', [O()])",
    "typed namedtuple with code": "import typing\nleak = typing.NamedTuple('N', [('a=print', int)])",
    "dataclass with code as a name": "import dataclasses\n@dataclasses.dataclass\nclass A: __annotations__ = {'a=print': int}\nleak = A",
    "dataclass with a str that lies": "import dataclasses\nclass S(str):\n  def isidentifier(self): return True\n@dataclasses.dataclass\nclass A: __annotations__ = {S('a=print'): int}\nleak = A",
    "dataclass of the host": "import dataclasses\ndataclasses.dataclass(Vault)",
    "field with a metadata of the host": "import dataclasses\n@dataclasses.dataclass\nclass A:\n  a: int = dataclasses.field(metadata=vault)\nleak = A",
    "post_init on the host": "import dataclasses\n@dataclasses.dataclass\nclass A:\n  a: dataclasses.InitVar\n  def __post_init__(self, a): a.label = a._secret\nA(vault)",
    "replace of the host's record": "import dataclasses\nleak = dataclasses.replace(vault)",
    "asdict with a factory": "import dataclasses\nleak = dataclasses.asdict(record, dict_factory=lambda p: vault._secret)",
    "singledispatch on text": "import functools\n@functools.singledispatch\ndef f(x): pass\n@f.register\ndef g(x: 'exec'): pass\nleak = f.registry['exec']",
    "get_type_hints of text": "import typing\ndef f(x: '__import__(\"os\")'): pass\nleak = typing.get_type_hints(f)",
    "get_type_hints of nested text": "import typing\ndef f(x: list[typing.Optional['vault._secret']]): pass\nleak = typing.get_type_hints(f)",
    "newtype over the host": "import typing\nleak = typing.NewType('N', vault).__supertype__._secret",
    "protocol that asks for private members": "import typing\n@typing.runtime_checkable\nclass P(typing.Protocol): _secret: str\nmatch vault:\n  case P(_secret=x): leak = x",
    "contextmanager's generator": "import contextlib\n@contextlib.contextmanager\ndef f(): yield\nleak = f().gen.gi_frame",
    "contextmanager's generator by getattr": "import contextlib\n@contextlib.contextmanager\ndef f(): yield\nleak = getattr(f().gen, 'gi_' + 'frame')",
    "exit stack over the host": "import contextlib\nleak = contextlib.ExitStack().enter_context(vault)",
    "closing that reads": "import contextlib\nwith contextlib.closing(vault) as v: leak = v._secret",
    "weak references that call": "import weakref\nleak = weakref.ref(vault, print)",
    "what weak references call": "import weakref\nleak = weakref.ref(vault).__callback__",
    "queue's lock": "import queue\nleak = queue.Queue().mutex.__self__",
    "coroutine's frame": "async def f(): pass\nc = f()\nc.close()\nleak = c.cr_frame",
    "async generator's frame": "async def f(): yield\nleak = getattr(f(), 'ag_' + 'frame')",
    "await on the host": "c = host_coroutine()\ntry: c.send(None)\nexcept StopIteration as e: pass\nleak = getattr(c, 'cr_' + 'frame')",
    "sorted iterates the host": "leak = sorted(vault)",
    "copy of a host object": "import copy\nleak = copy.copy(vault)._secret",
    "copy hook on its own": "import copy\nclass A:\n  def __copy__(self): return vault\nleak = copy.copy(A())._secret",
    "reduce in a class": "class A:\n  def __reduce__(self): return print, ('x',)",
    "reduce stored later": "class A: pass\nA.__reduce_ex__ = lambda s, p: (print, ('x',))",
    "uuid of a liar": "import uuid\nleak = uuid.UUID(int=vault)",
    "warnings as errors": "import warnings\nclass W(UserWarning):\n  def __init__(self, m): self.f = m.__traceback__\nwarnings.warn(ValueError(), W)",
    "html unescape of a liar": "import html\nclass S(str):\n  def __contains__(self, x): return vault._secret\nleak = html.unescape(S('&amp;')).partition('S3')[1] or None",
    "difflib junk that reads": "import difflib\nleak = difflib.SequenceMatcher(lambda x: vault._secret, 'a', 'b').ratio()",
    "textwrap of a liar": "import textwrap\nclass S(str):\n  def expandtabs(self, n): return vault\nleak = textwrap.wrap(S('a'))",
    "graphlib over liars": "import graphlib\nclass N:\n  def __hash__(self): return vault._secret\nleak = graphlib.TopologicalSorter({N(): []})",
    "zoneinfo outside of its directory": "import zoneinfo\nleak = zoneinfo.ZoneInfo('../../../../etc/passwd')",
    "zoneinfo of a stream": "import zoneinfo, io\nleak = zoneinfo.ZoneInfo.from_file(io.BytesIO(b'TZif' + bytes(40)))._secret",
    "cached_property reads": "import functools\nclass A: _secret = functools.cached_property(lambda s: None)\nleak = vars(A)['_secret'].__get__(vault)",
    "cached_property writes": "import functools\nclass A: describe = functools.cached_property(lambda s: 1)\nvars(A)['describe'].__get__(vault)",
    "cached_property renamed": "import functools\nc = functools.cached_property(lambda s: None)\nc.attrname = '_secret'\nleak = c.__get__(vault)",
    "cached_property of the host renamed": "Vault.length.attrname = '_secret'",
    "eval from a cached_property": "import functools\nclass S(str): v = functools.cached_property(eval)\nleak = S('exec').v",
    "eval from singledispatch": "import functools\nleak = functools.singledispatch(eval)('exec')",
    "eval from a sequence matcher": "import difflib\nbox = []\nclass S(difflib.SequenceMatcher): box = box\nS(eval, '', ['self.box.append(exec)'])\nleak = box or None",
    "globals from a context manager": "import contextlib\nleak = contextlib.contextmanager(globals)().gen",
    "globals from a dataclass": "import dataclasses\n@dataclasses.dataclass\nclass A: g: object = dataclasses.field(default_factory=globals)\nleak = A().g",
    "dataclass over the host": "import dataclasses\n@dataclasses.dataclass(init=False)\nclass D(Vault): _secret: str\nleak = repr(D())",
    "replace over the host": "import dataclasses\nbox = []\n@dataclasses.dataclass(init=False)\nclass D(Vault):\n  _secret: str\n  def __init__(self, **k): box.append(k); Vault.__init__(self)\n"
    "dataclasses.replace(D())",
    "annotations that lie": "import dataclasses\nclass N(dict):\n  def items(self): return [('a,exec', int)]\n@dataclasses.dataclass(init=False, repr=False)\n"
    "class A:\n  __annotations__ = N()\n  a = 1\n  def __eq__(self, o): return NotImplemented\nleak = 'exec' in str(A.__match_args__) or None",
    "field renamed to code": "import dataclasses\n@dataclasses.dataclass\nclass P: a: int = 0\ndataclasses.fields(P)[0].name = 'a,exec'\n"
    "@dataclasses.dataclass(init=False, repr=False)\nclass A(P): pass\nleak = [m for m in A.__match_args__ if 'exec' in m] or None",
    "field of the host": "import dataclasses\ndataclasses.fields(Record)[0].repr = False",
    "setstate sees the state": "import copy\nbox = []\nclass S(Vault):\n  def __setstate__(self, s): box.append(s)\ncopy.copy(S())",
    "setstate sees the stream": "import copy, pprint\nbox = []\nclass S(pprint.PrettyPrinter):\n  def __setstate__(self, s): box.append(s)\ncopy.copy(S())",
    "deepcopy's memo": "import copy\nmemo = {}\ncopy.deepcopy(vault, memo)",
    "deepcopy's memo of globals": "import copy\nmemo = {}\ntry: copy.deepcopy(globals(), memo)\nexcept Exception: pass\nleak = [m for m in memo.values() if isinstance(m, dict) and len(m) > 50] or None",
    "deepcopy's memo in a hook": "import copy\nbox = []\nclass A:\n  def __deepcopy__(self, memo): box.append(memo); return self\nvault.label = A()\ncopy.deepcopy(vault)",
    "annotated writes": "import typing\ntyping.Annotated[Vault, 1].describe = lambda self: 1",
    "typing alias writes": "import typing\ntyping.Mapping.x_of_a_guest = 1",
    "typing alias registers": "import typing\nclass A: pass\ntyping.Mapping.register(A)",
    "alias registers": "import types, numbers\nclass A: pass\ntypes.GenericAlias(numbers.Number, ()).register(A)",
    "metaclass registers": "import abc, numbers\nclass A: pass\nclass M(abc.ABCMeta): pass\nM.register(numbers.Number, A)",
    "object of a failed lookup": "import types\ntry: host_lookup('nope')\nexcept AttributeError as e: leak = types.GenericAlias(e, ()).obj",
    "shared calendar": "import calendar\ncalendar.c.setfirstweekday(calendar.c.firstweekday + 1)",
    "shared implementation": "import sys\nsys.implementation.x = 1",
    "value of an enum member": "Color.RED._value_ = 99",
    "name of a flag": "import re\nre.A._name_ = 'QQ'",
    "samples draw from the host": "import statistics\nstatistics.NormalDist().samples(3)",
    "globals from a context manager class": "import contextlib\n@contextlib.contextmanager\ndef m(): yield\nleak = type(m())(globals, (), {}).gen",
    "metadata of all dataclasses": "class E:\n  def __ror__(self, o): o['x_of_a_guest'] = 1; return o\nimport dataclasses\ndataclasses.fields(Record)[0].metadata | E()",
    "a shared table of month names": 'import calendar\nbefore, calendar.month_name.format = calendar.month_name.format, "%m"\nleak = calendar.month_name.format if calendar.month_name.format != before else None',
    "replace of a sealed record": "import dataclasses\nleak = dataclasses.replace(sealed_record, a=5)",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _host_as_before() -> Any:
    """Undo what an open hole did, so that the order of tests does not matter."""
    yield
    attack.host.restore()


@pytest.mark.parametrize("source", cases(ATTACKS))
def test_the_library_gives_no_way_to_the_host(source: str) -> None:
    done = attack.Attack(source)

    assert done.findings == []
    assert done.result.namespace.get("leak") is None


ADDRESS = "D = {'data': (id(1), False), 'shape': (4,), 'typestr': '|u1', 'version': 3}\n"
MODULE = (
    "import copy, functools, types\ndef tell(name):\n  if name == '__array_interface__': return D\n  raise AttributeError(name)\n"
    "class M(types.ModuleType):\n  def __getstate__(self): return {'__getattr__': tell}\n"
)
RAW = {
    "a module that copy fills": MODULE + "a = copy.copy(M('m'))",
    "a module that keeps what a property gave": MODULE + "class C(functools.cached_property): pass\n"
    "c = C(lambda self: tell)\nc.__set_name__(M, '__getattr__')\na = M('m')\nc.__get__(a)",
    "functional enum": "import enum\na = enum.Enum('E', {'__array_interface__': D, 'A': 1}).A",
    "the real namespace": "import types\na = types.SimpleNamespace.__base__(__array_interface__=D)",
}


@pytest.mark.parametrize("source", cases(RAW))
def test_numpy_is_told_no_address_by_an_object_that_the_library_made(source: str) -> None:
    """Stopped by: sandbox.classes.unsafe_protocols."""
    numpy = pytest.importorskip("numpy", reason="the extra `test` has numpy")
    given = attack.Attack(ADDRESS + source).result.namespace.get("a")

    assert numpy.asarray(given).dtype == object


class Account:
    """Has what ``UserDict.copy`` sets anew while it copies."""

    def __init__(self) -> None:
        self.set_to: list[Any] = []

    @property
    def data(self) -> dict[str, int]:
        return {"a": 1}

    @data.setter
    def data(self, value: dict[str, int]) -> None:
        self.set_to.append(value)


def test_a_method_of_a_container_sets_nothing_on_an_object_of_the_host() -> None:
    """Stopped by: sandbox.patches.copy, sandbox.patches.methods."""
    policy = Policy.default()
    policy.cls(Account)
    account = Account()
    done = Sandbox(policy).exec(
        "import collections\ncollections.UserDict.copy(account)", {"account": account}
    )

    assert isinstance(done.error, TypeError)
    assert account.set_to == []


def test_a_container_is_copied() -> None:
    """Stopped by: sandbox.patches.copy."""
    source = "import collections\nclass U(collections.UserDict): pass\n"
    source += "x = [collections.UserDict(a=1).copy(), type(U(a=1).copy()).__name__, collections.UserDict.copy(U(b=2))]"

    assert Sandbox().exec(source).namespace["x"] == [{"a": 1}, "U", {"b": 2}]
