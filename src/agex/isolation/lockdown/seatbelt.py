"""Seatbelt, the confinement of macOS: a profile that a process applies to itself for good.

Written from Apple's sandbox profiles and sandbox_init(3), and **not exercised**: this project's tests run on
Linux, where only the text of the profile is looked at.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["profile", "restrict"]

_LIBRARY = "/usr/lib/libSystem.B.dylib"


def profile(readable: Sequence[str], devices: Sequence[str]) -> str:
    """Return the profile of a worker: it reads these, and everything else is denied.

    Args:
        readable: folders, with all in them, and files.
        devices: device files that can be read, too.

    Raises:
        ValueError: a path is not absolute, or cannot be written in a profile.
    """
    above = sorted({str(parent) for path in (*readable, *devices) for parent in Path(path).parents})
    return "\n".join(
        [
            "(version 1)",
            "(deny default)",
            *(f"(allow file-read* (subpath {_quoted(path)}))" for path in readable),
            *(f"(allow file-read* (literal {_quoted(path)}))" for path in devices),
            *(f"(allow file-read-metadata (literal {_quoted(path)}))" for path in above),
            "(allow sysctl-read)",
            "(allow signal (target self))",
            "(deny file-write*)",
            "(deny network*)",
            "(deny process-fork)",
            "(deny process-exec*)",
            "(deny mach-lookup)",
            "",
        ]
    )


def _quoted(path: str) -> str:
    if not path.startswith("/") or any(ord(char) < 32 for char in path):
        raise ValueError(f"{path!r} cannot stand in a profile of the sandbox; give an absolute path")
    text = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def restrict(readable: Sequence[str], devices: Sequence[str]) -> None:
    """Put this process under the profile, and all its threads, for good.

    Raises:
        OSError: it cannot be: there is no Seatbelt here, or it refuses the profile.
    """
    try:
        init = ctypes.CDLL(_LIBRARY).sandbox_init
    except (OSError, AttributeError) as error:
        raise OSError(f"seatbelt: {error}") from error
    init.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_char_p))
    told = ctypes.c_char_p()
    if init(os.fsencode(profile(readable, devices)), 0, ctypes.byref(told)) != 0:
        raise OSError(f"seatbelt: {os.fsdecode(told.value or b'the profile was refused')}")
