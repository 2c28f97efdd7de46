"""Hard limits of a worker's own process, set once before any guest code runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from agex.sandbox import Limits

__all__ = ["apply_resources", "resources_of"]

_EXTRA_FILES = 16
"""Descriptors that the interpreter itself may have open beside those of guest code."""


def resources_of(limits: Limits) -> dict[str, int]:
    """Return the limits of a worker, by name."""
    found = {"core": 0}
    if limits.memory_mb is not None:
        found["memory_mb"] = limits.memory_mb
    if limits.open_files is not None:
        found["open_files"] = limits.open_files
    return found


def apply_resources(resources: Mapping[str, int]) -> None:
    """Limit this process for good."""
    for name, value in resources.items():
        _SETTERS[name](value)


def _memory(megabytes: int) -> None:
    """Let the address space grow by this much from now on."""
    import resource  # not on every platform: this module is also imported where nothing can be limited

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _hard("RLIMIT_AS", pages * resource.getpagesize() + (megabytes << 20))


def _core(size: int) -> None:
    _hard("RLIMIT_CORE", size)


def _files(count: int) -> None:
    _hard("RLIMIT_NOFILE", count + _EXTRA_FILES)


def _processes(count: int) -> None:
    _hard("RLIMIT_NPROC", count)


def _file_size(megabytes: int) -> None:
    _hard("RLIMIT_FSIZE", megabytes << 20)


def _hard(name: str, value: int) -> None:
    import resource

    which: int = getattr(resource, name)
    _, ceiling = resource.getrlimit(which)
    least = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
    resource.setrlimit(which, (least, least))


_SETTERS: Mapping[str, Callable[[int], None]] = {
    "core": _core,
    "memory_mb": _memory,
    "open_files": _files,
    "processes": _processes,
    "file_size_mb": _file_size,
}
