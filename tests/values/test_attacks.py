"""What a stored value must not do when it is loaded, whoever wrote it.

Stopped by: values.decoder, values.base.allowlist, values.adapters.
"""

from __future__ import annotations

import collections
import contextlib
import copyreg
import fractions
import functools
import hashlib
import io
import operator
import os
import pickle
import random
import struct
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agex.errors import StateCorrupt
from agex.values import Allow, Group, NotKept, decode, decoder, encode
from agex.values.adapters import stdlib as plain
from agex.values.base.handle import Handle
from agex.values.checks.opcode_audit import audit
from agex.values.code.reconstructor import Builder

CALLED: list[Any] = []


class Vault:
    """A class of the host that is not registered."""

    def __init__(self, *args: Any) -> None:
        CALLED.append(("init", args))

    def __setstate__(self, state: Any) -> None:
        CALLED.append(("setstate", state))

    def __setattr__(self, name: str, value: Any) -> None:
        CALLED.append(("setattr", name))


@dataclass
class Point:
    """One that is."""

    x: int

    def __post_init__(self) -> None:
        CALLED.append("post_init")


@dataclass
class Caller:
    """One whose instances can be called."""

    x: int

    def __call__(self, *args: Any) -> None:
        CALLED.append("call")


class Basket:
    """One that takes items, and says nothing of how it is pickled."""

    def __init__(self, *args: Any) -> None:
        CALLED.append("init")

    def extend(self, items: Any) -> None:
        CALLED.append("extend")

    def append(self, item: Any) -> None:
        CALLED.append("append")

    def add(self, item: Any) -> None:
        CALLED.append("add")

    def __setitem__(self, key: Any, item: Any) -> None:
        CALLED.append("setitem")


class Parcel(Basket):
    """One that does."""

    def __reduce__(self) -> Any:
        return Parcel, ()


ALLOW = Allow([Point, Caller, Basket, Parcel])


class Made:
    """Stands in a value for a call: of a function by its name, or of what another one gives."""

    def __init__(self, function: Any, args: tuple[Any, ...] = (), state: Any = None) -> None:
        self.function = function
        self.args = args
        self.state = state


def load(stream: bytes, buffers: tuple[memoryview, ...] = ()) -> Any:
    return decode(Group(names=("x",), stream=stream, buffers=buffers), allow=ALLOW)["x"]


def stored(value: Any) -> bytes:
    """Write a stream with a value where the encoder would put one."""
    return b"\x80\x05" + _written(((value,), ())) + b"."


def _written(value: Any) -> bytes:
    if type(value) is Made:
        state = b"" if value.state is None else _written(value.state) + b"b"
        return _written(value.function) + _written(value.args) + b"R" + state
    if type(value) is dict:
        inside = b"".join(_written(key) + _written(each) for key, each in value.items())
        return b"}(" + inside + b"u"
    if type(value) in {tuple, list}:
        inside = b"(" + b"".join(map(_written, value))
        return inside + b"t" if type(value) is tuple else b"]" + inside + b"e"
    if hasattr(value, "__qualname__"):
        names = (value.__module__ or "builtins", value.__qualname__)
        return b"".join(b"\x8c" + bytes((len(name),)) + name.encode() for name in names) + b"\x93"
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5)
    pickler.fast = True  # no memo
    pickler.dump(value)
    return file.getvalue()[2:-1]


def of(name: str, *args: Any) -> Made:
    """Call a constructor of this room."""
    return Made(getattr(Builder, name), args)


CALLS: dict[str, Callable[[Path], Any]] = {
    "os.system": lambda p: Made(os.system, (f"touch {p}",)),
    "posix.open": lambda p: Made(os.open, (str(p), os.O_CREAT)),
    "eval": lambda p: Made(eval, (f"open({str(p)!r}, 'w')",)),
    "exec": lambda p: Made(exec, (f"open({str(p)!r}, 'w')",)),
    "__import__": lambda p: Made(__import__, ("os",)),
    "open": lambda p: Made(open, (str(p), "w")),
    "getattr": lambda p: Made(getattr, ((), "__class__")),
    "functools.partial": lambda p: Made(functools.partial, (os.system, f"touch {p}")),
    "functools.reduce": lambda p: Made(functools.reduce, (os.system, [f"touch {p}"])),
    "operator.attrgetter": lambda p: Made(operator.attrgetter, ("__class__",)),
    "operator.methodcaller": lambda p: Made(operator.methodcaller, ("touch",)),
    "types.FunctionType": lambda p: Made(types.FunctionType, ((), {})),
    "types.CodeType": lambda p: Made(types.CodeType, ()),
    "map": lambda p: Made(map, (os.system, [f"touch {p}"])),
    "copyreg._reconstructor": lambda p: Made(copyreg._reconstructor, (Vault, object, None)),
    "copyreg.__newobj__": lambda p: Made(copyreg.__newobj__, (Vault,)),
    "a class that is not registered": lambda p: Made(Vault, (1,)),
    "a class that is, by its constructor": lambda p: Made(Point, (1,)),
    "an instance with its state": lambda p: Made(Vault, (), {"a": 1}),
    "pickle.loads": lambda p: Made(pickle.loads, (pickle.dumps(1),)),
    "numpy's reconstruct": lambda p: Made(np.ndarray(0).__reduce__()[0], (np.ndarray, (0,), b"b")),
    "numpy's frombuffer": lambda p: Made(np.zeros(9).__reduce_ex__(5)[0], (b"8 bytes!", "f8", (1,), "C")),
    "numpy's dtype": lambda p: Made(np.dtype, ("i4", False, True)),
    "numpy.load": lambda p: Made(np.load, (str(p),)),
    "pandas' blocks": lambda p: Made(pd._libs.internals._unpickle_block, (1, 2, 3)),
    "a frame": lambda p: Made(pd.DataFrame, ({"a": [1]},)),
    "pandas.read_pickle": lambda p: Made(pd.read_pickle, (str(p),)),
    "pandas.eval": lambda p: Made(pd.eval, ("1",)),
    "a type": lambda p: int,
    "an exception's constructor": lambda p: Made(ValueError, ("x",)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_not_on_the_list_is_refused(name: str, tmp_path: Path) -> None:
    """Stopped by: values.base.allowlist."""
    CALLED.clear()
    stream = stored(CALLS[name](tmp_path / "made"))
    with pytest.raises(StateCorrupt):
        load(stream)
    assert CALLED == []
    assert not (tmp_path / "made").exists()


def test_the_refusal_names_the_class_and_what_to_do() -> None:
    """Stopped by: values.base.allowlist."""
    with pytest.raises(StateCorrupt, match=r"Vault.*agent\.cls\(Vault\)"):
        load(stored(of("record", f"{__name__}.Vault", ())))


INSIDE: dict[str, Callable[[], Any]] = {
    "a class as a value, called": lambda: Made(of("named", "builtins.bytearray"), (1 << 40,)),
    "a real class, called": lambda: Made(of("real", of("named", "builtins.bytearray")), (9,)),
    "an object of the host, called": lambda: Made(of("real", of("host", "tool")), (9,)),
    "an instance that can be called": lambda: Made(of("record", f"{__name__}.Caller", ()), (9,)),
    "the state of a foreign instance": lambda: of("fill_constructed", [], {"a": 1}),
    "attributes of a list": lambda: of("fill", [], ({"a": 1}, None, None, None)),
    "a member of what is no enumeration": lambda: of("member", of("named", "builtins.int"), ("a",)),
    "an attribute of a class of the host": lambda: of("attribute", of("named", "builtins.int"), "from_bytes"),
    "a method of an object of the host": lambda: of("method", "append", []),
    "a tuple of no tuple's class": lambda: of("tuple_of", of("named", "builtins.list"), (1,)),
    "an instance of a builtin": lambda: of("instance", of("named", "builtins.bytearray"), ()),
    "a partial of a constructor": lambda: of("real", of("partial", Builder.real, (), {})),
    "a private method of the builder": lambda: Made(
        Builder._thaw if hasattr(Builder, "_thaw") else Builder._rebuilt, ()
    ),
    "a namespace that is none": lambda: of("fill_namespace", [], {"a": 1}),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_constructor_takes_nothing_on_trust(name: str) -> None:
    CALLED.clear()
    stream = stored(INSIDE[name]())
    try:
        got = load(stream)
    except StateCorrupt:
        pass
    else:  # what is not called is a marker, or a thing that cannot be used
        assert type(got).__name__ in {"NotKept", "function", "partial", "list", "method"}
    assert "call" not in CALLED


ITEMS = {
    "one appended": b"K\x01a",
    "appended": b"(K\x01K\x02e",
    "added": b"(K\x01K\x02\x90",
    "one set": b"\x8c\x01kK\x01s",
    "set": b"(\x8c\x01kK\x01u",
    "taken from the memo and appended": b"\x940h\x00(K\x01K\x02e",
}
GIVEN_ITEMS: dict[str, Callable[[], Any]] = {
    "an instance of a registered class": lambda: of("record", f"{__name__}.Basket", ()),
    "one that says how it is pickled": lambda: of("construct", f"{__name__}.Parcel", (), False),
    "a function that would be its own extend": lambda: of("host", "tool"),
    "a text": lambda: "text",
}


@pytest.mark.parametrize("origin", ["", "kernel"])
@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("name", GIVEN_ITEMS)
def test_items_are_given_to_containers_only(name: str, items: str, origin: str) -> None:
    CALLED.clear()
    stream = b"\x80\x05((" + _written(GIVEN_ITEMS[name]()) + ITEMS[items] + b"t)t."
    with pytest.raises(StateCorrupt):
        decode(Group(names=("x",), stream=stream, origin=origin), allow=ALLOW)
    assert set(CALLED) <= {"init"} if "construct" in stream.decode("latin1") else CALLED == []


@pytest.mark.parametrize("items", ITEMS)
def test_an_attribute_of_an_instance_is_not_called_with_items(items: str, make_guest) -> None:
    called: list[Any] = []
    guest = make_guest(tool=lambda *args: called.append(args))
    names = ("extend", "append", "add", "__setitem__")
    target = Made(plain.make_simple)
    filled = Made(plain.fill_attributes, (target, dict.fromkeys(names, of("real", of("host", "tool")))))
    loader = decoder._Loader(guest.allow, guest)
    simple, attributes = _written(target), _written(filled.args[1])
    fill = _written(plain.fill_attributes) + b"h\x00" + attributes + b"\x86R0"
    after = ITEMS[items].removeprefix(b"\x940h\x00")
    with pytest.raises((StateCorrupt, TypeError, AttributeError)):
        loader(b"\x80\x05((" + simple + b"\x94" + fill + after + b"t)t.", (), ())
    assert called == []


@pytest.mark.parametrize("origin", ["", "kernel"])
@pytest.mark.parametrize("plainly", [True, False])
def test_no_class_is_called_that_does_not_say_how_it_is_pickled(plainly: bool, origin: str) -> None:
    """Stopped by: values.adapters.instances."""
    for name in ("Basket", "Point"):
        CALLED.clear()
        stream = stored(of("construct", f"{__name__}.{name}", (1,), plainly))
        with pytest.raises(StateCorrupt, match="how it is pickled"):
            decode(Group(names=("x",), stream=stream, origin=origin), allow=ALLOW)
        assert CALLED == []


def test_no_state_is_set_that_a_class_does_not_say_it_has() -> None:
    """Stopped by: values.adapters.instances."""
    with pytest.raises(StateCorrupt):
        load(stored(of("fill_constructed", of("record", f"{__name__}.Point", ()), {"x": 1})))


def test_a_class_that_says_how_it_is_pickled_comes_back() -> None:
    (group,) = encode({"x": Parcel()}, allow=ALLOW)
    assert type(load(group.stream)) is Parcel


def test_containers_of_the_standard_library_are_given_their_items() -> None:
    value = [
        collections.deque([1, [2]], 5),
        collections.OrderedDict(a=1, b=Point(2)),
        collections.Counter("aab"),
        collections.defaultdict(list, a=[1]),
        {1, "a"},
    ]
    (group,) = encode({"x": value}, allow=ALLOW)
    assert load(group.stream) == value


def test_a_record_comes_back_without_its_constructor() -> None:
    point = Point(3)
    (group,) = encode({"x": point}, allow=ALLOW)
    CALLED.clear()
    assert load(group.stream) == point
    assert CALLED == []


def test_an_instance_is_kept_by_a_name_that_is_still_registered() -> None:
    (group,) = encode({"x": Point(3)}, allow=ALLOW)
    with pytest.raises(StateCorrupt, match="Point"):
        decode(group, allow=Allow())


OPCODES = {
    "GLOBAL": b"cos\nsystem\n.",
    "INST": b"(ios\nsystem\n.",
    "OBJ": b"(c__main__\nX\no.",
    "BUILD": b"\x80\x05}}b.",
    "NEWOBJ": b"\x80\x05)\x81.",
    "NEWOBJ_EX": b"\x80\x05)}\x92.",
    "PERSID": b"Px\n.",
    "BINPERSID": b"K\x01Q.",
    "EXT1": b"\x82\x01.",
    "PUT": b"Np0\n.",
    "LONG_BINPUT": b"Nr\xff\xff\xff\x7f.",
    "INT": b"I1\n.",
    "STRING": b"S'a'\n.",
    "protocol 4": b"\x80\x04N.",
}


@pytest.mark.parametrize("name", OPCODES)
def test_an_opcode_that_the_encoder_does_not_write_is_refused(name: str) -> None:
    """Stopped by: values.decoder."""
    with pytest.raises(StateCorrupt):
        load(OPCODES[name])


BOMBS = {
    "nothing": b"",
    "no end": b"\x80\x05K\x01",
    "bytes after the end": stored(1) + b"N",
    "a text longer than the stream": b"\x80\x05\x8d" + struct.pack("<Q", 1 << 40) + b"abc.",
    "bytes longer than the stream": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b".",
    "a frame longer than the stream": b"\x80\x05\x95" + struct.pack("<Q", 1 << 40) + b"N.",
    "a memo that is not there": b"\x80\x05h\x07.",
    "a stack that is empty": b"\x80\x05e.",
    "a buffer that is not there": b"\x80\x05\x97.",
    "lists in lists": b"\x80\x05" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "tuples in tuples as a key": b"\x80\x05}" + b")" + b"\x85" * 200_000 + b"Ns.",
    "tuples in tuples by memo": b"\x80\x05})" + b"\x85\x94" * 100_000 + b"Ns.",
    "frozensets in frozensets": b"\x80\x05" + b"(" * 100_000 + b"N" + b"\x91" * 100_000 + b".",
    "not a pickle": b"hello there.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_damaged_stream_is_corrupt_and_not_a_crash(name: str) -> None:
    with pytest.raises(StateCorrupt):
        load(BOMBS[name])


@pytest.mark.parametrize("name", [name for name in BOMBS if name.startswith(("a text", "bytes longer"))])
def test_a_length_that_leaves_the_stream_is_seen_before_it_is_loaded(name: str) -> None:
    with pytest.raises(StateCorrupt, match="cut short"):
        audit(BOMBS[name])


def test_every_flipped_byte_is_noticed_or_harmless() -> None:
    value = {"a": [1, 2.5, "text"], "b": (None, {3, 4}), "c": np.arange(4), "d": pd.Series([1, 2])}
    (group,) = encode({"x": value}, allow=ALLOW)
    for at in range(len(group.stream)):
        for flip in (1, 0x80):
            damaged = bytearray(group.stream)
            damaged[at] ^= flip
            try:
                decode(Group(names=("x",), stream=bytes(damaged)), allow=ALLOW)
            except StateCorrupt:
                continue


ARRAYS = {
    "objects from memory": ("make_array", b"\x00" * 8, "|O", (1,), False, True),
    "more than there is": ("make_array", b"\x00" * 8, "<f8", (1 << 40,), False, True),
    "less than there is": ("make_array", b"\x00" * 16, "<f8", (1,), False, True),
    "a negative shape": ("make_array", b"\x00" * 8, "<f8", (-1,), False, True),
    "fields of objects": (
        "make_array",
        b"\x00" * 8,
        ("fields", [("a", "|O", 0)], 8, False),
        (1,),
        False,
        True,
    ),
    "fields that overlap objects": (
        "make_array",
        b"\x00" * 8,
        ("fields", [("a", "|O", 0), ("b", "<i8", 0)], 8, False),
        (1,),
        False,
        True,
    ),
    "texts of variable length": ("make_array", b"\x00" * 16, ("text", True, False), (1,), False, True),
    "a scalar of objects": ("make_scalar", "|O", b"\x00" * 8),
    "objects without end": ("make_object_array", "|O", (1 << 40,), False, bytearray(1)),
    "objects of great width": (
        "make_object_array", ("fields", [("a", ("sub", "|O", (1 << 24,)), 0)], 1 << 27, False), (1,), False,
        bytearray(1),
    ),
    "a text from numbers": ("make_text", 5),
    "objects in too many dimensions": ("make_object_array", "|O", (0,) * 65, False, bytearray(1)),
    "numbers in too many dimensions": ("make_array", b"", "<f8", (0,) * 65, tuple(range(65)), True),
    "a shape that takes long to multiply": ("make_array", b"", "<f8", (1 << 80_000,) * 64, (), True),
    "objects that no byte is for": ("make_object_array", "|O", (9,), False, bytearray(1)),
    "objects in an order of no axes": ("make_object_array", "|O", (2, 2), (0, 0), bytearray(1)),
    "numbers as objects": ("make_object_array", "<f8", (1,), False, bytearray(1)),
    "numbers in an order of no axes": ("make_array", b"\x00" * 32, "<f8", (2, 2), (0, 2), True),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_memory_is_never_taken_for_objects_nor_left(name: str) -> None:
    from agex.values.adapters import numpy_arrays as arrays

    constructor, *args = ARRAYS[name]
    with pytest.raises(StateCorrupt):
        load(stored(Made(getattr(arrays, constructor), tuple(args))))


def test_an_array_does_not_stand_on_memory_that_can_be_taken_from_under_it() -> None:
    """Stopped by: values.adapters.numpy_arrays."""
    from agex.values.adapters import numpy_arrays as arrays

    fill = b"\x96" + struct.pack("<Q", 8000) + bytes(8000) + b"\x94"  # a bytearray, noted as number 0
    names = b"".join(b"\x8c" + bytes((len(n),)) + n.encode() for n in (arrays.__name__, "make_array"))
    rest = b"".join(map(_written, ("<f8", (1000,), False, True)))
    array = names + b"\x93(h\x00" + rest + b"tR"
    got = load(b"\x80\x05((" + fill + array + b"\x86t)t.")
    memory, made = got
    memory.clear()
    made[:] = 1
    assert made.sum() == 1000


def test_a_view_cannot_leave_its_array() -> None:
    """Stopped by: values.adapters.numpy_arrays."""
    from agex.values.adapters import numpy_arrays as arrays

    root = Made(arrays.make_array, (bytes(80), "<f8", (10,), False, True))
    objects = Made(arrays.make_object_array, ("|O", (4,), False, bytearray(1)))
    record = ("fields", [("o", "|O", 0), ("n", "<i8", 8)], 16, False)
    records = Made(arrays.make_object_array, (record, (4,), False, bytearray(1)))
    assert load(stored(Made(arrays.make_view, (records, ("n",), ((4,), (16,), 8), True)))).shape == (4,)
    for base, dtype, shape, strides, offset in [
        (root, "<f8", (11,), (8,), 0),
        (root, "<f8", (2,), (8,), 72),
        (root, "<f8", (2,), (-8,), 0),
        (root, "|O", (1,), (8,), 0),
        (objects, "<i8", (1,), (8,), 0),
        (objects, "|O", (1,), (8,), 0),
        (objects, (), (5,), (8,), 0),
        (objects, (), (1,), (8,), 4),
        (objects, (), (1,), (8,), -8),
        (objects, (), (2,), (-8,), 0),
        (objects, (), (0,), (8,), 0),
        (records, (), (4,), (16,), 8),
        (records, ("o",), (4,), (16,), 8),
        (records, ("n",), (4,), (8,), 8),
        (records, ("n",), (5,), (16,), 8),
        (records, ("n",), (1,), (16,), -8),
        (records, ("x",), (1,), (16,), 0),
        (records, "<i8", (1,), (16,), 0),
    ]:
        with pytest.raises(StateCorrupt):
            load(stored(Made(arrays.make_view, (base, dtype, (shape, strides, offset), True))))


def test_the_room_of_an_array_of_objects_is_used_up() -> None:
    """Stopped by: values.adapters.numpy_arrays."""
    from agex.values.adapters import numpy_arrays as arrays

    room = _written(bytearray(1 << 10)) + b"\x94"  # noted as number 0
    make = _written(arrays.make_object_array) + b"(" + b"".join(map(_written, ("|O", (1 << 13,), False)))
    array = make + b"h\x00tR"
    assert load(b"\x80\x05(" + room + array + b"t\x85)\x86.")[1].size == 1 << 13
    with pytest.raises(StateCorrupt, match="than its stream has room for"):
        load(b"\x80\x05(" + room + array + array + b"t\x85)\x86.")


def test_the_items_of_an_array_of_objects_are_used_up() -> None:
    """Stopped by: values.adapters.numpy_arrays."""
    from agex.values.adapters import numpy_arrays as arrays

    items = _written([1, 2, 3]) + b"\x94"  # noted as number 0
    array = _written(Made(arrays.make_object_array, ("|O", (3,), False, bytearray(1)))) + b"\x94"
    fill = _written(arrays.fill_object_array) + b"h\x01h\x00\x88\x86\x86R"
    assert load(b"\x80\x05(" + items + array + fill + b"t\x85)\x86.")[1].tolist() == [1, 2, 3]
    with pytest.raises(StateCorrupt, match="another number of items"):
        load(b"\x80\x05(" + items + array + fill + fill + b"t\x85)\x86.")


def test_a_view_does_not_open_an_array_that_was_not_made_over_memory_of_the_load() -> None:
    """Stopped by: values.adapters.numpy_arrays."""
    from agex.values.adapters import numpy_arrays as arrays

    constant = np.arange(3)
    constant.flags.writeable = False
    view = arrays.make_view(constant, "<i8", ((3,), (8,), 0), True)
    assert not view.flags.writeable


SEEDS: dict[str, tuple[Any, ...]] = {
    "a large pool": (1, (), 40_000, 0),
    "a long number": (1 << 1_000_000, (), 4, 0),
    "many numbers": ([1] * 100_000, (), 4, 0),
    "a long key": (1, (1,) * 100_000, 4, 0),
    "numbers in numbers": (((1, 1), (1, 1)), (), 4, 0),
    "a text": ("1", (), 4, 0),
}


@pytest.mark.parametrize("name", SEEDS)
def test_a_generator_is_not_mixed_for_long(name: str) -> None:
    """Stopped by: values.adapters."""
    from agex.values.adapters import numpy_arrays as arrays

    state = np.random.PCG64(1).state
    assert load(stored(Made(arrays.make_generator, ("PCG64", state, (1, (2,), 4, 0))))).random() < 1
    with pytest.raises(StateCorrupt, match="seed"):
        load(stored(Made(arrays.make_generator, ("PCG64", state, SEEDS[name]))))


@pytest.mark.parametrize("place", [-1, 625, 1 << 20, 3.0])
def test_a_generator_reads_only_numbers_that_it_made(place: Any) -> None:
    """Stopped by: values.adapters."""
    from agex.values.adapters import numpy_arrays as arrays

    twister, philox = np.random.MT19937(1).state, np.random.Philox(1).state
    twister["state"] |= {"pos": place, "key": twister["state"]["key"].tolist()}
    philox |= {
        "buffer_pos": place,
        "buffer": philox["buffer"].tolist(),
        "state": {name: each.tolist() for name, each in philox["state"].items()},
    }
    for forged in (
        Made(arrays.make_generator, ("MT19937", twister, (1, (), 4, 0))),
        Made(arrays.make_generator, ("Philox", philox, (1, (), 4, 0))),
        Made(arrays.make_random_state, ({**twister, "has_gauss": 0, "gauss": 0.0},)),
    ):
        with pytest.raises(StateCorrupt, match="not among those that it made"):
            load(stored(forged))


def integer(number: int) -> bytes:
    data = number.to_bytes(number.bit_length() // 8 + 1, "little")
    return b"\x8b" + struct.pack("<I", len(data)) + data


@pytest.mark.parametrize("origin", ["", "kernel"])
def test_a_fraction_of_huge_integers_is_not_divided_out(origin: str) -> None:
    seed = random.Random(1)
    upper, lower = (integer(seed.getrandbits(3_200_000) | 1 << 3_200_000) for _ in range(2))
    stream = b"\x80\x05((" + _written(plain.make_fraction) + upper + lower + b"\x86Rt)t."
    started = time.monotonic()
    got = decode(Group(names=("x",), stream=stream, origin=origin), allow=ALLOW)["x"]
    assert time.monotonic() - started < 0.5
    assert type(got) is fractions.Fraction


def test_a_huge_fraction_comes_back_as_it_was() -> None:
    value = fractions.Fraction(3**9000, -(2**9000))
    (group,) = encode({"x": value}, allow=ALLOW)
    got = load(group.stream)
    assert (got, hash(got), got + 1) == (value, hash(value), value + 1)


@pytest.mark.parametrize("args", [(1, 0), (1, -2), (1.5, 2), (1 << 5000, 0), (1 << 5000, -1), (True, 1)])
def test_a_fraction_of_anything_but_integers_is_corrupt(args: tuple[Any, ...]) -> None:
    with pytest.raises(StateCorrupt):
        load(stored(Made(plain.make_fraction, args)))


def test_a_damaged_table_is_corrupt() -> None:
    """Stopped by: values.adapters.arrow_tables."""
    from agex.values.adapters import arrow_tables as tables

    for data in (b"", b"no table", b"\xff\xff\xff\xff\x10\x00\x00\x00" + bytes(40)):
        for args in ((tables.make_table, (data,)), (tables.make_polars, (data, bytes(16)))):
            with pytest.raises(StateCorrupt):
                load(stored(Made(*args)))


def arrow_stream(table: Any, **options: Any) -> bytes:
    pa = pytest.importorskip("pyarrow")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def require_refused(reason: str, data: bytes) -> None:
    """Require that a stream is refused however it is read, and that nothing is allocated for it."""
    from agex.values.adapters import arrow_tables as tables

    pa = pytest.importorskip("pyarrow")
    digest = hashlib.blake2b(data, digest_size=16).digest()
    held = pa.default_memory_pool().bytes_allocated()
    for args in (
        *((make, (data,)) for make in (tables.make_table, tables.make_arrow_scalar, tables.make_chunked)),
        *((make, (data, digest)) for make in (tables.make_polars, tables.make_polars_series)),
    ):
        with pytest.raises(StateCorrupt, match=reason):
            load(stored(Made(*args)))
    assert pa.default_memory_pool().bytes_allocated() == held


@pytest.mark.parametrize("version", ["V4", "V5"])
@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_table_is_refused_before_anything_is_allocated(codec: str, version: str) -> None:
    """Stopped by: values.adapters.arrow_ipc."""
    pa = pytest.importorskip("pyarrow")
    options = {"compression": codec, "metadata_version": pa.ipc.MetadataVersion[version]}
    zeros = pa.table({"a": pa.array(np.zeros(1_000_000))})
    require_refused("compressed", arrow_stream(zeros, **options))
    words = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["0" * 1_000_000]))
    dictionary = arrow_stream(pa.table({"a": words}), **options)
    assert len(dictionary) < 50_000
    require_refused("compressed", dictionary)


def test_a_table_with_a_batch_that_says_more_of_itself_is_refused() -> None:
    """Stopped by: values.adapters.arrow_tables."""
    pa = pytest.importorskip("pyarrow")
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"a": [1]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "zstd"})
    require_refused("metadata", bytes(sink.getvalue()))


def test_a_table_whose_columns_stand_on_the_same_bytes_is_refused() -> None:
    """Stopped by: values.adapters.arrow_tables."""
    pa = pytest.importorskip("pyarrow")
    data = arrow_stream(pa.table({"a": np.arange(100), "b": np.arange(100)}))
    places = struct.pack("<qq", 800, 0), struct.pack("<qq", 800, 800)
    assert data.count(b"".join(places)) == 1
    doubled = data.replace(b"".join(places), struct.pack("<qqqq", 0, 0, 0, 1600))
    require_refused("more than its bytes", doubled)


def test_a_damaged_message_of_a_table_is_corrupt_or_reads() -> None:
    """Stopped by: values.adapters.arrow_ipc."""
    from agex.values.adapters.arrow_ipc import require_plain

    pa = pytest.importorskip("pyarrow")
    data = arrow_stream(pa.table({"a": [1, 2], "b": ["x", "y"]}))
    whole = []
    for n in range(len(data)):
        for mask in (1, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[n] ^= mask
            with contextlib.suppress(ValueError):
                require_plain(damaged)
        with contextlib.suppress(ValueError):
            require_plain(data[:n])
            whole.append(n)
    (schema_end,) = set(whole) - {0, len(data) - 8}  # the last 8 bytes only say that it ends
    assert data[schema_end : schema_end + 4] == b"\xff\xff\xff\xff"


def test_a_frame_whose_blocks_do_not_fit_is_corrupt() -> None:
    """Stopped by: values.adapters.pandas_frames."""
    from agex.values.adapters import numpy_arrays as arrays
    from agex.values.adapters import pandas_frames as frames

    def array(*shape: int) -> Made:
        return Made(arrays.make_array, (bytes(8 * int(np.prod(shape))), "<f8", shape, False, True))

    index = Made(frames.make_range, (0, 3, 1, None))
    columns = Made(frames.make_range, (0, 2, 1, None))
    for values, places in [
        (array(2, 4), [0, 1]),
        (array(1, 3), [0]),
        (array(2, 3), [0, 5]),
        (array(2, 3), [0, 0]),
    ]:
        with pytest.raises(StateCorrupt):
            load(stored(Made(frames.make_frame, ([(values, places)], index, columns))))


GUEST_CALLS: dict[str, Callable[[], Any]] = {
    "a function of the host": lambda: Made(of("real", of("host", "tool")), (1,)),
    "its handle": lambda: Made(of("host", "tool"), (1,)),
    "a class of the guest": lambda: Made(of("real", of("outer", 0)), ()),
    "a function of the guest": lambda: Made(of("real", of("outer", 1)), ()),
    "an instance of the guest's": lambda: Made(of("instance", of("outer", 0), ()), ()),
    "a partial of a function of the host": lambda: Made(
        of("real", of("partial", of("host", "tool"), (1,), {})), ()
    ),
    "an attribute of a list": lambda: of("fill_attributes", [], {"append": 1}),
    "the state of a class": lambda: of("fill_attributes", of("real", of("outer", 0)), {"f": 1}),
}


@pytest.mark.parametrize("name", GUEST_CALLS)
def test_code_of_the_guest_and_of_the_host_is_not_called_while_loading(name: str, make_guest) -> None:
    called: list[Any] = []
    guest = make_guest(tool=lambda *args: called.append(args))
    methods = "def __init__(self):\n        ran.append(1)\n    def __call__(self):\n        ran.append(2)"
    made = guest.run(f"ran = []\nclass C:\n    {methods}\ndef f():\n    ran.append(3)")
    loader = decoder._Loader(guest.allow, guest)
    with pytest.raises((StateCorrupt, TypeError)):
        loader(stored(GUEST_CALLS[name]()), (Handle(made["C"]), Handle(made["f"])), ())
    assert called == []
    assert guest.session.globals["ran"] == []


def plain_class(source: str = "class C: pass\nmade_here = C", **captured: Any) -> Made:
    """Write the record of a class that a program makes."""
    return of("class_", source, "C", [], (tuple(captured), (), (), captured), of("namespace"))


def with_base(base: Any) -> Made:
    inside = "def run_here():\n        class C(b): pass\n        return C"
    program = f"def made_here(b):\n    {inside}\n    return run_here\nmade_here = made_here(*given_here)"
    return plain_class(program, b=base)


def dressed(**attributes: Any) -> Made:
    return of("fill_class", plain_class(), ("C", attributes, []))


def function_state(**changes: Any) -> dict[str, Any]:
    names = ("f", "f", None)
    return {"defaults": (1,), "keywords": None, "names": names, "attributes": {}} | changes


def a_function() -> Made:
    return of("function", "made_here = lambda: 1", "f", (), (), of("namespace"))


TEXT = of("instance", of("outer", 2), ("x",))
"""A text of a class of the guest."""

FORGED: dict[str, Callable[[], Any]] = {
    "the defaults of a function of the host": lambda: of(
        "fill_function", of("host", "tool"), function_state()
    ),
    "the defaults of an older function of the guest": lambda: of(
        "fill_function", of("outer", 1), function_state()
    ),
    "the attributes of a class of the host": lambda: of(
        "fill_class", of("named", f"{Point.__module__}.Point"), ("P", {"x": 5}, [])
    ),
    "the attributes of a builtin class": lambda: of(
        "fill_class", of("named", "builtins.int"), ("P", {"x": 5}, [])
    ),
    "the attributes of an older class of the guest": lambda: of(
        "fill_class", of("outer", 0), ("P", {"x": 5}, [])
    ),
    "a cell that is an instance": lambda: of("fill_cell", of("instance", of("outer", 0), ()), 1),
    "a captured cell that is an instance": lambda: of(
        "fill_class", plain_class(), ("C", {}, [(of("instance", of("outer", 0), ()), 1)])
    ),
    "a function that is an instance": lambda: of(
        "fill_function", of("instance", of("outer", 0), ()), function_state()
    ),
    "the bases of a class": lambda: dressed(__bases__=(of("outer", 0),)),
    "the finalizer of a class": lambda: dressed(__del__=of("outer", 1)),
    "the class of instances": lambda: dressed(__class__=of("outer", 1)),
    "how instances are pickled": lambda: dressed(__reduce_ex__=of("outer", 1)),
    "how attributes are read": lambda: dressed(__getattribute__=of("outer", 1)),
    "the module of a class": lambda: dressed(__module__="builtins"),
    "a method of the host in the place of an operator": lambda: dressed(__eq__=of("host", "tool")),
    "a name of the sandbox": lambda: dressed(**{"check!": of("outer", 1)}),
    "an attribute named by an object": lambda: of("fill_class", plain_class(), ("C", {TEXT: 1}, [])),
    "a class named by an object": lambda: of("fill_class", plain_class(), (TEXT, {}, [])),
    "a function named by an object": lambda: of(
        "fill_function", a_function(), function_state(names=(TEXT, "f", None))
    ),
    "a function documented by an object": lambda: of(
        "fill_function", a_function(), function_state(names=("f", "f", TEXT))
    ),
    "a base that is not registered": lambda: with_base(of("named", f"{Vault.__module__}.Vault")),
    "a base that makes classes": lambda: with_base(of("named", "builtins.type")),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_of_code_dresses_nothing_but_what_it_makes(name: str, make_guest) -> None:
    """Stopped by: values.code."""
    CALLED.clear()
    called: list[Any] = []

    def tool(*args: Any) -> None:
        called.append(args)

    guest = make_guest(registered=[Point], tool=tool)
    hooks = "setattr getattribute eq hash init init_subclass"
    bodies = [
        "\n".join(f"    def __{hook}__(self, *a):\n        ran.append('{hook}')" for hook in each.split())
        for each in (hooks, "str repr format")
    ]
    program = f"class C:\n{bodies[0]}\ndef f(*a):\n    ran.append('f')\nclass T(str):\n{bodies[1]}"
    made = guest.run("ran = []\n" + program)
    guest.session.globals["ran"].clear()
    before = dict(vars(Point)), set(vars(made["C"])), made["C"].__qualname__, made["f"].__defaults__
    outer = tuple(Handle(made[each]) for each in ("C", "f", "T"))
    with pytest.raises((StateCorrupt, TypeError)):
        decoder._Loader(guest.allow, guest)(stored(FORGED[name]()), outer, ())
    assert (called, CALLED, guest.session.globals["ran"]) == ([], [], [])
    assert (dict(vars(Point)), set(vars(made["C"])), made["C"].__qualname__, made["f"].__defaults__) == before
    assert (tool.__defaults__, tool.__name__) == (None, "tool")


@pytest.mark.parametrize(
    "base", [lambda: of("host", "nowhere"), lambda: of("host", "open!"), lambda: 5, lambda: of("cell")]
)
def test_a_class_over_what_is_no_class_for_the_guest_is_lost(base: Callable[[], Any], make_guest) -> None:
    """Stopped by: values.code."""
    guest = make_guest(tool=lambda *args: CALLED.append(args))
    CALLED.clear()
    ((made,), _) = decoder._Loader(guest.allow, guest)(stored(with_base(base())), (), ())
    assert type(made) is NotKept
    assert CALLED == []


def test_a_forged_program_of_a_class_runs_under_the_guards(make_guest, tmp_path: Path) -> None:
    """Stopped by: values.code."""
    guest = make_guest(seconds=0.5)
    for line in (
        "import os\nos.mkdir(p)",
        "open(p, 'w')",
        "().__class__.__base__.__subclasses__()",
        "while True: pass",
    ):
        program = f"p = {str(tmp_path / 'x')!r}\nclass C:\n    pass\n{line}\nmade_here = C"
        ((made,), _) = decoder._Loader(guest.allow, guest)(stored(plain_class(program)), (), ())
        assert type(made) is NotKept
    assert list(tmp_path.iterdir()) == []
