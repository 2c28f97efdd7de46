"""Whole runs, recorded once and replayed without a model, without a network and without the live objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agex.agent.tape.current_tape import switched_on
from agex.agent.tape.player import Player
from agex.agent.tape.recorder import Recorder
from agex.agent.tape.redaction import MASK, Redact

__all__ = ["MASK", "record", "replay"]


@contextmanager
def record(path: str | Path, *, redact: Redact | None = None) -> Iterator[Path]:
    """Record every task that runs in the block, in any thread, on a tape at *path*.

    On it are the answers of models, the results and errors of all calls of the host, and the readings of
    clocks and chance in the agent's code. Arguments and inputs named like keys (``password``, ``api_key``,
    ...) are masked, and their values wherever else they stand. The tape is written when the block ends,
    whether it raises or not.

    Args:
        path: of the tape. One that is there is overwritten; any other file is not.
        redact: called with the name of each further argument or input, and with ``function()`` for a result,
            and the value; returns the value to keep. An argument or an input that it changes is masked.

    Raises:
        TapeError: a call has an argument, a result or an effect that cannot be kept; no tape is written.
        DefinitionError: a tape is on already.
    """
    tape = Recorder(Path(path), redact)
    with switched_on(tape):
        try:
            yield tape.path
        except BaseException:
            if tape.problem is None:
                tape.write()
            raise
        tape.write()


@contextmanager
def replay(path: str | Path) -> Iterator[Path]:
    """Let every task that runs in the block, in any thread, get from the tape at *path* all it got then.

    No model is asked, and nothing of the host is called; live objects that are registered are not touched.

    Raises:
        ReplayMismatch: a run differs from the tape, or a run of the tape was not begun in the block.
        TapeError: the file is no tape, is damaged, or was recorded with other registrations.
        OSError: it is not there, or is a link.
        DefinitionError: a tape is on already.
    """
    tape = Player(Path(path))
    with switched_on(tape):
        yield tape.path
    tape.require_over()
