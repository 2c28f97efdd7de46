"""``tempfile`` over one workspace: files and directories below ``/tmp``."""

from __future__ import annotations

import posixpath
import secrets
import types
from collections.abc import Iterator
from typing import Any, Self

from agex.files.guest_files import GuardedFiles
from agex.files.os_module import plain_function

__all__ = ["PUBLIC", "Temporaries"]

PUBLIC = ("NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile", "gettempdir", "mkdtemp", "tempdir")
"""The members that guest code gets."""

_HOME = "/tmp"  # noqa: S108 - of the workspace, which is the guest's own


class Temporaries:
    """The functions of ``tempfile`` over some files; each does what its namesake does."""

    def __init__(self, files: GuardedFiles, shutil: types.ModuleType) -> None:
        self._files = files
        self._shutil = shutil

    def members(self) -> dict[str, Any]:
        """Return the functions by name, and the other members of ``tempfile``."""
        functions = {
            "NamedTemporaryFile": self.file,
            "TemporaryDirectory": self.directory,
            "TemporaryFile": self.file,
            "gettempdir": self.home,
            "mkdtemp": self.made,
        }
        members: dict[str, Any] = {}
        for name, method in functions.items():
            members[name] = plain_function(method, "tempfile")
            members[name].__name__ = members[name].__qualname__ = name
        return {**members, "tempdir": _HOME}

    def home(self) -> str:
        self._files.makedirs(_HOME)
        return _HOME

    def made(self, suffix: str | None = None, prefix: str | None = None, dir: Any = None) -> str:  # noqa: A002
        path = self._free(prefix, suffix, dir)
        self._files.mkdir(path)
        return path

    def directory(
        self, *args: Any, ignore_cleanup_errors: bool = False, delete: bool = True, **kwargs: Any
    ) -> Any:
        return _Directory(self._files, self._shutil, self.made(*args, **kwargs), delete=delete)

    def file(  # noqa: PLR0917 - the library's own
        self,
        mode: str = "w+b",
        buffering: int = -1,
        encoding: str | None = None,
        newline: str | None = None,
        suffix: str | None = None,
        prefix: str | None = None,
        dir: Any = None,  # noqa: A002
        delete: bool = True,
        *,
        errors: str | None = None,
        delete_on_close: bool = True,
    ) -> Any:
        path = self._free(prefix, suffix, dir)
        opened = self._files.open(path, mode, buffering, encoding, errors, newline)
        return _Temporary(self._files, opened, path, delete=delete, delete_on_close=delete_on_close)

    def _free(self, prefix: str | None, suffix: str | None, where: Any) -> str:
        """Return a path at which there is nothing."""
        self._files.makedirs(where or _HOME)
        while True:
            path = posixpath.join(where or _HOME, f"{prefix or 'tmp'}{secrets.token_hex(4)}{suffix or ''}")
            if not self._files.exists(path):
                return path


class _Directory:
    """A directory that goes when it is left."""

    def __init__(self, files: GuardedFiles, shutil: types.ModuleType, name: str, *, delete: bool) -> None:
        self.name = name
        self._files, self._shutil, self._delete = files, shutil, delete

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *error: object) -> None:
        if self._delete:
            self.cleanup()

    def cleanup(self) -> None:
        """Remove the directory and all that is in it."""
        if self._files.isdir(self.name):
            self._shutil.rmtree(self.name)

    def __repr__(self) -> str:
        return f"<TemporaryDirectory {self.name!r}>"


class _Temporary:
    """An open file that is removed when it is closed."""

    def __init__(
        self, files: GuardedFiles, file: Any, name: str, *, delete: bool, delete_on_close: bool
    ) -> None:
        self.file, self.name = file, name
        self._files, self._delete, self._on_close = files, delete, delete_on_close

    def close(self) -> None:
        """Close it, and remove it unless it is to stay."""
        self.file.close()
        if self._on_close:
            self._remove()

    def _remove(self) -> None:
        if self._delete and self._files.exists(self.name):
            self._files.remove(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        self._remove()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.file)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.file, name)
