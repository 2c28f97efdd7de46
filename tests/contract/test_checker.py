"""Every typing form, with values that fit and values that do not."""

import collections
import contextlib
import datetime as dt
import decimal
import enum
import io
import pathlib
import re
import sys
import typing
from collections import abc
from dataclasses import dataclass
from typing import Any, Literal, NewType, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import typing_extensions

from agex.contract import Checker, ContractError
from agex.contract.annotations import Scope
from agex.errors import DefinitionError


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Number(enum.IntEnum):
    ONE = 1


class Runs(typing.Protocol):
    def run(self) -> int: ...


class Runner:
    def run(self):
        return 1


class Registered(abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self):
        return len(self.items)


class Ints(list[int]):
    pass


def takes_one(x): ...


Bound = TypeVar("Bound", bound=int)
Either = TypeVar("Either", int, str)
Free = TypeVar("Free")
UserId = NewType("UserId", int)
Json = Union[dict[str, "Json"], list["Json"], int, str, None]  # noqa: UP007
Pairs = typing_extensions.TypeAliasType("Pairs", list[tuple[Free, Free]], type_params=(Free,))
Parameters = typing.ParamSpec("Parameters")
SCOPE = Scope(globals=globals())

FITS = [
    (int, [0, 10**40, Number.ONE]),
    (float, [1.5, 3, float("nan")]),
    (complex, [1j, 1.5, 3]),
    (bool, [True]),
    (str, ["", "a"]),
    (bytes, [b"a"]),
    (None, [None]),
    (Any, [object(), None]),
    (object, [3]),
    (list, [[1, "a"]]),
    (list[int], [[], [1, 2]]),
    (typing.List, [[1, "a"]]),  # noqa: UP006
    (list[Any], [[1, "a"]]),
    (list[list[int]], [[[1], []]]),
    (tuple, [(1, "a")]),
    (tuple[int, str], [(1, "a")]),
    (tuple[int, ...], [(), (1, 2, 3)]),
    (tuple[()], [()]),
    (tuple[int, *tuple[str, ...], bytes], [(1, b""), (1, "a", "b", b"")]),
    (set[int], [{1}]),
    (frozenset[str], [frozenset("ab")]),
    (dict[str, list[float]], [{"a": [1, 2.5]}]),
    (collections.deque[int], [collections.deque([1], maxlen=3)]),
    (collections.defaultdict[str, int], [collections.defaultdict(int, a=1)]),
    (collections.OrderedDict[str, int], [collections.OrderedDict(a=1)]),
    (collections.Counter[str], [collections.Counter("aab")]),
    (collections.ChainMap[str, int], [collections.ChainMap({"a": 1})]),
    (abc.Sequence[int], [[1], (1,), range(3), Registered(1, 2), collections.deque([1])]),
    (abc.Sequence[str], ["abc"]),
    (abc.Mapping[str, int], [{"a": 1}, collections.ChainMap({"a": 1})]),
    (abc.MutableMapping[str, int], [{"a": 1}]),
    (abc.Set[int], [{1}, frozenset([1]), {1: 2}.keys()]),
    (abc.Collection[int], [[1], {1: "a"}]),
    (abc.KeysView[str], [{"a": 1}.keys()]),
    (abc.ValuesView[int], [{"a": 1}.values()]),
    (abc.ItemsView[str, int], [{"a": 1}.items()]),
    (abc.Iterable[int], [[1], {1}, range(2)]),
    (abc.Hashable, [3, "a"]),
    (abc.Sized, [[1]]),
    (Ints, [Ints([1])]),
    (Literal["a", 1, None], ["a", 1, None]),  # noqa: PYI061
    (Literal[Color.RED], [Color.RED]),
    (Color, [Color.RED]),
    (Optional[int], [None, 1]),  # noqa: UP045
    (int | str, [1, "a"]),
    (list[int] | dict[str, int], [[1], {"a": 1}]),
    (type, [int, Color]),
    (type[int], [int, bool]),
    (type[int | str], [int, str]),
    (type[Any], [str]),
    (type[Bound], [bool]),
    (abc.Callable, [len, int, takes_one]),
    (
        abc.Callable[[int], str],
        [takes_one, lambda x, y=1: x, lambda *a: a, print, dict],
    ),
    (abc.Callable[..., int], [takes_one, lambda: 1]),
    (abc.Callable[Parameters, int], [takes_one]),
    (Runs, [Runner()]),
    (typing.SupportsFloat, [3, 1.5]),
    (UserId, [3]),
    (Bound, [3]),
    (Either, [3, "a"]),
    (Free, [object()]),
    (Pairs[int], [[(1, 2)]]),
    ("Json", [None, {"a": [1, {"b": "c"}]}]),
    (dt.datetime, [dt.datetime(2020, 1, 1), pd.Timestamp("2020-01-01")]),  # noqa: DTZ001
    (dt.date, [dt.date(2020, 1, 1)]),
    (decimal.Decimal, [decimal.Decimal("1.5")]),
    (pathlib.Path, [pathlib.Path("a")]),
    (re.Pattern[str], [re.compile("a")]),
    (contextlib.AbstractContextManager[int], [contextlib.nullcontext(1)]),
    (typing.TextIO, [io.StringIO()]),
    (typing.IO[bytes], [io.BytesIO()]),
    (typing_extensions.LiteralString, ["a"]),
    (typing_extensions.TypeGuard[int], [True]),
    (np.ndarray, [np.zeros(3), np.array(["a"])]),
    (npt.NDArray[np.float64], [np.zeros((2, 2))]),
    (npt.NDArray[np.floating[Any]], [np.zeros(2, dtype=np.float32)]),
    (npt.NDArray[Any], [np.zeros(2), np.array(["a"])]),
    (np.ndarray[tuple[int, int], np.dtype[np.int64]], [np.zeros((2, 2), dtype=np.int64)]),
    (np.float64, [np.float64(1)]),
    (pd.DataFrame, [pd.DataFrame({"a": [1]})]),
    (pd.Series, [pd.Series([1])]),
    (pd.Index, [pd.Index([1]), pd.RangeIndex(3)]),
    (dict[str, pd.DataFrame], [{"a": pd.DataFrame()}]),
]


@pytest.mark.parametrize(
    ("annotation", "value"), [(form, value) for form, values in FITS for value in values]
)
def test_a_value_that_fits_comes_back_as_the_same_object(annotation, value):
    assert Checker(annotation, scope=SCOPE).check(value) is value


MISFITS = [
    (int, True, "result: expected int, got bool True"),
    (int, 1.0, "result: expected int, got float 1.0"),
    (int, "1", "result: expected int, got str '1'"),
    (int, None, "result: expected int, got None"),
    (int, int, "result: expected int, got the class int"),
    (float, True, "result: expected float, got bool True"),
    (float, "1.5", "result: expected float, got str '1.5'"),
    (bool, 1, "result: expected bool, got int 1"),
    (str, b"a", "result: expected str, got bytes b'a'"),
    (None, 5, "result: expected None, got int 5"),
    (list[int], (1,), "result: expected list[int], got tuple (1,)"),
    (tuple[int, ...], [1], "result: expected tuple[int, ...], got list [1]"),
    (tuple[int, str], (1,), "result: expected tuple[int, str] (2 elements), got 1 elements"),
    (tuple[int, str], (1, 2), "result[1]: expected str, got int 2"),
    (tuple[int, *tuple[str, ...]], (1, "a", 3), "result[2]: expected str, got int 3"),
    (list[int], [1, "a"], "result[1]: expected int, got str 'a'"),
    (
        list[str],
        np.array(["a"]),
        "result: expected list[str], got <ndarray shape=(1,) dtype=<U1>; convert it with .tolist()",
    ),
    (list[bool], [1], "result[0]: expected bool, got int 1"),
    (dict[str, list[int]], {"a": [1, 2, 3, "x"]}, "result['a'][3]: expected int, got str 'x'"),
    (dict[str, int], {1: 2}, "result key 1: expected str, got int 1"),
    (set[int], {"a"}, "result{'a'}: expected int, got str 'a'"),
    (collections.Counter[str], collections.Counter([1]), "result key 1: expected str, got int 1"),
    (abc.Sequence[int], Registered(1, "a"), "result[1]: expected int, got str 'a'"),
    (abc.ItemsView[str, int], {"a": "b"}.items(), "result{('a', 'b')}[1]: expected int, got str 'b'"),
    (abc.Iterator[int], [1], "result: expected Iterator[int], got list [1]"),
    (Ints, [1], "result: expected Ints, got list [1]"),
    (Ints, Ints(["a"]), "result[0]: expected int, got str 'a'"),
    (Literal[1], True, "result: expected Literal[1], got bool True"),
    (Literal["a", "b"], "c", "result: expected Literal['a', 'b'], got str 'c'"),
    (Color, "red", "result: expected Color (write Color.RED), got str 'red'"),
    (Color, "BLUE", "result: expected Color (write Color.BLUE), got str 'BLUE'"),
    (Color, 7, "result: expected Color, got int 7"),
    (int | None, "a", "result: expected int | None, got str 'a'"),
    (list[int] | None, [1, "a"], "result[1]: expected int, got str 'a'"),
    (int | float, True, "result: expected int | float, got bool True"),
    (type[int], str, "result: expected type[int], got the class str"),
    (type[int], 3, "result: expected type[int], got int 3"),
    (type[Bound], str, "result: expected type[Bound], got the class str"),
    (abc.Callable[[int], int], 3, "result: expected Callable[[int], int], got int 3"),
    (Runs, 3, "result: expected Runs (without run), got int 3"),
    (UserId, "a", "result: expected int, got str 'a'"),
    (Either, 1.5, "result: expected Either, got float 1.5"),
    (Pairs[int], [(1, "a")], "result[0][1]: expected int, got str 'a'"),
    (typing.NoReturn, None, "result: expected no value at all, got None"),
    (npt.NDArray[np.float64], np.zeros(2, dtype=int), "result: expected dtype float64, got dtype int64"),
    (
        np.ndarray[tuple[int, int], np.dtype[Any]],
        np.zeros(2),
        "result: expected 2 dimensions, got shape (2,)",
    ),
    (list[int], iter(range(0)), "result: expected list[int], got <range_iterator object>"),
    (list[int], {}.keys(), "result: expected list[int], got <dict_keys object>; convert it with list()"),
    (
        dict[str, float],
        pd.Series([1.0]),
        "result: expected dict[str, float], got <Series shape=(1,)>; convert it with .to_dict()",
    ),
    (pd.DataFrame, [1], "result: expected DataFrame, got list [1]"),
    (pd.Series, pd.DataFrame(), "result: expected Series, got <DataFrame shape=(0, 0)>"),
]


@pytest.mark.parametrize(("annotation", "value", "message"), MISFITS)
def test_a_value_that_does_not_fit_is_told_with_path_expected_and_got(annotation, value, message):
    with pytest.raises(ContractError) as caught:
        Checker(annotation, scope=SCOPE).check(value)
    assert str(caught.value) == message


def test_a_mismatch_is_a_type_error():
    with pytest.raises(TypeError):
        Checker(int).check("a")


def test_a_callable_must_take_the_arguments_it_is_called_with():
    with pytest.raises(ContractError, match="called with 2 positional arguments, got <function takes_one>"):
        Checker(abc.Callable[[int, int], str]).check(takes_one)


def test_the_path_starts_where_the_caller_says():
    with pytest.raises(ContractError, match=r"^rows\[0\]: expected int"):
        Checker(list[int]).check(["a"], path="rows")


def test_the_first_five_mismatches_are_told_and_all_are_counted():
    with pytest.raises(ContractError) as caught:
        Checker(list[int]).check([1, *"abcdefgh"])
    lines = str(caught.value).splitlines()
    assert lines[0] == "result[1]: expected int, got str 'a'"
    assert lines[4] == "result[5]: expected int, got str 'e'"
    assert lines[5:] == ["... and 3 more of 8 mismatches"]


@pytest.mark.parametrize("position", [0, 99_999, 199_999])
def test_one_wrong_element_of_many_is_found(position):
    values = list(range(200_000))
    values[position] = "x"
    with pytest.raises(ContractError, match=rf"^result\[{position}\]: expected int, got str 'x'$"):
        Checker(list[int]).check(values)


@pytest.mark.parametrize("annotation", [abc.Iterable[int], abc.Iterator[int], abc.Generator[int, None, None]])
def test_a_generator_is_not_consumed(annotation):
    generator = (x for x in (1, 2))
    assert Checker(annotation).check(generator) is generator
    assert list(generator) == [1, 2]


# --- numbers of numpy ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, np.int64(3), 3),
        (int, np.uint8(3), 3),
        (float, np.float32(1.5), 1.5),
        (float, np.float64(1.5), 1.5),
        (float, np.int64(3), 3),
        (complex, np.complex128(1j), 1j),
        (bool, np.bool_(True), True),
        (Literal[1, 2], np.int64(2), 2),
        (int | None, np.int64(3), 3),
        (list[int], [1, np.int64(2)], [1, 2]),
        (dict[str, tuple[float, ...]], {"a": (np.float64(1.5),)}, {"a": (1.5,)}),
        (collections.deque[int], collections.deque([np.int64(1)]), collections.deque([1])),
        (collections.Counter[str], collections.Counter(a=np.int64(2)), collections.Counter(a=2)),
    ],
)
def test_a_numpy_number_becomes_the_python_number(annotation, value, expected):
    result = Checker(annotation).check(value)
    assert result == expected
    assert type(result) is type(expected)
    assert "np." not in repr(result)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(int, np.float64(3)), (int, np.bool_(True)), (bool, np.int64(1)), (float, np.bool_(1))],
)
def test_a_numpy_number_of_another_kind_does_not_fit(annotation, value):
    with pytest.raises(ContractError, match=f"expected {annotation.__name__}, got np"):
        Checker(annotation).check(value)


def test_only_what_holds_a_built_part_is_built_anew():
    good, bad = [1], [np.int64(2)]
    result = Checker(list[list[int]]).check([good, bad])
    assert result == [[1], [2]]
    assert result[0] is good
    assert type(bad[0]) is np.int64


def test_a_union_prefers_the_member_that_takes_the_value_as_it_is():
    value = np.float64(1.5)
    assert Checker(int | np.float64 | float).check(value) is value


# --- names and recursion -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "annotation", ["Nope", "list[Nope]", "int +", "list[", 3, [int], "typing.Nope", typing_extensions.Self]
)
def test_what_is_no_annotation_is_a_definition_error(annotation):
    with pytest.raises(DefinitionError):
        Checker(annotation, scope=SCOPE)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is Python 3.12's")
def test_a_recursive_generic_type_statement_is_checked():
    namespace: dict[str, Any] = {}
    exec("type Tree[T] = T | list[Tree[T]]", namespace)
    checker = Checker(namespace["Tree"][int])
    value = [1, [2, [3]]]
    assert checker.check(value) is value
    with pytest.raises(ContractError, match=r"result\[1\]\[1\]\[0\]: expected"):
        checker.check([1, [2, ["x"]]])


@dataclass
class Link:
    value: int
    next: "Link | None" = None


def test_a_value_that_contains_itself_is_checked_once():
    ring = Link(1)
    ring.next = Link(2, ring)
    assert Checker(Link).check(ring) is ring
    ring.next.value = "x"
    with pytest.raises(ContractError, match=r"result\.next\.value: expected int, got str 'x'"):
        Checker(Link).check(ring)


def test_in_a_value_that_contains_itself_nothing_is_built():
    ring: list[Any] = [np.int64(1)]
    ring.append(ring)
    with pytest.raises(ContractError, match="a value that contains itself must already fit"):
        Checker("Nest", scope=Scope(globals={"Nest": list[Union[int, "Nest"]]})).check(ring)  # noqa: F821


def test_a_shared_part_stays_shared_when_it_is_built():
    part = [np.int64(1)]
    first, second = Checker(list[list[int]]).check([part, part])
    assert first == [1]
    assert first is second


def test_a_value_that_holds_one_part_many_times_over_is_checked_in_no_time():
    value: list[Any] = [1]
    for _ in range(100):
        value = [value, value]
    assert Checker("Nest", scope=Scope(globals={"Nest": list[Union[int, "Nest"]]})).check(value) is value  # noqa: F821


def test_a_value_nested_too_deeply_is_refused():
    value: list[Any] = []
    for _ in range(20_000):
        value = [value]
    with pytest.raises(ContractError, match="too deep to be checked"):
        Checker("Nest", scope=Scope(globals={"Nest": list["Nest"]})).check(value)  # noqa: F821
    while value:
        value = value.pop()


def test_a_type_variable_is_known_inside_array_and_class_forms():
    scalar = TypeVar("scalar", bound=np.generic)
    arrays = typing_extensions.TypeAliasType(
        "arrays", list[np.ndarray[Any, np.dtype[scalar]]], type_params=(scalar,)
    )
    with pytest.raises(ContractError, match=r"result\[0\]: expected dtype float64, got dtype int64"):
        Checker(arrays[np.float64]).check([np.zeros(2, dtype=np.int64)])
    classes = typing_extensions.TypeAliasType("classes", type[Free], type_params=(Free,))
    with pytest.raises(ContractError, match="got the class str"):
        Checker(classes[int]).check(str)
