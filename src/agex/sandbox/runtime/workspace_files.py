"""The workspace while guest code runs: libraries meet it where they open files, and the host never does.

Guest code itself is given functions that have the workspace and nothing else. What a library does in
its name (``pd.read_csv("data.csv")``) goes through ``open`` and ``os``: monkeyfs puts its own there, which
ask what file system the context has. They are there only while a run is on. In every other context, of
other threads too, they call the original, and when the last run ends the originals are back.
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

from agex._interpreter import parse as parsing
from agex.errors import SandboxError
from agex.sandbox.runtime.apart import call_apart
from agex.sandbox.runtime.context import CURRENT

__all__ = ["Files", "GuestFiles", "Modules", "inside", "outside", "workspace"]


class Modules(Protocol):
    """Modules that work on files."""

    @property
    def names(self) -> frozenset[str]: ...

    @property
    def additions(self) -> Mapping[str, Mapping[str, Any]]:
        """Members of other modules that are about files as well."""
        ...

    def get(self, name: str) -> ModuleType | None: ...


class GuestFiles(Protocol):
    """Files as a guest has them: the methods of a file system of monkeyfs, and ``open``."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """Types of the files that `open` gives, beside ``io.TextIOWrapper``."""
        ...

    def open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: Any) -> None: ...

    def exists(self, path: str) -> bool: ...

    def isfile(self, path: str) -> bool: ...

    def isdir(self, path: str) -> bool: ...

    def resolve_path(self, path: str) -> str: ...


class Files(Protocol):
    """Where guest code finds files, e.g. what ``agex.connect_fs`` gives."""

    def guarded(self, outside: Callable[..., Any], /) -> Any:
        """Return them for a guest; *outside* calls whatever really touches them."""
        ...

    def modules(self, files: Any, /) -> Any:
        """Return the modules that work on them."""
        ...


def workspace() -> GuestFiles:
    """Return the files of the guest that runs here.

    Raises:
        SandboxError: there are none, or no guest runs.
    """
    guards = CURRENT.get()
    if guards is None:
        raise SandboxError("files can be used while the sandbox runs, not after")
    if guards.files is None:
        raise SandboxError("this sandbox has no file system; work with the values and text you were given")
    found: GuestFiles = guards.files
    return found


def outside(function: Callable[..., Any], /, *args: Any) -> Any:
    """Do the host's own work in the midst of a run: the files are really touched here."""
    return call_apart({CURRENT: None, current_fs: None}, function, *args)


@contextmanager
def inside(files: Any) -> Iterator[None]:
    """Have whoever opens files in this context meet these."""
    _PATCHES.enter()
    token = current_fs.set(files)
    try:
        yield
    finally:
        current_fs.reset(token)
        _PATCHES.leave()


_Place: TypeAlias = tuple[Any, str, Any]
"""An object, the name of an attribute, and a value of it."""


class _Patches:
    """The functions of monkeyfs in the places of the originals, while anybody needs them.

    A collection would close files that a guest dropped, and that be a run of its own, which comes by here:
    it would meet what is half in place, and another thread's locks. So there is none meanwhile. Whatever does
    come by in this thread, in a handler of a signal, is counted as a second user, and leaves all alone.
    """

    def __init__(self) -> None:
        self.reset_lock()
        self._users = 0
        self._ours: list[_Place] = []
        self._before: list[_Place] = []
        self._host_has_them = False
        """Whether the host had put monkeyfs's functions there for good, for its own use."""

    def reset_lock(self) -> None:
        self._lock = threading.RLock()

    def enter(self) -> None:
        """Put them there, unless they are."""
        if not self._ours:
            _load()  # while no lock is held: who waits for a module may hold another
        parsing.undisturbed(self._enter)

    def leave(self) -> None:
        """Put back what was there, once nobody needs them and unless the host itself came to need them."""
        parsing.undisturbed(self._leave)

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
                # As they stand there: a class would give what is in a staticmethod.
                self._before = [(owner, name, vars(owner)[name]) for owner, name, _ in self._ours]
                _put(self._ours)
                is_done = True
            finally:
                if not is_done:  # the limit of a run around this one struck
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


def _put(places: list[_Place]) -> None:
    for owner, name, value in places:
        setattr(owner, name, value)


def _installation() -> Any:
    """Return monkeyfs's module, whose flag says that its functions are in place for good."""
    return importlib.import_module("monkeyfs.patching.install")


def _load() -> None:
    """Import what `_learned` needs."""
    for name in ("bz2", "fcntl", "glob", "monkeyfs.patching.install", "monkeyfs.patching.patches"):
        importlib.import_module(name)


def _learned() -> list[_Place]:
    """Have monkeyfs put its functions in place, see where that is, and take them away again."""
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
    found: list[_Place] = [(builtins, "open", _open), (io, "open", _open), (bz2, "_builtin_open", _open)]
    originals: list[_Place] = [
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
    """Open a file where this context has its files. That of monkeyfs forgets what is passed by position."""
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
    """Let libraries read the interpreter's installation beside the workspace, and guests not."""
    patches: Any = importlib.import_module("monkeyfs.patching.patches")
    was_readable = patches._is_safe_system_path

    def is_readable(path: Any) -> bool:
        if _is_time_zone(path):
            return True
        return (CURRENT.get() is None or not _asked_by_guest()) and bool(was_readable(path))

    patches._is_safe_system_path = is_readable


def _is_time_zone(path: Any) -> bool:
    """Tell whether a path is of the data of time zones, which ``zoneinfo`` reads for whoever names one."""
    zoneinfo, tzdata = sys.modules.get("zoneinfo"), sys.modules.get("tzdata")
    folders = (*getattr(zoneinfo, "TZPATH", ()), *getattr(tzdata, "__path__", ()))
    if not folders or not isinstance(path, (str, pathlib.PurePath)):
        return False
    real = os.path.normpath(path) + os.sep
    return real.startswith(tuple(os.path.normpath(folder) + os.sep for folder in folders))


def _asked_by_guest() -> bool:
    """Tell whether guest code itself called, with nothing between but the standard library."""
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
"""Where the code is that stands between whoever asks for a file and this module."""


def _is_library(filename: str) -> bool:
    return "site-packages" in filename and not filename.startswith(_BETWEEN[2:])
