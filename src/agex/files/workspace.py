"""The workspace of an agent, as the host configures and reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from agex.errors import DefinitionError
from agex.files.file_tree import FileTree, Space
from agex.files.guest_files import GuardedFiles, Outside
from agex.files.real_directory import IsolatedFiles
from agex.files.virtual_files import MemorySpace, VirtualFiles

if TYPE_CHECKING:
    from agex.files.stdlib_modules import FileModules

__all__ = ["Workspace", "connect_fs"]


def connect_fs(
    type: Literal["virtual", "isolated"] = "virtual",  # noqa: A002 - the contract's name
    *,
    max_size_mb: float | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Workspace:
    """Open a workspace.

    Args:
        type: ``"virtual"``: files in memory, or in the state of a task and with its history.
            ``"isolated"``: a directory of the host, and nothing outside it.
        max_size_mb: MiB of all files together; a write that would pass it raises ``OSError``, and what
            was there stays.
        root: of an isolated one: the directory, which must exist.

    Raises:
        DefinitionError: there is no such type, or a setting is not one of it.
    """
    if max_size_mb is not None and not max_size_mb > 0:
        raise DefinitionError(f"connect_fs(max_size_mb={max_size_mb}): give more than 0, or leave it out.")
    if type == "isolated":
        if root is None:
            raise DefinitionError("Write connect_fs(type='isolated', root=PATH).")
        return Workspace(IsolatedFiles(root, max_size_mb=max_size_mb))
    if type != "virtual":
        raise DefinitionError(f"connect_fs(type={type!r}): there are 'virtual' and 'isolated'.")
    if root is not None:
        raise DefinitionError("connect_fs(root=...) is for type='isolated'; a virtual workspace has no root.")
    return Workspace(VirtualFiles(MemorySpace(), max_size_mb=max_size_mb), max_size_mb=max_size_mb)


class Workspace:
    """The files of one agent, seen from the host.

    It has the methods of the file systems of monkeyfs and termish: ``read``, ``write``, ``list``,
    ``exists``, ``isfile``, ``isdir``, ``remove``, ``rename``, ``mkdir``, ``makedirs``, ``rmdir``,
    ``stat``, ``glob``, ``list_detailed``, ``open``, ``getcwd``, ``chdir``. Paths are absolute, or
    relative to ``/``.

    Args:
        files: the file system.
        max_size_mb: what a workspace with other files and the same settings may hold.
    """

    def __init__(self, files: FileTree, *, max_size_mb: float | None = None) -> None:
        self.files = files
        self._max_size_mb = max_size_mb

    @property
    def is_virtual(self) -> bool:
        """Whether its files are kept by a state, where there is one."""
        return isinstance(self.files, VirtualFiles)

    def over(self, space: Space) -> Workspace:
        """Return a workspace of the same settings over the files that a state keeps.

        An isolated one keeps its files in its directory, with any state.
        """
        if isinstance(self.files, IsolatedFiles):
            return Workspace(self.files.view())
        return Workspace(VirtualFiles(space, max_size_mb=self._max_size_mb), max_size_mb=self._max_size_mb)

    def fresh(self) -> Workspace:
        """Return a workspace for one task that no state keeps: it begins with the files that are here."""
        own = self.files.space if isinstance(self.files, VirtualFiles) else None
        if isinstance(own, MemorySpace):
            return self.over(MemorySpace(own))
        space = MemorySpace()
        if own is not None:
            for path, entry in own.entries.items():
                space.put(path, own[path], created=entry.created, modified=entry.modified)
        return self.over(space)

    def write(self, path: str, content: bytes | str, mode: str = "w") -> None:
        """Write a file, whole, or with ``mode="a"`` add to its end; text is UTF-8. Directories are made."""
        self.files.write(path, content.encode() if isinstance(content, str) else content, mode)

    def guarded(self, outside: Outside) -> GuardedFiles:
        """Return these files for guest code; *outside* is entered wherever they are really touched."""
        return GuardedFiles(self.files, outside)

    def modules(self, files: GuardedFiles) -> FileModules:
        """Return the standard library's modules for files, each over *files* and nothing else."""
        from agex.files.stdlib_modules import FileModules

        return FileModules(files)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.files, name)

    def __repr__(self) -> str:
        return f"Workspace({type(self.files).__name__})"
