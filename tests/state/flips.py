"""Bytes of small stores, altered one at a time: each is found out, or makes no difference.

The suite tries a sample of them (test_tamper.py); ``make flips``, or ``python flips.py``, tries them all.

A store is small and holds every kind of record: values of one variable and of two that share, chunks in the
rows and in the pack, files, events, the cache, a commit of two parents, a deleted key, branches, a tag.
After each alteration it is opened, asked every question there is, given one more commit, and asked again. An
answer that is not the right one is a failure, and so is any error that does not blame the store.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agex.agent.call.events import SystemNoteEvent
from agex.errors import StateError
from agex.state import Disk, Memory, Versioned
from agex.state.commits.journal import Draft, Journal
from agex.state.disk import row_journal
from agex.state.kv.store import KVStore

IN_ROWS, IN_PACK = bytes(range(250)) * 17, bytes(range(250)) * 18
"""The contents of two files: from 4 KB on a file is a chunk, and here the second is in the pack."""

SMALL_PAGES, USUAL_PAGES = 512, 4096
"""Bytes of SQLite's pages: the smallest there are, so that there are few bytes; and those that users get."""

MASKS = (1, 2, 4, 8, 16, 32, 64, 128, 255)
"""How a byte is altered: by one bit, or by all."""

BATCH = 500  # bytes that a process alters before it asks for more
PATIENCE = 300.0  # seconds for a batch; one that takes longer hangs, and ends its process

Verdict: TypeAlias = Literal["found", "found later", "harmless"]
Answers: TypeAlias = list[Any]


def fill(store: KVStore) -> None:
    """Write a little of everything."""
    state = Versioned(store)
    note = SystemNoteEvent(agent="a", task="t", run_id="r", message="noted")
    state.update(x=[1, {"a": 2.5}], gone="away", text="t" * 40)
    state["y"] = [state["x"]]
    state.cache["k"] = "v"
    state.files.update({"a.txt": b"a file", "b/rows": IN_ROWS, "b/pack": IN_PACK})
    state.record(note)
    first = state.commit("first")
    state.tag("v1")
    state["x"][0] = 3
    del state["gone"]
    state.files["a.txt"] = b"changed"
    state.record(note)
    state.commit("second")
    side = state.fork("side", at=first)
    side["text"] = "from the side"
    side.commit("aside")
    state.merge(side)


def questions(journal: Journal) -> list[Callable[[Journal], Any]]:
    """Give what is asked of a store; each question has one right answer."""
    heads = journal.branches()
    hashes = sorted({record.hash for name in heads for record in journal.history(journal.resolve(name))})
    addresses = [journal.address(chunk) for chunk in (IN_ROWS, IN_PACK)]
    return [*_general(heads), *_of_commits(hashes), *(lambda j, a=a: j.chunk(a) for a in addresses)]


def _general(heads: dict[str, str]) -> Iterator[Callable[[Journal], Any]]:
    yield lambda j: j.branches()
    yield lambda j: j.tags()
    for name in (*heads, "v1"):
        yield lambda j, n=name: j.resolve(n)
        yield lambda j, n=name: [record.hash for record in j.history(j.resolve(n))]


def _of_commits(hashes: list[str]) -> Iterator[Callable[[Journal], Any]]:
    for hash_ in hashes:
        for key in ("v/x", "v/y", "v/gone", "v/absent", "f/a.txt"):
            yield lambda j, h=hash_, k=key: j.read(h, k)
        yield lambda j, h=hash_: j.read_all(h)
        yield lambda j, h=hash_: j.keys(h, "v/")
        yield lambda j, h=hash_: j.changes(h)
        yield lambda j, h=hash_: j.events(h)
        yield lambda j, h=hash_: j.record(h)
        yield lambda j, h=hash_: j.diff(hashes[0], h)


def go_on(journal: Journal) -> str:
    """Commit once more, upon what may be damaged."""
    head = journal.resolve("main")
    changes = {"v/x": b"=next", "v/new": b"=new", "v/text": None}
    return journal.commit(
        Draft(parents=(head,), changes=changes, events=[b"{}"], time=99.0), branch="main", expect=head
    )


class Trial:
    """One undamaged store, its right answers, and what comes of altering it."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        """The bytes that can be altered, by the name of what holds them."""

    def at(self, name: str, position: int) -> tuple[str, int]:
        """Give the part that a byte is in, and where in it: of a file, or of all parts one after another."""
        if name in self.contents:
            return name, position
        for part, content in sorted(self.contents.items()):
            if position < len(content):
                return part, position
            position -= len(content)
        raise IndexError(position)

    def prepare(self) -> None:
        """Note the right answers, before and after one more commit."""
        store = self.open()
        self._ask = questions(store.journal())
        self._before = [ask(store.journal()) for ask in self._ask]
        self._commit = go_on(store.journal())
        self._ask += _of_commits([self._commit])
        self._after = [ask(store.journal()) for ask in self._ask]
        store.close()
        self.restore()

    def open(self) -> KVStore:
        raise NotImplementedError

    def put(self, name: str, content: bytes | None) -> None:
        """Give a part of the store another content; None takes it away."""
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def flip(self, name: str, position: int, mask: int) -> Verdict:
        """Alter one byte of the store and say what came of it.

        Raises:
            AssertionError: an answer was wrong, or an error said nothing of the store.
        """
        content = bytearray(self.contents[name])
        content[position] ^= mask
        try:
            return self.judge(name, bytes(content))
        except Exception as error:
            there = f"byte {position} of {name}: {self.contents[name][position]:#x} ^ {mask:#x}"
            raise AssertionError(f"{there}: {type(error).__name__}: {error}") from error

    def judge(self, name: str, content: bytes | None) -> Verdict:
        """Ask the store everything, with one part of it altered."""
        self.put(name, content)
        try:
            if self._is_refused(self._before):
                verdict: Verdict = "found"
                self._goes_on()  # whoever writes on all the same must not make the damage unseen
            else:
                verdict = "found later" if self._goes_on() else "harmless"
        finally:
            self.restore()
        return verdict

    def _is_refused(self, right: Answers) -> bool:
        """Tell whether any question is refused; an answer must be right. The last ask of the new commit."""
        try:
            store = self.open()
        except StateError:
            return True
        refused = False
        with closing(store):
            try:
                journal = store.journal()
            except StateError:
                return True
            for number, (ask, wanted) in enumerate(zip(self._ask, right, strict=False)):
                try:
                    answer = ask(journal)
                except StateError:
                    refused = True
                else:
                    when = "before" if right is self._before else "after"
                    assert answer == wanted, (
                        f"question {number} {when} a commit: {answer!r} is not {wanted!r}"
                    )
        return refused

    def _goes_on(self) -> bool:
        """Commit once more and ask again; tell whether any of that is refused."""
        try:
            with closing(self.open()) as store:
                commit = go_on(store.journal())
        except StateError:
            self._is_refused(self._before)
            return True
        assert commit == self._commit, f"it became commit {commit}, not {self._commit}"
        return self._is_refused(self._after)


class DiskTrial(Trial):
    """A directory, copied to a place of its own."""

    def __init__(self, original: Path, place: Path) -> None:
        super().__init__()
        self._place = place
        place.mkdir()
        self.contents = {path.name: path.read_bytes() for path in original.iterdir()}
        self.restore()
        self.prepare()

    def open(self) -> Disk:
        return Disk(self._place, durable=False)

    def put(self, name: str, content: bytes | None) -> None:
        if content is None:
            (self._place / name).unlink()
        else:
            (self._place / name).write_bytes(content)

    def restore(self) -> None:
        for path in self._place.iterdir():
            if path.name not in self.contents:
                path.unlink()
        for name, content in self.contents.items():
            path = self._place / name
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)


class _Holding(Memory):
    """A store in memory that can be given what it did not write."""

    def become(self, values: dict[str, bytes]) -> None:
        self._values = dict(values)


class MemoryTrial(Trial):
    """Any store without a journal of its own: its values are altered."""

    def __init__(self) -> None:
        super().__init__()
        self._store = _Holding()
        fill(self._store)
        self.contents = dict(self._store.items())
        self.prepare()

    def open(self) -> KVStore:
        return self._store

    def put(self, name: str, content: bytes | None) -> None:
        altered = {**self.contents, name: content}
        self._store.become({key: value for key, value in altered.items() if value is not None})

    def restore(self) -> None:
        self._store.become(self.contents)


def make_stores(place: Path, page_size: int = SMALL_PAGES) -> tuple[Path, Path]:
    """Make a store that was closed, and one whose process was killed: its log is not in the file yet."""
    closed, killed = place / "closed", place / "killed"
    closed.mkdir(parents=True)
    with closing(sqlite3.connect(closed / "state.db")) as db:
        db.execute(f"PRAGMA page_size={page_size}")
        db.execute("VACUUM")  # it is the size of a file that is there
    store = Disk(closed)
    usual, row_journal._LARGE = row_journal._LARGE, len(IN_PACK)  # 32 KB would be most of all bytes
    try:
        fill(store)
    finally:
        row_journal._LARGE = usual
    shutil.copytree(closed, killed, ignore=shutil.ignore_patterns("*-shm"))
    store.close()
    return closed, killed


# -- all of them ---------------------------------------------------------------------------------

CASES = {
    "closed": ("state.db", "pack", "last"),
    "killed": ("state.db", "state.db-wal"),
}
"""The files of each store that are altered; those of the other are the same."""

_trials: dict[str, Trial] = {}


def _trial(case: str, place: Path) -> Trial:
    """Give the trial of this process."""
    if case not in _trials:
        own = place / f"{case}-{os.getpid()}"
        _trials[case] = MemoryTrial() if case == "memory" else DiskTrial(place / case, own)
    return _trials[case]


def _batch(case: str, place: Path, name: str, positions: range, masks: int) -> tuple[Counter[str], list[str]]:
    """Alter some bytes, each with so many masks; give the verdicts and what was wrong."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    trial = _trial(case, place)
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    for position in positions:
        part, place_in_it = trial.at(name, position)
        for mask in random.Random(position).sample(MASKS, masks):
            try:
                verdicts[trial.flip(part, place_in_it, mask)] += 1
            except AssertionError as error:
                verdicts["wrong"] += 1
                wrong.append(f"{case}: {error}")
    faulthandler.cancel_dump_traceback_later()
    return verdicts, wrong


def _work(place: Path) -> Iterator[tuple[str, str, range]]:
    for case, names in CASES.items():
        for name in names:
            size = (place / case / name).stat().st_size
            for start in range(0, size, BATCH):
                yield case, name, range(start, min(start + BATCH, size))
    size = sum(map(len, MemoryTrial().contents.values()))
    yield from (("memory", "values", range(n, min(n + BATCH, size))) for n in range(0, size, BATCH))


def main() -> int:
    """Try every byte, print what came of it, and give the number of wrong answers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--masks", type=int, default=1, choices=range(1, len(MASKS) + 1), help="of each byte")
    options = parser.parse_args()
    memory = Path("/dev/shm")  # a disk only makes it slower
    found: dict[tuple[str, str], Counter[str]] = {}
    began = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as held,
        ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool,
    ):
        place = Path(held)
        make_stores(place)
        work = [
            (case, name, pool.submit(_batch, case, place, name, part, options.masks))
            for case, name, part in _work(place)
        ]
        for case, name, batch in work:
            verdicts, wrong = batch.result()
            found.setdefault((case, name), Counter()).update(verdicts)
            print(f"{case} {name}: {verdicts.total()} more", *wrong, sep="\n", file=sys.stderr, flush=True)
    print(f"{'store':<8}{'part':<14}{'altered':>9}{'found':>9}{'later':>7}{'harmless':>10}{'wrong':>7}")
    for (case, name), verdicts in [*found.items(), (("all", ""), sum(found.values(), Counter()))]:
        counts = [verdicts[each] for each in ("found", "found later", "harmless", "wrong")]
        row = "".join(f"{n:>{width}}" for n, width in zip(counts, (9, 7, 10, 7), strict=True))
        print(f"{case:<8}{name:<14}{verdicts.total():>9}{row}")
    print(f"{time.perf_counter() - began:.0f} s")
    return sum(verdicts["wrong"] for verdicts in found.values())


if __name__ == "__main__":
    sys.exit(bool(main()))
