"""Lines of work: the variables that one task, or the host, has on top of a commit.

The host and a task that runs alone share one line, and so the objects themselves. A task that
begins while another runs has a line of its own, with copies from the last commit. A commit of a
line whose commit is no longer the head is written onto the head, variable by variable and cache
key by cache key; one that both changed is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from agex import values
from agex.state.working.stored_variables import CACHE, Unreadable
from agex.state.working.variables import Change, Variables
from agex.state.working.view import Writes

__all__ = ["GONE", "Line", "Mark", "overlap", "put", "shown_mark", "whole"]

Mark: TypeAlias = "tuple[Any, ...]"
"""A variable, as ``(name,)``, or a key of the cache, as ``("cache", key)``; ``("cache",)`` is all of it."""

GONE: Any = object()
"""In the place of a variable that was deleted."""

_KEYS = frozenset({type(None), bool, int, float, complex, str, bytes})
"""Types of cache keys that are told apart. Others could run guest code when they are compared."""


class Line:
    """The variables of one party, and the events that they led to.

    Attributes:
        began: the commit that the party began with: what it does stands on it if it cannot be merged.
        others: what other lines changed since then, each with the commit that this line stood on before.
        writes: who bound which name, where several share the line.
        pending: events that are not committed yet.
        side: the branch that holds what could not be merged.
        lost: what that was, as it is shown.
    """

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.began = variables.commit
        self.others: dict[Mark, str | None] = {}
        self.writes = Writes()
        self.pending: list[Any] = []
        self.side: str | None = None
        self.lost: set[str] = set()
        self.is_merged = False
        """Whether it wrote onto a commit of another line: what is stored may be grouped otherwise."""
        self._given: dict[str, Any] = {}
        """Uncommitted values of the host that a task on its line bound anew."""
        self._looks: dict[Any, Any] | None = None
        """How the keys of the cache looked at the last commit; None where it is what the commit has."""

    def cache(self) -> Any:
        """Return the cache: a dict, or a marker where it cannot be read."""
        if CACHE not in self.variables:
            self.variables[CACHE] = {}
        cache = self.variables.cache()
        if type(cache) is values.Packed:  # not committed yet
            cache = self.variables[CACHE] = self.variables.opened({CACHE: cache})[CACHE]
        return cache

    def packed_cache(self) -> Any:
        """Return the cache as it is packed for a worker."""
        return self.variables.cache(packed=True) if CACHE in self.variables else {}

    # -- what changed ------------------------------------------------------------------------

    def marks(self, change: Change) -> set[Mark]:
        """Return the marks of *change* that differ from what is stored."""
        # Equal to what another line wrote is not unchanged: both added one.
        seen = change.held.keys() | self.variables.gone
        names = change.names() | {name for name in seen if (name,) in self.others or name == CACHE}
        found: set[Mark] = set()
        for name in names - {CACHE}:
            commit = self.others.get((name,), self.variables.commit)
            if self.variables.is_changed(name, change, commit):
                found.add((name,))
        return found | (self._cache_marks() if CACHE in names else set())

    def _cache_marks(self) -> set[Mark]:
        now = self._keys(self.variables)
        before = self._looks
        if before is None:
            before = self._look(self._keys(self.variables.at(self.variables.commit)))
        after = self._look(now)
        if before is None or after is None:
            return whole(CACHE)
        keys = before.keys() | after.keys()
        return {(CACHE, key) for key in keys if before.get(key) != after.get(key)}

    def _keys(self, variables: Variables) -> dict[Any, Any] | None:
        """Return a cache as a dict; None where its keys cannot be told apart."""
        if CACHE not in variables:
            return {}
        try:
            cache = variables[CACHE]
        except Unreadable:
            return None
        if type(cache) is values.Packed:
            if cache.group.has_code or len(cache.group.names) > 1:
                return None
            cache = variables.opened({CACHE: cache})[CACHE]
        return cache if type(cache) is dict and all(type(key) in _KEYS for key in cache) else None

    def _look(self, cache: dict[Any, Any] | None) -> dict[Any, Any] | None:
        if cache is None:
            return None
        return {key: self.variables.look_of(value) for key, value in cache.items()}

    def told(self, marks: Iterable[Mark]) -> None:
        """Take note of what another line changed."""
        for mark in marks:
            self.others.setdefault(mark, self.variables.commit)

    # -- merging -----------------------------------------------------------------------------

    def onto(self, head: str | None, marks: Iterable[Mark], change: Change) -> Change:
        """Return the change that takes the marked parts over to a commit on another head."""
        built = self.variables.at(head)
        marks = set(marks)
        for name in sorted(self._to_take(marks, change)):
            put(built, name, self._value(name))
        if (CACHE,) in marks:
            put(built, CACHE, self._value(CACHE))
        elif keys := [mark[1] for mark in marks if mark[0] == CACHE]:
            mine, theirs = self._keys(self.variables) or {}, self._keys(built)
            assert theirs is not None, "a cache whose keys are not told apart is marked as a whole"
            built[CACHE] = _merged(theirs, mine, keys)
        return built.change()

    def _to_take(self, marks: set[Mark], change: Change) -> set[str]:
        """Return the names that are marked, and those that share objects with them, if they are as here."""
        names = {mark[0] for mark in marks} - {CACHE}
        theirs = {mark[0] for mark in self.others}
        sharing = {each for name in names if name in change.held for each in change.held[name].names}
        return names | (sharing - theirs - {CACHE})

    def _value(self, name: str) -> Any:
        try:
            return self.variables[name]
        except KeyError:
            return GONE

    def onto_side(self, commit: str | None, refused: dict[str, Any]) -> Change:
        """Return the change of a commit beside the branch: all that this line has.

        Args:
            commit: what it stands on.
            refused: variables whose values could not be taken into the line.
        """
        built = self.variables.at(commit)
        gone = {name: GONE for name in built.names() if name not in self.variables}
        for name, value in {**gone, **self.variables.live(), **refused}.items():
            if name != CACHE or value or CACHE in built:
                put(built, name, value)
        return built.change()

    def merged(self, commit: str, change: Change) -> None:
        """Take note that what changed here was written to *commit*, with what others changed."""
        held = {name: one.beside() for name, one in change.held.items()}
        self.is_merged = True
        self._looks = self._look(self._keys(self.variables))
        self.variables.committed(commit, Change(held=held, gone=change.gone))

    # -- the line of the host ----------------------------------------------------------------

    def of_host(self) -> dict[str, Any]:
        """Return the variables that the host bound since the last commit, with `GONE` for deleted ones."""
        found = dict(self._given)
        for name in (self.variables.bound | self.variables.gone) - {CACHE}:
            if self.writes.is_by(name, None):
                found[name] = self._live(name)
        return found

    def _live(self, name: str) -> Any:
        return self.variables[name] if self.variables.is_live(name) else GONE

    def keep_given(self, name: str) -> None:
        """Remember what the host bound, for a task is going to bind it anew."""
        is_new = name in self.variables.bound or name in self.variables.gone
        if is_new and name != CACHE and self.writes.is_by(name, None):
            self._given[name] = self._live(name)

    def change_of_host(self) -> Change:
        """Return the change of a commit of the variables that the host bound, alone."""
        built = self.variables.at(self.variables.commit)
        for name, value in self.of_host().items():
            put(built, name, value)
        return built.change()

    def given_up(self) -> None:
        """Take note that what the host bound was committed."""
        self._given.clear()

    def follow(self, commit: str | None, marks: Iterable[Mark], change: Change) -> None:
        """Stand on a commit of another line; what was changed here and not committed stays so.

        Args:
            commit: of the other line.
            marks: what it changed.
            change: what it wrote.
        """
        own = self._cache_marks() if self.variables.is_live(CACHE) else set()
        cache = self._live(CACHE)
        names = {mark[0] for mark in marks}
        if CACHE in names and own and type(cache) is dict:  # the host wrote into it, and may hold it
            theirs = self._keys(self.variables.at(commit)) or {}
            merged = _merged(theirs, cache, [mark[1] for mark in own])
            cache.clear()
            cache.update(merged)
            self.variables[CACHE] = cache
        elif CACHE in names:
            self.variables.forget([CACHE])
        for name in names:
            self.writes.note(name, self)  # a task that was on the line before has not seen it
        self.variables.follow(commit, names, change.names())


def whole(name: str) -> set[Mark]:
    """Return the mark of a variable as a whole."""
    return {(name,)}


def overlap(mine: Iterable[Mark], theirs: Iterable[Mark]) -> set[Mark]:
    """Return those of my marks that others changed too."""
    mine, theirs = set(mine), set(theirs)
    found = mine & theirs
    if (CACHE,) in mine and any(mark[0] == CACHE for mark in theirs):
        found.add((CACHE,))
    if (CACHE,) in theirs:
        found |= {mark for mark in mine if mark[0] == CACHE}
    return found


def shown_mark(mark: Mark) -> str:
    """Return the text of a mark, as code would write it."""
    return mark[0] if len(mark) == 1 else f"{mark[0]}[{mark[1]!r}]"


def put(variables: Variables, name: str, value: Any) -> None:
    """Bind a variable, or delete it where the value is `GONE`."""
    if value is not GONE:
        variables[name] = value
    elif name in variables:
        del variables[name]


def _merged(theirs: dict[Any, Any], mine: dict[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
    found = dict(theirs)
    for key in keys:
        if key in mine:
            found[key] = mine[key]
        else:
            found.pop(key, None)
    return found
