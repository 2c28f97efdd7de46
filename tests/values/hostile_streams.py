"""Streams that ask for more than their bytes: what a worker or a stranger's store may send.

Run as a program, this decodes a number of them and prints what each took.
"""

from __future__ import annotations

import decimal
import fractions
import hashlib
import json
import pickle
import random
import struct
import sys
import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from agex.errors import StateCorrupt
from agex.values import Allow, Group, decode, encode
from agex.values.adapters import arrow_tables as tables
from agex.values.adapters import numpy_arrays as arrays
from agex.values.adapters import pandas_frames as frames
from agex.values.adapters import pandas_scalars as scalars
from agex.values.adapters import stdlib as plain
from agex.values.code.reconstructor import Builder

PRIME = sys.hash_info.modulus
MAKE: dict[str, Callable[..., bytes]] = {}
"""What makes one stream of each kind: it is given a source of chance."""


def kind(function: Callable[[random.Random], bytes]) -> Callable[[random.Random], bytes]:
    MAKE[function.__name__.replace("_", " ")] = function
    return function


# -- writing -------------------------------------------------------------------------------------


def name(function: Any) -> bytes:
    parts = function.__module__, function.__qualname__
    return b"".join(b"\x8c" + bytes((len(part),)) + part.encode() for part in parts) + b"\x93"


def plainly(value: Any) -> bytes:
    """Write a plain value without noting anything."""
    if isinstance(value, bytes) and value.startswith(b"!"):
        return value[1:]  # opcodes
    if type(value) is tuple:
        return b"(" + b"".join(map(plainly, value)) + b"t"
    if type(value) is list:
        return b"](" + b"".join(map(plainly, value)) + b"e"
    pickler_made = pickle.dumps(value, 5)[2:-1]
    if pickler_made[:1] == b"\x95":
        pickler_made = pickler_made[9:]
    return pickler_made if type(value) is int else pickler_made.removesuffix(b"\x94")


def op(opcodes: bytes) -> bytes:
    """Let opcodes stand where a value would."""
    return b"!" + opcodes


def call(function: Any, *args: Any) -> bytes:
    return op(name(function) + plainly(tuple(args)) + b"R")


def get(number: int) -> bytes:
    return op(b"j" + struct.pack("<I", number))


def noted(*values: Any) -> bytes:
    """Write values that can be referred to by their numbers, and drop them."""
    return b"".join(plainly(value) + b"\x940" for value in values)


def stream(value: Any, before: bytes = b"") -> bytes:
    return b"\x80\x05" + before + plainly(((value,), ())) + b"."


def as_key(chance: random.Random, key: bytes) -> Any:
    """Put opcodes of a key where it is hashed."""
    return chance.choice(
        [
            op(b"}" + key + b"Ns"),
            op(b"}(" + key + b"Nu"),
            op(b"\x8f(" + key + b"\x90"),
            op(b"(" + key + b"\x91"),
            op(plainly(call(plain.make_counter)) + b"(" + key + b"K\x01u"),
            op(plainly(call(plain.make_ordered)) + key + b"K\x01s"),
            call(frames.make_index, "Index", an_array(chance, "<i8", 3), op(key), None),
        ]
    )


def of_keys(chance: random.Random, keys: list[bytes]) -> Any:
    """Put many keys into one container, in batches of any size."""
    batch = chance.choice([100, 1000, 1000, len(keys)])
    batches = [keys[n : n + batch] for n in range(0, len(keys), batch)]
    pairs = b"".join(b"(" + b"".join(key + b"N" for key in each) + b"u" for each in batches)
    return chance.choice(
        [
            op(b"}" + pairs),
            op(b"}" + b"".join(key + b"Ns" for key in keys)),
            op(b"\x8f" + b"".join(b"(" + b"".join(each) + b"\x90" for each in batches)),
            op(b"(" + b"".join(keys) + b"\x91"),
            op(plainly(call(plain.make_counter)) + pairs),
            op(plainly(call(plain.make_ordered)) + pairs),
            op(plainly(call(plain.make_defaultdict, None)) + pairs),
            categories(keys),
            levels(keys),
        ]
    )


def object_array(items: list[bytes]) -> bytes:
    made = plainly(call(arrays.make_object_array, "|O", (len(items),), False, bytearray(len(items) // 8 + 1)))
    listed = b"](" + b"".join(items) + b"e"
    fill = name(arrays.fill_object_array) + b"(h\x00(" + listed + b"\x88ttR"
    return made + b"\x94" + fill + b"0"


def categories(keys: list[bytes]) -> bytes:
    made = name(scalars.make_category_dtype) + b"(" + name(frames.make_index) + b"("
    return op(made + plainly("Index") + object_array(keys) + b"NNtR\x88tR")


def levels(keys: list[bytes]) -> bytes:
    level = name(frames.make_index) + b"(" + plainly("Index") + object_array(keys) + b"NNtR"
    codes = plainly(call(arrays.make_array, bytes(8), "<i8", (1,), False, True))
    return op(name(frames.make_levels) + b"(](" + level + b"e](" + codes + b"e](NetR")


def an_array(chance: random.Random, dtype: str = "<i8", size: int = 8) -> bytes:
    return call(arrays.make_array, bytes(np.dtype(dtype).itemsize * size), dtype, (size,), False, True)


def a_range(size: int) -> bytes:
    return call(frames.make_range, 0, size, 1, None)


def a_view(dtype: str, size: int) -> bytes:
    """Write an array that shows eight bytes again and again."""
    root = call(arrays.make_array, bytes(16), dtype, (16 // np.dtype(dtype).itemsize,), False, True)
    return call(arrays.make_view, root, dtype, ((size,), (0,), 0), True)


# -- keys ----------------------------------------------------------------------------------------


@kind
def tuples_that_share(chance: random.Random) -> bytes:
    width, depth = chance.choice([(2, 60), (3, 40), (100, 10), (1000, 3), (4000, 2), (10, 7)])
    done = b"(" + b"N" * width + b"t\x94"
    for number in range(depth):
        refer = b"j" + struct.pack("<I", number)
        done += b"0(" + refer * width + b"t\x94"
    return stream(as_key(chance, done))


@kind
def tuples_that_share_behind_a_popped_mark(chance: random.Random) -> bytes:
    done = b"(0N\x85\x94"
    for number in range(50):
        done += b"0(0" + (b"j" + struct.pack("<I", number)) * 2 + b"\x86\x94"
    return stream(as_key(chance, done))


BETWEEN = [b"K\x000", b"N0", b"(1", b"(0", b"\x95" + bytes(8), b"\x80\x05", b"N0\x95" + bytes(8)]
"""Opcodes that leave on top what lay there."""


def noted_later(depth: int, between: bytes) -> bytes:
    """Write pairs of the one before, of which each is noted a few opcodes after it was made."""
    done = b"N\x85" + between + b"\x94"
    for number in range(depth):
        done += b"0" + (b"h" + bytes((number,))) * 2 + b"\x86" + between + b"\x94"
    return done


@kind
def tuples_that_are_noted_later(chance: random.Random) -> bytes:
    return stream(as_key(chance, noted_later(60, chance.choice(BETWEEN))))


def long_integer(number: int) -> bytes:
    data = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes((len(data),)) + data


@kind
def integers_of_one_hash(chance: random.Random) -> bytes:
    first, count = chance.randrange(1 << 60), chance.choice([3_000, 12_000])
    return stream(of_keys(chance, [long_integer(first + n * PRIME) for n in range(count)]))


@kind
def integers_of_unlucky_hashes(chance: random.Random) -> bytes:
    """Write integers of distinct hashes that all look for a place in the same order."""
    bits, count = 14, 8_000
    mask = (1 << bits) - 1
    keys: list[bytes] = []
    target = chance.randrange(mask)
    for high in range(1, count + 1):
        upper = high << bits
        place, perturb = 0, upper
        while perturb:
            perturb >>= 5
            place = (place * 5 + perturb + 1) & mask
        keys.append(long_integer(upper | ((target - place) & mask)))
    return stream(of_keys(chance, keys))


@kind
def floats_in_tuples_of_one_hash(chance: random.Random) -> bytes:
    alike = [b"G" + struct.pack(">d", 2.0 ** (61 * n)) for n in range(-8, 8)]
    keys = [
        b"".join(chance.choice(alike) for _ in range(3)) + b"\x87"
        for _ in range(chance.choice([1_000, 4_000]))
    ]
    return stream(of_keys(chance, keys))


@kind
def tuples_of_one_hash(chance: random.Random) -> bytes:
    one, two = b"J" + struct.pack("<i", -1), b"J" + struct.pack("<i", -2)
    count = chance.choice([1_000, 3_000])
    keys = [b"(" + b"".join(two if n >> bit & 1 else one for bit in range(17)) + b"t" for n in range(count)]
    return stream(of_keys(chance, keys))


@kind
def numbers_of_the_library_of_one_hash(chance: random.Random) -> bytes:
    first, count = chance.randrange(1 << 60), chance.choice([1_000, 4_000])
    make: Callable[[int], Any] = chance.choice(
        [
            lambda n: op(name(decimal.Decimal) + plainly((str(n),)) + b"R"),
            lambda n: call(plain.make_fraction, n, 1),
            lambda n: call(plain.make_uuid, n % (1 << 128)),
        ]
    )
    return stream(of_keys(chance, [plainly(make(first + n * PRIME)) for n in range(count)]))


@kind
def integers_of_pandas_in_one_place(chance: random.Random) -> bytes:
    """Write numbers of 64 bits whose halves cancel out in the hash of pandas' table (`khash.h`)."""
    count = 20_000
    found = np.zeros(count, np.uint64)
    for n in range(count):
        found[n] = ((n ^ n << 11) << 33) | n
    data = call(arrays.make_array, found.astype("<u8").tobytes(), "<u8", (count,), False, True)
    index = call(frames.make_index, "Index", data, None, None)
    return stream(call(scalars.make_category_dtype, index, True))


# -- sizes that few bytes say --------------------------------------------------------------------

SIZES = [10_000_000, 700_000_000, 1 << 40]


def places(chance: random.Random, values: Any) -> list[Any]:
    """Give values to each constructor that takes an array or an index."""
    three = a_range(3)
    text = call(scalars.make_dtype, "StringDtype", ("python", float("nan")))
    arrow_text = call(scalars.make_dtype, "StringDtype", ("pyarrow", float("nan")))
    integers = call(scalars.make_dtype, "SparseDtype", ("int64", 0))
    return [
        call(frames.make_series, values, values, None),
        call(frames.make_series, values, three, None),
        call(frames.make_frame, [(values, an_array(chance, size=1))], values, three),
        call(frames.make_frame, [(an_array(chance), values)], three, values),
        call(frames.make_levels, [values], [an_array(chance)], ["a"]),
        call(frames.make_levels, [three], [values], ["a"]),
        call(frames.make_levels, [values, values], [values, values], ["a", "b"]),
        call(frames.make_index, "Index", values, None, None),
        call(frames.make_index, "DatetimeIndex", values, None, call(scalars.make_offset, "Day", {"n": 1})),
        call(frames.make_categorical, values, call(scalars.make_category_dtype, three, False)),
        call(frames.make_categorical, an_array(chance), call(scalars.make_category_dtype, values, False)),
        call(scalars.make_category_dtype, values, True),
        call(frames.make_times, "DatetimeArray", values, op(plainly(call(arrays.make_dtype, "<M8[ns]")))),
        call(frames.make_periods, values, call(scalars.make_dtype, "PeriodDtype", ("D",))),
        call(frames.make_masked, "IntegerArray", values, values),
        call(frames.make_intervals, values, values, "left", None),
        call(frames.make_sparse, values, values, 1 << 30, integers),
        call(frames.make_sparse, an_array(chance), values, 1 << 40, integers),
        call(frames.make_strings, text, values),
        call(frames.make_strings, arrow_text, values),
        call(frames.make_wrapped, values),
        call(arrays.make_records, values),
        call(arrays.make_masked, values, values, an_array(chance, size=1), False),
        call(frames.make_arrow, text, values),
    ]


@kind
def ranges_made_into_columns(chance: random.Random) -> bytes:
    return stream(chance.choice(places(chance, a_range(chance.choice(SIZES)))))


@kind
def views_made_into_columns(chance: random.Random) -> bytes:
    dtype = chance.choice(["<i8", "|b1", "<f8", "|i1", "<M8[ns]"])
    return stream(chance.choice(places(chance, a_view(dtype, chance.choice(SIZES)))))


@kind
def sparse_values_made_dense(chance: random.Random) -> bytes:
    integers = call(scalars.make_dtype, "SparseDtype", ("int64", 0))
    sparse = call(frames.make_sparse, an_array(chance, size=1), an_array(chance, "<i4", 1), 1 << 30, integers)
    return stream(chance.choice(places(chance, sparse)))


@kind
def items_of_no_bytes(chance: random.Random) -> bytes:
    dtype = chance.choice(["|S0", "|V0", "<U0"])
    size = chance.choice([1 << 20, 1 << 40])
    made = call(arrays.make_array, b"", dtype, (size,), False, True)
    return stream(chance.choice([made, *places(chance, made)]))


@kind
def objects_in_large_arrays(chance: random.Random) -> bytes:
    room = bytearray(chance.choice([1, 100_000]))
    return stream(
        call(arrays.make_object_array, "|O", (chance.choice([8 * len(room), 1 << 40]),), False, room)
    )


@kind
def large_integers(chance: random.Random) -> bytes:
    size = chance.choice([1_000, 60_000])
    data = chance.randbytes(size - 1) + b"\x01"
    number = b"\x8b" + struct.pack("<I", size) + data
    other = chance.choice(
        [
            number,
            name(plain.make_fraction) + number + number + b"\x86R",
            name(decimal.Decimal) + plainly(("9" * size,)) + b"R",
            name(decimal.Decimal) + plainly((f"1E+{10**18 - 1}",)) + b"R",
            name(range) + b"K\x00" + number + b"K\x01\x87R",
            name(plain.make_uuid) + number + b"\x85R",
        ]
    )
    return stream(chance.choice([op(other), as_key(chance, other)]))


@kind
def moments_and_offsets(chance: random.Random) -> bytes:
    many = chance.choice([10**9, 10**18, 10**30])
    offset = chance.choice(
        ["Day", "BusinessHour", "CustomBusinessDay", "FY5253Quarter", "Easter", "BusinessDay"]
    )
    made = call(scalars.make_offset, offset, {"n": many})
    times = call(
        frames.make_times,
        "DatetimeArray",
        an_array(chance, "<M8[ns]", 1000),
        call(arrays.make_dtype, "<M8[ns]"),
    )
    return stream(
        chance.choice(
            [
                made,
                call(frames.make_index, "DatetimeIndex", times, None, made),
                call(scalars.make_period, many, made),
            ]
        )
    )


# -- repeats -------------------------------------------------------------------------------------


@kind
def one_argument_given_again_and_again(chance: random.Random) -> bytes:
    size, times = chance.choice([(100_000, 2_000), (10_000, 20_000), (1_000, 10_000)])
    text = "x" * size
    function, args, value = chance.choice(
        [
            (plain.make_text_buffer, (get(1), 0), text),
            (plain.make_byte_buffer, (get(1), 0), bytearray(size)),
            (plain.make_path, ("posix", get(1)), text),
            (plain.make_pattern, (get(1), 0), text),
            (plain.make_numbers, ("b", get(1)), bytes(size)),
            (plain.make_exception, ("ValueError", get(1)), (None,) * (size // 8)),
            (plain.make_random, (get(1),), random.Random(1).getstate()),
            (arrays.make_array, (get(1), "|u1", (size,), False, True), bytes(size)),
            (arrays.make_scalar, (f"|S{size}", get(1)), bytes(size)),
            (arrays.make_text, (get(1),), text),
            (arrays.make_dtype, (get(1),), "i4," * (size // 100)),
            (Builder.partial, (call(Builder.named, "builtins.int"), get(1), op(b"}")), (None,) * (size // 8)),
            (tables.make_schema, (get(1),), bytes(size)),
            (Builder.tuple_class, ("C", ("a", "b", "c"), ()), None),
            (tables.make_figure, (op(b"}"),), None),
            (Builder.type_variable, ("T", (None,), (False, False)), None),
            (plain.make_address, ("IPv6Network", "::/64"), None),
            (frames.make_range, (0, 5, 1, None), None),
            (scalars.make_zone, (), None),
            (Builder.function, (text[:100], "f", (), (), call(Builder.namespace)), None),
        ]
    )
    before = name(function) + b"\x940" + noted(value)
    one = b"h\x00" + plainly(tuple(args)) + b"R0"
    times = max(1, min(times, 20_000 // len(one)))
    return stream(None, before + one * times)


@kind
def one_stream_loaded_again_and_again(chance: random.Random) -> bytes:
    inner = b"\x80\x05](" + b"]" * chance.choice([1_000, 50_000]) + b"e."
    before = name(Builder.fill_namespace) + b"\x940" + noted(inner)
    one = b"h\x00(" + plainly(call(Builder.namespace)) + b"}h\x01))tR0"
    return stream(None, before + one * 500)


@kind
def one_list_in_many_instances(chance: random.Random) -> bytes:
    size = chance.choice([100, 10_000])
    before = name(Builder.instance) + b"\x940" + noted([None] * size)
    one = b"h\x00" + plainly((call(Builder.named, "builtins.list"), (get(1),))) + b"R0"
    return stream(None, before + one * 500)


# -- descriptions --------------------------------------------------------------------------------


@kind
def descriptions_that_share(chance: random.Random) -> bytes:
    width, depth = chance.choice([(2, 60), (100, 10), (12, 7)])
    done = noted("<i8")
    for number in range(depth):
        done += noted(("fields", [(f"f{n}", get(number), 0) for n in range(width)], 8, False))
    return stream(call(arrays.make_dtype, get(depth)), done)


@kind
def figures_that_share(chance: random.Random) -> bytes:
    width, depth = chance.choice([(2, 60), (100, 10), (12, 7)])
    done = noted([1.5])
    for number in range(depth):
        done += noted([get(number)] * width)
    data = {"type": "scatter"}
    trace = op(plainly(data) + b"\x8c\x01x" + plainly(get(depth)) + b"s")
    return stream(call(tables.make_figure, op(b"}\x8c\x04data" + plainly([trace]) + b"s")), done)


@kind
def patterns(chance: random.Random) -> bytes:
    many = chance.choice([1, 20, 500])
    pattern = chance.choice(
        [
            "[\\x00-\\U0010ffff]" * many,
            f"[{chr(1)}-{chr(0x10FFFF)}]" * many,
            "(?i:[\\u0100-\\uffff])" * many,
            "(" * many * 100 + ")" * many * 100,
            "(?:(?:(?:a{1,60000}){1,60000}){1,60000}){1,60000}" * many,
            "|".join(f"a{n}" for n in range(many * 200)),
            "(?P<a>x)" + "(?P=a)" * many,
            "[\\D-\\W\\S]" * many,
            "[" + "a-z" * many * 100 + "]",
        ]
    )
    return stream(call(plain.make_pattern, pattern, chance.choice([0, 2, 2 | 32, 64])))


# -- arrow ---------------------------------------------------------------------------------------


def arrow_bytes(chance: random.Random) -> bytes:
    import pyarrow as pa

    long_text = "x" * chance.choice([1_000, 100_000])
    size = chance.choice([1_000, 10_000])
    view = pa.array([long_text], pa.string_view())
    views = pa.Array.from_buffers(
        pa.string_view(),
        size,
        [None, pa.py_buffer(bytes(view.buffers()[1])[:16] * size), *view.buffers()[2:]],
    )
    huge = pa.array([(1 << 31) - 1], pa.int32())
    column = chance.choice(
        [
            lambda: views,
            lambda: pa.nulls((1 << 31) - 1),
            lambda: pa.RunEndEncodedArray.from_arrays(huge, pa.array([long_text])),
            lambda: pa.DictionaryArray.from_arrays(pa.array([0] * size, pa.int8()), pa.array([long_text])),
            lambda: pa.array([{}] * size, pa.struct([])),
        ]
    )()
    sink = pa.BufferOutputStream()
    table = pa.table({"": column})
    options = pa.ipc.IpcWriteOptions(compression=chance.choice([None, None, "zstd", "lz4"]))
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


@kind
def arrow_tables(chance: random.Random) -> bytes:
    data = arrow_bytes(chance)
    digest = hashlib.blake2b(data, digest_size=16).digest()
    text = call(scalars.make_dtype, "StringDtype", ("pyarrow", float("nan")))
    column = call(tables.make_chunked, data)
    arrow = call(scalars.make_dtype, "ArrowDtype", (call(tables.make_arrow_type, data),))
    made = chance.choice(
        [
            call(tables.make_table, data),
            column,
            call(tables.make_arrow_array, data),
            call(tables.make_arrow_scalar, data),
            call(tables.make_polars, data, digest),
            call(tables.make_polars_series, data, digest),
            call(frames.make_arrow, text, column),
            call(frames.make_arrow, arrow, column),
            call(
                scalars.make_category_dtype,
                call(frames.make_index, "Index", call(frames.make_arrow, arrow, column), None, None),
                True,
            ),
            chance.choice(places(chance, column)),
        ]
    )
    return stream(made)


# -- containers ----------------------------------------------------------------------------------


@kind
def empty_containers(chance: random.Random) -> bytes:
    one = chance.choice(
        [b"]", b"}", b"\x8f", b"()\x91", b"\x8f(N\x90", b"}NNs", b"]\x94", b"\x8f\x94", b")\x85"]
    )
    return stream(op(b"(" + one * chance.choice([1_000, 60_000]) + b"t"))


DEEPENS = [b"K\x01\x86", b"K\x01\x8c\x01a\x87", b"N\x94\x86\x94", b"K\x010\x85"]
"""Opcodes that put what lies on top into a tuple, beside items of its own."""


@kind
def deep_nesting(chance: random.Random) -> bytes:
    depth = chance.choice([1_000, 60_000])
    return stream(
        chance.choice(
            [
                op(b"]" * depth + b"a" * (depth - 1)),
                as_key(chance, b")" + b"\x85" * depth),
                as_key(chance, b"(" * depth + b"N" + b"t" * depth),
                as_key(chance, b"(" * depth + b"N" + b"\x91" * depth),
                as_key(chance, b"(0" * depth + b")" + b"\x85" * depth),
                as_key(chance, b"N\x85" + chance.choice(DEEPENS) * depth),
            ]
        )
    )


@kind
def damaged(chance: random.Random) -> bytes:
    import pandas as pd

    frame = pd.DataFrame({"a": range(50), "b": list("xy") * 25, "c": pd.Categorical(list("xyzxy") * 10)})
    values = [frame, {"a": [1, 2.5, "text"], (1, 2): {3, 4}}, pd.date_range("2020", periods=9), np.arange(9)]
    (group,) = encode({"x": chance.choice(values)}, allow=Allow())
    data = bytearray(group.stream)
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


# -- measuring -----------------------------------------------------------------------------------


def streams(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Make streams, of all kinds in turn."""
    chance = random.Random(seed)
    names = list(MAKE)
    for n in range(count):
        yield names[n % len(names)], MAKE[names[n % len(names)]](chance)


def decoded(data: bytes) -> str:
    """Decode a stream; say what came of it."""
    try:
        decode(Group(names=("x",), stream=data), allow=Allow([uuid.UUID, fractions.Fraction]))
    except StateCorrupt as error:
        return str(error)
    return "decoded"


def measured(data: bytes) -> tuple[float, int, str]:
    """Return the seconds and the bytes that a stream takes, and what came of it."""
    import pyarrow as pa

    begun = time.thread_time()
    came = decoded(data)
    seconds = time.thread_time() - begun
    pool = pa.default_memory_pool()
    most = pool.max_memory()
    tracemalloc.start()
    decoded(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, peak + pool.max_memory() - most, came


def main(seed: int, count: int, only: str = "") -> None:
    import resource

    import pandas as pd
    import plotly.graph_objects as go
    import polars as pl

    pd.Series(["a"]), go.Figure({}), pl.DataFrame({"a": [1]})  # what the first use of each costs is nobody's
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    for kind_name, data in streams(seed, count):
        if only and kind_name != only:
            continue
        print(json.dumps([kind_name, len(data), *measured(data)]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
