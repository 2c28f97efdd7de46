"""The conformance kits of the libraries whose protocol a workspace speaks, and our own."""

from __future__ import annotations

import monkeyfs
import pytest
import termish.fs

from agex.files import FileTree, IsolatedFiles, MemorySpace, MountedFiles, VirtualFiles, WatchedFiles
from agex.testing import check_filesystem

pytestmark = pytest.mark.usefixtures("originals_back")


def test_monkeyfs_own_kit_passes(files):
    monkeyfs.check_filesystem(files)


def test_termish_own_kit_passes(files):
    termish.fs.check_filesystem(files)


def test_our_own_kit_passes(files):
    check_filesystem(files)
    assert files.list("/") == []


def test_the_kits_pass_beside_what_is_mounted_and_while_it_is_watched():
    mounted = VirtualFiles(MemorySpace())
    mounted.write("/SKILL.md", b"x")
    files = WatchedFiles(MountedFiles(VirtualFiles(MemorySpace()), {"/skills/one": mounted}))
    check_filesystem(files)
    assert files.list("/") == ["skills"]


class _Leaky(VirtualFiles):
    """Forgets to refuse a link."""

    def symlink(self, src, dst):  # type: ignore[override]
        self.write(dst, src.encode())


class _Careless(IsolatedFiles):
    """Loses the file of a move that fails."""

    def rename(self, src, dst):
        if not self.isdir(dst.rpartition("/")[0]):
            self.remove(src)
        super().rename(src, dst)


def broken(kind: str, tmp_path) -> FileTree:
    return _Leaky(MemorySpace()) if kind == "leaky" else _Careless(tmp_path)


@pytest.mark.parametrize("kind", ["leaky", "careless"])
def test_our_own_kit_finds_what_is_wrong(kind, tmp_path):
    with pytest.raises((AssertionError, FileNotFoundError), match=r"link|kept"):
        check_filesystem(broken(kind, tmp_path))
