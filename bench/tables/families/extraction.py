"""Extraction: records out of text that people wrote."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from bench.tables.messy_data import CITIES, NAMES, PRODUCTS, Mess
from bench.tables.problem import Problem, family

from agex.checks import between, columns, matches, no_nulls, unique

__all__ = ["PROBLEMS"]

PROBLEMS: list[Problem] = []
problem = family("extraction", PROBLEMS)


def _letter(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    parts = []
    for _ in range(12):
        number, amount = f"INV-{mess.whole(10000, 99999)}", f"{mess.money(1, 4000):,.2f}"
        parts.append(
            mess.one(
                [
                    f"Invoice {number} of {amount} EUR is still open.",
                    f"We have paid {number.lower()} (EUR {amount}) last week.",
                    f"Please look at {number}: the amount is {amount} EUR, not 12.00 EUR.",
                    "Kind regards from Wien, where it has 31 degrees.",
                ]
            )
        )
    return {"text": "\n".join(parts)}


def _invoices(text: str, pattern: str = r"(?i)inv-\d{5}") -> list[dict[str, Any]]:
    found = []
    for each in text.splitlines():
        number, amount = re.search(pattern, each), re.search(r"\d[\d,]*\.\d\d", each)
        if number and amount:
            found.append({"number": number[0].upper(), "amount": float(amount[0].replace(",", ""))})
    return found


@problem(
    _letter,
    checks=[
        columns("number", "amount"),
        matches(r"INV-\d{5}", column="number"),
        between(1, 4000, column="amount"),
    ],
    wrong=[
        lambda text: _invoices(text, r"INV-\d{5}"),
        lambda text: [
            {"number": number.upper(), "amount": float(amount)}
            for number, amount in re.findall(r"(?i)(inv-\d{5}).*?(\d+\.\d\d)", text)
        ],
    ],
)
def invoices_in_a_letter(text: str) -> list[dict[str, Any]]:
    r"""Extract the invoices: a dict with number and amount for each line that has one, in the order of the lines.

    A number is written INV-12345, in any case; return it in upper case. Its amount is the first number with
    two decimals in the line, with commas for thousands: 1,234.50.

    >>> invoices_in_a_letter("Hello,\ninv-12345 (EUR 1,234.50) is paid, 10.00 is not.")
    [{'number': 'INV-12345', 'amount': 1234.5}]
    """
    return _invoices(text)


def _contacts(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    parts = []
    for _ in range(20):
        first, last = mess.one(NAMES).replace("é", "e").replace("á", "a").split()
        email = mess.one(
            [f"{first}.{last}@mail.example.org", f"{first}+news@example.com", f"{last}@ex-ample.net"]
        )
        parts.append(
            mess.one(
                [f"write to {email}.", f"{first} <{email.lower()}>", f"mail:{email},", f"@{first} not a mail"]
            )
        )
    return {"text": " ".join(parts)}


@problem(_contacts, checks=[unique(), matches(r"[^@\s<>]+@[a-z.-]+[a-z]")])
def email_addresses(text: str) -> list[str]:
    """Return the distinct email addresses in a text, in lower case, sorted.

    >>> email_addresses("Anna <Anna.Berg@Example.org>, or anna.berg@example.org.")
    ['anna.berg@example.org']
    """
    return sorted({each.lower() for each in re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", text)})


def _addresses(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    lines = []
    for _ in range(15):
        street = mess.one(["Hauptstr.", "Am Markt", "Rue de la Paix", "Storgata"])
        house = f"{mess.whole(1, 120)}{mess.one(['', '', 'a', ' b'])}"
        lines.append(
            f"{street} {house},{mess.one(['', ' '])}{mess.whole(1000, 99999):05} {mess.one([*CITIES, 'Bad Ems'])}"
        )
    return {"addresses": lines}


@problem(
    _addresses,
    checks=[columns("street", "house", "postcode", "city"), matches(r"\d{5}", column="postcode"), no_nulls()],
)
def split_addresses(addresses: list[str]) -> pd.DataFrame:
    """Split each address into the columns street, house, postcode, city, all of them texts.

    An address is like "Am Markt 12 b, 01234 Bad Ems". The house is a number with a letter behind it or
    none, without a blank between them: "12b". The postcode has five digits.
    """
    rows = []
    for text in addresses:
        match = re.fullmatch(r"(.+?) (\d+ ?[a-z]?),\s*(\d{5}) (.+)", text)
        assert match is not None
        rows.append((match[1], match[2].replace(" ", ""), match[3], match[4]))
    return pd.DataFrame(rows, columns=["street", "house", "postcode", "city"])


def _cards(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    cards = []
    for name in NAMES:
        lines = [f"Name: {name}", mess.one(["", f"City : {mess.one(CITIES)}"]), f"AGE:{mess.whole(18, 80)}"]
        cards.append("\n".join(line for line in mess.shuffled(lines) if line))
    return {"text": "\n\n".join(cards) + "\n"}


@problem(
    _cards,
    checks=[columns("name", "city", "age"), no_nulls("name", "age"), between(0, 120, column="age")],
    wrong=[
        lambda text: pd.DataFrame(
            {
                "name": re.findall(r"Name: (.*)", text),
                "city": (re.findall(r"City : (.*)", text) + [None] * 99)[: len(re.findall("Name:", text))],
                "age": [int(each) for each in re.findall(r"AGE:(.*)", text)],
            }
        ),
        lambda text: pd.DataFrame(
            [
                {"name": name, "city": None, "age": int(age)}
                for name, age in zip(
                    re.findall(r"Name: (.*)", text), re.findall(r"AGE:(.*)", text), strict=True
                )
            ]
        ),
    ],
)
def records_of_cards(text: str) -> pd.DataFrame:
    """Read the cards as a table: the columns name, city, age.

    Cards are parted by an empty line. A line of a card is "key: value"; keys have any case and blanks
    around them, and come in any order. The age is a whole number. The city is missing where a card has none.
    """
    rows = []
    for card in text.strip().split("\n\n"):
        pairs = (line.split(":", 1) for line in card.splitlines())
        fields = {key.strip().lower(): value.strip() for key, value in pairs}
        rows.append({"name": fields["name"], "city": fields.get("city"), "age": int(fields["age"])})
    return pd.DataFrame(rows)


def _chat(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    lines = []
    for minute in range(30):
        lines.append(
            f"[10:{minute:02}] {mess.one(NAMES[:4])}: {mess.one(['Hi', 'ok: fine', 'see [10:01]', 'bye'])}"
        )
        if mess.chance(0.3):
            lines.append(mess.one(["and one more line", "- a list", "PS: thanks"]))
    return {"chat": "\n".join(lines)}


@problem(_chat)
def lines_by_person(chat: str) -> dict[str, int]:
    r"""Count the lines that each person wrote.

    A message begins with "[10:32] Anna: text"; lines that do not begin like that go on with the message
    above them, and count for the same person.

    >>> lines_by_person("[10:00] Anna: Hi\nagain\n[10:01] Bo: ok: fine")
    {'Anna': 2, 'Bo': 1}
    """
    found: dict[str, int] = {}
    person = ""
    for line in chat.splitlines():
        match = re.match(r"\[\d\d:\d\d\] ([^:]+): ", line)
        person = match[1] if match else person
        found[person] = found.get(person, 0) + 1
    return found


def _order(seed: int) -> dict[str, Any]:
    mess = Mess(seed)
    lines = []
    for _ in range(15):
        product, count, price = mess.one(PRODUCTS), mess.whole(1, 12), f"{mess.money(1, 90):.2f}"
        lines.append(
            mess.one(
                [
                    f"{count} x {product} @ {price}",
                    f"{count}x {product.title()} @ {price} each",
                    f"{product} @ {price}",
                    f"-- {product}: not available --",
                ]
            )
        )
    return {"text": "\n".join([*lines, "desk lamp @ 10.00"])}


@problem(
    _order, checks=[columns("product", "quantity", "price"), no_nulls(), between(1, 100, column="quantity")]
)
def order_lines(text: str) -> list[dict[str, Any]]:
    r"""Extract the order lines, in their order: a dict with product, quantity and price for each.

    A line is "3 x Blue pen @ 1.20", with or without a blank before the x, and maybe with words behind the
    price. Without a quantity it is 1. The product is in lower case. Other lines are none.

    >>> order_lines("3x Blue Pen @ 1.20 each\ndesk lamp @ 9.00\n-- pen: not available --")
    [{'product': 'blue pen', 'quantity': 3, 'price': 1.2}, {'product': 'desk lamp', 'quantity': 1, 'price': 9.0}]
    """
    found = []
    for line in text.splitlines():
        match = re.match(r"(?:(\d+) ?x )?(.+) @ (\d+\.\d\d)", line)
        if match:
            found.append(
                {"product": match[2].lower(), "quantity": int(match[1] or 1), "price": float(match[3])}
            )
    return found
