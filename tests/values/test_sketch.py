"""What a host shows of a worker's variables: names and fields of its classes, and none of its code runs."""

from __future__ import annotations

import enum
from types import FunctionType, ModuleType

import pytest

from agex.contract import preview
from agex.errors import StateCorrupt
from agex.values import Allow, Group, NotKept, Packed, Sketch, decode
from agex.values import sketched as sketched_variables
from agex.values.code.reconstructor import Builder

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
    hidden: int = field(default=1, repr=False)


@dataclass
class Guarded(Square):
    key: str = field(default="k", repr=False)


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
guarded = Guarded(2)
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


CALLED: list[object] = []


class Registered:
    """A class of the host that a worker may give values of."""

    def __init__(self, *args: object) -> None:
        CALLED.append(args)

    def __call__(self, *args: object) -> None:
        CALLED.append(args)


def builder():
    return Builder(Allow([Registered]), Sketch(), lambda *_: {})


def made_of(build, source):
    return build.class_(source, "A", [], ((), (), (), {}), build.namespace())


PLAIN = "class A:\n __slots__ = ('{}', 'b')"
FIELDS = "@dataclass(slots=True)\nclass A:\n {}: int\n b: int"


@pytest.mark.parametrize("source", [PLAIN, FIELDS], ids=["plain", "fields"])
@pytest.mark.parametrize("name", ["__hash__", "__eq__", "__repr__", "__del__", "__class__", "__len__"])
def test_no_slot_of_a_sketch_is_called_by_the_interpreter(source, name):
    build = builder()
    value = build.instance(made_of(build, source.format(name)), ())
    call = build.partial(build.named(f"{__name__}.Registered"), (7,), {})
    build.fill(value, (None, {name: call, "b": 1}, None, None))
    assert (value == 1, type(hash(value)), preview(value)) == (False, int, preview(value))
    assert (list(type(value).__slots__), value.b) == (["b"], 1)
    del value
    assert CALLED == []


WRONG = {
    "tuple": [range(10**9), 9, [1]],
    "frozenset": [range(10**9), 9],
    "bytes": [10**9],
    "str": [9, b"7"],
    "int": [b"7", "7"],
    "list": [range(10**9), 9],
    "set": [range(10**9), 9],
    "dict": [range(10**9), [range(10**9)]],
}


@pytest.mark.parametrize(("base", "given"), [(base, each) for base, wrong in WRONG.items() for each in wrong])
def test_an_instance_over_a_builtin_takes_only_what_is_stored_of_one(base, given):
    build = builder()
    kind = made_of(build, f"class A({base}): pass")

    def make():
        if base in {"list", "set", "dict"}:
            build.fill(build.instance(kind, ()), (None, None, given, None))
        else:
            build.instance(kind, (given,))

    with pytest.raises(TypeError):
        make()


def test_a_sketch_renames_no_function_of_the_host():
    build = builder()
    kind = made_of(build, "class Enum(Enum):\n a = 1")
    build.fill_class(kind, ("other", {}, ()))
    assert enum.Enum.__new__.__qualname__ == "Enum.__new__"


def test_a_cache_is_no_call_of_what_is_its_size():
    build = builder()
    function = build.function("def f(): pass", "f", (), (), build.namespace())
    with pytest.raises(StateCorrupt):
        build.cached(function, build.record(f"{__name__}.Registered", ()), False)
    assert CALLED == []


def test_a_type_variable_compiles_no_text():
    with pytest.raises(StateCorrupt):
        builder().type_variable("T", ("a," * 9, None), (False, False))


def test_a_named_tuple_that_is_too_short_is_shown_with_what_it_has():
    build = builder()
    kind = made_of(build, "class A(NamedTuple):\n x: int\n y: int")
    assert preview(build.instance(kind, ((1,),))) == "A(x=1)"


@pytest.mark.parametrize(
    "source",
    [
        "a;" * (1 << 18),
        "class A:\n __slots__ = (" + "".join(f"'a{n}'," for n in range(999)) + ")",
        "@dataclass(slots=True)\nclass A:\n " + ";".join(f"a{n}: int" for n in range(999)),
        "class A(" + ", ".join(f"A{n}" for n in range(99)) + "): pass",
    ],
    ids=["text", "slots", "fields", "bases"],
)
def test_what_would_take_much_memory_is_lost(source):
    build = builder()
    namespace = build.namespace()
    for number in range(99):
        namespace.globals[f"A{number}"] = build.class_(
            f"class A{number}: pass", "A", [], ((), (), (), {}), namespace
        ).target
    assert type(build.class_(source, "A", [], ((), (), (), {}), namespace)) is NotKept


def test_an_enumeration_of_many_members_takes_no_time_that_grows_with_their_square():
    source = "class A(Enum):\n " + ";".join(f"a{n} = 1" for n in range(20_000))
    assert len(Sketch().rebuild(source, "A", {})) == 20_000


def test_a_group_that_cannot_be_read_is_tried_once():
    seen = []

    class Counting(Allow):
        def named(self, name):
            seen.append(name)

    stream = b"\x80\x05((\x8c\x1eagex.values.code.reconstructor\x8c\rBuilder.named\x93\x8c\x01x\x85Rt(tt."
    names = tuple(f"n{number}" for number in range(9))
    group = Group(names=names, stream=stream, buffers=(), origin="process")
    found = sketched_variables({name: Packed(group, name) for name in names}, allow=Counting(()))
    assert ({type(each) for each in found.values()}, len(seen)) == ({NotKept}, 1)
