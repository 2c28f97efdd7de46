"""A state as it was at a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from agex import values
from agex.display import Page
from agex.state.base import Past
from agex.state.commits import codec_hooks
from agex.state.commits.history import SHORT, Commit, when
from agex.state.commits.journal import CommitInfo, Journal
from agex.state.tables import counts, held_parts
from agex.state.working.merging import difference
from agex.state.working.stored_variables import CACHE, Codec, Stored, is_import, variables_at
from agex.state.working.tracked_files import Files
from agex.state.working.variables import Variables

__all__ = ["Snapshot", "as_commit", "events_until", "readable"]


class Snapshot(Past):
    """The variables as they were at a commit; read-only, each read from the store once.

    Attributes:
        commit: the commit.
    """

    def __init__(self, journal: Journal, codec: Codec, commit: Commit) -> None:
        self._variables = Variables(journal, codec, commit.hash)
        self._known_names: list[str] | None = None
        self._files = Files(journal, commit.hash)
        self._journal = journal
        self._codec = codec
        self.commit = commit

    @property
    def cache(self) -> Mapping[str, Any]:
        """The state's ``cache`` then."""
        return MappingProxyType(self._variables.cache() if CACHE in self._variables else {})

    @property
    def files(self) -> Files:
        """The files of the workspace then, by path; each read from the store when it is asked for."""
        return self._files

    @property
    def events(self) -> tuple[Any, ...]:
        """All events up to then, oldest first."""
        return tuple(events_until(self._journal, self.commit.hash))

    def size(self, name: str) -> int:
        """Return how many bytes a variable takes in the store, with those that share objects with it.

        Raises:
            KeyError: there is no such variable.
        """
        recipe = Stored(self._journal, self.commit.hash, self._codec).recipe(name)
        if recipe is None or name == CACHE:
            raise KeyError(name)
        return recipe.size

    def sketch(self, name: str) -> Any:
        if name == CACHE:
            raise KeyError(name)
        return readable(name, self._variables.sketch(name))

    def recent(self) -> list[str]:
        changed = difference(self._journal, self._codec, self.commit.parent, self.commit.hash, texts=False)
        return [name for name in changed if name not in changed.removed]

    def __getitem__(self, name: str) -> Any:
        if name == CACHE:
            raise KeyError(name)
        return readable(name, self._variables[name])

    @property
    def _names(self) -> list[str]:
        """All names, listed when somebody asks for them: reading one variable does not."""
        if self._known_names is None:
            self._known_names = variables_at(self._journal, self.commit.hash)
        return self._known_names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name != CACHE and not is_import(name) and name in self._variables

    def __len__(self) -> int:
        return len(self._names)

    def page(self) -> Page:
        commit = self.commit
        facts = (when(commit.time), *([commit.message] if commit.message else []), *counts(self))
        parts = tuple(held_parts(self, self.cache, self.files))
        return Page(title=f"snapshot {commit.hash[:SHORT]}", facts=facts, parts=parts)

    def __repr__(self) -> str:
        return f"Snapshot({self.commit.hash[:12]}: {', '.join(self._names)})"


def readable(name: str, value: Any) -> Any:
    """Return a variable, or raise the error for one that could not be kept."""
    if issubclass(type(value), values.NotKept):  # isinstance() asks the value
        raise values.not_kept_error(value, name)
    return value


def as_commit(journal: Journal, record: CommitInfo) -> Commit:
    """Return a commit as its readers see it."""
    parent = record.parents[0] if record.parents else None
    return Commit(
        hash=record.hash,
        parent=parent,
        time=record.time,
        message=record.message,
        events=tuple(_events_of(journal, record)) if record.events else (),
        merged=record.parents[1:],
    )


def _events_of(journal: Journal, record: CommitInfo) -> Iterator[Any]:
    parent = record.parents[0] if record.parents else None
    for data in journal.events(record.hash):
        event = codec_hooks.events().load(data)
        codec_hooks.events().stamp(event, record.hash, parent)
        yield event


def events_until(journal: Journal, commit: str) -> list[Any]:
    """Return the events up to a commit, oldest first."""
    records = [record for record in journal.history(commit) if record.events]
    return [event for record in reversed(records) for event in _events_of(journal, record)]
