"""The worker's end of its directory: its place, its names in the environment, and changes of the host.

Everything here runs before or between pieces of guest code, and the host believes none of it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["apply_changes", "move_in"]


def move_in(path: str, temporary: str) -> None:
    """Make a directory the current one, and tell libraries where they may write.

    ``HOME`` is the temporary directory: the caches of libraries are no part of the workspace.
    """
    os.chdir(path)
    os.environ.update({"HOME": temporary, "TMPDIR": temporary})  # noqa: TID251 - of this worker alone
    os.rename = _moving(os.rename)
    os.replace = _moving(os.replace)


def _moving(rename: Any) -> Any:
    """Return ``os.rename`` for an overlay, where a directory of the lower layer is moved by copying it."""

    def moved(src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        try:
            rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        except OSError as error:
            is_whole = src_dir_fd is None and dst_dir_fd is None
            if error.errno != errno.EXDEV or not is_whole or not _stay_together(src, dst):
                raise
            _copy_over(os.fspath(src), os.fspath(dst))

    moved.__name__ = moved.__qualname__ = rename.__name__
    moved.__doc__ = rename.__doc__
    return moved


def _stay_together(source: Any, target: Any) -> bool:
    """Return whether a directory is to be moved within one file system: between two it cannot be."""
    place, parent = Path(os.fsdecode(source)), Path(os.fsdecode(target)).absolute().parent
    return place.is_dir() and not place.is_symlink() and place.stat().st_dev == parent.stat().st_dev


def _copy_over(source: Any, target: Any) -> None:
    """Move a directory by copying it: to a free name, or over an empty directory."""
    if os.path.lexists(target):
        os.rmdir(target)  # noqa: PTH106 - as rename does: only an empty directory gives way
    shutil.copytree(source, target, symlinks=True)
    shutil.rmtree(source)


def apply_changes(
    operations: Sequence[Sequence[Any]], contents: Sequence[Any], root: str
) -> list[tuple[str, str]]:
    """Carry out the host's changes below a directory; return the paths that could not be, with the reason.

    Args:
        operations: kind, path and time of the last write of each.
        contents: the bytes of files, in the order of their operations.
        root: the directory.
    """
    failed: list[tuple[str, str]] = []
    left = iter(contents)
    for kind, path, modified in operations:
        content = next(left) if kind == "file" else b""
        try:
            _CHANGES[kind](Path(root, path), content, modified)
        except (OSError, ValueError) as error:
            failed.append((path, getattr(error, "strerror", None) or str(error)))
    return failed


def _remove(place: Path, _content: Any, _modified: float) -> None:
    if place.is_dir() and not place.is_symlink():
        place.rmdir()
    else:
        place.unlink(missing_ok=True)


def _make(place: Path, _content: Any, _modified: float) -> None:
    if place.is_symlink() or place.is_file():
        place.unlink()
    place.mkdir(parents=True, exist_ok=True)


def _write(place: Path, content: Any, modified: float) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f".agex-unfinished-{secrets.token_hex(8)}")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
        os.utime(unfinished, (modified, modified))
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        unfinished.replace(place)
    except OSError:
        unfinished.unlink(missing_ok=True)  # the former file stays as it was
        raise


_CHANGES: Mapping[str, Any] = {"remove": _remove, "directory": _make, "file": _write}
