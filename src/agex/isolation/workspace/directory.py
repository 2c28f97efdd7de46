"""One worker's directory as the host sees it: what the worker is sent, and what it changed.

After each action the changes of the directory become changes of the workspace, and through it of the next
commit. Before each action the worker is sent what the host changed meanwhile. Both cost what was changed, not
what is there. A worker that is killed takes along what its action wrote, as it does with variables.
"""

from __future__ import annotations

import bisect
import contextvars
import hashlib
import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from monkeyfs import suspend

from agex import escaping
from agex.files.file_tree import FileTree
from agex.isolation.workspace.lower import (
    EMPTY,
    LowerDirectory,
    fill,
    lowers,
    modified_at,
    new_directory,
    remove_own,
)
from agex.isolation.workspace.process_control import ProcessControl
from agex.isolation.workspace.report import read_report
from agex.isolation.workspace.walk import (
    FileStamp,
    Refused,
    TooManyEntries,
    Walk,
    WalkBounds,
    read_file,
    walk,
)

__all__ = [
    "OverlayDirectory",
    "PlainDirectory",
    "ReportedDirectory",
    "Send",
    "WorkerDirectory",
    "scratch",
    "workspace_path",
]

Send: TypeAlias = Callable[[Sequence[tuple[str, str, float]], Sequence[bytes]], Sequence[tuple[str, str]]]
"""Sends a worker changes of files; returns the paths that it could not change, each with the reason."""

Ask: TypeAlias = Callable[[Mapping[str, Any]], Sequence[memoryview]]
"""Asks a worker to report its files; returns the parts of the report."""

_ABSENT = object()
_SETTLED_NS = 50_000_000
"""Age from which a file's times tell of another write: clocks of file systems tick every few milliseconds."""
_PATHS = ("/workspace", "/agex-workspace", "/agents-workspace")
_SIZE_MB = 1024
"""MiB of changes without a limit of the workspace: they are in memory, so there must be one."""
TEMPORARY_MB = 256
"""MiB of temporary files."""
_ENTRIES = 20_000
"""Files and directories that one worker may make or change."""
_AT_ONCE = 500
_BYTES_AT_ONCE = 64 << 20
_REMEMBERED = 10_000
_NAMED = 10
"""Files that the agent is told of by name after one action."""


@dataclass(frozen=True)
class _Seen:
    """A file of the worker's directory, as it was collected."""

    stamp: FileStamp | None
    """None if it has to be looked at again."""
    digest: bytes = b""


@dataclass
class _Known:
    """The findings of the last walk, with what the worker was sent since."""

    files: dict[str, _Seen] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    hiding: set[str] = field(default_factory=set)
    """Paths that hide what the lower directory has there and below."""


class WorkerDirectory:
    """The directory of one worker, over a workspace.

    Args:
        tree: the workspace. It is changed by `collect`, and by nothing that the worker does by itself.

    Attributes:
        order: how the worker makes the directory its own.
    """

    overlay: ClassVar[bool]
    order: Mapping[str, Any]

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._lower: LowerDirectory = EMPTY
        most = tree.max_bytes()
        self._size_mb = _SIZE_MB if most is None else max(1, -(-most // (1 << 20)))
        self._bounds = WalkBounds(entries=_ENTRIES, size=self._size_mb << 20)
        self._descriptor = -1
        self._own: dict[str, object] = {}
        """Stamps of the workspace's files that the worker has and the lower directory has not, by path."""
        self._known = _Known()
        self._mark: object = None
        """The workspace's revision that the worker has everything of."""
        self._expected: object = None
        self._told: set[tuple[str, str]] = set()
        self._problems: list[tuple[str, str]] = []
        self._undo: list[Callable[[], None]] = []
        """Calls that take back the changes of the last collection, in their order."""
        self._was_mapped = False
        self._process: ProcessControl | None = None
        self._ends: list[weakref.finalize[..., Any]] = []

    @property
    def size_mb(self) -> int:
        """MiB that all changes may take."""
        return self._size_mb

    def attach(self, pidfd: int, descriptor: int) -> None:
        """Take note of the worker's process, and own the descriptor of its directory from now on."""
        self._process = ProcessControl(pidfd)
        self._ends.append(_at_end(self, self._process.close))
        self._look_at(descriptor)

    def _look_at(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._ends.append(_at_end(self, os.close, descriptor))

    def close(self) -> None:
        """Let the directory go: its worker has ended."""
        for end in self._ends:
            end()

    def go_on(self) -> bool:
        """Let the worker go on if it stands; return whether it did."""
        return self._process is not None and self._process.go_on()

    def stand(self) -> None:
        """Let the worker stand still, soon."""
        if self._process is not None:
            self._process.stop(wait=False)

    def _now(self) -> object:
        return self._tree.revision(), self._tree.writes

    # -- what the host changed -------------------------------------------------------------------------

    def push(self, send: Send) -> list[str]:
        """Send the worker what the host changed; return what to tell the agent of it."""
        self._undo = []  # the action before has ended well
        with suspend():
            now = self._now()
            if now == self._mark:
                return []
            self._problems = []
            stamps = self._tree.stamps()
            gone = sorted((path for path in self._held() if path not in stamps), reverse=True)
            for some in _in_pieces(gone):
                self._send(send, [("remove", path, 0.0) for path in some], [])
                self._own |= dict.fromkeys(some, _ABSENT)
            self._push_new(send, stamps)
            self._mark = now
            return self._notes("not in the working directory")

    def _held(self) -> Iterator[str]:
        """Yield the paths that the worker has."""
        yield from (path for path, stamp in self._own.items() if stamp is not _ABSENT)
        yield from (path for path in self._lower.stamps if path not in self._own)

    def _stamp(self, path: str) -> object:
        """Return the stamp of what the worker has at a path."""
        found = self._own.get(path, self)
        return self._lower.stamps.get(path, _ABSENT) if found is self else found

    def _push_new(self, send: Send, stamps: Mapping[str, object]) -> None:
        operations: list[tuple[str, str, float]] = []
        contents: list[bytes] = []
        for path in sorted(stamps):
            if self._stamp(path) == stamps[path]:
                continue
            self._own[path] = stamps[path]
            if path.endswith("/"):
                operations.append(("directory", path.rstrip("/"), 0.0))
                continue
            content = self._tree.read(f"/{path}")
            known = self._known.files.get(path)
            if known is not None and known.digest == _digest(content):
                continue  # the worker wrote it
            operations.append(("file", path, modified_at(self._tree, path)))
            contents.append(content)
            if len(operations) >= _AT_ONCE or sum(map(len, contents)) > _BYTES_AT_ONCE:
                self._send(send, operations, contents)
                operations, contents = [], []
        self._send(send, operations, contents)

    def _send(self, send: Send, operations: list[tuple[str, str, float]], contents: list[bytes]) -> None:
        if not operations:
            return
        failed = dict(send(operations, contents))
        self._problems += failed.items()
        left = iter(contents)
        for kind, path, _ in operations:
            content = next(left) if kind == "file" else b""
            if path in failed:
                continue
            if kind == "file":
                self._known.files[path] = _Seen(None, _digest(content))
            elif kind == "directory":
                self._known.directories.add(path)

    # -- what the worker changed -----------------------------------------------------------------------

    def collect(self, ask: Ask) -> list[str]:
        """Take over what the worker changed, and return what to tell the agent of it.

        Args:
            ask: asks the worker to report its files, where the host does not see them.

        Raises:
            TimeoutError: the worker does not stop.
        """
        with suspend():
            self._problems = []
            try:
                found = self._look(ask)
            except TooManyEntries as error:
                return [f"Note: nothing that was changed in the working directory was kept: {error}."]
            self._expected = self._now()
            is_same = self._expected == self._mark
            self._take_all(found, again=self._is_to_be_read())
            self._mark = self._expected if is_same and self._expected == self._now() else None
            self._problems += sorted((each.path, each.reason) for each in found.refused)
            return self._notes("not kept in the workspace")

    def take_back(self) -> None:
        """Take back what the last collection changed: the rest of its action is lost."""
        undo, self._undo = self._undo, []
        with suspend():
            for change in reversed(undo):
                change()

    def _look(self, _ask: Ask) -> Walk:
        """Stop the worker, and return what is in its directory."""
        assert self._process is not None, "a worker was started"
        self._process.stop()
        return walk(self._descriptor, self._bounds, overlay=self.overlay)

    def _is_to_be_read(self) -> bool:
        """Return whether the times of files do not tell which of them changed."""
        assert self._process is not None, "a worker was started"
        is_mapped = bool(self._known.files) and self._process.may_write_mapped()
        was_mapped, self._was_mapped = self._was_mapped, is_mapped
        return is_mapped or was_mapped

    def _read(self, path: str) -> tuple[bytes, FileStamp] | Refused:
        return read_file(self._descriptor, path, self._bounds)

    def _settled(self, stamp: FileStamp) -> FileStamp | None:
        """Return the stamp of a file if any later write is to change it."""
        return stamp if time.time_ns() - max(stamp[2:]) > _SETTLED_NS else None

    def _take_all(self, found: Walk, *, again: bool) -> None:
        """Carry out on the workspace what a walk found: first what went, then what came."""
        hiding = self._hiding(found)
        kept = tuple(each.path for each in found.refused if not each.hides)
        gone = {path for path in self._known.files if path not in found.files}
        gone |= {path for path in self._known.directories if path not in found.directories}
        for path in hiding - self._known.hiding:
            gone |= set(self._below(path))
        for path in sorted(gone, reverse=True):
            if path in found.files:
                went = self._tree.isdir(f"/{path}")
            elif path in found.directories:
                went = self._tree.isfile(f"/{path}")
            else:
                went = not _is_at_or_below(path, kept) and self._is_gone(path, hiding)
            if went:
                self._remove(path)
        for path in sorted(found.directories):
            self._make(path)
        files = {path: self._taken(path, stamp, again=again) for path, stamp in found.files.items()}
        if kept:
            files |= {path: seen for path, seen in self._known.files.items() if _is_at_or_below(path, kept)}
        directories = {path for path in self._known.directories if kept and _is_at_or_below(path, kept)}
        self._known = _Known(files, directories | found.directories.keys(), hiding)

    def _hiding(self, found: Walk) -> set[str]:
        """Return the paths that hide what the lower directory has there and below."""
        hiding = set(found.whiteouts)
        hiding |= {path for path, opaque in found.directories.items() if opaque}
        hiding |= {each.path for each in found.refused if each.hides}
        return hiding | (found.files.keys() & self._lower.directories)

    def _below(self, path: str) -> Iterator[str]:
        """Yield the paths of the lower directory at a path and below it."""
        ordered = self._lower.ordered
        if path in self._lower.stamps or path in self._lower.directories:
            yield path
        at = bisect.bisect_left(ordered, f"{path}/")
        while at < len(ordered) and ordered[at].startswith(f"{path}/"):
            yield ordered[at]
            at += 1

    def _is_gone(self, path: str, hiding: set[str]) -> bool:
        """Return whether a path that is not in the walk is not in the lower directory either."""
        if path not in self._lower.stamps and path not in self._lower.directories:
            return True
        parts = path.split("/")
        return any("/".join(parts[:depth]) in hiding for depth in range(1, len(parts) + 1))

    def _remove(self, path: str) -> None:
        place = f"/{path}"
        if self._tree.isdir(place):
            if self._do(path, self._tree.rmdir, place):
                self._undo.append(partial(self._tree.mkdir, place, parents=True, exist_ok=True))
            self._own[f"{path}/"] = _ABSENT
        elif self._tree.isfile(place):
            former = self._tree.read(place), modified_at(self._tree, path)
            if self._do(path, self._tree.remove, place):
                self._undo.append(partial(self._restore, place, *former))
        self._own[path] = _ABSENT

    def _make(self, path: str) -> None:
        if path not in self._known.directories and not self._tree.isdir(f"/{path}"):
            if self._do(path, self._tree.mkdir, f"/{path}"):
                self._undo.append(partial(self._tree.rmdir, f"/{path}"))
            self._own[f"{path}/"] = None

    def _taken(self, path: str, stamp: FileStamp, *, again: bool) -> _Seen:
        """Take a file over, if it is another than it was."""
        known = self._known.files.get(path)
        if known is not None and known.stamp == stamp and not again:
            return known
        read = self._read(path)
        if isinstance(read, Refused):
            self._problems.append((path, read.reason))
            return known or _Seen(None)
        content, stamp = read
        seen = _Seen(self._settled(stamp), _digest(content))
        if known is not None and known.digest == seen.digest:
            return seen
        if known is None and self._has(path, content):
            return seen
        place, at = f"/{path}", stamp[2] / 1e9
        undo = partial(self._tree.remove, place)
        if self._tree.isfile(place):
            undo = partial(self._restore, place, self._tree.read(place), modified_at(self._tree, path))
        if self._do(path, self._tree.write, place, content):
            self._undo.append(undo)
            self._do(path, self._tree.utime, place, (at, at))
            self._own[path] = self._tree.stamp(path)
            return seen
        return _Seen(None)

    def _restore(self, place: str, content: bytes, modified: float) -> None:
        self._tree.write(place, content)
        self._tree.utime(place, (modified, modified))

    def _has(self, path: str, content: bytes) -> bool:
        """Return whether the workspace has a file of this content."""
        tree, place = self._tree, f"/{path}"
        return tree.isfile(place) and tree.getsize(place) == len(content) and tree.read(place) == content

    def _do(self, path: str, change: Callable[..., None], *args: Any) -> bool:
        """Change the workspace; a refusal is told to the agent. Note whether others changed it, too."""
        before = self._now()
        try:
            change(*args)
        except OSError as error:
            self._problems.append((path, error.strerror or str(error)))
            return False
        finally:
            if before == self._expected:
                self._expected = self._now()
        return True

    def _notes(self, what: str) -> list[str]:
        """Return a line on the files that were refused since the last time."""
        new = [each for each in dict.fromkeys(self._problems) if each not in self._told]
        self._told = self._told | set(new) if len(self._told) < _REMEMBERED else set(new)
        if not new:
            return []
        named = [f"{escaping.line(path[-200:])} ({reason})" for path, reason in new[:_NAMED]]
        more = f", and {len(new) - _NAMED:,} more" if len(new) > _NAMED else ""
        return [f"Note: {what}: {', '.join(named)}{more}."]


class OverlayDirectory(WorkerDirectory):
    """An overlay over a lower directory, with all changes in memory. See `lockdown.own_directory`.

    Args:
        tree: the workspace.
        path: the directory's path in the worker.
    """

    overlay = True

    def __init__(self, tree: FileTree, path: str) -> None:
        super().__init__(tree)
        with suspend():
            mark, version = self._now(), tree.revision().version
            self._lower = lowers.lease(tree)
            self._mark = mark if version is not None and version == self._lower.version else None
        self._ends.append(_at_end(self, lowers.give_back, self._lower))
        self.order = {**scratch(path), "lower": self._lower.path, "size_mb": self._size_mb}


class ReportedDirectory(WorkerDirectory):
    """A directory in a container, filled over the wire and reported by the worker.

    Args:
        tree: the workspace.
        path: the directory's path in the worker.
    """

    overlay = False

    def __init__(self, tree: FileTree, path: str) -> None:
        super().__init__(tree)
        with suspend():
            self._bounds = replace(self._bounds, entries=len(tree.stamps()) + _ENTRIES)
        self.order = {"path": path}
        self._changed: dict[str, tuple[bytes, int]] = {}

    def _look(self, ask: Ask) -> Walk:
        bounds = {"entries": self._bounds.entries, "size": self._bounds.size}
        found, self._changed = read_report(ask(bounds), self._bounds)
        return found

    def _is_to_be_read(self) -> bool:
        return False

    def _settled(self, stamp: FileStamp) -> FileStamp | None:
        return (*stamp[:2], 0, 0)

    def _read(self, path: str) -> tuple[bytes, FileStamp] | Refused:
        if path not in self._changed:
            return Refused(path, "the worker did not send it")
        content, modified = self._changed.pop(path)
        return content, (int.from_bytes(_digest(content), "big"), len(content), modified, 0)


def workspace_path(readable: Sequence[str]) -> str:
    """Return the path of the workspace in a worker: one that hides nothing of the folders that it reads."""
    return next(path for path in _PATHS if not any(f"{each}/".startswith(f"{path}/") for each in readable))


def scratch(path: str) -> dict[str, Any]:
    """Return the order for an empty overlay that nobody collects."""
    return {
        "path": path,
        "lower": "",
        "size_mb": _SIZE_MB,
        "entries": _ENTRIES,
        "temporary_mb": TEMPORARY_MB,
    }


class PlainDirectory(WorkerDirectory):
    """A directory of the host, filled for one worker and removed with it: nothing confines it.

    Args:
        tree: the workspace.
    """

    overlay = False

    def __init__(self, tree: FileTree) -> None:
        super().__init__(tree)
        with suspend():
            directory = new_directory()
            self._ends.append(_at_end(self, remove_own, os.getpid(), directory))
            work = Path(directory, "workspace")
            work.mkdir()
            stamps = tree.stamps()
            mark = self._now()
            _, refused = fill(work, tree, stamps)
            self._own = {path: stamp for path, stamp in stamps.items() if path not in refused}
            self._look_at(os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            found = walk(self._descriptor, WalkBounds(entries=1 << 30), overlay=False)
            self._bounds = replace(self._bounds, entries=len(stamps) + len(found.directories) + _ENTRIES)
            digests = {path: _digest(tree.read(f"/{path}")) for path in found.files}
            files = {path: _Seen(stamp, digests[path]) for path, stamp in found.files.items()}
            self._known = _Known(files, set(found.directories))
            self._mark = mark if not refused else None
        self.order = {"path": str(work), "temporary": str(directory)}

    def attach(self, pidfd: int, descriptor: int = -1) -> None:
        self._process = ProcessControl(pidfd)
        self._ends.append(_at_end(self, self._process.close))


def _at_end(owner: WorkerDirectory, function: Callable[..., None], *args: Any) -> weakref.finalize[..., Any]:
    """Call a function once, when an object is collected or earlier.

    In a context of its own: a collection may strike while guest code runs, which touches no file of the host.
    """
    return weakref.finalize(owner, contextvars.Context().run, function, *args)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _is_at_or_below(path: str, others: Sequence[str]) -> bool:
    return any(path == other or path.startswith(f"{other}/") for other in others)


def _in_pieces(paths: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(paths), _AT_ONCE):
        yield paths[at : at + _AT_ONCE]
