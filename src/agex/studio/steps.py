"""Events as the steps that a page shows: what was asked, said, done, seen and returned."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from agex.agent import (
    ActionEvent,
    CancelledEvent,
    ClarifyEvent,
    ErrorEvent,
    Event,
    FailEvent,
    FileEvent,
    OutputEvent,
    SuccessEvent,
    SystemNoteEvent,
    TaskStartEvent,
)
from agex.agent.call.events import ANSWERED
from agex.contract import preview
from agex.models.actions import EditFileAction, PythonAction, TerminalAction, WriteFileAction
from agex.models.base import Image
from agex.studio.looks import look

__all__ = ["steps"]

Step = dict[str, Any]

INPUT_CHARS = 20_000
"""Of one input: what somebody asked is shown whole, a table as its head."""


def steps(event: Event) -> list[Step]:
    """Return what one event shows, each a dict with a ``kind`` and, nearly always, a ``text``."""
    found = next((show for kind, show in _SHOWN.items() if isinstance(event, kind)), None)
    if found is None:
        raise TypeError(f"steps() takes events, not {event!r}")
    return list(found(event))


def _started(event: TaskStartEvent) -> Iterator[Step]:
    inputs = {
        name: value if type(value) is str else preview(value, INPUT_CHARS)
        for name, value in event.inputs.items()
    }
    yield {"kind": "task", "text": f"{event.agent} · {event.task}", "inputs": inputs}


def _acted(event: ActionEvent) -> Iterator[Step]:
    if event.text and not event.actions:
        yield {"kind": "said", "text": event.text}
    for action in event.actions:
        if isinstance(action, PythonAction):
            yield {"kind": "code", "text": action.code}
        elif isinstance(action, TerminalAction):
            yield {"kind": "terminal", "text": action.commands}
        elif isinstance(action, WriteFileAction):
            yield {"kind": "write", "path": action.path, "text": action.content}
        elif isinstance(action, EditFileAction):
            yield {"kind": "edit", "path": action.path, "old": action.search, "text": action.replace}
    if event.truncated:
        yield {"kind": "note", "text": "The answer was cut off, so nothing of it was run."}


def _put_out(event: OutputEvent) -> Iterator[Step]:
    if event.text:
        yield {"kind": "error" if event.error else "output", "text": event.text}
    for image in event.images:
        yield {"kind": "image", **_picture(image)}


def _picture(image: Image) -> Step:
    return {"media_type": image.media_type, "data": base64.b64encode(image.data).decode()}


def _succeeded(event: SuccessEvent) -> Iterator[Step]:
    text = event.result if type(event.result) is str else preview(event.result, INPUT_CHARS)
    yield {"kind": "result", "text": text, "look": look(event.result)}


def _files(event: FileEvent) -> Iterator[Step]:
    yield {
        "kind": "files",
        "text": event.summary(),
        "added": event.added,
        "modified": event.modified,
        "removed": event.removed,
    }


def _saying(kind: str) -> Callable[[Any], Iterator[Step]]:
    def show(event: Any) -> Iterator[Step]:
        yield {"kind": kind, "text": event.message}

    return show


def _noted(event: SystemNoteEvent) -> Iterator[Step]:
    if event.message.startswith(ANSWERED):
        yield {"kind": "answer", "text": event.message.removeprefix(ANSWERED)}
    else:
        yield {"kind": "note", "text": event.message}


def _went_wrong(event: ErrorEvent) -> Iterator[Step]:
    yield {"kind": "trouble", "text": f"{event.error}: {event.message}", "recoverable": event.recoverable}


_SHOWN: dict[type, Callable[[Any], Iterator[Step]]] = {
    TaskStartEvent: _started,
    ActionEvent: _acted,
    OutputEvent: _put_out,
    SuccessEvent: _succeeded,
    FileEvent: _files,
    ErrorEvent: _went_wrong,
    FailEvent: _saying("fail"),
    ClarifyEvent: _saying("clarify"),
    CancelledEvent: _saying("cancelled"),
    SystemNoteEvent: _noted,
}
