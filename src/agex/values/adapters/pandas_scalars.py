"""Dtypes and scalars of pandas: taken apart, and made again.

Nothing here imports pandas until a value of it comes by.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from agex.values.adapters import library
from agex.values.base.decode_budget import CALL, spend
from agex.values.base.handle import unwrapped

__all__ = ["BY_NAME", "CONSTRUCTORS", "take_offset", "take_zone"]

Kind = Callable[[Any, Any], Any]


def take_category_dtype(_encoder: Any, dtype: Any) -> Any:
    return make_category_dtype, (dtype.categories, dtype.ordered)


def make_category_dtype(categories: Any, ordered: bool | None) -> Any:
    pd = library("pandas")
    if categories is not None:
        if not isinstance(categories, pd.Index):
            raise TypeError(f"categories from a {type(categories).__name__}")
        spend(CALL + 16 * len(categories))
        require_distinct(categories)
    return pd.CategoricalDtype(categories, ordered)


def require_distinct(index: Any) -> None:
    """Check that pandas finds no item of an index twice, without the table that it makes for that.

    Items that lie unluckily in that table cost the square of their number. Sorted numbers do not, and the
    answer is kept with the index.

    Raises:
        ValueError: an item, or a hash, is there too often.
    """
    pd = library("pandas")
    np = library("numpy")
    values = index.array
    if isinstance(index, (pd.RangeIndex, pd.MultiIndex)) or len(index) <= _FEW:
        return
    if index.dtype == object:
        numbers = np.fromiter(map(hash, values), np.int64, len(index))
    else:
        numbers = np.asarray(values._ndarray if hasattr(values, "_ndarray") else values)
        if numbers.dtype == object:
            numbers = np.fromiter(map(hash, numbers), np.int64, len(index))
    if np.all(numbers[1:] > numbers[:-1]):
        return
    _, counts = np.unique(numbers, return_counts=True)
    if counts.max() > _FEW:
        raise ValueError("an index of items that have one hash")


_FEW = 100
"""Items that may have one hash."""


_DTYPES: dict[str, tuple[str, ...]] = {
    "DatetimeTZDtype": ("unit", "tz"),
    "PeriodDtype": ("freq",),
    "IntervalDtype": ("subtype", "closed"),
    "SparseDtype": ("subtype", "fill_value"),
    "StringDtype": ("storage", "na_value"),
    "ArrowDtype": ("pyarrow_dtype",),
    **dict.fromkeys(
        "BooleanDtype Int8Dtype Int16Dtype Int32Dtype Int64Dtype UInt8Dtype UInt16Dtype UInt32Dtype "
        "UInt64Dtype Float32Dtype Float64Dtype".split(),
        (),
    ),
}
"""The arguments of each dtype, which are also its attributes."""


def take_dtype(_encoder: Any, dtype: Any) -> Any:
    kind = type(dtype).__name__
    return make_dtype, (kind, tuple([getattr(dtype, name) for name in _DTYPES[kind]]))


def make_dtype(kind: str, args: tuple[Any, ...]) -> Any:
    pd = library("pandas")
    if len(args) != len(_DTYPES[kind]):
        raise ValueError(f"{kind} of {len(args)} arguments")
    if kind == "DatetimeTZDtype" and not isinstance(args[1], dt.tzinfo):  # a text may name a file
        raise TypeError(f"a time zone from a {type(args[1]).__name__}")
    return getattr(pd, kind)(*args)


def take_timestamp(_encoder: Any, value: Any) -> Any:
    return make_timestamp, (value.to_datetime64(), value.tz, value.fold)


def make_timestamp(moment: Any, zone: Any, fold: int) -> Any:
    pd = library("pandas")
    if not isinstance(zone, (dt.tzinfo, type(None))):
        raise TypeError(f"a time zone from a {type(zone).__name__}")
    if zone is None:
        return pd.Timestamp(moment).replace(fold=fold)
    return pd.Timestamp(moment).tz_localize("UTC").tz_convert(zone)


def take_timedelta(_encoder: Any, value: Any) -> Any:
    return make_timedelta, (value.to_timedelta64(),)


def make_timedelta(value: Any) -> Any:
    pd = library("pandas")
    return pd.Timedelta(value)


def take_period(_encoder: Any, value: Any) -> Any:
    return make_period, (value.ordinal, value.freq)


def make_period(ordinal: int, freq: Any) -> Any:
    pd = library("pandas")
    return pd.Period(ordinal=ordinal, freq=freq)


def take_interval(_encoder: Any, value: Any) -> Any:
    return make_interval, (value.left, value.right, value.closed)


def make_interval(left: Any, right: Any, closed: Any) -> Any:
    pd = library("pandas")
    return pd.Interval(left, right, closed)


def make_constant(name: str) -> Any:
    pd = library("pandas")
    if name not in {"NA", "NaT"}:
        raise ValueError(f"no constant of pandas is {name!r}")
    return getattr(pd, name)


def take_zone(_encoder: Any, zone: Any) -> Any:
    """Take a pytz zone apart by its own reduction: pandas 2 makes such zones."""
    return make_zone, zone.__reduce__()[1]


def make_zone(*args: Any) -> Any:
    pytz = library("pytz")
    if not args:
        return pytz.UTC
    return pytz.FixedOffset(*args) if type(args[0]) is int else pytz._p(*args)  # by its name, in a list


def take_offset(_encoder: Any, value: Any) -> Any:
    """Take an offset apart: its class, and the arguments it was made with."""
    args = {
        name: getattr(value, name)
        for name in ("n", "normalize", *value._attributes)
        if name in value.kwds or name in {"n", "normalize"}
    }
    if "calendar" in args:  # of numpy, made of the other two or given in their place
        calendar = args["calendar"]
        args["calendar"] = "".join("01"[int(day)] for day in calendar.weekmask), calendar.holidays
    return make_offset, (type(value).__name__, args)


def make_offset(kind: str, args: dict[str, Any]) -> Any:
    pd = library("pandas")
    found = getattr(pd.offsets, kind, None)
    if not (isinstance(found, type) and issubclass(found, pd.offsets.BaseOffset)):
        raise TypeError(f"no offset is called {kind!r}")
    given = {str(name): unwrapped(each) for name, each in args.items()}
    if "calendar" in given:
        week, holidays = given["calendar"]
        given["calendar"] = library("numpy").busdaycalendar(week, holidays)
    return found(**given)


BY_NAME: dict[str, Kind] = {
    "CategoricalDtype": take_category_dtype,
    **dict.fromkeys(_DTYPES, take_dtype),
    "Timestamp": take_timestamp,
    "Timedelta": take_timedelta,
    "Period": take_period,
    "Interval": take_interval,
    "NAType": lambda _encoder, _value: (make_constant, ("NA",)),
    "NaTType": lambda _encoder, _value: (make_constant, ("NaT",)),
}
"""The functions that take instances apart, by the name of their class."""

CONSTRUCTORS: tuple[Callable[..., Any], ...] = (
    make_category_dtype,
    make_dtype,
    make_timestamp,
    make_timedelta,
    make_period,
    make_interval,
    make_constant,
    make_zone,
    make_offset,
)
