"""Classes that register themselves when they are made: registry, classes and instances stay one."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from agex.values import NotKept

REGISTER = """
    REG = {}
    def register(cls):
        REG[cls.__name__] = cls
        return cls
"""

PROGRAMS: dict[str, tuple[str, str, Any]] = {
    "a decorator": (
        REGISTER
        + """
    @register
    class A:
        v = 1
    @register
    class B(A):
        def m(self): return 2
    a, b = A(), B()
    """,
        "[*REG], REG['A'] is A, type(a) is A, isinstance(b, A), type(b) is REG['B'], b.m()",
        (["A", "B"], True, True, True, True, 2),
    ),
    "a decorator that is called": (
        """
    REG = {}
    def register(name):
        def decorate(cls):
            REG[name] = cls
            return cls
        return decorate
    @register("x")
    class A: pass
    @register("y")
    class B: pass
    found = [A(), B()]
    """,
        "[*REG], [type(each) is REG[name] for each, name in zip(found, 'xy')], REG['x'] is A",
        (["x", "y"], [True, True], True),
    ),
    "a decorator that is an object": (
        """
    class Registry:
        def __init__(self): self.items = {}
        def __call__(self, name):
            def decorate(made):
                self.items[name] = made
                return made
            return decorate
        def make(self, name): return self.items[name]()
    registry = Registry()
    @registry("a")
    class A:
        def m(self): return 7
    @registry("f")
    def f(): return 3
    a = A()
    """,
        "registry.make('a').m(), registry.items['a'] is A, registry.make('f'), type(a) is A",
        (7, True, 3, True),
    ),
    "a decorator that is a method": (
        """
    class Registry:
        def __init__(self): self.items = []
        def add(self, cls):
            self.items.append(cls)
            return cls
    registry = Registry()
    add = registry.add
    @add
    class A: pass
    @add
    class B: pass
    """,
        "registry.items == [A, B], add(1), registry.items[2]",
        (True, 1, 1),
    ),
    "a decorator that is a class": (
        """
    class register:
        known = []
        def __init__(self, name): self.name = name
        def __call__(self, cls):
            register.known.append((self.name, cls))
            return cls
    @register("a")
    class A: pass
    @register("b")
    class B: pass
    """,
        "register.known == [('a', A), ('b', B)]",
        True,
    ),
    "a decorator over variables of a call": (
        """
    def make():
        known, count = {}, 0
        def register(cls):
            nonlocal count
            count += 1
            cls.number = count
            known[cls.__name__] = cls
            return cls
        return known, register, lambda: count
    known, register, counted = make()
    @register
    class A: pass
    @register
    class B: pass
    """,
        "known == {'A': A, 'B': B}, counted(), A.number, B.number",
        (True, 2, 1, 2),
    ),
    "a decorator with a registry of its own": (
        """
    def register(cls, known=[]):
        if cls is None: return known
        known.append(cls)
        register.last = cls
        return cls
    @register
    class A: pass
    @register
    class B: pass
    """,
        "register(None) == [A, B], register.last is B",
        (True, True),
    ),
    "a partial as a decorator": (
        """
    import functools
    REG = []
    def add(known, cls):
        known.append(cls)
        return cls
    register = functools.partial(add, REG)
    @register
    class A: pass
    """,
        "REG == [A], register.args[0] is REG",
        (True, True),
    ),
    "a decorator that knows those before": (
        """
    REG = {}
    def child_of(parent):
        def decorate(cls):
            if parent is not None:
                cls.parent = REG[parent]
                REG[parent].children.append(cls)
            if cls.__name__ in REG:
                raise ValueError(cls.__name__)
            cls.children = []
            REG[cls.__name__] = cls
            return cls
        return decorate
    @child_of(None)
    class Top: pass
    @child_of("Top")
    class Low: pass
    """,
        "Low.parent is Top, Top.children == [Low], Low.children, REG == {'Top': Top, 'Low': Low}",
        (True, True, [], True),
    ),
    "a decorator of a dataclass": (
        """
    from dataclasses import dataclass
    """
        + textwrap.dedent(REGISTER).replace("\n", "\n    ")
        + """
    @register
    @dataclass
    class P:
        x: int
    @register
    @dataclass(slots=True)
    class Q:
        x: int
    p, q = P(3), Q(4)
    """,
        "REG['P'](3) == p, P is REG['P'], REG['Q'](4) == q, type(q) is REG['Q']",
        (True, True, True, True),
    ),
    "a list": (
        """
    REG = []
    def register(cls):
        REG.append(cls)
        return cls
    @register
    class A: pass
    @register
    class B: pass
    """,
        "REG == [A, B]",
        True,
    ),
    "a set": (
        """
    REG = set()
    def register(cls):
        REG.add(cls)
        return cls
    @register
    class A: pass
    a = A()
    """,
        "REG == {A}, type(a) in REG",
        (True, True),
    ),
    "classes as keys": (
        """
    NAMES = {}
    def register(cls):
        NAMES[cls] = cls.__name__
        return cls
    @register
    class A: pass
    @register
    class B: pass
    """,
        "NAMES == {A: 'A', B: 'B'}",
        True,
    ),
    "lists in a defaultdict": (
        """
    import collections
    KINDS = collections.defaultdict(list)
    def register(kind):
        def decorate(cls):
            KINDS[kind].append(cls)
            return cls
        return decorate
    @register("a")
    class A: pass
    @register("a")
    class B: pass
    """,
        "KINDS == {'a': [A, B]}, KINDS['z']",
        (True, []),
    ),
    "__init_subclass__": (
        """
    class Base:
        known = {}
        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            Base.known[cls.__name__] = cls
    class A(Base): pass
    class B(A): pass
    a = A()
    """,
        "Base.known == {'A': A, 'B': B}, type(a) is A, isinstance(B(), Base)",
        (True, True, True),
    ),
    "__init_subclass__ with a keyword": (
        """
    REG = {}
    class Base:
        def __init_subclass__(cls, key=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.key = key
            REG[key] = cls
    class A(Base, key="a"): pass
    class B(Base, key="b"): pass
    """,
        "REG == {'a': A, 'b': B}, A.key",
        (True, "a"),
    ),
    "__init_subclass__ that counts": (
        """
    class Base:
        count = 0
        def __init_subclass__(cls):
            Base.count += 1
            cls.number = Base.count
    class A(Base): pass
    class B(Base): pass
    """,
        "Base.count, A.number, B.number",
        (2, 1, 2),
    ),
    "a registry that the base was given later": (
        """
    class Base:
        def __init_subclass__(cls):
            cls.known.append(cls)
    Base.known = []
    class A(Base): pass
    class B(Base): pass
    """,
        "Base.known == [A, B]",
        True,
    ),
    "a registry object in the base": (
        """
    class Registry:
        def __init__(self): self.items = []
    class Base:
        registry = Registry()
        def __init_subclass__(cls):
            cls.registry.items.append(cls)
    class A(Base): pass
    """,
        "Base.registry.items == [A]",
        True,
    ),
    "a metaclass": (
        """
    REG = {}
    class Meta(type):
        def __new__(meta, name, bases, namespace):
            cls = super().__new__(meta, name, bases, namespace)
            REG[name] = cls
            return cls
    class A(metaclass=Meta): pass
    class B(A): pass
    a = A()
    """,
        "REG == {'A': A, 'B': B}, type(a) is A, type(A) is Meta",
        (True, True, True),
    ),
    "a metaclass with a registry": (
        """
    class Meta(type):
        known = []
        def __init__(cls, name, bases, namespace):
            super().__init__(name, bases, namespace)
            Meta.known.append(cls)
    class A(metaclass=Meta): pass
    class B(A): pass
    """,
        "Meta.known == [A, B]",
        True,
    ),
    "a counter among the globals": (
        """
    COUNT = 0
    def register(cls):
        global COUNT
        COUNT += 1
        cls.number = COUNT
        return cls
    @register
    class A: pass
    @register
    class B: pass
    def counted(): return COUNT
    """,
        "COUNT, counted(), A.number, B.number",
        (2, 2, 1, 2),
    ),
    "classes and functions that know each other": (
        """
    REG = {}
    def register(cls):
        REG[cls.kind] = cls
        return cls
    class Shape:
        @classmethod
        def of(cls, kind): return REG[kind]()
    @register
    class Square(Shape):
        kind = "square"
        def area(self): return len(REG)
    s = Shape.of("square")
    """,
        "Shape.of('square').area(), type(s) is Square, REG == {'square': Square}",
        (1, True, True),
    ),
    "a class in a class": (
        REGISTER
        + """
    @register
    class Outer:
        @register
        class Inner: pass
    @register
    class Last: pass
    i = Outer.Inner()
    """,
        "REG == {'Inner': Outer.Inner, 'Outer': Outer, 'Last': Last}, type(i) is REG['Inner']",
        (True, True),
    ),
    "instances that register themselves": (
        """
    class Node:
        nodes = []
        def __init__(self, v):
            self.v = v
            Node.nodes.append(self)
    n, m = Node(1), Node(2)
    """,
        "Node.nodes == [n, m], [each.v for each in Node.nodes]",
        (True, [1, 2]),
    ),
    "an instance for each class": (
        """
    PLUGINS = []
    def plugin(cls):
        PLUGINS.append(cls())
        return cls
    @plugin
    class A:
        def m(self): return 1
    @plugin
    class B:
        def m(self): return 2
    """,
        "[each.m() for each in PLUGINS], type(PLUGINS[0]) is A, len(PLUGINS)",
        ([1, 2], True, 2),
    ),
    "virtual subclasses": (
        """
    import abc
    class Base(abc.ABC):
        known = []
        def __init_subclass__(cls): Base.known.append(cls)
        @abc.abstractmethod
        def m(self): ...
    class A(Base):
        def m(self): return 1
    """,
        "Base.known == [A], A().m()",
        (True, 1),
    ),
    "a class that was made twice": (
        REGISTER
        + """
    @register
    class A:
        n = 1
    old = A()
    @register
    class A:
        n = 2
    """,
        "REG['A'] is A, A.n, old.n, type(old) is A",
        (True, 2, 1, False),
    ),
    "classes made by a call": (
        """
    def make():
        known = []
        def register(cls):
            known.append(cls)
            return cls
        @register
        class A: pass
        @register
        class B: pass
        return known, A
    known, A = make()
    """,
        "len(known), known[0] is A",
        (2, True),
    ),
    "a dispatcher with a class of the guest's": (
        """
    from functools import singledispatch
    @singledispatch
    def show(x): return "object"
    @show.register
    def _(x: int): return "int"
    @show.register(list)
    @show.register(tuple)
    def _(x): return "sequence"
    class C: pass
    @show.register
    def _(x: C): return "C"
    show.register(float, lambda x: "float")
    c = C()
    """,
        "[show(x) for x in (1, True, [], (), c, 2.0, None)], show.dispatch(C)(1), len(show.registry)",
        (["int", "int", "sequence", "sequence", "C", "float", "object"], "C", 6),
    ),
    "a dispatcher of a call that calls itself": (
        """
    from functools import singledispatch
    def make():
        @singledispatch
        def flat(x): return [x]
        @flat.register
        def _(x: list): return [each for part in x for each in flat(part)]
        return flat
    flat = make()
    """,
        "flat([1, [2, [3]]])",
        [1, 2, 3],
    ),
    "a method that dispatches": (
        """
    from functools import singledispatchmethod
    class V:
        @singledispatchmethod
        def show(self, x): return "object"
        @show.register
        def _(self, x: int): return "int"
        @show.register(str)
        def _s(self, x): return "str"
    v = V()
    """,
        "[v.show(x) for x in (1, '', None)]",
        ["int", "str", "object"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_registered_itself_is_one_in_another_process(name: str, moved) -> None:
    program, expression, expected = PROGRAMS[name]
    assert moved(textwrap.dedent(program)).run(f"got = {expression}")["got"] == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_registered_itself_is_one_when_it_was_kept_again(name: str, moved, make_guest) -> None:
    program, expression, expected = PROGRAMS[name]
    second = moved(textwrap.dedent(program))
    third = make_guest()
    third.session.globals.update(third.load(second.groups()))
    fourth = make_guest()
    fourth.session.globals.update(fourth.load(third.groups()))
    assert fourth.run(f"got = {expression}")["got"] == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_registry_that_did_not_change_is_no_change(name: str, moved, make_guest) -> None:
    second = moved(textwrap.dedent(PROGRAMS[name][0]))
    once, again = second.groups(), second.groups()
    assert [group.stream for group in once] == [group.stream for group in again]


def test_a_class_that_is_made_later_registers_itself_where_the_others_are(moved) -> None:
    program = textwrap.dedent(PROGRAMS["__init_subclass__"][0])
    second = moved(program)
    assert second.run("class C(Base): pass\ngot = sorted(Base.known), Base.known['C'] is C")["got"] == (
        ["A", "B", "C"],
        True,
    )


def test_a_class_that_cannot_be_made_again_is_lost_and_the_registry_is_not(make_guest) -> None:
    guest = make_guest()
    guest.run(
        textwrap.dedent(REGISTER)
        + "flag = []\n"
        + "def once(cls):\n    if flag: raise ValueError('again')\n    return cls\n"
        + "@register\nclass A: pass\n@register\n@once\nclass B: pass\nflag.append(1)\nb = B()\n"
    )
    loaded = make_guest().load(guest.groups())
    assert [type(loaded[name]) for name in ("B", "b")] == [NotKept, NotKept]
    assert loaded["REG"]["A"] is loaded["A"]
    assert type(loaded["REG"]["B"]) is NotKept
