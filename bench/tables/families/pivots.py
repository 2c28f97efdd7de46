"""Pivots: from long to wide and back, with all rows and columns that should be there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
from bench.tables.messy_data import CITIES, PRODUCTS, Mess
from bench.tables.problem import Problem, family

from agex.checks import columns, no_nulls, rows

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("pivots", PROBLEMS)


def _sales(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    rows = [
        {
            "date": f"2024-{mess.one([1, 2, 3, 5, 6]):02}-{mess.whole(1, 28):02}",
            "region": mess.one(["north", "South", "south ", "west"]),
            "product": mess.one(PRODUCTS),
            "amount": mess.money(),
        }
        for _ in range(60)
    ]
    return {"sales": pd.DataFrame(rows)}


def _tidy(sales: pd.DataFrame) -> pd.DataFrame:
    return sales.assign(
        region=sales["region"].str.strip().str.lower(), month=sales["date"].str[5:7].astype(int)
    )


def _wide(sales: pd.DataFrame, months: list[int], function: str = "sum") -> pd.DataFrame:
    table = sales.pivot_table(
        index="region", columns="month", values="amount", aggfunc=function, fill_value=0
    )
    return table.reindex(columns=months, fill_value=0).rename(columns=str).reset_index()


@problem(
    _sales,
    checks=[columns("region", "1", "2", "3", "4", "5", "6"), no_nulls()],
    wrong=[
        lambda sales: _wide(_tidy(sales), [1, 2, 3, 5, 6]),
        lambda sales: _wide(_tidy(sales), [1, 2, 3, 4, 5, 6], "count"),
    ],
)
def sales_by_month(sales: pd.DataFrame) -> pd.DataFrame:
    """Return the sales of January to June 2024: a row for each region, a column for each month.

    The columns are region and "1" to "6"; 0 where there were no sales. Regions are the same apart from case
    and blanks around them; return them in lower case.
    """
    return _wide(_tidy(sales), [1, 2, 3, 4, 5, 6])


def _budgets(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    table = pd.DataFrame({"city": CITIES})
    for year in (2021, 2022, 2023):
        table[f"budget_{year}"] = [mess.one([mess.money(), mess.money(), None]) for _ in CITIES]
        table[f"spent_{year}"] = [mess.money() for _ in CITIES]
    return {"table": table}


@problem(_budgets, checks=[columns("city", "year", "budget", "spent"), rows(15)])
def long_budgets(table: pd.DataFrame) -> pd.DataFrame:
    """Turn the wide table into a long one: the columns city, year (a whole number), budget, spent.

    The wide columns are named budget_2021, spent_2021 and so on. A missing budget stays missing.
    """
    return pd.wide_to_long(table, ["budget", "spent"], i="city", j="year", sep="_").reset_index()


@problem(
    _sales,
    checks=[columns("region", "product", "share"), no_nulls()],
    wrong=[
        lambda sales: (
            _tidy(sales)
            .groupby(["region", "product"])["amount"]
            .sum()
            .div(sales["amount"].sum() / 100)
            .rename("share")
            .reset_index()
        ),
        lambda sales: (
            _tidy(sales)
            .groupby("region")["product"]
            .value_counts(normalize=True)
            .mul(100)
            .rename("share")
            .reset_index()
        ),
    ],
)
def share_within_region(sales: pd.DataFrame) -> pd.DataFrame:
    """Return each product's share of the amount of its region, in percent: the columns region, product, share.

    Regions are the same apart from case and blanks around them; return them in lower case. Only products
    that a region has sold are there.
    """
    totals = _tidy(sales).groupby(["region", "product"])["amount"].sum()
    shares = totals / totals.groupby("region").transform("sum") * 100
    return shares.rename("share").reset_index()


def _survey(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    options = ["email", "phone", "post", "web"]
    rows = []
    for number in range(1, 31):
        chosen = [mess.spaced(each) for each in options if mess.chance(0.4)]
        rows.append({"id": number, "age": mess.one(["<30", "30-60", ">60"]), "channels": ";".join(chosen)})
    return {"answers": pd.DataFrame(rows)}


@problem(_survey, checks=[columns("age", "channel", "answers")])
def channels_by_age(answers: pd.DataFrame) -> pd.DataFrame:
    """Count the answers for each age group and channel: the columns age, channel, answers.

    The column channels has several options in one text, "email;Phone ": they are the same apart from case
    and blanks; return them in lower case. An empty text names none. Only counts above 0 are there.
    """
    counts = Counter(
        (age, each.strip().lower())
        for age, text in zip(answers["age"], answers["channels"], strict=True)
        for each in text.split(";")
        if each.strip()
    )
    return pd.DataFrame(
        [(*key, count) for key, count in counts.items()], columns=["age", "channel", "answers"]
    )


@problem(_sales, checks=[columns("product", "north", "south", "west", "total"), no_nulls()])
def crosstab_with_totals(sales: pd.DataFrame) -> pd.DataFrame:
    """Count the sales of each product in each region: the columns product, north, south, west, total.

    Regions are the same apart from case and blanks around them. The total of a row stands in the column
    total; a last row has the product "total" and the totals of the columns.
    """
    tidy = _tidy(sales)
    table = pd.crosstab(tidy["product"], tidy["region"], margins=True, margins_name="total")
    return table.reindex(columns=["north", "south", "west", "total"], fill_value=0).reset_index()


@problem(_sales, checks=[columns("region", "product", "amount"), no_nulls()])
def best_product(sales: pd.DataFrame) -> pd.DataFrame:
    """Return the product with the highest total amount in each region: the columns region, product, amount.

    Regions are the same apart from case and blanks around them; return them in lower case. Of products with
    the same total, the one that comes first in the alphabet.
    """
    totals = _tidy(sales).groupby(["region", "product"], as_index=False)["amount"].sum()
    ranked = totals.sort_values(["amount", "product"], ascending=[False, True])
    return ranked.drop_duplicates("region")
