"""Identities of processes, for what one leaves behind when it is killed."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["has_ended", "this_process"]


def this_process() -> str:
    """Return an identity of this process that differs from earlier processes of the same number."""
    return f"{os.getpid()}-{_started(os.getpid())}"


def has_ended(process: str) -> bool:
    """Return whether the process of an identity from `this_process` has ended, as far as seen from here."""
    number, _, started = process.partition("-")
    return not number.isdigit() or _started(int(number)) != started


def _started(number: int) -> str:
    """Return the start of a process, in ticks since boot; an empty text where there is none."""
    try:
        about = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "none"
    return about.rpartition(")")[2].split()[19]
