"""Dates: several forms in one column, calendars, time zones."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
from bench.tables.messy_data import NAMES, Mess
from bench.tables.problem import Problem, family

from agex.checks import between, columns, matches, no_nulls, same_rows_as

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("dates", PROBLEMS)

FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y", "%Y%m%d")


def _day(text: str) -> dt.datetime:
    for form in FORMS:
        try:
            return dt.datetime.strptime(text.strip(), form)  # noqa: DTZ007 - days without a zone
        except ValueError:
            continue
    raise ValueError(text)


def _raw(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = [{"id": number, "date": mess.date_text(mess.day())} for number in range(1, 41)]
    rows += [{"id": 41, "date": "03.02.2024"}, {"id": 42, "date": "05.04.2024 "}]
    return {"raw": pd.DataFrame(rows)}


@problem(
    _raw,
    checks=[
        same_rows_as("raw", on="id"),
        no_nulls("date"),
        between(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-12-31"), column="date"),
    ],
    wrong=[
        lambda raw: raw.assign(date=pd.to_datetime(raw["date"].str.strip(), format="mixed")),
        lambda raw: raw.assign(date=pd.to_datetime(raw["date"], format="%Y-%m-%d", errors="coerce")).dropna(),
    ],
)
def parsed_dates(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its column date as datetimes.

    The texts mix four forms: 2024-03-01, 01.03.2024 (day first), Mar 01, 2024 and 20240301.
    """
    return raw.assign(date=[_day(text) for text in raw["date"]])


@problem(
    _raw,
    wrong=[
        lambda raw: raw["date"].str[:7].value_counts().to_dict(),
        lambda raw: (
            pd.to_datetime(raw["date"].str.strip(), format="mixed")
            .dt.strftime("%Y-%m")
            .value_counts()
            .to_dict()
        ),
    ],
)
def orders_a_month(raw: pd.DataFrame) -> dict[str, int]:
    """Count the rows of each month, e.g. {"2024-03": 7}.

    The dates mix four forms: 2024-03-01, 01.03.2024 (day first), Mar 01, 2024 and 20240301.
    """
    months = pd.Series([_day(text) for text in raw["date"]]).dt.strftime("%Y-%m")
    return {str(month): int(count) for month, count in months.value_counts().items()}


def _stays(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for number in range(1, 31):
        start = mess.day()
        end = start + dt.timedelta(days=mess.whole(0, 40))
        rows.append({"id": number, "start": mess.date_text(start), "end": mess.date_text(end)})
    rows.append({"id": 31, "start": "01.02.2024", "end": ""})
    return {"stays": pd.DataFrame(rows)}


@problem(
    _stays, checks=[same_rows_as("stays", on="id"), columns("id", "days"), between(0, 60, column="days")]
)
def length_of_stay(stays: pd.DataFrame) -> pd.DataFrame:
    """Return the days from start to end of each stay: the columns id and days.

    The dates mix four forms: 2024-03-01, 01.03.2024 (day first), Mar 01, 2024 and 20240301. Where the end is
    empty, days is missing.
    """
    days = [
        (_day(end) - _day(start)).days if end.strip() else None
        for start, end in zip(stays["start"], stays["end"], strict=True)
    ]
    return pd.DataFrame({"id": stays["id"], "days": days})


def _people(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = [
        {"name": name, "born": mess.day("1960-01-01", 365 * 40).strftime(mess.one(["%Y-%m-%d", "%d/%m/%Y"]))}
        for name in NAMES
    ]
    rows += [{"name": "Ida", "born": "2000-02-29"}, {"name": "Jan", "born": "01/03/1990"}]
    return {"people": pd.DataFrame(rows), "on": "2024-02-29" if seed % 2 else "2023-02-28"}


@problem(
    _people, checks=[same_rows_as("people", on="name"), columns("name", "age"), between(0, 120, column="age")]
)
def ages(people: pd.DataFrame, on: str) -> pd.DataFrame:
    """Return the age of each person on a day, in full years: the columns name and age.

    Dates of birth are written 1990-12-31 or 31/12/1990; `on` is written 2024-02-29.
    """
    today = dt.date.fromisoformat(on)
    found = []
    for text in people["born"]:
        born = dt.datetime.strptime(text, "%d/%m/%Y" if "/" in text else "%Y-%m-%d").date()  # noqa: DTZ007
        found.append(today.year - born.year - ((today.month, today.day) < (born.month, born.day)))
    return pd.DataFrame({"name": people["name"], "age": found})


def _tickets(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for number in range(1, 31):
        opened = mess.day("2024-04-01", 60)
        closed = opened + dt.timedelta(days=mess.whole(0, 15))
        rows.append({"ticket": number, "opened": opened.isoformat(), "closed": closed.isoformat()})
    return {"tickets": pd.DataFrame(rows), "holidays": ["2024-05-01", "2024-05-09", "2024-05-20"]}


@problem(_tickets, checks=[same_rows_as("tickets", on="ticket"), between(0, 20, column="days")])
def working_days(tickets: pd.DataFrame, holidays: list[str]) -> pd.DataFrame:
    """Return the working days that each ticket was open: the columns ticket and days.

    Counted are the days from opened up to, and without, closed that are neither Saturday, Sunday nor a
    holiday. All dates are texts like 2024-05-01.
    """
    days = []
    for opened, closed in zip(tickets["opened"], tickets["closed"], strict=True):
        span = pd.date_range(opened, closed, inclusive="left")
        days.append(sum(day.weekday() < 5 and day.strftime("%Y-%m-%d") not in holidays for day in span))
    return pd.DataFrame({"ticket": tickets["ticket"], "days": days})


def _events(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    events = []
    for _ in range(30):
        moment = 1_704_067_200 + mess.whole(0, 86_400 * 120)
        hours = mess.whole(-5, 5)
        local = dt.datetime.fromtimestamp(moment, dt.timezone(dt.timedelta(hours=hours)))
        utc = dt.datetime.fromtimestamp(moment, dt.timezone.utc)  # noqa: UP017 - as the rest of the line
        events.append(mess.one([str(moment), local.isoformat(), utc.strftime("%Y-%m-%dT%H:%M:%SZ")]))
    return {"events": events}


@problem(_events, checks=[matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")])
def in_utc(events: list[str]) -> list[str]:
    """Write each moment in UTC, in the form 2024-03-01T08:00:00Z, in the order given.

    A moment is given as seconds since 1970 ("1709280000"), or in ISO form with an offset
    ("2024-03-01T10:00:00+02:00") or with Z.

    >>> in_utc(["1709280000", "2024-03-01T10:00:00+02:00"])
    ['2024-03-01T08:00:00Z', '2024-03-01T08:00:00Z']
    """
    zone = dt.timezone.utc  # noqa: UP017 - the name that the standard library has
    found = []
    for text in events:
        if text.isdigit():
            moment = dt.datetime.fromtimestamp(int(text), zone)
        else:
            moment = dt.datetime.fromisoformat(text).astimezone(zone)
        found.append(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return found
