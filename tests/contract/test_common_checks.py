"""The checks of agex.checks: what passes, what does not, and what the model reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from agex import Agent, checks
from agex.agent.call.terms import Inputs
from agex.errors import DefinitionError
from agex.testing import ScriptedModel

Make = Callable[[dict[str, list[Any]]], Any]


@dataclass
class Order:
    id: int | None
    total: float | None


def as_records(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def as_objects(table: dict[str, list[Any]]) -> list[Order]:
    return [Order(**row) for row in as_records(table)]


TABLES: dict[str, Make] = {
    "pandas": pd.DataFrame,
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "dicts": as_records,
    "objects": as_objects,
}
ORDERS = {"id": [1, 2, 3], "total": [10.0, 20.0, 12.5]}
NONE = Inputs({})


def on_each(*rows: Any) -> pytest.MarkDecorator:
    cases = [
        pytest.param(make, *row, id=f"{kind}-{row[0].__name__}")
        for kind, make in TABLES.items()
        for row in rows
    ]
    return pytest.mark.parametrize(("make", "check", "message"), cases)


@on_each(
    (checks.columns("id", "total"), None),
    (checks.columns("id", "total", exact=True), None),
    (checks.columns("total", "id", exact=True), "their order must be 'total', 'id'"),
    (checks.columns("id", exact=True), "not expected: 'total'"),
    (checks.columns("id", "date"), "missing: 'date'; the columns are 'id', 'total'"),
    (checks.rows(3), None),
    (checks.rows(4), "it has 3 rows, 1 fewer than 4"),
    (checks.rows(at_most=2), "it has 3 rows, 1 more than 2"),
    (checks.no_nulls(), None),
    (checks.unique("id"), None),
    (checks.total_is(42.5, column="total"), None),
    (checks.total_is(40, column="total"), "total: the total is 42.5, not 40"),
    (checks.between(10, 20, column="total"), None),
    (checks.between(11, 20, column="total"), "total: 1 not between 11 and 20: 10.0 in row 0"),
    (checks.is_subset_of([1, 2, 3], column="id"), None),
    (checks.is_subset_of([1, 2], column="id"), "id: 1 not one of 1, 2: 3 in row 2"),
)
def test_a_table_of_any_kind(make: Make, check: checks.Verdict, message: str | None) -> None:
    said = check(make(ORDERS), NONE)
    assert said == message or (message is not None and message in str(said))


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_missing_values_are_told_by_column_and_row(make: Make) -> None:
    table = make({"id": [1, None, 3], "total": [None, None, 1.0]})
    assert checks.no_nulls()(table, NONE) == "id: 1 missing (rows 1); total: 2 missing (rows 0, 1)"
    assert checks.no_nulls("id")(table, NONE) == "id: 1 missing (rows 1)"


@pytest.mark.parametrize(
    "cell", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")], ids=repr
)
def test_each_kind_of_missing_value_is_one(cell: Any) -> None:
    assert checks.no_nulls()([1, cell], NONE) == "1 missing (rows 1)"
    assert checks.between(0, 5)([1, cell], NONE) is None


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_rows_that_were_lost_or_added_are_named(make: Make) -> None:
    inputs = Inputs({"orders": make(ORDERS)})
    fewer = make({"id": [3, 1, 4], "total": [12.5, 10.0, 1.0]})
    assert checks.same_rows_as("orders")(make({"total": [12.5, 20.0, 10.0], "id": [3, 2, 1]}), inputs) is None
    assert checks.same_rows_as("orders", on="id")(fewer, inputs) == (
        "1 rows of orders are not there (2); 1 rows are not in orders (4)"
    )
    assert "2 rows of orders" not in str(checks.same_rows_as("orders")(fewer, inputs))


def test_a_row_that_is_there_twice_is_one_too_many() -> None:
    inputs = Inputs({"names": ["a", "b"]})
    assert checks.same_rows_as("names")(["b", "a"], inputs) is None
    assert checks.same_rows_as("names")(["a", "b", "b"], inputs) == "1 rows are not in names ('b')"
    assert checks.unique()(["a", "b", "b"], NONE) == "1 repeated: 'b' 2 times"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["AB-1", "CD-2"], None),
        (pd.Series(["AB-1", None]), None),
        ("AB-1", None),
        (["AB-1", "x", 3], "2 not text of the form [A-Z]+-[0-9]: 'x' in row 1, 3 in row 2"),
        ("AB-12", "1 not text of the form [A-Z]+-[0-9]: 'AB-12' in row 0"),
    ],
)
def test_texts_match_as_a_whole(value: Any, message: str | None) -> None:
    assert checks.matches("[A-Z]+-[0-9]")(value, NONE) == message


@pytest.mark.parametrize(
    ("value", "expected", "message"),
    [
        (0.1 + 0.2, 0.3, None),
        (1, 1.0, None),
        (float("nan"), float("nan"), None),
        (2, 1, "2 is not close to 1"),
        ("1", 1, "'1' is not close to 1"),
        ([1.0, 2.0], (1, 2.0000001), None),
        ([1.0], [1.0, 2.0], "2 items were expected, not 1"),
        ({"a": [1, 2.5]}, {"a": [1, 2.4]}, "at ['a'][1]: 2.5 is not close to 2.4"),
        ({"a": 1}, {"b": 1}, "'b' were expected, not 'a'"),
        (pd.DataFrame(ORDERS), pd.DataFrame(ORDERS), None),
        (pl.DataFrame(ORDERS), pd.DataFrame(ORDERS), None),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.1]}), "at ['a'][0]: 1.0 is not close to 1.1"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 5]], "at [1][1]: np.int64(4) is not close to 5"),
        (date(2026, 1, 1), date(2026, 1, 1), None),
        ("a", "b", "'a' is not 'b'"),
    ],
    ids=str,
)
def test_what_is_close(value: Any, expected: Any, message: str | None) -> None:
    assert checks.close_to(expected)(value, NONE) == message
    assert checks.close_to(lambda inputs: expected)(value, NONE) == message


def test_what_is_expected_may_come_from_the_inputs() -> None:
    inputs = Inputs({"orders": pd.DataFrame(ORDERS), "known": ["a", ["b"]]})
    total = checks.total_is(lambda inputs: inputs.orders["total"].sum(), column="total")
    assert total(pd.DataFrame(ORDERS), inputs) is None
    known = checks.is_subset_of(lambda inputs: inputs.known)
    assert known(["a", ["b"]], inputs) is None
    assert known(["c"], inputs) == "1 not one of the allowed values: 'c' in row 0"


@pytest.mark.parametrize(
    ("check", "value", "said"),
    [
        (checks.columns("a"), 3, "a table with the columns 'a' was expected, not a value of type int"),
        (checks.rows(1), 3, "rows were expected, not a value of type int"),
        (checks.same_rows_as("orders"), 3, "a table with the rows of orders was expected"),
    ],
)
def test_a_value_of_another_kind_is_told(check: checks.Verdict, value: Any, said: str) -> None:
    assert said in str(check(value, Inputs({"orders": pd.DataFrame(ORDERS)})))


def test_a_column_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(
        ValueError, match=re.escape("there is no column 'date'; the columns are 'id', 'total'")
    ):
        checks.no_nulls("date")(pd.DataFrame(ORDERS), NONE)


@pytest.mark.parametrize(
    "make",
    [
        checks.columns,
        checks.rows,
        lambda: checks.columns(3),
        lambda: checks.matches("("),
        lambda: checks.no_nulls(3),
    ],
    ids=["columns", "rows", "columns(3)", "matches", "no_nulls(3)"],
)
def test_a_check_that_can_check_nothing_is_refused_where_it_is_made(make: Callable[..., Any]) -> None:
    with pytest.raises(DefinitionError):
        make()


def test_only_a_few_of_many_faults_are_named() -> None:
    said = str(checks.between(0, 1)(list(range(100)), NONE))
    assert said.startswith("98 not between 0 and 1: 2 in row 2, ")
    assert said.endswith("6 in row 6 and 93 more")


def test_a_check_sends_the_model_back_with_its_message() -> None:
    model = ScriptedModel(["```python\ntask_success([1, None])\n```", "```python\ntask_success([1, 2])\n```"])
    agent = Agent(model=model)

    @agent.task(checks=[checks.no_nulls(), checks.rows(2)])
    def numbers() -> list[int | None]:
        """Count."""

    assert numbers() == [1, 2]
    assert "the result does not pass no_nulls(): 1 missing (rows 1)" in model.requests[1].messages[-1].content


def test_an_empty_table_passes_what_says_nothing_of_rows() -> None:
    for make in (pd.DataFrame, pl.DataFrame):
        empty = make({"id": []})
        assert checks.no_nulls()(empty, NONE) is None
        assert checks.between(0, 1, column="id")(empty, NONE) is None
        assert checks.rows(at_least=1)(empty, NONE) == "it has 0 rows, 1 fewer than 1"


def test_a_record_may_be_any_object_with_declared_fields() -> None:
    assert checks.columns("id")([Order(1, 2.0)], NONE) is None
    assert checks.columns("id")([SimpleNamespace(id=1)], NONE) == (
        "a table with the columns 'id' was expected, not a value of type list"
    )
