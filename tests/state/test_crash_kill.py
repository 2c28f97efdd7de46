"""A process that writes is killed; what it was told is kept, and the next one goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from agex.state.commits.journal import Draft
from agex.state.disk.disk import Disk

KILLS = int(os.environ.get("AGEX_CRASH", "5"))

# Says each commit that it was told of. Every few commits it collects garbage, in which it may be killed too.
WRITER = """
import sys
from agex.state.disk.disk import Disk
from agex.state.commits.journal import Draft
from agex.state.kv.kv_journal import KVJournal
store = Disk(sys.argv[1])
journal = KVJournal(store) if sys.argv[2] == "kv" else store.journal()
head = journal.branches().get("main")
number = int(journal.read(head, "number")) + 1 if head else 0
while True:
    chunk = b"%d," % number * (30_000 if number % 3 == 0 else 40)
    address = journal.address(chunk)
    changes = {"number": b"%d" % number, f"k{number % 50}": b"v" * 60, "chunk": b"=" + address}
    parents, events, chunks = (head,) if head else (), [b"e" * 300], {address: chunk}
    draft = Draft(parents=parents, changes=changes, chunks=chunks, events=events, time=float(number))
    if number % 7 == 3:
        side = journal.commit(draft, branch="side", expect=journal.branches().get("side"))
        journal.move("side", None, expect=side)
    head = journal.commit(draft, branch="main", expect=head)
    print(head, flush=True)
    if number % 10 == 9:
        journal.gc()
    number += 1
"""


@pytest.mark.parametrize("kind", ["rows", "kv"])
def test_a_killed_writer_leaves_all_that_it_was_told(tmp_path, kind):
    luck = random.Random(11)
    told: list[str] = []
    for _ in range(KILLS):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path / "store", kind], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        told.append(writer.stdout.readline().decode().strip())  # it has begun
        time.sleep(luck.random() * 0.3)
        writer.send_signal(signal.SIGKILL)
        told += writer.communicate()[0].decode().split()
        assert writer.returncode == -signal.SIGKILL
        survives(tmp_path / "store", kind, told)
    assert len(told) > KILLS


def survives(path, kind, told):
    from agex.state.kv.kv_journal import KVJournal

    store = Disk(path)
    try:
        journal = KVJournal(store) if kind == "kv" else store.journal()
        assert journal.fsck() == []
        head = journal.branches()["main"]
        history = [record.hash for record in journal.history(head)]
        assert history[::-1][: len(told)] == told or history[::-1] == told
        assert len(history) - len(told) in {0, 1}  # one may have been kept and not been told
        for commit in {told[-1], told[0], head}:
            number = int(journal.read(commit, "number"))
            assert number == journal.record(commit).time
            chunk = journal.chunk(journal.read(commit, "chunk")[1:])
            assert chunk.startswith(b"%d," % number)
            assert journal.events(commit) == [b"e" * 300]
        if len(history) > len(told):
            told.append(head)
    finally:
        store.close()


def test_a_collector_that_is_killed_leaves_a_whole_store(tmp_path):
    program = """
import sys
from agex.state.disk.disk import Disk
print("begun", flush=True)
Disk(sys.argv[1]).journal().gc()
"""
    luck = random.Random(3)
    for turn in range(max(2, KILLS // 2)):
        path = tmp_path / f"store{turn}"
        store = Disk(path, durable=False)
        journal = store.journal()
        kept: dict[str, bytes] = {}
        for number in range(30):
            chunk = b"%d." % number * 15_000
            address = journal.address(chunk)
            draft = Draft(changes={"c": b"=" + address}, chunks={address: chunk}, time=float(number))
            head = journal.commit(draft, branch=f"b{number}", expect=None)
            if number % 2:
                journal.move(f"b{number}", None, expect=head)
            else:
                kept[head] = chunk
        store.close()
        collector = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
        assert collector.stdout is not None
        collector.stdout.readline()
        time.sleep(luck.random() * 0.1)
        collector.kill()
        collector.communicate()
        store = Disk(path)
        journal = store.journal()
        assert journal.fsck() == []
        journal.gc()
        assert journal.fsck() == []
        for head, chunk in kept.items():
            assert journal.chunk(journal.read(head, "c")[1:]) == chunk
        assert sum(file.stat().st_size for file in path.glob("pack*")) < 1.4 * sum(map(len, kept.values()))
        store.close()
