"""The power goes: what was not synced may be there, or not, or in part; what was acknowledged must be.

A run is traced, and the files are put together as a disk could have them at each point of it.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agex.state.commits.journal import Draft
from agex.state.disk.disk import Disk

THOROUGH = "AGEX_CRASH" in os.environ  # at every point of the run, not at each ninth
CALLS = "openat,pwrite64,write,lseek,fsync,fdatasync,ftruncate,unlink,unlinkat,rename,mkdir,fallocate"
LINE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)(?:<.*>)?")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')

PROGRAM = """
import sys
from agex.state.disk.disk import Disk
from agex.state.commits.journal import Draft

def commit(journal, head, number, size, branch="main"):
    chunk = b"%d " % number * (size // 2)
    address = journal.address(chunk)
    changes = {"number": b"%d" % number, f"k{number % 3}": b"x" * 50, "chunk": b"=" + address}
    parents = (head,) if head else ()
    draft = Draft(parents=parents, changes=changes, chunks={address: chunk}, time=float(number))
    head = journal.commit(draft, branch=branch, expect=head)
    sys.stdout.write(f"{branch} {number} {head}\\n")
    sys.stdout.flush()
    return head

durable = sys.argv[2] == "durable"
store = Disk(sys.argv[1], durable=durable)
head = None
for number in range(4):
    head = commit(store.journal(), head, number, 40_000 if number % 2 else 100)
store.close()
store = Disk(sys.argv[1], durable=durable)
journal = store.journal()
for number in range(4, 7):
    head = commit(journal, head, number, 40_000)
back = list(journal.history(head))[2].hash
journal.move("main", back, expect=head)
sys.stdout.write(f"main 4 {back}\\n")
sys.stdout.flush()
head = back
assert journal.gc().chunks == 2  # so that the pack is written anew
for number in range(7, 9):
    head = commit(journal, head, number, 40_000)
store.close()
"""


@dataclass
class File:
    """A file as the disk surely has it, and what may have reached it since."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes (at, bytes), and truncations (to, None)."""

    def content(self, kept: list[tuple[int, bytes | None]]) -> bytes:
        content = bytearray(self.synced)
        for at, data in kept:
            if data is None:
                del content[at:]
                content.extend(bytes(at - len(content)))
            else:
                content.extend(bytes(max(0, at - len(content))))
                content[at : at + len(data)] = data
        return bytes(content)


class Machine:
    """A file system with a memory of what was synced."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, File] = {}
        self.names: set[str] = set()
        """Those that are surely in the directory."""
        self.removed: dict[str, File] = {}
        """Those whose names may still be there."""
        self.positions: dict[int, int] = {}
        self.acknowledged: list[str] = []

    def step(self, call: str, arguments: str, result: int) -> None:
        if result < 0:
            return
        number = re.match(r"(\d+)<((?:\\x[0-9a-f]{2})*)>", arguments)
        if number is None:
            getattr(self, f"on_{call}")(self.relative(decoded(arguments)), arguments, result)
            return
        path = unescaped(number.group(2)).decode()
        descriptor, name = int(number.group(1)), self.relative(path)
        if call == "write" and descriptor == 1:
            self.acknowledged.append(decoded(arguments).strip())
        elif call in {"fsync", "fdatasync"} and path == self.root:
            self.names = set(self.files)
            self.removed = {}
        elif call == "lseek":
            self.positions[descriptor] = result
        elif name:
            self.on_file(call, self.files[name], descriptor, arguments, result)

    def on_file(self, call: str, file: File, descriptor: int, arguments: str, result: int) -> None:
        last = arguments.rpartition(",")[2]
        if call == "write":
            at = self.positions[descriptor]
            file.pending.append((at, quoted(arguments)[:result]))
            self.positions[descriptor] = at + result
        elif call == "pwrite64":
            file.pending.append((int(last), quoted(arguments)[:result]))
        elif call == "ftruncate":
            file.pending.append((int(last), None))
        elif call in {"fsync", "fdatasync"}:
            file.synced = bytearray(file.content(file.pending))
            file.pending = []
        else:
            raise AssertionError(f"the model does not know {call}({arguments[:80]})")

    def on_openat(self, name: str | None, arguments: str, result: int) -> None:
        self.positions[result] = 0
        if name and "O_CREAT" in arguments:
            self.files.setdefault(name, File())
        if name and "O_TRUNC" in arguments:
            self.files[name].pending.append((0, None))

    def on_unlink(self, name: str | None, _arguments: str, _result: int) -> None:
        if name:
            self.removed[name] = self.files.pop(name)
            self.names = self.names - {name}

    on_unlinkat = on_unlink

    def on_mkdir(self, _name: str | None, _arguments: str, _result: int) -> None:
        pass

    def relative(self, path: str) -> str | None:
        inside = path.startswith(self.root + "/") and not path.endswith("-shm")
        return path.removeprefix(self.root + "/") if inside else None

    def mark(self) -> object:
        """Return something that is another after every step that a loss of power could show."""
        pending = {name: len(file.pending) for name, file in self.files.items()}
        return len(self.acknowledged), pending, self.names, set(self.removed)

    def lose_power(self, where: Path, luck: random.Random, share: float) -> None:
        """Put the files together as the disk may have them: each unsynced write is kept by that share."""
        where.mkdir()
        for name, file in {**self.removed, **self.files}.items():
            lasting = name in self.names if name in self.files else luck.random() >= share
            if not lasting and (name not in self.files or luck.random() >= share):
                continue
            kept = [write for write in file.pending if luck.random() < share]
            if 0 < share < 1 and kept and kept[-1][1] is not None:  # the last one only in part
                at, data = kept[-1]
                kept[-1] = at, data[: luck.randrange(len(data) + 1)]
            (where / name).write_bytes(file.content(kept))


def decoded(arguments: str) -> str:
    return quoted(arguments).decode()


def quoted(arguments: str) -> bytes:
    found = STRING.search(arguments)
    assert found is not None, arguments[:200]
    assert not found.group(2), "the trace is cut short"
    return unescaped(found.group(1))


def unescaped(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def traced(home: Path, durable: str) -> tuple[Path, list[tuple[str, str, int]]]:
    """Return the directory of a run, and its calls."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace: apt-get install strace")
    log, root = home / "trace", home / "store"
    command = [strace, "-y", "-xx", "-s", "1000000", "-o", str(log), "-e", f"trace={CALLS}"]
    program = [sys.executable, "-c", PROGRAM, str(root), durable]
    done = subprocess.run([*command, *program], capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr.lower():
        pytest.skip(f"needs ptrace: {done.stderr.strip()[:80]}")
    assert done.returncode == 0, done.stderr
    found = [LINE.match(line) for line in log.read_text().splitlines()]
    return root, [(match[1], match[2], int(match[3])) for match in found if match]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("traced"), "durable")


def survives(where: Path, acknowledged: list[str], next_one: str | None) -> None:
    """Open what is left, and find all that was acknowledged."""
    store = Disk(where, durable=False)
    try:
        journal = store.journal()
        assert journal.fsck() == []
        head = journal.branches().get("main")
        last = acknowledged[-1].split()[2] if acknowledged else None
        if head != last:
            # The one after may have made it, though nobody was told.
            assert next_one is not None
            assert head == next_one.split()[2]
        if head is None:
            return
        for record in journal.history(head):
            number = int(journal.read(record.hash, "number"))
            assert number == record.time
            chunk = journal.read(record.hash, "chunk")[1:]
            assert journal.chunk(chunk).startswith(b"%d " % number)
        following = Draft(parents=(head,), changes={"after": b"1"}, time=99.0)
        assert journal.read(journal.commit(following, branch="main", expect=head), "after") == b"1"
    finally:
        store.close()


def cut(trace, where: Path, share: float, every: int) -> int:
    """Cut a run at its points, and look at what is left each time; return how many there were."""
    root, calls = trace
    everything, machine = Machine(str(root)), Machine(str(root))
    for call in calls:
        everything.step(*call)
    assert len(everything.acknowledged) == 10
    luck = random.Random(5)
    cuts = 0
    for call in calls:
        before = machine.mark()
        machine.step(*call)
        if machine.mark() == before:
            continue
        cuts += 1
        if cuts % every:
            continue
        machine.lose_power(where, luck, share)
        told = len(machine.acknowledged)
        following = everything.acknowledged[told] if told < len(everything.acknowledged) else None
        try:
            survives(where, machine.acknowledged, following)
        except BaseException as error:
            error.add_note(f"cut {cuts}, after {call[0]}({call[1][:120]}), {told} acknowledged")
            raise
        shutil.rmtree(where)
    return cuts


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["nothing unsynced", "half of it in part", "all"])
def test_every_acknowledged_commit_survives_a_loss_of_power(trace, tmp_path, share):
    assert cut(trace, tmp_path / "left", share, every=1 if THOROUGH else 9) > 50


def test_the_model_sees_what_a_store_loses_that_does_not_wait_for_the_disk(tmp_path):
    with pytest.raises(AssertionError):
        cut(traced(tmp_path, "not durable"), tmp_path / "left", 0.0, every=1)
