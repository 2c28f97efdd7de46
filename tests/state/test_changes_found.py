"""No change of an object is missed, whoever made it and however it was reached.

A state does not look again at plain data that it alone refers to. So each program here runs twice: on a
state as it is, and on one whose variables are all given out before each commit, so that it looks at all of
them. What the two stored must be the same, what is shared included.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agex.errors import StateFull
from agex.state import Memory, Versioned


@dataclass
class Box:
    content: list[Any] = field(default_factory=list)


KINDS: list[Callable[[], Any]] = [
    lambda: {"a": 1, "rows": [1, 2], "deep": {"more": [[3]]}},
    lambda: [[1], [2], {"n": [3]}],
    lambda: {"kinds": {1, 2}, "pair": (1, [2]), "flat": (1, 2)},
    lambda: {"bytes": bytearray(b"abc")},
    list,
    lambda: {"array": np.arange(3), "rows": [1]},
    lambda: Box([[1]]),
    lambda: {"boxes": [Box()], "rows": [1]},
    lambda: 7,
    lambda: [(1, (2, [3])), (1, 2)],
]


def parts_of(value: Any) -> list[Any]:
    """Return the objects directly inside a value, those of keys left out."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    return [value.content] if isinstance(value, Box) else []


def inside(value: Any, path: list[int]) -> Any:
    """Return a mutable object inside a value, or the value."""
    for step in path:
        below = [
            each for each in parts_of(value) if isinstance(each, dict | list | tuple | set | bytearray | Box)
        ]
        below += [each for each in parts_of(value) if isinstance(each, np.ndarray)]
        if not below:
            break
        value = below[step % len(below)]
    return value


def generator(value: Any) -> Iterator[Any]:
    while True:
        yield value


def by_iterator(value: Any) -> Callable[[], Any]:
    """Hold what is directly inside by an iterator over the outer object; all others by a closure."""
    below = [number for number, each in enumerate(parts_of(value)) if isinstance(each, dict | list)]
    if not below or isinstance(value, Box):
        return lambda: value
    iterator = iter(value.values() if isinstance(value, dict) else value)
    for _ in range(below[0]):
        next(iterator)
    found: list[Any] = []
    return lambda: (found or found.append(next(iterator)) or found)[0]


def by_view(value: Any) -> Callable[[], Any]:
    if not isinstance(value, dict):
        return lambda: value
    view = value.values()
    return lambda: next((each for each in view if isinstance(each, dict | list)), {})


def by_weak_reference(value: Any) -> Callable[[], Any]:
    if not isinstance(value, set | np.ndarray):
        return lambda: value
    reference = weakref.ref(value)
    return lambda: set() if reference() is None else reference()


def by_array_view(value: Any) -> Callable[[], Any]:
    if not isinstance(value, np.ndarray):
        return lambda: value
    view = value[1:]
    return lambda: view


def by_method(value: Any) -> Callable[[], Any]:
    method = value.__iter__ if hasattr(value, "__iter__") else value.__eq__
    return lambda: method.__self__


def by_exception(value: Any) -> Callable[[], Any]:
    error = ValueError(value)
    return lambda: error.args[0]


HOLDS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "a closure": lambda value: lambda: value,
    "a generator": lambda value: generator(value).__next__,
    "a method": by_method,
    "an iterator": by_iterator,
    "a view": by_view,
    "a weak reference": by_weak_reference,
    "a view of an array": by_array_view,
    "an exception": by_exception,
}  # fmt: skip


def change(value: Any, number: int, other: Any) -> None:
    """Change a mutable object in place."""
    if isinstance(value, list):
        [
            lambda: value.append(other),
            lambda: value.__setitem__(slice(None), [number]),
            lambda: value and value.pop(),
        ][number % 3]()
    elif isinstance(value, dict):
        key = sorted(value)[number % len(value)] if value and number % 2 else f"k{number}"
        value[key] = other
    elif isinstance(value, set):
        value.add(number)
    elif isinstance(value, bytearray):
        value.append(number)
    elif isinstance(value, np.ndarray):
        value[...] = number
    elif isinstance(value, Box):
        value.__dict__["content"] = [number, other]


Step: TypeAlias = tuple[str, str, int, int, list[int], str]


class World:
    """A state, and what somebody holds of its objects."""

    def __init__(self, *, looks_at_all: bool) -> None:
        self.state = Versioned(Memory(), classes=[Box])
        self.looks_at_all = looks_at_all
        self.hands: list[Callable[[], Any]] = []
        self.heads: dict[str | None, int] = {}

    def hand(self, number: int) -> Any:
        return self.hands[number % len(self.hands)]() if self.hands else number

    def do(self, step: Step) -> Any:
        verb, name, number, other, path, hold = step
        state = self.state
        if verb == "bind":
            state[name] = KINDS[number % len(KINDS)]()
        elif verb == "take" and name in state:
            self.hands.append(HOLDS[hold](inside(state[name], path)))
        elif verb == "change in place" and name in state:
            change(inside(state[name], path), number, other)
        elif verb == "change" and self.hands:
            change(self.hand(number), other, number)
        elif verb == "put" and self.hands and name in state:
            put(inside(state[name], path), self.hand(number))
        elif verb == "share" and self.hands:
            state[name] = self.hand(number)
        elif verb == "drop" and self.hands:
            del self.hands[number % len(self.hands)]
        elif verb == "delete" and name in state:
            del state[name]
        elif verb == "commit":
            return self.commit()
        return None

    def commit(self) -> Any:
        if self.looks_at_all:
            everything = dict(self.state)
        head = self.state.commit()
        if self.looks_at_all:
            del everything
        number = self.heads.setdefault(head, len(self.heads))
        return number, shape(Versioned(self.state.store, classes=[Box]))


def put(container: Any, value: Any) -> None:
    """Put an object into a container, unless that would make a circle."""
    if contains(value, container):
        return
    if isinstance(container, list):
        container[:] = [value]
    elif isinstance(container, dict):
        container["put"] = value


def contains(value: Any, wanted: Any) -> bool:
    return value is wanted or any(contains(each, wanted) for each in parts_of(value))


def shape(state: Any) -> Any:
    """Return the values of a state, and which of their objects are the same."""
    numbers: dict[int, int] = {}
    alive: list[Any] = []

    def of(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            root = value if value.base is None else value.base
            alive.append(root)
            return "array", numbers.setdefault(id(root), len(numbers)), value.tolist()
        if isinstance(value, set):
            return numbers.setdefault(id(value), len(numbers)), sorted(value)
        if isinstance(value, tuple):
            return "tuple", [of(each) for each in value]
        if not isinstance(value, dict | list | bytearray | Box):
            return value
        number = numbers.setdefault(id(value), len(numbers))
        keys = (
            list(value) if isinstance(value, dict) else bytes(value) if isinstance(value, bytearray) else None
        )
        return type(value).__name__, number, keys, [of(each) for each in parts_of(value)]

    found = dict(state)
    return {name: of(found[name]) for name in sorted(found)}


VERBS = [
    "bind",
    "take",
    "take",
    "change in place",
    "change",
    "change",
    "put",
    "share",
    "drop",
    "delete",
    "commit",
    "commit",
]
STEPS = st.tuples(
    st.sampled_from(VERBS),
    st.sampled_from("abcd"),
    st.integers(0, 9),
    st.integers(0, 9),
    st.lists(st.integers(0, 2), max_size=3),
    st.sampled_from(sorted(HOLDS)),
)


def results_of(program: list[Step], *, looks_at_all: bool) -> list[Any]:
    world = World(looks_at_all=looks_at_all)
    for name, kind in zip("abcd", range(4), strict=True):
        world.state[name] = KINDS[kind]()
    found = [world.commit()]
    for step in program:
        result = world.do(step)
        if result is not None:
            found.append(result)
    return [*found, world.commit()]


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=25))
def test_what_is_stored_is_what_a_look_at_everything_finds(program):
    assert results_of(program, looks_at_all=False) == results_of(program, looks_at_all=True)


@pytest.mark.parametrize("hold", sorted(HOLDS))
@pytest.mark.parametrize(
    ("kind", "path"), [(0, [0]), (0, [1, 0]), (1, [2]), (2, [0]), (2, [1, 0]), (3, [0]), (5, [1])]
)
def test_a_change_through_whatever_holds_an_object_is_found_many_commits_later(hold, kind, path):
    state = Versioned(classes=[Box])
    state["x"], state["other"] = KINDS[kind](), 0
    state.commit()
    held = HOLDS[hold](inside(state["x"], path))
    for number in range(4):
        state["other"] = number
        state.commit()
    before = shape(Versioned(state.store, classes=[Box]))
    change(held(), 4, 77)
    state.commit()
    after = shape(Versioned(state.store, classes=[Box]))
    assert after == shape(state)
    assert after != before


def test_a_change_by_a_thread_that_holds_an_object_is_found():
    state = Versioned()
    state["x"] = {"rows": [1]}
    state.commit()
    asked: SimpleQueue[bool] = SimpleQueue()
    done: SimpleQueue[bool] = SimpleQueue()

    def run(held: list[int]) -> None:
        asked.get()
        held.append(2)
        done.put(True)

    thread = threading.Thread(target=run, args=(state["x"]["rows"],))
    thread.start()
    for number in range(3):
        state["other"] = number
        state.commit()
    asked.put(True)
    done.get()
    state.commit()
    thread.join()
    assert Versioned(state.store)["x"] == {"rows": [1, 2]}


def test_objects_that_come_to_be_shared_without_another_content_are_stored_as_shared():
    state = Versioned()
    state["x"], state["y"] = [[1]], [[1]]
    state.commit()
    state.commit()
    state["y"][0] = state["x"][0]
    state.commit()
    stored = Versioned(state.store)
    assert stored["x"][0] is stored["y"][0]


def test_objects_that_are_parted_without_another_content_are_stored_apart():
    state = Versioned()
    shared = [1]
    state["x"], state["y"] = [shared], [shared]
    del shared
    state.commit()
    state["y"][0] = [1]
    state.commit()
    stored = Versioned(state.store)
    assert stored["x"][0] is not stored["y"][0]


def test_a_commit_that_failed_leaves_its_changes_to_be_found():
    class Full(Memory):
        is_full = False

        def set_many(self, items):
            if self.is_full:
                raise StateFull("no room")
            super().set_many(items)

    store = Full()
    state = Versioned(store)
    state["x"] = [1]
    state.commit()
    state["x"].append(2)
    store.is_full = True
    with pytest.raises(StateFull):
        state.commit()
    store.is_full = False
    state.commit()
    assert Versioned(store)["x"] == [1, 2]
