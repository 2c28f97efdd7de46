"""For random annotations and values made together: what fits is kept, one wrong leaf is found."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Optional

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agex.contract import Checker, ContractError, preview, same_value


class Wrong:
    """A value that fits no annotation made here."""

    def __deepcopy__(self, memo):
        return self


@dataclass
class Made:
    annotation: Any
    value: Any
    leaves: list[tuple[str, Any]]
    """For each leaf, the path to it and the whole value with that leaf made wrong."""


LEAVES = {
    int: st.integers(),
    float: st.floats(),
    str: st.text(max_size=5),
    bytes: st.binary(max_size=5),
    bool: st.booleans(),
    type(None): st.none(),
    Literal["a", 2]: st.sampled_from(["a", 2]),
}


@st.composite
def leaf(draw):
    annotation = draw(st.sampled_from(list(LEAVES)))
    return Made(annotation, draw(LEAVES[annotation]), [("", Wrong())])


@st.composite
def sequence(draw, inner, base):
    made = draw(inner)
    # Copies of one part: all of one annotation.
    count = draw(st.integers(0, 3))
    values = [made.value] * count
    leaves = [
        (f"[{i}]{path}", base([*values[:i], wrong, *values[i + 1 :]]))
        for i in range(count)
        for path, wrong in made.leaves
    ]
    annotation = list[made.annotation] if base is list else tuple[made.annotation, ...]
    return Made(annotation, base(values), leaves)


@st.composite
def mapping(draw, inner):
    made = draw(inner)
    keys = draw(st.lists(st.text("abc", min_size=1, max_size=3), max_size=3, unique=True))
    value = dict.fromkeys(keys, made.value)
    leaves = [(f"[{key!r}]{path}", {**value, key: wrong}) for key in keys for path, wrong in made.leaves]
    return Made(dict[str, made.annotation], value, leaves)


@st.composite
def pair(draw, inner):
    left, right = draw(inner), draw(inner)
    leaves = [(f"[0]{path}", (wrong, right.value)) for path, wrong in left.leaves]
    leaves += [(f"[1]{path}", (left.value, wrong)) for path, wrong in right.leaves]
    return Made(tuple[left.annotation, right.annotation], (left.value, right.value), leaves)


@st.composite
def optional(draw, inner):
    made = draw(inner)
    return Made(Optional[made.annotation], made.value, made.leaves)  # noqa: UP045


@st.composite
def record(draw, inner):
    made = draw(inner)
    kind = draw(st.sampled_from(["dataclass", "model", "named tuple"]))
    if kind == "model":
        cls: Any = type(
            "M", (BaseModel,), {"__annotations__": {"x": made.annotation}, "__module__": __name__}
        )
        build = lambda x: cls.model_construct(x=x)  # noqa: E731
    elif kind == "dataclass":
        cls = dataclass(type("D", (), {"__annotations__": {"x": made.annotation}, "__module__": __name__}))
        build = cls
    else:
        cls = NamedTuple("N", [("x", made.annotation)])  # noqa: UP014
        build = cls
    return Made(cls, build(made.value), [(f".x{path}", build(wrong)) for path, wrong in made.leaves])


def nested(inner):
    return st.one_of(
        sequence(inner, list),
        sequence(inner, tuple),
        mapping(inner),
        pair(inner),
        optional(inner),
        record(inner),
    )


MADE = st.recursive(leaf(), nested, max_leaves=5)
relaxed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(MADE)
def test_a_value_made_for_its_annotation_comes_back_as_the_same_object(made):
    assert Checker(made.annotation).check(made.value) is made.value


@relaxed
@given(MADE, st.data())
def test_one_wrong_leaf_is_found_and_its_path_named(made, data):
    if not made.leaves:
        return
    path, wrong = data.draw(st.sampled_from(made.leaves))
    with pytest.raises(ContractError) as caught:
        Checker(made.annotation).check(wrong)
    assert str(caught.value).startswith(f"result{path}: expected ")
    assert "Wrong object" in str(caught.value)


@relaxed
@given(MADE, st.integers(0, 200))
def test_a_preview_stays_within_its_limit(made, limit):
    assert len(preview(made.value, limit)) <= limit


@relaxed
@given(MADE)
def test_a_value_is_the_same_as_itself(made):
    assert same_value(made.value, made.value)
