from __future__ import annotations

import re
import statistics

from agex.agent.prompt.listing import documentation, listing, overview, tokens
from agex.agent.registration import Registration


def lookup(word: str, limit: int = 3, blob: object = object()) -> str:
    """Look a word up.

    In the dictionary.
    """


class Vault:
    """Keeps things."""

    size: int

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def put(self, item: object) -> None:
        """Put an item in."""

    def burn(self) -> None: ...

    def _hidden(self) -> None: ...


def record(kind, name, target, **settings):
    return Registration(kind=kind, name=name, target=target, **settings)


def test_high_shows_signature_and_docstring_medium_the_signature_low_nothing():
    shown = {
        level: listing([record("function", "lookup", lookup, visibility=level)])
        for level in ("high", "medium", "low")
    }
    line = "def lookup(word: str, limit: int = 3, blob: object = ...) -> str"
    assert shown["high"] == (f'Functions:\n{line}:\n    """Look a word up.\n\n    In the dictionary."""')
    assert shown["medium"] == f"Functions:\n{line}"
    assert shown["low"] == ""


def test_the_hosts_docstring_wins():
    assert '"""Mine."""' in listing([record("function", "f", lookup, docstring="Mine.")])


def test_a_class_shows_its_constructor_and_the_members_let_through():
    shown = listing([record("class", "Vault", Vault, exclude=("_*", "burn"))])
    assert shown == (
        'Classes:\nclass Vault(owner: str):\n    """Keeps things."""\n'
        "    size: int\n    def put(item: object) -> None  # Put an item in."
    )


def test_a_class_that_cannot_be_created_says_so():
    assert "cannot be created here" in listing([record("class", "Vault", Vault, constructable=False)])


def test_an_object_shows_its_methods_without_self():
    assert "put(item: object) -> None" in listing([record("object", "v", Vault("me"))])


def test_a_medium_module_shows_member_names_and_no_submodules():
    shown = listing([record("module", "statistics", statistics, visibility="medium")])
    assert shown.startswith(
        "Modules (importing them is optional):\nimport statistics  # Basic statistics module."
    )
    assert "median" in shown
    assert not re.search(r"\brandom\b", shown)


def test_past_the_budget_only_names_are_listed_and_then_a_count():
    many = [record("function", f"function_number_{n}", lookup) for n in range(400)]
    shown = listing(many, limit=1_000)
    assert tokens(shown) <= 1_050
    assert "Also available (see help(name)): " in shown
    assert shown.endswith("more; help() lists them")


def test_high_registrations_get_space_before_medium_ones():
    low_value = [record("function", f"m{n}", lookup, visibility="medium") for n in range(100)]
    shown = listing([*low_value, record("function", "important", lookup)], limit=100)
    assert '"""Look a word up.' in shown


def test_a_large_package_costs_no_more_than_the_budget():
    import pandas as pd

    shown = listing([record("module", "pandas", pd, visibility="high")])
    assert tokens(shown) <= 4_000


def test_help_describes_what_is_registered_by_object_or_name_and_bounds_the_rest():
    registrations = [record("class", "Vault", Vault, docstring="Safe.")]
    assert documentation(Vault, registrations) == documentation("Vault", registrations)
    assert "Safe." in documentation(Vault, registrations)
    assert len(documentation(type("Long", (), {"__doc__": "x" * 10**6}), ())) < 7_000
    assert documentation("nothing", ()) == "No registered name 'nothing'."


def test_help_compares_no_values_of_the_agent():
    class Hostile:
        def __eq__(self, other):
            raise AssertionError

        __hash__ = None

    assert documentation(Hostile(), [record("class", "Vault", Vault)]).endswith("Hostile object")


def test_the_overview_names_all_and_is_bounded():
    many = [record("function", f"f{n}", lookup, visibility="low") for n in range(10_000)]
    assert "function f0\n" in overview(many)
    assert len(overview(many)) < 7_000
