"""A workspace holds what it may hold: a write that would pass the limit is refused, and nothing is lost."""

from __future__ import annotations

import errno
import threading

import pytest

from agex.files import connect_fs
from agex.sandbox import Sandbox

KIB = 1024


@pytest.fixture(params=["virtual", "isolated"])
def files(request, tmp_path):
    """A workspace of 10 KiB."""
    limit = 10 / KIB
    if request.param == "virtual":
        return connect_fs(max_size_mb=limit)
    return connect_fs(type="isolated", root=tmp_path, max_size_mb=limit)


def refused(write) -> None:
    with pytest.raises(OSError, match="VFS size limit exceeded") as raised:
        write()
    assert raised.value.errno == errno.ENOSPC


def test_a_write_that_would_pass_the_limit_changes_nothing(files):
    files.write("kept", b"x" * 6 * KIB)
    refused(lambda: files.write("new/deep/file", b"y" * 5 * KIB))
    refused(lambda: files.write("kept", b"y" * 11 * KIB))
    refused(lambda: files.write("kept", b"y" * 5 * KIB, mode="a"))
    assert (files.read("kept"), files.list("/", recursive=True)) == (b"x" * 6 * KIB, ["kept"])


def test_what_is_replaced_counts_no_more(files):
    files.write("a", b"x" * 9 * KIB)
    files.write("a", b"y" * 10 * KIB)
    refused(lambda: files.write("b", b"z"))
    files.write("a", b"")
    files.write("b", b"z" * 10 * KIB)
    assert files.getsize("b") == 10 * KIB


def test_what_is_removed_counts_no_more(files):
    files.write("a", b"x" * 9 * KIB)
    files.remove("a")
    files.write("b", b"x" * 9 * KIB)
    assert files.list("/") == ["b"]


def test_what_a_move_replaces_counts_no_more(files):
    files.write("a", b"x" * 5 * KIB)
    files.write("b", b"y" * 5 * KIB)
    files.rename("a", "b")
    files.write("c", b"z" * 5 * KIB)
    refused(lambda: files.write("d", b"z"))
    files.rename("c", "c")
    refused(lambda: files.write("d", b"z"))


def test_a_file_is_not_made_longer_than_there_is_room(files):
    files.write("a", b"x")
    refused(lambda: files.truncate("a", 11 * KIB))
    assert files.read("a") == b"x"


def test_code_loses_nothing_that_it_wrote(files):
    program = """
with open('log', 'w') as file:
    file.write('first\\n')
try:
    with open('log', 'a') as file:
        for _ in range(100):
            file.write('x' * 1024)
            file.flush()
except OSError as error:
    said = str(error)
"""
    result = Sandbox(fs=files).exec(program)
    assert "VFS size limit exceeded" in result.namespace["said"]
    assert files.read("log") == b"first\n" + b"x" * 9 * KIB


def test_threads_that_write_at_once_stay_below_the_limit(files):
    def write(number: int) -> None:
        try:
            files.write(f"{number}", b"x" * KIB)
        except OSError:
            failed.append(number)

    failed: list[int] = []
    threads = [threading.Thread(target=write, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(failed), len(files.list("/"))) == (20, 10)


def test_what_is_there_already_counts(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "old").write_bytes(b"x" * 9 * KIB)
    files = connect_fs(type="isolated", root=tmp_path, max_size_mb=10 / KIB)
    refused(lambda: files.write("new", b"y" * 2 * KIB))
    (tmp_path / "sub" / "old").unlink()
    files.write("new", b"y" * 2 * KIB)
    assert files.read("new") == b"y" * 2 * KIB


def test_links_are_not_followed_when_files_are_counted(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 20 * KIB)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").symlink_to(tmp_path / "big")
    (tmp_path / "root" / "folder").symlink_to(tmp_path)
    files = connect_fs(type="isolated", root=tmp_path / "root", max_size_mb=10 / KIB)
    files.write("new", b"y" * 9 * KIB)
    assert files.getsize("new") == 9 * KIB


def test_views_of_one_directory_share_the_limit(tmp_path):
    files = connect_fs(type="isolated", root=tmp_path, max_size_mb=10 / KIB)
    one, other = files.fresh(), files.fresh()
    one.write("a", b"x" * 6 * KIB)
    refused(lambda: other.write("b", b"x" * 6 * KIB))
    assert other.read("a") == b"x" * 6 * KIB
