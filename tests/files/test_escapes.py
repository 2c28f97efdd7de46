"""No path, link, other name or race leads out of a workspace.

Stopped by: files.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from agex.errors import DefinitionError
from agex.files import IsolatedFiles, connect_fs

SECRET = b"the host's own"


@pytest.fixture
def outside(tmp_path):
    """A directory with a secret, beside the root of the workspace."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret.txt").write_bytes(SECRET)
    return path


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "root"
    path.mkdir()
    return path


TRAVERSALS = [
    "../outside/secret.txt",
    "/../outside/secret.txt",
    "a/../../outside/secret.txt",
    "./.././outside/secret.txt",
    "//..//outside//secret.txt",
    "a/b/c/../../../../outside/secret.txt",
    "../" * 50 + "etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "///etc///passwd",
    "/etc/../etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/secret.txt",
    "/proc/self/fd/0",
    "/proc/1/root/etc/passwd",
    "/dev/stdin",
    "/dev/fd/0",
    "/sys/kernel/notes",
    "~/.ssh/id_rsa",
    "~root/.bashrc",
    "$HOME/.bashrc",
    "${HOME}/.bashrc",
    "file:///etc/passwd",
    "..\\outside\\secret.txt",
    "C:\\Windows\\win.ini",
    "\\\\host\\share\\x",
    "\uff0e\uff0e/outside/secret.txt",  # full width
    "\u2024\u2024/outside/secret.txt",  # one dot leaders
    "\u2025/outside/secret.txt",  # two dot leader
    "..\u2215outside\u2215secret.txt",  # division slash
    "..\uff0foutside\uff0fsecret.txt",  # full width slash
    "..%2foutside%2fsecret.txt",
    "%2e%2e/outside/secret.txt",
    "..%c0%afoutside%c0%afsecret.txt",
    "..;/outside/secret.txt",
    "\u202e../outside/secret.txt",  # right to left
    "\u200b../outside/secret.txt",  # zero width
    "..\u200b/outside/secret.txt",
    "\ufeff../outside/secret.txt",
    "... /outside/secret.txt",
    ".. /outside/secret.txt",
    " ../outside/secret.txt",
    "..\t/outside/secret.txt",
    "..\n/outside/secret.txt",
    "..\r/outside/secret.txt",
    "../outside/secret.txt\0.png",
    "\0/../outside/secret.txt",
    "\udc80/../../outside/secret.txt",
    "\udcff",
    "a" * 256 + "/../../outside/secret.txt",
    "a/" * 3000 + "../" * 3001 + "outside/secret.txt",
    "",
    ".",
    "..",
    "/",
    "//",
    "/..",
    "/.",
]
assert len(set(TRAVERSALS)) >= 55

LINKS = {
    "a link to a file": "secret-link",
    "a link to a directory": "directory-link/secret.txt",
    "a link through a link": "chained-link/secret.txt",
    "a link of a link to a file": "chained-secret",
    "a relative link": "relative-link/secret.txt",
    "a link to the root": "root-link/etc/passwd",
    "a link to proc": "proc-link/self/environ",
    "a link below a directory": "inner/link/secret.txt",
    "dots behind a link": "directory-link/../outside/secret.txt",
    "another name of the file": "hard-link.txt",
    "a pipe": "pipe",
    "a socket": "socket",
    "a link to the workspace itself": "loop/loop/loop/secret-link",
}


@pytest.fixture
def planted(root, outside, monkeypatch):
    """A root in which somebody has left every kind of link."""
    (root / "inner").mkdir()
    (root / "secret-link").symlink_to(outside / "secret.txt")
    (root / "directory-link").symlink_to(outside)
    (root / "chained-link").symlink_to(root / "directory-link")
    (root / "chained-secret").symlink_to(root / "secret-link")
    (root / "relative-link").symlink_to("../outside")
    (root / "root-link").symlink_to("/")
    (root / "proc-link").symlink_to("/proc")
    (root / "inner" / "link").symlink_to("../../outside")
    (root / "loop").symlink_to(".")
    (root / "hard-link.txt").hardlink_to(outside / "secret.txt")
    os.mkfifo(root / "pipe")
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(root)  # a path of a socket is short
    server.bind("socket")
    yield IsolatedFiles(root)
    server.close()


def attempts(files, path):
    """Try all that can be done with a path; return what was read."""
    got = []
    for attempt in (
        lambda: files.read(path),
        lambda: files.open(path, "rb").read(),
        lambda: files.list(path),
        lambda: files.write(path, b"overwritten"),
        lambda: files.write(path, b"appended", "a"),
        lambda: files.truncate(path, 0),
        lambda: files.utime(path, (0.0, 0.0)),
        lambda: files.chmod(path, 0o777),
        lambda: files.rename(path, "/taken"),
        lambda: files.read("/taken"),
        lambda: files.rmdir(path),
        lambda: files.mkdir(path + "/new", parents=True),
        lambda: files.remove(path),
    ):
        try:
            got.append(attempt())
        except (OSError, ValueError):
            got.append(None)
    return got


@pytest.mark.parametrize("path", TRAVERSALS, ids=lambda path: ascii(path)[:40])
def test_no_path_leads_out_of_a_directory(path, root, outside):
    passwd = Path("/etc/passwd").read_bytes()
    got = attempts(IsolatedFiles(root), path)
    assert SECRET not in got
    assert passwd not in got
    assert (outside / "secret.txt").read_bytes() == SECRET
    assert sorted(each.name for each in outside.iterdir()) == ["secret.txt"]
    assert Path("/etc/passwd").read_bytes() == passwd


@pytest.mark.parametrize("path", TRAVERSALS, ids=lambda path: ascii(path)[:40])
def test_no_path_leads_out_of_a_virtual_workspace(path, outside, monkeypatch):
    monkeypatch.chdir(outside)
    assert SECRET not in attempts(connect_fs().files, path)
    assert (outside / "secret.txt").read_bytes() == SECRET


@pytest.mark.parametrize("path", LINKS.values(), ids=LINKS)
def test_no_link_is_followed(path, planted, outside):
    got = attempts(planted, path)
    assert SECRET not in got
    assert (outside / "secret.txt").read_bytes() == SECRET
    assert (outside / "secret.txt").stat().st_mtime > 1
    assert sorted(each.name for each in outside.iterdir()) == ["secret.txt"]


@pytest.mark.parametrize("path", ["secret-link", "directory-link/secret.txt", "hard-link.txt", "pipe"])
def test_reading_through_a_link_is_refused_and_says_why(path, planted):
    with pytest.raises(PermissionError, match="links and devices of the host"):
        planted.read(path)


def test_walking_a_tree_does_not_follow_links(planted):
    assert not any("secret.txt" in path for path in planted.list("/", True))
    assert not any("secret.txt" in path for path in planted.glob("**/*.txt"))


def test_a_guest_cannot_make_links(root):
    files = IsolatedFiles(root)
    for make in (files.symlink, files.link):
        with pytest.raises(PermissionError):
            make("/etc/passwd", "stolen")
    assert list(root.iterdir()) == []


def test_a_directory_that_turns_into_a_link_while_it_is_walked_is_not_followed(root, outside):
    """Two threads turn a directory into a link and back as fast as they can, while others read and write."""
    files = IsolatedFiles(root)
    (root / "real").mkdir()
    (root / "real" / "secret.txt").write_bytes(b"inside")
    got: set[bytes] = set()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "real").rename(root / "aside")
            with contextlib.suppress(FileExistsError):
                (root / "real").symlink_to(outside)
                (root / "real").unlink()
            while (root / "aside").exists():
                with contextlib.suppress(OSError):  # a write has made a directory of that name meanwhile
                    shutil.rmtree(root / "real", ignore_errors=True)
                    (root / "aside").rename(root / "real")

    def read() -> None:
        for _ in range(3_000):
            try:
                got.add(files.read("real/secret.txt"))
                files.truncate("real/secret.txt", 6)
                files.mkdir("real/new")
            except OSError:
                pass

    swapper = threading.Thread(target=swap)
    readers = [threading.Thread(target=read) for _ in range(3)]
    swapper.start()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    stop.set()
    swapper.join()
    assert got <= {b"inside"}
    assert sorted(each.name for each in outside.iterdir()) == ["secret.txt"]


def test_a_file_that_turns_into_a_link_while_it_is_opened_is_not_followed(root, outside):
    files = IsolatedFiles(root)
    (root / "file").write_bytes(b"inside")
    got: set[bytes] = set()
    stop = threading.Event()

    def swap() -> None:
        (root / "link").symlink_to(outside / "secret.txt")
        (root / "plain").write_bytes(b"inside")
        while not stop.is_set():
            (root / "link").rename(root / "file")
            (root / "link").symlink_to(outside / "secret.txt")
            (root / "plain").rename(root / "file")
            (root / "plain").write_bytes(b"inside")

    swapper = threading.Thread(target=swap)
    swapper.start()
    for _ in range(5_000):
        try:
            got.add(files.read("file"))
            files.write("file", b"inside")
        except OSError:
            pass
    stop.set()
    swapper.join()
    assert got <= {b"inside", b""}  # empty: between the making of a file and its writing
    assert (outside / "secret.txt").read_bytes() == SECRET


def test_a_root_that_is_replaced_later_is_still_the_one_that_was_opened(root, outside):
    files = IsolatedFiles(root)
    files.write("a.txt", b"1")
    root.rename(root.with_name("moved"))
    root.symlink_to(outside)
    assert files.list("/") == ["a.txt"]
    with pytest.raises(FileNotFoundError):
        files.read("secret.txt")


def test_a_write_replaces_a_file_at_once_and_keeps_its_permissions(root):
    (root / "a.sh").write_bytes(b"old")
    (root / "a.sh").chmod(0o750)
    IsolatedFiles(root).write("a.sh", b"new")
    assert (root / "a.sh").read_bytes() == b"new"
    assert (root / "a.sh").stat().st_mode & 0o777 == 0o750
    assert [each.name for each in root.iterdir()] == ["a.sh"]


def test_a_missing_root_is_refused():
    with pytest.raises(DefinitionError, match="No such file"):
        connect_fs(type="isolated", root="/no/such/directory")


@pytest.mark.parametrize(
    "settings", [{"type": "isolated"}, {"root": "/"}, {"type": "isolated", "root": "/", "max_size_mb": 0}]
)
def test_settings_of_the_other_kind_are_refused(settings):
    with pytest.raises(DefinitionError):
        connect_fs(**settings)
