"""Lower directories: the files of a workspace on the host's disk, shared by the workers that begin with them.

A directory is filled once and never changed: it has a name of its own, and goes when no worker has it and
others are wanted more. They lie in one directory that this user alone can enter. A process that was killed
leaves it behind; the next one removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import stat
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from agex.files.file_tree import FileTree, Revision
from agex.isolation.lockdown.namespaces import NOBODY
from agex.isolation.wire.process_identity import has_ended, this_process

__all__ = [
    "EMPTY", "LowerDirectories", "LowerDirectory", "fill", "lowers", "modified_at", "new_directory",
    "remove_directory",
    "remove_own",
]  # fmt: skip

_PREFIX = "agex-workspaces-"
_UNUSED = 4
"""Directories that are kept although no worker has them: the next task begins where the last one did."""
_UNUSED_BYTES = 1 << 30
_DIFFERENCES = 64
"""Files that may differ for a directory to serve; a worker is sent the others when it starts."""


@dataclass(eq=False)
class LowerDirectory:
    """One directory, filled once.

    Attributes:
        path: of it; empty for no files.
        stamps: of what is in it, by path, as the workspace had them.
        directories: all paths of directories in it.
    """

    path: str = ""
    stamps: Mapping[str, object] = field(default_factory=dict)
    origin: Callable[[], object] = field(default=lambda: None)
    mounts: tuple[tuple[str, FileTree], ...] = ()
    version: int | None = None
    size: int = 0
    users: int = 0

    def __post_init__(self) -> None:
        self.directories = _directories(self.stamps)

    @functools.cached_property
    def ordered(self) -> list[str]:
        """All paths, sorted; those of directories without a slash."""
        return sorted({path.rstrip("/") for path in self.stamps} | self.directories)


def _directories(stamps: Mapping[str, object]) -> set[str]:
    found: set[str] = set()
    for path in stamps:
        above = path[:-1] if path.endswith("/") else path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


EMPTY = LowerDirectory()
"""The lower directory of no files, which no directory of the host is needed for."""


class LowerDirectories:
    """The lower directories of this process. Safe to share between threads."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Know of none: in a forked process, which has those of its parent no more."""
        self._lock = threading.Lock()
        self._made: list[LowerDirectory] = []

    def lease(self, tree: FileTree) -> LowerDirectory:
        """Return a directory with the files of a workspace, or most of them, until it is given back."""
        revision = tree.revision()
        with self._lock:
            found = self._exactly(revision)
            if found is not None:
                found.users += 1
                return found
        stamps = tree.stamps()
        if not stamps:
            return EMPTY
        with self._lock:
            near = self._near(revision, stamps)
            if near is not None:
                near.users += 1
                return near
        made = _made(tree, revision, stamps)
        with self._lock:
            self._made.append(made)
            self._trim()
        return made

    def _exactly(self, revision: Revision) -> LowerDirectory | None:
        if revision.version is None:
            return None
        for each in reversed(self._made):
            if each.version == revision.version and _is_of(each, revision):
                return each
        return None

    def _near(self, revision: Revision, stamps: Mapping[str, object]) -> LowerDirectory | None:
        for each in reversed(self._made):
            if _is_of(each, revision) and _differences(each.stamps, stamps) <= min(
                _DIFFERENCES, len(stamps) // 2
            ):
                return each
        return None

    def held(self) -> tuple[LowerDirectory, ...]:
        """Return all that there are."""
        with self._lock:
            return tuple(self._made)

    def give_back(self, lower: LowerDirectory) -> None:
        """Take note that a worker has a directory no more."""
        if lower is EMPTY:
            return
        with self._lock:
            lower.users -= 1
            self._trim()

    def _trim(self) -> None:
        unused = sorted(
            (each for each in self._made if not each.users), key=lambda each: each.origin() is not None
        )
        while unused and (
            unused[0].origin() is None
            or len(unused) > _UNUSED
            or sum(each.size for each in unused) > _UNUSED_BYTES
        ):
            gone = unused.pop(0)
            self._made.remove(gone)
            remove_directory(Path(gone.path))


lowers = LowerDirectories()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lowers.reset)


def _is_of(lower: LowerDirectory, revision: Revision) -> bool:
    return lower.origin() == revision.origin and lower.mounts == revision.mounts


def _differences(some: Mapping[str, object], others: Mapping[str, object]) -> int:
    missing = object()
    changed = sum(1 for path, stamp in others.items() if some.get(path, missing) != stamp)
    return changed + sum(1 for path in some if path not in others)


def _made(tree: FileTree, revision: Revision, stamps: Mapping[str, object]) -> LowerDirectory:
    directory = new_directory()
    size, refused = fill(directory, tree, stamps)
    return LowerDirectory(
        path=str(directory),
        stamps={path: stamp for path, stamp in stamps.items() if path not in refused},
        origin=_reference(revision.origin),
        mounts=revision.mounts,
        version=None if refused else revision.version,
        size=size,
        users=1,
    )


def _reference(origin: object) -> Callable[[], object]:
    """Return what gives the origin as long as others hold it: a space has a store, which is to be closed."""
    try:
        return weakref.ref(origin)
    except TypeError:  # the numbers of a real directory
        return lambda: origin


def fill(directory: Path, tree: FileTree, stamps: Mapping[str, object]) -> tuple[int, set[str]]:
    """Write the files of a workspace into an empty directory, for everybody to write.

    Returns:
        The bytes, and the paths that this file system cannot have.
    """
    size, refused, made = 0, set[str](), {""}
    for path in sorted(stamps):
        above = path[:-1] if path.endswith("/") else path.rpartition("/")[0]
        try:
            _make_directories(str(directory), above, made)
            if not path.endswith("/"):
                size += _write(f"{directory}/{path}", tree.read(f"/{path}"), modified_at(tree, path))
        except (OSError, ValueError):  # a long name, or no room: the worker is sent it, or told why not
            refused.add(path)
    return size, refused


def modified_at(tree: FileTree, path: str) -> float:
    """Return when a file was last written, in seconds since the epoch."""
    return datetime.fromisoformat(tree.stat(f"/{path}").modified_at).timestamp()


def _make_directories(directory: str, path: str, made: set[str]) -> None:
    if path in made:
        return
    _make_directories(directory, path.rpartition("/")[0], made)
    place = f"{directory}/{path}"
    os.mkdir(place)  # noqa: PTH102 - ten thousand times
    os.chmod(place, 0o777)  # noqa: PTH101, S103 - below a directory that only this user enters
    _hand_over(place)
    made.add(path)


def _write(place: str, content: bytes, modified: float) -> int:
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fchmod(descriptor, 0o666)
        if os.geteuid() == 0:
            os.fchown(descriptor, NOBODY, NOBODY)
        os.utime(descriptor, (modified, modified))
    finally:
        os.close(descriptor)
    return len(content)


def _hand_over(place: str | Path) -> None:
    """Make the worker's user the owner: only an owner may set times and modes."""
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY, follow_symlinks=False)


# -- the directory that they lie in ------------------------------------------------------------------

_base_lock = threading.Lock()
_bases: dict[int, Path] = {}
"""The directory of this process, by its number: a forked one has another."""


def new_directory() -> Path:
    """Return a new, empty directory that everybody may write in, and nobody else can reach.

    It is removed when this process ends, or when another one sees that it has ended.
    """
    with _base_lock:
        base = _bases.get(os.getpid())
        if base is None or not base.is_dir():
            _remove_left_behind()
            base = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{this_process()}-"))
            _bases[os.getpid()] = base
            atexit.register(remove_own, os.getpid(), base)
    directory = Path(tempfile.mkdtemp(prefix="w-", dir=base))
    directory.chmod(0o777)
    _hand_over(directory)
    return directory


def remove_own(process: int, base: Path) -> None:
    """Remove a directory of a process, unless this is one that was forked from it."""
    if os.getpid() == process:
        remove_directory(base)


def _remove_left_behind() -> None:
    """Remove the directories of processes of this user that have ended."""
    for each in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        about = each.lstat()
        identity = each.name.removeprefix(_PREFIX).rpartition("-")[0]
        if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and has_ended(identity):
            remove_directory(each)


def remove_directory(path: Path) -> None:
    """Remove a directory with all in it, whatever a worker made of it; links are not followed."""
    with contextlib.suppress(OSError):  # others remove it, too; what is left goes with the next process
        shutil.rmtree(path)
