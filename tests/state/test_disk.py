"""What a directory does beyond what every store does."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from agex.errors import StateCorrupt, StateError, StateFull
from agex.state.commits.journal import Draft, HeadMoved
from agex.state.disk.disk import Disk

COUNT = int(os.environ.get("AGEX_COUNT", "100"))  # increments of each of two processes
COMMITS = int(os.environ.get("AGEX_COMMITS", "2000"))  # of the history whose size is measured
CHUNK = bytes(range(256)) * 200


def commit(journal, *, branch="main", chunk=None, time=1.0, events=(), **changes):
    head = journal.branches().get(branch)
    payloads = {key: value.encode() for key, value in changes.items()}
    chunks = {}
    if chunk is not None:
        address = journal.address(chunk)
        chunks, payloads["chunk"] = {address: chunk}, b"=" + address
    draft = Draft(
        parents=(head,) if head else (), changes=payloads, chunks=chunks, time=time, events=list(events)
    )
    return journal.commit(draft, branch=branch, expect=head)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def disk(path):
    store = Disk(path, durable=False)
    yield store
    store.close()


def files(path):
    return {entry.name for entry in path.iterdir()}


def test_a_store_is_continued_where_it_was_left(path):
    store = Disk(path)
    first = commit(store.journal(), a="1", chunk=CHUNK)
    store.set("key", b"value")
    store.close()
    assert files(path) == {"state.db", "pack", "last"}
    again = Disk(path)
    journal = again.journal()
    assert journal.read(journal.branches()["main"], "a") == b"1"
    assert journal.chunk(journal.address(CHUNK)) == CHUNK
    assert again.get("key") == b"value"
    second = commit(journal, a="2")
    assert [record.hash for record in journal.history(second)] == [second, first]
    again.close()


def test_a_store_that_is_forgotten_lets_go_of_its_files(path):
    store = Disk(path)
    commit(store.journal(), a="1", chunk=CHUNK)
    assert "state.db-wal" in files(path)
    del store
    gc.collect()
    assert files(path) == {"state.db", "pack", "last"}


def test_a_store_can_be_used_again_after_close(disk):
    journal = disk.journal()
    commit(journal, a="1", chunk=CHUNK)
    disk.close()
    commit(journal, a="2")
    assert journal.chunk(journal.address(CHUNK)) == CHUNK


def test_the_path_is_made_with_its_parents_and_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Disk("deep/down/store", durable=False)
    monkeypatch.chdir("/")
    commit(store.journal(), a="1")
    store.close()
    assert (tmp_path / "deep/down/store/state.db").is_file()


# --- what is refused ------------------------------------------------------------------------------


def test_a_path_that_is_a_file_is_refused(path):
    path.write_text("mine")
    with pytest.raises(StateError, match="is a file; a store is a directory"):
        Disk(path)
    with pytest.raises(StateError, match="cannot be used"):
        Disk(path / "below")
    assert path.read_text() == "mine"


def test_a_directory_of_other_things_is_refused_and_left_alone(path):
    path.mkdir()
    (path / "thesis.txt").write_text("mine")
    with pytest.raises(StateError, match=r"other things \(thesis.txt\)"):
        Disk(path)
    assert files(path) == {"thesis.txt"}


def test_a_database_of_another_program_is_refused(path):
    path.mkdir()
    other = sqlite3.connect(path / "state.db")
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    with pytest.raises(StateError, match="another program"):
        Disk(path)
    (path / "state.db").write_bytes(b"no database at all" * 500)
    with pytest.raises(StateError, match="not a database"):
        Disk(path)


def test_a_store_of_a_newer_format_is_refused(path):
    Disk(path).close()
    database = sqlite3.connect(path / "state.db")
    database.execute("PRAGMA user_version=2")
    database.close()
    with pytest.raises(StateError, match=r"format 2 by a newer agex.*pip install --upgrade"):
        Disk(path)


def test_a_store_of_another_digest_is_never_read_with_this_one(path, monkeypatch):
    from agex.state.commits.digests import open_digest
    from agex.state.disk import directory

    monkeypatch.setattr(directory, "new_digest", lambda: open_digest("blake2b"))
    store = Disk(path, durable=False)
    first = commit(store.journal(), a="1", chunk=CHUNK)
    store.close()
    monkeypatch.undo()
    again = Disk(path, durable=False)
    assert again.journal().read(first, "a") == b"1"
    assert again.journal().chunk(again.journal().address(CHUNK)) == CHUNK
    assert again.journal().fsck() == []
    again.close()


def test_a_digest_that_is_not_installed_is_named(path, monkeypatch):
    Disk(path).close()
    monkeypatch.setitem(sys.modules, "blake3", None)
    with pytest.raises(StateError, match="pip install blake3"):
        Disk(path)
    other = Disk(path.with_name("other"), durable=False)  # a new one takes what there is
    commit(other.journal(), a="1")
    assert other.journal().fsck() == []
    other.close()


READING = """
import os, sys
import agex.state.disk.directory, blake3
from agex.state.disk.disk import Disk
from agex.errors import StateError
if os.geteuid() == 0:  # who may write everywhere
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Disk(sys.argv[1])
except StateError as error:
    print(error)
"""


def test_a_store_in_a_directory_that_may_not_be_written_is_not_begun():
    # Others may look into it, as they may not into pytest's own directories.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o555)
        command = [sys.executable, "-c", READING, Path(name, "new")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "give a directory that this user may write" in said


def test_a_size_limit_refuses_and_drops_nothing(path):
    store = Disk(path, size_limit=400_000, durable=False)
    journal = store.journal()
    first = commit(journal, a="1", chunk=CHUNK)
    with pytest.raises(StateFull, match="400,000 allowed"):
        commit(journal, b="2", chunk=CHUNK * 8)
    with pytest.raises(StateFull):
        store.set("key", b"x" * 400_000)
    with pytest.raises(StateFull):
        store.cas("key", b"x" * 400_000, None)
    assert journal.branches() == {"main": first}
    assert journal.chunk(journal.address(CHUNK)) == CHUNK
    assert (path / "pack").stat().st_size == len(CHUNK)
    heads = [first]

    def fill():
        while len(heads) < 2000:
            heads.append(commit(journal, n=f"{len(heads)}" * 200, time=float(len(heads))))

    with pytest.raises(StateFull):
        fill()
    assert [record.hash for record in journal.history(heads[-1])] == heads[::-1]
    used = sum((path / name).stat().st_size for name in ("state.db", "pack"))
    assert 300_000 < used <= 400_000
    assert journal.fsck() == []
    store.close()


def test_space_that_was_collected_can_be_used_again(path):
    store = Disk(path, size_limit=600_000, durable=False)
    journal = store.journal()
    for number in range(12):
        head = commit(journal, branch=f"b{number}", chunk=bytes([number]) * 300_000, time=float(number))
        journal.move(f"b{number}", None, expect=head)
        journal.gc()
    assert files(path) - {"state.db-wal", "state.db-shm"} == {"state.db", "last"}
    store.close()


def test_a_file_that_cannot_grow_is_told_and_nothing_is_lost(path):
    program = """
import resource, signal, sys
from agex.state.disk.disk import Disk
from agex.state.commits.journal import Draft
from agex.errors import StateError
store = Disk(sys.argv[1])
journal = store.journal()
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
heads, refused = [], 0
for number in range(60):
    chunk = (b"%d " % number) * (20_000 if number % 2 else 300)
    address = journal.address(chunk)
    head = heads[-1] if heads else None
    parents = (head,) if head else ()
    draft = Draft(parents=parents, changes={"c": b"=" + address, f"k{number}": b"v" * 2000},
                  chunks={address: chunk}, time=float(number))
    try:
        heads.append(journal.commit(draft, branch="main", expect=head))
    except StateError as error:
        refused += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert refused, "nothing was refused"
assert journal.fsck() == [], journal.fsck()
assert [record.hash for record in journal.history(journal.branches()["main"])] == heads[::-1]
after = Draft(parents=(heads[-1],), changes={"after": b"1"}, time=99.0)
journal.commit(after, branch="main", expect=heads[-1])
print(refused, len(heads))
"""
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    refused, written = map(int, done.stdout.split())
    assert refused + written == 60
    assert written > 1


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    where = tmp_path / "small"
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", where]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a small file system")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


def test_a_disk_that_is_full_is_told_and_nothing_is_lost(small_disk):
    (small_disk / "rest").write_bytes(bytes(200_000))
    store = Disk(small_disk / "store")
    journal = store.journal()
    heads: list[str] = []

    def fill():
        while True:
            number = len(heads)
            chunk = CHUNK[number % 200 :] if number % 3 else None
            heads.append(commit(journal, n="x" * 3000, chunk=chunk, time=float(number)))

    for _ in range(3):
        with pytest.raises(StateFull, match="is full; nothing was written"):
            fill()
        assert journal.branches() == {"main": heads[-1]}
        assert [record.hash for record in journal.history(heads[-1])] == heads[::-1]
        assert journal.fsck() == []
    assert len(heads) > 3
    store.close()
    with (small_disk / "rest").open("ab", buffering=0) as rest, pytest.raises(OSError, match="No space"):
        rest.writelines(itertools.repeat(bytes(4096)))
    with pytest.raises(StateFull, match="is full"):
        Disk(small_disk / "another")
    (small_disk / "rest").unlink()
    heads.append(commit(Disk(small_disk / "store").journal(), last="1"))
    assert [record.hash for record in journal.history(heads[-1])] == heads[::-1]


# --- damage ---------------------------------------------------------------------------------------


def damaged(path, statement, *values):
    database = sqlite3.connect(path / "state.db", isolation_level=None)
    changed = database.execute(statement, values).rowcount
    database.close()
    assert changed > 0


@pytest.mark.parametrize(
    ("statement", "ask"),
    [
        ("UPDATE rows SET payload = x'00' WHERE gone = 0", lambda j, h: j.read(h, "a")),
        ("UPDATE rows SET payload = NULL, gone = 1", lambda j, h: j.read(h, "a")),
        ("UPDATE rows SET seq = seq + 1", lambda j, h: j.changes(h)),
        ("DELETE FROM rows", lambda j, h: j.changes(h)),
        ("UPDATE commits SET events = x'0131'", lambda j, h: j.events(h)),
        ("UPDATE commits SET events = NULL", lambda j, h: j.events(h)),
        ("UPDATE commits SET body = x''", lambda j, h: j.changes(h)),
        ("UPDATE commits SET header = header || x'00'", lambda j, h: j.record(h)),
        ("UPDATE commits SET lineage = lineage + 1", lambda j, h: j.read(h, "a")),
        ("UPDATE refs SET target = randomblob(32)", lambda j, h: j.branches()),
        ("UPDATE refs SET name = x'61'", lambda j, h: j.resolve("main")),
        ("DELETE FROM refs", lambda j, h: j.branches()),
        ("DELETE FROM refs", lambda j, h: j.resolve("main")),
        ("DELETE FROM lineages", lambda j, h: j.read(h, "absent")),
        ("UPDATE chunks SET at = at + 1", lambda j, h: j.chunk(j.address(CHUNK))),
        ("UPDATE chunks SET length = 1 << 40", lambda j, h: j.chunk(j.address(CHUNK))),
        ("DELETE FROM chunks", lambda j, h: j.chunk(j.address(CHUNK))),
        ("UPDATE store SET pack_end = 0", lambda j, h: j.branches()),
        ("DELETE FROM store", lambda j, h: j.branches()),
    ],
)
def test_what_was_tampered_with_is_found_on_reading_and_by_fsck(disk, path, statement, ask):
    journal = disk.journal()
    head = commit(journal, a="1", chunk=CHUNK, events=[b"event"])
    assert journal.fsck() == []
    damaged(path, statement)
    with pytest.raises(StateCorrupt):
        ask(journal, head)
    assert journal.fsck() != []


@contextmanager
def deleted(disk, path, key, commit):
    """Take the row away that a commit gave a key, as if it had never been."""
    database = sqlite3.connect(path / "state.db", isolation_level=None)
    query = "SELECT * FROM rows WHERE key = ? AND seq = (SELECT seq FROM commits WHERE id = ?)"
    row = database.execute(query, (key.encode(), bytes.fromhex(commit)[:8])).fetchone()
    database.execute("DELETE FROM rows WHERE lineage = ? AND key = ? AND seq = ?", row[:3])
    yield
    database.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    database.close()


def test_a_row_that_was_deleted_is_missed(disk, path):
    journal = disk.journal()
    first = commit(journal, a="1", b="1", c="1")
    second = commit(journal, a="2", b="2")
    side = Draft(parents=(first,), changes={"a": b"3"}, time=9.0)
    side = journal.commit(side, branch="side", expect=None)
    third = commit(journal, a="4", d="4")
    for head, key in ((second, "a"), (second, "b"), (third, "a")):
        with deleted(disk, path, key, head):
            for ask in (journal.keys, journal.read_all, lambda h, key=key: journal.read(h, key)):
                with pytest.raises(StateCorrupt):
                    ask(head)
            assert journal.fsck() != []
    for head, key in ((first, "c"), (third, "d"), (side, "a")):
        with deleted(disk, path, key, head):
            for ask in (journal.keys, journal.read_all, lambda h: journal.keys(h, "x/")):
                with pytest.raises(StateCorrupt):
                    ask(head)
            assert journal.fsck() != []
    assert journal.fsck() == []


def test_a_row_that_was_forged_with_its_sum_is_found_by_fsck(disk, path):
    journal = disk.journal()
    commit(journal, a="1", b="2")
    check = disk._directory.digest.check(b"a", 1, 0, b"forged")
    damaged(path, 'UPDATE rows SET payload = ?, "check" = ? WHERE key = ?', b"forged", check, b"a")
    assert any("'a' is not what was committed" in line for line in journal.fsck())


def test_a_pack_that_is_gone_or_short_or_altered_is_found(path):
    store = Disk(path)
    journal = store.journal()
    head = commit(journal, a="1", chunk=CHUNK)
    store.close()
    whole = (path / "pack").read_bytes()
    for left in (None, b"", whole[:-1], whole[:100] + b"\x00" + whole[101:]):
        (path / "pack").unlink(missing_ok=True)
        if left is not None:
            (path / "pack").write_bytes(left)
        opened = Disk(path)
        with pytest.raises(StateCorrupt):
            opened.journal().chunk(journal.address(CHUNK))
        assert opened.journal().read(head, "a") == b"1"
        assert opened.journal().fsck() != []
        opened.close()


def test_a_log_that_was_deleted_is_found(path, tmp_path):
    store = Disk(path)
    commit(store.journal(), a="1")
    shutil.copytree(path, tmp_path / "killed")
    store.close()
    (tmp_path / "killed" / "state.db-wal").unlink()
    with pytest.raises(StateCorrupt, match=r"empty or gone|log\s+state.db-wal"):
        Disk(tmp_path / "killed")


def test_a_database_that_was_deleted_is_not_made_anew_beside_its_pack(path):
    store = Disk(path)
    commit(store.journal(), a="1", chunk=CHUNK)
    store.close()
    (path / "state.db").unlink()
    (path / "last").unlink()
    with pytest.raises(StateCorrupt, match="the rest of the store is there"):
        Disk(path)


def test_without_waiting_for_the_disk_the_store_goes_back_to_what_the_pack_covers(path):
    store = Disk(path, durable=False)
    journal = store.journal()
    first = commit(journal, a="1", chunk=CHUNK)
    commit(journal, a="2", chunk=CHUNK[::-1])
    commit(journal, a="3")
    commit(journal, branch="new", b="1", chunk=CHUNK[1:])
    commit(journal, branch="small", b="1")
    store.close()
    with (path / "pack").open("r+b") as pack:
        pack.truncate(len(CHUNK) + 10)
    again = Disk(path, durable=False)
    journal = again.journal()
    assert journal.branches() == {"main": first}
    assert journal.read_all(first)["a"] == b"1"
    assert journal.chunk(journal.address(CHUNK)) == CHUNK
    assert journal.fsck() == []
    head = commit(journal, a="4", chunk=CHUNK[::-1])
    assert [record.hash for record in journal.history(head)] == [head, first]
    assert journal.chunk(journal.address(CHUNK[::-1])) == CHUNK[::-1]
    assert journal.fsck() == []
    again.close()


# --- many at once ---------------------------------------------------------------------------------

COUNTING = """
import sys
from agex.state.disk.disk import Disk
from agex.state.commits.journal import Draft, HeadMoved
journal = Disk(sys.argv[1], durable=False).journal()
print("ready", flush=True)
sys.stdin.readline()
conflicts = 0
for turn in range(int(sys.argv[2])):
    while True:
        head = journal.branches()["main"]
        count = int(journal.read(head, "count")) + 1
        changes = {"count": b"%d" % count}
        draft = Draft(parents=(head,), changes=changes, time=float(turn), message=sys.argv[3])
        try:
            journal.commit(draft, branch="main", expect=head)
            break
        except HeadMoved:
            conflicts += 1
print(conflicts)
"""


def test_two_processes_count_together_and_lose_nothing(disk, path):
    journal = disk.journal()
    commit(journal, count="0")
    counters = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTING, path, str(COUNT), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    assert [counter.stdout.readline() for counter in counters] == ["ready\n", "ready\n"]
    for counter in counters:
        counter.stdin.write("\n")
        counter.stdin.flush()
    conflicts = [int(counter.communicate()[0]) for counter in counters]  # how many is up to the scheduler
    head = journal.branches()["main"]
    assert journal.read(head, "count") == b"%d" % (2 * COUNT)
    assert len(list(journal.history(head))) == 2 * COUNT + 1
    assert journal.fsck() == []
    assert all(counter.returncode == 0 for counter in counters)
    assert len(conflicts) == 2


def test_a_new_store_is_made_once_by_all_who_open_it(path):
    gate = threading.Barrier(6)

    def begin(number):
        gate.wait()
        store = Disk(path)
        head = commit(store.journal(), branch=f"b{number}", chunk=CHUNK[number:], time=float(number))
        store.close()
        return head

    with ThreadPoolExecutor(6) as pool:
        heads = list(pool.map(begin, range(6)))
    store = Disk(path)
    assert store.journal().branches() == {f"b{number}": head for number, head in enumerate(heads)}
    assert store.journal().fsck() == []
    store.close()


def test_two_writers_are_told_apart(disk, path):
    other = Disk(path, durable=False)
    first = commit(disk.journal(), a="1")
    second = commit(other.journal(), a="2")
    with pytest.raises(HeadMoved) as moved:
        disk.journal().commit(Draft(parents=(first,), time=2.0), branch="main", expect=first)
    assert moved.value.head == second
    other.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
# The suite's own threads do nothing that the child would wait for.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_of_the_process_goes_on_with_connections_of_its_own(disk):
    journal = disk.journal()
    commit(journal, a="1", chunk=CHUNK)
    journal.chunk(journal.address(CHUNK))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            commit(journal, branch="child", b="1", chunk=CHUNK[::-1])
            code = 0 if journal.chunk(journal.address(CHUNK)) == CHUNK else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    commit(journal, a="2")
    assert set(journal.branches()) == {"main", "child"}
    assert journal.chunk(journal.address(CHUNK[::-1])) == CHUNK[::-1]
    assert journal.fsck() == []


def test_collecting_keeps_a_writer_waiting_for_a_slice_at_most(disk, path):
    journal = disk.journal()
    commit(journal, a="1")
    for number in range(40):
        lost = commit(journal, branch="lost", time=float(number), chunk=bytes([number]) * 50_000)
        for turn in range(10):
            lost = commit(journal, branch="lost", time=float(number), **{f"k{turn}": str(number)})
    journal.move("lost", None, expect=lost)
    collected = []
    collector = threading.Thread(target=lambda: collected.append(journal.gc()))
    collector.start()
    waits = []
    while collector.is_alive() or len(waits) < 5:
        begin = time.monotonic()
        commit(journal, n=str(len(waits)), time=float(len(waits)))
        waits.append(time.monotonic() - begin)
    collector.join()
    assert collected[0].commits == 440
    assert collected[0].chunks == 40
    assert max(waits) < 1.0  # it is a few milliseconds; a machine busy with other things takes longer
    assert journal.fsck() == []


def test_reading_goes_on_while_chunks_move_to_a_new_pack(disk, path):
    other = Disk(path, durable=False)
    journal = disk.journal()
    kept = [bytes([number]) * 40_000 for number in range(10)]
    for number, chunk in enumerate(kept):
        commit(journal, branch=f"kept{number}", chunk=chunk)
    for chunk in kept:
        other.journal().chunk(journal.address(chunk))  # has the old pack open
    for number in range(10, 20):
        head = commit(journal, branch="lost", chunk=bytes([number]) * 40_000)
    journal.move("lost", None, expect=head)
    assert journal.gc().chunks == 10
    assert files(path) & {"pack", "pack.1"} == {"pack.1"}
    assert (path / "pack.1").stat().st_size == 400_000
    for chunk in kept:
        assert other.journal().chunk(journal.address(chunk)) == chunk
    other.close()


# --- what it costs --------------------------------------------------------------------------------


def size_after(journal, disk, path, commits):
    head = journal.branches()["main"]
    for number in range(commits):
        key = f"variable{number % 100}"
        draft = Draft(parents=(head,), changes={key: b"%056d" % number}, time=float(number), message="turn")
        head = journal.commit(draft, branch="main", expect=head)
    disk.close()  # takes the log in
    return sum(entry.stat().st_size for entry in path.iterdir())


def test_a_small_change_takes_less_than_500_bytes(disk, path):
    journal = disk.journal()
    commit(journal, **{f"variable{number}": "x" * 56 for number in range(100)})
    before = size_after(journal, disk, path, 0)
    grown = size_after(journal, disk, path, COMMITS) - before
    assert grown / COMMITS <= 500


def test_what_a_commit_writes_does_not_grow_with_the_number_of_keys(tmp_path):
    def written(keys):
        store = Disk(tmp_path / str(keys), durable=False)
        journal = store.journal()
        commit(journal, **{f"variable{number}": "x" * 56 for number in range(keys)})
        before = size_after(journal, store, tmp_path / str(keys), 0)
        return size_after(journal, store, tmp_path / str(keys), 300) - before

    assert written(5000) <= 1.5 * written(100) + 100_000  # pages that split fill up with the next changes


def test_one_altered_chunk_of_many_is_all_that_is_stored_again(disk, path):
    journal = disk.journal()
    chunks = [bytes([number]) * 262_144 for number in range(20)]

    def store(head, chunks, time):
        held = {journal.address(chunk): chunk for chunk in chunks}
        new = {address: held[address] for address in journal.missing(held)}
        draft = Draft(parents=head, changes={"frame": b"".join(held)}, chunks=new, time=time)
        return journal.commit(draft, branch="main", expect=head[0] if head else None)

    first = store((), chunks, 1.0)
    before = (path / "pack").stat().st_size
    chunks[7] = b"!" + chunks[7][1:]
    store((first,), chunks, 2.0)
    assert (path / "pack").stat().st_size - before == 262_144


def test_importing_the_room_loads_no_database():
    program = (
        "import sys, agex.state, agex.state.disk.disk, agex.state.kv.memory, agex.state.kv.cache\n"
        "print([name for name in ('sqlite3', 'blake3', 'redis', 'psycopg', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
