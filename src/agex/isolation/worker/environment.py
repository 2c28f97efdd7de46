"""Environment of a worker that comes from the host: variables for locale and time zone, and the module path.

A worker inherits nothing else from its host: neither its folder, nor its file mask, nor its blocked and
ignored signals.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["PROGRAM", "import_path", "reset_signals", "worker_environment"]

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
"""Locale and time zone, each by its full name: a variable ``LC_...`` of the user may hold anything."""

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

The arguments of a process are visible to all users, and to code in it.
"""


def worker_environment() -> dict[str, str]:
    """Return the variables that a worker is started with: the host's locale and time zone."""
    host = os.environ  # noqa: TID251 - this function decides which variables are passed on
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
