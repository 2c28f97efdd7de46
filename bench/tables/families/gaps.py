"""Gaps: readings and days that are missing, and what stands in their place."""

from __future__ import annotations

from typing import Any

import pandas as pd
from bench.tables.messy_data import Mess
from bench.tables.problem import Problem, family

from agex.checks import columns, no_nulls, same_rows_as, unique

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("gaps", PROBLEMS)


def _hours(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    values: list[float | None] = []
    while len(values) < 60:
        values += [mess.whole(0, 100) / 10 for _ in range(mess.whole(1, 6))]
        values += [None] * mess.whole(0, 5)
    values[-1] = 1.0
    times = pd.date_range("2024-03-01", periods=len(values), freq="h")
    return {
        "readings": pd.DataFrame(
            {"time": times, "value": pd.array(values, dtype="Float64").to_numpy(float, na_value=float("nan"))}
        )
    }


def _gap_lengths(values: pd.Series) -> pd.Series:
    missing = values.isna()
    return missing.groupby((missing != missing.shift()).cumsum()).transform("sum")


@problem(
    _hours,
    checks=[same_rows_as("readings", on="time"), columns("time", "value")],
    wrong=[
        lambda readings: readings.assign(value=readings["value"].interpolate(limit=2)),
        lambda readings: readings.assign(value=readings["value"].interpolate()),
    ],
)
def short_gaps_filled(readings: pd.DataFrame) -> pd.DataFrame:
    """Fill gaps of at most two missing values in a row by linear interpolation; leave longer gaps as they are.

    Return the columns time and value with all rows.
    """
    filled = readings["value"].interpolate()
    return readings.assign(value=readings["value"].where(_gap_lengths(readings["value"]) > 2, filled))


def _days(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    days = [day.strftime("%Y-%m-%d") for day in pd.date_range("2024-02-10", periods=45)]
    kept = [day for day in days[1:-1] if mess.chance(0.7)]
    return {"days": mess.shuffled([days[0], days[-1], *kept, *kept[:4]])}


@problem(_days, checks=[unique()])
def missing_days(days: list[str]) -> list[str]:
    """Return the days that are missing between the first and the last, sorted. The days are in no order.

    >>> missing_days(["2024-02-28", "2024-03-01", "2024-02-28"])
    ['2024-02-29']
    """
    span = pd.date_range(min(days), max(days)).strftime("%Y-%m-%d")
    return [day for day in span if day not in set(days)]


@problem(
    _hours,
    checks=[columns("date", "mean", "count"), unique("date")],
    wrong=[
        lambda readings: (
            readings.assign(date=readings["time"].dt.strftime("%Y-%m-%d"))
            .groupby("date", as_index=False)
            .agg(mean=("value", "mean"), count=("value", "count"))
        ),
        lambda readings: (
            readings.fillna({"value": 0})
            .assign(date=readings["time"].dt.strftime("%Y-%m-%d"))
            .groupby("date", as_index=False)
            .agg(mean=("value", "mean"), count=("value", "size"))
        ),
    ],
)
def daily_means(readings: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each day: the columns date (a text like 2024-03-01), mean and count.

    Missing values do not count. The mean of a day with fewer than 12 values is missing; its count is there.
    """
    days = readings.assign(date=readings["time"].dt.strftime("%Y-%m-%d")).groupby("date", as_index=False)
    found = days.agg(mean=("value", "mean"), count=("value", "count"))
    return found.assign(mean=found["mean"].where(found["count"] >= 12))


def _sensors(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = [
        {"sensor": sensor, "hour": hour, "value": None if mess.chance(0.45) else mess.whole(1, 99)}
        for sensor in ("a", "b", "c", "d")
        for hour in range(15)
    ]
    rows[15]["value"] = None  # the first of sensor b has nothing before it
    return {"readings": pd.DataFrame(rows)}


@problem(_sensors)
def longest_outage(readings: pd.DataFrame) -> dict[str, int]:
    """Return the length of the longest run of missing values of each sensor, 0 where none is missing.

    The rows of a sensor are in the order of the hours.
    """
    found = {}
    for sensor, group in readings.groupby("sensor"):
        longest = current = 0
        for is_missing in group["value"].isna():
            current = current + 1 if is_missing else 0
            longest = max(longest, current)
        found[str(sensor)] = longest
    return found


@problem(
    _sensors,
    checks=[same_rows_as("readings", on=["sensor", "hour"]), columns("sensor", "hour", "value")],
    wrong=[
        lambda readings: readings.assign(value=readings["value"].ffill()),
        lambda readings: readings.assign(value=readings.groupby("sensor")["value"].ffill().bfill()),
    ],
)
def last_known_value(readings: pd.DataFrame) -> pd.DataFrame:
    """Put in place of each missing value the last one that the same sensor had before it.

    What has none before it stays missing. Return the columns sensor, hour, value with all rows.
    """
    return readings.assign(value=readings.groupby("sensor")["value"].ffill())


def _movements(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = [
        {
            "date": mess.day("2024-04-01", 30).isoformat(),
            "item": mess.one(["bolt", "nut"]),
            "change": mess.whole(-5, 9),
        }
        for _ in range(25)
    ]
    return {"movements": pd.DataFrame(rows), "last": "2024-05-02"}


@problem(_movements, checks=[columns("date", "item", "stock"), no_nulls(), unique("date", "item")])
def stock_of_each_day(movements: pd.DataFrame, last: str) -> pd.DataFrame:
    """Return the stock of each item at the end of each day: the columns date, item, stock.

    An item's days go from its first movement to the day `last`, both included, also those without a
    movement. The stock is 0 before the first movement. Dates are texts like 2024-04-01, also in the result.
    """
    parts = []
    for item, group in movements.groupby("item"):
        changes = group.groupby("date")["change"].sum()
        days = pd.date_range(changes.index.min(), last).strftime("%Y-%m-%d")
        stock = changes.reindex(days, fill_value=0).cumsum()
        parts.append(pd.DataFrame({"date": days, "item": item, "stock": stock.to_numpy()}))
    return pd.concat(parts, ignore_index=True)
