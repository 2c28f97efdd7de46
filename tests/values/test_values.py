"""Values go to bytes and come back as they were."""

from __future__ import annotations

import array
import collections
import datetime as dt
import decimal
import enum
import fractions
import importlib.util
import io
import ipaddress
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import types
import uuid
import zoneinfo
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pandas.tseries.holiday
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agex.values import Allow, Group, cut, decode, encode, from_recipe
from agex.values.adapters import stdlib as plain


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    left: int
    right: Any = None


@dataclass
class Order:
    number: int
    lines: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fixed:
    number: int


class Item(BaseModel):
    name: str
    tags: list[str] = []


class Reduced:
    """Says itself how it is pickled."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.cache = "not kept"

    def __reduce__(self) -> Any:
        return Reduced, (self.size,)


class Stateful:
    def __init__(self) -> None:
        self.a, self.lock = 1, object()

    def __getstate__(self) -> Any:
        return {"a": self.a}

    def __setstate__(self, state: Any) -> None:
        self.a, self.lock = state["a"], None


class Colors(list):
    pass


ALLOW = Allow([Color, Access, Pair, Order, Fixed, Item, Reduced, Stateful, Colors])


def stored(variables: dict[str, Any], allow: Allow = ALLOW) -> dict[str, Any]:
    """Encode, cut, put together and decode variables."""
    store: dict[bytes, bytes] = {}
    loaded: dict[str, Any] = {}
    for group in encode(variables, allow=allow):
        assert dict(group.lost) == {}
        made = cut(group, lambda data: __import__("hashlib").blake2b(data, digest_size=32).digest())
        store |= {address: bytes(data) for address, data in made.chunks.items()}
        loaded |= decode(from_recipe(made.payload, store.__getitem__), allow=allow)
    return loaded


def again(value: Any) -> Any:
    return stored({"x": value})["x"]


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")

PLAIN: dict[str, Any] = {
    "None": None,
    "booleans": [True, False],
    "ints": [0, -1, 255, 65536, 2**31, -(2**63), 10**400, -(10**400)],
    "floats": [0.0, -0.0, 1e308, 5e-324, math.inf, -math.inf],
    "complex": 1 + 2j,
    "text": "ä€𝄞\ud800\x00",
    "long text": "ä" * 300_000,
    "bytes": b"\x00\xff" * 5,
    "long bytes": bytes(range(256)) * 2000,
    "bytearray": bytearray(b"abc"),
    "long bytearray": bytearray(300_000),
    "range": range(3, 100, 7),
    "slice": slice(1, None, 2),
    "ellipsis": ...,
    "NotImplemented": NotImplemented,
    "tuple": (1, (2, ("x",))),
    "set": {1, "a", (2, 3)},
    "frozenset": frozenset([1, frozenset([2])]),
    "empty": [[], {}, (), set(), frozenset(), "", b"", bytearray()],
    "nested": {"a": [{"b": ({"c": {1: 2}},)}]},
    "keys": {None: 1, True: 2, 2.5: 3, (1, 2): 4, b"k": 5},
    "date": dt.date(2020, 2, 29),
    "datetime": dt.datetime.fromisoformat("2020-01-01T12:30:01.000005"),
    "aware": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    "offset": dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2, minutes=30), "here")),
    "zone": dt.datetime(2020, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
    "time": dt.time(1, 2, 3, tzinfo=BERLIN),
    "timedelta": dt.timedelta(-1, 5, 6),
    "timezone": dt.UTC,
    "ZoneInfo": BERLIN,
    "decimals": [decimal.Decimal("1.10"), decimal.Decimal("-Infinity"), decimal.Decimal("1E+50")],
    "fraction": fractions.Fraction(1, 3),
    "uuid": uuid.UUID(int=5),
    "paths": [pathlib.Path("a/b"), pathlib.PurePosixPath("/x"), pathlib.PureWindowsPath("c:/y")],
    "pattern": re.compile(r"a(b)?", re.IGNORECASE),
    "addresses": [ipaddress.ip_address("::1"), ipaddress.ip_network("10.0.0.0/8")],
    "deque": collections.deque([1, [2]], maxlen=5),
    "OrderedDict": collections.OrderedDict(b=1, a=[2]),
    "Counter": collections.Counter("abca"),
    "defaultdict": collections.defaultdict(list, a=[1]),
    "ChainMap": collections.ChainMap({"a": 1}, {"b": 2}),
    "SimpleNamespace": types.SimpleNamespace(a=[1], b=types.SimpleNamespace()),
    "array": array.array("d", [1.5, 2.5]),
    "types": {"a": int, "b": [str, ValueError, type(None), dict]},
    "members": [Color.RED, Color.BLUE, Access.READ | Access.WRITE, Access(0)],
    "named tuple": [Pair(1), Pair(2, [3])],
    "dataclass": Order(1, [Order(2)]),
    "frozen dataclass": {Fixed(1): Fixed(2)},
    "pydantic": Item(name="a", tags=["b"]),
    "list subclass": Colors(["r"]),
    "numpy scalars": [
        np.float64(1.5),
        np.int8(-3),
        np.bool_(True),
        np.datetime64("2020-01-01"),
        np.str_("x"),
    ],
    "dtypes": [np.dtype("f4"), np.dtype([("a", "<i4"), ("b", "S3", (2,))]), np.dtype("M8[ms]")],
    "many dicts": [{"id": i, "name": f"n{i}"} for i in range(20_000)],
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_value_comes_back_equal_and_of_its_type(name: str) -> None:
    value = PLAIN[name]
    got = again(value)
    assert type(got) is type(value)
    assert got == value
    assert repr(got) == repr(value)


def test_nan_stays_nan_and_signs_of_zeros_stay() -> None:
    got = again([math.nan, -0.0])
    assert math.isnan(got[0])
    assert math.copysign(1, got[1]) == -1


def test_a_deque_keeps_its_length_and_a_factory_its_function() -> None:
    got = again([collections.deque([1], 3), collections.defaultdict(dict)])
    assert got[0].maxlen == 3
    assert got[1]["new"] == {}


def test_an_exception_keeps_arguments_and_notes() -> None:
    error = FileNotFoundError(2, "no such", "file.txt")
    error.add_note("look again")
    got = again(
        [
            error,
            KeyError("k"),
            ExceptionGroup("g", [ValueError(1)]),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ]
    )
    assert [type(each) for each in got] == [FileNotFoundError, KeyError, ExceptionGroup, UnicodeDecodeError]
    assert (got[0].filename, got[0].__notes__, got[1].args) == ("file.txt", ["look again"], ("k",))


def test_open_texts_in_memory_keep_their_place() -> None:
    text, data = io.StringIO("one\r\ntwo\n"), io.BytesIO(b"abc")
    text.readline()
    data.read(1)
    got = again([text, data])
    assert (got[0].read(), got[1].read()) == ("two\n", b"bc")


@pytest.mark.parametrize("newline", [None, "", "\n", "\r", "\r\n"])
def test_open_texts_in_memory_keep_how_their_lines_end(newline: str | None) -> None:
    def use(text: io.StringIO) -> tuple[str, ...]:
        text.write("\r\nb")
        text.seek(0)
        return text.getvalue(), *text

    value, other = (io.StringIO("a\rb\nc\r\n", newline=newline) for _ in range(2))
    assert use(again(value)) == use(other)


def test_open_texts_that_were_kept_without_their_line_ends_still_come_back() -> None:
    made = plain.make_text_buffer("a\r\nb", 3)
    assert (made.getvalue(), made.tell(), made.read()) == ("a\r\nb", 3, "b")


def test_random_generators_go_on_where_they_were() -> None:
    made = (
        random.Random(3),
        np.random.default_rng(3),
        np.random.RandomState(3),
        np.random.Generator(np.random.MT19937(1)),
    )
    for each in made:
        each.random()
    got = again(list(made))
    assert [float(each.random()) for each in got] == [float(each.random()) for each in made]
    assert got[1].spawn(1)[0].random() == made[1].spawn(1)[0].random()


def test_a_generator_that_could_not_be_loaded_is_lost() -> None:
    wide = np.random.Generator(np.random.PCG64(np.random.SeedSequence(1, pool_size=65)))
    long = np.random.Generator(np.random.PCG64(1 << 5000))
    other = np.random.RandomState(np.random.PCG64(1))
    (group,) = encode({"x": [wide, long, other, np.random.default_rng([1, 2])]}, allow=ALLOW)
    assert [lost.path for lost in group.lost["x"]] == ["x[0]", "x[1]", "x[2]"]


def test_classes_of_the_host_may_say_how_they_are_pickled() -> None:
    got = again([Reduced(3), Stateful()])
    assert (got[0].size, got[0].cache, got[1].a, got[1].lock) == (3, "not kept", 1, None)


def test_a_value_that_holds_itself_comes_back() -> None:
    looped: list[Any] = [1]
    looped.append(looped)
    table: dict[str, Any] = {}
    table["self"] = (table,)
    order = Order(1)
    order.lines.append(order)
    objects = np.empty(1, object)
    objects[0] = objects
    got = stored({"a": looped, "b": table, "c": order, "d": objects})
    assert got["a"][1] is got["a"]
    assert got["b"]["self"][0] is got["b"]
    assert got["c"].lines[0] is got["c"]
    assert got["d"][0] is got["d"]


# -- arrays --------------------------------------------------------------------------------------

ARRAYS: dict[str, Any] = {
    "floats": np.arange(5.0),
    "large": np.arange(5000.0),
    "Fortran": np.asfortranarray(np.arange(6000.0).reshape(60, 100)),
    "strided": np.arange(10_000)[::3],
    "reversed": np.arange(5000)[::-1],
    "no dimension": np.array(3.5),
    "empty": np.empty((0, 3)),
    "structured": np.array([(1, b"a"), (2, b"b")], dtype=[("n", "i4"), ("s", "S2")]),
    "aligned": np.zeros(3, np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "times": np.array(["2020-01-01", "NaT"], "M8[ns]"),
    "spans": np.arange(3).astype("m8[s]"),
    "texts": np.array(["a", "bcd"]),
    "bytes": np.array([b"a"]),
    "booleans": np.array([True, False]),
    "complex": np.array([1j]),
    "big endian": np.arange(3, dtype=">i4"),
    "half": np.arange(3, dtype="f2"),
    "objects": np.array([1, "a", None], object),
    "objects in two dimensions": np.array([[1, 2], ["a", None]], object),
    "broadcast": np.broadcast_to(np.arange(3), (2, 3)),
    "no width": np.zeros(3, "S0"),
    "void": np.zeros(2, "V3"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_comes_back_equal(name: str) -> None:
    value = ARRAYS[name]
    got = again(value)
    assert (type(got), got.dtype, got.shape) == (type(value), value.dtype, value.shape)
    assert got.tobytes() == value.tobytes() if not value.dtype.hasobject else got.tolist() == value.tolist()
    assert got.flags.writeable == value.flags.writeable
    assert name != "Fortran" or got.flags.f_contiguous


def test_an_array_that_could_be_written_to_can_be_written_to() -> None:
    for size in (3, 5000):
        got = again(np.zeros(size))
        got[0] = 1
        assert got[0] == 1


def test_an_array_of_texts_of_any_length_comes_back() -> None:
    value = np.array(["a", "long" * 50], np.dtypes.StringDType())
    assert again(value).tolist() == value.tolist()
    missing = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    assert again(missing).tolist() == ["a", None]


@pytest.mark.parametrize("missing", [None, math.nan, "none", pd.NA], ids=repr)
def test_a_missing_text_stays_what_it_is(missing: Any) -> None:
    dtype = np.dtypes.StringDType(na_object=missing)
    value = np.array(["a", missing], dtype)
    got = again(value)
    assert got.dtype == dtype
    assert repr(got) == repr(value)
    assert got[1] is missing or isinstance(missing, (str, float))


def test_a_text_dtype_whose_missing_text_cannot_be_kept_is_lost() -> None:
    value = np.array(["a"], np.dtypes.StringDType(na_object=object()))
    (group,) = encode({"x": value}, allow=ALLOW)
    assert [lost.path for lost in group.lost["x"]] == ["x"]


DTYPES: dict[str, Any] = {
    "titles": np.dtype({"names": ["a", "b"], "formats": ["i4", "f8"], "titles": ["T", None]}),
    "metadata": np.dtype("i4", metadata={"unit": ("m", 1.5), "more": [None, {"a": b"b"}]}),
    "metadata of a type": np.dtype("O", metadata={"vlen": str}),
    "metadata of records": np.dtype([("a", np.dtype("i4", metadata={"u": 1}))], metadata={"v": 2}),
    "records": np.dtype((np.record, [("a", "i4"), ("b", "S2")])),
    "records with objects": np.dtype([("a", "O", (2,)), ("b", [("c", "O"), ("d", "M8[ns]")])]),
}


def _told(dtype: np.dtype[Any]) -> Any:
    fields = {name: (_told(part), *more) for name, (part, *more) in (dtype.fields or {}).items()}
    return dtype, dtype.type, dtype.metadata and dict(dtype.metadata), fields


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_keeps_what_it_says(name: str) -> None:
    dtype = DTYPES[name]
    value = np.zeros(2, dtype)
    got = again([dtype, value])
    assert _told(got[0]) == _told(got[1].dtype) == _told(dtype)
    assert repr(got[1]) == repr(value)


@pytest.mark.parametrize(
    "dtype",
    [np.dtype("i4", metadata={"a": object()}), np.dtype(("i4", {"low": ("u2", 0), "high": ("u2", 2)}))],
    ids=str,
)
def test_an_array_whose_dtype_says_more_than_can_be_kept_is_lost(dtype: Any) -> None:
    (group,) = encode({"x": np.zeros(2, dtype)}, allow=ALLOW)
    assert [lost.path for lost in group.lost["x"]] == ["x"]


def test_scalars_of_numpy_keep_their_type_and_length() -> None:
    record = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])[0]
    value = [record, np.str_("a\0"), np.str_("\ud800"), np.str_(""), np.bytes_(b"a\0"), np.bytes_(b"")]
    got = again(value)
    assert [type(each) for each in got] == [type(each) for each in value]
    assert got == value
    assert got[0].a == 1


def test_arrays_of_records_with_objects_come_back() -> None:
    value = np.zeros((2, 2), [("a", "O", (2,)), ("b", [("c", "O"), ("d", "M8[ns]")]), ("e", "i4")])
    value[0, 1]["a"][1] = [value]
    value["b"]["d"] = "2020-01-01T00:00:00.000000001"
    value["e"][1] = 7, 8
    got = again(value)
    assert got[0, 1]["a"][1][0] is got
    value[0, 1]["a"][1] = got[0, 1]["a"][1] = None
    assert repr(got) == repr(value)


def test_an_order_of_axes_comes_back() -> None:
    for dtype in (float, object):
        value = np.arange(24).astype(dtype).reshape(2, 3, 4).transpose(1, 2, 0)
        got = again(value.copy("K"))
        assert got.strides == value.strides
        assert got.tolist() == value.tolist()


def test_an_array_of_objects_that_cannot_be_written_to_comes_back_so() -> None:
    value = np.array([1, None], object)
    value.flags.writeable = False
    assert not again(value).flags.writeable


def test_an_array_that_numpy_warns_of_is_not_to_be_written_to() -> None:
    value = np.broadcast_arrays(np.arange(3), np.zeros((2, 1)))[0]
    got = again(value)
    assert got.tolist() == value.tolist()
    assert not got.flags.writeable


def test_objects_in_an_array_stay_the_same_objects() -> None:
    shared = [1]
    objects = np.array([None, None], object)
    objects[:] = [shared, shared]
    got = stored({"a": objects, "b": shared})
    assert got["a"][0] is got["a"][1] is got["b"]


def test_a_mapped_array_is_copied(tmp_path: pathlib.Path) -> None:
    mapped = np.memmap(tmp_path / "data", np.float64, "w+", shape=(2000,))
    mapped[:] = 7
    got = again(mapped)
    assert type(got) is np.ndarray
    assert got.sum() == 14_000


def test_records_and_masked_arrays_come_back() -> None:
    records = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0], fill_value=9)
    got = again([records, masked])
    assert got[0].a[0] == 1
    assert (got[1].mask.tolist(), got[1].filled().tolist()) == ([False, True, False], [1, 9, 3])
    assert not got[1].hardmask
    assert again(np.ma.array([1, 2], mask=[0, 1], hard_mask=True)).hardmask


# -- frames --------------------------------------------------------------------------------------

FRAMES: dict[str, Any] = {
    "numbers": pd.DataFrame({"a": [1, 2], "b": [1.5, None]}),
    "empty": pd.DataFrame(),
    "no rows": pd.DataFrame({"a": []}),
    "no columns": pd.DataFrame(index=[1, 2]),
    "large": pd.DataFrame(np.arange(30_000.0).reshape(3000, 10)),
    "mixed": pd.DataFrame({"a": [1, 2], "o": [[1], {"k": 2}], "c": [1, 2], "b": [True, False]}),
    "strings": pd.DataFrame({"s": ["x", None]}),
    "python strings": pd.DataFrame({"s": pd.array(["a", None], dtype="string[python]")}),
    "category": pd.DataFrame({"c": pd.Categorical(["u", "v", None], ["v", "u"], ordered=True)}),
    "nullable": pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "b": pd.array([True, None], dtype="boolean"),
            "f": pd.array([1.5, None], dtype="Float64"),
        }
    ),
    "times": pd.DataFrame(
        {
            "d": pd.to_datetime(["2020", None]),
            "e": pd.to_datetime(["2020", "2021"]),
            "t": pd.to_timedelta([1, 2]),
        }
    ),
    "zones": pd.DataFrame({"z": pd.date_range("2020", periods=2, tz="Europe/Berlin")}),
    "seconds": pd.DataFrame({"s": np.array(["2020", "2021"], "M8[s]")}),
    "periods": pd.DataFrame({"p": pd.period_range("2020", periods=2, freq="M")}),
    "intervals": pd.DataFrame({"i": pd.interval_range(0, 2)}),
    "sparse": pd.DataFrame({"s": pd.arrays.SparseArray([0, 1, 0])}),
    "levels": pd.DataFrame(
        {"a": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None])
    ),
    "columns of levels": pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([["a"], ["x", "y"]])),
    "dates as index": pd.DataFrame({"a": [1, 2, 3]}, index=pd.date_range("2020", periods=3, freq="D")),
    "equal names": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "series": pd.Series([1, 2], name="n", index=["x", "y"]),
    "texts": pd.Series(["a", None]),
    "objects": pd.Series([1, "a", None], dtype=object),
    "series of categories": pd.Series(["a"], dtype="category"),
    "index": pd.Index([3, 1], name="i"),
    "indexes": pd.CategoricalIndex(["a"]),
    "range": pd.RangeIndex(2, 9, 3, name="r"),
    "spans": pd.timedelta_range("1h", periods=3),
    "period index": pd.period_range("2020", periods=2),
    "interval index": pd.interval_range(0, 2),
    "zone index": pd.date_range("2020", periods=2, tz="UTC"),
}


if importlib.util.find_spec("pyarrow"):
    FRAMES["arrow"] = pd.DataFrame({"a": pd.array([1, None], dtype="int64[pyarrow]")})


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_comes_back_equal(name: str) -> None:
    value = FRAMES[name]
    got = again(value)
    check = {pd.DataFrame: pd.testing.assert_frame_equal, pd.Series: pd.testing.assert_series_equal}
    check.get(type(value), pd.testing.assert_index_equal)(got, value)  # type: ignore[operator]
    assert getattr(got, "freq", None) == getattr(value, "freq", None)
    assert getattr(getattr(got, "index", None), "freq", None) == getattr(
        getattr(value, "index", None), "freq", None
    )


@pytest.mark.parametrize(
    "name",
    [n for n, v in FRAMES.items() if isinstance(v, pd.DataFrame) and v.size and v.columns.nlevels == 1],
)
def test_a_frame_that_came_back_can_be_worked_with(name: str) -> None:
    got, value = again(FRAMES[name]), FRAMES[name].copy()
    for frame in (got, value):
        frame["new"] = 1
        frame.loc[frame.index[0], "new"] = 5
    pd.testing.assert_frame_equal(got, value)
    pd.testing.assert_frame_equal(pd.concat([got, got]), pd.concat([value, value]))


def test_what_a_frame_carries_beside_its_data_comes_back() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["source"] = ["web"]
    frame.flags.allows_duplicate_labels = False
    got = again(frame)
    assert (got.attrs, got.flags.allows_duplicate_labels) == ({"source": ["web"]}, False)


def test_frames_do_not_come_to_share_memory_that_they_copy_on_write() -> None:
    frame = pd.DataFrame({"a": np.arange(1000.0), "b": np.arange(1000.0)})
    got = stored({"df": frame, "part": frame[["a"]], "column": frame["a"], "copy": frame.copy(deep=False)})
    got["df"].iloc[0, 0] = 99
    assert (got["part"].iloc[0, 0], got["column"].iloc[0], got["copy"].iloc[0, 0]) == (0, 0, 0)


SCALARS = [
    pd.Timestamp("2020-01-01 12:00:00.123456789"),
    pd.Timestamp("2020", tz="Europe/Berlin"),
    pd.Timestamp("2020").as_unit("s"),
    pd.Timedelta("1 day 2 ns"),
    pd.Period("2020-01", "M"),
    pd.Interval(0, 1, "both"),
    pd.offsets.MonthEnd(2),
    pd.offsets.BusinessDay(1),
    pd.DateOffset(months=1, day=3),
    pd.CategoricalDtype(["a"], ordered=True),
    pd.Int64Dtype(),
    pd.DatetimeTZDtype("ns", "UTC"),
]


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_a_scalar_of_pandas_comes_back(value: Any) -> None:
    got = again(value)
    assert (type(got), got, repr(got)) == (type(value), value, repr(value))


BUSINESS = [
    pd.offsets.CustomBusinessDay(holidays=["2024-01-01", "2024-01-03"]),
    pd.offsets.CustomBusinessDay(2, weekmask="Sun Mon Wed"),
    pd.offsets.CustomBusinessDay(calendar=np.busdaycalendar("1110000", ["2024-01-02"])),
    pd.offsets.CustomBusinessDay(calendar=pandas.tseries.holiday.USFederalHolidayCalendar()),
    pd.offsets.CustomBusinessHour(start=["09:30", "13:00"], end=["12:00", "17:00"], holidays=["2024-01-02"]),
    pd.offsets.CustomBusinessMonthEnd(holidays=["2024-01-31"], weekmask="Mon Wed"),
    pd.offsets.CustomBusinessMonthBegin(normalize=True, holidays=["2024-02-01"]),
]


@pytest.mark.parametrize("value", BUSINESS, ids=lambda value: type(value).__name__)
def test_an_offset_of_business_days_counts_the_same_days_when_it_comes_back(value: Any) -> None:
    days = pd.date_range("2023-12-29 10:00", periods=60, freq=value)
    offset, index = again([value, days])
    start = pd.Timestamp("2023-12-29 10:00")
    assert (type(offset), offset, start + 7 * offset) == (type(value), value, start + 7 * value)
    assert (list(index), index.freq) == (list(days), value)


def test_an_offset_of_business_days_and_hours_comes_back() -> None:
    value = pd.offsets.CustomBusinessDay(weekmask="Sun Mon Wed", offset=dt.timedelta(hours=1))
    got = again(value)
    assert (got, repr(got), pd.Timestamp("2024") + got) == (value, repr(value), pd.Timestamp("2024") + value)


def test_zones_of_pytz_come_back() -> None:
    pytz = pytest.importorskip("pytz")
    berlin = pytz.timezone("Europe/Berlin")
    summer = berlin.localize(dt.datetime.fromisoformat("2020-07-01"))
    values = [
        berlin,
        pytz.UTC,
        pytz.FixedOffset(90),
        pytz.timezone("EST"),
        summer,
        pd.Timestamp("2020", tz=berlin),
    ]
    got = again(values)
    assert [repr(each) for each in got] == [repr(each) for each in values]


def test_constants_of_pandas_are_the_same_objects() -> None:
    got = again([pd.NA, pd.NaT])
    assert got[0] is pd.NA
    assert got[1] is pd.NaT


# -- other tables --------------------------------------------------------------------------------


def test_frames_of_polars_come_back() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, None], "s": ["x", "y"], "l": [[1], []], "d": [dt.date(2020, 1, 1), None]})
    got = again([frame, frame["s"], pl.DataFrame()])
    assert got[0].equals(frame)
    assert got[1].equals(frame["s"])
    assert got[2].is_empty()


def test_tables_of_pyarrow_come_back() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1, None], "s": ["x", "y"], "l": [[1], []]})
    values = [
        table,
        table.to_batches()[0],
        table["s"],
        table["s"].chunk(0),
        table.schema,
        pa.int64(),
        pa.scalar(3),
        pa.table({}),
    ]
    assert all(a.equals(b) and type(a) is type(b) for a, b in zip(again(values), values, strict=True))


def test_figures_of_plotly_come_back() -> None:
    go = pytest.importorskip("plotly.graph_objects")
    figure = go.Figure([go.Scatter(x=np.arange(3), y=[1, 2, 3])], layout={"title": {"text": "T"}})
    assert json.loads(again(figure).to_json()) == json.loads(figure.to_json())


# -- any value -----------------------------------------------------------------------------------

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.uuids()
    | st.complex_numbers(allow_nan=False)
    | st.sampled_from([Color.RED, Fixed(3)])
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.builds(Order, st.integers(), st.lists(inner, max_size=2))
        | st.builds(collections.deque, st.lists(inner, max_size=3))
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from("abc"), VALUES))
def test_any_variables_come_back_equal(variables: dict[str, Any]) -> None:
    assert stored(variables) == variables


@given(st.dictionaries(st.text(min_size=1, max_size=30), st.integers(), min_size=1, max_size=3))
def test_any_names_come_back(variables: dict[str, int]) -> None:
    encodable = {name: value for name, value in variables.items() if not re.search("[\ud800-\udfff]", name)}
    assert stored(encodable) == encodable


def test_nothing_of_a_library_is_imported_to_keep_plain_values() -> None:
    program = (
        "import sys\nfrom agex.values import Allow, decode, encode\n"
        "(g,) = encode({'x': [1, {'a': 2}]}, allow=Allow())\ndecode(g, allow=Allow())\n"
        "print([m for m in ('numpy', 'pandas', 'polars', 'pyarrow', 'pydantic') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from agex.errors import StateCorrupt

    (group,) = encode({"x": np.zeros(2)}, allow=ALLOW)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(StateCorrupt, match="needs numpy"):
        decode(Group(names=group.names, stream=group.stream), allow=ALLOW)
