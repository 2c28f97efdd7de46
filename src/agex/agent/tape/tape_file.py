"""Tapes as files: one JSON object a line, checked line by line when it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from agex.agent.tape.records import VERSION, Entry, Line, MessageLine, RunLine, TapeLine, ValueRecord
from agex.agent.tape.redaction import Redaction
from agex.errors import TapeError
from agex.regular_files import open_regular, read_regular

__all__ = ["Recorded", "read_tape", "require_writable", "write_tape"]

MOST_BYTES = 256 * 2**20
"""Of a tape. A longer one is refused before it is read."""
MOST_LINES = 1_000_000

_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])


class Recorded:
    """A run as a tape has it."""

    def __init__(self, head: RunLine) -> None:
        self.head = head
        self.entries: list[Entry] = []


def read_tape(path: Path) -> tuple[list[Recorded], dict[int, MessageLine]]:
    """Return the runs of a tape in the order in which they began, and its messages by their numbers.

    Raises:
        TapeError: it is no tape, or is damaged.
        OSError: it is not there, or no regular file, or too long.
    """
    data = read_regular(path, most=MOST_BYTES)
    if not data.endswith(b"\n"):
        raise TapeError(f"{path} does not end with a whole line: it was cut.")
    texts = data.split(b"\n")[:-1]
    if len(texts) > MOST_LINES:
        raise TapeError(f"{path} has more than {MOST_LINES:,} lines.")
    lines = [_line(path, number, text) for number, text in enumerate(texts, 1)]
    first = lines[0]
    if not isinstance(first, TapeLine):
        raise TapeError(f"{path} is no tape: its first line does not say so.")
    if first.version != VERSION:
        raise TapeError(f"{path} is a tape of version {first.version}, and this agex reads {VERSION}.")
    return _sorted(path, lines[1:])


def _line(path: Path, number: int, text: bytes) -> Line:
    try:
        return _LINE.validate_json(text)
    except (ValidationError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n  For further")[0]
        raise TapeError(f"{path}, line {number}: this is no line of a tape: {reason}") from None


def _sorted(path: Path, lines: Iterable[Line]) -> tuple[list[Recorded], dict[int, MessageLine]]:
    runs: dict[int, Recorded] = {}
    messages: dict[int, MessageLine] = {}
    for number, line in enumerate(lines, 2):
        match line:
            case RunLine() if line.run not in runs and (line.parent is None or line.parent in runs):
                runs[line.run] = Recorded(line)
            case MessageLine() if line.number not in messages:
                messages[line.number] = line
            case RunLine() | MessageLine() | TapeLine():
                raise TapeError(f"{path}, line {number}: there is one like it before, or none that it needs.")
            case _:
                if line.run not in runs:
                    raise TapeError(f"{path}, line {number}: no run {line.run} begins before it.")
                runs[line.run].entries.append(line)
    return list(runs.values()), messages


def require_writable(path: Path) -> None:
    """Refuse a file that is not to be overwritten: anything but a tape.

    Raises:
        TapeError: there is another file.
        OSError: it is no regular file, or it has another name.
    """
    if not os.path.lexists(path):
        return
    with os.fdopen(open_regular(path, alone=True), "rb") as file:
        begin = file.read(64)
    if begin and not begin.startswith(b'{"kind":"tape"'):
        raise TapeError(f"{path} is there and is no tape, so it is not overwritten: choose another path.")


def write_tape(path: Path, lines: Iterable[Line], redaction: Redaction) -> None:
    """Write a tape, without the secrets.

    Raises:
        TapeError: a secret stands in a value that is not text.
        OSError: it cannot be written there.
    """
    data = "".join(f"{_text(line, redaction)}\n" for line in lines).encode("utf-8", "surrogatepass")
    require_writable(path)
    with os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT, alone=True), "wb") as file:
        file.truncate(0)
        file.write(data)


def _text(line: Line, redaction: Redaction) -> str:
    whole: dict[str, Any] = json.loads(line.model_dump_json())
    found = {name: value for name, value in whole.items() if value not in (None, "", [], {})}
    for place, record in _values(line):
        parts = (record.stream or b"", *record.buffers)
        if any(map(redaction.is_in, parts)):
            raise TapeError(
                f"{place} holds a secret in a value that is no plain data, so it cannot be masked, and no "
                "tape was written: leave it out by redact=."
            )
    return json.dumps(
        redaction.scrubbed(found, quoted=isinstance(line, MessageLine)),
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _values(line: Line) -> Iterable[tuple[str, ValueRecord]]:
    match line:
        case RunLine():
            yield from ((f"The input {name!r} of {line.task}", each) for name, each in line.inputs.items())
        case MessageLine() | TapeLine():
            return
        case _:
            text = getattr(line, "text", line.kind)
            args: tuple[Any, ...] = getattr(line, "args", ())
            kwargs: dict[str, Any] = getattr(line, "kwargs", {})
            others = (getattr(line, name, None) for name in ("result", "value"))
            several = (*args, *kwargs.values(), *others)
            yield from ((text, each) for each in several if isinstance(each, ValueRecord))
