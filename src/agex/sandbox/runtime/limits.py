"""Limits of a run: its time, memory, output and open files; and the stops that enforce them.

Memory and open files are soft limits of the process, in force for the length of a run.
"""

from __future__ import annotations

import math
import operator
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from agex.errors import DefinitionError, IsolationUnavailable

if TYPE_CHECKING:
    import mmap

__all__ = [
    "Limits",
    "ResourceLimits",
    "Stop",
    "TimeLimit",
    "require_limits",
    "require_room",
    "resource_limits",
]


class Limits(NamedTuple):
    """The limits of one run."""

    seconds: float | None = 30.0
    """Wall clock; None for no limit."""
    memory_mb: int | None = None
    """Growth of the process's address space, in MiB. POSIX only; shared by all threads."""
    open_files: int | None = None
    """File descriptors of the process. POSIX only; shared by all threads."""
    output_chars: int = 20_000
    """Characters of printed output that are kept."""


class Stop(BaseException):
    """Ends a run. No handler of guest code sees it: each begins with a stop check."""


class TimeLimit(Stop):
    """The run took longer than its limit."""


def require_limits(limits: Limits) -> None:
    """Refuse values that are no limits, and limits that cannot be enforced in this process.

    Raises:
        DefinitionError: a limit is neither a number above 0 nor None.
        IsolationUnavailable: memory or open files are to be limited, and the system has no such limits.
    """
    for name, value in limits._asdict().items():
        if value is not None and not 0 < value < math.inf:  # false for anything that is no number, too
            raise DefinitionError(
                f"Limits({name}={value!r}) is no limit; give a number above 0, or None for none"
            )
    if limits.memory_mb is None and limits.open_files is None:
        return
    try:
        import resource  # noqa: F401  # pyright: ignore[reportUnusedImport] - whether it is there is the question
    except ImportError as error:
        raise IsolationUnavailable(
            "max_memory_mb and max_open_files need a POSIX system, which this is not; leave them None here"
        ) from error


# -- memory and open files -----------------------------------------------------------------------


class ResourceLimits:
    """No limits of memory and open files; the class with limits derives from this one."""

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def begin(self) -> None:
        """Put the limits in force."""

    def ease(self) -> None:
        """Free memory for the host to go on with, where guest code has taken all of it."""

    def end(self) -> None:
        """Lift the limits; may be called again."""


_UNLIMITED = ResourceLimits()


def resource_limits(limits: Limits, *, of_text: bool = False) -> ResourceLimits:
    """Hold the process to *limits* of memory and open files for the length of a block.

    With *of_text* the text of an error is made in the block, while guest code may keep all that its run took.
    """
    if limits.memory_mb is None and limits.open_files is None:
        return _UNLIMITED
    if of_text and limits.memory_mb is not None:
        return _SoftLimits(limits._replace(memory_mb=_TEXT_MB))
    return _SoftLimits(limits)


_TEXT_MB = 16
"""MiB for the text of an error, where memory is limited."""


class _SoftLimits(ResourceLimits):
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._reserve: mmap.mmap | None = None
        self._of: list[tuple[_SoftLimit, int]] = []

    def begin(self) -> None:
        import mmap
        import resource

        memory_mb, open_files = self._limits.memory_mb, self._limits.open_files
        try:
            if memory_mb is not None:
                self._reserve = _as_host(mmap.mmap, -1, _RESERVE)
                self._hold(_memory, resource.RLIMIT_AS, _as_host(_address_space) + (memory_mb << 20))
            if open_files is not None:
                self._hold(_files, resource.RLIMIT_NOFILE, open_files)
        except BaseException:
            self.end()
            raise

    def _hold(self, limit: _SoftLimit, which: int, value: int) -> None:
        self._of.append((limit, which))
        limit.hold(self, which, value)

    def ease(self) -> None:
        if self._reserve is not None:
            self._reserve.close()

    def end(self) -> None:
        self.ease()
        while self._of:
            limit, which = self._of[-1]
            limit.release(self, which)
            self._of.pop()


_RESERVE = 4 << 20
"""Bytes of address space held in reserve: lifting a limit of memory takes some, for arenas and stacks."""


def _as_host(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function as the host: a run within another one is subject to the audit hook."""
    from agex.sandbox.runtime import audit_hook  # which imports this module

    return audit_hook.call_as_host(function, *args)


class _SoftLimit:
    """The limit of one resource of the process: the least that a present run wants, else that of the host.

    Runs of several threads end in any order, so none may put back what it found.
    """

    def __init__(self) -> None:
        self.reset_lock()
        self._wanted: dict[ResourceLimits, int] = {}
        self._of_host = 0

    def reset_lock(self) -> None:
        self._lock = threading.RLock()  # reentrant: a run may begin with it held, see `_Watchdog`

    def hold(self, of: ResourceLimits, which: int, value: int) -> None:
        """Lower the limit to *value*, or as far as it can be, until it is released."""
        import resource

        with self._lock:
            if not self._wanted:
                self._of_host = resource.getrlimit(which)[0]
            self._wanted[of] = value
            _as_host(self._apply, which)

    def release(self, of: ResourceLimits, which: int) -> None:
        """Undo a `hold`; may be called again."""
        with self._lock:
            self._wanted.pop(of, None)
            try:
                _as_host(self._apply, which)
            except Stop:  # the strike of a run around this one; the next comes later than this
                _as_host(self._apply, which)
                raise

    def _apply(self, which: int) -> None:
        import resource

        endless, hard = resource.RLIM_INFINITY, resource.getrlimit(which)[1]
        ceilings = [each for each in (self._of_host, hard, *self._wanted.values()) if each != endless]
        resource.setrlimit(which, (min(ceilings, default=endless), hard))


_memory = _SoftLimit()
_files = _SoftLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_memory.reset_lock)  # another thread may have it
    os.register_at_fork(after_in_child=_files.reset_lock)


def _address_space() -> int:
    """Measure the address space of this process, in bytes."""
    import resource
    from pathlib import Path

    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except FileNotFoundError:  # no /proc: macOS counts resident memory in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# -- room on the stack ---------------------------------------------------------------------------


def require_room() -> None:
    """Raise RecursionError now, while nothing is changed, if a set-up could run out of stack half way.

    The set-up is undone at the depth where it began, so there is as much room to undo it.
    """
    operator.eq(_LEFT, _RIGHT)  # counts its levels as calls of C code, in a tenth of their time
    if _COUNTS_APART:
        _call(_LEVELS)


_LEVELS = 28
"""More than twice the depth that beginning or ending a run takes."""

_COUNTS_APART = sys.version_info >= (3, 12)
"""Whether calls of Python code are counted apart from those of C code."""


def _call(levels: int) -> None:
    if levels:
        _call(levels - 1)


def _nested(levels: int) -> Any:
    return (_nested(levels - 1),) if levels else ()


_LEFT, _RIGHT = _nested(_LEVELS), _nested(_LEVELS)
"""Equal and not the same at any level, so that a comparison goes through all of them."""
