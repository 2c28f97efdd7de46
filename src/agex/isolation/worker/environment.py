"""The surroundings of a worker that come from the host: two kinds of variables, and where modules are.

A worker does not inherit the rest from its host: neither its folder nor its mask of files, nor what it blocks
and ignores of signals.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

__all__ = ["PROGRAM", "has_ended", "import_path", "reset_signals", "this_process", "worker_environment"]

_GIVEN = (
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "TZ",
)
"""Locale and time zone, each by its full name: anything may stand in a variable ``LC_...`` of a user's."""

PROGRAM = """
import os
line = b""
while not line.endswith(b"\\n"):
    line += os.read(0, 1)
import json, sys
sys.path[:] = json.loads(line)
from agex.isolation.container.init import {entry}
{entry}()
"""
"""Runs a worker that is told the path of its modules by standard input, in a line before all messages.

The arguments of a process are there for all to see, and for what runs in it.
"""


def worker_environment() -> dict[str, str]:
    """Return the variables that a worker is started with: the host's locale and time zone."""
    host = os.environ  # noqa: TID251 - what of it is given on is decided here
    return {
        name: host[name] for name in _GIVEN if name in host and not host[name].lstrip(":").startswith("/")
    }


def import_path() -> list[str]:
    """Return the folders of this process's modules, so that what is importable here is importable there."""
    return [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - a link keeps its name


def reset_signals() -> None:
    """Block and ignore no signal because the host did: it may have blocked the alarm of deadlines."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - _IGNORED_BY_PYTHON:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


_IGNORED_BY_PYTHON = {getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)}


def this_process() -> str:
    """Return what tells this process from others, also from those that had its number before."""
    return f"{os.getpid()}-{_started(os.getpid())}"


def has_ended(process: str) -> bool:
    """Return whether there is no such process, of those seen from here, that `this_process` told of."""
    number, _, started = process.partition("-")
    return not number.isdigit() or _started(int(number)) != started


def _started(number: int) -> str:
    """Return when a process was started, in ticks since the machine was; nothing where there is none."""
    try:
        about = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "none"
    return about.rpartition(")")[2].split()[19]
