"""Tasks and a host over one state, interleaved at random, against a dict and one rule.

The rule: a task that changes what somebody else changed since it began is refused, and nothing else is.
"""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from agex.agent import SystemNoteEvent
from agex.errors import StateConflict
from agex.state import Memory, Versioned
from agex.state.working.view import View

THOROUGH = int(os.environ.get("AGEX_EXAMPLES", "0"))
NAMES = st.sampled_from(["a", "b", "c", "d"])
KEYS = st.sampled_from(["j", "k", 1])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["set", "delete", "append", "append to the first"]), NAMES),
        st.tuples(st.just("alias"), NAMES, NAMES),
        st.tuples(st.sampled_from(["set key", "delete key", "append to key"]), KEYS),
    ),
    max_size=4,
)


@dataclass
class Task:
    """A task, and what the model knows of it."""

    view: View
    names: dict[str, Any]
    cache: dict[Any, Any]
    others: set[Any] = field(default_factory=set)
    """What others changed since it began."""
    world: dict[Any, Any] = field(default_factory=dict)
    """The values as it left them last."""
    shared: set[Any] = field(default_factory=set)
    """Names whose objects are the host's too, which has not committed them yet."""
    touched: set[Any] = field(default_factory=set)
    """Names whose objects the host changed in place before, without a commit: as if the task had."""

    def look(self) -> dict[Any, Any]:
        """Return its values, each by itself."""
        found = {**self.names, **{("cache", key): value for key, value in self.cache.items()}}
        return {name: copy.deepcopy(value) for name, value in found.items()}


class Overlaps(RuleBasedStateMachine):
    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.store = Memory()
        self.state = Versioned(self.store)
        self.now: dict[Any, Any] = {}
        self.running: list[Task] = []
        self.pending: set[str] = set()
        """Names that the host bound since the last commit."""
        self.touched: set[str] = set()
        """Names that the host changed in place since the last commit."""
        self.number = 0

    def new(self) -> list[Any]:
        self.number += 1
        return [self.number, [self.number]]

    @rule(target=tasks)
    def begin(self) -> Task:
        head = self.state.head
        view = self.state.view()
        task = Task(view, view.snapshot(), view.cache)
        task.world = task.look()
        assert task.world == self.now
        if self.state.head != head:
            self._committed()  # it began beside another task, with what the host had changed
        else:
            task.shared, task.touched = set(self.pending), set(self.touched)
        self.running.append(task)
        return task

    @rule(task=tasks, steps=STEPS)
    def act(self, task: Task, steps: list[Any]) -> None:
        self._act(task, steps, last=False)

    @rule(task=consumes(tasks), steps=STEPS)
    def end(self, task: Task, steps: list[Any]) -> None:
        self._act(task, steps, last=True)

    def _act(self, task: Task, steps: list[Any], *, last: bool) -> None:
        if task not in self.running:
            return  # it was refused
        task.view.act(task.names, task.cache)
        before = dict(task.names)
        for step in steps:
            self._step(task, *step)
        after = task.look()
        keys = task.world.keys() | after.keys()
        gone = object()
        changed = {key for key in keys if task.world.get(key, gone) != after.get(key, gone)}
        event = SystemNoteEvent(agent="a", task="t", run_id="r", message="a step")
        task.view.record(event)
        task.view.write_back(before, task.names)
        if changed & task.others:
            self.running.remove(task)
            with pytest.raises(StateConflict) as caught:
                task.view.settle("a step", last=last)
            side = next(name for name in self.state.branches() if f"{name!r}" in str(caught.value))
            self._holds(self.state.checkout(side), after, changed)
            assert event.commit_hash == self.state.branches()[side]
            for name in task.shared & self.now.keys():
                if before[name] is task.names.get(name):
                    self.now[name] = after[name]  # what it did in place to an object of the host
            for name in task.touched & self.now.keys():
                self.now[name] = copy.deepcopy(self.state[name])
            return
        commit = task.view.settle("a step", last=last)
        assert event.commit_hash == commit == self.state.head
        self._holds(self.state.checkout(commit), after, changed)
        if last:
            self.running.remove(task)
        task.world = after
        self._changed(task, changed)
        for key in changed:
            self.now.pop(key, None)
        self.now |= {key: after[key] for key in changed if key in after}
        if task.shared or task.touched:
            self._committed()

    def _committed(self) -> None:
        self.pending.clear()
        self.touched.clear()
        for task in self.running:
            task.shared.clear()
            task.touched.clear()

    def _changed(self, by: Task | None, names: set[Any]) -> None:
        if by is None:
            self.pending |= names
            for task in self.running:
                task.shared -= names
        for other in self.running:
            if other is not by:
                other.others |= names

    def _holds(self, there: Any, expected: dict[Any, Any], names: set[Any]) -> None:
        found = {**there, **{("cache", key): value for key, value in there.cache.items()}}
        assert {k: v for k, v in found.items() if k in names} == {
            k: v for k, v in expected.items() if k in names
        }

    def _step(self, task: Task, what: str, name: Any, other: str = "") -> None:
        where = task.cache if "key" in what else task.names
        if what.startswith("set"):
            where[name] = self.new()
        elif what == "alias" and other in task.names:
            task.names[name] = task.names[other]
        elif name not in where:
            return
        elif what.startswith("delete"):
            del where[name]
        elif what == "append to the first":
            where[name][1].append(self.number)
        elif what.startswith("append"):
            where[name].append(self.new())

    @rule(name=NAMES)
    def the_host_binds(self, name: str) -> None:
        value = self.new()
        self.state[name] = copy.deepcopy(value)
        self.now[name] = value
        self._changed(None, {name})

    @rule(name=NAMES)
    def the_host_deletes(self, name: str) -> None:
        if name in self.state and name not in self.pending:  # else it may come to nothing
            del self.state[name]
            del self.now[name]
            self._changed(None, {name})

    @rule(name=NAMES)
    def the_host_changes_in_place(self, name: str) -> None:
        if self.running or name not in self.state:
            return  # a task may have the very object
        self.state[name].append(value := self.new())
        shared = [each for each in self.state if self.state[each] is self.state[name]]
        for each in shared:
            self.now[each].append(copy.deepcopy(value))
            self.touched.add(each)

    @rule()
    def the_host_commits(self) -> None:
        commit = self.state.commit("host")
        self._committed()
        self._holds(self.state.checkout(commit), self.now, set(self.now))

    @invariant()
    def the_host_sees_what_was_committed_and_what_it_changed(self) -> None:
        assert dict(self.state) == {name: value for name, value in self.now.items() if type(name) is str}

    def teardown(self) -> None:
        self.state.commit("the end")
        found = Versioned(self.store)
        assert {**found, **{("cache", key): each for key, each in found.cache.items()}} == self.now
        assert self.state.fsck() == []


TestOverlaps = Overlaps.TestCase
TestOverlaps.settings = settings(
    deadline=None,
    max_examples=THOROUGH or 40,
    stateful_step_count=40 if THOROUGH else 15,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
