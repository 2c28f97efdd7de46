"""Units: numbers in texts, with units, decimal commas, thousands separators and currencies."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from bench.tables.messy_data import CITIES, Mess
from bench.tables.problem import Problem, family

from agex.checks import between, columns, is_subset_of, no_nulls, same_rows_as

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("units", PROBLEMS)


def _weights(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for number in range(1, 36):
        grams = mess.whole(100, 5000)
        text = mess.one(
            [
                f"{grams} g",
                f"{grams}g",
                f"{grams / 1000} kg",
                f"{grams / 1000}kg".replace(".", ","),
                f"{mess.whole(1, 9)} lb",
            ]
        )
        rows.append({"id": number, "weight": text})
    rows += [{"id": 36, "weight": "0,5 kg"}, {"id": 37, "weight": "2 lb"}, {"id": 38, "weight": "750 G"}]
    return {"parcels": pd.DataFrame(rows)}


def _split(text: str) -> tuple[float, str]:
    number, unit = re.fullmatch(r"\s*([-\d.,]+)\s*(\D*?)\s*", text).groups()  # type: ignore[union-attr]
    return float(number.replace(",", ".")), unit.lower()


def _kilograms(text: str, factors: dict[str, float]) -> float:
    number, unit = _split(text)
    return number * factors[unit]


GRAMS = {"g": 0.001, "kg": 1.0, "lb": 0.45359237}


@problem(
    _weights,
    checks=[same_rows_as("parcels", on="id"), no_nulls(), between(0.05, 10, column="kg")],
    wrong=[
        lambda parcels: pd.DataFrame(
            {
                "id": parcels["id"],
                "kg": [_kilograms(each, {**GRAMS, "lb": 1.0}) for each in parcels["weight"]],
            }
        ),
        lambda parcels: pd.DataFrame(
            {"id": parcels["id"], "kg": [float(re.search(r"\d+", each)[0]) for each in parcels["weight"]]}
        ),
    ],
)
def weights_in_kilograms(parcels: pd.DataFrame) -> pd.DataFrame:
    """Return the weight of each parcel in kilograms: the columns id and kg, as a number.

    Weights are written like "1.2 kg", "0,5 kg", "1200g", "750 G" or "2 lb"; a comma is a decimal comma, and
    a pound (lb) is 0.45359237 kg.
    """
    return pd.DataFrame({"id": parcels["id"], "kg": [_kilograms(each, GRAMS) for each in parcels["weight"]]})


def _prices(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for number in range(1, 31):
        amount = mess.money(1, 9000)
        english = f"{amount:,.2f}"
        german = english.translate(str.maketrans(",.", ".,"))
        rows.append(
            {
                "id": number,
                "price": mess.one([f"${english}", f"{german} €", f"EUR {german}", f"{english} USD"]),
            }
        )
    rows.append({"id": 31, "price": "1.234,50 €"})
    return {"prices": pd.DataFrame(rows)}


@problem(
    _prices,
    checks=[
        columns("id", "currency", "amount"),
        is_subset_of(["EUR", "USD"], column="currency"),
        between(0.01, 10_000, column="amount"),
        same_rows_as("prices", on="id"),
    ],
    wrong=[
        lambda prices: pd.DataFrame(
            {
                "id": prices["id"],
                "currency": ["USD" if "$" in each or "USD" in each else "EUR" for each in prices["price"]],
                "amount": [
                    float(re.sub(r"[^\d.]", "", each).replace(".", "", each.count(".") - 1))
                    for each in prices["price"]
                ],
            }
        ),
        lambda prices: pd.DataFrame(
            {
                "id": prices["id"],
                "currency": ["USD" if "$" in each else "EUR" for each in prices["price"]],
                "amount": [int(re.sub(r"\D", "", each)) / 100 for each in prices["price"]],
            }
        ),
    ],
)
def amounts_and_currencies(prices: pd.DataFrame) -> pd.DataFrame:
    """Split each price into its currency, EUR or USD, and its amount: the columns id, currency, amount.

    Dollars are written "$1,234.50" or "1,234.50 USD"; euros "1.234,50 €" or "EUR 1.234,50".
    """
    rows = []
    for key, text in zip(prices["id"], prices["price"], strict=True):
        is_dollar = "$" in text or "USD" in text
        digits = re.sub(r"[^\d.,]", "", text)
        plain = digits.replace(",", "") if is_dollar else digits.replace(".", "").replace(",", ".")
        rows.append({"id": key, "currency": "USD" if is_dollar else "EUR", "amount": float(plain)})
    return pd.DataFrame(rows)


def _durations(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    texts = []
    for _ in range(25):
        minutes = mess.whole(1, 300)
        texts.append(
            mess.one(
                [
                    f"{minutes // 60}h {minutes % 60}m",
                    f"{minutes} min",
                    f"{minutes * 60} s",
                    f"{minutes // 60}:{minutes % 60:02}",
                ]
            )
        )
    return {"durations": [*texts, "1h 5m", "45 min", "0:07"]}


@problem(_durations, checks=[between(0, 600)])
def durations_in_minutes(durations: list[str]) -> list[float]:
    """Return each duration in minutes, in the order given.

    They are written "1h 30m", "90 min", "5400 s" or "1:30" (hours and minutes).

    >>> durations_in_minutes(["1h 30m", "90 min", "5400 s", "1:30"])
    [90.0, 90.0, 90.0, 90.0]
    """
    found = []
    for text in durations:
        numbers = [int(each) for each in re.findall(r"\d+", text)]
        if "h" in text or ":" in text:
            found.append(numbers[0] * 60.0 + numbers[1])
        else:
            found.append(numbers[0] / 60 if text.endswith("s") else float(numbers[0]))
    return found


def _temperatures(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for _ in range(40):
        celsius = mess.whole(-100, 350) / 10
        text = mess.one(
            [f"{celsius} °C", f"{celsius}C".replace(".", ","), f"{round(celsius * 1.8 + 32, 1)} °F", ""]
        )
        rows.append({"station": mess.one(CITIES), "reading": text})
    return {"readings": pd.DataFrame(rows)}


@problem(_temperatures, checks=[between(-30, 45, column="celsius"), no_nulls()])
def mean_celsius(readings: pd.DataFrame) -> pd.DataFrame:
    """Return the mean temperature of each station in Celsius: the columns station and celsius.

    Readings are written "21.5 °C", "21,5C" or "70.7 °F"; empty readings do not count.
    """
    known = readings[readings["reading"] != ""]
    values = []
    for text in known["reading"]:
        number = float(re.sub(r"[^\d.,-]", "", text).replace(",", "."))
        values.append((number - 32) / 1.8 if text.endswith("F") else number)
    return known.assign(celsius=values).groupby("station", as_index=False)["celsius"].mean()


def _sizes(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for number in range(1, 26):
        unit = mess.one(["B", "KB", "MB", "GB", "KiB", "MiB"])
        size = str(mess.whole(1, 900)) if unit == "B" else f"{mess.whole(10, 9000) / 10}"
        rows.append(
            {"file": f"f{number}", "folder": mess.one(["logs", "data", "img"]), "size": f"{size} {unit}"}
        )
    return {"files": pd.DataFrame(rows)}


@problem(_sizes)
def bytes_by_folder(files: pd.DataFrame) -> dict[str, int]:
    """Return the size of each folder in bytes, rounded to a whole number at the end.

    Sizes are written "12 B", "1.5 KB", "200.0 MiB": KB, MB and GB are powers of 1000, KiB and MiB of 1024.
    """
    factors = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20}
    sizes = [number * factors[unit] for number, unit in map(_split, files["size"])]
    totals = files.assign(size=sizes).groupby("folder")["size"].sum()
    return {str(folder): round(total) for folder, total in totals.items()}


def _shares(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    texts = []
    for _ in range(25):
        share = mess.whole(0, 1000)
        texts.append(
            mess.one(
                [
                    f"{share / 10}%",
                    f"{share / 10} pct",
                    f"{share / 1000}",
                    f"{share / 10} %".replace(".", ","),
                ]
            )
        )
    return {"shares": [*texts, "12%", "0.12", "n/a", ""]}


@problem(_shares, checks=[between(0, 1)])
def fractions(shares: list[str]) -> list[float | None]:
    """Return each share as a fraction from 0 to 1, in the order given; None for "n/a" and for empty texts.

    They are written "12%", "12,5 %", "12 pct" or "0.12".

    >>> fractions(["12%", "12,5 %", "12 pct", "0.12", "n/a"])
    [0.12, 0.125, 0.12, 0.12, None]
    """
    found: list[float | None] = []
    for text in shares:
        digits = re.sub(r"[^\d.,]", "", text).replace(",", ".")
        if not digits:
            found.append(None)
        else:
            found.append(float(digits) / 100 if "%" in text or "pct" in text else float(digits))
    return found
