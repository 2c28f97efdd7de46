from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, Required, Self, TypeVar

import numpy as np
import pytest
from annotated_types import Interval, Len, MinLen, Predicate
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PositiveInt,
    RootModel,
    SecretStr,
    StringConstraints,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import ReadOnly, TypedDict

from agex.contract import Checker, ContractError
from agex.errors import DefinitionError

T = TypeVar("T")


class Item(BaseModel):
    x: int
    tags: list[str] = []


class Box(BaseModel):
    name: str
    items: dict[str, list[Item]] = {}


@dataclass
class Point:
    x: int
    y: float = 0.0
    inner: "list[Point]" = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    x: int


class Row(TypedDict):
    a: int
    b: NotRequired[str]
    c: ReadOnly[NotRequired[int]]


class Loose(TypedDict, total=False):
    a: Required[int]
    b: "NotRequired[Row]"


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass
class Holder(Generic[T]):
    values: list[T]


@dataclass
class IntHolder(Holder[int]):
    pass


class GenericModel(BaseModel, Generic[T]):
    value: T


@pydantic_dataclass
class Checked:
    x: PositiveInt


def failure(annotation, value):
    with pytest.raises(ContractError) as caught:
        Checker(annotation).check(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Item, Item(x=1)),
        (Box, Box(name="a", items={"k": [Item(x=1)]})),
        (Point, Point(1, 2.0, [Point(2)])),
        (list[Point], [Point(1)]),
        (Frozen, Frozen(1)),
        (Row, {"a": 1}),
        (Row, {"a": 1, "b": "x", "c": 2}),
        (Loose, {"a": 1, "b": {"a": 2}}),
        (Pair, Pair(1)),
        (Holder[int], Holder([1])),
        (IntHolder, IntHolder([1])),
        (GenericModel[int], GenericModel[int](value=1)),
        (Checked, Checked(x=1)),
        (RootModel[list[int]], RootModel[list[int]]([1])),
        (SecretStr, SecretStr("a")),
    ],
)
def test_a_record_that_fits_comes_back_as_the_same_object(annotation, value):
    assert Checker(annotation).check(value) is value


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Item, {"x": 1}, Item(x=1)),
        (Item, {"x": np.int64(1)}, Item(x=1)),
        (Box, {"name": "a", "items": {"k": [{"x": 1}]}}, Box(name="a", items={"k": [Item(x=1)]})),
        (list[Item], [{"x": 1}, Item(x=2)], [Item(x=1), Item(x=2)]),
        (Item | None, {"x": 1}, Item(x=1)),
        (Point, {"x": 1, "inner": [{"x": 2}]}, Point(1, 0.0, [Point(2)])),
        (Point, Point(1, inner=[{"x": 2}]), Point(1, 0.0, [Point(2)])),
        (Frozen, {"x": 1}, Frozen(1)),
        (Pair, {"left": 1}, Pair(1, "r")),
        (Loose, {"a": np.int64(1)}, {"a": 1}),
        (Holder[Item], {"values": [{"x": 1}]}, Holder([Item(x=1)])),
        (GenericModel[Item], {"value": {"x": 1}}, GenericModel[Item](value=Item(x=1))),
        (Checked, {"x": 1}, Checked(x=1)),
        (RootModel[list[int]], [1, 2], RootModel[list[int]]([1, 2])),
    ],
)
def test_a_dict_for_a_record_is_built_into_it(annotation, value, expected):
    result = Checker(annotation).check(value)
    assert result == expected
    assert type(result) is type(expected)


def test_what_is_built_leaves_the_given_value_alone():
    point = Point(1, inner=[{"x": 2}])
    assert Checker(Point).check(point) is not point
    assert point == Point(1, inner=[{"x": 2}])


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (Item, {"x": "1"}, "result['x']: expected int, got str '1'"),
        (Item, {}, "result: expected Item, missing: 'x' (int)"),
        (Item, 3, "result: expected Item, got int 3"),
        (Item, Item.model_construct(x="s"), "result.x: expected int, got str 's'"),
        (
            dict[str, list[Item]],
            {"a": [Item(x=1), {"x": "foo"}]},
            "result['a'][1]['x']: expected int, got str 'foo'",
        ),
        (list[Point], [Point(1), Point("s")], "result[1].x: expected int, got str 's'"),
        (
            Point,
            Point(1, inner=[Point(2, inner=[Point(None)])]),
            "result.inner[0].inner[0].x: expected int, got None",
        ),
        (Point, {"x": 1, "z": 2}, "result: expected Point, unexpected: 'z' (int)"),
        (Row, {"b": "x"}, "result: expected Row, missing: 'a' (int)"),
        (Row, {"a": 1, "z": 1}, "result: expected Row, unexpected: 'z' (int)"),
        (Item, {"X": 1}, "result: expected Item, missing: 'x' (int); unexpected: 'X' (int)"),
        (Row, {"a": "s"}, "result['a']: expected int, got str 's'"),
        (Loose, {"a": 1, "b": {}}, "result['b']: expected Row, missing: 'a' (int)"),
        (Pair, (1, "a"), "result: expected Pair, got tuple (1, 'a')"),
        (Pair, Pair("a"), "result.left: expected int, got str 'a'"),
        (Holder[int], Holder(["s"]), "result.values[0]: expected int, got str 's'"),
        (IntHolder, IntHolder(["s"]), "result.values[0]: expected int, got str 's'"),
        (GenericModel[int], {"value": "s"}, "result['value']: expected int, got str 's'"),
        (Checked, {"x": -1}, "result['x']: input should be greater than 0, got int -1"),
        (RootModel[list[int]], ["a"], "result[0]: expected int, got str 'a'"),
        (Item | Point, {"x": "s"}, "result['x']: expected int, got str 's'"),
    ],
)
def test_a_field_that_does_not_fit_is_told_with_its_path(annotation, value, message):
    assert failure(annotation, value) == message


def test_a_model_changed_after_validation_is_checked_again():
    item = Item(x=1)
    item.tags.append(3)
    assert failure(Item, item) == "result.tags[0]: expected str, got int 3"


def test_an_attribute_that_was_deleted_is_missing():
    point = Point(1)
    del point.x
    assert failure(Point, point) == "result.x: expected int, found no value"


def test_a_default_that_breaks_its_own_annotation_is_the_authors_business():
    @dataclass
    class Careless:
        x: int = None

    class CarelessModel(BaseModel):
        x: int = None

    assert Checker(Careless).check(Careless()) == Careless()
    assert Checker(CarelessModel).check({}) == CarelessModel()


def test_what_a_constructor_refuses_is_a_mismatch():
    @dataclass
    class Even:
        x: int

        def __post_init__(self):
            if self.x % 2:
                raise ValueError(f"{self.x} is odd")

    assert Checker(Even).check({"x": 2}) == Even(2)
    assert failure(Even, {"x": 3}) == "result: expected Even, but building it raised ValueError: 3 is odd"


def test_a_dict_in_a_subclass_of_the_record_is_not_built():
    class Sub(Point):
        pass

    assert "whose fields already fit" in failure(Point, Sub(1, inner=[{"x": 2}]))


def test_the_union_member_that_uses_most_keys_is_built():
    class Cat(BaseModel):
        name: str

    class Dog(BaseModel):
        name: str
        bark: str

    assert type(Checker(Cat | Dog).check({"name": "a", "bark": "w"})) is Dog
    assert type(Checker(Cat | Dog).check({"name": "a"})) is Cat


# --- pydantic's own rules ------------------------------------------------------------------------


def test_aliases_are_the_keys_of_a_dict():
    class Aliased(BaseModel):
        x: int = Field(alias="X")
        y: int = Field(default=0, validation_alias=AliasChoices("Y", "why"))

    assert Checker(Aliased).check({"X": 1, "why": 2}).model_dump() == {"x": 1, "y": 2}
    assert failure(Aliased, {"X": "s"}) == "result['X']: expected int, got str 's'"


def test_a_closed_model_refuses_other_keys():
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        x: int

    assert failure(Closed, {"x": 1, "y": 2}) == "result['y']: extra inputs are not permitted, got int 2"


def test_a_field_with_a_validator_is_left_to_it():
    class Parsed(BaseModel):
        x: int
        y: Annotated[str, AfterValidator(len)]

        @field_validator("x", mode="before")
        @classmethod
        def read(cls, value: Any) -> Any:
            return int(value, 16) if isinstance(value, str) else value

    built = Checker(Parsed).check({"x": "ff", "y": "abc"})
    assert (built.x, built.y) == (255, 3)
    assert Checker(Parsed).check(built) is built
    assert "result['x']" in failure(Parsed, {"x": [], "y": "abc"})


def validated(mode):
    """Make a model whose field has a validator that lets everything through."""

    class Validated(BaseModel):
        x: int = 1

        @field_validator("x", mode=mode)
        @classmethod
        def same(cls, value):
            return value

    return Validated


@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_validated_field_of_an_instance_holds_what_it_says(mode):
    model = validated(mode)
    changed = model(x=2)
    changed.x = "bad"
    for instance in (changed, model.model_construct(x="bad")):
        assert failure(model, instance) == "result.x: expected int, got str 'bad'"
        assert failure(list[model], [instance]) == "result[0].x: expected int, got str 'bad'"
    good = model(x=2)
    assert Checker(model).check(good) is good
    assert Checker(model).check({"x": "3"}).x == 3


def test_a_validator_in_place_of_the_type_may_put_another_there():
    class Wrapped(BaseModel):
        x: Annotated[int, WrapValidator(lambda value, handler: value)]

    for model in (validated("plain"), Wrapped):
        instance = model(x="other")
        assert Checker(model).check(instance) is instance


def test_a_field_whose_type_only_its_validator_knows_is_left_to_it():
    def read(value: Any) -> Self:
        return value

    class Own(BaseModel):
        x: Annotated[int, PlainValidator(read)]

    instance = Own(x="any")
    assert Checker(Own).check(instance) is instance


def test_a_validator_that_says_what_it_returns_is_held_to_it():
    def parts(text: str) -> list[str]:
        return text.split()

    class Said(BaseModel):
        a: Annotated[str, AfterValidator(parts)]
        b: int
        c: Annotated[int, Field(ge=0), BeforeValidator(int)] = 0
        d: str = ""

        @field_validator("b", mode="wrap")
        @classmethod
        def same(cls, value: Any, handler: Any) -> int:
            return handler(value)

        @field_validator("d")
        @classmethod
        def counted(cls, value: str) -> int:
            return len(value)

    built = Checker(Said).check({"a": "x y", "b": "1", "c": "2", "d": "abc"})
    assert (built.a, built.b, built.c, built.d) == (["x", "y"], 1, 2, 3)
    assert Checker(Said).check(built) is built
    wrong = Said.model_construct(a=3, b="bad", c=-1, d=None)
    assert failure(Said, wrong).splitlines() == [
        "result.a: expected str, got int 3",
        "result.b: expected int, got str 'bad'",
        "result.c: input should be greater than or equal to 0, got int -1",
        "result.d: expected str, got None",
    ]


class Even(BaseModel):
    least: int = 0
    x: int = -1

    @field_validator("x")
    @classmethod
    def even(cls, value: int, info: Any) -> int:
        if value % 2 or value < info.data["least"]:
            raise ValueError(f"must be even, and {info.data['least']} or more")
        return value


def test_a_validator_that_follows_the_type_looks_at_an_instance_too():
    said = "value error, must be even, and 4 or more, got int"
    wrong = Even(least=4, x=6)
    wrong.x = 2
    assert failure(Even, wrong) == f"result.x: {said} 2"
    assert wrong == Even.model_construct(least=4, x=2)
    assert failure(Even, Even.model_construct(least=4, x=7)) == f"result.x: {said} 7"
    for good in (Even(least=4, x=6), Even(least=4)):
        assert Checker(Even).check(good) is good


def test_a_subclass_does_not_bring_validators_in_place_of_the_models_own():
    class Lax(Even):
        @field_validator("x")
        @classmethod
        def even(cls, value: int) -> int:
            return value

    assert failure(Even, Lax(least=4, x=7)) == "result.x: value error, must be even, and 4 or more, got int 7"


def test_a_root_with_a_validator_is_checked_in_an_instance():
    class Some(RootModel[list[int]]):
        @field_validator("root")
        @classmethod
        def some(cls, value):
            if not value:
                raise ValueError("must have an element")
            return value

    assert failure(Some, Some.model_construct(["a"])) == "result.root[0]: expected int, got str 'a'"
    empty = "result.root: value error, must have an element, got list []"
    assert failure(Some, Some.model_construct([])) == empty
    good = Some([1])
    assert Checker(Some).check(good) is good


def test_a_model_that_reads_dicts_itself_gets_them_as_they_are():
    class Reads(BaseModel):
        x: int

        @model_validator(mode="before")
        @classmethod
        def read(cls, value: Any) -> Any:
            return {"x": value["text"].count("x")} if "text" in value else value

    assert Checker(Reads).check({"text": "xx"}) == Reads(x=2)


def test_a_model_with_a_class_defined_later_is_completed():
    class Outer(BaseModel):
        inner: "Inner"

    class Inner(BaseModel):
        x: int

    from agex.contract.annotations import Scope

    checker = Checker(Outer, scope=Scope(locals=locals()))
    assert checker.check({"inner": {"x": 1}}).inner == Inner(x=1)


# --- constraints ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "good", "bad", "message"),
    [
        (Annotated[int, Field(gt=3)], 4, 3, "result: input should be greater than 3, got int 3"),
        (
            Annotated[float, Interval(ge=0, lt=1)],
            0.5,
            1.0,
            "result: input should be less than 1, got float 1.0",
        ),
        (PositiveInt, 1, -1, "result: input should be greater than 0, got int -1"),
        (PositiveInt, 1, True, "result: expected int, got bool True"),
        (
            Annotated[str, Field(pattern="^a")],
            "ab",
            "b",
            "result: string should match pattern '^a', got str 'b'",
        ),
        (Annotated[list[int], Len(1, 2)], [1], [], "result: expected length >= 1, got length 0"),
        (Annotated[list[int], Len(1, 2)], [1], [1, 2, 3], "result: expected length <= 2, got length 3"),
        (Annotated[list[int], Len(1)], [1], ["a"], "result[0]: expected int, got str 'a'"),
        (Annotated[list[int] | None, MinLen(1)], None, [], "result: expected length >= 1, got length 0"),
        (
            Annotated[int | None, Field(ge=0)],
            None,
            -1,
            "result: input should be greater than or equal to 0, got int -1",
        ),
        (
            list[Annotated[int, Field(ge=0)]],
            [0],
            [0, -1],
            "result[1]: input should be greater than or equal to 0, got int -1",
        ),
        (Annotated[list[int], Field(strict=True)], [1], ["a"], "result[0]: expected int, got str 'a'"),
        (Annotated[int, "a note"], 1, "a", "result: expected int, got str 'a'"),
        (
            Annotated[str, StringConstraints(min_length=2)],
            "ab",
            "a",
            "result: expected length >= 2, got length 1",
        ),
    ],
)
def test_a_constraint_holds_after_the_type(annotation, good, bad, message):
    assert Checker(annotation).check(good) is good
    assert failure(annotation, bad) == message


def test_a_predicate_sees_the_value_itself():
    checker = Checker(Annotated[list[int], Predicate(lambda xs: xs == sorted(xs))])
    value = [1, 2]
    assert checker.check(value) is value
    with pytest.raises(ContractError, match="result: predicate"):
        checker.check([2, 1])


def test_a_validator_may_build_another_value():
    assert Checker(Annotated[str, AfterValidator(str.upper)]).check("a") == "A"
    assert Checker(Annotated[int, BeforeValidator(int)]).check("3") == 3
    assert Checker(Annotated[str, StringConstraints(strip_whitespace=True)]).check(" a ") == "a"


@pytest.mark.parametrize("constraint", [Field(pattern="^a"), Field(gt=3), Field(max_digits=3)])
def test_a_constraint_that_cannot_apply_is_never_taken_as_met(constraint):
    assert "Unable to apply constraint" in failure(Annotated[list[int], constraint], [1])


def test_a_class_that_pydantic_cannot_read_is_a_definition_error():
    class Broken:
        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler):
            raise TypeError("no schema")

    with pytest.raises(DefinitionError, match="Broken cannot be checked: no schema"):
        Checker(Broken)


def test_a_model_field_keeps_its_constraints():
    class Age(BaseModel):
        years: Annotated[int, Field(ge=0)] = 0

    assert failure(Age, {"years": -1}).startswith(
        "result['years']: input should be greater than or equal to 0"
    )
    assert failure(Age, Age.model_construct(years=-1)).startswith("result.years: input should be greater")
