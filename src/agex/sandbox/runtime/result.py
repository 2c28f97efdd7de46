"""What a run came to, and what held it."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

__all__ = ["Enforcement", "Result", "enforced"]


class Enforcement(NamedTuple):
    """What really held during a run."""

    isolation: str = "none"
    """The level: ``"none"`` is the interpreter of the host, behind the guards."""
    time: str = "none"
    """``"signal"`` also ends C calls that look for signals; ``"flag"`` ends Python code; ``"none"``."""
    memory: bool = False
    """Whether the address space was limited."""
    walls: tuple[str, ...] = ()
    """What else holds the code in, each with its version; nothing in process."""


_NOT_ENFORCED = Enforcement()
enforced = functools.cache(Enforcement)
"""The same object for the same: each run says it again."""


class Result:
    """What a run came to. Never holds a live frame of the guest unless an error does."""

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
        """What was printed, bounded."""
        self.error = error
        """What the guest raised; an `EvalError` for a limit."""
        self.traceback = traceback
        """The guest's own frames, with lines; empty without an error."""
        self.stopped: BaseException | None = None
        """What a host function ended the run with."""
        self.namespace: dict[str, Any] = {}
        """The guest's names after the run."""
        self.duration = 0.0
        """Seconds of wall clock."""
        self.enforcement = _NOT_ENFORCED if enforcement is None else enforcement

    def __repr__(self) -> str:
        # Without the objects: their own repr would be code of the guest's.
        error = "" if self.error is None else f", error={type(self.error).__name__}"
        return f"Result(echo={self.echo!r}, stdout={self.stdout!r}{error})"
