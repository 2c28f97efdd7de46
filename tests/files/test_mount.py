"""What is mounted into a workspace can be read, and by nobody changed."""

from __future__ import annotations

import pytest

from agex.files import MemorySpace, MountedFiles, VirtualFiles, WatchedFiles


@pytest.fixture
def tree():
    skill = VirtualFiles(MemorySpace())
    skill.write("/SKILL.md", b"read me")
    skill.write("/more/a.txt", b"a")
    base = VirtualFiles(MemorySpace())
    base.write("/own.txt", b"own")
    return MountedFiles(base, {"/skills/one": skill})


def test_it_is_read_and_listed_like_any_directory(tree):
    assert tree.read("/skills/one/SKILL.md") == b"read me"
    assert tree.list("/") == ["own.txt", "skills"]
    assert tree.list("/skills") == ["one"]
    assert tree.list("/", True) == [
        "own.txt", "skills", "skills/one", "skills/one/SKILL.md", "skills/one/more", "skills/one/more/a.txt"
    ]  # fmt: skip
    assert tree.glob("/skills/**/*.txt") == ["/skills/one/more/a.txt"]
    assert tree.isdir("/skills")


CHANGES = {
    "write": lambda t: t.write("/skills/one/SKILL.md", b"x"),
    "write by dots": lambda t: t.write("/a/../skills/one/SKILL.md", b"x"),
    "write a new one": lambda t: t.write("/skills/one/new", b"x"),
    "write over the directory": lambda t: t.write("/skills", b"x"),
    "append": lambda t: t.write("/skills/one/SKILL.md", b"x", "a"),
    "remove": lambda t: t.remove("/skills/one/SKILL.md"),
    "rmdir": lambda t: t.rmdir("/skills/one/more"),
    "rmdir the mount": lambda t: t.rmdir("/skills/one"),
    "mkdir": lambda t: t.mkdir("/skills/one/d"),
    "move away": lambda t: t.rename("/skills/one/SKILL.md", "/a"),
    "move in": lambda t: t.rename("/own.txt", "/skills/one/a"),
    "move the mount": lambda t: t.rename("/skills", "/b"),
    "move over it": lambda t: t.rename("/own.txt", "/skills"),
    "truncate": lambda t: t.truncate("/skills/one/SKILL.md", 0),
    "time": lambda t: t.utime("/skills/one/SKILL.md", (0.0, 0.0)),
    "open": lambda t: t.open("/skills/one/SKILL.md", "w").write("x"),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_cannot_be_changed(change, tree):
    with pytest.raises(OSError, match=r".") as refused:
        change(tree)
    assert refused.value.errno is not None
    assert tree.read("/skills/one/SKILL.md") == b"read me"
    assert tree.read("/own.txt") == b"own"


def test_what_is_changed_is_remembered_until_it_is_taken():
    files = WatchedFiles(VirtualFiles(MemorySpace()))
    files.write("/a", b"1")
    files.write("/d/b", b"1")
    files.write("/same", b"1")
    assert vars(files.take_changes()) == {"added": ("a", "d/b", "same"), "modified": (), "removed": ()}
    files.write("/a", b"2")
    files.rename("/d", "/e")
    files.write("/same", b"1")
    files.write("/passing", b"")
    files.remove("/passing")
    assert vars(files.take_changes()) == {"added": ("e/b",), "modified": ("a",), "removed": ("d/b",)}
    assert not files.take_changes()
