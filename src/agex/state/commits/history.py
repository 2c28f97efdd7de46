"""Commits as their readers see them: what a commit is, and what differs between two."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, overload

from agex.display import Fold, Page, Part, Shown, Table, Text
from agex.state.commits.journal import CommitInfo

__all__ = ["Commit", "Diff", "History", "commit_rows"]

SHORT = 12
"""Characters of a hash that are shown."""
COMMITS = 50
"""Of a history that are shown."""


@dataclass(frozen=True, eq=False)
class Commit(Shown):
    """One step of a state's history. It stands wherever its hash does, and is equal to it."""

    hash: str
    parent: str | None
    """The commit before; None for the first one."""
    time: float
    """Seconds since the epoch."""
    message: str
    events: tuple[Any, ...] = field(repr=False)
    """The events recorded since the commit before."""
    merged: tuple[str, ...] = ()
    """Further parents, of a merge."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Commit | str):
            return self.hash == str(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __str__(self) -> str:
        return self.hash

    def page(self) -> Page:
        facts = (when(self.time), *([self.message] if self.message else []))
        parents = " ".join(each[:SHORT] for each in (self.parent, *self.merged) if each) or "none"
        parts: list[Part] = [Table(rows=(("hash", self.hash), ("parent", parents)))]
        parts += [
            Fold(page=event.page()) if isinstance(event, Shown) else Text(text=_told(event))
            for event in self.events
        ]
        return Page(title=f"commit {self.hash[:SHORT]}", facts=facts, parts=parts)


@dataclass(frozen=True)
class Diff(Shown):
    """The variables that differ between two commits; what changed, where it is small, as text.

    As a collection it holds their names. What differs of the files is under ``files``, by path.
    """

    added: dict[str, str]
    removed: dict[str, str]
    changed: dict[str, str]
    files: Diff | None = None
    """None in the difference of files itself."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted([*self.added, *self.removed, *self.changed]))

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)

    def __bool__(self) -> bool:
        return len(self) > 0 or bool(self.files)

    def __contains__(self, name: object) -> bool:
        return name in self.added or name in self.removed or name in self.changed

    def __str__(self) -> str:
        lines = []
        for name in self:
            for sign, texts in (("+", self.added), ("-", self.removed), ("~", self.changed)):
                if name in texts:
                    lines.append(_line(sign, name, texts[name]))
        lines += [str(self.files)] if self.files else []
        return "\n".join(lines)

    def page(self) -> Page:
        parts: list[Part] = []
        for label, diff in (("variables", self), ("files", self.files)):
            if diff:
                parts += diff._parts(label)
        return Page(title="diff", facts=tuple(self._facts()), parts=parts)

    def _facts(self) -> Iterator[str]:
        for label, diff in (("variable", self), ("file", self.files)):
            if diff:
                yield f"{len(diff):,} {label}{'' if len(diff) == 1 else 's'}"
        if not self:
            yield "no difference"

    def _parts(self, label: str) -> Iterator[Part]:
        found = [
            (sign, name, texts[name])
            for sign, texts in (("+", self.added), ("-", self.removed), ("~", self.changed))
            for name in sorted(texts)
        ]
        short = [row for row in found if "\n" not in row[2]]
        if short:
            yield Table(rows=short, head=("", "name", "change"), label=label)
        for sign, name, text in found:
            if "\n" in text:
                yield Text(text=text, label=f"{sign} {name}")


class History(Shown, Sequence[Commit]):
    """The commits up to one of them, newest first. Each is read from the store when it is asked for.

    Args:
        begin: lists them as the journal does.
        make: reads a commit with its events.
        names: branches and tags by the commit they stand on.
    """

    def __init__(
        self,
        begin: Callable[[], Iterator[CommitInfo]],
        make: Callable[[CommitInfo], Commit],
        names: Callable[[], Mapping[str, Iterable[str]]],
    ) -> None:
        self._begin = begin
        self._rest = begin()
        self._read: list[CommitInfo] = []
        self._make = make
        self._names = names
        self._lock = threading.Lock()

    def __len__(self) -> int:
        self._reach(None)
        return len(self._read)

    @overload
    def __getitem__(self, at: int) -> Commit: ...
    @overload
    def __getitem__(self, at: slice) -> list[Commit]: ...
    def __getitem__(self, at: int | slice) -> Commit | list[Commit]:
        if isinstance(at, slice):
            beginning = all(end is None or end >= 0 for end in (at.start, at.stop)) and (at.step or 1) > 0
            self._reach(at.stop if beginning else None)
            return [self._make(record) for record in self._read[at]]
        self._reach(at + 1 if at >= 0 else None)
        return self._make(self._read[at])

    def __iter__(self) -> Iterator[Commit]:
        for number in itertools.count():
            self._reach(number + 1)
            if number >= len(self._read):
                return
            yield self._make(self._read[number])

    def _reach(self, count: int | None) -> None:
        """Read so many records, or all."""
        with self._lock:
            missing = None if count is None else max(0, count - len(self._read))
            try:
                self._read += itertools.islice(self._rest, missing)
            except BaseException:  # else what is left would seem to be nothing
                self._rest = itertools.islice(self._begin(), len(self._read), None)
                raise

    def page(self) -> Page:
        found = self[: COMMITS + 1]
        note = f"older ones: history[{COMMITS}:]" if len(found) > COMMITS else ""
        table = Table(head=COMMIT_HEAD, rows=commit_rows(found[:COMMITS], self._names()), note=note)
        return Page(title="history", facts=() if found else ("no commits",), parts=(table,) if found else ())


COMMIT_HEAD = ("commit", "when (UTC)", "message", "names", "events")


def commit_rows(commits: Iterable[Commit], names: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return a row for each commit, under `COMMIT_HEAD`."""
    return [
        (
            one.hash[:SHORT],
            when(one.time),
            one.message,
            ", ".join(names.get(one.hash, ())),
            str(len(one.events)) if one.events else "",
        )
        for one in commits
    ]


def when(time: float) -> str:
    """Return a time, in seconds since the epoch, as UTC text."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _told(event: Any) -> str:
    """Return a title for an event without a page of its own: a dict of JSON data."""
    return str(event.get("type", "event")) if type(event) is dict else type(event).__name__


def _line(sign: str, name: str, text: str) -> str:
    if "\n" in text:
        body = text.replace("\n", "\n    ")
        return f"{sign} {name}:\n    {body}"
    return f"{sign} {name}: {text}" if text else f"{sign} {name}"
