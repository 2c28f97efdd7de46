"""What a registration says of a class holds by every way there is to its objects, its subclasses and its members.

Stopped by: sandbox.policy.policy, sandbox.policy.member_rules, sandbox.classes.host_classes,
sandbox.classes.hook_guards.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import sys
import types
import typing
from typing import Any

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox
from agex.sandbox.classes import hook_guards as answers

SECRET = "told to nobody"
KEPT_UNDER = "_token"


class Vault:
    label = "safe"

    def __init__(self) -> None:
        self._secret = SECRET

    def size(self) -> int:
        return 3

    @classmethod
    def make(cls) -> str:
        return "made"

    part = functools.partialmethod(size)


class Register:
    @classmethod
    def register(cls, *args: object) -> str:
        return SECRET

    @classmethod
    def clear_cache(cls, *args: object) -> str:
        return SECRET

    def format(self) -> str:
        return SECRET


class Answering:
    label = "l"

    def describe(self) -> str:
        return "described"

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return SECRET


def late(self: object) -> str:
    return SECRET


Answering.late = late  # type: ignore[attr-defined]


class Token:
    def __init__(self) -> None:
        self._token = "of another"

    token = property(lambda self: self._token)


class Holder:
    def __init__(self) -> None:
        self._token = SECRET


class Sealed:
    def __init__(self, role: str) -> None:
        self.role = role


class Opened(Sealed):
    pass


Item = typing.TypeVar("Item")


class Generic(typing.Generic[Item]):
    def __init__(self, role: str) -> None:
        self.role = role


class Ticket(typing.NamedTuple):
    role: str = "guest"


Listing = dataclasses.make_dataclass("Listing", [("item", Sealed)])


def opened(role: str) -> Any:
    return Sealed(role)


opened.__annotations__["return"] = Sealed  # the class itself, not its name


def dressed(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


class TwiceDressed:
    @dressed
    @dressed
    def __init__(self) -> None:
        self._token = SECRET


class Cached:
    def __init__(self) -> None:
        vars(self)[KEPT_UNDER] = SECRET

    @functools.cached_property
    def token(self) -> str:
        return self._token  # type: ignore[attr-defined,no-any-return]


class SaidAsText:
    def __init__(self) -> None:
        object.__setattr__(self, "_token", SECRET)


class Updated:
    def __init__(self) -> None:
        self.__dict__.update(_token=SECRET)


MADE = types.new_class("Made")  # its __module__ is "types"
MADE._key = SECRET  # type: ignore[attr-defined]
MADE.size = late  # type: ignore[attr-defined]


class Account:
    def __init__(self) -> None:
        self.balance = SECRET


def outcome(policy: Policy, source: str) -> Any:
    return Sandbox(policy).session().run(source)


def refused(policy: Policy, source: str) -> None:
    done = outcome(policy, source)
    assert done.namespace.get("leak") in (None, [])
    assert isinstance(done.error, SandboxError)


def vault(*, strict: bool = False) -> Policy:
    policy = Policy.default(strict=strict)
    policy.cls(Vault, exclude=("_*", "size"))
    policy.module(Vault(), name="vault", exclude=("_*", "size"))
    return policy


COUNTED = {
    "in a function": "def f(c): return c.most_common()\nleak = f(C('aab'))",
    "in a lambda": "leak = (lambda c: c.most_common())(C('aab'))",
    "by getattr": "leak = getattr(C('aab'), 'most_common')()",
    "by super": "class D(C):\n  def f(self): return super().most_common()\nleak = D('aab').f()",
    "of a class with another base": "class A: pass\nclass D(A, C): pass\ndef f(c): return c.most_common()\nleak = f(D('aab'))",
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", [pytest.param(each, id=name) for name, each in COUNTED.items()])
def test_what_is_left_out_of_a_class_of_the_standard_library_is_left_out_of_a_guests(
    source: str, strict: bool
) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(collections.Counter, exclude=("most_common",))

    refused(policy, f"from collections import Counter\nclass C(Counter): pass\n{source}")


def test_a_registration_reaches_classes_that_the_guest_has_made_already() -> None:
    policy = Policy.default()
    session = Sandbox(policy).session()
    session.run("from collections import Counter\nclass C(Counter): pass")
    policy.cls(collections.Counter, exclude=("most_common",))

    done = session.run("leak = C('aab').most_common()")

    assert isinstance(done.error, SandboxError)


@pytest.mark.parametrize("source", ["x._key", "x.size()"])
def test_a_class_of_the_host_is_none_of_the_standard_library_whatever_its_module_says(source: str) -> None:
    policy = Policy.default()
    policy.cls(MADE, exclude=("_*", "size"))

    refused(policy, f"class X(Made): pass\ndef f(x): return {source}\nleak = f(X())")


NUMPY = {
    "native functions": "class G(np.random.PCG64): pass\ndef f(g): return g.ctypes\nleak = f(G(1))",
    "memory of a scalar": "class F(np.float64): pass\ndef f(x): return x.data\nleak = f(F(1))",
    "a pickle": "class F(np.float64): pass\ndef f(x): return x.dumps()\nleak = f(F(1))",
    "references made of bytes": "import io\nclass B(io.BytesIO): pass\na = np.array([None], dtype=object)\n"
    "def f(b): return b.readinto(a)\nleak = f(B(b'12345678'))",
}


@pytest.mark.parametrize("source", [pytest.param(each, id=name) for name, each in NUMPY.items()])
def test_what_numpys_policy_denies_is_denied_to_a_guests_subclass(source: str) -> None:
    np = pytest.importorskip("numpy")
    policy = Policy.default()
    policy.module(np)

    refused(policy, f"import numpy as np\n{source}")


BY_OTHER_WAYS = {
    "super": "class C(Register):\n  def f(self): return super().{call}\nleak = C().f()",
    "a metaclass of the guest's": "class M(type): pass\nclass D(Register, metaclass=M): pass\nleak = D.{call}",
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("call", ["register(1)", "clear_cache(1)"])
@pytest.mark.parametrize("source", [pytest.param(each, id=name) for name, each in BY_OTHER_WAYS.items()])
def test_a_name_with_a_rule_of_its_own_is_left_out_by_every_way(source: str, call: str, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Register, exclude=("_*", "register", "format", "clear_cache"))

    refused(policy, source.format(call=call))


def test_a_public_name_with_an_underscore_is_left_out_where_it_is_said_in_full() -> None:
    policy = Policy.default()
    policy.cls(Ticket, exclude=("_replace", "_asdict"))

    refused(policy, "leak = Ticket('a')._replace(role='b')")
    refused(policy, "leak = Ticket('a')._asdict()")
    assert outcome(policy, "x = Ticket('a')._make(['b'])").namespace["x"] == Ticket("b")


@pytest.mark.parametrize("class_", [TwiceDressed, Cached, SaidAsText, Updated])
def test_a_private_name_is_the_hosts_wherever_its_code_says_it(class_: type) -> None:
    policy = Policy.default()
    policy.cls(class_, name="Host")

    refused(policy, "class X(Host): pass\nleak = X()._token")


MIXED = {
    "a dict of its own": "import copy\ngot = []\nclass Spy:\n  def update(self, s): got.append(s)\n"
    "X = type('X', (Vault,), {'__dict__': property(lambda self: Spy())})\ncopy.copy(X()); leak = got",
    "fields of its own": "import dataclasses\ngot = []\nclass F: _field_type = None; init = True; name = '_secret'\n"
    "X = type('X', (Vault,), {'__dataclass_fields__': {'a': F()}, '__init__': lambda self, **k: got.append(k)})\n"
    "dataclasses.replace(X()); leak = got",
    "fields of another class": "import dataclasses\n@dataclasses.dataclass\nclass D: _secret: int = 0\n"
    "Mix = type('Mix', (), {'__dataclass_fields__': D.__dataclass_fields__})\nclass X(Mix, Vault): pass\nleak = X",
    "a member of an enumeration": "import enum\nclass Mix:\n  def _secret(self): pass\n  def size(self): pass\n"
    "class E(Mix, enum.Enum):\n  _secret = 1; size = 2; x = vault\nleak = E.x._secret",
    "a class method put over": "vault.make = lambda: 'mine'\nleak = vault.make()",
    "a partial method put over": "vault.part = lambda: 'mine'\nleak = vault.part()",
    "a class that is not its own": "leak = type('C', (), {'__class__': property(lambda self: 1 / 0)})",
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", [pytest.param(each, id=name) for name, each in MIXED.items()])
def test_a_class_of_the_guest_does_not_see_the_hosts_state_pass_by(source: str, strict: bool) -> None:
    refused(vault(strict=strict), source)


TOLD = "box = leak = []\nclass D:\n  def __set__(self, o, v): box.append(v)\n"
TELLING = {
    "a descriptor": TOLD + "class B(Account): balance = D()\nB()",
    "a descriptor, later": TOLD + "class B(Account): pass\nB.balance = D()\nB()",
    "a descriptor, when its class is changed": TOLD
    + "class E: pass\nclass B(Account): balance = E()\nE.__set__ = D.__set__\nB()",
    "a descriptor of a mixin": TOLD + "class X: balance = D()\nclass B(X, Account): pass\nB()",
    "a descriptor of a mixin, later": TOLD + "class X: pass\nclass B(Account, X): pass\nX.balance = D()\nB()",
    "a property": TOLD + "class B(Account): balance = property(lambda s: 1, lambda s, v: box.append(v))\nB()",
    "a field": "import dataclasses\n@dataclasses.dataclass\nclass X: balance: str = ''\n"
    "class B(X, Account):\n  def __init__(self): Account.__init__(self)\nleak = repr(B())",
    "a slot": "class X: __slots__ = ('balance',)\nclass B(X, Account): pass\nleak = B()",
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", [pytest.param(each, id=name) for name, each in TELLING.items()])
def test_a_class_of_the_guest_is_not_told_what_the_host_left_out(source: str, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Account, exclude=("_*", "balance"))

    refused(policy, source)


def test_a_class_of_the_guest_may_have_what_it_likes_under_other_names() -> None:
    policy = Policy.default(strict=True)
    policy.cls(Account, include=())
    source = """
class B(Account):
    limit = 3
    @property
    def note(self): return "noted"
    def balance(self): return 0
found = B().limit, B().note
"""

    assert outcome(policy, source).namespace["found"] == (3, "noted")


def test_a_named_tuple_of_the_guest_is_replaced_beside_a_sealed_one() -> None:
    policy = Policy.default()
    policy.cls(Ticket, constructable=False)
    source = "import collections\nN = collections.namedtuple('N', 'role')\nx = N('a')._replace(role='b'), N._replace(N('a'), role='c')"

    assert outcome(policy, source).namespace["x"] == (("b",), ("c",))


STRICT = {
    "super": "class C(Answering):\n  def late(self): return super().late()\nleak = C().late()",
    "a property that fails": "class C(Answering):\n  @property\n  def anything(self): raise AttributeError\nleak = C().anything",
    "a metaclass": "class M(type): pass\nclass C(Answering, metaclass=M): pass\nleak = C.late(answering)",
}


@pytest.mark.parametrize("source", [pytest.param(each, id=name) for name, each in STRICT.items()])
def test_an_include_list_holds_under_a_strict_policy(source: str) -> None:
    policy = Policy.default(strict=True)
    policy.cls(Answering, include=("describe", "label"))
    policy.module(Answering(), name="answering", include=("describe", "label"))

    refused(policy, source)


def test_a_guests_own_methods_are_its_own_under_a_strict_policy() -> None:
    policy = Policy.default(strict=True)
    policy.cls(Answering, include=("describe", "label"))
    source = """
class B(Answering):
    def mine(self): return "mine"
class C(B):
    def mine(self): return super().mine() + "!"
    def describe(self): return super().describe()
found = C().mine(), C().describe(), C().label
"""

    assert outcome(policy, source).namespace["found"] == ("mine!", "described", "l")


SEALED = [
    "opened.__annotations__['return']('admin')",
    "typing.get_type_hints(opened)['return']('admin')",
    "dataclasses.fields(Listing)[0].type('admin')",
    "Listing.__annotations__['item']('admin')",
    "Opened.__bases__[0]('admin')",
    "Opened.mro()[1]('admin')",
    "generic.__orig_class__('admin')",
    "ticket._replace(role='admin')",
    "ticket._make(['admin'])",
    "collections.namedtuple('N', 'role')._replace(ticket, role='admin')",
    "vars(collections.namedtuple('N', 'role'))['_replace'](ticket, role='admin')",
    "vars(collections.namedtuple('N', 'role')).get('__replace__', N._replace)(ticket, role='admin')",
    "super(N, N)._replace(ticket, role='admin')",
    "isinstance(ticket, Asked) or box[0]('admin')",
    "Ticket._make(['admin'])",
]


if sys.version_info >= (3, 13):
    opened.__type_params__ = (typing.TypeVar("T", default=Sealed),)
    SEALED.append("opened.__type_params__[0].__default__('admin')")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", SEALED)
def test_a_sealed_class_is_not_handed_out_in_annotations_bases_and_methods(source: str, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    for class_ in (Sealed, Generic, Ticket):
        policy.cls(class_, constructable=False)
    policy.cls(Opened)
    policy.cls(Listing)
    policy.fn(opened)
    policy.module(Generic[int]("guest"), name="generic")
    policy.module(Ticket(), name="ticket")

    refused(
        policy,
        "import abc, collections, typing, dataclasses\nbox = []\nclass N(collections.namedtuple('N', 'role')): pass\n"
        "class Asked(abc.ABC):\n  @classmethod\n  def __subclasshook__(cls, c): box.append(c); return False\n"
        f"leak = {source}",
    )


@pytest.mark.parametrize(
    "source",
    ["Token.token.__get__(holder)", "property.__get__(Token.token, holder)", "type(Token.token).__get__(Token.token, holder)"],
)  # fmt: skip
def test_a_property_of_the_host_reads_objects_of_its_class_only(source: str) -> None:
    policy = Policy.default()
    policy.cls(Token)
    policy.module(Holder(), name="holder")

    refused(policy, f"leak = {source}")
    assert outcome(policy, "x = Token.token.__get__(Token())").namespace["x"] == "of another"


FORMATS = ["{x._secret}", "{x.__init__.__globals__[SECRET]}"]


@pytest.mark.parametrize("text", FORMATS)
def test_a_formatter_of_matplotlib_reads_what_guest_code_may(text: str) -> None:
    policy = vault()
    policy.module(pytest.importorskip("matplotlib"))

    refused(policy, f"import matplotlib.ticker as t\nleak = t.StrMethodFormatter('{text}')(vault)")
    refused(
        policy,
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\n"
        f"ax.xaxis.set_major_formatter('{text}')\nleak = ax.xaxis.get_major_formatter()(vault)",
    )
    shown = outcome(policy, "import matplotlib.ticker as t\nx = t.StrMethodFormatter('{x:.1f} s')(2)")
    assert shown.namespace["x"] == "2.0 s"


POSING = {
    "a name": "class ufunc:\n  __module__ = 'numpy'\n",
    "a class": "class ufunc:\n  def __getattribute__(self, n):\n"
    "    return type(len) if n == '__class__' else object.__getattribute__(self, n)\n",
}


@pytest.mark.parametrize("head", [pytest.param(each, id=name) for name, each in POSING.items()])
def test_an_object_that_poses_as_a_function_names_no_method_of_pandas(head: str) -> None:
    policy = vault()
    policy.module(pytest.importorskip("pandas"))
    source = f"""
import io, pandas as pd
{head}
  def __iter__(self): yield "to_pickle"
  def __call__(self, *args): return 1
class Kept(io.BytesIO):
  def close(self): pass
kept = Kept()
try: pd.Series([vault], dtype=object).agg(ufunc(), 0, kept)
except Exception as error: print(error)
leak = kept.getvalue()
"""

    assert SECRET.encode() not in (outcome(policy, source).namespace.get("leak") or b"")


def test_a_class_of_the_guest_lifts_no_denial_by_its_name() -> None:
    policy = Policy.default()
    policy.module(pytest.importorskip("pandas"), include=("*", "DataFrame.to_pickle"))

    refused(
        policy,
        "import pandas as pd\nclass X(pd.Series): __module__ = 'pandas'; __qualname__ = 'DataFrame'\n"
        "leak = X([1]).to_pickle",
    )


# -- the namespace of a class of Python's ----------------------------------------------------------


class Told:
    """A class of the host's that says that it is Python's."""

    __module__ = "builtins"
    hidden = 4


@pytest.mark.parametrize(
    "source",
    [
        "vars(Told)",
        "Told.__dict__",
        "vars(dict)['fromkeys'].__func__(dict)",
        "vars(str)['maketrans']('a')",
        "vars(int)['real'].__get__(3)",
        "vars(list)['append'] = 5",
        "vars(object)['__reduce_ex__']",
        "vars(type)['__subclasses__'](object)",
        "vars(type(print))['__self__'].__get__(print)",
        "vars(property)['fget'].__get__(property(1))",
    ],
)
def test_the_namespace_of_a_class_of_pythons_gives_what_its_attributes_give(source: str) -> None:
    policy = Policy.default()
    policy.cls(Told)
    assert Sandbox(policy).exec(source).error is not None


class Closed:
    def out(self) -> str:
        return SECRET


@pytest.mark.parametrize(
    "source",
    [
        "type(Closed)('X', (), {'_real': answering}).describe()",
        "class X(metaclass=type(Closed)): _real = answering\nX.describe()",
        "class M(type(Closed)): pass\nclass X(metaclass=M): _real = answering\nX.describe()",
        "class X(Closed): pass\nX.out(closed)",
        "type('X', (Closed,), {}).out(closed)",
        "import abc\nclass M(abc.ABCMeta, type(Closed)): pass\nclass X(Closed, metaclass=M): pass\nX.out(closed)",
    ],
)
def test_the_stand_in_of_a_class_makes_no_other_that_hands_out_what_a_registration_leaves_out(
    source: str,
) -> None:
    policy = Policy.default()
    policy.cls(Answering, exclude=("_*", "describe"))
    policy.cls(Closed, constructable=False, exclude=("_*", "out"))

    done = Sandbox(policy).exec(source, {"answering": Answering(), "closed": Closed()})

    assert done.error is not None
    assert done.value is None


def test_the_class_of_a_class_that_stands_in_for_another_is_type() -> None:
    policy = Policy.default()
    policy.cls(Closed, constructable=False)
    classes = "types.GenericAlias, zoneinfo.ZoneInfo, dataclasses.Field, map, Closed"

    done = Sandbox(policy).exec(
        f"import dataclasses, types, zoneinfo\n[type(each) is type for each in ({classes})]"
    )

    assert done.value == [True] * 5


class Telling:
    @property
    def told(self) -> Any:
        return self._secret  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "source",
    [
        "classmethod(Telling.told).__get__(None, vault)",
        "classmethod(classmethod(Telling.told)).__get__(None, vault)",
        "classmethod.__get__(classmethod(Telling.told), None, vault)",
        "class C(classmethod):\n  def read(self, x): return super().__get__(None, x)\nC(Telling.told).read(vault)",
    ],
)
def test_a_class_method_reads_no_property_of_another_class(source: str) -> None:
    policy = Policy.default()
    policy.cls(Vault)
    policy.cls(Telling)

    done = Sandbox(policy).exec(source, {"vault": Vault()})

    assert isinstance(done.error, SandboxError)


def test_a_class_method_of_a_guests_own_function_is_read_as_ever() -> None:
    source = (
        "class A:\n  @classmethod\n  def f(cls): return cls.__name__\n"
        "vars(A)['f'].__get__(None, A)(), classmethod(lambda cls: cls.__name__).__get__(None, Vault)()"
    )
    policy = Policy.default()
    policy.cls(Vault)

    assert Sandbox(policy).exec(source).value == ("A", "Vault")


class Kept:
    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else getattr(instance, self._name)


class Priced:
    price = Kept()

    def __init__(self) -> None:
        self._price, self._secret = 5, SECRET


@pytest.mark.parametrize(
    "source",
    [
        "class A: secret = Priced.price",
        "class A(dict): secret = Priced.price",
        "type('A', (), {'secret': Priced.price})",
        "import dataclasses\n@dataclasses.dataclass\nclass A: secret: object = dataclasses.field(default=Priced.price)",
        "import enum\nclass A(enum.Enum): secret = Priced.price",
        "import enum\nclass A(enum.Enum): secret = getattr(enum, 'nonmember', tuple)(Priced.price)",
        "import typing\nclass A(typing.NamedTuple):\n  x: int\n  secret = Priced.price",
        "class M(type):\n  def __new__(m, n, b, ns): return type.__new__(m, n, b, ns | {'secret': Priced.price})\nclass A(metaclass=M): pass",
    ],
)
def test_a_descriptor_of_a_class_of_the_host_is_told_no_other_name(source: str) -> None:
    policy = Policy.default()
    policy.cls(Priced)
    policy.cls(Kept)

    done = Sandbox(policy).exec(source + "\nleak = priced.price", {"priced": Priced()})

    assert isinstance(done.error, SandboxError) or done.namespace["leak"] == 5
    assert Priced().price == 5


def test_a_descriptor_of_the_guests_own_is_told_its_name() -> None:
    policy = Policy.default()
    policy.cls(Kept)
    source = "class D(Kept): pass\nclass A:\n  x, y = Kept(), D()\n  _x, _y = 1, 2\nfound = A().x, A().y"

    assert Sandbox(policy).exec(source).namespace["found"] == (1, 2)


COLLECTED = """
def late(ns):
    try: yield
    finally: ns[name] = member
class Node: pass
def leave(ns):
    node = Node()
    node.me, node.late = node, late(ns)
    next(node.late)
got = []
"""


@pytest.mark.parametrize(
    "source",
    [
        (
            "name, member = '_token', property(lambda s: 1, lambda s, v: got.append(v))\n"
            "ns = {'__module__': __name__}\nleave(ns)\ntype('A', (TwiceDressed,), ns)()"
        ),
        (
            "name, member = '_token', property(lambda s: 1, lambda s, v: got.append(v))\n"
            "class M(type):\n  def __new__(m, n, b, ns): leave(ns); return type.__new__(m, n, b, ns)\n"
            "class A(TwiceDressed, metaclass=M): pass\nA()"
        ),
        (
            "name, member = '_token', property(lambda s: 1, lambda s, v: got.append(v))\n"
            "class A(TwiceDressed): leave(locals())\nA()"
        ),
        (
            "name, member = '__deepcopy__', lambda self, memo: got.append(type(memo) is dict)\n"
            "import copy\nclass A: leave(locals())\ncopy.deepcopy([A()])"
        ),
    ],
)
def test_a_collection_changes_no_class_that_was_checked(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = answers.guard

    def collecting(*given: Any) -> dict[str, Any]:
        found = guard(*given)
        gc.collect()
        return found

    policy = Policy.default()
    policy.cls(TwiceDressed)
    session = Sandbox(policy).session()
    session.run(COLLECTED)
    monkeypatch.setattr(answers, "guard", collecting)
    gc.disable()  # no other one comes before
    try:
        done = session.run(source)
    finally:
        gc.enable()
        monkeypatch.undo()

    assert done.error is None
    assert done.namespace["got"] == []


@pytest.mark.parametrize("late", ["A.__annotations__ = evil", "A.__annotations__.update(evil)"])
def test_a_collection_changes_no_class_while_dataclass_writes_code(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = dataclasses.dataclass

    def collecting(*given: Any, **options: Any) -> Any:
        left = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
        del left
        return real(*given, **options)

    monkeypatch.setattr(dataclasses, "dataclass", collecting)
    source = f"""
import dataclasses
evil = {{"x,seen.append(__builtins__)": int}}
def late():
    try: yield
    finally:
        {late}
class Node: pass
class A: x: int = 1
node = Node()
node.me, node.late = node, late()
next(node.late)
del node
dataclasses.dataclass(init=False, repr=False)(A)
found = list(A.__dataclass_fields__)
"""
    done = Sandbox(Policy.default()).exec(source)

    assert (done.error, done.namespace["found"]) == (None, ["x"])
