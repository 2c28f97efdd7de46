"""A store that this user may not write can be read, and says so where it is to be written."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agex.errors import StateError
from agex.state import Disk, Versioned
from agex.state.disk.database import Database
from agex.state.disk.readonly_database import Reader, may_write

# All that reads of a store, as a user who may write nothing. It may not even be one who may read Python's own
# files: so everything is done first in a store of its own, which imports what it takes.
READING = """
import json, os, sys, tempfile
import urllib.parse  # of which Python 3.13 makes use late
from typer.testing import CliRunner
from agex import Disk, Versioned
from agex.cli.app import app
from agex.errors import StateError

def look(path):
    told = {}
    try:
        state = Versioned(Disk(path))
        told["n"], told["large"] = state["n"], len(state["large"])
        told["history"] = [commit.message for commit in state.history()]
        told["oldest"] = dict(state.checkout(state.history()[-1]))["n"]
        told["fsck"] = state.fsck()
        state["n"] = 99
        told["refused"] = []
        for change in (state.commit, lambda: state.tag("mine"), lambda: state.fork("mine"), state.gc,
                       lambda: state.store.set("key", b"value")):
            try:
                change()
            except StateError as error:
                told["refused"].append(str(error))
        told["again"] = Versioned(Disk(path))["n"]
        state.close()
    except StateError as error:
        told["error"] = repr(error)
    told["commands"] = [CliRunner().invoke(app, [name, path]).output for name in ("log", "fsck", "branch")]
    return told

with tempfile.TemporaryDirectory() as own:
    state = Versioned(Disk(own))
    state["n"], state["large"] = 0, os.urandom(100_000)
    state.commit()
    look(own)
    try:
        raise StateError("as one is shown")
    except StateError as error:
        repr(error)
if sys.argv[2] == "nobody" and os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps(look(sys.argv[1])))
"""


def read(path, user="nobody"):
    command = [sys.executable, "-c", READING, path, user]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_read(told, n=2):
    assert "error" not in told, told
    assert (told["n"], told["large"], told["again"], told["oldest"]) == (n, 100_000, n, 0)
    assert told["history"] == [f"n is {number}" for number in range(n, -1, -1)]
    assert told["fsck"] == []
    assert len(told["refused"]) == 5
    assert all("cannot be written" in line for line in told["refused"])
    for said, output in zip((f"n is {n}", "Nothing is damaged", "main"), told["commands"], strict=True):
        assert said in output


def filled(path):
    state = Versioned(Disk(path))
    state["large"] = os.urandom(100_000)
    for number in range(3):
        state["n"] = number
        state.commit(f"n is {number}")
    return state


@pytest.fixture
def place():
    """Give a directory that others may look into, as they may not into pytest's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
        for path in (Path(name), *Path(name).iterdir()):
            path.chmod(0o755)


def forbid(store, *, files=0o444, directory=0o555):
    for entry in store.iterdir():
        entry.chmod(files)
    store.chmod(directory)


@pytest.mark.parametrize(
    "modes",
    [{}, {"files": 0o644}, {"directory": 0o777}],
    ids=["neither", "not the directory", "not the files"],
)
def test_a_closed_store_is_read_by_who_may_not_write_it(place, modes):
    filled(place / "store").close()
    forbid(place / "store", **modes)
    before = sorted(entry.name for entry in (place / "store").iterdir())
    assert_read(read(place / "store"))
    assert sorted(entry.name for entry in (place / "store").iterdir()) == before, "nothing is left behind"


def test_a_store_that_somebody_writes_is_read_as_it_is_now(place):
    state = filled(place / "store")
    forbid(place / "store")
    assert (place / "store" / "state.db-wal").stat().st_size
    assert_read(read(place / "store"))
    (place / "store").chmod(0o755)
    for entry in (place / "store").iterdir():
        entry.chmod(0o644)
    state["n"] = 3
    state.commit("n is 3")
    forbid(place / "store")
    assert_read(read(place / "store"), 3)
    (place / "store").chmod(0o755)
    state.close()


@pytest.mark.parametrize("index", [True, False], ids=["with its index", "without its index"])
def test_a_store_whose_writer_died_is_read_with_the_log_that_it_left(place, index):
    state = filled(place / "living")
    shutil.copytree(place / "living", place / "store")
    state.close()
    if not index:
        (place / "store" / "state.db-shm").unlink()
    forbid(place / "store")
    assert_read(read(place / "store"))


def test_a_store_on_a_disk_that_is_mounted_for_reading_is_read(place):
    filled(place / "store").close()
    (place / "mounted").mkdir()
    options = ["mount", "--bind", place / "store", place / "mounted"]
    again = ["mount", "-o", "remount,ro,bind", place / "mounted"]
    if os.geteuid() != 0 or subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs a right that this user does not have")
    try:
        subprocess.run(again, check=True)
        assert_read(read(place / "mounted", "root"))
    finally:
        subprocess.run(["umount", place / "mounted"], check=True)


def test_a_store_that_root_itself_may_not_change_is_read(place):
    filled(place / "store").close()
    everything = [place / "store", *(place / "store").iterdir()]
    if (
        os.geteuid() != 0
        or subprocess.run(["chattr", "+i", *everything], capture_output=True, check=False).returncode
    ):
        pytest.skip("this file system or this user has no chattr +i")
    try:
        assert_read(read(place / "store", "root"))
    finally:
        subprocess.run(["chattr", "-i", *everything], check=True)


# -- somebody writes while it is read without locks --------------------------------------------------


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "state.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE t (x)")
        made.execute("INSERT INTO t VALUES (1)")
    return path


@pytest.fixture
def reading(database, monkeypatch):
    """Read a database as one who may not write it; the suite may be root, who may."""
    monkeypatch.setattr("agex.state.disk.database.may_write", lambda path: False)
    found = Database(database, durable=False, verify=lambda db: None)
    yield found
    found.close()


def write(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("INSERT INTO t VALUES (2)")


def test_what_was_written_between_two_reads_is_read(database, reading):
    for expected in (1, 2, 3):
        with reading.reading() as db:
            assert db.execute("SELECT count(*) FROM t").fetchone() == (expected,)
        write(database)


def test_what_was_read_while_somebody_wrote_is_an_error(database, reading):
    with reading.reading() as db:
        db.execute("SELECT * FROM t").fetchall()
    with pytest.raises(StateError, match="changed while it was read"), reading.reading():
        write(database)
    with reading.reading() as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_damage_that_is_a_write_of_somebody_else_is_not_called_damage(database, reading):
    def look():
        with reading.reading() as db:
            write(database)
            db.execute("SELECT * FROM torn")

    with pytest.raises(StateError, match="changed while it was read"):
        look()


def test_a_reader_of_a_log_and_its_index_sees_what_its_writer_commits(database):
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
        reader = Reader(database)
        writer.execute("INSERT INTO t VALUES (3)")
        assert reader.connection.execute("SELECT count(*) FROM t").fetchone() == (3,)
        assert reader.is_current()
        reader.connection.close()


def test_a_database_that_is_not_there_yet_may_be_written(tmp_path):
    assert may_write(tmp_path / "state.db")
