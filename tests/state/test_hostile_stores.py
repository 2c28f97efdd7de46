"""Stores that a stranger made: no file but their own is read or written, and nothing takes for ever.

Stopped by: state.disk, state.kv, state.commits.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import struct
import time

import pytest

from agex.errors import StateCorrupt, StateError
from agex.state import Disk, Memory, Versioned
from agex.state.commits.length_prefixed import pack
from agex.state.disk.directory import Directory
from agex.state.kv.keytree import KeyTree
from agex.state.kv.kv_journal import KVJournal
from agex.state.kv.objects import object_key

LARGE = 100_000  # bytes: goes to the pack
SECRET = b"the host's own"


@pytest.fixture
def path(tmp_path):
    state = Versioned(Disk(tmp_path / "store", durable=False))
    for number in range(3):
        state["n"], state["large"] = number, os.urandom(LARGE)
        state.commit()
    state.reset(state.history()[-1])
    state.close()
    return tmp_path / "store"


@pytest.fixture
def victim(tmp_path):
    (tmp_path / "victim").write_bytes(SECRET)
    return tmp_path / "victim"


@pytest.fixture(autouse=True)
def _in_time():
    """End a test that hangs: pipes wait for ever."""
    signal.alarm(60)
    yield
    signal.alarm(0)


def use(path):
    """Do all that may be done with a store."""
    state = Versioned(Disk(path))
    try:
        dict(state)
        state["large"], state["n"] = os.urandom(LARGE), 5
        state.commit()
        state.store.set("key", b"value")
        state.tag("good")
        state.reset(state.history()[-1])
        state.gc()
        state.fsck()
    finally:
        state.close()


# -- links, pipes and devices ----------------------------------------------------------------------


def link(name, target):
    name.symlink_to(target)


def hard_link(name, target):
    name.hardlink_to(target)


def pipe(name, _):
    os.mkfifo(name)


def listening(name, _):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        before = os.getcwd()  # noqa: PTH109 - a socket's path is short
        os.chdir(name.parent)
        try:
            made.bind(name.name)
        finally:
            os.chdir(before)


def device(name, _):
    if os.geteuid() != 0:
        pytest.skip("making a device needs a right that this user does not have")
    os.mknod(name, 0o666 | 0o020000, os.makedev(1, 5))  # zero


def directory(name, _):
    name.mkdir()


def dangling(name, target):
    name.symlink_to(target.parent / "begotten")


KINDS = [link, dangling, hard_link, pipe, listening, device, directory]
NAMES = ["state.db", "state.db-wal", "state.db-shm", "state.db-journal", "pack", "pack.1", "pack.7", "last"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_a_store_that_is_no_file_of_its_own_is_refused(path, victim, name, kind):
    (path / name).unlink(missing_ok=True)
    kind(path / name, victim)
    with pytest.raises(StateError, match=r"is not used|is a file"):
        use(path)
    assert victim.read_bytes() == SECRET
    assert not (victim.parent / "begotten").exists()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["pack", "pack.1", "last"])
def test_a_file_that_is_replaced_while_the_store_is_open_is_not_followed(path, victim, name, kind):
    state = Versioned(Disk(path))
    (path / name).unlink(missing_ok=True)
    kind(path / name, victim)
    for change in (
        lambda: (state.update(large=os.urandom(LARGE)), state.commit()),
        state.gc,
        lambda: state.tag("good"),
        lambda: dict(state.checkout("main")),
    ):
        with contextlib.suppress(StateError):
            change()
    state.close()
    assert victim.read_bytes() == SECRET
    assert not (victim.parent / "begotten").exists()


def test_a_link_to_the_directory_itself_is_the_callers_own(path):
    (path.parent / "current").symlink_to(path)
    use(path.parent / "current")


def test_other_files_in_the_directory_are_nobodys_business(path, victim):
    for name in ("README.md", "pack.old", "pack.01", "pack.x", "package.json", "state.db.bak", "pack.\u0663"):
        (path / name).symlink_to(victim)
    use(path)
    assert victim.read_bytes() == SECRET


def test_a_journal_that_has_sqlite_delete_another_file_is_refused(path, victim):
    """A hot journal names its super-journal, which SQLite deletes after it went back."""
    magic = bytes.fromhex("d9d505f920a163d7")
    name = os.fsencode(victim)
    header = magic + struct.pack(">5I", 0, 0, 2, 512, 4096)
    end = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    (path / "state.db-journal").write_bytes(header.ljust(512, b"\0") + end)
    with pytest.raises(StateError, match="delete another file"):
        use(path)
    assert victim.read_bytes() == SECRET


@pytest.mark.parametrize("size", [0, 8, 512])
def test_a_journal_that_was_left_when_the_store_was_made_is_no_harm(path, size):
    (path / "state.db-journal").write_bytes(bytes(size))
    use(path)


def rewrite_meta(path, **fields):
    """Write what a store says of itself, with a check that holds."""
    opened = Directory(path, size_limit=None, durable=False)
    with opened.database.writing() as db:
        meta = opened.meta(db)
        for name, value in fields.items():
            setattr(meta, name, value)
        opened._write_meta(db, meta)
    opened.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"pack": "/../../victim"},
        {"pack": "/../../victim", "pack_end": 0},
        {"pack": -1},
        {"pack": 1.5},
        {"pack": None},
        {"pack_end": -1},
        {"pack_end": "0"},
        {"pack_end": None},
        {"generation": "x"},
        {"generation": -(2**62)},
        {"refs": "x"},
        {"refs": b"x"},
    ],
    ids=repr,
)
def test_what_a_store_says_of_itself_is_of_the_kinds_it_should_be(path, victim, fields):
    (path / "pack.").mkdir()  # so that a path through it leads up
    rewrite_meta(path, **fields)
    with pytest.raises(StateCorrupt):
        use(path)
    assert victim.read_bytes() == SECRET


def test_where_a_chunk_lies_is_a_place_in_a_pack(path):
    for column, value in (("pack", "/../../victim"), ("pack", -1), ("at", -1), ("length", -5), ("at", "x")):
        copy = path.parent / f"{column}{value!s:.2}".replace("/", "-")
        shutil.copytree(path, copy)
        with contextlib.closing(sqlite3.connect(copy / "state.db")) as db, db:
            db.execute(f"UPDATE chunks SET {column} = ?", (value,))
        state = Versioned(Disk(copy))
        with pytest.raises(StateCorrupt):
            dict(state)
        with contextlib.suppress(StateCorrupt):
            state.gc()
        assert state.fsck() != []
        state.close()


# -- tables that compute ---------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
KEPT = 'one, format, digest, generation, pack, pack_end, refs, "check"'
KV = "DROP TABLE kv; CREATE TABLE kv (key BLOB PRIMARY KEY {}, value BLOB {}) WITHOUT ROWID"
HUGE = "length(zeroblob(900000000))"
SCHEMAS = {
    "a view for a table": f"""
        ALTER TABLE store RENAME TO old; CREATE VIEW store AS SELECT {KEPT} FROM old WHERE ({ENDLESS}) > 0""",
    "a view for the names": f"""
        ALTER TABLE refs RENAME TO old; CREATE VIEW refs AS SELECT * FROM old WHERE ({ENDLESS}) > 0""",
    "one view more": "CREATE VIEW more AS SELECT 1",
    "a trigger": f"CREATE TRIGGER t AFTER INSERT ON kv BEGIN DELETE FROM rows WHERE ({ENDLESS}) > 0; END",
    "a trigger that deletes": "CREATE TRIGGER t AFTER INSERT ON commits BEGIN DELETE FROM refs; END",
    "a trigger of a view": """
        CREATE VIEW v AS SELECT 1 AS x; CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN SELECT 1; END""",
    "a generated column": f"ALTER TABLE commits ADD COLUMN x GENERATED ALWAYS AS ({HUGE}) VIRTUAL",
    "one column more": "ALTER TABLE commits ADD COLUMN x",
    "one column less": "ALTER TABLE kv DROP COLUMN value",
    "a default": KV.format("", "DEFAULT (1)"),
    "an index over an expression": f"CREATE INDEX i ON commits ({HUGE})",
    "an index over a part": f"CREATE INDEX i ON commits (id) WHERE {HUGE} > 0",
    "one index more": "CREATE INDEX i ON commits (known)",
    "one index less": "DROP INDEX twin",
    "another index of that name": "DROP INDEX twin; CREATE INDEX twin ON rows (lineage, key, seq, gone)",
    "an order of its own": """
        DROP INDEX twin; CREATE INDEX twin ON rows (lineage, key COLLATE NOCASE, seq, gone, next)""",
    "a check": KV.format("", "CHECK (length(value) < 1)"),
    "a foreign key": KV.format("", "REFERENCES refs (name)"),
    "a collation": KV.format("COLLATE mine", ""),
    "a collation of SQLite": KV.format("COLLATE NOCASE", ""),
    "a kind of value": "DROP TABLE kv; CREATE TABLE kv (key BLOB PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "one table more": "CREATE TABLE more (x)",
    "one table less": "DROP TABLE kv",
    "a table that is full text": "CREATE VIRTUAL TABLE more USING fts5(x)",
    "a table that is a tree": "CREATE VIRTUAL TABLE more USING rtree(id, a, b)",
    "a table of a kind that is not there": """
        PRAGMA writable_schema=ON; INSERT INTO sqlite_master
        VALUES ('table', 'more', 'more', 0, 'CREATE VIRTUAL TABLE more USING none()')""",
    "figures for the planner": "ANALYZE",
    "a numbered table": "CREATE TABLE more (x INTEGER PRIMARY KEY AUTOINCREMENT)",
    "a view that is said to be a table": """
        DROP TABLE kv; CREATE VIEW kv AS SELECT 1 AS key, 2 AS value; PRAGMA writable_schema=ON;
        UPDATE sqlite_master SET type = 'table' WHERE name = 'kv'""",
}


@pytest.mark.parametrize("change", SCHEMAS.values(), ids=SCHEMAS)
def test_a_store_whose_tables_are_not_exactly_those_of_a_store_is_refused(path, change):
    with contextlib.closing(sqlite3.connect(path / "state.db")) as db:
        db.create_collation("mine", lambda one, other: 0)
        db.executescript(change)
    begin = time.perf_counter()
    with pytest.raises(StateCorrupt):
        use(path)
    assert time.perf_counter() - begin < 5


def test_tables_are_looked_at_each_time_the_file_is_opened(path):
    state = Versioned(Disk(path))
    state.close()
    with contextlib.closing(sqlite3.connect(path / "state.db")) as db:
        db.execute(SCHEMAS["a trigger that deletes"])
    state["n"] = 7
    with pytest.raises(StateCorrupt, match="has not exactly the tables of a store: see 't'"):
        state.commit()


def test_functions_that_a_schema_names_are_not_trusted(path):
    opened = Directory(path, size_limit=None, durable=False)
    with opened.database.reading() as db:
        assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)
    opened.close()


def test_lines_of_commits_that_go_round_are_damage_and_no_hang(path):
    opened = Directory(path, size_limit=None, durable=False)
    with opened.database.writing() as db:
        numbers = [number for (number,) in db.execute("SELECT id FROM lineages")]
        number = numbers[0]
        tip = db.execute("SELECT tip FROM lineages WHERE id = ?", (number,)).fetchone()[0]
        for depth in (1, 5):
            fields = (number, number, tip, depth, tip)
            db.execute(
                "REPLACE INTO lineages VALUES (?, ?, ?, ?, ?, ?)", (*fields, opened.digest.check(*fields))
            )
    opened.close()
    state = Versioned(Disk(path))
    with pytest.raises(StateCorrupt):
        state.checkout("main")["missing"]
    with pytest.raises(StateCorrupt):
        list(state)
    assert state.fsck() != []
    with contextlib.suppress(StateCorrupt):
        state.gc()
    state.close()


KINDS_OF_VALUE = {
    "commits": ["seq", "lineage", "known", "header", "body", "events"],
    "lineages": ["parent", "fork", "depth", "tip"],
    "rows": ["key", "seq", "gone", "next", "payload"],
    "chunks": ["address", "pack", "at", "length", "content"],
    "refs": ["kind", "name", "target"],
}


def check_anew(path):
    """Write the checks of rows anew, as a stranger can: they are for accidents."""
    opened = Directory(path, size_limit=None, durable=False, mend=False)
    check = opened.digest.check
    with opened.database.writing() as db:
        for number, *rest in db.execute("SELECT id, parent, fork, depth, tip FROM lineages").fetchall():
            db.execute('UPDATE lineages SET "check" = ? WHERE id = ?', (check(number, *rest), number))
        for where in db.execute("SELECT lineage, key, seq, gone, payload FROM rows").fetchall():
            query = 'UPDATE rows SET "check" = ? WHERE lineage IS ? AND key IS ? AND seq IS ?'
            db.execute(query, (check(*where[1:]), *where[:3]))
        query = "SELECT seq, lineage, known, pack, pack_end, header FROM commits"
        for *place, header in db.execute(query).fetchall():
            if isinstance(header, bytes):
                found = check(*place, opened.digest(header))
                db.execute('UPDATE commits SET "check" = ? WHERE seq IS ?', (found, place[0]))
    opened.close()


@pytest.mark.parametrize("value", ["text", b"bytes", 1.5, None, -5, 2**62], ids=repr)
@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table, columns in KINDS_OF_VALUE.items() for column in columns]
)
def test_a_value_of_another_kind_is_damage_or_makes_no_difference(path, table, column, value):
    db = sqlite3.connect(path / "state.db", isolation_level=None)
    with contextlib.closing(db), contextlib.suppress(sqlite3.IntegrityError):
        db.execute(f"UPDATE OR REPLACE {table} SET {column} = ?", (value,))
    with contextlib.suppress(StateError):
        check_anew(path)
    with contextlib.suppress(StateError):
        state = Versioned(Disk(path))
        for ask in (lambda: dict(state), lambda: list(state.history()), state.fsck, state.gc):
            with contextlib.suppress(StateError):
                ask()
        state.close()
    with contextlib.suppress(StateError):
        use(path)


# -- trees of keys -----------------------------------------------------------------------------------


class Nodes:
    """A tree over nodes in memory that counts how often each is read."""

    def __init__(self):
        self.journal = KVJournal(Memory())
        self.digest = self.journal._digest
        self.found: dict[bytes, bytes] = {}
        self.reads = 0
        self.tree = KeyTree(self.load, self.save, self.digest)

    def load(self, digests):
        self.reads += len(digests)
        return {digest: self.found[digest] for digest in digests}

    def save(self, content):
        digest = self.digest(content)
        self.found[digest] = content
        return digest

    def shared(self, depth, key=b"k"):
        """Return a tree of so many nodes, each sixteen times below the one before."""
        root = self.save(pack(b"l", key, bytes(32)))
        for _ in range(depth):
            root = self.save(pack(b"n", *[root] * 16))
        return root


WAYS = {
    "each node": lambda tree, one, other: list(tree.nodes(one, set())),
    "all entries": lambda tree, one, other: tree.entries(one),
    "the difference": lambda tree, one, other: tree.differing(one, other),
    "the difference from nothing": lambda tree, one, other: tree.differing(b"", one),
    "the difference to nothing": lambda tree, one, other: tree.differing(one, b""),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("depth", [1, 5, 60])
def test_a_node_in_two_places_of_a_tree_is_damage_and_read_once(way, depth):
    nodes = Nodes()
    one, other = nodes.shared(depth, b"a"), nodes.shared(depth, b"b")
    with pytest.raises(StateCorrupt, match="two places"):
        way(nodes.tree, one, other)
    assert nodes.reads <= 4 * len(nodes.found)


def test_a_node_that_another_tree_has_too_is_given_once():
    nodes = Nodes()
    keys = {b"%d" % number: bytes(32) for number in range(1000)}
    one = nodes.tree.update(b"", keys)
    other = nodes.tree.update(one, {b"new": bytes(32)})
    seen: set[bytes] = set()
    given = [digest for root in (one, other) for digest, _ in nodes.tree.nodes(root, seen)]
    assert len(given) == len(set(given)) == len(seen)
    assert nodes.tree.differing(one, other) == {b"new": (None, bytes(32))}
    assert nodes.tree.entries(other).keys() == {*keys, b"new"}


@pytest.mark.parametrize(
    "change", [{b"k": b"x" * 32}, {b"k": None}, {b"%d" % n: bytes(32) for n in range(99)}]
)
def test_a_tree_that_is_deeper_than_any_key_is_damage(change):
    nodes = Nodes()
    with pytest.raises(StateCorrupt, match="deeper"):
        nodes.tree.update(nodes.shared(80), change)
    with pytest.raises(StateCorrupt, match="deeper"):
        nodes.tree.get(nodes.shared(80), b"k")


def test_a_commit_with_shared_nodes_costs_what_its_nodes_cost():
    from agex.state.commits.headers import Header
    from agex.state.commits.journal import Draft
    from agex.state.kv.objects import commit_key

    store = Memory()
    journal = KVJournal(store)
    nodes = Nodes()
    root = nodes.shared(8)
    store.set_many({object_key(digest): content for digest, content in nodes.found.items()})
    draft = Draft(changes={}, time=1.0)
    header, _ = Header.of(draft, content=root, digest=journal._digest)
    commit = journal._digest(header.pack()).hex()
    store.set(commit_key(commit), header.pack())
    journal.move("main", commit, expect=None)
    begin = time.perf_counter()
    for ask in (
        lambda: journal.read_all(commit),
        lambda: journal.keys(commit),
        lambda: journal.changes(commit),
        lambda: journal.diff(None, commit),
        lambda: list(Versioned(store)),
    ):
        with pytest.raises(StateCorrupt):
            ask()
    assert journal.fsck() != []
    with pytest.raises(StateCorrupt):
        journal.gc()
    assert time.perf_counter() - begin < 2
