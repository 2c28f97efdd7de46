"""Names in a registration that are the name of nothing are told of, and so are limits that are none.

Stopped by: sandbox.policy.spelling, sandbox.policy.exclusions.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import urllib
import urllib.request
import xml
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agex import Agent
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


ODD = {
    "nothing": "",
    "no text": None,
    "a number": 5,
    "bytes": b"write",
    "texts among which is none": ["write", None],
    "an operator": ["__call__"],
    "an item": "Kept.__getitem__",
    "the making": ["__init__"],
    "the class": ["__class__"],
    "another case": "WRI*",
    "an expression": "^wri.*$",
    "several in one text": "wri*, rea*",
}


@pytest.mark.parametrize("odd", ODD)
def test_an_exclusion_that_could_leave_nothing_out_is_an_error(odd: str) -> None:
    for register in (
        lambda: Policy.default().cls(Kept, exclude=ODD[odd]),
        lambda: Policy.default().module(Kept(), name="kept", exclude=ODD[odd]),
    ):
        with pytest.raises(DefinitionError):
            register()


OF_MODULES = [
    "*_decode",
    "RAW_*",
    "[r]aw_decode",
    "^raw.*$",
    "re:raw_.*",
    "raw_decode.*",
    "Decoder.raw*",
    ".rawdecode",
    "",
]


@pytest.mark.parametrize("said", OF_MODULES)
def test_a_glob_that_fits_members_of_classes_alone_is_not_said_of_a_module(said: str) -> None:
    with pytest.raises(DefinitionError):
        Policy.default().module(json, exclude=["_*", said])


def test_a_glob_of_members_of_classes_holds_where_it_says_so() -> None:
    policy = Policy.default()
    policy.module(json, exclude=["_*", "*.*_decode", "JSONDecoder.dec*"])
    for member in ("raw_decode", "decode"):
        assert Sandbox(policy).exec(f"import json\njson.JSONDecoder().{member}('1')").error is not None


def test_patterns_that_can_be_read_once_hold() -> None:
    for register in (
        lambda policy: policy.cls(Kept, exclude=(name for name in ["write"])),
        lambda policy: policy.module(Kept(), name="Kept", exclude=iter(["write"])),
    ):
        policy = Policy.default()
        register(policy)
        assert Sandbox(policy).exec("(Kept if isinstance(Kept, type) else lambda: Kept)().write()").error
    policy = Policy.default()
    policy.module(json, exclude=(name for name in ["dumps"]))
    assert Sandbox(policy).exec("import json\njson.dumps(1)").error is not None


def test_what_is_excluded_by_its_path_is_not_found_under_another_name() -> None:
    for path in ("json.decoder.JSONDecoder", "decoder.JSONDecoder"):
        policy = Policy.default()
        policy.module(json, exclude=["_*", path])
        assert Sandbox(policy).exec("import json\njson.JSONDecoder").error is not None
        assert Sandbox(policy).exec("import json\njson.loads('1')").value == 1


def test_a_glob_is_checked_against_an_archive_whose_directory_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("packed_here/__init__.py", "loads = len\n")
        written.writestr("packed_here/part.py", "")
    monkeypatch.syspath_prepend(str(archive))
    importlib.import_module("packed_here.part")
    package = sys.modules["packed_here"]
    try:
        importlib.invalidate_caches()
        importlib.invalidate_caches()  # the first may import what reads the archive again
        policy = Policy.default()
        policy.module(package, exclude=["_*", "pa?t"])
        with pytest.raises(DefinitionError, match="did you mean 'part'"):
            Policy.default().module(package, exclude=["P?rt"])
    finally:
        for name in ("packed_here", "packed_here.part"):
            del sys.modules[name]


@pytest.mark.parametrize("value", ["no", 0, None, "False"], ids=repr)
def test_what_is_neither_true_nor_false_opens_nothing(value: Any) -> None:
    registered: dict[str, Callable[[Policy, dict[str, Any]], object]] = {
        "host_fs_access": lambda policy, said: policy.fn(len, **said),
        "network_access": lambda policy, said: policy.module(json, **said),
        "recursive": lambda policy, said: policy.module(json, **said),
        "constructable": lambda policy, said: policy.cls(Kept, **said),
    }
    for name, register in registered.items():
        with pytest.raises(DefinitionError, match=name):
            register(Policy.default(), {name: value})
        if name != "recursive":
            with pytest.raises(DefinitionError, match=name):
                Agent().cls(Kept, **{name: value})


def test_what_an_agent_cannot_hold_is_an_error_where_it_is_registered() -> None:
    for said in (
        {"configure": {"write": {}}},
        {"configure": {"write": None}},
        {"name": ""},
        {"name": "__import__"},
        {"exclude": [""]},
        {"exclude": None},
    ):
        with pytest.raises(DefinitionError):
            Agent().cls(Kept, **said)  # type: ignore[arg-type]
    for timeout in ("5", True, [1]):
        with pytest.raises(DefinitionError, match="timeout"):
            Agent().fn(len, timeout=timeout)  # type: ignore[call-overload]


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


class Machine:
    def inherited(self) -> str:
        return "on"


class Robot(Machine):
    def greet(self) -> str:
        return "hello"

    def self_destruct(self) -> str:
        return "boom"


HERE = Robot.__module__

SAID_WITH_ITS_OWNER: dict[str, tuple[Any, Any]] = {
    "the class": (["Robot.self_destruct"], ["Robot.greet", "Robot.inherited"]),
    "any class": (["*.self_destruct"], ["*.greet", "*.inherited"]),
    "part of the name": (["Robot.self_*"], ["Rob*.gr*", "Machine.inherited"]),
    "its module, too": ([f"{HERE}.Robot.self_destruct"], [f"{HERE}.Robot.greet", "*.inherited"]),
    "one text": ("Robot.self_destruct", "Robot.[gi]*"),
    "of a tuple": (("Robot.self_destruct",), ("Robot.greet", "Machine.*")),
}
REGISTERED: dict[str, tuple[Callable[..., Any], str]] = {
    "a class": (lambda policy, **said: policy.cls(Robot, **said), "Robot()"),
    "a live object": (lambda policy, **said: policy.module(Robot(), name="robot", **said), "robot"),
}


@pytest.mark.parametrize("registered", REGISTERED)
@pytest.mark.parametrize("how", SAID_WITH_ITS_OWNER)
def test_what_is_said_of_a_member_with_its_owner_holds(how: str, registered: str) -> None:
    register, robot = REGISTERED[registered]
    excluded, included = SAID_WITH_ITS_OWNER[how]
    for said in ({"exclude": excluded}, {"include": included}):
        policy = Policy.default()
        register(policy, **said)
        refused = Sandbox(policy).exec(f"{robot}.self_destruct()")
        assert "is not accessible" in str(refused.error)
        assert Sandbox(policy).exec(f"{robot}.greet(), {robot}.inherited()").value == ("hello", "on")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["Other.self_destruct"], "speaks of 'Other', and is said of the class Robot"),
        (["Robott.self_destruct"], "say 'self_destruct' or 'Robot.self_destruct'"),
        (["Robot.self_destrukt"], "did you mean 'self_destruct'"),
        (["*.self_destrukt"], "did you mean 'self_destruct'"),
        (["self_destrukt"], "did you mean 'self_destruct'"),
    ],
)
def test_what_is_said_of_no_member_of_a_class_is_an_error(said: list[str], why: str) -> None:
    for register, _ in REGISTERED.values():
        for patterns in ({"exclude": said}, {"include": said}, {"configure": {said[0]: MemberSpec()}}):
            with pytest.raises(DefinitionError, match=re.escape(why)):
                register(Policy.default(), **patterns)


def test_settings_of_a_member_may_name_its_owner() -> None:
    policy = Policy.default()
    policy.cls(Robot, exclude="*", configure={"Robot.greet": MemberSpec()})
    assert Sandbox(policy).exec("Robot().greet()").value == "hello"
    assert Sandbox(policy).exec("Robot().self_destruct()").error is not None


@pytest.mark.parametrize(
    "said",
    [["urllib.request*"], ["urllib.request"], ["request*"], "urllib.request*", ["urllib.request.urlopen"]],
    ids=str,
)
def test_a_module_is_told_its_members_by_their_whole_names(said: Any) -> None:
    policy = Policy.default()
    policy.module(urllib, exclude=said)
    sandbox = Sandbox(policy)
    assert sandbox.exec("import urllib.request\nurllib.request.urlopen").error is not None
    assert sandbox.exec("import urllib.parse\nurllib.parse.quote('a b')").value == "a%20b"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["request.urlopn"], "did you mean 'urlopen'"),
        (["urllib.request.urlopn"], "did you mean 'urlopen'"),
        (["nothing.get"], "speaks of 'nothing', which is in no module of urllib that is loaded"),
        (["Reqest.add_header"], "say '*.add_header'"),
        (["Request.add_heder"], "did you mean 'add_header'"),
        (["urllib.request.Request.add_heder"], "did you mean 'add_header'"),
    ],
)
def test_what_is_said_of_nothing_in_a_package_is_an_error(said: list[str], why: str) -> None:
    for patterns in ({"exclude": said}, {"include": said}):
        with pytest.raises(DefinitionError, match=re.escape(why)):
            Policy.default().module(urllib, **patterns)
