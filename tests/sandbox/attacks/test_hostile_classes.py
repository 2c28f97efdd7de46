"""Attacks through how classes are made and looked at; a program that comes by something puts it into ``leak``.

Stopped by: sandbox.classes.class_registry, sandbox.classes.namespace, sandbox.classes.unsafe_protocols.
"""

from __future__ import annotations

import collections
import enum
import sys
import typing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pydantic
import pytest
from fuzz import attack

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox
from agex.sandbox.patches.install import install


def cases(attacks: dict[str, str]) -> list[Any]:
    """Give the attacks as parameters."""
    return [pytest.param(source, id=name) for name, source in attacks.items()]


HOOKED = "box = []\ndef spy(self, k, v): box.append((k, v)); object.__setattr__(self, k, v)\n"
LYING = "class N(dict):\n  def __iter__(self): return iter(())\n  def get(self, *a): return a[1] if len(a) > 1 else None\n"

OWN_DATACLASS = "import dataclasses\n@dataclasses.dataclass({0})\nclass D:\n  {1}: object = 0\n"
FIELDS = "class F: _field_type = None; init = True; name = '__reduce_ex__'\nbox = []\n"
MAKES_THE_HOSTS = "class G(type):\n  def __new__(m, n, b, ns, **k): return Vault if n == 'X' else super().__new__(m, n, b, ns, **k)\n"
COPIED = (
    "import copy\nthe = None\nclass A:\n  def __new__(cls, *a): return object.__new__(cls) if the is None else the\n"
    "  def __getstate__(self): return state\n"
)

CONTAINER = (
    "import collections, copy\nthe = None\nclass U(collections.{}):\n"
    "  def __new__(cls, *a): return object.__new__(cls) if the is None else the\nu = U()\nu.describe, the = lambda: 1, vault\n"
)
ASKED = "import abc\nbox = []\nS = None\n"
SPIED = "for t in box: S = t('S', (Vault,), {'__setattr__': lambda self, k, v: print(v)}); S()\nleak = None if box[0] is type else box"
ADDRESS = (
    "import numpy as np\nD = {'data': (id(1), False), 'shape': (4,), 'typestr': '|u1', 'version': 3}\n"
    "def told(*a):\n  if a[-1] == '__array_interface__': return D\n  raise AttributeError(a[-1])\n"
    "def look(o):\n  global leak\n  if np.asarray(o).dtype != object: leak = o\nclass Told: __call__ = told\n"
)
HASHED = (
    "import enum, abc\nbox = []\nclass M(type):\n  def __hash__(c): return h\n  def __eq__(c, o): box.append(o); return False\n"
    f"h = hash(object) + ({id(type)} - {id(object)} >> 4)\nclass A(metaclass=M): pass\nbox.clear()\n"
)

TEXTS = "from __future__ import annotations\n"
SPACED = "leak = box[0].get('__classdictcell__') or box[0].get('__classdict__')"

ATTACKS = {
    "state of the host by a copy while a class is made": COPIED.partition("class A")[0] + "state = {'label': 'x', '_secret': 'x'}\n"
    "class S:\n  def __set_name__(self, o, n):\n    global the\n    x = o()\n    the = vault\n    copy.copy(x)\nclass A:\n  s = S()"
    + COPIED.partition("class A:")[2],
    "state of the host by a copy while a class below is made": COPIED + "state = {'label': 'x', '_secret': 'x'}\n"
    "class B(A):\n  def __init_subclass__(cls):\n    global the\n    x = cls()\n    the = vault\n    copy.deepcopy([x])\nclass C(B): pass",
    "type by a subclass hook": ASKED + "class A(abc.ABC):\n  @classmethod\n  def __subclasshook__(cls, c): box.append(c); return False\nisinstance(int, A)\n" + SPIED,
    "type by a subclass hook that is an object": ASKED + "class F:\n  def __call__(self, c): box.append(c); return False\nclass A(abc.ABC): __subclasshook__ = F()\nisinstance(int, A)\n" + SPIED,
    "type by a subclass hook while its class is made": ASKED + "class B(abc.ABC):\n  def __init_subclass__(cls): isinstance(int, cls)\nclass A(B):\n  @classmethod\n"
    "  def __subclasshook__(cls, c): box.append(c); return False\n" + SPIED,
    "type by a subclass check": ASKED + "class M(abc.ABCMeta):\n  def __subclasscheck__(cls, c): box.append(c); return False\nclass A(metaclass=M): pass\nisinstance(int, A)\n" + SPIED,
    "type by a metaclass that answers for its class": ASKED + "class M(abc.ABCMeta):\n  def __getattribute__(cls, n):\n    if n == '__subclasshook__': return box.append\n"
    "    return abc.ABCMeta.__getattribute__(cls, n)\nclass A(metaclass=M): pass\nisinstance(int, A)\nleak = box or None",
    "type by an object that poses as an abstract class": ASKED + "class A(abc.ABC): pass\nclass O: pass\no = O()\n"
    "vars(o).update(_abc_impl=vars(A).get('_abc_impl'), __subclasscheck__=box.append)\nabc.ABCMeta.__instancecheck__(o, int)\nleak = box",
    "type by what equals it": HASHED + "import copy\ncopy.copy(A())\ncopy.deepcopy(A())\n" + SPIED,
    "what is registered with an abstract class of the host": "import abc, collections.abc\nclass M(abc.ABCMeta): pass\ngetattr(M, '_abc_registry_' + 'clear')(collections.abc.Sequence)\nleak = None if isinstance([], collections.abc.Sequence) else M",
    # what a class statement asks of the guest on its way
    "prepare gives a list": "class M(type):\n  def __prepare__(n, b): return [vault]\nclass A(Vault, metaclass=M): leak = vault._secret",
    "prepare answers helpers": "class N(dict):\n  def __missing__(self, k): return lambda *a: a[0]\nclass M(type):\n  def __prepare__(n, b): return N()\n"
    "class A(Vault, metaclass=M): leak = vault._secret\nleak = A.leak",
    "prepare answers the class cell": "class N(dict):\n  def __getitem__(self, k): return vault if k == '__class__' else dict.__getitem__(self, k)\n"
    "class M(type):\n  def __prepare__(n, b): return N()\nclass A(metaclass=M):\n  def f(self): return super().__init__\nA().f()",
    "init_subclass over the host": HOOKED + "class A:\n  def __init_subclass__(cls, **k): cls.__setattr__ = spy\nclass B(A, Vault): pass\nB()",
    "init_subclass stores later": HOOKED + "class A: pass\nclass B(A, Vault): pass\nA.__setattr__ = spy\nB()",
    "setattr by set_name": HOOKED + "class D:\n  def __set_name__(self, owner, name): owner.__setattr__ = spy\nclass B(Vault): d = D()\nB()",
    "set_name keeps a private member": "class D:\n  def __set_name__(self, owner, name): self.o = owner\n  def __get__(self, o, t): return self.o._key\n"
    "class B(Vault): d = D()\nleak = B.d",
    "class cell of a host method": "class B(Vault):\n  def f(self): return __class__._key\nleak = B().f()",
    "metaclass call hands over the instance": "class M(type):\n  def __call__(cls): o = super().__call__(); return o._secret\nclass B(Vault, metaclass=M): pass\nleak = B()",
    "metaclass getattribute": "class M(type):\n  def __getattribute__(cls, n): return type.__getattribute__(Vault, n)\nclass B(metaclass=M): pass\nleak = B._key",
    "metaclass instancecheck in a pattern": "class M(type):\n  def __instancecheck__(cls, o): return True\n  __match_args__ = ('_secret',)\n"
    "class P(metaclass=M): pass\nmatch vault:\n  case P(x): leak = x",
    "match_args of str subclasses": "class S(str):\n  def startswith(self, *a): return False\nclass M(type):\n  def __instancecheck__(cls, o): return True\n"
    "class P(metaclass=M): __match_args__ = (S('_secret'),)\nmatch vault:\n  case P(x): leak = x",
    "match_args from getattr of a metaclass": "class M(type):\n  def __instancecheck__(cls, o): return True\n  def __getattr__(cls, n): return ('_secret',)\n"
    "class P(metaclass=M): pass\nmatch vault:\n  case P(x): leak = x",
    "subclasscheck sees no private class": "box = []\nclass M(type):\n  def __subclasscheck__(cls, c): box.append(c); return True\nclass P(metaclass=M): pass\n"
    "issubclass(Vault, P)\nleak = box[0]._key",
    "type in three steps": HOOKED + "make = [type][0]\nS = make('S', (Vault,), {'__setattr__': spy})\nS()",
    "type by partial": HOOKED + "import functools\nS = functools.partial(type, 'S', (Vault,))({'__setattr__': spy})\nS()",
    "type by reduce": HOOKED + "import functools\nS = functools.reduce(lambda f, a: type('S', (Vault,), {'__setattr__': spy}), [1, 2])\nS()",
    "type of a metaclass": HOOKED + "import enum\nS = type(enum.Enum)('S', (Vault,), {'__setattr__': spy})\nS()",
    "type of a protocol": HOOKED + "import typing\nS = type(typing.Protocol)('S', (Vault,), {'__setattr__': spy})\nS()",
    "new of a metaclass": HOOKED + "class M(type): pass\nS = M.__new__(M, 'S', (Vault,), {'__setattr__': spy})\nS()",
    "new through super twice": HOOKED + "class M(type):\n  def __new__(m, n, b, ns): return super().__new__(m, n, (Vault,), {**ns, '__setattr__': spy})\n"
    "class S(metaclass=M): pass\nS()",
    "slots over the private state": "class S(Vault): __slots__ = ('_secret',)\nleak = S()._secret",
    "slots from an iterator": "class S(Vault): __slots__ = iter(['_secret'])\nleak = S()._secret",
    "slots of str subclasses": "class T(str):\n  def __eq__(self, o): return False\n  def __hash__(self): return 0\nclass S(Vault): __slots__ = (T('_secret'),)\nleak = S()._secret",
    "mangling to the host's name": "class Vault_(Vault):\n  def f(self): return self._secret\nleak = Vault_().f()",
    "mangled by a class of the same name": "V = Vault\nclass Vault(V):\n  def f(self): return self.__secret\nleak = Vault().f()",
    "diamond of own and host": "class A:\n  _secret = 0\nclass B(A, Vault):\n  def f(self): return self._secret\nleak = B().f()",
    "generic over the host": HOOKED + "import typing\nT = typing.TypeVar('T')\nclass S(Vault, typing.Generic[T]): __setattr__ = spy\nS[int]()",
    "namedtuple over the host": "import typing\nclass N(typing.NamedTuple):\n  a: int\n  _secret: str\nleak = N",
    "an enum over the host": "import enum\nclass E(Vault, enum.Enum):\n  A = ()\n  def f(self): return self._secret\nleak = E.A.f()",
    "enum hooks": "import enum\nclass E(enum.Enum):\n  def _generate_next_value_(name, *a): return vault\n  A = enum.auto()\nleak = E.A.value._secret",
    "enum missing": "import enum\nclass E(enum.Enum):\n  A = 1\n  @classmethod\n  def _missing_(cls, v): return v._secret\nleak = E(vault)",
    "class body star import": "class A:\n  from string import *\n  leak = vault._secret",
    "walrus in a comprehension of a class body": "class Own: _secret = 1\nclass A:\n  o = Own()\n  leak = [o._secret for o in [o, vault]]",
    "deleting a helper": "globals().pop('check!')\nleak = vault._secret",
    "shadowing isinstance and type": "def isinstance(*a): return True\ndef type(*a): return int\nleak = vault._secret",
    "shadowing getattr": "def getattr(o, n): return o\nleak = vault._secret",
    "rebinding super": "class super:\n  def __init__(self, *a): pass\n  _secret = vault\nclass B(Vault):\n  def f(self): return super()._secret._secret\nleak = B().f()",
    "full width letters": "leak = vault._ｓｅｃｒｅｔ",
    "long s": "leak = vault._ſecret",
    "ligature in getattr": "leak = getattr(vault, '_\\uff53ecret')._x",
    "math letters in a dunder": "leak = host_fn.__𝐠𝐥𝐨𝐛𝐚𝐥𝐬__",
    "math letters in a keyword pattern": "match vault:\n  case Vault(_𝐬ecret=x): leak = x",
    "full width in an import": "from json import ｃｏｄｅｃｓ as leak",
    "nonlocal of the class cell": "class B(Vault):\n  def f(self):\n    def g():\n      nonlocal __class__\n      __class__ = type\n    g()\n    return __class__\nleak = B().f()",
    "annotations as dict of the host": "leak = Vault.describe.__annotations__['x']",
    "class getitem of a host class": "Box[int].leak\nleak = Box[vault].__args__[0]._secret",
    "property with the host's getter": "leak = property(Vault.initial.fget).fget(vault)._secret",
    "method rebound to another object": "leak = type(vault.describe)(Vault.describe, vault).__self__",
    "method of the guards": "leak = type(vault.describe)(getattr, vault)('_secret')",
    "descriptor of a host property": "class A: _secret = 1\nleak = Vault.initial.__get__(A()).missing",
    "dunder class assigned": "class A: pass\na = A()\na.__class__ = Vault\nleak = a",
    "dunder dict assigned": "class A: pass\na = A()\na.__dict__ = vars(A)\nleak = a",
    "bases assigned": "class P: pass\nclass A(P): pass\nA.__bases__ = (Vault,)\nleak = A()._secret",
    "bases assigned by setattr": "class P: pass\nclass A(P): pass\nsetattr(A, '__bases__', (Vault,))\nleak = A()._secret",
    "bases by type setattr": "class P: pass\nclass A(P): pass\ntype.__setattr__(A, '__bases__', (Vault,))\nleak = A()._secret",
    "metaclass returns a host class": "class X(metaclass=lambda n, b, ns: Vault): pass\nleak = vault._secret",
    "new returns a host class": "class M(type):\n  def __new__(m, *a): return Vault\nM('X', (), {})\nVault.describe = lambda self: 1",
    "prepare lies to the check": HOOKED + LYING + "class M(type):\n  @classmethod\n  def __prepare__(m, n, b): return N()\n"
    "class S(Vault, metaclass=M): __setattr__ = spy\nS()",
    "prepare gives two answers": "g = globals()\nclass Own: pass\no = Own()\nclass N(dict):\n  n = 0\n  def __getitem__(self, k):\n    if k == 'v':\n      N.n += 1\n"
    "      return o if N.n == 1 else g\n    return dict.__getitem__(self, k)\nclass M(type):\n  @classmethod\n  def __prepare__(m, n, b): return N()\n"
    "class A(metaclass=M): q = v._namespace\nleak = A.q",
    "mro of its own": HOOKED + "class M(type):\n  def mro(cls): return [cls, Vault, object]\nclass S(metaclass=M): __setattr__ = spy\nS()",
    "base by annotated": HOOKED + "import typing\nclass S(typing.Annotated[Vault, 1]): __setattr__ = spy\nS()",
    "base by generic alias": HOOKED + "import types\nclass S(types.GenericAlias(Vault, ())): __setattr__ = spy\nS()",
    "base by a generic class of the host": HOOKED + "class S(Box[int]):\n  def __setattr__(self, k, v): box.append((k, v))\nS()\nleak = box or None",
    "the real type by an alias": HOOKED + "S = type[int].__origin__('S', (Vault,), {'__setattr__': spy})\nS()",
    "the real type by typing": "import typing\nt = typing.Type.__origin__\nleak = None if t is type else t",
    "the real type by get_origin": "import typing\nt = typing.get_origin(typing.Type[int])\nleak = None if t is type else t",
    "the real type as a base": "import types\nleak = types.GenericAlias(type, ()).__base__",
    "a sealed class by the real type": "leak = type[int].__origin__(sealed)()",
    "subclass of super": "class Sub(Vault): pass\nclass S(super): pass\nleak = S(Sub, Sub()).__dict__",
    "class attribute by a subclass of super": "class Sub(Vault): pass\nclass S(super): pass\nleak = S(Sub, Sub())._key",
    "subclass of GenericAlias": "import types\nclass G(types.GenericAlias): pass\nleak = G(vault, int)._secret",
    "dict by a subclass of GenericAlias": "import types\nclass G(types.GenericAlias): pass\nleak = G(vault, int).__dict__",
    "excluded member by an alias": "import types\nleak = types.GenericAlias(vault, ()).size()",
    "excluded member by annotated": "import typing\nleak = typing.Annotated[Vault, 1].size(vault)",
    "the dict descriptor of another class": "class A: pass\nclass B(A, Vault): state = vars(A)['__dict__']\nleak = B().state",
    "the dict descriptor by classmethod": "class A: pass\nclass B(A, Vault): pass\nleak = classmethod(vars(A)['__dict__']).__get__(None, B())['_secret']",
    "the dict descriptor by an alias": "import types\nclass A: pass\nclass B(A, Vault): pass\nleak = types.GenericAlias(vars(A)['__dict__'], ()).__get__(B())",
    "bases by wraps": "import functools\nclass T(str):\n  def startswith(self, *a): return False\nclass W(Vault): pass\nclass P: pass\nclass A(P): pass\n"
    "functools.wraps(W, assigned=[T('__bases__')])(A)\nleak = A()._secret",
    "match_args changed between look and match": "class K(Vault): __match_args__ = ('label',)\nclass M(type):\n  @property\n  def __match_args__(cls):\n"
    "    K.__match_args__ = ('_secret',)\n    return ()\nclass K2(metaclass=M): pass\nmatch (K(), 1):\n  case [K(x), _] | [K2(x), _]: leak = x if x != vault.label else None",
    "raw memory by a class of another module": "D = {'data': (id(1), False), 'shape': (4,), 'typestr': '|u1', 'version': 3}\n"
    "class A:\n  __module__ = 'm'\n  __array_interface__ = property(lambda s: D)\nimport numpy\nleak = numpy.asarray(A())",
    "a class of another module in a metaclass": "class M(type):\n  def __init__(cls, *a): box.append(cls)\nbox = []\n"
    "class A(metaclass=M):\n  __module__ = 'm'\n  __array_interface__ = 1\nleak = box",
    "the real map": "leak = None if map.__base__ is object else map.__base__",
    "the real formatter": "import string\nleak = string.Formatter.__mro__[2]().format('{0._secret}', vault)",
    "names in a str subclass": "class T(str):\n  def __eq__(self, o): return False\n  def __hash__(self): return 0\n"
    "box = []\nS = type('S', (Vault,), {T('__setattr__'): lambda *a: box.append(a)})\nS()",
    "depth by type call": "it = iter([1])\nfor _ in range(2_000): it = type.__call__(map, str, it)\nleak = it",
    "functional enum over the host": 'import enum\nbox = []\ndef spy(self, k, v):\n  box.append((k, v))\n  try: object.__setattr__(self, k, v)\n  except AttributeError: pass\nenum.Enum("E", {"__setattr__": spy, "A": ()}, type=Vault)',
    "the class of an alias writes": "Box[int].describe = lambda self: 1",
    "getattribute over the host in a mixin": "box = []\nclass A:\n  def __getattribute__(self, n): box.append(object.__getattribute__(self, n)); return box[-1]\nclass B(A, Vault): pass\nB().describe()",
    "data descriptor over the private state": "box = []\nclass D:\n  def __set__(self, o, v): box.append(v)\nclass A(Vault): pass\nA._secret = D()\nA()",
    "cached_property in a mixin": "import functools\nclass A:\n  @functools.cached_property\n  def _secret(self): return 1\nclass B(A, Vault): pass\nleak = B()._secret",
    "method of a mixin": "class A:\n  def f(self): return self._secret\nclass B(A, Vault): pass\nleak = B().f()",
    "vars in a mixin": "class A:\n  def f(self): return vars(self)\nclass B(A, Vault): pass\nleak = B().f()",
    "dynamic attribute": "import types\nleak = types.DynamicClassAttribute(lambda s: s).__get__(vault)._secret",
    "property of enum": "import enum\nclass P(enum.property): pass\nleak = P(lambda s: s).__get__(vault)._secret",
    "weak reference descriptor": "class A: pass\nleak = [v for k, v in vars(A).items() if k == '__weakref__'][0].__get__",
    "subclasshook sees no namespace": "import abc\nclass A(abc.ABC):\n  @classmethod\n  def __subclasshook__(cls, c): return c.__dict__\nleak = issubclass(Vault, A)",
    "subclass of an alias of typing, read": "import typing\nclass G(type(typing.List[int]), _root=True): pass\ndef f(g): return g.size\nleak = f(G(vault, ()))",
    "subclass of an alias of typing, written": "import typing\nclass G(type(typing.List[int]), _root=True): pass\ndef f(g): g.describe = lambda self: 1\nf(G(Vault, ()))",
    "subclass of a forward reference": "import typing\nclass F(type(typing.List['x'].__args__[0]), _root=True): pass\n"
    "f = F('__import__(\"os\").getpid')\ntry: leak = f._evaluate({}, {}, frozenset())\nexcept TypeError: leak = f._evaluate({}, {}, (), recursive_guard=frozenset())",
    "members of a module by an enumeration": "import enum\nclass E(enum.Enum): pass\nleak = E._convert_('X', 'os', lambda n: n == 'system')",
    "members of a module, by name": "import enum\nclass E(enum.Enum): pass\nleak = getattr(E, '_conv' + 'ert_')('X', 'os', lambda n: n == 'system')",
    "members of a module by a metaclass": "import enum\nclass M(type(enum.Enum)): pass\nclass E(enum.Enum): pass\nleak = M._convert_(E, 'X', 'os', lambda n: n == 'system')",
    "the real type.__new__ by an enumeration": "import enum\nbox = []\nclass E(enum.Enum): pass\nnew = E._find_new_({}, type, type)[0]\n"
    "S = new(type, 'S', (Vault,), {'__setattr__': lambda *a: box.append(a)})\nS()\nleak = box[0]",
    "the real type.__new__ by a metaclass": "import enum\nbox = []\nclass M(type(enum.Enum)): pass\nnew = getattr(M, '_find' + '_new_')({}, type, type)[0]\n"
    "S = new(type, 'S', (Vault,), {'__setattr__': lambda *a: box.append(a)})\nS()\nleak = box[0]",
    "a new member of an enumeration of the host": "import enum\nclass M(type(enum.Enum)): pass\nM._add_member_(Color, 'X', Color.RED)\nleak = 1",
    "the register of an abstract class emptied": "import abc, collections.abc as c\nclass M(abc.ABCMeta): pass\nM._abc_registry_clear(c.MutableSet)\n"
    "M._abc_caches_clear(c.MutableSet)\nleak = None if isinstance(set(), c.MutableSet) else 1",
    "the register of an abstract class shown": "import abc, collections.abc as c, io\nclass MM(type): pass\nclass M(abc.ABCMeta, metaclass=MM): pass\n"
    "f = io.StringIO()\nM._dump_registry(c.MutableSet, f)\nleak = f.getvalue()",
    "text evaluated by a base of a dispatcher": "import functools\nP = functools.singledispatchmethod\nclass S(P):\n  def __init__(self, f): super(P, self).__init__(f)\n"
    "def f(self, x: '().__class__.__base__.__subclasses__()'): pass\ns = S(lambda self, x: 0)\ntry: s.dispatcher.register(f)\nexcept TypeError as e: leak = e.args",
    "text evaluated by the real dispatcher": "import functools\ndef f(self, x: '().__class__.__base__.__subclasses__()'): pass\n"
    "s = functools.singledispatchmethod.mro()[1](lambda self, x: 0)\ntry: s.register(f)\nexcept TypeError as e: leak = e.args",
    "copy that is an object of the host": COPIED + "a, the, state = A(), vault, {'_secret': 1}\ncopy.copy(a)",
    "deep copy that is an object of the host": COPIED + "a, the, state = [A()], vault, {'_secret': 1}\ncopy.deepcopy(a)",
    "copy that is a class of the host": COPIED + "a, the, state = A(), Vault, (None, {'describe': lambda self: 1})\ncopy.copy(a)",
    "copy that is a function of the host": COPIED + "a, the, state = A(), host_fn, (None, {'__defaults__': (1, 2)})\ncopy.copy(a)",
    "copy of an error that is an object of the host": "import copy\nclass E(Exception):\n  def __new__(c, *a): return vault if a else Exception.__new__(c)\n"
    "e = E()\ne.args, e._secret = (1,), 2\ncopy.copy(e)",
    "copy of one over the host that says its private state": "import copy\nclass B(Vault):\n  def __getstate__(self): return {'_secret': 1}\nleak = copy.copy(B())",
    "copy of another class": COPIED + "state = (None, {'__class__': Vault, '_secret': 1})\nleak = copy.copy(A())",
    "copy of another class, with the hook for its state hidden": COPIED + "state = (None, {'__class__': Vault, '_secret': 1})\n"
    "class B(A):\n  def __getattribute__(self, n): return object.__getattribute__(self, n)\n  def __setstate__(self, s): pass\nleak = copy.copy(B())",
    "copy of a dict that is an object of the host": CONTAINER.format("UserDict") + "copy.copy(u)",
    "copy of a dict that is an object of the host, by its class": CONTAINER.format("UserDict") + "collections.UserDict.__copy__(u)",
    "copy of a list that is an object of the host": CONTAINER.format("UserList") + "copy.copy(u)",
    "copy of a dict that says its class": "import collections\nclass F:\n  def __new__(cls): return vault\nclass U:\n"
    "  def __getattribute__(self, n): return F if n == '__class__' else object.__getattribute__(self, n)\n"
    "u = U()\nu.describe, u.data = lambda: 1, {}\ncollections.UserDict.__copy__(u)",
    "repr of a dataclass": OWN_DATACLASS.format("", "_secret") + "leak = D.__repr__(vault)",
    "repr of a dataclass, in its namespace": OWN_DATACLASS.format("", "_secret") + "leak = vars(D)['__repr__'](vault)",
    "equality of a dataclass": OWN_DATACLASS.format("", "_secret") + "box = []\nclass Spy:\n  def __getattribute__(self, n): return Vault if n == '__class__' else self\n"
    "  def __eq__(self, o): box.append(o); return True\nD.__eq__(vault, Spy())\nleak = box or None",
    "order of a dataclass": OWN_DATACLASS.format("order=True", "_secret") + "leak = D.__lt__(vault, Vault())",
    "hash of a dataclass": OWN_DATACLASS.format("unsafe_hash=True", "_secret") + "leak = D.__hash__(vault)",
    "init of a dataclass": OWN_DATACLASS.format("", "_secret") + "vars(D)['__init__'](vault, 1)",
    "init of a frozen dataclass": OWN_DATACLASS.format("frozen=True", "_secret") + "vars(D)['__init__'](vault, 1)",
    "state of a dataclass": OWN_DATACLASS.format("frozen=True, slots=True", "a") + "leak = vars(D)['__getstate__'](record)",
    "state of a dataclass, written": OWN_DATACLASS.format("frozen=True, slots=True", "a") + "vars(D)['__setstate__'](record, [5, 6])\nleak = record.a if record.a != 1 else None",
    "a dunder by fields of its own": "import dataclasses\n" + FIELDS + "X = type('X', (), {'__dataclass_fields__': {'a': F()}, '__init__': lambda self, **k: box.append(k)})\n"
    "dataclasses.replace(X())\nleak = box[-1]",
    "a dunder by fields of an object": OWN_DATACLASS.format("", "a") + FIELDS + "d = D()\n"
    "vars(d)['__dataclass_fields__'] = {'a': F()}\nD.__init__ = lambda self, **k: box.append(k)\ndataclasses.replace(d)\nleak = box[-1].get('__reduce_ex__')",
    "cached_property with two names": "import functools\nn = 0\nclass C(functools.cached_property):\n  @property\n  def _name(self):\n    global n; n += 1\n    return 'p' if n < k else '_secret'\n"
    "  @_name.setter\n  def _name(self, v): pass\nk = 99\nclass B(Vault): p = C(lambda self: None)\nb = B()\nleak = None\nfor k in range(1, 9):\n  n = 0\n"
    "  try: leak = leak or b.p\n  except (TypeError, AttributeError): pass",
    "excluded member by a cache": "import functools\nleak = functools.cache(Vault).size(vault)",
    "excluded member by a cache with a size": "import functools\nleak = functools.lru_cache(5)(Vault).size(vault)",
    "excluded member by a dispatcher": "import functools\nleak = functools.singledispatch(Vault).size(vault)",
    "excluded member by a dispatching method": "import functools\nclass A: f = functools.singledispatchmethod(Vault)\nleak = A.f.size(vault)",
    "excluded member by a dispatching method of its own": "import functools\nclass S(functools.singledispatchmethod): func = Vault\ndef f(self, x): pass\n"
    "s = S.__new__(S)\nfunctools.singledispatchmethod.__init__(s, f)\nvars(s)['func'] = Vault\nclass A: g = s\nleak = A.g.size(vault)",
    "excluded member by a manager": "import contextlib\nleak = contextlib.contextmanager(Vault).size(vault)",
    "excluded member by an asynchronous manager": "import contextlib\nleak = contextlib.asynccontextmanager(Vault).size(vault)",
    "excluded member by a decorator": "import contextlib\nclass D(contextlib.ContextDecorator): pass\nleak = D()(Vault).size(vault)",
    "a function of the host made abstract": "import abc\nabc.abstractclassmethod(host_fn)",
    "a class of the host made abstract": "import abc\nabc.abstractstaticmethod(Vault)",
    "a function of the host made abstract, by the class": "import abc\ntype(abc.abstractclassmethod(lambda c: 1))(host_fn)",
    "a member that is an object of the host": "import enum\nclass E(enum.Enum):\n  def __new__(cls, v): return vault\n  A = 1",
    "a member that is a member of the host's": "import enum\nclass E(enum.Enum):\n  def __new__(cls, v): return Color.RED\n  A = 1",
    "a member that is a class of the host": "import enum\nclass E(enum.Enum):\n  def __new__(cls, v): return Vault\n  A = 1",
    "a member that a base gives": "import enum\nclass B:\n  def __new__(cls, v): return vault\nclass E(B, enum.Enum): A = 1",
    "an abstract class that is the host's": "import abc\n" + MAKES_THE_HOSTS + "class M(type(abc.ABC), G): pass\nclass X(metaclass=M): pass",
    "a protocol that is the host's": "import typing\n" + MAKES_THE_HOSTS + "class M(type(typing.Protocol), G): pass\nclass X(metaclass=M): pass",
    "an enumeration that is the host's": "import enum\n" + MAKES_THE_HOSTS + "class M(type(enum.Enum), G): pass\nclass X(enum.Enum, metaclass=M): pass",
    "an abstract class that is the host's, later": "import abc\nclass G(type): pass\nG.__new__ = lambda *a: Vault\nclass M(type(abc.ABC), G): pass\nM('X', (), {})",
    "a finalizer in a named tuple": "import typing\nclass N(dict):\n  def __iter__(self): return iter(['__del__'])\n  def items(self): return [('__del__', f)]\n"
    "  def __getitem__(self, k): return f if k == '__del__' else dict.__getitem__(self, k)\ndef f(self): box.append(1)\nbox = []\n"
    "class G(typing.NamedTupleMeta):\n  def __new__(m, n, b, ns): return super().__new__(m, n, b, N(ns))\n"
    "class X(typing.NamedTuple, metaclass=G): a: int\nx = X(1)\ndel x\nleak = box or None",
    "a finalizer in a named tuple of a mapping": "import typing, collections\nclass G(typing.NamedTupleMeta):\n"
    "  def __new__(m, n, b, ns): return super().__new__(m, n, b, collections.UserDict({**ns, '__del__': lambda self: box.append(1)}))\n"
    "box = []\nclass X(typing.NamedTuple, metaclass=G): a: int\nx = X(1)\ndel x\nleak = box or None",
    "a finalizer in a named tuple of a mapping, by its metaclass": "import typing, collections\nclass G(typing.NamedTupleMeta):\n"
    "  def __new__(m, n, b, ns): box.append(b); return super().__new__(m, n, b, ns)\nbox = []\nclass X(typing.NamedTuple, metaclass=G): a: int\n"
    "Y = typing.NamedTupleMeta('Y', box.pop(), collections.UserDict({'__module__': __name__, '__annotations__': {'a': int}, '__del__': lambda self: box.append(1)}))\n"
    "y = Y(1)\ndel y\nleak = box or None",
    "a finalizer in a named tuple of parts with names": "import typing\nclass G(typing.NamedTupleMeta):\n"
    "  def __new__(m, n, b, ns): box.append(b); return super().__new__(m, n, b, ns)\nbox = []\nclass X(typing.NamedTuple, metaclass=G): a: int\n"
    "Y = typing.NamedTupleMeta(typename='Y', bases=box.pop(), ns={'__module__': __name__, '__annotations__': {'a': int}, '__del__': lambda self: box.append(1)})\n"
    "y = Y(1)\ndel y\nleak = box or None",
    "an enumeration over the host of parts with names": "import enum\nE = type(enum.Enum)\nns = E.__prepare__('X', (Vault, enum.Enum))\nbox = []\n"
    "ns['A'], ns['__setattr__'] = (), lambda self, k, v: box.append((k, v))\ntry: E('X', bases=(Vault, enum.Enum), classdict=ns)\nfinally: leak = box or None",
    "the condition of threads behind that of a queue": "import queue\nq = queue.Queue()\nleak = None if type(q.not_empty).__base__ is object else type(q.not_empty).__base__",
    "own getstate over the host": "class A(Vault):\n  def __getstate__(self): return super().__getstate__()\nleak = A().__getstate__()",
}  # fmt: skip

if sys.version_info >= (3, 12):
    ATTACKS |= {
        "type parameter that reads": "class A[T: vault._secret]: pass\nleak = A.__type_params__[0].__bound__",
        "type alias that reads": "type X = vault._secret\nleak = X.__value__",
        "constraints that read": "def f[T: (vault._secret, 1)](): pass\nleak = f.__type_params__[0].__constraints__",
        "generic syntax over the host": "class A[T](Vault):\n  def f(self): return self._secret\nleak = A().f()",
        "type alias where annotations are text": TEXTS + "type X = vault._secret\nleak = X.__value__",
        "function in a type alias where annotations are text": TEXTS
        + "type X = lambda v: v.__class__.__dict__\nleak = X.__value__(vault)",
        "bound where annotations are text": TEXTS
        + "def f[T: vault._secret](): pass\nleak = f.__type_params__[0].__bound__",
        "bound of a class where annotations are text": TEXTS
        + "class A[T: vault._secret]: pass\nleak = A.__type_params__[0].__bound__",
        "the real namespace by a metaclass": "class M(type):\n  def __new__(m, n, b, ns): box.append(ns); return type.__new__(m, n, b, ns)\nbox = []\n"
        "class A(metaclass=M): type X = int\n" + SPACED,
        "the real namespace by what is prepared": "class M(type):\n  def __prepare__(n, b): return box[0]\nbox = [{}]\nclass A(metaclass=M):\n  def f[T](self): pass\n"
        + SPACED,
        "the real namespace by what makes a class": "def make(*parts): box.append(parts[2]); return type(*parts)\nbox = []\nclass A(metaclass=make): type X = int\n"
        + SPACED,
        "the real namespace by the names of a body": "class B: pass\nbox = []\nclass A(B):\n  box.append(locals())\n  type X = int\n"
        + SPACED,
        "the real namespace by the names of a plain body": "box = []\nclass A:\n  box.append(vars())\n  type X = int\n"
        + SPACED,
        "the real namespace of a class over the host": "class M(type):\n  def __prepare__(n, b): return box[0]\nbox, got = [{}], []\nclass A(Vault, metaclass=M): type X = int\n"
        "box[0]['__classdictcell__'].cell_contents['_secret'] = property(lambda s: 1, lambda s, v: got.append(v))\nA()\nleak = got",
    }


if sys.version_info >= (3, 13):
    ATTACKS |= {
        "an alias in an enumeration of the host": "import enum\nclass E(enum.Enum): pass\nE._add_alias_(Color.RED, 'X')\nleak = Color.X",
        "default where annotations are text": TEXTS
        + "def f[T = vault._secret](): pass\nleak = f.__type_params__[0].__default__",
        "an alias by what is missing": "import enum, functools\nclass E(enum.Enum):\n  _missing_ = functools.partial(enum.Enum._add_alias_, Color.RED)\n"
        "try: E('X')\nfinally: leak = getattr(Color, 'X', None)",
        "an alias of a value of the host": "import enum\nclass E(enum.Enum): pass\nE._add_value_alias_(Color.RED, 'X')\nleak = Color('X')",
    }


@pytest.mark.parametrize("source", cases(ATTACKS))
def test_a_class_gives_no_way_to_the_host(source: str) -> None:
    done = attack.Attack(source)

    assert done.findings == []
    assert done.result.namespace.get("leak") is None


RAW_MEMORY = {
    "raw memory while a class is made": ADDRESS + "class B:\n  def __init_subclass__(cls): look(cls())\nclass A(B): __getattr__ = lambda self, n: told(n)",
    "raw memory by the name of a descriptor": ADDRESS + "class S:\n  def __set_name__(self, cls, n): look(cls())\nclass A:\n  s = S()\n  __getattr__ = lambda self, n: told(n)",
    "raw memory by a hook that is an object": ADDRESS + "class A: __getattr__ = Told()\nlook(A())",
    "raw memory by a hook that is an object, for all names": ADDRESS + "class A: __getattribute__ = Told()\nlook(A())",
    "raw memory by a hook that is a partial": ADDRESS + "import functools\nclass A: __getattr__ = staticmethod(functools.partial(told))\nlook(A())",
    "raw memory by a hook that is a static method": ADDRESS + "class A: __getattr__ = staticmethod(told)\nlook(A())",
    "raw memory by a hook that is a property": ADDRESS + "class A: __getattr__ = property(lambda self: told)\nlook(A())",
    "raw memory of a class": ADDRESS + "class M(type): __getattr__ = told\nclass A(metaclass=M): pass\nlook(A)",
    "raw memory of a class, for all names": ADDRESS + "class M(type):\n  def __getattribute__(c, n): return D if n == '__array_interface__' else super().__getattribute__(n)\n"
    "class A(metaclass=M): pass\nlook(A)",
    "raw memory by another namespace": ADDRESS + "import typing\nclass D(dict):\n"
    "  def __getitem__(self, n): return (lambda self, n: told(n)) if n == '__getattr__' else dict.__getitem__(self, n)\n"
    "class M(typing.NamedTupleMeta):\n  @classmethod\n  def __prepare__(m, n, b, **k): return D()\n"
    "class A(typing.NamedTuple, metaclass=M):\n  a: int\n  def __getattr__(self, n): raise AttributeError\nlook(A(1))",
    **{
        f"raw memory in a copy while a class is made: {head}": ADDRESS + "import copy, abc\nclass M(type): pass\nclass N(M):\n"
        "  def __new__(m, *a): return super().__new__(m, *a)\nclass I(M):\n  def __init__(c, *a): pass\nclass S:\n"
        f"  def __set_name__(self, cls, n): look(copy.copy(cls()))\nclass A{head}:\n  s = S()\n  def __getstate__(self): return {{'__array_interface__': D}}"
        for head in ("", "(dict)", "(Exception)", "(abc.ABC)", "(metaclass=M)", "(metaclass=N)", "(metaclass=I)")
    },
    "raw memory in a copy while a class over another is made": ADDRESS + "import copy\nclass B:\n  def __init_subclass__(cls): look(copy.copy(cls()))\n"
    "class A(B):\n  def __getstate__(self): return {'__array_interface__': D}",
    "raw memory in a namespace": ADDRESS + "class B:\n  def __init_subclass__(cls): look(cls())\nclass A(B): vars()['__array_' + 'interface__'] = D",
}  # fmt: skip


@pytest.mark.parametrize("source", cases(RAW_MEMORY))
def test_no_object_of_the_guest_tells_numpy_an_address(source: str) -> None:
    """Stopped by: sandbox.classes.unsafe_protocols."""
    policy = Policy.default()
    policy.module(pytest.importorskip("numpy"))

    done = Sandbox(policy).session().run(source)

    assert "leak" not in done.namespace
    assert done.error is None or isinstance(done.error, SandboxError)


@pytest.mark.parametrize("answer", ["()", "(object,)", "(cls, dict, object)", "None"])
def test_a_metaclass_that_lies_about_the_bases_does_not_open_what_the_host_left_out(answer: str) -> None:
    """Stopped by: sandbox.classes.host_classes."""
    policy = Policy.default()
    policy.cls(collections.Counter, exclude=("most_common",))

    done = (
        Sandbox(policy)
        .session()
        .run(
            "from collections import Counter\n"
            "class M(type):\n"
            "  def __getattribute__(cls, name):\n"
            f"    return {answer} if name in ('__mro__', '__bases__') else super().__getattribute__(name)\n"
            "class C(Counter, metaclass=M): pass\n"
            "leak = C('aab').most_common()"
        )
    )

    assert isinstance(done.error, SandboxError)
    assert done.namespace.get("leak") is None


def test_a_metaclass_that_is_an_ordinary_class_too_is_refused_whatever_it_answers() -> None:
    done = (
        Sandbox()
        .session()
        .run(
            "class Said: pass\nclass M(Said, type):\n"
            "  def __getattribute__(cls, n): return super().__getattribute__(n)\nclass C(metaclass=M): pass"
        )
    )

    assert isinstance(done.error, SandboxError)


class Row(typing.NamedTuple):
    cell: int = 1


def test_the_bases_of_a_named_tuple_do_not_change_while_it_is_made() -> None:
    """Stopped by: sandbox.classes.namespace."""
    source = """
import typing
class T(tuple):
    n = 0
    def __contains__(self, o): return True
    def __iter__(self):
        T.n += 1
        return iter([] if T.n == 1 else [Row])
fields = {'__module__': __name__, '__setattr__': lambda *a: 1, '__annotations__': {'a': int}}
X = typing.NamedTupleMeta('X', T(), fields)
"""
    done = Sandbox().exec(source, {"Row": Row})
    assert isinstance(done.error, AssertionError)
    assert "X" not in done.namespace


@pytest.mark.parametrize(
    "source",
    [
        "class Late(Order):\n  _abc_impl = 5",
        "type('Late', (Order,), {'_abc_impl': 5})",
        (
            "class N(dict):\n  def __getitem__(self, k): return 1\n"
            "class M(type(Order)):\n  @classmethod\n  def __prepare__(m, *a, **k): return N()\n"
            "class Late(Order, metaclass=M): pass"
        ),
        (
            "import collections\n"
            "class M(type(Order)):\n  @classmethod\n  def __prepare__(m, *a, **k): return collections.defaultdict(int)\n"
            "class Late(Order, metaclass=M): pass"
        ),
    ],
)
def test_a_class_over_a_model_has_the_namespace_that_was_checked(source: str) -> None:
    """Stopped by: sandbox.libraries.pydantic, sandbox.classes.namespace."""
    policy = Policy.default()
    policy.cls(pydantic.BaseModel)
    session = Sandbox(policy).session()
    assert session.run("class Order(BaseModel):\n  lines: int = 1").error is None

    assert isinstance(session.run(source).error, SandboxError)
    assert "Late" not in session.namespace


@pytest.mark.skipif(sys.version_info < (3, 12), reason="generic classes are of Python 3.12")
@pytest.mark.parametrize("namespace", ["Space()", "{'.type_params': 5}"])
@pytest.mark.parametrize("maker", ["Meta", "Below", "Called()", "Answered"])
def test_a_prepared_namespace_is_not_asked_for_type_parameters(namespace: str, maker: str) -> None:
    """What it gives for them ends the process, if it is no tuple."""
    source = f"""
class Space(dict):
    def __getitem__(self, key): return 5 if key[0] == "." else dict.__getitem__(self, key)
class Meta(type):
    @classmethod
    def __prepare__(cls, *args): return {namespace}
class Below(Meta): pass
class Called:
    def __call__(self, *args): return type(*args)
    def __prepare__(self, *args): return {namespace}
class Answer:
    def __get__(self, cls, owner): return lambda *args: {{}} if cls is None else {namespace}
    def __set__(self, cls, value): pass
class Answering(type):
    __prepare__ = Answer()
class Answered(type, metaclass=Answering): pass
class A(metaclass={maker}):
    class B[T]: pass
"""
    assert isinstance(Sandbox().exec(source).error, SandboxError)
    plain = "class M(type): pass\nclass A(metaclass=M):\n  class B[T]: pass\nA.B.__type_params__[0].__name__"
    assert Sandbox().exec(plain).value == "T"


@pytest.mark.parametrize(
    "body",
    [
        "class G(ExceptionGroup):\n  def split(self, t): return 5",
        "class G(ExceptionGroup):\n  def split(self, t): return 1, 2",
        "class B(ExceptionGroup): pass\nclass G(B):\n  def split(self, t): return ()",
        "class G(ExceptionGroup): pass\nG.split = lambda self, t: 5",
        "G = type('G', (ExceptionGroup,), {'split': lambda self, t: 5})",
        "class B:\n  def __getattribute__(self, name): return lambda *args: 5\nclass G(B, ExceptionGroup): pass",
        "class H(ExceptionGroup): pass\ndef G(*args):\n  made = H(*args)\n  made.split = lambda t: 5\n  return made",
    ],
)
def test_a_group_of_exceptions_gives_pairs(body: str) -> None:
    """What is none ends the process.

    Stopped by: sandbox.classes.namespace.
    """
    source = f"{body}\ntry:\n  raise G('x', [ValueError(1)])\nexcept* ValueError:\n  pass"
    assert isinstance(Sandbox().exec(source).error, SandboxError | TypeError)


def test_a_group_of_exceptions_may_be_split_in_a_way_of_its_own() -> None:
    """Stopped by: sandbox.classes.namespace."""
    result = Sandbox().exec("""
class G(ExceptionGroup):
    def split(self, kind):
        found.append(kind)
        return super().split(kind)
    def derive(self, errors): return G(self.message, errors)
found, caught = [], []
try:
    raise G("x", [ValueError(1), TypeError(2)])
except* ValueError as e:
    caught.append(e)
except* TypeError as e:
    caught.append(e)
found, [type(e) is G for e in caught]
""")
    assert result.value == ([ValueError, TypeError], [True, True])


# -- makers of classes that are given to the host


class Kept:
    """A class of the host's with private state."""

    def __init__(self) -> None:
        self._secret = "secret"


def in_a_thread(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function where nothing says that a guest gave it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args, **kwargs).result()


MADE_BY_THE_HOST = {
    "type": "apply(type, 'X', (Kept,), hooks)()",
    "type.__call__": "apply(type.__call__, type, 'X', (Kept,), hooks)()",
    "a metaclass": "class M(type): pass\napply(M, 'X', (Kept,), hooks)()",
    "ABCMeta": "import abc\napply(abc.ABCMeta, 'X', (Kept,), hooks)()",
    "Enum": "import enum\napply(enum.Enum, 'E', hooks, type=Kept)",
    "Enum, by a name that is more": "import enum\nclass S(str): pass\n"
    "apply(enum.Enum, 'E', {S(name): hook for name, hook in hooks.items()}, type=Kept)",
    "Enum, by pairs": "import enum\napply(enum.Enum, 'E', iter(hooks.items()), type=Kept)",
}


@pytest.mark.parametrize("name", MADE_BY_THE_HOST)
def test_a_maker_of_classes_that_the_host_calls_makes_none_that_nobody_looks_at(name: str) -> None:
    policy = Policy.default()
    policy.cls(Kept)
    policy.fn(in_a_thread, name="apply")
    session = Sandbox(policy).session()
    hooks = "hooks = {'A': 1, '__setattr__': lambda *said: seen.append(said), '__del__': lambda self: None}"
    result = session.run(f"seen = []\n{hooks}\n{MADE_BY_THE_HOST[name]}")
    assert isinstance(result.error, SandboxError), result
    assert session.namespace["seen"] == []


def test_the_host_makes_enumerations_as_ever() -> None:
    """Stopped by: sandbox.patches.enum."""
    install()
    assert list(enum.Enum("E", {"A": 1, "B": 2}).__members__) == ["A", "B"]
    assert enum.IntEnum("E", [("A", 1)]).A == 1
    assert enum.Flag("E", "A B").B.value == 2
    assert str(enum.Enum("E", {"A": 1, "__str__": lambda self: "an E"}).A) == "an E"
    assert enum.Enum("E", (each for each in "AB")).B.value == 2


# -- methods of the host's objects, given to others

REBOUND = {
    "__get__": "connect.__get__(x, X)()",
    "__get__ by name": "import operator\noperator.methodcaller('__get__', x)(connect)()",
    "partialmethod": "import functools\nX.f = functools.partialmethod(connect)\nx.f()",
    "singledispatchmethod": "import functools\nX.f = functools.singledispatchmethod(connect)\nx.f(1)",
    "registered there": "import functools\nclass X(X):\n    @functools.singledispatchmethod\n"
    "    def f(self, a): pass\n    f.register(int, connect)\nx = X()\nx.f(1)",
}


@pytest.mark.parametrize("name", REBOUND)
def test_a_method_of_an_object_of_the_host_stays_with_it(name: str) -> None:
    """Stopped by: sandbox.stdlib.functools."""

    class Client:
        def connect(self, *args: object) -> None:
            self._session = "secret"

    session = Sandbox(Policy.default()).session()
    session.add({"connect": Client().connect})
    session.run(f"class X: pass\nx = X()\n{REBOUND[name]}")
    assert session.run("vars(x)").value == {}


def test_a_method_of_the_guests_is_bound_as_ever() -> None:
    """Stopped by: sandbox.stdlib.functools."""
    program = """
import functools
class A:
    def f(self, *args): return type(self).__name__, args
    g = functools.partialmethod(f, 1)
a = A()
class B:
    f = functools.partialmethod(A.f, 2)
    of = a.f
a.g(), B().f(), B().of(), A.f.__get__(B(), B)(4), a.f.__get__(a, A)()
"""
    result = Sandbox(Policy.default()).exec(program)
    assert result.value == (("A", (1,)), ("B", (2,)), ("A", ()), ("B", (4,)), ("A", ()))
