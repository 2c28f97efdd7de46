"""Names in a registration that are the name of nothing are told of, and so are limits that are none."""

from __future__ import annotations

import json
import math
import xml
from collections.abc import Callable

import pytest

from agex.errors import DefinitionError
from agex.sandbox import Limits, MemberSpec, Policy, Sandbox


class Kept:
    token: str

    def __init__(self) -> None:
        self.note = "a note"
        self._secret = "mine"

    def read(self) -> str:
        return self.note

    def write(self) -> None: ...


class Anything(Kept):
    def __getattr__(self, name: str) -> str:
        return name


SLIPS = {
    "an excluded method": (lambda p: p.cls(Kept, exclude=["wirte"]), "'wirte'", "'write'"),
    "an excluded annotation": (lambda p: p.cls(Kept, exclude=["tokn"]), "'tokn'", "'token'"),
    "an excluded attribute": (lambda p: p.cls(Kept, exclude=["_*", "notes"]), "'notes'", "'note'"),
    "an excluded private attribute": (lambda p: p.cls(Kept, exclude="_secert"), "'_secert'", "'_secret'"),
    "an included method": (lambda p: p.cls(Kept, include=["raed"]), "'raed'", "'read'"),
    "a configured method": (
        lambda p: p.cls(Kept, configure={"reads": MemberSpec(visibility="high")}),
        "'reads'",
        "'read'",
    ),
    "of a live object": (lambda p: p.module(Kept(), name="kept", exclude=["nte"]), "'nte'", "'note'"),
    "an excluded function": (lambda p: p.module(math, exclude=["sqrtt"]), "'sqrtt'", "'sqrt'"),
    "an included function": (lambda p: p.module(math, include=["sin", "nothing"]), "'nothing'", ""),
    "a configured function": (lambda p: p.module(json, configure={"dump_s": MemberSpec()}), "'dump_s'", "'dumps'"),
    "a class of a module": (
        lambda p: p.module(json, exclude=["JSONDecoderr"]),
        "'JSONDecoderr'",
        "'JSONDecoder'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SLIPS)
def test_a_name_of_nothing_in_a_registration_is_an_error_that_says_what_was_meant(name: str) -> None:
    register, said, meant = SLIPS[name]
    policy = Policy.default()
    with pytest.raises(DefinitionError) as caught:
        register(policy)

    assert said in str(caught.value)
    assert meant in str(caught.value)
    assert [grant.kind for grant in policy.grants] == ["default"], "nothing is granted"


@pytest.mark.parametrize(
    "register",
    [
        lambda policy: policy.cls(Kept, exclude=["password", "writ*", "_*"]),
        lambda policy: policy.cls(Anything, exclude=["wirte"]),
        lambda policy: policy.module(Kept(), name="kept", include=["read", "set_from_elsewhere"]),
        lambda policy: policy.module(json, exclude=["dump*", "decoder", "JSONDecoder.decode", "nothing*"]),
        lambda policy: policy.module(xml, include=["sax"]),
    ],
    ids=[
        "objects may have it later",
        "objects have what they like",
        "held later",
        "of a module",
        "a submodule",
    ],
)
def test_a_name_that_may_be_right_is_taken(register: Callable[[Policy], object]) -> None:
    policy = Policy.default()
    register(policy)

    assert [grant.kind for grant in policy.grants][:1] == ["default"]
    assert len(policy.grants) == 2


@pytest.mark.parametrize(
    "limits",
    [
        {"seconds": 0},
        {"seconds": -1.0},
        {"seconds": math.nan},
        {"seconds": math.inf},
        {"memory_mb": 0},
        {"open_files": -5},
        {"output_chars": 0},
    ],
    ids=str,
)
def test_a_limit_that_is_none_is_refused(limits: dict[str, float]) -> None:
    [(name, value)] = limits.items()
    sandbox = Sandbox(limits=Limits(**limits))  # type: ignore[arg-type]
    with pytest.raises(
        DefinitionError, match=rf"Limits\({name}={value}\) is no limit; give a number above 0"
    ):
        sandbox.exec("1")


async def test_a_program_that_is_no_text_is_the_hosts_error() -> None:
    with pytest.raises(TypeError, match="the source of a program is a str, got bytes"):
        Sandbox().exec(b"1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got NoneType"):
        await Sandbox().aexec(None)  # type: ignore[arg-type]
