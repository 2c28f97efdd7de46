"""The terminal of guest code: over its own files, with ``python`` under its own guards."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from agex.shell.python import Ran, python_command
from agex.shell.terminal import Command, Terminal

__all__ = ["guest_terminal"]


class _Session(Protocol):
    """Where guest code runs: `agex.sandbox.Session`."""

    @property
    def guest_files(self) -> Any: ...

    def imported(self, name: str, /) -> Any: ...

    def define(
        self, source: str, filename: str, namespace: dict[str, Any], /, *, main: bool = False
    ) -> Ran: ...


def guest_terminal(session: _Session, commands: Mapping[str, Command]) -> Terminal:
    """Return a terminal over the files of a session; its scripts are to be run under the session's limits.

    Args:
        session: which has files.
        commands: of the host, by name; one may take the place of ``python``.
    """
    python = python_command(partial(_run_python, session))
    return Terminal(session.guest_files, {"python": python, "python3": python, **commands})


def _run_python(session: _Session, source: str, filename: str, args: list[str]) -> Ran:
    system = vars(session.imported("sys"))
    before = system.get("argv")
    system["argv"] = args
    try:
        return session.define(source, posixpath.normpath(filename), {}, main=True)
    finally:
        system.pop("argv") if before is None else system.update(argv=before)
