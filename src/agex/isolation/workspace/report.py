"""A worker's report of its own directory, where the host cannot look into it: in a container.

The worker says what is there, and sends the bytes of what changed since it last did. It may lie about its own
files, which it may write as it likes anyway. The host checks and bounds what could harm anybody else.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agex.isolation.wire.error_codec import ProtocolError
from agex.isolation.workspace.process_control import may_write_mapped
from agex.isolation.workspace.walk import (
    FileStamp,
    Refused,
    TooManyEntries,
    Walk,
    WalkBounds,
    read_file,
    walk,
)

__all__ = ["Reporter", "read_report"]

_SETTLED_NS = 50_000_000
_HASHED = 16


class Reporter:
    """The worker's end: it remembers what it has reported.

    Args:
        root: the directory.
    """

    def __init__(self, root: str) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._known: dict[str, tuple[FileStamp | None, bytes]] = {}
        self._was_mapped = False

    def forget(self, paths: Iterable[str]) -> None:
        """Report files anew, which the host wrote."""
        for path in paths:
            self._known.pop(path, None)

    def report(self, bounds: WalkBounds) -> tuple[bytes, bytes]:
        """Return the directory's content as JSON, and the bytes of the files that changed."""
        try:
            found = walk(self._root, bounds, overlay=False)
        except TooManyEntries as error:
            return json.dumps({"too_many": str(error)}).encode(), b""
        mapped = may_write_mapped("self")
        again, self._was_mapped = mapped or self._was_mapped, mapped
        files: list[list[Any]] = []
        contents: list[bytes] = []
        known, self._known = self._known, {}
        for path, stamp in found.files.items():
            before = known.get(path)
            if before is not None and before[0] == stamp and not again:
                self._known[path] = before
                files.append([path, stamp[1], stamp[2], before[1].hex(), False])
                continue
            read = read_file(self._root, path, bounds)
            if isinstance(read, Refused):
                found.refused.append(read)
                continue
            content, _ = read
            digest = hashlib.blake2b(content, digest_size=_HASHED).digest()
            settled = time.time_ns() - max(stamp[2], stamp[3]) > _SETTLED_NS
            self._known[path] = (stamp if settled else None), digest
            is_new = before is None or before[1] != digest
            files.append([path, len(content), stamp[2], digest.hex(), is_new])
            contents += [content] if is_new else []
        text = json.dumps(
            {
                "files": files,
                "directories": list(found.directories),
                "refused": [[each.path, each.reason, each.hides] for each in found.refused],
            }
        )
        return text.encode(), b"".join(contents)


def read_report(parts: Sequence[memoryview], bounds: WalkBounds) -> tuple[Walk, dict[str, tuple[bytes, int]]]:
    """Read a report; return what is there, and the changed bytes and their time, by path.

    Raises:
        TooManyEntries: there are more names than the bounds allow.
        ProtocolError: no worker reports that.
    """
    try:
        return _read(json.loads(bytes(parts[0])), parts[1], bounds)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"the worker reports of its files what no worker reports: {error}") from None


def _read(
    told: Mapping[str, Any], contents: memoryview, bounds: WalkBounds
) -> tuple[Walk, dict[str, tuple[bytes, int]]]:
    if "too_many" in told:
        raise TooManyEntries(f"there are more than {bounds.entries:,} files and directories")
    found, changed = Walk(), dict[str, tuple[bytes, int]]()
    if sum(len(told[name]) for name in ("files", "directories", "refused")) > bounds.entries:
        raise TooManyEntries(f"there are more than {bounds.entries:,} files and directories")
    at = 0
    for path, size, modified, digest, is_new in told["files"]:
        number, place = int.from_bytes(bytes.fromhex(digest)[:_HASHED], "big"), _path(path, bounds)
        if type(size) is not int or not 0 <= size <= bounds.size or type(modified) is not int:
            raise ValueError("a file of a size that none has")
        found.files[place] = (number, size, 0, 0)
        if is_new is True:
            changed[place] = bytes(contents[at : at + size]), modified
            at += size
    if at != contents.nbytes:
        raise ValueError("the bytes of the files are not as long as it says")
    found.directories = {_path(path, bounds): False for path in told["directories"]}
    if found.directories.keys() & found.files.keys():
        raise ValueError("one path is a file and a directory")
    found.refused = [
        Refused(str(path)[: bounds.path], str(reason)[:200], bool(hides))
        for path, reason, hides in told["refused"]
    ]
    return found, changed


def _path(path: Any, bounds: WalkBounds) -> str:
    """Return a path that leads nowhere else.

    Raises:
        ValueError: it is none.
    """
    if type(path) is not str or len(path.encode()) > bounds.path or "\0" in path:
        raise ValueError("a path that no file has")
    names = path.split("/")
    if len(names) > bounds.depth or not all(names) or {".", ".."} & set(names):
        raise ValueError("a path that no file has")
    return path
