"""Answers whose class says of them what they are not.

Stopped by: contract, agent.task.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pytest
from annotated_types import Ge, Gt, Interval, MultipleOf, Predicate
from pydantic import AfterValidator, BaseModel, BeforeValidator, field_validator

from agex.agent import Agent
from agex.contract import Checker, ContractError
from agex.errors import TaskFail
from agex.testing import ScriptedModel, python_action

LIARS = """
import datetime as dt
import enum
import numpy as np
from collections import OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

class S(int):
    def __repr__(self): return "4"
    __str__ = __repr__
    def __eq__(self, other): return True
    def __hash__(self): return 4
    def __round__(self, digits=0): return 4
    def __add__(self, other): return 4
class F(float):
    def __round__(self, digits=0): return 4.0
    def __repr__(self): return "4.0"
class T(str):
    def __repr__(self): return "'a'"
    def title(self): return "A"
class B(bytes):
    def __repr__(self): return "b'a'"
class L(list):
    def __repr__(self): return "[4]"
    def __iter__(self): return iter([4])
    def __len__(self): return 1
    def __getitem__(self, at): return 4
class M(dict):
    def __repr__(self): return "{'a': 4}"
class O(OrderedDict):
    def __repr__(self): return "OrderedDict({'a': 4})"
class W(set):
    def __repr__(self): return "{4}"
class U(tuple):
    def __repr__(self): return "(4,)"
class N(NamedTuple):
    n: int
    def __repr__(self): return "(4,)"
class D(Decimal):
    def __repr__(self): return "Decimal('4')"
class Q(Fraction):
    def __repr__(self): return "Fraction(4, 1)"
class Day(dt.date):
    def __repr__(self): return "datetime.date(2020, 1, 4)"
class Moment(dt.datetime):
    def __repr__(self): return "datetime.datetime(2020, 1, 4, 0, 0)"
class Span(dt.timedelta):
    def total_seconds(self): return 4.0
class Level(enum.IntEnum):
    LOW = 4
    HIGH = 99
    def __repr__(self): return "4"
class Any4:
    def __repr__(self): return "4"
    def __eq__(self, other): return True
"""


@dataclass
class Point:
    n: int


@dataclass(frozen=True, slots=True)
class Fixed:
    n: int


class Named(NamedTuple):
    n: int


class Record(BaseModel):
    n: int


class Price(BaseModel):
    amount: Annotated[Fraction, Gt(0)]

    @field_validator("amount", mode="before")
    @classmethod
    def read(cls, value: Any) -> Any:
        return value


class Colour(enum.IntEnum):
    RED = 4


class Celsius(float):
    def __repr__(self) -> str:
        return f"{float(self)} degrees"


class Priced(float):
    def __new__(cls, amount: float, currency: str) -> Self:
        made = super().__new__(cls, amount)
        made.currency = currency
        return made

    currency: str

    def __repr__(self) -> str:
        return f"{float(self)} {self.currency}"


CLASSES = (Point, Fixed, Named, Record, Colour, Celsius, Priced)


def answered(annotation: Any, code: str, *, doc: str = "", examples: Any = ()) -> Any:
    """Give what a task comes to whose agent wrote `code`, and gives up once it is refused."""
    model = ScriptedModel([[python_action(LIARS + code)], [python_action("task_fail('no')")]])
    agent = Agent(model=model)
    for each in CLASSES:
        agent.cls(each)
    agent.module(np)

    def work(n: int) -> Any: ...

    work.__annotations__["return"] = annotation
    work.__doc__ = doc
    try:
        return agent.task(examples=examples)(work)(2)
    except TaskFail:
        raise Refused(model.requests[1].messages[-1].content) from None


class Refused(Exception):
    """The agent was told why its answer does not do."""


@pytest.mark.parametrize(
    ("annotation", "call", "want", "answer"),
    [
        (int, "work(2)", "4", "S(99)"),
        (int, "round(work(2), 1)", "4", "S(99)"),
        (int, "work(2) + 1", "4", "S(99)"),
        (int, "work(2) == 4", "True", "S(99)"),
        (float, "work(2)", "4.0", "F(99)"),
        (float, "round(work(2), 1)", "4.0", "F(99)"),
        (int, "work(2)", "4", "Level.HIGH"),
        (str, "work(2)", "'a'", "T('z')"),
        (str, "work(2).title()", "'A'", "T('z')"),
        (bytes, "work(2)", "b'a'", "B(b'z')"),
        (list[int], "work(2)", "[4]", "[S(99)]"),
        (list[int], "work(2)", "[4]", "L([99])"),
        (list[int], "work(2)[0]", "4", "L([99])"),
        (list[int], "len(work(2))", "1", "L([98, 99])"),
        (list[int], "sorted(work(2))[0]", "4", "[S(99)]"),
        (dict[str, int], "work(2)", "{'a': 4}", "M(a=99)"),
        (dict[str, int], "work(2)", "{'a': 4}", "{'a': S(99)}"),
        (dict[str, int], "work(2)", "{'a': 4}", "{T('z'): 4}"),
        (dict[str, int], "work(2)", "OrderedDict({'a': 4})", "O(a=99)"),
        (set[int], "work(2)", "{4}", "W([99])"),
        (set[int], "work(2)", "{4}", "{S(99)}"),
        (tuple[int, ...], "work(2)", "(4,)", "U((99,))"),
        (tuple[int, ...], "work(2)", "(4,)", "N(99)"),
        (Decimal, "work(2)", "Decimal('4')", "D('99')"),
        (Fraction, "work(2)", "Fraction(4, 1)", "Q(99)"),
        (dt.date, "work(2)", "datetime.date(2020, 1, 4)", "Day(2021, 1, 4)"),
        (dt.datetime, "work(2)", "datetime.datetime(2020, 1, 4, 0, 0)", "Moment(2021, 1, 4)"),
        (dt.timedelta, "work(2).total_seconds()", "4.0", "Span(seconds=99)"),
        (Any, "work(2)", "4", "Any4()"),
        (Any, "work(2)", "[4]", "[Any4()]"),
        (Any, "work(2)", "4", "S(99)"),
        (Point, "work(2)", "Point(n=4)", "Point(S(99))"),
        (Point, "work(2).n", "4", "Point(S(99))"),
        (Fixed, "work(2)", "Fixed(n=4)", "Fixed(S(99))"),
        (Named, "work(2)", "Named(n=4)", "Named(S(99))"),
        (list[Record], "work(2)", "[Record(n=4)]", "[Record.model_construct(n=S(99))]"),
        (
            Point,
            "work(2)",
            "Point(n=4)",
            "type('P', (Point,), {'__repr__': lambda self: 'Point(n=4)'})(99)",
        ),
    ],
)
def test_a_doctest_does_not_believe_what_a_class_of_the_agents_says(
    annotation: Any, call: str, want: str, answer: str
) -> None:
    with pytest.raises(Refused, match=r"\Aexample failed\n(?!(.|\n)*Error)"):
        answered(annotation, f"def work(n): return {answer}", doc=f">>> {call}\n{want}\n")


@pytest.mark.parametrize(
    ("annotation", "expected", "answer"),
    [
        (Point, Point(4), "Point(S(99))"),
        (list[Fixed], [Fixed(4)], "[Fixed(S(99))]"),
        (Named, Named(4), "Named(S(99))"),
        (Record, Record(n=4), "Record.model_construct(n=S(99))"),
        (Decimal, Decimal(4), "type('E', (Decimal,), {'__eq__': lambda *_: True})(99)"),
    ],
)
def test_a_given_example_does_not_ask_a_class_of_the_agents_for_equality(
    annotation: Any, expected: Any, answer: str
) -> None:
    with pytest.raises(Refused, match=r"\Aexample failed\n(?!(.|\n)*Error)"):
        answered(annotation, f"def work(n): return {answer}", examples=[(((2,), {}), expected)])


@pytest.mark.parametrize(
    ("annotation", "call", "want", "answer"),
    [
        (int, "work(2)", "4", "S(4)"),
        (int, "work(2)", "4", "enum.IntEnum('Own', {'A': 4}).A"),
        (int, "work(2)", "4", "Level.LOW"),
        (Celsius, "work(2)", "4.0 degrees", "type('Warm', (Celsius,), {})(4)"),
        (Priced, "work(2)", "4.0 EUR", "type('Paid', (Priced,), {'__repr__': lambda self: '-'})(4, 'EUR')"),
        (float, "round(work(2), 1)", "4.1", "F(4.12)"),
        (list[int], "work(2)", "[4, 4]", "L([S(4), 4])"),
        (OrderedDict, "work(2)['a']", "4", "O(a=4)"),
        (Decimal, "work(2)", "Decimal('4.50')", "D('4.50')"),
        (Fraction, "work(2)", "Fraction(1, 2)", "Q(1, 2)"),
        (dt.datetime, "work(2)", "datetime.datetime(2021, 1, 4, 5, 6)", "Moment(2021, 1, 4, 5, 6)"),
        (Any, "work(2)", "Pair(a=1, b=2)", "NamedTuple('Pair', [('a', int), ('b', int)])(1, 2)"),
        (Any, "work(2).n", "4", "type('Own', (), {'n': 4})()"),
        (Any, "work(2)", "<here>", "type('Own', (), {'__repr__': lambda self: '<here>'})()"),
        (Point, "work(2)", "Point(n=4)", "Point(4)"),
        (Named, "work(2).n", "4", "Named(4)"),
        (Colour, "work(2)", "<Colour.RED: 4>", "Colour.RED"),
        (Celsius, "work(2)", "4.0 degrees", "Celsius(4)"),
        (np.float64, "work(2)", "np.float64(4.0)", "np.float64(4)"),
    ],
)
def test_a_doctest_is_met_by_what_its_text_says(annotation: Any, call: str, want: str, answer: str) -> None:
    answered(annotation, f"def work(n): return {answer}", doc=f">>> {call}\n{want}\n")


ALWAYS = """
def always(self, other): return True
def lying(base):
    names = ("__gt__", "__ge__", "__lt__", "__le__", "__eq__")
    return type("Lying", (base,), {**dict.fromkeys(names, always), "__mod__": lambda *_: base(0)})
"""
EARLY = dt.date(2000, 1, 1)
NOON = dt.datetime(2000, 1, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("annotation", "answer"),
    [
        (Annotated[int, Gt(0)], "lying(int)(-5)"),
        (Annotated[float, Interval(ge=0, le=1)], "lying(float)(-5)"),
        (Annotated[Decimal, Gt(0)], "lying(Decimal)('-5')"),
        (Annotated[Decimal, MultipleOf(Decimal(2))], "lying(Decimal)('3')"),
        (Annotated[Decimal | None, Gt(0)], "lying(Decimal)('-5')"),
        (list[Annotated[Decimal, Gt(0)]], "[lying(Decimal)('-5')]"),
        (Annotated[Decimal, Gt(0), AfterValidator(lambda value: value)], "lying(Decimal)('-5')"),
        (Annotated[Fraction, BeforeValidator(lambda value: value), Gt(0)], "lying(Fraction)(-5, 2)"),
        (Price, "{'amount': lying(Fraction)(-5, 2)}"),
        (Annotated[Fraction, Ge(0)], "lying(Fraction)(-5, 2)"),
        (Annotated[dt.date, Gt(EARLY)], "lying(dt.date)(1999, 1, 1)"),
        (Annotated[dt.datetime, Gt(NOON)], "lying(dt.datetime)(1999, 1, 1, tzinfo=dt.timezone.utc)"),
        (Annotated[dt.time, Gt(dt.time(6))], "lying(dt.time)(5)"),
        (Annotated[dt.timedelta, Gt(dt.timedelta(0))], "lying(dt.timedelta)(-1)"),
        (Annotated[Celsius, Gt(0)], "lying(Celsius)(-5)"),
        (Annotated[Point, Gt(0)], "type('P', (Point,), {'__gt__': always})(-5)"),
        (Annotated[Any, Gt(0)], "type('Own', (), {'__gt__': always})()"),
        (Annotated[list[int], Predicate(lambda found: all(each > 0 for each in found))], "L([-5])"),
    ],
)
def test_a_bound_does_not_ask_a_class_of_the_agents(annotation: Any, answer: str) -> None:
    with pytest.raises(Refused, match=r"returned a wrong value:(.|\n)*ContractError: result"):
        answered(annotation, f"{ALWAYS}\ndef work(n): return {answer}")


@pytest.mark.parametrize(
    ("annotation", "answer"),
    [
        (Annotated[Decimal, Gt(0)], "lying(Decimal)('5')"),
        (Annotated[Fraction, Ge(0)], "lying(Fraction)(5, 2)"),
        (Annotated[dt.date, Gt(EARLY)], "lying(dt.date)(2001, 1, 1)"),
        (Annotated[Celsius, Gt(0)], "lying(Celsius)(5)"),
    ],
)
def test_a_value_within_its_bounds_is_handed_on_whatever_its_class(annotation: Any, answer: str) -> None:
    assert type(answered(annotation, f"{ALWAYS}\ndef work(n): return {answer}")).__name__ == "Lying"


def test_a_bound_asks_a_class_of_the_hosts() -> None:
    class Rank:
        def __gt__(self, other: object) -> bool:
            return other == "low"

    rank = Rank()
    assert Checker(Annotated[Rank, Gt("low")]).check(rank) is rank
    with pytest.raises(ContractError, match="greater than high"):
        Checker(Annotated[Rank, Gt("high")]).check(rank)
