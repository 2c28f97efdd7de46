"""Which objects are asked for their own repr in a preview, for how long, and what is shown of a failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from agex.contract import preview
from agex.host_texts import HostTexts
from agex.sandbox import Sandbox

LIMIT = 2.0
"""Seconds that a preview may take on a loaded machine; each attack would take a minute or for ever."""

let_go = threading.Event()


@pytest.fixture(autouse=True)
def _ending() -> Iterator[None]:
    """Let the reprs that wait for ever end with the test."""
    let_go.clear()
    yield
    let_go.set()


def waits() -> str:
    let_go.wait(60)
    return "late"


def fails() -> str:
    raise ValueError("no")


def leaves() -> str:
    raise SystemExit


def recurs() -> str:
    return recurs()


def of_class(name: str, write: Callable[[], Any], *bases: type) -> Any:
    return type(name, bases, {"__repr__": lambda self: write()})()


@dataclass
class Told:
    x: int = 1

    def __repr__(self) -> str:
        return f"Told {self.x}"


class Model(BaseModel):
    x: int = 1

    def __repr__(self) -> str:
        return f"a model of {self.x}"


class Pair(NamedTuple):
    left: int = 1

    def __repr__(self) -> str:
        return f"a pair of {self.left}"


class Slotted:
    __slots__ = ("held",)

    def __repr__(self) -> str:
        return "slotted"


INFORMATIVE = [
    (of_class("Robot", lambda: "Robot(battery=7)"), "Robot(battery=7)"),
    (Told(), "Told 1"),
    (Model(), "a model of 1"),
    (Pair(), "a pair of 1"),
    (Slotted(), "slotted"),
    (of_class("Bag", lambda: "Bag of 3", list), "Bag of 3"),
    (of_class("Tag", lambda: "Tag red", str), "Tag red"),
    ([Told(2)], "[Told 2]"),
    ({"a": Told(3)}, "{'a': Told 3}"),
    (
        of_class("Lines", lambda: "a\nWhat is in the workspace:\r\x85\u2028"),
        r"a\nWhat is in the workspace:\r\x85\u2028",
    ),
]


@pytest.mark.parametrize(("value", "text"), INFORMATIVE, ids=[text for _, text in INFORMATIVE])
def test_an_object_of_the_host_is_shown_as_its_class_says(value: object, text: str) -> None:
    assert preview(value, texts=HostTexts(each=LIMIT, seconds=LIMIT)) == text


def test_a_long_repr_is_cut_to_the_room_there_is() -> None:
    long = of_class("Long", lambda: "x" * 1_000_000)
    assert len(preview(long, 100, HostTexts(each=LIMIT, seconds=LIMIT))) <= 100
    assert len(preview([long, long], 100, HostTexts(each=LIMIT, seconds=LIMIT))) <= 120


FAILING = [
    (fails, "<Bad, repr failed: ValueError>"),
    (leaves, "<Bad, repr failed: SystemExit>"),
    (recurs, "<Bad, repr failed: RecursionError>"),
    (lambda: 1, "<Bad, repr failed: TypeError>"),
    (waits, "<Bad, repr too slow>"),
]


@pytest.mark.parametrize(("write", "text"), FAILING, ids=[text for _, text in FAILING])
def test_a_repr_that_fails_or_is_too_slow_is_said_to_be_so(write: Callable[[], Any], text: str) -> None:
    seconds = 0.05 if write is waits else LIMIT
    assert preview(of_class("Bad", write), texts=HostTexts(each=seconds, seconds=LIMIT)) == text


@dataclass
class Holder:
    parts: list[Any] = field(default_factory=list)


MANY: dict[str, Callable[[type], Any]] = {
    "a list": lambda kind: [kind() for _ in range(1_000)],
    "a set": lambda kind: {kind() for _ in range(1_000)},
    "values": lambda kind: {number: kind() for number in range(1_000)},
    "keys": lambda kind: {kind(): number for number in range(1_000)},
    "a dataclass": lambda kind: Holder([kind() for _ in range(1_000)]),
    "deep inside": lambda kind: [[Holder([kind()])] for _ in range(1_000)],
    "classes of their own": lambda kind: [type("Slow", (kind,), {})() for _ in range(1_000)],
}


@pytest.mark.parametrize("name", MANY)
def test_a_thousand_slow_objects_take_no_longer_than_the_limit_of_all(name: str) -> None:
    value = MANY[name](type("Slow", (), {"__repr__": lambda self: waits()}))
    begun = time.monotonic()
    assert "Slow" in preview(value, 100_000, HostTexts())
    assert time.monotonic() - begun < LIMIT


def test_a_late_answer_is_dropped_and_the_class_is_asked_again_when_it_has_come() -> None:
    asked: list[int] = []

    class Late:
        def __repr__(self) -> str:
            asked.append(1)
            return waits() if len(asked) == 1 else "in time"

    assert preview(Late(), texts=HostTexts(each=0.05)) == "<Late, repr too slow>"
    assert preview(Late(), texts=HostTexts(each=LIMIT, seconds=LIMIT)) == "<Late, repr too slow>"
    assert len(asked) == 1  # there is one waiting thread a class
    let_go.set()
    for thread in threading.enumerate():
        if thread.name == "agex text":
            thread.join(LIMIT)
    assert preview(Late(), texts=HostTexts(each=LIMIT, seconds=LIMIT)) == "in time"


def test_a_repr_that_needs_a_lock_of_its_caller_leaves_the_lock_as_it_was() -> None:
    lock = threading.Lock()

    def locked() -> str:
        with lock:
            return "unlocked"

    value = of_class("Locked", locked)
    with lock:
        assert preview(value, texts=HostTexts(each=0.05)) == "<Locked, repr too slow>"
    assert lock.acquire(timeout=LIMIT)
    lock.release()


def test_where_the_time_is_used_up_an_object_is_shown_by_its_attributes() -> None:
    assert preview(Told(5), texts=HostTexts(seconds=0)) == "Told(x=5)"


ORDINARY = [
    1,
    "a",
    None,
    [1, {"a": (2,)}],
    np.float64(1),
    np.zeros(3),
    pd.DataFrame({"a": [1]}),
    pd.Timestamp("2020"),
]


class Counted(HostTexts):
    """Counts the objects that would be asked."""

    count = 0

    def of(self, value: Any, write: Callable[[Any], str] = repr) -> str | None:
        self.count += 1
        return None


@pytest.mark.parametrize(
    "value", [*ORDINARY, Holder([1]), Exception("x"), Told, object()], ids=lambda v: type(v).__name__
)
def test_ordinary_values_are_shown_without_a_thread(value: object) -> None:
    texts = Counted()
    assert preview(value, texts=texts) == preview(value)
    assert texts.count == 0


GUEST = """
class Evil:
    def __repr__(self):
        while True: pass
class Sub(base):
    def __repr__(self):
        while True: pass
evil, sub, function = Evil(), Sub(), lambda: 1
"""


class Open:
    """A class of the host's that shows what it holds."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __repr__(self) -> str:
        return f"Open({self.held!r})"


class Narrow:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    __repr__ = Open.__repr__


class Plain:
    pass


HOLDING: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an object of the agent's": lambda names: names["evil"],
    "of its class over the host's": lambda names: names["sub"],
    "held": lambda names: Open(names["evil"]),
    "held in a slot": lambda names: Narrow(names["evil"]),
    "held in a list": lambda names: Open([[names["evil"]]]),
    "held as a key": lambda names: Open({names["evil"]: 1}),
    "held by another": lambda names: Open(Open(names["sub"])),
    "held by an error": lambda names: Open(ValueError(names["evil"])),
    "its class": lambda names: Open(type(names["evil"])),
    "a function": lambda names: Open(names["function"]),
}


@pytest.mark.parametrize("held", [[None] * 1_000_000, [[] for _ in range(10_000)]], ids=["items", "parts"])
def test_an_object_with_too_many_parts_to_look_through_is_not_asked(held: list[Any]) -> None:
    texts = Counted()
    begun = time.monotonic()
    assert preview(Open(held), texts=texts) == preview(Open(held))
    assert texts.count == 0
    assert time.monotonic() - begun < LIMIT


def test_an_object_with_many_plain_items_is_asked() -> None:
    texts = Counted()
    preview(Open([0] * 100_000), texts=texts)
    assert texts.count == 1


@pytest.mark.parametrize("name", HOLDING)
def test_no_object_is_asked_that_is_or_holds_one_of_the_agents(name: str) -> None:
    sandbox = Sandbox()
    sandbox.policy.cls(Plain)
    session = sandbox.session({"base": Plain})
    assert session.run(GUEST).error is None
    value = HOLDING[name](dict(session.namespace))
    texts = Counted()
    assert preview(value, texts=texts) == preview(value)
    assert texts.count == 0
