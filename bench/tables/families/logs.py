"""Logs: a JSON object a line, with lines that are broken, nested fields and requests that are tried again."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pandas as pd
from bench.tables.messy_data import Mess
from bench.tables.problem import Problem, family

from agex.checks import between, columns, no_nulls, unique

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("logs", PROBLEMS)


def _requests(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    lines = []
    second = 0
    for _ in range(70):
        second += mess.whole(1, 600)
        entry: dict[str, Any] = {
            "time": second,
            "level": mess.one(["INFO", "info", "WARN", "ERROR", "error"]),
            "service": mess.one(["api", "auth", "mail"]),
            "request": {"id": f"r{mess.whole(1, 25)}", "path": mess.one(["/a", "/b?x=1", "/b", "/c/"])},
            "status": mess.one([200, 200, 200, 404, 500, 503]),
        }
        if mess.chance(0.8):
            entry["ms"] = mess.one([mess.whole(1, 900), str(mess.whole(1, 900))])
        if mess.chance(0.6):
            entry["user"] = mess.one(["ann", "bob", "cy"])
        text = json.dumps(entry)
        lines.append(mess.one([text, text, text, text, f"{text}  ", text[: len(text) // 2], ""]))
    return {"lines": lines}


def _entries(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


@problem(
    _requests,
    wrong=[
        lambda lines: (
            pd.Series([e["service"] for e in _entries(lines) if e["level"] == "ERROR"])
            .value_counts()
            .to_dict()
        ),
        lambda lines: {
            name: sum('"error"' in each.lower() and f'"{name}"' in each for each in lines)
            for name in ("api", "auth", "mail")
        },
    ],
)
def errors_by_service(lines: list[str]) -> dict[str, int]:
    """Count the entries of the level "error", in any case of letters, of each service that has one.

    Each line is a JSON object with level, service and more; lines that are empty or broken do not count.

    >>> errors_by_service(['{"level": "Error", "service": "api"}', '{"level": "error", "serv'])
    {'api': 1}
    """
    found: dict[str, int] = {}
    for entry in _entries(lines):
        if entry["level"].lower() == "error":
            found[entry["service"]] = found.get(entry["service"], 0) + 1
    return found


@problem(
    _requests,
    checks=[columns("path", "p90"), unique("path"), between(0, 1000, column="p90")],
    wrong=[
        lambda lines: (
            pd.DataFrame(
                [{"path": e["request"]["path"], "p90": int(e["ms"])} for e in _entries(lines) if "ms" in e]
            )
            .groupby("path", as_index=False)["p90"]
            .quantile(0.9)
        ),
        lambda lines: (
            pd.DataFrame(
                [
                    {"path": e["request"]["path"].split("?")[0].rstrip("/"), "p90": int(e.get("ms", 0))}
                    for e in _entries(lines)
                ]
            )
            .groupby("path", as_index=False)["p90"]
            .agg(lambda each: sorted(each)[math.ceil(0.9 * len(each)) - 1])
        ),
    ],
)
def slow_paths(lines: list[str]) -> pd.DataFrame:
    """Return the 90th percentile of the milliseconds of each path: the columns path and p90.

    Each line is a JSON object with request (an object with id and path) and ms, a number or the same as a
    text; lines that are empty or broken, and entries without ms, do not count. Paths are the same apart from
    what follows a "?", and from a "/" at the end: /c/ is /c. The percentile is by nearest rank: of n values in
    ascending order the one at the place ceil(0.9 * n), counted from 1.
    """
    found: dict[str, list[int]] = defaultdict(list)
    for entry in _entries(lines):
        if "ms" in entry:
            found[entry["request"]["path"].split("?")[0].rstrip("/")].append(int(entry["ms"]))
    rows = [(path, sorted(values)[math.ceil(0.9 * len(values)) - 1]) for path, values in found.items()]
    return pd.DataFrame(rows, columns=["path", "p90"])


@problem(_requests)
def sessions_of_users(lines: list[str]) -> dict[str, int]:
    """Count the sessions of each user who is named at least once.

    Each line is a JSON object with time, in seconds, and maybe user; lines that are empty or broken do not
    count, nor do entries without a user. A session ends when 1800 seconds or more go by until the next entry
    of the user. The entries are in the order of time.

    >>> sessions_of_users(['{"time": 0, "user": "a"}', '{"time": 1799, "user": "a"}', '{"time": 3599, "user": "a"}'])
    {'a': 2}
    """
    last: dict[str, int] = {}
    found: dict[str, int] = {}
    for entry in _entries(lines):
        user = entry.get("user")
        if user is None:
            continue
        if user not in last or entry["time"] - last[user] >= 1800:
            found[user] = found.get(user, 0) + 1
        last[user] = entry["time"]
    return found


@problem(
    _requests,
    checks=[columns("time", "service", "request_id", "path", "status", "ms"), no_nulls("time", "path")],
)
def flat_entries(lines: list[str]) -> pd.DataFrame:
    """Return the entries as a table: the columns time, service, request_id, path, status, ms.

    Each line is a JSON object with these, where request_id and path stand as id and path in the object
    "request"; lines that are empty or broken are left out. ms is a number or the same as a text, make it a
    number; it is missing where the entry has none.
    """
    rows = [
        {
            "time": entry["time"],
            "service": entry["service"],
            "request_id": entry["request"]["id"],
            "path": entry["request"]["path"],
            "status": entry["status"],
            "ms": float(entry["ms"]) if "ms" in entry else None,
        }
        for entry in _entries(lines)
    ]
    return pd.DataFrame(rows)


@problem(_requests)
def error_rates(lines: list[str]) -> dict[str, float]:
    """Return the share of each service's entries that have a status of 500 or more.

    Each line is a JSON object with service and status; lines that are empty or broken do not count.

    >>> error_rates(['{"service": "api", "status": 503}', '{"service": "api", "status": 404}', ''])
    {'api': 0.5}
    """
    found: dict[str, list[bool]] = defaultdict(list)
    for entry in _entries(lines):
        found[entry["service"]].append(entry["status"] >= 500)
    return {service: sum(each) / len(each) for service, each in found.items()}


@problem(
    _requests,
    checks=[
        columns("request_id", "attempts", "status"),
        unique("request_id"),
        between(2, 100, column="attempts"),
    ],
    wrong=[
        lambda lines: _attempts(lines, first=0, least=1),
        lambda lines: _attempts(lines, first=0, least=2),
    ],
)
def repeated_requests(lines: list[str]) -> pd.DataFrame:
    """Return the requests that were tried more than once: the columns request_id, attempts, status.

    Each line is a JSON object with request (an object with id) and status; lines that are empty or broken do
    not count. The status is that of the last attempt; the entries are in the order of time.
    """
    return _attempts(lines, first=-1, least=2)


def _attempts(lines: list[str], *, first: int, least: int) -> pd.DataFrame:
    found: dict[str, list[int]] = defaultdict(list)
    for entry in _entries(lines):
        found[entry["request"]["id"]].append(entry["status"])
    rows = [(key, len(each), each[first]) for key, each in found.items() if len(each) >= least]
    return pd.DataFrame(rows, columns=["request_id", "attempts", "status"])
