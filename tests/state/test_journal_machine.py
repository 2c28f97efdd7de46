"""Any sequence of commits, branches, resets and collections against plain dicts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from agex.errors import StateError
from agex.state.commits.journal import Draft, HeadMoved
from agex.state.disk.disk import Disk
from agex.state.kv.memory import Memory

THOROUGH = int(os.environ.get("AGEX_EXAMPLES", "0"))
KEYS = st.sampled_from(["a", "b", "c", "v/a", "v/b", "v/ü", "v", "w/x"])
PAYLOADS = st.none() | st.binary(max_size=5)
CHUNKS = st.sampled_from([b"", b"small", b"l" * 40_000, b"m" * 33_000])
BRANCHES = st.sampled_from(["main", "side", "x/y"])


class Model(RuleBasedStateMachine):
    """A journal beside a dict of all commits: what each holds, and its parents."""

    commits = Bundle("commits")

    @initialize()
    def begin(self):
        self.store = self.open()
        self.journal = self.store.journal()
        self.held: dict[str, dict[str, bytes]] = {}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.branches: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.clock = 0.0

    def reachable(self):
        found: set[str] = set()
        ends = [*self.branches.values(), *self.tags.values()]
        while ends:
            commit = ends.pop()
            if commit not in found:
                found.add(commit)
                ends += self.parents[commit]
        return found

    def write(self, parents, branch, changes, chunk=None):
        self.clock += 1
        chunks = {}
        if chunk is not None:
            address = self.journal.address(chunk)
            chunks, changes = {address: chunk}, {**changes, "chunk": b"=" + address}
        draft = Draft(
            parents=parents, changes=changes, chunks=chunks, time=self.clock, events=[b"%d" % self.clock]
        )
        commit = self.journal.commit(draft, branch=branch, expect=self.branches.get(branch))
        after = dict(self.held[parents[0]]) if parents else {}
        for key, payload in changes.items():
            if payload is None:
                after.pop(key, None)
            else:
                after[key] = payload
        self.held[commit], self.parents[commit] = after, parents
        self.branches[branch] = commit
        return commit

    @rule(target=commits, branch=BRANCHES, changes=st.dictionaries(KEYS, PAYLOADS), chunk=st.none() | CHUNKS)
    def commit(self, branch, changes, chunk):
        head = self.branches.get(branch)
        return self.write((head,) if head else (), branch, changes, chunk)

    @rule(
        target=commits, base=commits, other=commits, branch=BRANCHES, changes=st.dictionaries(KEYS, PAYLOADS)
    )
    def commit_elsewhere(self, base, other, branch, changes):
        parents = (base,) if other == base else (base, other)
        if not set(parents) <= self.held.keys():  # collected
            head = self.branches.get(branch)
            parents = (head,) if head else ()
        return self.write(parents, branch, changes)

    @rule(base=commits, branch=BRANCHES)
    def commit_too_late(self, base, branch):
        if self.branches.get(branch) != base and base in self.held:
            with pytest.raises(HeadMoved):
                self.journal.commit(Draft(parents=(base,), time=0.0), branch=branch, expect=base)

    @rule(branch=BRANCHES, to=st.none() | commits)
    def move(self, branch, to):
        head = self.branches.get(branch)
        if to is None:
            self.journal.move(branch, None, expect=head)
            self.branches.pop(branch, None)
        elif to in self.held:
            self.journal.move(branch, to, expect=head)
            self.branches[branch] = to

    @rule(name=st.sampled_from(["v1", "v2"]), commit=commits)
    def tag(self, name, commit):
        if commit in self.held and name not in self.tags:
            self.journal.tag(name, commit)
            self.tags[name] = commit

    @rule()
    def collect(self):
        self.journal.gc()
        kept = self.reachable()
        for commit in self.held.keys() - kept:
            with pytest.raises(StateError):
                self.journal.record(commit)
            del self.held[commit]

    @rule()
    def open_again(self):
        self.store.close()
        self.store = self.open()
        self.journal = self.store.journal()

    @rule(commit=commits, other=commits, prefix=st.sampled_from(["", "v", "v/", "w"]))
    def read(self, commit, other, prefix):
        if commit not in self.held or other not in self.held:
            return
        held, before = self.held[commit], self.held[other]
        wanted = {key: payload for key, payload in held.items() if key.startswith(prefix)}
        assert self.journal.read_all(commit, prefix) == wanted
        assert self.journal.keys(commit, prefix) == sorted(wanted)
        for key in ("a", "v/a", "absent"):
            assert self.journal.read(commit, key) == held.get(key)
        if "chunk" in held:
            assert self.journal.address(self.journal.chunk(held["chunk"][1:])) == held["chunk"][1:]
        assert self.journal.diff(other, commit) == {
            key: (before.get(key), held.get(key))
            for key in before.keys() | held.keys()
            if before.get(key) != held.get(key)
        }
        first = self.held[self.parents[commit][0]] if self.parents[commit] else {}
        assert self.journal.changes(commit) == {
            key: held.get(key) for key in first.keys() | held.keys() if first.get(key) != held.get(key)
        }
        line = [commit]
        while self.parents[line[-1]]:
            line.append(self.parents[line[-1]][0])
        assert [record.hash for record in self.journal.history(commit)] == line

    @invariant()
    def names_are_right(self):
        if hasattr(self, "journal"):
            assert self.journal.branches() == self.branches
            assert self.journal.tags() == self.tags

    def teardown(self):
        if hasattr(self, "journal"):
            assert self.journal.fsck() == []
            self.store.close()


class OnDisk(Model):
    def __init__(self):
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()

    def open(self):
        return Disk(Path(self.directory.name) / "store", durable=False)

    def teardown(self):
        super().teardown()
        self.directory.cleanup()


class InMemory(Model):
    def __init__(self):
        super().__init__()
        self.memory = Memory()

    def open(self):
        return self.memory


def chosen(examples):
    return settings(
        max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )


TestOnDisk = OnDisk.TestCase
TestOnDisk.settings = chosen(THOROUGH or 8)
TestInMemory = InMemory.TestCase
TestInMemory.settings = chosen(THOROUGH or 20)
