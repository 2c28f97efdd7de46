"""The limits on an agent's code, and the cut of its output."""

from __future__ import annotations

from dataclasses import dataclass

from agex.errors import DefinitionError

__all__ = ["ExecutionLimits"]

MARK = "\n[OUTPUT TRUNCATED]\n"
"""Stands where output was cut."""


@dataclass(frozen=True, kw_only=True)
class ExecutionLimits:
    """The limits on the code of one run.

    Raises:
        DefinitionError: a limit leaves nothing.
    """

    timeout_seconds: float = 30.0
    """Wall seconds of one step, the tools it calls included."""
    max_output_bytes: int = 10_000
    """Of what one step prints, as UTF-8, the mark where it was cut included."""
    max_steps: int = 100
    """Pieces of code that one run may execute, however many turns its model has."""
    max_memory_mb: int | None = None
    """MiB that a step may add to the process; None for no limit. POSIX only."""

    def __post_init__(self) -> None:
        for name in ("timeout_seconds", "max_output_bytes", "max_steps", "max_memory_mb"):
            value = getattr(self, name)
            if name == "max_memory_mb" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise DefinitionError(f"ExecutionLimits({name}={value!r}): give a number, more than 0.")
            if not value > 0:
                raise DefinitionError(f"ExecutionLimits({name}={value!r}) leaves nothing; give more than 0.")

    def truncate_output(self, text: str) -> tuple[str, bool]:
        """Return *text* within ``max_output_bytes``, its middle cut out, and whether it was cut."""
        data = text.encode("utf-8", "backslashreplace")
        if len(data) <= self.max_output_bytes:
            return data.decode(), False
        room = self.max_output_bytes - len(MARK)
        if room <= 0:
            return _text(data[: self.max_output_bytes]), True
        tail = room // 3
        return _text(data[: room - tail]) + MARK + _text(data[len(data) - tail :]), True


def _text(data: bytes) -> str:
    return data.decode("utf-8", "ignore")  # a character may have been cut in two
