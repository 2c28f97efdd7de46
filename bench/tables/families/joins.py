"""Joins: keys that are written in several ways, rows without a partner, keys that are not unique."""

from __future__ import annotations

from typing import Any

import pandas as pd
from bench.tables.messy_data import NAMES, Mess
from bench.tables.problem import Problem, family

from agex.checks import columns, no_nulls, same_rows_as, total_is, unique

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("joins", PROBLEMS)


def _orders(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    customers = [
        {"customer_id": f"C{number:03}", "name": name, "country": mess.one(["DE", "FR", "NO"])}
        for number, name in enumerate(NAMES, start=1)
    ]
    buyers = mess.shuffled(range(1, 11))[:6]
    orders = [
        {
            "order_id": number,
            "customer_id": mess.spaced(f"C{mess.one(buyers):03}"),
            "amount": mess.money(),
        }
        for number in range(1, 41)
    ]
    orders[0]["customer_id"] = "C099"  # nobody
    orders[1]["customer_id"] = " c001"
    return {"orders": pd.DataFrame(orders), "customers": pd.DataFrame(mess.shuffled(customers[:7]))}


def _keyed(orders: pd.DataFrame) -> pd.DataFrame:
    return orders.assign(customer_id=orders["customer_id"].str.strip().str.upper())


@problem(
    _orders,
    checks=[same_rows_as("orders", on="order_id"), columns("order_id", "name", "amount")],
    wrong=[
        lambda orders, customers: _keyed(orders).merge(customers)[["order_id", "name", "amount"]],
        lambda orders, customers: orders.merge(customers, how="left")[["order_id", "name", "amount"]],
    ],
)
def orders_with_names(orders: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:
    """Add the customer's name to each order.

    The customer_id of an order may have blanks around it, and lower case. Keep orders of customers that are
    not in the table; their name is missing. Return the columns order_id, name, amount.
    """
    found = _keyed(orders).merge(customers, on="customer_id", how="left")
    return found[["order_id", "name", "amount"]]


@problem(_orders, checks=[total_is(lambda inputs: inputs.orders["amount"].sum(), column="revenue")])
def revenue_by_country(orders: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:
    """Return the revenue of each country: the columns country and revenue.

    The customer_id of an order may have blanks around it, and lower case. Orders of customers that are not
    in the table count for the country "unknown".
    """
    found = _keyed(orders).merge(customers, on="customer_id", how="left").fillna({"country": "unknown"})
    return found.groupby("country", as_index=False)["amount"].sum().rename(columns={"amount": "revenue"})


@problem(_orders, checks=[unique()])
def customers_without_orders(orders: pd.DataFrame, customers: pd.DataFrame) -> list[str]:
    """Return the ids of the customers who have no order, sorted.

    The customer_id of an order may have blanks around it, and lower case.
    """
    return sorted(set(customers["customer_id"]) - set(_keyed(orders)["customer_id"]))


@problem(_orders)
def match_counts(orders: pd.DataFrame, customers: pd.DataFrame) -> dict[str, int]:
    """Count how well two tables fit together.

    Return {"matched": orders whose customer is in the table, "unmatched": the other orders, "idle":
    customers without an order}. The customer_id of an order may have blanks around it, and lower case.
    """
    keys, known = _keyed(orders)["customer_id"], set(customers["customer_id"])
    matched = int(keys.isin(known).sum())
    return {"matched": matched, "unmatched": len(keys) - matched, "idle": len(known - set(keys))}


def _prices(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    prices = [
        {
            "product": product,
            "valid_from": f"2024-{month:02}-{mess.whole(1, 25):02}",
            "price": mess.money(1, 50),
        }
        for product in ("lamp", "pen", "desk")
        for month in (1, 3, 6)
    ]
    lines = [
        {
            "line": number,
            "product": mess.one(["lamp", "pen", "desk"]),
            "date": mess.day("2024-02-01", 200).isoformat(),
            "quantity": mess.whole(1, 9),
        }
        for number in range(1, 31)
    ]
    return {"lines": pd.DataFrame(lines), "prices": pd.DataFrame(mess.shuffled(prices))}


@problem(_prices, checks=[same_rows_as("lines", on="line"), columns("line", "total"), no_nulls()])
def totals_at_the_price_of_the_day(lines: pd.DataFrame, prices: pd.DataFrame) -> pd.DataFrame:
    """Return the total of each order line, quantity times price: the columns line and total.

    A product has several prices; the one that holds is the one with the latest valid_from that is not after
    the date of the line. Dates are texts like 2024-03-01.
    """
    both = lines.merge(prices, on="product")
    both = both[both["valid_from"] <= both["date"]].sort_values("valid_from").groupby("line").tail(1)
    return both.assign(total=both["quantity"] * both["price"])[["line", "total"]]


def _addresses(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    given = _orders(seed)
    rows = [
        {
            "customer_id": f"C{mess.whole(1, 8):03}",
            "city": mess.one(["Berlin", "Lyon", "Oslo"]),
            "since": f"20{year}-0{mess.whole(1, 9)}-01",
        }
        for year in range(10, 24)
    ]
    return {"orders": given["orders"], "addresses": pd.DataFrame(mess.shuffled(rows))}


@problem(
    _addresses,
    checks=[same_rows_as("orders", on="order_id"), unique("order_id"), columns("order_id", "city")],
    wrong=[
        lambda orders, addresses: _keyed(orders).merge(addresses, how="left")[["order_id", "city"]],
        lambda orders, addresses: _keyed(orders).merge(addresses.drop_duplicates("customer_id"), how="left")[
            ["order_id", "city"]
        ],
    ],
)
def orders_with_cities(orders: pd.DataFrame, addresses: pd.DataFrame) -> pd.DataFrame:
    """Add to each order the city where its customer lives now: the columns order_id and city.

    A customer may have several addresses; the one with the latest `since` holds. The city is missing for
    customers without an address. The customer_id of an order may have blanks around it, and lower case.
    """
    newest = addresses.sort_values("since").drop_duplicates("customer_id", keep="last")
    return _keyed(orders).merge(newest, on="customer_id", how="left")[["order_id", "city"]]
