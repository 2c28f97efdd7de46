"""A byte that is not what it was is found, or it makes no difference."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from agex.errors import StateError
from agex.state.disk import Disk
from agex.state.journal import Draft
from agex.state.memory import Memory

FLIPS = os.environ.get("AGEX_FLIPS", "120")  # how many bytes of a store are altered; "all" takes minutes
SMALL, LARGE = b"s" * 300, bytes(range(250)) * 140


def fill(journal):
    """Write a little of everything."""
    held = {journal.address(chunk): chunk for chunk in (SMALL, LARGE)}
    changes = {f"v/{n}": b"value %d" % n for n in range(30)} | {"v/chunks": b"=" + b"+".join(held)}
    head = first = journal.commit(
        Draft(changes=changes, chunks=held, events=[b"event one", b"two" * 50], time=1.0, message="first"),
        branch="main",
        expect=None,
    )
    for n in range(8):
        draft = Draft(
            parents=(head,),
            changes={f"v/{n}": b"new %d" % n, f"v/{n + 9}": None},
            events=[b"e"],
            time=2.0 + n,
        )
        head = journal.commit(draft, branch="main", expect=head)
    side = Draft(parents=(first,), changes={"v/1": b"side"}, time=20.0)
    side = journal.commit(side, branch="side", expect=None)
    journal.tag("v1", first)
    merge = Draft(parents=(head, side), changes={"v/1": b"side"}, time=30.0, message="merge")
    journal.commit(merge, branch="main", expect=head)
    return sorted(
        {record.hash for name in journal.branches() for record in journal.history(journal.resolve(name))}
    )


def questions(hashes, addresses):
    """Return what is asked of a store; each question has one right answer."""
    for hash_ in hashes:
        for n in range(0, 30, 4):
            yield lambda j, h=hash_, n=n: j.read(h, f"v/{n}")
        yield lambda j, h=hash_: j.read(h, "absent")
        yield lambda j, h=hash_: j.read_all(h)
        yield lambda j, h=hash_: j.keys(h)
        yield lambda j, h=hash_: j.changes(h)
        yield lambda j, h=hash_: j.events(h)
        yield lambda j, h=hash_: j.record(h)
        yield lambda j, h=hash_: j.diff(hashes[0], h)
    for address in addresses:
        yield lambda j, a=address: j.chunk(a)
    yield lambda j: j.branches()
    yield lambda j: j.tags()
    for name in ("main", "side", "v1"):
        yield lambda j, n=name: j.resolve(n)
        yield lambda j, n=name: [record.hash for record in j.history(j.resolve(n))]


class Answers:
    def __init__(self, journal):
        self.asked = list(questions(fill(journal), [journal.address(SMALL), journal.address(LARGE)]))
        self.right = [ask(journal) for ask in self.asked]

    def judge(self, open_journal):
        """Return whether anything was refused; fail on an answer that is wrong."""
        try:
            journal = open_journal()
        except StateError:
            return True
        refused = False
        for ask, right in zip(self.asked, self.right, strict=True):
            try:
                answer = ask(journal)
            except StateError:
                refused = True
            else:
                assert answer == right
        return refused


def positions(size, count):
    return (
        range(size) if FLIPS == "all" else sorted(random.Random(size).sample(range(size), min(size, count)))
    )


@pytest.fixture
def original(tmp_path):
    store = Disk(tmp_path / "store", durable=True)
    return store, tmp_path / "store"


def flip_each(original, copy, answers, name, count):
    """Alter bytes of one file, one at a time, in copies of a store; return how many were found out."""
    content = (original / name).read_bytes()
    found = 0
    for position in positions(len(content), count):
        shutil.copytree(original, copy)
        altered = bytearray(content)
        altered[position] ^= random.Random(position).choice([1, 2, 4, 8, 16, 32, 64, 128, 255])
        (copy / name).write_bytes(altered)
        opened = []

        def open_journal(opened=opened):
            opened.append(Disk(copy, durable=False))
            return opened[0].journal()

        try:
            found += answers.judge(open_journal)
        except Exception as error:
            error.add_note(f"byte {position} of {name}: {content[position]:#x} -> {altered[position]:#x}")
            raise
        finally:
            for store in opened:
                store.close()
            shutil.rmtree(copy)
    return found


@pytest.mark.parametrize(("name", "share"), [("state.db", 0.6), ("pack", 0.2), ("last", 0.02)])
def test_an_altered_byte_of_a_closed_store_is_found_or_harmless(original, tmp_path, name, share):
    store, path = original
    answers = Answers(store.journal())
    store.close()
    count = 0 if FLIPS == "all" else int(int(FLIPS) * share)
    found = flip_each(path, tmp_path / "copy", answers, name, count)
    assert name == "last" or found > 0


def test_an_altered_byte_of_the_log_of_a_store_that_was_not_closed_is_found_or_harmless(original, tmp_path):
    store, path = original
    answers = Answers(store.journal())
    shutil.copytree(path, tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    store.close()
    count = 0 if FLIPS == "all" else int(int(FLIPS) * 0.2)
    assert flip_each(tmp_path / "killed", tmp_path / "copy", answers, "state.db-wal", count) > 0


class Holding(Memory):
    """A store whose values can be altered behind its back."""

    def altered(self, key, value):
        other = Holding()
        other._values = {**self._values, key: value}
        if value is None:
            del other._values[key]
        return other


@pytest.mark.parametrize("change", ["altered", "cut short", "gone", "another's"])
def test_what_another_store_holds_is_found_altered_or_it_is_harmless(change):
    store = Holding()
    answers = Answers(store.journal())
    contents = dict(store.items("agex/o/"))
    values = list(contents.values())
    found = 0
    for number, (key, value) in enumerate(contents.items()):
        position = random.Random(number).randrange(len(value))
        other = {
            "altered": value[:position] + bytes((value[position] ^ 1,)) + value[position + 1 :],
            "cut short": value[:position],
            "gone": None,
            "another's": values[number - 1],
        }[change]
        found += answers.judge(store.altered(key, other).journal)
    assert found > len(contents) * 0.5  # some are of commits that no question is about
    for key, value in store.items("agex/branch/"):
        assert answers.judge(store.altered(key, value[:-1]).journal)
        assert answers.judge(store.altered(key, value[:5] + b"?" + value[6:]).journal)
