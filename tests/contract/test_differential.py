"""The contract beside pydantic's strict mode: the same values fit, and the same values come of them."""

import datetime as dt
import math
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar

import annotated_types as at
import numpy as np
import pandas as pd
import pytest
import typing_extensions
from pydantic import (
    UUID4,
    AfterValidator,
    AllowInfNan,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    FutureDate,
    InstanceOf,
    NaiveDatetime,
    PastDatetime,
    PlainSerializer,
    PlainValidator,
    PositiveInt,
    PydanticUserError,
    RootModel,
    Secret,
    SkipValidation,
    Strict,
    StrictBool,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    WrapValidator,
    conbytes,
    condate,
    condecimal,
    confloat,
    conint,
    conlist,
    conset,
    constr,
    create_model,
    field_validator,
    model_validator,
)

from agex.contract import Checker, ContractError, TaskSignature
from agex.contract.annotations import Scope
from agex.errors import InputError

REFUSED = "refused"
DAY = dt.date(2020, 1, 2)
NOON = dt.datetime(2020, 1, 2, 12)  # noqa: DTZ001
ZONED = dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC)


def ours_of(annotation):
    checker = Checker(annotation, scope=Scope(globals=globals()))

    def check(value):
        try:
            return checker.check(value)
        except ContractError:
            return REFUSED

    return check


def ours(annotation, value):
    return ours_of(annotation)(value)


def pydantics_of(annotation):
    try:
        adapter = TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a model has a configuration of its own
        adapter = TypeAdapter(annotation)

    def validate(value):
        try:
            return adapter.validate_python(value, strict=True)
        except (ValidationError, TypeError):
            return REFUSED

    return validate


def pydantics(annotation, value):
    return pydantics_of(annotation)(value)


# --- classes whose instances are not all values of the type -------------------------------------------


class Stamp(dt.datetime):
    pass


class Holiday(dt.date):
    pass


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class One(IntEnum):
    ONE = 1


class Letter(StrEnum):
    A = "a"


VALUES = [
    pd.NaT, pd.NA, pd.Timestamp(0), pd.Timedelta(1), NOON, ZONED, DAY, Stamp(2020, 1, 2), Holiday(2020, 1, 2),
    dt.datetime(2020, 1, 2), dt.time(3), dt.timedelta(1),  # noqa: DTZ001
    np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(1, "s"), np.timedelta64("NaT"),
    None, True, 1, 1.5, math.nan, math.inf, 1j, Whole(1), One.ONE, Decimal(1), Decimal("nan"),
    Decimal("sNaN"), Decimal("-inf"), Fraction(1, 2), "a", Text("a"), Letter.A, b"a", bytearray(b"a"),
    uuid.UUID(int=1), [1], (1,), {1}, {1: 1}, range(2),
]  # fmt: skip
CLASSES = [
    dt.datetime, dt.date, dt.time, dt.timedelta, bool, int, str, bytes, bytearray, Decimal, Fraction,
    uuid.UUID, list, tuple, set, dict, np.datetime64, np.timedelta64, pd.Timestamp, pd.Timedelta, type(None),
    One, Letter, Stamp, Holiday,
]  # fmt: skip


def short(each):
    """Return the beginning of a text that is the same in every process, as pytest-xdist needs it."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(each))[:60]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_same_values_fit_a_class_as_in_strict_mode_but_for_the_missing_moment(cls):
    for value in VALUES:
        expected = REFUSED if value is pd.NaT else pydantics(cls, value)
        assert (ours(cls, value) is REFUSED) == (expected is REFUSED), value


class Row(BaseModel):
    at: dt.datetime
    on: dt.date | None = None


class Cleaned(BaseModel):
    at: dt.datetime

    @field_validator("at", mode="before")
    @classmethod
    def clean(cls, value):
        return value


class Prepared(BaseModel):
    at: dt.datetime

    @model_validator(mode="before")
    @classmethod
    def prepare(cls, value):
        return value


@dataclass
class Entry:
    at: dt.datetime


class Typed(TypedDict):
    at: dt.datetime


class Named(NamedTuple):
    at: dt.datetime


Moments = typing_extensions.TypeAliasType("Moments", "list[dt.datetime | Moments]")
Moment = NewType("Moment", dt.datetime)
Bound = TypeVar("Bound", bound=dt.datetime)

HOLDING = [
    (dt.datetime, pd.NaT),
    (dt.date, pd.NaT),
    (dt.datetime | None, pd.NaT),
    (Optional[dt.date], pd.NaT),  # noqa: UP045
    (int | dt.datetime, pd.NaT),
    (list[dt.datetime], [NOON, pd.NaT]),
    (Sequence[dt.datetime], (NOON, pd.NaT)),
    (tuple[int, dt.datetime], (1, pd.NaT)),
    (tuple[dt.datetime, ...], (NOON, pd.NaT)),
    (set[dt.datetime], {pd.NaT}),
    (frozenset[dt.datetime], frozenset([pd.NaT])),
    (dict[str, dt.datetime], {"a": pd.NaT}),
    (dict[dt.datetime, int], {pd.NaT: 1}),
    (dict[str, list[dt.datetime | None]], {"a": [None, pd.NaT]}),
    (Row, {"at": pd.NaT}),
    (Row, Row.model_construct(at=pd.NaT)),
    (Cleaned, {"at": pd.NaT}),
    (Prepared, {"at": pd.NaT}),
    (list[Row], [{"at": NOON}, {"at": pd.NaT}]),
    (RootModel[list[dt.datetime]], [pd.NaT]),
    (Entry, {"at": pd.NaT}),
    (Entry, Entry(pd.NaT)),
    (Typed, {"at": pd.NaT}),
    (Named, Named(pd.NaT)),
    (Moments, [NOON, [pd.NaT]]),
    (Moment, pd.NaT),
    (Bound, pd.NaT),
    (Annotated[dt.datetime, "a note"], pd.NaT),
    (Annotated[dt.datetime, BeforeValidator(lambda value: value)], pd.NaT),
    (Annotated[dt.datetime, BeforeValidator(lambda value: pd.NaT)], NOON),
    (Annotated[list[dt.datetime], BeforeValidator(lambda value: value)], [pd.NaT]),
    (NaiveDatetime, pd.NaT),
    (list[NaiveDatetime], [pd.NaT]),
    (AwareDatetime, pd.NaT),
    (PastDatetime, pd.NaT),
]


@pytest.mark.parametrize(("annotation", "value"), HOLDING, ids=short)
def test_the_missing_moment_is_no_moment_wherever_one_is_due(annotation, value):
    assert ours(annotation, value) is REFUSED


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (dt.date, NOON),
        (dt.date, pd.Timestamp(0)),
        (dt.date | None, NOON),
        (list[dt.date], [DAY, NOON]),
        (dict[dt.date, int], {NOON: 1}),
        (dict[str, tuple[dt.date, ...]], {"a": (DAY, NOON)}),
        (Row, {"at": NOON, "on": NOON}),
        (Annotated[dt.date, at.Ge(dt.date(2000, 1, 1))], NOON),
        (Annotated[dt.date, BeforeValidator(lambda value: value)], NOON),
        (FutureDate, dt.datetime(2999, 1, 1)),  # noqa: DTZ001
    ],
    ids=short,
)
def test_a_moment_is_no_date(annotation, value):
    assert ours(annotation, value) is REFUSED


def test_where_both_are_allowed_each_is_taken_for_itself():
    assert ours(dt.date | dt.datetime, NOON) is NOON
    assert ours(dt.datetime | dt.date, DAY) is DAY
    assert ours(type(pd.NaT) | dt.datetime, pd.NaT) is pd.NaT


def test_the_message_names_the_way_from_a_moment_to_its_date():
    with pytest.raises(ContractError) as caught:
        Checker(dict[str, dt.date]).check({"a": NOON})
    assert str(caught.value) == (
        "result['a']: expected date, got datetime.datetime(2020, 1, 2, 12, 0); convert it with .date()"
    )


def test_the_message_says_that_a_decimal_is_to_be_finite():
    with pytest.raises(ContractError, match=r"expected Decimal that is finite, got Decimal\('NaN'\)"):
        Checker(Decimal).check(Decimal("nan"))


def test_an_input_is_held_to_the_same():
    def task(day: dt.date, at: list[dt.datetime]): ...

    with pytest.raises(InputError, match=r"day: expected date.*\n.*at\[0\]: expected datetime"):
        TaskSignature.of(task).bind((NOON, [pd.NaT]), {})


# --- constraints -----------------------------------------------------------------------------------------


def tidy(**settings):
    return StringConstraints(strip_whitespace=True, **settings)


def half(value, handler):
    return handler(value) / 2


def or_default(value, handler):
    try:
        return handler(value)
    except ValidationError:
        return 0


def whole(value):
    return int(value) if isinstance(value, int | str) else value


def fail(value):
    raise ValueError("no")


def positive(value):
    assert value > 0, "not positive"
    return value


FALLBACK = WrapValidator(or_default)
TEXTS = [
    "",
    " ",
    "  ",
    "a",
    " a",
    " ab ",
    "AB",
    "abc",
    " ABC",
    "Straße",
    "ﬀ",
    "\u00a0a\u00a0",
    "a1",
    Text(" a "),
    3,
    None,
]
NUMBERS = [-1, 0, 1, 2, 3, 10, 10**30, 0.3, 0.5, 2.0, math.nan, math.inf, True, "3", None]
DECIMALS = [Decimal(each) for each in ("0", "1.5", "1.55", "123", "1234", "1E+3", "NaN", "Infinity", "-2")]
TIMES = [NOON, ZONED, DAY, dt.date(1999, 1, 1), dt.timedelta(1), dt.timedelta(-1), dt.time(3)]
LISTS = [[], [1], [1, 2], [2, 1], [1, 1], [1, 2, 3], (1, 2), {1, 2}, set(), {"a": 1}, {}, ["a"], None]

CONSTRAINTS = [
    (str, TEXTS, [
        [tidy(min_length=1)],
        [tidy(max_length=2)],
        [tidy(min_length=1, max_length=2, to_lower=True)],
        [tidy(to_upper=True, pattern="^[A-Z]+$")],
        [tidy(to_lower=True, pattern="^[A-Z]+$")],
        [tidy(), at.MinLen(1)],
        [at.MinLen(1), tidy()],
        [at.MaxLen(2), tidy()],
        [AfterValidator(str.strip), at.MinLen(1)],
        [at.MinLen(1), AfterValidator(str.strip)],
        [AfterValidator(str.lower), StringConstraints(pattern="^[A-Z]+$")],
        [AfterValidator(str.upper), StringConstraints(pattern="^[A-Z]+$")],
        [AfterValidator(str.lower), tidy(min_length=1)],
        [BeforeValidator(str), at.Len(1, 2)],
        [at.Len(1, 2), BeforeValidator(str)],
        [BeforeValidator(lambda value: value * 2), tidy(max_length=2)],
        [PlainValidator(lambda value: value), at.MaxLen(1)],
        [at.MaxLen(1), PlainValidator(lambda value: value)],
        [FALLBACK, at.MinLen(1)],
        [tidy(min_length=2), FALLBACK],
        [at.Predicate(str.isupper)],
        [at.Not(str.isupper), tidy()],
        [tidy(), at.Predicate(lambda text: text == text.strip())],
        [at.Predicate(lambda text: text == text.strip()), tidy()],
        [at.Gt("a")],
        [Field(pattern=r"^\w+$", max_length=3)],
        [Field(min_length=1), "a note", at.doc("text")],
        [Strict(), tidy(min_length=1)],
        [AfterValidator(fail)],
        [PlainSerializer(len), tidy(min_length=1)],
        [StringConstraints(strict=False, min_length=1)],
    ]),
    (int, NUMBERS, [
        [at.Gt(0)], [at.Ge(1), at.Lt(3)], [at.Le(2)], [at.Interval(gt=0, le=2)], [at.MultipleOf(2)],
        [Field(gt=0, multiple_of=3)], [at.Predicate(lambda n: n % 2 == 0)], [at.Not(bool)],
        [AfterValidator(abs), at.Gt(0)], [at.Gt(0), AfterValidator(abs)], [AfterValidator(positive)],
        [BeforeValidator(whole), at.Ge(3)], [at.Ge(3), BeforeValidator(lambda n: 3)],
        [WrapValidator(half), at.Gt(0)], [at.Gt(0), FALLBACK],
        [PlainValidator(lambda n: n), at.Gt(0)], [at.Unit("m")], [Strict(), at.Gt(0)], [AfterValidator(str)],
    ]),
    (float, NUMBERS, [
        [at.Gt(0)], [at.Interval(ge=0, lt=2)], [at.MultipleOf(0.1)], [AllowInfNan(False)],
        [AllowInfNan(True)],
        [Field(allow_inf_nan=False, le=2)], [at.Predicate(math.isfinite)], [at.Not(math.isnan)],
        [AfterValidator(abs), at.MultipleOf(0.5)], [BeforeValidator(float), AllowInfNan(False)],
        [AfterValidator(lambda x: x), AllowInfNan(False)],
    ]),
    (Decimal, DECIMALS, [
        [Field(max_digits=3)], [Field(decimal_places=1)], [Field(max_digits=3, decimal_places=1)],
        [AllowInfNan(True)], [AllowInfNan(True), at.Ge(0)], [at.Gt(0)], [at.MultipleOf(Decimal("0.5"))],
        [AfterValidator(abs), Field(max_digits=3)], [BeforeValidator(Decimal), at.Gt(0)],
        [AllowInfNan(True), BeforeValidator(Decimal)],
    ]),
    (bytes, [b"", b"a", b"abc", "a"], [[at.Len(1, 2)], [AfterValidator(bytes.strip), at.MinLen(1)]]),
    (bool, [True, False, 1], [[at.Gt(0)], [AfterValidator(int)]]),
    (dt.datetime, TIMES, [
        [at.Gt(dt.datetime(2020, 1, 1))],  # noqa: DTZ001
        [at.Timezone(...)], [at.Timezone(None)], [at.Predicate(lambda t: t.hour == 12)],
    ]),
    (dt.date, TIMES, [[at.Gt(dt.date(2000, 1, 1))], [at.Interval(ge=dt.date(1999, 1, 1))]]),
    (dt.timedelta, TIMES, [[at.Gt(dt.timedelta(0))], [at.MultipleOf(1)]]),
    (list[int], LISTS, [
        [at.MinLen(1)], [at.MaxLen(2)], [at.Len(1, 2)], [at.Predicate(lambda xs: xs == sorted(xs))],
        [AfterValidator(lambda xs: list(dict.fromkeys(xs))), at.MinLen(2)],
        [at.MinLen(2), AfterValidator(lambda xs: xs[:1])],
        [BeforeValidator(list), at.MinLen(1)],
        [WrapValidator(lambda xs, handler: handler([*xs, 1])), at.MaxLen(2)],
        [PlainValidator(lambda xs: xs), at.MinLen(1)], [AfterValidator(len), at.Gt(1)],
        [StringConstraints(min_length=1)], [tidy()],
    ]),
    (set[int], LISTS, [[at.MinLen(2)], [AfterValidator(sorted), at.MaxLen(2)]]),
    (tuple[int, ...], LISTS, [[at.MinLen(2)], [at.Predicate(lambda xs: sum(xs) == 3)]]),
    (dict[str, int], LISTS, [[at.Len(1)], [AfterValidator(lambda d: {**d, "b": 2}), at.MinLen(2)]]),
    (str | int, [*TEXTS, *NUMBERS], [[at.Gt(1)], [tidy()], [tidy(min_length=1)],
        [AfterValidator(str), at.MinLen(2)]]),
    (Literal["a", "abc"], TEXTS, [[at.MinLen(2)]]),
    (NewType("Title", str), TEXTS, [[tidy(min_length=1)], [at.MaxLen(2)]]),
    (Any, [*TEXTS, *LISTS], [[at.MinLen(1)], [tidy()], [AfterValidator(lambda value: 1)]]),
]  # fmt: skip


def itself(annotation):
    return annotation, lambda value: value


def in_list(annotation):
    return list[annotation], lambda value: [value]


def in_optional(annotation):
    if any(isinstance(each, at.Not) for each in annotation.__metadata__):
        return itself(annotation)  # it has no hash, which a union wants
    return annotation | None, lambda value: value


def with_none(annotation):
    base, *constraints = typing_extensions.get_args(annotation)
    return Annotated[(base | None, *constraints)], lambda value: value


def in_dict(annotation):
    return dict[str, annotation], lambda value: {"a": value}


def in_tuple(annotation):
    return tuple[int, annotation], lambda value: (1, value)


def in_model(annotation):
    return create_model("Model", x=annotation), lambda value: {"x": value}


def in_list_in_model(annotation):
    return create_model("Model", x=list[annotation]), lambda value: {"x": [value]}


def in_typed_dict(annotation):
    return typing_extensions.TypedDict("Typed", {"x": annotation}), lambda value: {"x": value}


def annotated_again(annotation):
    return Annotated[annotation, AfterValidator(lambda x: x), "a note"], lambda value: value


PLACES = [
    itself, in_list, in_optional, with_none, in_dict, in_tuple, in_model, in_list_in_model, in_typed_dict,
    annotated_again,
]  # fmt: skip


def same_outcome(base, got, expected):
    if got is REFUSED or expected is REFUSED:
        return got is expected
    # A float may be an int (PEP 484): pydantic makes a float of it, the contract leaves the object as it is.
    # As text, which shows the class of each part: 1 is not True, and not 1.0 where that is due.
    return repr(got) == repr(expected) or (base is float and got == expected)


@pytest.mark.parametrize(
    ("base", "values", "metadata"),
    [(base, values, each) for base, values, table in CONSTRAINTS for each in table],
    ids=short,
)
def test_what_annotated_takes_means_what_it_means_to_pydantic(base, values, metadata):
    for place in PLACES:
        annotation, hold = place(Annotated[(base, *metadata)])
        check, validate = ours_of(annotation), pydantics_of(annotation)
        for value in map(hold, values):
            got, expected = check(value), validate(value)
            # A model is built in lax mode, which hands a validator that takes anything an int for True.
            if place in (in_model, in_list_in_model) and metadata[-1] == FALLBACK:
                continue
            assert same_outcome(base, got, expected), f"{place.__name__} {value!r}: {got!r}, not {expected!r}"


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def kind_of(value: Any) -> str:
    return str(value["kind"] if isinstance(value, dict) else value.kind)


PETS = [Cat(kind="cat"), {"kind": "dog"}, {"kind": "cat"}, {"kind": "cow"}]
TAGGED = Annotated[Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(kind_of)]
NAMED = [
    (Annotated[Cat | Dog, Field(discriminator="kind")], PETS),
    (TAGGED, PETS),
    (list[TAGGED], [[each] for each in PETS]),
    (Annotated[int | str, Field(union_mode="left_to_right")], TEXTS),
    (Annotated[list[int], Field(fail_fast=True, min_length=1)], LISTS),
    (Annotated[str, Field(coerce_numbers_to_str=True)], TEXTS),
    (Secret[int], [3]),
    (constr(strip_whitespace=True, min_length=1), TEXTS),
    (constr(to_upper=True, pattern="^a"), TEXTS),
    (conint(gt=0, multiple_of=2), NUMBERS),
    (confloat(ge=0, allow_inf_nan=False), NUMBERS),
    (condecimal(max_digits=3, decimal_places=1), DECIMALS),
    (condecimal(allow_inf_nan=True), DECIMALS),
    (conlist(int, min_length=1, max_length=2), LISTS),
    (conlist(constr(strip_whitespace=True, min_length=1), max_length=2), [[" "], ["a "], ["a", "b", "c"]]),
    (conset(int, min_length=2), LISTS),
    (conset(constr(to_lower=True), min_length=2), [{"a", "A"}, {"a", "B"}]),
    (conbytes(min_length=1), [b"", b"a"]),
    (condate(gt=dt.date(2000, 1, 1)), TIMES),
    (PositiveInt, NUMBERS),
    (FiniteFloat, NUMBERS),
    (StrictBool, NUMBERS),
    (AwareDatetime, TIMES),
    (PastDatetime, TIMES),
    (UUID4, [uuid.UUID(int=1), uuid.UUID("6fa459ea-ee8a-4ca4-894e-db77e160355e"), "a"]),
    (InstanceOf[Text], TEXTS),
    (SkipValidation[int], TEXTS),
]


@pytest.mark.parametrize(("annotation", "values"), NAMED, ids=[short(annotation) for annotation, _ in NAMED])
def test_the_constrained_types_of_pydantic_mean_the_same_here(annotation, values):
    for value in values:
        got, expected = ours(annotation, value), pydantics(annotation, value)
        assert same_outcome(float if values is NUMBERS else None, got, expected), value


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[str, tidy(min_length=1)], "ab"),
        (Annotated[float, at.Gt(0)], 3),
        (Annotated[int, at.Gt(0)], 10**40),
        (Annotated[Decimal, Field(max_digits=3)], Decimal("1.5")),
        (Annotated[dt.datetime, at.Gt(dt.datetime(2000, 1, 1))], pd.Timestamp("2020-01-01")),  # noqa: DTZ001
        (Annotated[list[int], at.MinLen(1), AfterValidator(lambda xs: xs)], [1]),
        (Annotated[list[int], BeforeValidator(lambda xs: xs)], [1]),
        (Annotated[list[dict[str, int]] | None, WrapValidator(lambda xs, handler: handler(xs))], [{"a": 1}]),
        (Annotated[list[Row], PlainSerializer(len)], [Row(at=NOON)]),
        (Annotated[Row, AfterValidator(lambda row: row)], Row(at=NOON)),
        (list[Annotated[str, tidy()]], ["a"]),
        (dict[str, Annotated[list[int], at.MinLen(1)]], {"a": [1]}),
        (Row, Row(at=NOON)),
    ],
    ids=short,
)
def test_a_value_that_meets_its_constraints_comes_back_as_the_same_object(annotation, value):
    assert ours(annotation, value) is value


def test_every_element_is_checked_below_a_validator_too():
    annotation = Annotated[list[int], BeforeValidator(lambda xs: xs), at.MaxLen(20_000)]
    with pytest.raises(ContractError) as caught:
        Checker(annotation).check([*range(10_000), "x"])
    assert str(caught.value) == "result[10000]: expected int, got str 'x'"


def test_a_dict_for_a_model_is_built_below_a_validator_too():
    built = Checker(Annotated[list[Row], BeforeValidator(list), at.MinLen(1)]).check(({"at": NOON},))
    assert built == [Row(at=NOON)]


def test_a_length_of_what_is_not_text_is_told_in_pydantics_words():
    class Named(BaseModel):
        name: Annotated[str, Field(min_length=3)]

        @field_validator("name")
        @classmethod
        def same(cls, value: str) -> str:
            return value

    with pytest.raises(ContractError, match="should have at least 3 characters, got bytes b'a'"):
        Checker(Named).check({"name": b"a"})


def test_a_validator_runs_once_on_what_a_dict_gives_to_a_model_and_never_on_an_instance():
    raised = Annotated[int, AfterValidator(lambda n: n + 1)]
    model = create_model("Model", x=raised, xs=list[raised])
    built = Checker(list[model]).check([{"x": 1, "xs": [1, 2]}])
    assert built == [model(x=1, xs=[1, 2])]
    assert Checker(list[model]).check(built) is built


def test_text_that_is_too_short_once_stripped_is_told_so():
    with pytest.raises(ContractError) as caught:
        Checker(list[Annotated[str, tidy(min_length=1)]]).check(["a", "  "])
    assert str(caught.value) == "result[1]: expected length >= 1 without the space around it"
