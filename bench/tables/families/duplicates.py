"""Duplicates: the same thing written twice in different ways, and which of the two to keep."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from bench.tables.messy_data import CITIES, NAMES, Mess
from bench.tables.problem import Problem, family

from agex.checks import columns, is_subset_of, matches, no_nulls, unique

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("duplicates", PROBLEMS)


def _people(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for number in range(1, 31):
        name = mess.one(NAMES)
        email = f"{name.split()[0].lower()}@example.org"
        rows.append(
            {
                "id": number,
                "name": name,
                "email": mess.spaced(email),
                "city": mess.one([*CITIES[:2], None, None]),
                "updated": f"2024-{mess.whole(1, 9):02}-{number:02}",
            }
        )
    rows[0]["email"], rows[1]["email"] = "ANNA@example.org", "anna@example.org "
    return {"people": pd.DataFrame(mess.shuffled(rows))}


def _key(emails: pd.Series) -> pd.Series:
    return emails.str.strip().str.lower()


@problem(
    _people,
    checks=[columns("id", "name", "email", "city", "updated"), unique("email")],
    wrong=[
        lambda people: people.sort_values("updated").drop_duplicates("email", keep="last"),
        lambda people: people.assign(email=_key(people["email"])).drop_duplicates("email"),
    ],
)
def newest_of_each_person(people: pd.DataFrame) -> pd.DataFrame:
    """Keep the newest row of each person, by the column updated.

    Two rows are of the same person if their emails are, apart from case and blanks around them. Return all
    columns, with the email in lower case and without blanks.
    """
    cleaned = people.assign(email=_key(people["email"]))
    return cleaned.sort_values("updated").drop_duplicates("email", keep="last")


@problem(_people)
def groups_of_duplicates(people: pd.DataFrame) -> list[list[int]]:
    """Return the ids of rows that are of one person, a list for each person with more than one row.

    Two rows are of the same person if their emails are, apart from case and blanks around them. The ids of
    a person are sorted, the persons by their first id.
    """
    groups = people.groupby(_key(people["email"]))["id"].apply(sorted)
    return sorted([int(each) for each in group] for group in groups if len(group) > 1)


@problem(
    _people,
    checks=[columns("email", "name", "city"), unique("email"), no_nulls("email", "name")],
    wrong=[
        lambda people: (
            people.assign(email=_key(people["email"]))
            .sort_values("updated")
            .drop_duplicates("email", keep="last")[["email", "name", "city"]]
        ),
        lambda people: (
            people.assign(email=_key(people["email"]))
            .groupby("email", as_index=False)[["name", "city"]]
            .first()
        ),
    ],
)
def merged_people(people: pd.DataFrame) -> pd.DataFrame:
    """Merge the rows of each person into one: the columns email, name, city.

    Two rows are of the same person if their emails are, apart from case and blanks around them. Of each
    column the newest value that is not missing holds, by the column updated. The email is in lower case.
    """
    cleaned = people.assign(email=_key(people["email"])).sort_values("updated")
    return cleaned.groupby("email", as_index=False)[["name", "city"]].last()


def _payments(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    moment = pd.Timestamp("2024-05-01 08:00")
    for number in range(1, 41):
        moment += pd.Timedelta(minutes=mess.whole(0, 4))
        rows.append(
            {
                "id": number,
                "time": moment,
                "card": mess.one(["4711", "0815"]),
                "amount": mess.one([9.99, 20.0]),
            }
        )
    return {"payments": pd.DataFrame(rows)}


@problem(
    _payments,
    checks=[is_subset_of(lambda inputs: inputs.payments["id"].tolist())],
    wrong=[
        lambda payments: payments[payments.duplicated(["card", "amount"])]["id"].tolist(),
        lambda payments: payments[payments["time"].diff() <= pd.Timedelta(minutes=5)]["id"].tolist(),
    ],
)
def double_charges(payments: pd.DataFrame) -> list[int]:
    """Return the ids of payments that may be charged twice, sorted.

    These are payments with the same card and amount as an earlier one that was made at most 5 minutes
    before it. The rows are in the order of time.
    """
    before = payments.groupby(["card", "amount"])["time"].diff()
    return [int(each) for each in payments[before <= pd.Timedelta(minutes=5)]["id"]]


def _phones(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    numbers = [f"{mess.whole(10_000_000, 99_999_999)}" for _ in range(8)]
    phones = []
    for _ in range(30):
        digits = mess.one(numbers)
        phones.append(
            mess.one(
                [
                    f"+49 30 {digits}",
                    f"0049-30-{digits}",
                    f"030/{digits}",
                    f"(030) {digits[:4]} {digits[4:]}",
                ]
            )
        )
    return {"phones": phones}


@problem(_phones, checks=[matches(r"\+49\d+"), unique()])
def distinct_phones(phones: list[str]) -> list[str]:
    """Return the distinct phone numbers in the form +493012345678, sorted.

    They are German numbers: a leading 00 stands for +, a leading 0 for +49. Blanks, brackets, - and / mean
    nothing.

    >>> distinct_phones(["030/1234567", "+49 30 1234567", "0049-30-7654321"])
    ['+49301234567', '+49307654321']
    """
    found = set()
    for text in phones:
        digits = re.sub(r"[^\d+]", "", text)
        digits = re.sub(r"^00", "+", digits)
        found.add(re.sub(r"^0", "+49", digits))
    return sorted(found)


def _companies(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = []
    for number in range(1, 31):
        name = mess.one(["Acme", "Blue Sky", "Nordlicht", "Tri-Star"])
        ending = mess.one(["", " Ltd", " Ltd.", " Limited", " GmbH", " Inc."])
        rows.append({"id": number, "company": mess.spaced(name + ending), "amount": mess.money()})
    return {"invoices": pd.DataFrame(rows)}


@problem(_companies, checks=[columns("company", "amount"), unique("company")])
def amount_by_company(invoices: pd.DataFrame) -> pd.DataFrame:
    """Add up the amounts of each company: the columns company and amount.

    Company names are the same apart from case, blanks around them, and one of the endings Ltd, Ltd.,
    Limited, GmbH, Inc. Return them in lower case without the ending, e.g. "blue sky".
    """
    names = invoices["company"].str.strip().str.lower()
    names = names.str.replace(r"\s+(ltd\.?|limited|gmbh|inc\.)$", "", regex=True)
    return invoices.assign(company=names).groupby("company", as_index=False)["amount"].sum()
