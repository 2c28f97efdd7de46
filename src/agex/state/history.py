"""Commits as their readers see them: what a commit is, and what differs between two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Commit", "Diff"]


@dataclass(frozen=True, eq=False)
class Commit:
    """One step of a state's history. It stands wherever its hash does, and is equal to it."""

    hash: str
    parent: str | None
    """The commit before; None for the first one."""
    time: float
    """Seconds since the epoch."""
    message: str
    events: tuple[Any, ...] = field(repr=False)
    """What was recorded since the commit before."""
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


@dataclass(frozen=True)
class Diff:
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


def _line(sign: str, name: str, text: str) -> str:
    if "\n" in text:
        body = text.replace("\n", "\n    ")
        return f"{sign} {name}:\n    {body}"
    return f"{sign} {name}: {text}" if text else f"{sign} {name}"
