import datetime as dt
import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from annotated_types import Gt
from pydantic import BaseModel, Field

from agex.contract import annotation_names, is_record


@dataclass
class Order:
    total: float


class Model(BaseModel):
    x: int


class Color(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    a: int


class Keys(TypedDict):
    a: int


class Plain:
    pass


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        (int, {}),
        (None, {}),
        (list[int], {}),
        (dict[str, Order], {"Order": Order}),
        (Callable[[int], Order], {"Callable": Callable, "Order": Order}),
        (Iterator[int] | None, {"Iterator": Iterator}),
        (Any, {"Any": Any}),
        (Literal["a"], {"Literal": Literal}),
        (Annotated[int, Gt(0)], {"Annotated": Annotated, "Gt": Gt}),
        (Annotated[int, Field(gt=0)], {"Annotated": Annotated, "Gt": Gt}),
        (tuple[dt.date, ...], {"date": dt.date}),
        ("unresolved", {}),
    ],
)
def test_the_names_an_annotation_says(annotation, names):
    assert annotation_names(annotation) == names


def test_a_numpy_array_says_ndarray_and_its_element():
    numpy = pytest.importorskip("numpy", reason="the extra `test` has numpy")
    typing = pytest.importorskip("numpy.typing")
    assert annotation_names(typing.NDArray[numpy.float64]) == {
        "NDArray": typing.NDArray,
        "float64": numpy.float64,
    }


def test_what_is_a_record():
    assert all(map(is_record, [Order, Model, Color, Pair, Keys]))
    assert not any(map(is_record, [Plain, int, Order(1.0), "Order"]))
