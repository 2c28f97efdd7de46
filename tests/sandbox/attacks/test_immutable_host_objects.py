"""Objects of the host whose class says how they are changed: there is no way round what it says.

Stopped by: sandbox.guards.guards, sandbox.classes.host_classes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import pytest

from agex.errors import SandboxSyntaxError
from agex.sandbox import Policy, Sandbox


@dataclass(frozen=True)
class Frozen:
    x: int = 0


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    x: int = 0


class Closed:
    hidden = "secret"

    def __init__(self) -> None:
        object.__setattr__(self, "x", 0)

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("closed")

    def __delattr__(self, name: str) -> None:
        raise TypeError("closed")

    def __getattribute__(self, name: str) -> Any:
        if name == "hidden":
            raise AttributeError(name)
        return object.__getattribute__(self, name)


class ClosedOtherwise(Closed):
    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("closed otherwise")


class Checked:
    """Says what may be stored, and stores it."""

    def __init__(self) -> None:
        self.x = 0

    def __setattr__(self, name: str, value: object) -> None:
        if type(value) is not int:
            raise TypeError(f"{name} is a number")
        object.__setattr__(self, name, value)


class Noting(type):
    """A metaclass that notes something about each class that it makes."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls.made = [*getattr(cls, "made", ()), name]


class Marking(Noting):
    pass


class Marked(metaclass=Marking):
    made: list[str]


HOST = (Frozen, FrozenSlots, Closed, ClosedOtherwise, Checked)

ATTACKS = {
    "assign": "frozen.x = 1",
    "object's": "object.__setattr__(frozen, 'x', 1)",
    "object's, with slots": "object.__setattr__(slots, 'x', 1)",
    "object's, in a name": "f = getattr(object, '__setattr__')\nf(frozen, 'x', 1)",
    "object's, bound": "import functools\nfunctools.partial(object.__setattr__, frozen)('x', 1)",
    "object's, mapped": "list(map(object.__setattr__, [frozen], ['x'], [1]))",
    "object's, by a pattern": "match object:\n  case type(__setattr__=f): f(frozen, 'x', 1)",
    "an error's": "Exception.__setattr__(frozen, 'x', 1)",
    "past a program": "object.__setattr__(closed, 'x', 1)",
    "past a check": "object.__setattr__(checked, 'x', 'text')",
    "a base's": "Closed.__setattr__(otherwise, 'x', 1)",
    "object's, to delete": "object.__delattr__(closed, 'x')",
    "object's, to read": "leak = object.__getattribute__(closed, 'hidden')",
    "super's": "super(Frozen, frozen).__setattr__('x', 1)",
    "super's, of its type": "super(type(frozen), frozen).__setattr__('x', 1)",
    "super's, to read": "leak = super(Closed, closed).__getattribute__('hidden')",
    "super's, in a method": "class D(Frozen):\n  def m(self, o): super(Frozen, o).__setattr__('x', 1)\nD().m(frozen)",
    "super's, by a caller": "import operator\noperator.methodcaller('__setattr__', 'x', 1)(super(Frozen, frozen))",
    "a slot": "FrozenSlots.x.__set__(slots, 1)",
    "namespace": "vars(frozen)['x'] = 1",
    "namespace, updated": "frozen.__dict__.update(x=1)",
    "state": "frozen.__setstate__({'x': 1})",
    "state of slots": "slots.__setstate__([1])",
    "its class": "frozen.__class__ = Closed",
    "__init__": "frozen.__init__(1)",
    "__init__ of slots": "slots.__init__(1)",
    "__init__ of the class": "Frozen.__init__(frozen, 1)",
    "__init__, by the name of its argument": "Frozen.__init__(self=frozen, x=1)",
    "__init__, bound": "import functools\nfunctools.partial(Frozen.__init__, frozen)(1)",
    "__init__, mapped": "list(map(Frozen.__init__, [frozen], [1]))",
    "__init__, by a caller": "import operator\noperator.methodcaller('__init__', 1)(frozen)",
    "__init__ of super": "super(Frozen, frozen).__init__(1)",
    "__init__ of super under its name": "S = super\ndef f():\n  super = lambda: S(Frozen, frozen)\n  super().__init__(1)\nf()",
    "__init__ under super's name": "def f():\n  super = lambda: frozen\n  super().__init__(1)\nf()",
    "__init__ that a class inherits": "class D(Frozen): pass\nD.__init__(frozen, 1)",
    "__init__ that a metaclass hands on": "class M(type): pass\nclass D(Frozen, metaclass=M): pass\nD.__init__(frozen, 1)",
    "__init__ of a metaclass": "type(frozen).__class__.__init__(Frozen, 'F', (), {})",
    "__init__ of a metaclass, by super": "super(Marking, Marked).__init__('Marked', (), {})",
    "__init__ of a metaclass, unbound": "Marking.__init__(Marked, 'Marked', (), {})",
    "a class that says it is the guest's": "class D: pass\nclass C(Frozen):\n  __class__ = D\nC.__init__(frozen, 1)",
}


def run(source: str, *, strict: bool) -> tuple[Any, dict[str, Any]]:
    policy = Policy.default(strict=strict)
    for class_ in HOST:
        policy.cls(class_)
    names = {
        "frozen": Frozen(), "slots": FrozenSlots(), "closed": Closed(), "otherwise": ClosedOtherwise(),
        "checked": Checked(),
    }  # fmt: skip
    given = {class_.__name__: class_ for class_ in (*HOST, Marking, Marked)}
    return Sandbox(policy).exec(source, {**names, **given}), names


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("source", ATTACKS.values(), ids=ATTACKS)
def test_it_is_changed_and_read_by_its_own_rules_only(source: str, strict: bool) -> None:
    result, names = run(source, strict=strict)
    assert isinstance(result.error, (AttributeError, TypeError, SandboxSyntaxError))
    assert "leak" not in result.namespace
    assert [held.x for held in names.values()] == [0] * len(names)
    assert Marked.made == ["Marked"]


ALLOWED = {
    "its own rule, called": "checked.__setattr__('x', 0)",
    "its own rule, of its class": "type(checked).__setattr__(checked, 'x', 0)",
    "a list filled again": "x = [1]\nlist.__init__(x, [2])\nassert x == [2]",
    "an error told again": "e = ValueError(1)\nException.__init__(e, 2)\nassert e.args == (2,)",
    "a base of the host begun": "class D(Closed):\n  def __init__(self): Closed.__init__(self)\nassert D().x == 0",
    "super of the host begun": "class D(Frozen):\n  def __init__(self): super().__init__(3)\nassert D().x == 3",
    "super by name": "class D(Frozen):\n  def __init__(self): super(D, self).__init__(3)\nassert D().x == 3",
    "a frozen one of its own": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass D:\n  x: int\n"
    "  def __post_init__(self): object.__setattr__(self, 'x', 5)\nassert D(1).x == 5",
    "one that inherits from a frozen one": "class D(Frozen):\n  def set(self): object.__setattr__(self, 'x', 5)\n"
    "d = D()\nd.set()\nassert d.x == 5",
    "begun later": "class D:\n  def __init__(self, x): self.x = x\nd = D.__new__(D)\nD.__init__(d, 5)\nassert d.x == 5",
    "a metaclass begun": "class M(type):\n  def __init__(c, *a, **k): type.__init__(c, *a, **k)\nclass D(metaclass=M): pass",
}


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_what_is_meant_for_it_works(source: str, strict: bool) -> None:
    result, names = run(source, strict=strict)
    assert result.error is None
    assert [held.x for held in names.values()] == [0] * len(names)


BUILTINS = [
    "print.x = 1", "print.__name__ = 'x'", "del print.__name__", "del print.x", "setattr(getattr, 'x', 1)", "print.func",
    "print.keywords", "print.args", "print.keywords['end'] = 'x'",
]  # fmt: skip


@pytest.mark.parametrize("source", BUILTINS)
def test_a_builtin_of_the_sandbox_is_no_more_open_than_cpythons(source: str) -> None:
    with pytest.raises(AttributeError):
        exec(source, {})
    sandbox = Sandbox()
    session = sandbox.session()
    assert isinstance(session.run(source).error, AttributeError)
    assert session.run("print(1)").stdout == "1\n"


class Base:
    """A class of the host that guests build on; what it keeps in ``_count`` is its own."""

    def __init__(self) -> None:
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    @count.setter
    def count(self, value: int) -> None:
        self._count = value

    def hello(self) -> str:
        return "hello"


TWICE = {
    "a method of the host's": "d.hello = 1",
    "a private name of the host's": "d._count = 1",
    "a private name of the host's, read": "leak = d._count",
    "a private name of the host's, deleted": "del d._count",
    "its own name over a method, deleted": "D.over = D.hello\nD.hello = 5\nd.hello = 1\ndel d.hello\ndel D.hello\nd.hello = 2",
    "its own name over a method, deleted by delattr": "D.hello = 5\nd.hello = 1\ndelattr(D, 'hello')\nd.hello = 2",
    "its own name over a method, deleted by type": "D.hello = 5\nd.hello = 1\ntype.__delattr__(D, 'hello')\nd.hello = 2",
    "in a class over it": "class E(D): hello = 5\ne = E()\ne.hello = 1\ndel E.hello\ne.hello = 2",
    "of a class over it": "class E(D): pass\nD.hello = 5\ne = E()\ne.hello = 1\ndel D.hello\ne.hello = 2",
}


@pytest.mark.parametrize("source", TWICE.values(), ids=TWICE)
def test_what_was_found_out_about_a_class_over_one_of_the_hosts_holds_for_what_was_asked(source: str) -> None:
    policy = Policy.default()
    policy.cls(Base)
    session = Sandbox(policy).session({"Base": Base})
    begin = "class D(Base):\n  def own(self): self.n = self._n = 1; self.n += self._n; return self.n\nd = D()"
    assert session.run(begin).error is None
    for _ in range(2):
        assert session.run("d.own()").value == 2
        result = session.run(source)
        assert isinstance(result.error, AttributeError)
        assert "leak" not in result.namespace
        assert session.run("Base().hello() + type(d)().hello()").value == "hellohello"


@pytest.mark.parametrize(
    "source",
    [
        "Base.count.fset(other, 5)",
        "leak = Base.count.fget(other)",
        "leak = getattr(Base.count, 'fget')(other)",
        "import operator\nleak = operator.attrgetter('count.fget')(Base)(other)",
        "match Base.count:\n  case property(fget=f): leak = f(other)",
        "import csv\ncsv.DictReader.fieldnames.fset(other, 5)",
    ],
)
def test_a_property_of_the_hosts_is_for_objects_of_its_class(source: str) -> None:
    class Other:
        _count = 0

    other = Other()
    result = Sandbox().exec(source, {"Base": Base, "other": other})
    assert isinstance(result.error, AttributeError)
    assert "leak" not in result.namespace
    assert not vars(other)


def test_a_cached_property_of_the_hosts_is_for_objects_of_its_class() -> None:
    class Cached:
        @functools.cached_property
        def hello(self) -> str:
            return "planted"

    base = Base()
    for source in ("leak = Cached.hello.__get__(base)", "leak = Cached.hello.func(base)"):
        result = Sandbox().exec(source, {"Cached": Cached, "base": base})
        assert isinstance(result.error, AttributeError | TypeError)  # a strict policy's, as in a browser
        assert "leak" not in result.namespace
    assert base.hello() == "hello"
    done = Sandbox().exec("x = Cached.hello.__get__(own)", {"Cached": Cached, "own": Cached()})
    assert done.namespace["x"] == "planted"


def test_what_is_registered_later_holds_for_what_was_asked_before() -> None:
    class Other:
        address = 1

    policy = Policy.default()
    policy.cls(Base)
    policy.cls(Other)
    session = Sandbox(policy).session({"other": Other(), "base": Base()})
    for name in ("address", "hello"):  # the first is looked at anyway, for a library's sake
        assert session.run(f"other.{name} = 1\nother.{name} += 1\nother.{name}").value == 2
    policy.cls(Other, exclude=["address", "hello"])

    for name in ("address", "hello"):
        for source in (
            f"other.{name} = 1",
            f"other.{name}",
            f"getattr(other, '{name}')",
            f"del other.{name}",
        ):
            assert isinstance(session.run(source).error, AttributeError), source
    assert session.run("base.hello()").value == "hello"


def test_what_may_be_set_on_one_function_module_or_alias_says_nothing_of_another() -> None:
    import math

    def host_function() -> None: ...

    session = Sandbox().session({"host_function": host_function, "host_module": math})
    own = (
        "def f(): pass\nf.note = f._note = 1\nf._note\n"
        "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass G(Generic[T]): pass\nG[int].note = 1"
    )
    assert session.run(own).error is None
    for source in (
        "host_function.note = 1", "host_function._note = 1", "host_function._note", "host_module.note = 1",
        "import collections\ncollections.deque[int].note = 1", "list[int].note = 1",
    ):  # fmt: skip
        assert isinstance(session.run(source).error, AttributeError | TypeError), source
    assert not vars(host_function)
    assert not hasattr(math, "note")
