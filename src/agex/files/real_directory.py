"""A workspace in a real directory that no path leads out of.

No path is ever given to the operating system whole. ``..`` is taken away by its text; then each
directory on the way is opened by its one name, relative to the one before and without following a
link. So a directory that becomes a link while it is walked is refused, not followed, and there is no
moment between a check and its use. A file with a second name (a hard link) may be somebody else's
and is refused as well; what is neither file nor directory is never opened.
"""

from __future__ import annotations

import errno
import functools
import os
import posixpath
import secrets
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from monkeyfs import suspend

from agex.errors import DefinitionError
from agex.files.file_tree import FileTree, Names, Revision, failure, metadata
from agex.files.quota import Quota

if TYPE_CHECKING:
    from monkeyfs import FileMetadata

__all__ = ["IsolatedFiles"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for its writer
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED = ".agex-unfinished-"
"""How the name of a file begins that is being written."""


P = ParamSpec("P")
R = TypeVar("R")


def _on_host(method: Callable[P, R]) -> Callable[P, R]:
    """Run a method on the operating system, also where monkeyfs redirects its functions."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with suspend():
            return method(*args, **kwargs)

    return call


class IsolatedFiles(FileTree):
    """The files below a directory of the host.

    Args:
        root: the directory; it must exist. It is opened once: what is put in its place later is not seen.
        max_size_mb: MiB of all files together; a write that would pass it raises ``OSError``, and
            everything that was there stays. What others write meanwhile is not held to it.

    Raises:
        DefinitionError: there is no such directory, or this system cannot walk one safely.
    """

    def __init__(self, root: str | os.PathLike[str], *, max_size_mb: float | None = None) -> None:
        super().__init__()
        if not hasattr(os, "O_NOFOLLOW"):
            raise DefinitionError("connect_fs(type='isolated') needs a system with openat(); use 'virtual'.")
        self.root = Path(root)
        try:
            self._root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise DefinitionError(f"connect_fs(root={str(root)!r}): {error.strerror}") from error
        weakref.finalize(self, os.close, self._root)
        count = functools.partial(_bytes_below, self._root)  # no method: it would keep this object alive
        self._quota = None if max_size_mb is None else Quota(max_size_mb, count)

    def view(self) -> IsolatedFiles:
        """Return the same files with a working directory of their own."""
        return _View(self)

    def max_bytes(self) -> int | None:
        return None if self._quota is None else self._quota.most

    def revision(self) -> Revision:
        about = os.fstat(self._root)
        return Revision((about.st_dev, about.st_ino), None)

    @_on_host
    def stamp(self, path: str) -> object:
        with self._parent(f"/{path}") as (at, name):
            return _stamp(_lstat(name, at, path))

    @_on_host
    def stamps(self) -> dict[str, object]:
        return dict(_stamps(self._root))

    # -- walking ---------------------------------------------------------------------------------

    @contextmanager
    def _directory(self, names: list[str], path: str) -> Iterator[int]:
        """Open a directory, name by name."""
        at = os.dup(self._root)
        try:
            for name in names:
                below = _open_directory(name, at, path)
                os.close(at)
                at = below
            yield at
        finally:
            os.close(at)

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the directory that *path* is in; return it and the name there, ``"."`` for the root."""
        *names, last = self.resolve_path(path).split("/")[1:]
        with self._directory(names, path) as at:
            yield at, last or "."

    # -- looking ---------------------------------------------------------------------------------

    @_on_host
    def stat(self, path: str) -> FileMetadata:
        with self._parent(path) as (at, name):
            found = _lstat(name, at, path)
        if not stat.S_ISDIR(found.st_mode):
            _require_own_file(found, path)
        is_dir = stat.S_ISDIR(found.st_mode)
        size = 0 if is_dir else found.st_size
        return metadata(self.resolve_path(path), size, found.st_ctime, found.st_mtime, is_dir=is_dir)

    @_on_host
    def islink(self, path: str) -> bool:
        try:
            with self._parent(path) as (at, name):
                return stat.S_ISLNK(_lstat(name, at, path).st_mode)
        except (OSError, ValueError):
            return False

    @_on_host
    def list(self, path: str = ".", recursive: bool = False) -> Names:
        names = [name for name in self.resolve_path(path).split("/") if name]
        with self._directory(names, path) as at:
            return sorted(_walk(at, path) if recursive else _names(at))

    @_on_host
    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        if offset < 0:
            raise ValueError(f"negative offset {offset}")
        with self._parent(path) as (at, name):
            descriptor = _opened(name, _READ, at, path)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                raise failure(errno.EISDIR, path)
            _require_own_file(found, path)
        except OSError:
            os.close(descriptor)
            raise
        with os.fdopen(descriptor, "rb") as file:
            file.seek(offset)
            return file.read(size)

    # -- changing --------------------------------------------------------------------------------

    @_on_host
    def require_room(self, path: str, size: int) -> None:
        """Raise ``OSError`` where a file of *size* bytes at *path* would pass the limit of the workspace."""
        if self._quota is not None:
            self._quota.require(path, size - self._size(path))

    def _size(self, path: str) -> int:
        """Return the bytes of a file; none where there is no file."""
        found = self._stat(path)
        return 0 if found is None else found.size

    @contextmanager
    def _accounted(self, path: str) -> Iterator[None]:
        """Keep the quota's account of the file at *path*."""
        if self._quota is None:
            yield
            return
        with self._quota.lock:
            before = self._size(path)
            yield
            self._quota.add(self._size(path) - before)

    @_on_host
    def write(self, path: str, content: bytes, mode: str = "w") -> None:
        self.writes += 1
        if mode not in ("w", "a"):
            raise ValueError(f"invalid mode: {mode!r}; give 'w' or 'a'")
        with self._accounted(path):
            self._write(path, content, mode)

    def _write(self, path: str, content: bytes, mode: str) -> None:
        if mode == "a" and self.exists(path):
            content = self.read(path) + content
        self.require_room(path, len(content))
        parent = posixpath.dirname(self.resolve_path(path))
        if not self.exists(parent):
            self.makedirs(parent)
        with self._parent(path) as (at, name):
            _write(name, at, content, path)

    @_on_host
    def remove(self, path: str) -> None:
        self.writes += 1
        with self._accounted(path), self._parent(path) as (at, name):
            if stat.S_ISDIR(_lstat(name, at, path).st_mode):
                raise failure(errno.EISDIR, path)
            os.unlink(name, dir_fd=at)

    @_on_host
    def rmdir(self, path: str) -> None:
        self.writes += 1
        with self._parent(path) as (at, name):
            if name == ".":
                raise failure(errno.EBUSY, path)
            try:
                os.rmdir(name, dir_fd=at)
            except OSError as error:
                raise failure(error.errno or errno.EIO, path) from None

    @_on_host
    def mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> None:
        self.writes += 1
        names = [name for name in self.resolve_path(path).split("/") if name]
        if parents:
            for depth in range(1, len(names)):
                self._make("/" + "/".join(names[:depth]), exist_ok=True)
        self._make("/" + "/".join(names), exist_ok=exist_ok)

    def _make(self, path: str, *, exist_ok: bool) -> None:
        with self._parent(path) as (at, name):
            try:
                os.mkdir(name, 0o777, dir_fd=at)  # less the umask, as the host's own
            except FileExistsError:
                if not exist_ok or not stat.S_ISDIR(_lstat(name, at, path).st_mode):
                    raise failure(errno.EEXIST, path) from None

    @_on_host
    def rename(self, src: str, dst: str) -> None:
        self.writes += 1
        goes = 0 if self.resolve_path(src) == self.resolve_path(dst) else self._size(dst)
        with self._parent(src) as (at, name), self._parent(dst) as (to, new):
            found = _lstat(name, at, src)
            if not stat.S_ISDIR(found.st_mode):
                _require_own_file(found, src)
            try:
                os.rename(name, new, src_dir_fd=at, dst_dir_fd=to)
            except OSError as error:
                raise failure(error.errno or errno.EIO, dst) from None
        if self._quota is not None:
            self._quota.add(-goes)

    @_on_host
    def utime(self, path: str, times: tuple[float, float] | None = None) -> None:
        self.writes += 1
        with self._parent(path) as (at, name):
            descriptor = _opened(name, _READ, at, path)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISDIR(found.st_mode):
                _require_own_file(found, path)
            os.utime(descriptor, times)
        finally:
            os.close(descriptor)


class _View(IsolatedFiles):
    """The same directory, with a working directory of its own."""

    def __init__(self, files: IsolatedFiles) -> None:
        FileTree.__init__(self)
        self.root, self._root, self._quota = files.root, files._root, files._quota
        self._keeps_open = files


def _opened(name: str, flags: int, at: int, path: str) -> int:
    try:
        return os.open(name, flags, 0o666, dir_fd=at)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _outside(path) from None
        raise failure(error.errno or errno.EIO, path) from None


def _open_directory(name: str, at: int, path: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(name, at):
            raise _outside(path) from None
        raise failure(error.errno or errno.EIO, path) from None


def _is_link(name: str, at: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _lstat(name: str, at: int, path: str) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError as error:
        raise failure(error.errno or errno.EIO, path) from None


def _require_own_file(found: os.stat_result, path: str) -> None:
    """Refuse what is no file, or a file with another name elsewhere."""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise _outside(path)


def _outside(path: str) -> OSError:
    return PermissionError(errno.EACCES, "links and devices of the host are not part of the workspace", path)


def _names(at: int) -> Iterator[str]:
    return (name for name in os.listdir(at) if not name.startswith(_UNFINISHED))


def _walk(at: int, path: str, shown: str = "") -> Iterator[str]:
    """Yield the paths of all that is below an open directory; links are not followed."""
    for name in _names(at):
        yield shown + name
        if stat.S_ISDIR(_lstat(name, at, path).st_mode):
            below = _open_directory(name, at, path)
            try:
                yield from _walk(below, path, f"{shown}{name}/")
            finally:
                os.close(below)


def _stamps(at: int, shown: str = "") -> Iterator[tuple[str, object]]:
    """Yield a stamp of each file and directory below an open directory; links and the like are left out."""
    with os.scandir(at) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    for name, about in found:
        if stat.S_ISDIR(about.st_mode):
            yield f"{shown}{name}/", None
            below = _open_directory(name, at, shown + name)
            try:
                yield from _stamps(below, f"{shown}{name}/")
            finally:
                os.close(below)
        elif stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and not name.startswith(_UNFINISHED):
            yield shown + name, _stamp(about)


def _stamp(about: os.stat_result) -> tuple[int, ...]:
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _bytes_below(at: int) -> int:
    """Return the size of all files below an open directory; links are not followed."""
    size = 0
    for name in os.listdir(at):
        try:
            found = os.stat(name, dir_fd=at, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                size += found.st_size
            elif stat.S_ISDIR(found.st_mode):
                below = os.open(name, _DIRECTORY, dir_fd=at)
                try:
                    size += _bytes_below(below)
                finally:
                    os.close(below)
        except FileNotFoundError:  # gone while others are counted
            continue
    return size


def _write(name: str, at: int, content: bytes, path: str) -> None:
    """Write a file beside its place and put it there at once; an existing one keeps its permissions."""
    mode = None
    try:
        old = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        pass
    else:
        if stat.S_ISDIR(old.st_mode):
            raise failure(errno.EISDIR, path)
        _require_own_file(old, path)
        mode = old.st_mode & 0o777
    unfinished = _UNFINISHED + secrets.token_hex(8)
    descriptor = _opened(unfinished, _NEW, at, path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(content)
        os.rename(unfinished, name, src_dir_fd=at, dst_dir_fd=at)
    except OSError as error:
        os.unlink(unfinished, dir_fd=at)
        raise failure(error.errno or errno.EIO, path) from error
