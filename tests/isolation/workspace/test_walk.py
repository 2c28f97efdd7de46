"""A directory of a hostile process is read without harm: no link followed, nothing waited for, all of it bounded.

Stopped by: isolation.workspace.walk.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from agex.isolation.workspace.walk import Refused, TooManyEntries, WalkBounds, read_file, walk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="openat2 is a call of Linux")

BOUNDS = WalkBounds()


@pytest.fixture
def root(tmp_path):
    directory = tmp_path / "root"
    directory.mkdir()
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    yield directory, descriptor
    os.close(descriptor)


def refused(found):
    return {each.path: each.reason for each in found.refused}


def test_files_and_directories_are_found_and_read(root):
    directory, descriptor = root
    (directory / "a" / "b").mkdir(parents=True)
    (directory / "a" / "b" / "text").write_text("content")
    (directory / "empty").write_bytes(b"")
    found = walk(descriptor, BOUNDS, overlay=False)
    assert set(found.files) == {"a/b/text", "empty"}
    assert found.directories == {"a": False, "a/b": False}
    assert found.refused == []
    content, stamp = read_file(descriptor, "a/b/text", BOUNDS)
    assert content == b"content"
    assert found.files["a/b/text"] == stamp
    assert stamp[1] == 7


def test_an_empty_directory_is_an_empty_walk(root):
    found = walk(root[1], BOUNDS, overlay=False)
    assert (found.files, found.directories, found.whiteouts, found.refused) == ({}, {}, set(), [])


def test_links_are_named_and_never_followed(root, tmp_path):
    directory, descriptor = root
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (directory / "file").symlink_to("/etc/passwd")
    (directory / "folder").symlink_to(tmp_path / "outside")
    (directory / "up").symlink_to("..")
    (directory / "self").symlink_to("self")
    found = walk(descriptor, BOUNDS, overlay=False)
    assert found.files == {}
    assert found.directories == {}
    assert refused(found) == dict.fromkeys(["file", "folder", "up", "self"], "it is a link")
    assert all(each.hides for each in found.refused)
    for path in ("file", "folder/secret", "up/outside/secret", "self", "../outside/secret", "/etc/passwd"):
        assert isinstance(read_file(descriptor, path, BOUNDS), Refused)


def test_pipes_sockets_and_devices_are_named_and_never_opened(root):
    directory, descriptor = root
    os.mkfifo(directory / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "socket"))
    found = walk(descriptor, BOUNDS, overlay=False)
    assert refused(found) == {"pipe": "it is a pipe", "socket": "it is a socket"}
    assert read_file(descriptor, "pipe", BOUNDS).reason == "it is a pipe"
    assert isinstance(read_file(descriptor, "socket", BOUNDS), Refused)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_a_removed_name_only_in_an_overlay(root):
    directory, descriptor = root
    os.mknod(directory / "gone", 0o600 | 0o020000, os.makedev(0, 0))
    os.mknod(directory / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    plain, overlay = (walk(descriptor, BOUNDS, overlay=each) for each in (False, True))
    assert refused(plain) == {"gone": "it is a device", "zero": "it is a device"}
    assert plain.whiteouts == set()
    assert refused(overlay) == {"zero": "it is a device"}
    assert overlay.whiteouts == {"gone"}
    assert read_file(descriptor, "zero", BOUNDS).reason == "it is a device"


def test_a_sparse_file_of_a_terabyte_is_named_and_not_read(root):
    directory, descriptor = root
    with (directory / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    found = walk(descriptor, BOUNDS, overlay=False)
    assert found.files == {}
    assert refused(found) == {"sparse": "it has 1,099,511,627,776 bytes, and 1,073,741,824 is the most"}
    small = WalkBounds(size=1 << 20)
    assert "is the most" in read_file(descriptor, "sparse", small).reason


def test_a_file_that_grows_while_it_is_read_ends_at_the_bound(root):
    directory, descriptor = root
    (directory / "file").write_bytes(bytes(101))
    assert "100 is the most" in read_file(descriptor, "file", WalkBounds(size=100)).reason
    (directory / "file").write_bytes(bytes(100))
    assert read_file(descriptor, "file", WalkBounds(size=100))[0] == bytes(100)


def test_more_names_than_the_bound_end_the_walk(root):
    directory, descriptor = root
    for number in range(300):
        (directory / str(number)).touch()
    assert len(walk(descriptor, WalkBounds(entries=300), overlay=False).files) == 300
    with pytest.raises(TooManyEntries, match="more than 299 files"):
        walk(descriptor, WalkBounds(entries=299), overlay=False)


def test_names_that_are_no_text_are_named_and_others_are_kept_as_they_are(root):
    directory, descriptor = root
    names = ["line\nend", "\x1b[31mred", "a" * 255, " ", "*", "é", "--help", "\\"]
    for name in names:
        (directory / name).touch()
    Path(os.fsdecode(os.fsencode(directory) + b"/\xff\xfe")).touch()
    found = walk(descriptor, BOUNDS, overlay=False)
    assert set(found.files) == set(names)
    assert refused(found) == {"\udcff\udcfe": "its name is not UTF-8"}


def test_a_tree_of_three_thousand_levels_is_cut_at_the_bound(root):
    directory, descriptor = root
    at = os.open(directory, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    found = walk(descriptor, BOUNDS, overlay=False)
    assert len(found.directories) == 63
    assert refused(found) == {"/".join(["d"] * 64): "more than 64 directories deep"}
    assert not found.refused[0].hides
    while (directory / "d" / "d").exists():  # level by level: shutil.rmtree would recurse
        (directory / "d" / "d").rename(directory / "rest")
        (directory / "d").rmdir()
        (directory / "rest").rename(directory / "d")


def test_a_path_that_is_too_long_is_named(root):
    directory, descriptor = root
    at = os.open(directory, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=at)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    found = walk(descriptor, BOUNDS, overlay=False)
    assert len(found.directories) == 16
    assert [each.reason for each in found.refused] == ["its path has more than 4,096 bytes"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every directory")
def test_a_directory_that_cannot_be_read_is_named(root):
    directory, descriptor = root
    (directory / "closed").mkdir(mode=0)
    assert "Permission denied" in refused(walk(descriptor, BOUNDS, overlay=False))["closed"]


def test_what_changes_its_kind_while_it_is_walked_is_never_followed(root, tmp_path):
    """Swap a file and a link to a secret, a directory and a link to its directory, as fast as possible."""
    directory, descriptor = root
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "inner").write_text("secret")
    (directory / "file").write_text("own")
    (directory / "file-link").symlink_to(outside / "inner")
    (directory / "folder").mkdir()
    (directory / "folder" / "inner").write_text("own")
    (directory / "folder-link").symlink_to(outside)
    done = threading.Event()

    def swap():
        while not done.is_set():
            for name in ("file", "folder"):
                os.rename(directory / name, directory / "other")
                os.rename(directory / f"{name}-link", directory / name)
                os.rename(directory / name, directory / f"{name}-link")
                os.rename(directory / "other", directory / name)

    swapping = threading.Thread(target=swap)
    swapping.start()
    contents = set()
    try:
        for _ in range(2000):
            found = walk(descriptor, BOUNDS, overlay=False)
            for path in {*found.files, "file", "folder/inner"}:
                read = read_file(descriptor, path, BOUNDS)
                contents.add(read.reason if isinstance(read, Refused) else read[0])
    finally:
        done.set()
        swapping.join()
    assert b"own" in contents
    assert contents <= {b"own", "it was replaced while it was read", "it is a link", "it is a directory"}
