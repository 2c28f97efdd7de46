"""Host files for guest code in a worker, which asks the host for each use.

Both ends go by one table of methods and of the types that their arguments have. The worker makes arguments
plain and of these types, so the host refuses anything else as a violation of the protocol. Paths are the
file system's own business: it knows nothing outside of itself.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from monkeyfs import FileInfo

from agex.files import GuardedFiles
from agex.files.file_tree import FileStat
from agex.files.stdlib_modules import FileModules
from agex.isolation.rpc.host_proxies import Asker
from agex.isolation.wire.error_codec import ProtocolError
from agex.sandbox.runtime.workspace_files import Files, outside

__all__ = ["FileRequests", "HostFiles"]

_METHODS: Mapping[str, tuple[type, ...]] = {
    "access": (str, int),
    "chdir": (str,),
    "chmod": (str, int),
    "chown": (str, int, int),
    "exists": (str,),
    "getcwd": (),
    "getsize": (str,),
    "glob": (str,),
    "isdir": (str,),
    "isfile": (str,),
    "islink": (str,),
    "lexists": (str,),
    "link": (str, str),
    "list": (str, bool),
    "list_detailed": (str, bool),
    "makedirs": (str, bool),
    "mkdir": (str, bool, bool),
    "read": (str, int, int),
    "readlink": (str,),
    "remove": (str,),
    "rename": (str, str),
    "replace": (str, str),
    "require_room": (str, int),
    "resolve_path": (str,),
    "rmdir": (str,),
    "samefile": (str, str),
    "stat": (str,),
    "symlink": (str, str),
    "truncate": (str, int),
    "utime": (str, tuple),
    "write": (str, bytes, str),
}
"""The methods that can be asked for, and the types of all their arguments."""

MOST_BYTES = 1 << 30
"""Bytes of one file that a worker may read or write: the host holds it in memory whole."""
_LONGEST_PATH = 4096  # PATH_MAX of Linux
_MOST_WILD = 3
"""The most ``**`` in a pattern: each walks the whole tree below the one before."""


class FileRequests:
    """Carries out the requests of a worker for files.

    Args:
        files: the workspace.

    Attributes:
        guarded: the same, as guest code has it: with the same working directory.
    """

    def __init__(self, files: Files) -> None:
        self._files = self.guarded = files.guarded(outside)

    def answer(self, name: Any, call: Any) -> Any:
        """Carry out a request; return its result in values that cross.

        Args:
            name: of the method, untrusted.
            call: its arguments, by position and by name, untrusted.

        Raises:
            ProtocolError: no worker asks for that.
            OSError: the file system says no, or it would be too large.
        """
        types = _METHODS.get(name) if type(name) is str else None
        if types is None:
            raise ProtocolError(f"the worker asks files for {str(name)[:80]!r}, which they cannot do")
        args = _positional(call)
        if not _fit(args, types):
            raise ProtocolError(f"the worker passes {name} of files something else than it takes")
        self._require_bounds(name, args)
        return _told(name, getattr(self._files, name)(*args))

    def _require_bounds(self, name: str, args: Sequence[Any]) -> None:
        for text in args:
            if type(text) is str and len(text) > _LONGEST_PATH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), text[:80])
        if name == "glob" and args[0].split("/").count("**") > _MOST_WILD:
            raise OSError(errno.EINVAL, f"a pattern has at most {_MOST_WILD} times **", args[0])
        if self._size(name, args) > MOST_BYTES:
            raise OSError(errno.EFBIG, f"a file has at most {MOST_BYTES:,} bytes here", args[0])

    def _size(self, name: str, args: Sequence[Any]) -> int:
        """Return the bytes of a file that the host would hold."""
        if name == "truncate":
            return int(args[1])
        if name == "write":
            path, content, mode = args
            return len(content) + (self._present(path) if mode == "a" else 0)
        if name == "read":
            path, offset, size = args
            return (
                self._present(path) - offset if size < 0 else size if size <= MOST_BYTES else MOST_BYTES + 1
            )
        return 0

    def _present(self, path: str) -> int:
        return int(self._files.getsize(path)) if self._files.isfile(path) else 0


def _positional(call: Any) -> tuple[Any, ...]:
    if not (type(call) is tuple and len(call) == 2 and type(call[0]) is tuple and type(call[1]) is dict):
        raise ProtocolError("the arguments of a call are something else")
    if call[1]:
        raise ProtocolError("the worker passes files an argument by name")
    return call[0]


def _fit(args: Sequence[Any], types: tuple[type, ...]) -> bool:
    if len(args) != len(types):
        return False
    for arg, kind in zip(args, types, strict=True):
        if kind is tuple and not (arg is None or _is_times(arg)):
            return False
        if kind is not tuple and type(arg) is not kind:
            return False
    return True


def _is_times(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and all(type(each) is float for each in value)


def _told(name: str, found: Any) -> Any:
    """Return the result of a method, with descriptions of files as tuples."""
    if name == "stat":
        return (found.size, found.created_at, found.modified_at, found.is_dir, found.st_ino)
    if name == "list_detailed":
        return [(one.name, one.path, one.size, one.created_at, one.modified_at, one.is_dir) for one in found]
    return found


class HostFiles:
    """Proxy of the host files in a worker. It is an `agex.sandbox.runtime.workspace_files.Files`.

    Args:
        ask: asks the host.
    """

    def __init__(self, ask: Asker) -> None:
        self._tree: Any = _HostTree(ask)

    def guarded(self, outside: Callable[[], AbstractContextManager[None]], /) -> GuardedFiles:
        return GuardedFiles(self._tree, outside)

    def modules(self, files: GuardedFiles, /) -> FileModules:
        return FileModules(files)


class _HostTree:
    """Proxy of a file tree."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        return functools.partial(self._asked, name)

    def _asked(self, name: str, *args: Any) -> Any:
        types = _METHODS[name]
        plain = tuple(_as(kind, arg) for kind, arg in zip(types, args, strict=True))
        found = self._ask("file", "", name, plain, {})
        if name == "stat":
            return FileStat(*found)
        if name == "list_detailed":
            return [FileInfo(*one) for one in found]
        return found


def _as(kind: type, value: Any) -> Any:
    """Return a plain argument in the type that the table names.

    Raises:
        TypeError: it is none.
    """
    if kind in {bool, int} and type(value) in {bool, int}:
        return kind(value)
    if type(value) is kind or (kind is tuple and value is None):
        return value
    what = "a path of the workspace is text" if kind is str else f"{kind.__name__} is expected"
    raise TypeError(f"{what}, not {type(value).__name__}")
