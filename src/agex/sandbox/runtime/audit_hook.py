"""The audit hook, the second boundary: it refuses the outside world to guest code.

The guards decide what guest code may *say*. The audit hook decides what the process may
*do* while guest code runs, however the call was reached: through a gap in the guards, or
through a library that opens files for any caller (``pd.read_csv('/etc/passwd')``).

Two kinds of event (PEP 578) are refused:

* *world* events - files, sockets, processes, shared libraries - anywhere below guest code,
  unless the host gave a registered function that permission;
* *interpreter* events - frames, the collector, compiled code - when guest code itself is
  the caller. Libraries raise them in the course of their work.

Reading the installation of the interpreter (modules, time zones, package data) stays
possible: importing is reading.

One hook serves the process; it is installed by the first session and cannot be removed.
It is silent, at the cost of one context lookup, while no guest code runs.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

from agex.errors import SandboxError
from agex.sandbox.runtime.context import CARRIED, CURRENT, call_apart
from agex.sandbox.runtime.membrane import Membrane

__all__ = [
    "NO_PERMISSIONS",
    "PERMISSIONS",
    "call_as_host",
    "call_with_permissions",
    "install",
    "permitted",
    "without_workspace",
]

T = TypeVar("T")

NO_PERMISSIONS: frozenset[str] = frozenset()
"""The permissions with which a run begins: none, also where a function that has some calls guest code."""

PERMISSIONS: ContextVar[frozenset[str]] = ContextVar("agex_doors", default=NO_PERMISSIONS)
"""The permissions of this context: ``"files"``, ``"network"``."""

_FILES = frozenset(
    {
        "open", "glob.glob", "glob.glob/2", "os.chdir", "os.chflags", "os.chmod", "os.chown",
        "os.getxattr", "os.link",
        "os.listdir", "os.listxattr", "os.lockf", "os.mkdir", "os.mkfifo", "os.mknod", "os.remove",
        "os.removexattr",
        "os.rename", "os.rmdir", "os.scandir", "os.setxattr", "os.startfile", "os.symlink", "os.truncate",
        "os.unlink", "os.utime", "os.walk", "os.fwalk", "pathlib.Path.glob", "pathlib.Path.rglob",
        "shutil.chown",
        "shutil.copyfile", "shutil.copymode", "shutil.copystat", "shutil.copytree", "shutil.make_archive",
        "shutil.move", "shutil.rmtree", "shutil.unpack_archive", "sqlite3.connect",
        "sqlite3.enable_load_extension", "sqlite3.load_extension", "tempfile.mkdtemp", "tempfile.mkstemp",
        "mmap.__new__", "fcntl.fcntl", "fcntl.flock", "fcntl.ioctl", "fcntl.lockf",
    }
)  # fmt: skip

_LISTS = frozenset({"os.listdir", "os.scandir", "os.walk"})
"""Events that read no more than names: of time zones, say."""

_COMPOSED = frozenset(
    {
        "glob.glob", "glob.glob/2", "os.walk", "pathlib.Path.glob", "pathlib.Path.rglob", "shutil.copyfile",
        "shutil.copymode", "shutil.copystat", "shutil.copytree", "shutil.make_archive", "shutil.move",
        "shutil.rmtree", "shutil.unpack_archive", "tempfile.mkdtemp", "tempfile.mkstemp",
    }
)  # fmt: skip
"""Calls that work in steps. With a workspace, each step uses it, or raises an event of its own."""

_NETWORK = (
    "socket.",
    "urllib.",
    "http.",
    "ftplib.",
    "imaplib.",
    "poplib.",
    "smtplib.",
    "nntplib.",
    "telnetlib.",
)

_NEVER = (
    "subprocess.", "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn", "os.putenv",
    "os.spawn", "os.system", "os.unsetenv", "os.add_dll_directory", "pty.", "ctypes.", "winreg.", "_winapi.",
    "msvcrt.", "signal.pthread_kill", "syslog.", "webbrowser.", "resource.", "pickle.find_class",

    "setopencodehook", "cpython.run_", "builtins.breakpoint", "builtins.input", "sys.settrace",
    "sys.setprofile",
    "sys.monitoring.", "sys.remote_exec", "gc.get_objects", "gc.get_referrers",
)  # fmt: skip
"""Events that no permission allows: other processes, native code, unpickling, debuggers."""

_INTERPRETER = frozenset(
    {
        "code.__new__", "compile", "exec", "function.__new__", "gc.get_referents", "import", "marshal.dumps",
        "marshal.load", "marshal.loads",
        "sys._current_exceptions", "sys._current_frames", "sys._getframe", "sys._getframemodulename",
        "sys.addaudithook",
        "sys.set_asyncgen_hooks_finalizer", "sys.set_asyncgen_hooks_firstiter", "sys.unraisablehook",
    }
)  # fmt: skip
"""Refused when the frame that raises them is guest code.

``object.__getattr__`` is not among them: finding the frame raises it.
"""

_READ_ONLY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def permitted(*permissions: str) -> Iterator[None]:
    """Grant permissions for the length of a block: those that a registered function was promised.

    Where guest code runs in this thread, use `call_with_permissions`.

    With ``"files"`` the block uses the files of the host, not those of the workspace.
    """
    token = PERMISSIONS.set(PERMISSIONS.get() | frozenset(permissions))
    try:
        with without_workspace() if "files" in permissions else nullcontext():
            yield
    finally:
        PERMISSIONS.reset(token)


def call_with_permissions(
    permissions: tuple[str, ...], function: Callable[..., T], /, *args: Any, **kwargs: Any
) -> T:
    """Call a function with permissions, like `permitted`; they end also where a limit strikes."""
    values: dict[ContextVar[Any], Any] = {PERMISSIONS: PERMISSIONS.get() | frozenset(permissions)}
    if "files" in permissions:
        values |= _no_workspace()
    return call_apart(values, function, *args, **kwargs)


def call_as_host(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call a function of agex that does work of the host, with the files of the host."""
    return call_apart({CURRENT: None, **_no_workspace()}, function, *args, **kwargs)


def _no_workspace() -> dict[ContextVar[Any], Any]:
    monkeyfs = sys.modules.get("monkeyfs.context")  # without it there is no workspace in this process
    return {} if monkeyfs is None else {monkeyfs.current_fs: None}


def without_workspace() -> AbstractContextManager[None]:
    """Use the files of the host in this context, in place of those of a workspace."""
    monkeyfs = sys.modules.get("monkeyfs.context")  # without it there is no workspace in this process
    suspended: AbstractContextManager[None] = _NOTHING if monkeyfs is None else monkeyfs.suspend()
    return suspended


_NOTHING = nullcontext()


def _hook(event: str, args: tuple[Any, ...]) -> None:
    guards = CURRENT.get()
    if guards is None or (guards.run is None and CARRIED.get()):  # a library's thread outlives the run
        return
    verdict = _VERDICTS.get(event)
    if verdict is None:
        verdict = _VERDICTS[event] = _judge(event)
    verdict(event, args)


Verdict = Callable[[str, tuple[Any, ...]], None]


def _judge(event: str) -> Verdict:
    """Return the verdict on an event, once for each name."""
    if event == "open":
        return _about_open
    if event == "exec":
        return _about_code
    if event in _FILES:
        return _about_files
    if event.startswith(_NETWORK):
        return _about_network
    if event.startswith(_NEVER):
        return _refuse
    if event in _INTERPRETER:
        return _about_interpreter
    return _allow


def _allow(event: str, args: tuple[Any, ...]) -> None:
    """Allow the event."""


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    raise SandboxError(f"{event} is not allowed while sandboxed code runs")


def _about_open(event: str, args: tuple[Any, ...]) -> None:
    path, mode, flags = args
    if "files" in PERMISSIONS.get() or _is_installation(path, mode, flags) or _is_import(mode, flags):
        return
    raise _kind_of_refusal()(
        f"opening {path!r} is not allowed while sandboxed code runs; "
        "register the function that needs it with host_fs_access=True"
    )


class _RefusedFile(SandboxError, OSError):
    """Refuses a file that its reader or writer can do without.

    ``linecache`` leaves out the source of a line to be shown; the import system leaves the
    bytecode of a module unwritten.
    """


def _kind_of_refusal() -> type[SandboxError]:
    return _RefusedFile if _is_for_a_line() or _is_import_system(_raising_frame()) else SandboxError


def _is_for_a_line() -> bool:
    """Return whether ``linecache`` reads: an event loop in debug mode shows the source of each callback."""
    frame = _raising_frame()
    around = None if frame is None else frame.f_back
    return around is not None and around.f_globals.get("__name__") == "linecache"


def _about_files(event: str, args: tuple[Any, ...]) -> None:
    if "files" in PERMISSIONS.get() or (event == "os.listdir" and _is_import("r", 0)):
        return
    if event in _LISTS and args and _is_installation(args[0], "r", 0):
        return
    guards = CURRENT.get()
    if event in _COMPOSED and guards is not None and guards.files is not None:
        return
    where = f" of {args[0]!r}" if args and isinstance(args[0], (str, bytes)) else ""
    raise _kind_of_refusal()(
        f"{event}{where} is not allowed while sandboxed code runs; "
        "register the function that needs it with host_fs_access=True"
    )


def _about_network(event: str, args: tuple[Any, ...]) -> None:
    if "network" not in PERMISSIONS.get():
        raise SandboxError(
            f"{event} is not allowed while sandboxed code runs; "
            "register the function that needs it with network_access=True"
        )


def _about_code(event: str, args: tuple[Any, ...]) -> None:
    guards = CURRENT.get()
    # The program of the session comes with each run: finding the frame takes a fifth of a short one.
    if guards is None or args[0] is not guards.program:
        _about_interpreter(event, args)


def _about_interpreter(event: str, args: tuple[Any, ...]) -> None:
    guards = CURRENT.get()
    frame = _raising_frame()
    if guards is not None and frame is not None and frame.f_builtins is guards.builtins:
        if event == "import":
            return  # the import statement: decided by the guarded import
        _refuse(event, args)
    if guards is not None and frame is not None and event == "exec":
        for check in _CODE_CHECKS:
            check(guards, args[0], frame)


def _raising_frame() -> types.FrameType | None:
    """Find the frame that raised the event being judged: the first one outside this module."""
    frame: types.FrameType | None = None
    try:
        _raise()
    except LookupError as here:  # not sys._getframe: that would be an event itself
        frame = here.__traceback__.tb_frame if here.__traceback__ else None
    while frame is not None and frame.f_globals is globals():
        frame = frame.f_back
    return frame


def _raise() -> None:
    raise LookupError


def _is_import(mode: Any, flags: Any) -> bool:
    """Return whether the import system reads: a library imports more of itself as it works."""
    return _reads(mode, flags) and _is_import_system(_raising_frame())


def _is_import_system(frame: types.FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def _reads(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str) and set(mode) & set("wax+"):
        return False
    return not (isinstance(flags, int) and flags & ~_READ_ONLY)


def _is_installation(path: Any, mode: Any, flags: Any) -> bool:
    """Return whether a file is part of the interpreter's installation and opened for reading."""
    if not _reads(mode, flags):
        return False
    if isinstance(path, int):
        return False
    try:
        real = os.path.realpath(os.fsdecode(path))
    except (TypeError, ValueError):
        return False
    return (real + os.sep).startswith(_Installed.roots)


def _roots() -> tuple[str, ...]:
    import sysconfig  # slow to import, and needed once a process that runs guest code
    from pathlib import Path

    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {
        str(Path(os.__file__).parent),  # a zip file, in a browser
        "/sys/fs/cgroup",
        "/sys/devices/system/cpu",  # how many cores there are
        "/usr/share/zoneinfo",
        "/usr/lib/zoneinfo",
        "/etc/localtime",
        "/etc/zoneinfo",
    }
    return tuple(os.path.realpath(path) + os.sep for path in paths if path)


_VERDICTS: dict[str, Verdict] = {}

CodeCheck = Callable[[Membrane, object, types.FrameType], None]


class _Installed:
    """Whether the hook is installed, and the folders of the installation that libraries may read."""

    done = False
    roots: tuple[str, ...] = ()


_CODE_CHECKS: list[CodeCheck] = []


def install(check: CodeCheck) -> None:
    """Add the audit hook to this process, once.

    Args:
        check: called before code of a library evaluates text, with the guards of the session, the code and
            the frame of the library; it raises an error to refuse it.
    """
    if not _Installed.done:
        _Installed.roots = _roots()
        _CODE_CHECKS.append(check)
        sys.addaudithook(_hook)
        _Installed.done = True
