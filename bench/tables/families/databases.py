"""Databases: dumps of SQLite with cancelled orders, broken references and amounts in cents."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pandas as pd
from bench.tables.messy_data import CITIES, NAMES, PRODUCTS, Mess
from bench.tables.problem import Problem, family

from agex.checks import columns, no_nulls, rows, unique

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("databases", PROBLEMS)


def _shop(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    lines = [
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);",
        "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, category TEXT, cents INTEGER);",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, date TEXT, status TEXT);",
        "CREATE TABLE lines (order_id INTEGER, product INTEGER, quantity INTEGER);",
    ]
    for number, name in enumerate(NAMES, start=1):
        city = mess.one([f"'{each}'" for each in CITIES] + ["NULL"])
        lines.append(f"INSERT INTO customers VALUES ({number}, '{name}', {city});")
    for number, name in enumerate(PRODUCTS, start=1):
        category = "paper" if number % 2 else "other"
        lines.append(
            f"INSERT INTO products VALUES ({number}, '{name}', '{category}', {mess.whole(50, 9000)});"
        )
    buyers = mess.shuffled(range(1, 9))[:6]
    for number in range(1, 31):
        status = mess.one(["paid", "paid", "cancelled", "open"])
        day = mess.day(days=150).isoformat()
        lines.append(f"INSERT INTO orders VALUES ({number}, {mess.one(buyers)}, '{day}', '{status}');")
        for _ in range(mess.whole(0, 3)):
            product = mess.whole(1, 6)  # there are five
            lines.append(f"INSERT INTO lines VALUES ({number}, {product}, {mess.whole(1, 5)});")
    lines.append("INSERT INTO lines VALUES (99, 1, 1);")  # no such order
    return {"dump": "\n".join(lines)}


def _query(dump: str, query: str) -> pd.DataFrame:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(dump)
        return pd.read_sql(query, connection)


REVENUE = """\
SELECT c.name AS name, COALESCE(SUM(l.quantity * p.cents), 0) / 100.0 AS revenue
FROM customers c
LEFT JOIN orders o ON o.customer = c.id {status}
LEFT JOIN lines l ON l.order_id = o.id
LEFT JOIN products p ON p.id = l.product
GROUP BY c.id
"""
PAID = "AND o.status = 'paid'"


@problem(
    _shop,
    checks=[columns("name", "revenue"), rows(8), no_nulls()],
    wrong=[
        lambda dump: _query(dump, REVENUE.format(status="")),
        lambda dump: _query(dump, REVENUE.format(status=PAID).replace("LEFT JOIN", "JOIN")),
    ],
)
def revenue_of_customers(dump: str) -> pd.DataFrame:
    """Return the revenue of each customer in euros: the columns name and revenue.

    The text is a dump of SQLite: load it into a database in memory. It has the tables customers (id, name,
    city), products (id, name, category, cents), orders (id, customer, date, status) and lines (order_id,
    product, quantity). Only orders with the status 'paid' count. Customers without any have 0.
    """
    return _query(dump, REVENUE.format(status=PAID))


@problem(_shop, checks=[unique()])
def customers_who_never_paid(dump: str) -> list[str]:
    """Return the names of the customers without an order of the status 'paid', sorted.

    The text is a dump of SQLite: load it into a database in memory. It has the tables customers (id, name,
    city) and orders (id, customer, date, status).
    """
    query = "SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE status = 'paid')"
    return sorted(_query(dump, query)["name"].tolist())


@problem(_shop, checks=[columns("month", "orders"), rows(5), no_nulls()])
def orders_by_month(dump: str) -> pd.DataFrame:
    """Count the orders of each month from 2024-01 to 2024-05: the columns month and orders.

    The text is a dump of SQLite: load it into a database in memory. Its table orders has the columns id,
    customer, date (like 2024-03-01) and status; cancelled ones do not count. A month without orders has 0.
    """
    found = _query(dump, "SELECT substr(date, 1, 7) AS month FROM orders WHERE status <> 'cancelled'")
    months = [f"2024-0{number}" for number in range(1, 6)]
    counts = found["month"].value_counts().reindex(months, fill_value=0)
    return pd.DataFrame({"month": months, "orders": counts.to_numpy()})


@problem(
    _shop,
    checks=[columns("category", "name", "quantity"), unique("category", "name")],
    wrong=[
        lambda dump: _query(
            dump,
            "SELECT p.category, p.name, COUNT(*) AS quantity FROM lines l JOIN products p ON p.id = l.product "
            "JOIN orders o ON o.id = l.order_id GROUP BY p.id",
        ),
        lambda dump: _query(
            dump,
            "SELECT p.category, p.name, SUM(l.quantity) AS quantity FROM lines l "
            "JOIN products p ON p.id = l.product GROUP BY p.id",
        ),
    ],
)
def quantities_sold(dump: str) -> pd.DataFrame:
    """Return how many pieces of each product were ordered: the columns category, name, quantity.

    The text is a dump of SQLite: load it into a database in memory. It has the tables products (id, name,
    category, cents), orders (id, customer, date, status) and lines (order_id, product, quantity). Lines of
    orders that are not in the table do not count. Products that nobody ordered are left out.
    """
    return _query(
        dump,
        "SELECT p.category, p.name, SUM(l.quantity) AS quantity FROM lines l "
        "JOIN products p ON p.id = l.product JOIN orders o ON o.id = l.order_id GROUP BY p.id",
    )


@problem(_shop)
def broken_references(dump: str) -> dict[str, int]:
    """Count what is broken: {"lines_without_order", "lines_without_product", "orders_without_lines"}.

    The text is a dump of SQLite: load it into a database in memory. It has the tables products (id, ...),
    orders (id, ...) and lines (order_id, product, quantity).
    """
    query = """\
    SELECT (SELECT COUNT(*) FROM lines WHERE order_id NOT IN (SELECT id FROM orders)) AS lines_without_order,
           (SELECT COUNT(*) FROM lines WHERE product NOT IN (SELECT id FROM products)) AS lines_without_product,
           (SELECT COUNT(*) FROM orders WHERE id NOT IN (SELECT order_id FROM lines)) AS orders_without_lines
    """
    return {str(name): int(count) for name, count in _query(dump, query).iloc[0].items()}


def _bank(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    lines = [
        "CREATE TABLE bookings (id INTEGER PRIMARY KEY, account TEXT, date TEXT, kind TEXT, cents INTEGER);"
    ]
    for number in range(1, 41):
        kind = mess.one(["credit", "debit", "DEBIT", "reversed"])
        day = mess.day(days=60).isoformat()
        account = mess.one(["A1", "B2", "C3"])
        lines.append(
            f"INSERT INTO bookings VALUES ({number}, '{account}', '{day}', '{kind}', {mess.whole(1, 90000)});"
        )
    return {"dump": "\n".join(lines)}


BALANCE = """\
SELECT account, SUM(CASE {kind} WHEN 'credit' THEN cents WHEN 'debit' THEN -cents ELSE {other} END) / 100.0 AS balance
FROM bookings GROUP BY account
"""


@problem(
    _bank,
    checks=[columns("account", "balance"), unique("account"), no_nulls()],
    wrong=[
        lambda dump: _query(dump, BALANCE.format(kind="kind", other=0)),
        lambda dump: _query(dump, BALANCE.format(kind="lower(kind)", other="cents")),
    ],
)
def balances(dump: str) -> pd.DataFrame:
    """Return the balance of each account in euros: the columns account and balance.

    The text is a dump of SQLite: load it into a database in memory. Its table bookings has the columns id,
    account, date, kind and cents. Credits add, debits take away, in any case of letters; bookings of any
    other kind do not count.
    """
    return _query(dump, BALANCE.format(kind="lower(kind)", other=0))
