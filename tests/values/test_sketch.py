"""What a host shows of a worker's variables: names and fields of its classes, and none of its code runs."""

from __future__ import annotations

from types import FunctionType, ModuleType

import pytest

from agex.contract import preview
from agex.values import Allow, NotKept, Sketch, decode

PROGRAM = """
import collections
import datetime
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from typing import NamedTuple


class Shape(ABC):
    @abstractmethod
    def area(self): ...


@dataclass
class Square(Shape):
    side: int
    tags: list[str] = field(default_factory=list)

    def area(self):
        return self.side**2


@dataclass(slots=True)
class Slotted:
    q: int


class Raw:
    __slots__ = ("r",)


class Color(Enum):
    RED = "r"
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: int = 0


class Bag(dict):
    pass


class Oops(ValueError):
    pass


class Tree:
    def __init__(self):
        self.parts = [self]

    def walk(self):
        return self.parts


def counted(n):
    class Inner:
        def __init__(self):
            self.n = n

    return Inner


async def later():
    pass


@lru_cache
def cached(n):
    return n


Pair = collections.namedtuple("Pair", "a b")
square, colors, point, bag = Square(2, ["new"]), [Color.RED, Color.BLUE], Point(1), Bag(a=Square(3))
raw, slotted, oops, tree, inner, pair = Raw(), Slotted(4), Oops("no"), Tree(), counted(5)(), Pair(1, 2)
raw.r = 6
bound, lambdas, part, keys = tree.walk, [lambda x: x], partial(counted, 1), {point: 1, Color.RED: 2}
"""


def shown(variables):
    """Give the class and the text of each; of a class only the text, for no metaclass is sketched."""
    kinds = {name: "class" if isinstance(value, type) else type(value) for name, value in variables.items()}
    return {name: (str(kind), preview(variables[name])) for name, kind in kinds.items()}


def sketched(groups):
    found = {}
    for group in groups:
        found.update(decode(group, allow=Allow(()), guest=Sketch()))
    return found


def test_variables_are_shown_as_they_are_where_the_guest_runs(make_guest):
    guest = make_guest()
    variables = guest.run(PROGRAM)
    assert shown(sketched(guest.groups())) == shown(variables)


LOUD = """
class Loud:
    print("a class statement")
    def __init_subclass__(cls): print("a subclass")
    def __hash__(self): return print("a hash") or 1

class Under(Loud):
    def __eq__(self, other): return print("compared")
    __hash__ = Loud.__hash__
    def __set_name__(self, owner, name): print("named")

class Holder:
    held = Under()

loud = {Under(): 1}
"""


def test_none_of_the_guests_code_runs(make_guest, capsys):
    guest = make_guest()
    guest.run(LOUD)
    groups = guest.groups()
    capsys.readouterr()
    found = sketched(groups)
    assert preview(found["loud"]) == "{<Under object>: 1}"
    assert capsys.readouterr().out == ""


def test_a_class_that_cannot_be_shown_is_lost_and_only_that(make_guest):
    guest = make_guest()
    guest.run(
        "import collections\n"
        "class Odd(collections.UserDict): pass\n"
        "class Meta(type): pass\n"
        "class Made(metaclass=Meta): pass\n"
        "odd, made, plain = Odd(), Made(), [1]\n"
    )
    found = sketched(guest.groups("odd", "made", "plain"))
    assert (type(found["odd"]), preview(found["made"]), found["plain"]) == (NotKept, "<Made object>", [1])


@pytest.mark.parametrize(
    "source",
    [
        "",
        "from a import b",
        "made_here = run()",
        "def made_here(): return 1",
        "def run_here():\n return 1",
        "class A(header_here0): pass",
        "class A(made_here()): pass",
        "class A(A): pass",
        "class A(int, str): pass",
        "class A(bool): pass",
        "class A(type): pass",
        "class A:\n __slots__ = print(1)",
        "class A(NamedTuple):\n _x: int",
        "class A(Enum):\n mro = 1",
        "class A" + "(" * 5000 + ")" * 5000 + ": pass",
        "f(",
    ],
)
def test_what_is_no_program_of_this_room_makes_nothing_that_runs(source):
    try:
        made = Sketch().rebuild(source, "made_here", {})
    except (ValueError, SyntaxError, TypeError, StopIteration, IndexError, MemoryError, RecursionError):
        return
    assert isinstance(made, FunctionType)
    assert made() is None


def test_names_of_the_host_are_shown_and_give_nothing_of_the_host():
    sketch = Sketch()
    module, function, kind = map(sketch.host_object, ["module os", "shutil:rmtree", "builtins:object"])
    assert (type(module), vars(module).keys()) == (ModuleType, vars(ModuleType("os")).keys())
    assert (function.__name__, function()) == ("rmtree", None)
    assert (kind.__name__, kind is object) == ("object", False)
