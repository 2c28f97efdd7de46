"""The lines of the log: when tasks begin, take turns and end.

A line names agents, tasks, models, counts and times. It has nothing of what was asked, written or computed,
save for the text of an error of a provider or of a host function, at WARNING.
"""

from __future__ import annotations

import logging

from agex.agent.call.events import (
    HANDED_OVER,
    ActionEvent,
    ErrorEvent,
    Event,
    FileEvent,
    OutputEvent,
    SystemNoteEvent,
    TaskStartEvent,
)
from agex.display import plain
from agex.models.base import ModelError

__all__ = ["LOGGER", "log_end", "log_event"]

LOGGER = logging.getLogger("agex")
LOGGER.addHandler(logging.NullHandler())  # what is logged where nobody asked for it is the program's decision

ERROR_CHARS = 300
"""Of an error's text: the line of a provider's status, not the page that may follow."""
_OF_REQUESTS = ModelError.__name__

_LEVELS: dict[type, int] = {
    TaskStartEvent: logging.INFO,
    ActionEvent: logging.DEBUG,
    OutputEvent: logging.DEBUG,
    FileEvent: logging.DEBUG,
    ErrorEvent: logging.WARNING,
    SystemNoteEvent: logging.WARNING,
}


def log_event(event: Event) -> None:
    """Log what an event tells; most tell nothing that belongs into a log."""
    level = _LEVELS.get(type(event))
    if level is None or not LOGGER.isEnabledFor(level):
        return
    match event:
        case TaskStartEvent():
            LOGGER.info("%s began", _where(event))
        case ActionEvent():
            kinds = ", ".join(action.kind for action in event.actions) or "no action"
            used = event.usage
            LOGGER.debug(
                "%s: %s answered after %.2f s with %d+%d tokens: %s",
                *(_where(event), event.model, event.seconds, used.input_tokens, used.output_tokens, kinds),
            )
        case OutputEvent():
            how = "raised" if event.error else "ended"
            LOGGER.debug(
                "%s: an action %s after %.2f s, %d characters of output",
                *(_where(event), how, event.seconds, len(event.text)),
            )
        case FileEvent():
            counts = len(event.added), len(event.modified), len(event.removed)
            LOGGER.debug("%s: files: %d added, %d modified, %d removed", _where(event), *counts)
        case ErrorEvent() if not event.traceback:  # an error of a host function is logged where it is raised
            then = "it goes on" if event.recoverable else "it ends"
            # The text of any other error may quote what guest code computed.
            text = event.message[:ERROR_CHARS].partition("\n")[0] if event.error == _OF_REQUESTS else ""
            LOGGER.warning(
                "%s: %s, %s%s", _where(event), event.error, then, f": {_line(text)}" if text else ""
            )
        case SystemNoteEvent() if event.message.startswith(HANDED_OVER):
            LOGGER.warning("%s: %s", _where(event), _line(event.message))
        case _:
            pass


def log_end(who: tuple[str, str, str], error: BaseException | None, seconds: float, used: str) -> None:
    """Log that a call is over, or waits. *who* is the agent, the task and the run."""
    agent, task, run_id = who
    LOGGER.info(
        "%s.%s (run %s) ended with %s after %.2f s: %s",
        *(_line(agent), task, run_id, "a value" if error is None else type(error).__name__, seconds, used),
    )


def _line(text: str) -> str:
    """Return text as part of a line: guest code may name an agent, a provider may send anything."""
    return plain(text).replace("\n", "\\n")


def _where(event: Event) -> str:
    sample = "" if event.sample is None else f", sample {event.sample}"
    turn = f", turn {event.turn}" if event.turn else ""
    return f"{_line(event.agent)}.{event.task} (run {event.run_id}{sample}{turn})"
