"""Exports: CSV and columns of text as programs write them out, and categories as people type them in."""

from __future__ import annotations

import csv
import io
from typing import Any

import pandas as pd
from bench.tables.messy_data import CITIES, NAMES, PRODUCTS, Mess
from bench.tables.problem import Problem, family

from agex.checks import columns, is_subset_of, no_nulls, same_rows_as, unique

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("exports", PROBLEMS)


def _countries(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    aliases = pd.DataFrame(
        [
            ("germany", "DE"),
            ("deutschland", "DE"),
            ("de", "DE"),
            ("france", "FR"),
            ("norway", "NO"),
            ("norge", "NO"),
        ],
        columns=["alias", "code"],
    )
    spelled = ["Germany", "Deutschland", "DE", "France", "Norway", "Norge", "Atlantis", ""]
    rows = [{"id": number, "country": mess.spaced(mess.one(spelled))} for number in range(1, 41)]
    return {"people": pd.DataFrame(rows), "aliases": aliases}


@problem(
    _countries,
    checks=[
        columns("id", "code"),
        same_rows_as("people", on="id"),
        no_nulls(),
        is_subset_of(["DE", "FR", "NO", "??"], column="code"),
    ],
    wrong=[
        lambda people, aliases: (
            people.assign(alias=people["country"].str.lower())
            .merge(aliases, how="left")
            .fillna("??")[["id", "code"]]
        ),
        lambda people, aliases: people.assign(alias=people["country"].str.strip().str.lower()).merge(aliases)[
            ["id", "code"]
        ],
    ],
)
def country_codes(people: pd.DataFrame, aliases: pd.DataFrame) -> pd.DataFrame:
    """Return the country code of each person: the columns id and code.

    The table aliases has the code of each spelling, in lower case; in the table people it may have any case,
    and blanks around it. What is not among the aliases has the code "??".
    """
    known = aliases.set_index("alias")["code"]
    codes = people["country"].str.strip().str.lower().map(known).fillna("??")
    return pd.DataFrame({"id": people["id"], "code": codes})


def _names(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    people = []
    for _ in range(25):
        first, last = mess.one(NAMES).split()
        people.append(
            mess.one(
                [
                    f"{first} {last}",
                    f"{last}, {first}",
                    f"Dr. {first} {last}",
                    f"{first} von {last}",
                    f" {last} ,{first}",
                ]
            )
        )
    return {"names": people}


@problem(_names, checks=[columns("first", "last"), no_nulls()])
def split_names(names: list[str]) -> list[dict[str, str]]:
    """Split each name into a dict with first and last, in the order given.

    Names are written "Anna Berg" or "Berg, Anna", with blanks in any number. A title "Dr." in front is left
    out. Of a name without a comma the first word is the first name, all others the last name.

    >>> split_names(["Dr. Anna von Berg", "Lang ,  Boris"])
    [{'first': 'Anna', 'last': 'von Berg'}, {'first': 'Boris', 'last': 'Lang'}]
    """
    found = []
    for name in names:
        if "," in name:
            last, first = (part.strip() for part in name.split(","))
        else:
            words = name.removeprefix("Dr. ").split()
            first, last = words[0], " ".join(words[1:])
        found.append({"first": first, "last": last})
    return found


def _flags(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = [
        {
            "id": number,
            "active": mess.one(["yes", "Y", "TRUE", "1", "no", "N", "false", "0", " yes ", "", "?"]),
        }
        for number in range(1, 41)
    ]
    return {"accounts": pd.DataFrame(rows)}


@problem(_flags)
def count_flags(accounts: pd.DataFrame) -> dict[str, int]:
    """Count the accounts that are active, that are not, and those of which it is not known.

    Return {"yes": ..., "no": ..., "unknown": ...}. The column active has yes, y, true, 1 or no, n, false, 0, in
    any case and with blanks around; anything else is not known.
    """
    flags = accounts["active"].str.strip().str.lower()
    yes, no = (
        int(flags.isin(["yes", "y", "true", "1"]).sum()),
        int(flags.isin(["no", "n", "false", "0"]).sum()),
    )
    return {"yes": yes, "no": no, "unknown": len(flags) - yes - no}


def _ledger(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for _ in range(40):
        amount = f"{mess.money(1, 5000):,.2f}"
        rows.append(
            {
                "account": mess.one(["rent", "wages", "sales"]),
                "amount": mess.one([amount, f"({amount})", f"-{amount}", f"{amount}-", f" {amount} ", "-"]),
            }
        )
    return {"ledger": pd.DataFrame(rows)}


def _amount(text: str) -> float:
    digits = text.strip().strip("()-").replace(",", "")
    if not digits:
        return 0.0
    return -float(digits) if "(" in text or "-" in text else float(digits)


@problem(
    _ledger,
    checks=[columns("account", "balance"), unique("account"), no_nulls()],
    wrong=[
        lambda ledger: (
            ledger.assign(balance=[abs(_amount(each)) for each in ledger["amount"]])
            .groupby("account", as_index=False)["balance"]
            .sum()
        ),
        lambda ledger: (
            ledger.assign(
                balance=[_amount(each.replace("(", "").replace(")", "")) for each in ledger["amount"]]
            )
            .groupby("account", as_index=False)["balance"]
            .sum()
        ),
    ],
)
def ledger_balances(ledger: pd.DataFrame) -> pd.DataFrame:
    """Add up the amounts of each account: the columns account and balance.

    Amounts are texts with commas for thousands, "1,234.50". Negative ones are written "(1,234.50)",
    "-1,234.50" or "1,234.50-"; a dash alone is 0.
    """
    values = [_amount(text) for text in ledger["amount"]]
    return ledger.assign(balance=values).groupby("account", as_index=False)["balance"].sum()


def _report(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    lines = ["Report of 2024-06-01", "", "city;product;amount"]
    for city in CITIES:
        lines += [
            f"{city};{mess.one(PRODUCTS)};{mess.money():.2f}".replace(".", ",")
            for _ in range(mess.whole(1, 4))
        ]
        lines.append(f"Total {city};;{mess.money():.2f}".replace(".", ","))
        lines += mess.one([[], ["", "city;product;amount"]])
    return {"report": "\n".join([*lines, "End of report"])}


@problem(
    _report, checks=[columns("city", "product", "amount"), no_nulls(), is_subset_of(CITIES, column="city")]
)
def rows_of_a_report(report: str) -> pd.DataFrame:
    """Read the rows of a report: the columns city, product, amount.

    A row is "Berlin;desk lamp;12,50", with a decimal comma. The line of column names comes again on each page;
    it, empty lines, lines that begin with "Total" and lines without semicolons are no rows.
    """
    rows = []
    for line in report.splitlines():
        cells = line.split(";")
        if len(cells) == 3 and cells[0] != "city" and not line.startswith("Total"):
            rows.append((cells[0], cells[1], float(cells[2].replace(",", "."))))
    return pd.DataFrame(rows, columns=["city", "product", "amount"])


def _notes(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";")
    writer.writerow(["id", "note", "score"])
    for number in range(1, 21):
        note = mess.one(["fine", "late; but ok", 'said "no"', "two\nlines", ""])
        writer.writerow(
            [f"{number:04}", note, mess.one(["", f"{mess.whole(0, 100) / 10}".replace(".", ",")])]
        )
    return {"text": out.getvalue()}


@problem(
    _notes,
    checks=[columns("id", "note", "score"), unique("id")],
    wrong=[
        lambda text: pd.read_csv(io.StringIO(text), sep=";", decimal=","),
        lambda text: pd.DataFrame(
            [line.split(";", 2) for line in text.splitlines()[1:] if line.count(";") >= 2],
            columns=["id", "note", "score"],
        ),
    ],
)
def notes_of_an_export(text: str) -> pd.DataFrame:
    """Read the CSV: the columns id, note, score.

    It has semicolons between the cells; cells in quotes may contain semicolons, quotes and line breaks. The id
    is a text with its zeros ("0007"), the note a text, empty where there is none. The score is a number
    with a decimal comma, missing where the cell is empty.
    """
    rows = list(csv.reader(io.StringIO(text), delimiter=";"))[1:]
    return pd.DataFrame(
        [(key, note, float(score.replace(",", ".")) if score else None) for key, note, score in rows],
        columns=["id", "note", "score"],
    )
