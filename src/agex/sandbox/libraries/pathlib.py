"""Policy of pathlib: all of it, in the workspace.

The classes are the real ones, so that a path can be an input, a result and a variable that is kept. Their
file operations use the workspace while guest code runs.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from monkeyfs import current_fs

from agex.sandbox.patches import stdlib_caches
from agex.sandbox.policy.library import Guard, Library, only
from agex.sandbox.runtime.workspace_files import inside, workspace

__all__ = ["LIBRARIES"]

_AT_ONCE = """
    absolute chmod copy copy_into cwd exists expanduser home is_block_device is_char_device is_dir is_fifo
    is_file is_junction is_mount is_socket is_symlink lstat mkdir move move_into open read_bytes read_text
    readlink rename replace resolve rmdir samefile stat touch unlink write_bytes write_text
""".split()
_ONE_BY_ONE = "glob iterdir rglob walk".split()

_DENIED = "group hardlink_to info lchmod link_to owner symlink_to".split()
"""Users of the machine, and links: a workspace has none."""


def _now(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with _in_workspace():
        return real(*args, **kwargs)


def _all_now(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
    """List at once: an iterator that is left over would go on among the host's files after the run."""
    with _in_workspace():
        return iter(list(real(*args, **kwargs)))


def _listed_now(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
    """List a directory, with the errors of CPython: those of the patched `os` depend on its version."""
    path = str(getattr(real, "__self__", args[0] if args else "."))
    with _in_workspace():
        files = workspace()
        if not files.isdir(path):
            number = errno.ENOTDIR if files.exists(path) else errno.ENOENT
            raise OSError(number, os.strerror(number), path)
    return _all_now(real, *args, **kwargs)


def _in_workspace() -> AbstractContextManager[None]:
    """Make paths use the workspace, also in callbacks of a function with access to files."""
    files = workspace()
    return nullcontext() if current_fs.get() is files else inside(files)


_GUARDED: dict[str, Guard] = {
    **{f"Path.{name}": _now for name in _AT_ONCE},
    **{f"Path.{name}": _all_now for name in _ONE_BY_ONE},
    "Path.iterdir": _listed_now,
}

LIBRARIES = {
    "pathlib": Library(
        name="pathlib",
        modules={"": only("Path PosixPath PurePath PurePosixPath PureWindowsPath")},
        denied=frozenset(f"Path.{name}" for name in _DENIED),
        guarded=_GUARDED,
        prepare=stdlib_caches.keep_of_paths,
    )
}
