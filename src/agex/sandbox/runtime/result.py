"""The result of a run, and the limits that really held."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

__all__ = ["Enforcement", "Result", "enforced"]


class Enforcement(NamedTuple):
    """The limits and boundaries that really held during a run."""

    isolation: str = "none"
    """The level: ``"none"`` is the interpreter of the host, behind the guards."""
    time: str = "none"
    """``"signal"`` also ends C calls that look for signals; ``"flag"`` ends Python code; ``"none"``."""
    memory: bool = False
    """Whether the address space was limited."""
    walls: tuple[str, ...] = ()
    """Boundaries of the kernel around the code, each with its version; empty in process."""
    python: str = "guarded"
    """``"guarded"`` has the guards around the code; ``"full"`` is CPython's own code, without guards."""


_NOT_ENFORCED = Enforcement()
enforced = functools.cache(Enforcement)
"""Equal arguments yield one object: each run reports it."""


class Result:
    """The result of a run. It holds a live frame of guest code only through an error."""

    # No dataclass: the module of that name would be a fifth of the time that this room takes to import.
    def __init__(
        self,
        *,
        value: Any = None,
        echo: str | None = None,
        stdout: str = "",
        error: Exception | None = None,
        traceback: str = "",
        enforcement: Enforcement | None = None,
    ) -> None:
        self.value = value
        """The value of a last expression, or what the called function returned."""
        self.echo = echo
        """Its bounded repr, made inside the limits; None for None."""
        self.stdout = stdout
        """The printed output, bounded."""
        self.error = error
        """The error that guest code raised; an `EvalError` for a limit."""
        self.traceback = traceback
        """The frames of guest code, with lines; empty without an error."""
        self.stopped: BaseException | None = None
        """The exception with which a host function ended the run."""
        self.namespace: dict[str, Any] = {}
        """The variables of guest code after the run."""
        self.duration = 0.0
        """Seconds of wall clock."""
        self.enforcement = _NOT_ENFORCED if enforcement is None else enforcement

    def __repr__(self) -> str:
        # Without the objects: their own repr may be guest code.
        error = "" if self.error is None else f", error={type(self.error).__name__}"
        return f"Result(echo={self.echo!r}, stdout={self.stdout!r}{error})"
