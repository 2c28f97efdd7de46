"""The directory of a container's worker, which reports it over the wire, and reports that no worker makes.

Stopped by: isolation.workspace.report, isolation.workspace.directory.
"""

from __future__ import annotations

import json

import podman
import pytest
from directory_worker import Worker, content, do_anything

from agex.files import connect_fs
from agex.isolation import ContainerExecutor
from agex.isolation.wire.error_codec import ProtocolError
from agex.isolation.workspace.report import Reporter, read_report
from agex.isolation.workspace.walk import TooManyEntries, WalkBounds

BOUNDS = WalkBounds(entries=10, size=100)


def containers(test):
    """Mark a test that needs a container engine."""
    for mark in (
        pytest.mark.skipif(bool(podman.missing()), reason=f"no container engine: {podman.missing()}"),
        pytest.mark.slow,
        pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # the Docker SDK's sockets
    ):
        test = mark(test)
    return test


def read(report, contents=b""):
    return read_report([memoryview(json.dumps(report).encode()), memoryview(contents)], BOUNDS)


def a_report(*files, directories=(), refused=()):
    return {"files": files, "directories": directories, "refused": refused}


def a_file(path, size=1, digest="ab", is_new=True):
    return [path, size, 5, digest, is_new]


def test_a_report_is_read_as_it_was_made(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("content")
    (tmp_path / "link").symlink_to("/etc/passwd")
    reporter = Reporter(str(tmp_path))
    found, changed = read_report([*map(memoryview, reporter.report(BOUNDS))], BOUNDS)
    assert set(found.files) == {"a/b"}
    assert changed["a/b"][0] == b"content"
    assert set(found.directories) == {"a"}
    assert [(each.path, each.reason, each.hides) for each in found.refused] == [
        ("link", "it is a link", True)
    ]
    again, nothing = read_report([*map(memoryview, reporter.report(BOUNDS))], BOUNDS)
    assert again.files == found.files
    assert nothing == {}


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "a//b",
        "",
        ".",
        "a/",
        "nul\0",
        "x" * 5000,
        "\udcff",
        5,
        None,
        ["a"],
    ],
)
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_path_that_leads_elsewhere_is_refused(path, kind):
    with pytest.raises(ProtocolError):
        read(a_report(a_file(path)) if kind == "file" else a_report(directories=[path]), b"x")


@pytest.mark.parametrize(
    "report",
    [
        None, [], 5, "text", {}, {"files": []}, a_report([]), a_report(["a"]), a_report(a_file("a", size=2)),
        a_report(a_file("a", size=-1)), a_report(a_file("a", size=101)), a_report(a_file("a", size=1.0)),
        a_report(a_file("a", digest="no")), a_report(a_file("a", is_new=False)), a_report(directories=[[]]),
        a_report(a_file("a"), directories=["a"]), a_report(refused=[["a"]]), a_report(refused=5),
    ],
)  # fmt: skip
def test_a_report_that_no_worker_makes_is_refused(report):
    with pytest.raises(ProtocolError):
        read(report, b"x")


def test_a_report_that_is_no_json_is_refused():
    for parts in ([], [memoryview(b"{}")], [memoryview(b"[" * 100_000), memoryview(b"")]):
        with pytest.raises(ProtocolError):
            read_report(parts, BOUNDS)


def test_more_names_than_the_bound_are_refused():
    with pytest.raises(TooManyEntries):
        read(a_report(*(a_file(str(number), is_new=False) for number in range(11))))
    with pytest.raises(TooManyEntries):
        read({"too_many": "anything"})


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    with podman.service(tmp_path_factory.mktemp("podman")) as address:
        made = ContainerExecutor(address)
        yield made
        made.close()


@containers
def test_a_container_has_the_workspace_as_its_directory(container):
    files = connect_fs(type="virtual", max_size_mb=2)
    files.write("folder/old.txt", "old")
    with Worker(container, files) as worker:
        shown = worker.run("""
            import os, sqlite3, tempfile
            print(os.getcwd(), os.listdir(), tempfile.gettempdir(), os.environ["HOME"])
            open("folder/old.txt", "a").write(" more"); open("new.txt", "w").write("new")
            os.symlink("/etc/passwd", "link")
            with sqlite3.connect("data.db") as db: _ = db.execute("create table t (x)")
            db.close()
        """)
        assert shown == (
            "/workspace ['folder'] /tmp /tmp\nNote: not kept in the workspace: link (it is a link).\n"
        )
        assert files.read("folder/old.txt") == b"old more"
        assert files.read("data.db")[:6] == b"SQLite"
        files.write("host.txt", "host")
        worker.run("assert open('host.txt').read() == 'host'; os.remove('new.txt')")
        assert set(content(files)) == {"folder", "folder/old.txt", "data.db", "host.txt"}
        assert "No space left" in worker.error("_ = open('large', 'wb').write(bytes(3 << 20))")


@containers
@pytest.mark.parametrize("seed", range(2))
def test_after_any_operations_the_workspace_is_what_the_directory_is(container, seed):
    do_anything(container, seed)
