"""State that lives in memory, with the objects themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from agex import values
from agex.display import Page
from agex.errors import StateConflict
from agex.state.base import State, require_name
from agex.state.working.tracked_files import FileSpace
from agex.state.working.view import View, Writes

__all__ = ["Live", "LiveView"]

CACHE = "cache"
"""The name of the cache among packed variables."""


class Live(State):
    """Keep an agent's variables in memory from task to task, whatever their type.

    Nothing is copied, so what agents change in place is changed here too, also for a task that
    runs at the same time, and there is no history to go back to. A task that binds a name which
    another bound since it began ends with ``StateConflict``; what it bound in that action is
    dropped. Of tasks whose code runs in a worker it keeps what they made as bytes,
    which are decoded when the host or code in this process asks.
    """

    def __init__(self, variables: Mapping[str, Any] | None = None) -> None:
        self._variables: dict[str, Any] = {}
        self._imports: dict[str, str] = {}
        self._lock = threading.Lock()
        self._writes = Writes()
        self._events: list[Any] = []
        self._cache: Any = {}
        self._classes: set[type] = set()
        self._sketched: tuple[values.Group, dict[str, Any]] | None = None
        """The group that was shown last: its variables are shown one by one."""
        self._guest: values.GuestCode | None = None
        self.files = FileSpace()
        self.update(variables or {})

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A Live state lives in this process only; for several processes use Versioned(Disk(path)) "
            "or another store."
        )

    @property
    def events(self) -> list[Any]:
        return self._events

    @property
    def cache(self) -> dict[str, Any]:  # type: ignore[override]  # readers see a plain attribute
        with self._lock:
            if type(self._cache) is values.Packed:
                self._cache = self._opened({CACHE: self._cache})[CACHE]
            found: dict[str, Any] = self._cache
            return found

    def packed_cache(self) -> Any:
        return self._cache

    def write_cache(self, cache: Any) -> None:
        self._cache = cache

    def admit(self, classes: Iterable[type], guest: values.GuestCode | None) -> None:
        with self._lock:
            self._classes |= set(classes)
            self._sketched = None
            self._guest = guest or self._guest

    def snapshot(self, *, packed: bool = False) -> dict[str, Any]:
        with self._lock:
            if packed:
                return dict(self._variables)
            self._open()
            return self._opened(self._variables)

    def _open(self) -> None:
        """Put the objects themselves in the place of what workers packed; code stays packed."""
        found = {
            name: value
            for name, value in self._variables.items()
            if type(value) is values.Packed and not value.group.has_code
        }
        self._variables.update(self._opened(found))

    def _opened(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        return values.opened(variables, allow=values.Allow(self._classes), guest=self._guest)

    def _read(self, name: str) -> Any:
        found = self._variables[name]
        if type(found) is values.Packed:
            self._open()
            found = self._opened({name: self._variables[name]})[name]
        if type(found) is values.NotKept:  # isinstance() asks the value
            raise values.not_kept_error(found, name)
        return found

    def sketch(self, name: str) -> Any:
        with self._lock:
            found = self._variables[name]
            if type(found) is values.Packed:
                group = found.group
                if self._sketched is None or self._sketched[0] is not group:
                    whole = {each: values.Packed(group, each) for each in group.names}
                    self._sketched = group, values.sketched(whole, allow=values.Allow(self._classes))
                found = self._sketched[1][found.name]
        if type(found) is values.NotKept:  # isinstance() asks the value
            raise values.not_kept_error(found, name)
        return found

    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        with self._lock:
            for name, value in after.items():
                if name not in before or before[name] is not value:
                    self._variables[name] = value
            for name in before.keys() - after.keys():
                self._variables.pop(name, None)

    @property
    def imports(self) -> dict[str, str]:
        with self._lock:
            return dict(self._imports)

    def write_imports(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        with self._lock:
            self._imports.update({name: text for name, text in after.items() if before.get(name) != text})
            for name in before.keys() - after.keys():
                self._imports.pop(name, None)

    def view(self, caller: View | None = None) -> View:
        return LiveView(self, self._writes)

    def forks(self, label: str, count: int) -> LiveForks:
        return LiveForks(self, count)

    def fork(self) -> LiveFork:
        """Return a copy of this state as it is now; what cannot be copied is in both."""
        with self._lock:
            self._open()
            variables = self._copied(self._variables)
            cache = self._copied({CACHE: self._cache})[CACHE]
            fork = LiveFork(self, self._writes.count)
            fork.begin(variables, cache, self._imports, self._classes, self._guest)
        for path, entry in self.files.entries.items():
            fork.files.put(path, self.files[path], created=entry.created, modified=entry.modified)
        fork.mark()
        return fork

    def _copied(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        return values.copied(variables, allow=values.Allow(self._classes), guest=self._guest)

    def take(self, changes: Mapping[str, Any], gone: Iterable[str], party: object, since: int) -> list[str]:
        """Take over what a task bound, and note it; return the names that it lost, then nothing is taken."""
        with self._lock:
            names = [*changes, *gone]
            lost = [name for name in names if self._writes.is_lost(name, party, since)]
            for name in () if lost else names:
                self._writes.note(name, party)
                if name in changes:
                    self._variables[name] = changes[name]
                else:
                    self._variables.pop(name, None)
            return lost

    def record(self, event: Any) -> None:
        self._events.append(event)

    def settle(self, message: str, *, last: bool = False) -> None:
        """Do nothing: the objects themselves are here."""

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            return self._read(name)

    def __setitem__(self, name: str, value: Any) -> None:
        require_name(name)
        with self._lock:
            self._writes.note(name, None)
            self._variables[name] = value

    def __delitem__(self, name: str) -> None:
        with self._lock:
            del self._variables[name]
            self._writes.note(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot(packed=True))

    def __len__(self) -> int:
        with self._lock:
            return len(self._variables)

    def page(self) -> Page:
        from agex.state.tables import counts, held_parts

        parts = tuple(held_parts(self, self.cache, self.files))
        return Page(title="Live", facts=counts(self), parts=parts)

    def __repr__(self) -> str:
        return f"Live({', '.join(sorted(self.snapshot(packed=True)))})"


class LiveFork(Live):
    """A copy of a live state, which knows what changed since it was made."""

    def __init__(self, origin: Live, since: int) -> None:
        super().__init__()
        self._origin = origin
        self._since = since

    def begin(
        self,
        variables: dict[str, Any],
        cache: Any,
        imports: Mapping[str, str],
        classes: Iterable[type],
        guest: values.GuestCode | None,
    ) -> None:
        """Hold what the state has."""
        self._variables, self._cache = variables, cache
        self._imports, self._classes, self._guest = dict(imports), set(classes), guest

    def mark(self) -> None:
        """Remember what is here now."""
        self._was = dict(self._variables)
        self._looked = self._looks()
        self._were_files = {path: self.files[path] for path in self.files.entries}
        self._were_imports = dict(self._imports)

    def _looks(self) -> dict[str, values.Fingerprint]:
        """Return how each variable, and the cache, looks: two that share objects look the same."""
        allow = values.Allow(self._classes)
        found = {name: value for name, value in self._variables.items() if type(value) is not values.Packed}
        groups = values.encode(found, allow=allow, guest=self._guest)
        cached = [] if type(self._cache) is values.Packed else [self._cache]
        looks = {name: values.fingerprint(group) for group in groups for name in group.names}
        for cache in cached:
            (group,) = values.encode({CACHE: cache}, allow=allow, guest=self._guest)
            looks[f"{CACHE}!"] = values.fingerprint(group)
        return looks

    def give_back(self) -> None:
        """Let the state that this is a copy of have what changed here.

        Raises:
            StateConflict: others bound the same names meanwhile. Nothing of the variables is given.
        """
        looks = self._looks()
        changed = {
            name: value
            for name, value in self._variables.items()
            if self._was.get(name, self) is not value or looks.get(name) != self._looked.get(name)
        }
        gone = self._was.keys() - self._variables.keys()
        lost = self._origin.take(changed, gone, self, self._since)
        if lost:
            raise StateConflict(
                f"Changed at the same time by another task or the host, which came first: "
                f"{', '.join(sorted(lost))}. The state has their change. Call the task again, it then begins "
                "with what is there now."
            )
        if looks.get(f"{CACHE}!") != self._looked.get(f"{CACHE}!") or type(self._cache) is values.Packed:
            self._origin.write_cache(self._cache)
        self._origin.write_imports(self._were_imports, self._imports)
        for event in self._events:
            self._origin.record(event)
        files = self._origin.files
        for path, entry in self.files.entries.items():
            if self._were_files.get(path) is not self.files[path]:
                files.put(path, self.files[path], created=entry.created, modified=entry.modified)
        for path in self._were_files.keys() - self.files.entries.keys():
            if path in files.entries:
                del files[path]


class LiveForks:
    """Copies of a live state."""

    def __init__(self, state: Live, count: int) -> None:
        self.states: Sequence[LiveFork] = [state.fork() for _ in range(count)]

    def take(self, number: int) -> None:
        self.states[number].give_back()

    def drop(self, *, keep: int | None = None) -> None:
        """Do nothing: they are in memory only."""


class LiveView(View):
    """A task on a live state: it has the objects themselves, and sees who bound a name since it began."""

    def __init__(self, state: Live, writes: Writes) -> None:
        self._state = state
        self._writes = writes
        self._since = writes.count
        self._lost: set[str] = set()

    @property
    def files(self) -> FileSpace:  # type: ignore[override]  # it is the state's
        return self._state.files

    @property
    def cache(self) -> dict[str, Any]:  # type: ignore[override]
        return self._state.cache

    def packed_cache(self) -> Any:
        return self._state.packed_cache()

    def write_cache(self, cache: Any) -> None:
        if self._writes.is_lost(CACHE, self, self._since):
            self._lost.add(CACHE)
            return
        self._writes.note(CACHE, self)
        self._state.write_cache(cache)

    def snapshot(self, *, packed: bool = False) -> dict[str, Any]:
        return self._state.snapshot(packed=packed)

    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        changes = {name: value for name, value in after.items() if before.get(name, self) is not value}
        self._lost.update(self._state.take(changes, before.keys() - after.keys(), self, self._since))

    @property
    def imports(self) -> dict[str, str]:
        return self._state.imports

    def write_imports(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        self._state.write_imports(before, after)

    def record(self, event: Any) -> None:
        self._state.record(event)

    def settle(self, message: str, *, last: bool = False) -> None:
        if self._lost:
            names, self._lost = ", ".join(sorted(self._lost)), set()
            raise StateConflict(
                f"Changed at the same time by another task or the host, which came first: {names}. The state "
                "has their change; what this action bound is dropped. Call the task again, it then begins "
                "with what is there now."
            )
