"""The workspace while guest code runs: libraries open its files, and the host never does.

Guest code itself has functions for the workspace and nothing else. A library that opens files for it
(``pd.read_csv("data.csv")``) calls ``open`` and ``os``. There monkeyfs puts functions of its own, which use
the file system of the context. They are in place only while a run is on. In every other context, also of
other threads, they call the originals, which are put back when the last run ends.
"""

from __future__ import annotations

import builtins
import importlib
import io
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, Protocol, TypeAlias

from monkeyfs import current_fs

from agex._interpreter import syntax_trees
from agex.errors import SandboxError
from agex.sandbox.runtime.context import CURRENT, call_apart

__all__ = ["FileModules", "Files", "GuestFiles", "inside", "outside", "workspace"]


class FileModules(Protocol):
    """Modules that work on files."""

    @property
    def names(self) -> frozenset[str]: ...

    @property
    def additions(self) -> Mapping[str, Mapping[str, Any]]:
        """Members of other modules that work on files as well."""
        ...

    def get(self, name: str) -> ModuleType | None: ...


class GuestFiles(Protocol):
    """Files as guest code has them: the methods of a file system of monkeyfs, and ``open``."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """Types of the files that `open` returns, beside ``io.TextIOWrapper``."""
        ...

    def open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: Any) -> None: ...

    def exists(self, path: str) -> bool: ...

    def isfile(self, path: str) -> bool: ...

    def isdir(self, path: str) -> bool: ...

    def resolve_path(self, path: str) -> str: ...


class Files(Protocol):
    """Files for guest code, as ``agex.connect_fs`` returns them."""

    def guarded(self, outside: Callable[..., Any], /) -> Any:
        """Return them for guest code; *outside* calls the functions that really touch them."""
        ...

    def modules(self, files: Any, /) -> Any:
        """Return the modules that work on them."""
        ...


def workspace() -> GuestFiles:
    """Return the files of the guest code that runs here.

    Raises:
        SandboxError: there are none, or no guest code runs.
    """
    guards = CURRENT.get()
    if guards is None:
        raise SandboxError("files can be used while the sandbox runs, not after")
    if guards.files is None:
        raise SandboxError("this sandbox has no file system; work with the values and text you were given")
    found: GuestFiles = guards.files
    return found


def outside(function: Callable[..., Any], /, *args: Any) -> Any:
    """Call a function as the host in the midst of a run; it really touches the files."""
    return call_apart({CURRENT: None, current_fs: None}, function, *args)


@contextmanager
def inside(files: Any) -> Iterator[None]:
    """Use these files wherever code in this context opens files."""
    _PATCHES.enter()
    token = current_fs.set(files)
    try:
        yield
    finally:
        current_fs.reset(token)
        _PATCHES.leave()


_Patch: TypeAlias = tuple[Any, str, Any]
"""An object, the name of an attribute, and a value of it."""


class _Patches:
    """The functions of monkeyfs in place of the originals, while any run needs them.

    A collection would close files that guest code dropped, which is a run of its own and would come here. It
    would find the patches half in place, and the locks of another thread. So there is no collection
    meanwhile. A signal handler that comes here in this thread counts as a second user, and changes nothing.
    """

    def __init__(self) -> None:
        self.reset_lock()
        self._users = 0
        self._ours: list[_Patch] = []
        self._before: list[_Patch] = []
        self._host_has_them = False
        """Whether the host had installed monkeyfs for good, for its own use."""

    def reset_lock(self) -> None:
        self._lock = threading.RLock()

    def enter(self) -> None:
        """Put them there, unless they are."""
        if not self._ours:
            _load()  # while no lock is held: a thread that waits for a module may hold another
        syntax_trees.undisturbed(self._enter)

    def leave(self) -> None:
        """Put the originals back after the last user, unless the host installed monkeyfs meanwhile."""
        syntax_trees.undisturbed(self._leave)

    def _enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            is_done = False
            try:
                if not self._ours:
                    self._ours = _learned()
                self._host_has_them = _installation()._installed
                # From the namespace: reading the class would unwrap a staticmethod.
                self._before = [(owner, name, vars(owner)[name]) for owner, name, _ in self._ours]
                _put(self._ours)
                is_done = True
            finally:
                if not is_done:  # the time limit of a run around this one struck
                    self._put_back()

    def _leave(self) -> None:
        with self._lock:
            self._put_back()

    def _put_back(self) -> None:
        try:
            if self._users == 1 and (self._host_has_them or not _installation()._installed):
                _put(self._before)
        finally:
            self._users -= 1


_PATCHES = _Patches()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PATCHES.reset_lock)  # another thread may have it


def _put(patches: list[_Patch]) -> None:
    for owner, name, value in patches:
        setattr(owner, name, value)


def _installation() -> Any:
    """Return the module of monkeyfs whose flag says that it is installed for good."""
    return importlib.import_module("monkeyfs.patching.install")


def _load() -> None:
    """Import the modules that `_learned` needs."""
    for name in ("bz2", "fcntl", "glob", "monkeyfs.patching.install", "monkeyfs.patching.patches"):
        importlib.import_module(name)


def _learned() -> list[_Patch]:
    """Let monkeyfs install its functions, note where they are, and remove them again."""
    import bz2
    import fcntl
    import glob

    lazily = [getattr(glob, "_StringGlobber", None), getattr(pathlib.Path, "_globber", None)]  # from 3.13 on
    owners = [os, os.path, fcntl, pathlib.Path, *filter(None, lazily)]
    before = [dict(vars(owner)) for owner in (*owners, builtins, io)]
    installation = _installation()
    if not installation._installed:
        installation.install()
        installation._installed = False  # a host that uses monkeyfs itself puts them there anew
    found: list[_Patch] = [(builtins, "open", _open), (io, "open", _open), (bz2, "_builtin_open", _open)]
    originals: list[_Patch] = [
        (owner, "open", was["open"]) for owner, was in zip((builtins, io), before[-2:], strict=True)
    ]
    for owner, was in zip(owners, before, strict=False):
        for name, now in vars(owner).items():
            if name in was and was[name] is not now:
                found.append((owner, name, now))
                originals.append((owner, name, was[name]))
    _put(originals)
    _choose_who_reads_the_installation()
    return found


_ORIGINAL_OPEN = open
_NEEDS_ACCESS = (
    "Files are looked for in the workspace here; register a function that is to open files of the host with "
    "host_fs_access=True."
)


def _open(  # noqa: PLR0917 - the builtin's own parameters
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """Open a file in the workspace of this context. The function of monkeyfs drops positional arguments."""
    files = current_fs.get()
    patches: Any = importlib.import_module("monkeyfs.patching.patches")
    guards = CURRENT.get()
    is_guests = guards is not None and files is guards.files
    if not is_guests or isinstance(file, int) or opener is not None:
        settings = {"encoding": encoding, "errors": errors, "newline": newline, "opener": opener}
        return patches._vfs_open(file, mode, buffering=buffering, closefd=closefd, **settings)
    try:
        return files.open(file, mode, buffering, encoding, errors, newline, closefd)
    except FileNotFoundError as error:
        if set(mode) & set("wxa+") or not patches._is_safe_system_path(file):
            if not _asked_by_guest():
                error.add_note(_NEEDS_ACCESS)
            raise
        return _ORIGINAL_OPEN(file, mode, buffering, encoding, errors, newline, closefd)


def _choose_who_reads_the_installation() -> None:
    """Let libraries read the installation of the interpreter beside the workspace, but not guest code."""
    patches: Any = importlib.import_module("monkeyfs.patching.patches")
    was_readable = patches._is_safe_system_path

    def is_readable(path: Any) -> bool:
        if _is_time_zone(path):
            return True
        return (CURRENT.get() is None or not _asked_by_guest()) and bool(was_readable(path))

    patches._is_safe_system_path = is_readable


def _is_time_zone(path: Any) -> bool:
    """Return whether a path holds data of time zones, which ``zoneinfo`` reads for any caller."""
    zoneinfo, tzdata = sys.modules.get("zoneinfo"), sys.modules.get("tzdata")
    folders = (*getattr(zoneinfo, "TZPATH", ()), *getattr(tzdata, "__path__", ()))
    if not folders or not isinstance(path, (str, pathlib.PurePath)):
        return False
    real = os.path.normpath(path) + os.sep
    return real.startswith(tuple(os.path.normpath(folder) + os.sep for folder in folders))


def _asked_by_guest() -> bool:
    """Return whether guest code called, with only the standard library between."""
    guards = CURRENT.get()
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - who asks decides
    while frame is not None:
        if guards is not None and frame.f_builtins is guards.builtins:
            return True
        name = frame.f_code.co_filename
        if not name.startswith(_BETWEEN) or _is_library(name):
            return False
        frame = frame.f_back
    return False


_STDLIB = str(pathlib.Path(os.__file__).parent) + os.sep
_BETWEEN = (
    "<frozen",
    _STDLIB,
    str(pathlib.Path(importlib.import_module("monkeyfs").__file__ or "").parent) + os.sep,
    str(pathlib.Path(__file__).parents[2]) + os.sep,
)
"""Folders of the code that may stand between the caller that opens a file and this module."""


def _is_library(filename: str) -> bool:
    return "site-packages" in filename and not filename.startswith(_BETWEEN[2:])
