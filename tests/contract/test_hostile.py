"""Values of a guest that lie about what they are.

Stopped by: contract.
"""

import abc
from dataclasses import dataclass
from typing import Annotated, Any

import pandas as pd
import pytest
from annotated_types import MinLen
from pydantic import BaseModel

from agex.contract import Checker, ContractError, preview, same_value, short_repr
from agex.contract.real_types import is_a, real_iter, real_len


class Model(BaseModel):
    x: int


@dataclass
class Point:
    x: int


class LyingClass:
    def __init__(self, claim):
        object.__setattr__(self, "_claim", claim)

    @property
    def __class__(self):
        return object.__getattribute__(self, "_claim")


@pytest.mark.parametrize("annotation", [int, str, list, list[int], dict, Model, Point, tuple[int, ...]])
def test_a_lie_about_the_class_is_not_believed(annotation):
    claim = getattr(annotation, "__origin__", annotation)
    value = LyingClass(claim)
    assert isinstance(value, claim)
    with pytest.raises(ContractError, match=r"got <.*LyingClass object"):
        Checker(annotation).check(value)


class HidingList(list):
    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return 1


class HidingDict(dict):
    def items(self):
        return [("a", 1)]

    def __iter__(self):
        return iter("a")


def test_a_list_is_checked_by_what_it_really_holds():
    with pytest.raises(ContractError, match=r"result\[0\]: expected int, got str 'x'"):
        Checker(list[int]).check(HidingList(["x"]))


def test_a_dict_is_checked_by_what_it_really_holds():
    with pytest.raises(ContractError, match=r"result\['b'\]: expected int, got str 'x'"):
        Checker(dict[str, int]).check(HidingDict(b="x"))


def test_a_length_is_counted_and_not_asked_for():
    with pytest.raises(ContractError, match="expected length >= 1, got length 0"):
        Checker(Annotated[list[int], MinLen(1)]).check(HidingList())


def test_a_fitting_subclass_of_a_list_is_fine():
    value = HidingList([5])
    assert Checker(list[int]).check(value) is value


def test_a_class_that_claims_to_equal_int_is_not_int():
    class Meta(type):
        def __eq__(cls, other):
            return True

        def __hash__(cls):
            return hash(int)

        def __instancecheck__(cls, instance):
            return True

        def mro(cls):
            return [cls, object]

    class Fake(metaclass=Meta):
        pass

    for annotation in (int, int | str, float | None, Point, Model):
        with pytest.raises(ContractError):
            Checker(annotation).check(Fake())


def test_equality_of_the_guest_does_not_satisfy_a_literal():
    class Equal:
        def __eq__(self, other):
            return True

        __hash__ = None

    from typing import Literal

    with pytest.raises(ContractError, match="expected Literal"):
        Checker(Literal["a"]).check(Equal())
    assert not same_value(Equal(), 3)
    assert not same_value([Equal()], [3])


def test_a_subclass_cannot_hide_a_field_behind_getattribute():
    class Sly(Point):
        def __getattribute__(self, name):
            return 1 if name == "x" else object.__getattribute__(self, name)

    with pytest.raises(ContractError, match=r"result\.x: expected int, got str 's'"):
        Checker(Point).check(Sly("s"))


class Explosive:
    """Every hook raises."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def _boom(self, *args: Any) -> Any:
        raise RuntimeError

    __repr__ = __str__ = __eq__ = __len__ = __iter__ = __bool__ = __format__ = _boom
    __hash__ = None


class ExplosiveList(list):
    def _boom(self, *args: Any) -> Any:
        raise RuntimeError

    __repr__ = __str__ = __eq__ = __len__ = __iter__ = __bool__ = __format__ = __getitem__ = _boom
    __hash__ = None


class ExplosiveStr(str):
    __slots__ = ()

    def _boom(self, *args: Any) -> Any:
        raise RuntimeError

    __repr__ = __str__ = __eq__ = __len__ = __iter__ = __format__ = __getitem__ = _boom
    __hash__ = None


class ExplosiveMeta(type):
    def __getattr__(cls, name):
        raise RuntimeError(name)


class ExplosiveKind(metaclass=ExplosiveMeta):
    pass


class Partitioned(str):
    __slots__ = ()

    def partition(self, sep):
        raise RuntimeError


@pytest.mark.parametrize(
    "make",
    [
        type("OfNoModule", (), {"__module__": 3}),
        type("OfAModule", (), {"__module__": Partitioned("pandas")}),
        ExplosiveKind,
        lambda: ExplosiveKind,
        Explosive,
        lambda: ExplosiveList([1]),
        lambda: ExplosiveStr("a"),
        lambda: Explosive,
    ],
)
def test_no_hook_of_the_value_runs_while_it_is_refused_or_shown(make):
    value = make()
    for annotation in (int, set[int], Point, Model, tuple[int, str], int | None, dict[str, int]):
        with pytest.raises(ContractError):
            Checker(annotation).check(value)
    assert len(short_repr(value)) <= 80
    assert len(preview(value, 50)) <= 50


def test_virtual_subclasses_count_where_the_class_registered_them():
    class Host(abc.ABC):  # noqa: B024
        pass

    Host.register(Point)
    assert is_a(Point(1), Host)
    assert not is_a(3, Host)


def test_real_contents_of_an_override():
    assert list(real_iter(HidingList(["x"]))) == ["x"]
    assert real_len(HidingList(["x"])) == 1


class ExplosiveLabel:
    """A label that raises once it is in its table."""

    armed = False

    def _boom(self, *args: Any) -> Any:
        if self.armed:
            raise RuntimeError
        return 1

    __len__ = __bool__ = __copy__ = __deepcopy__ = __lt__ = __repr__ = __str__ = __format__ = _boom

    def __hash__(self):
        return self._boom()

    def __eq__(self, other):
        self._boom()
        return self is other

    def __getattr__(self, name):
        self._boom()
        raise AttributeError(name)


@pytest.mark.parametrize(
    "make",
    [
        lambda label: pd.DataFrame([[1, 2]], columns=[label, "b"]),
        lambda label: pd.DataFrame({"a": [1]}, index=[label]),
        lambda label: pd.DataFrame({"a": [1]}, index=pd.Index([1], name=label)),
        lambda label: pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(1, label)])),
        lambda label: pd.Series([1], index=[label], name=label),
        lambda label: pd.Series([label]),
        lambda label: pd.Index([label]),
    ],
)
def test_no_label_of_a_table_is_asked_for_its_text(make, monkeypatch):
    label = ExplosiveLabel()
    table = make(label)
    if not isinstance(table, pd.Index):
        table.attrs["unit"] = label
    monkeypatch.setattr(ExplosiveLabel, "armed", True)

    assert type(table).__name__ in preview(table)
