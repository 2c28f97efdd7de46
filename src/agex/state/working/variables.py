"""The variables of a branch: the live objects, and their stored form.

Objects stay live between commits, so identity holds within a process and nothing is read
again. Whether one was changed in place is seen by its fingerprint, taken of the live object.
Variables that share objects are one group and stored together: its payload is under the key
of its first name, the others point there. A group that cannot be read is under the first of those
that are left, where some of its variables were deleted or bound anew: its names say more than there are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from agex import values
from agex.errors import StateCorrupt
from agex.state.commits.journal import Journal
from agex.state.working.entries import Entries
from agex.state.working.stored_variables import (
    CACHE,
    ELSEWHERE,
    HERE,
    IMPORT,
    Codec,
    Stored,
    Unreadable,
    is_import,
    key_of,
    name_of,
    names_at,
    variables_at,
)

__all__ = ["Change", "Variables"]

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
"""Types whose objects nobody can change: they are looked at only when a name is bound anew."""


@dataclass(frozen=True)
class _StoredGroup:
    """The stored form of a group whose objects are live."""

    names: tuple[str, ...]
    fingerprint: values.Fingerprint
    recipe: values.Recipe | None
    """None where what is stored is another encoding of the same: of a set in another order."""
    passing: bool
    """Whether it is read anew once a task is over: something in it is not kept, or is made by each task."""

    def beside(self) -> _StoredGroup:
        """Return the same for a commit that may hold the group in another form."""
        return replace(self, recipe=None)


@dataclass
class Change:
    """The variables that a commit has to write."""

    payloads: dict[str, bytes | None] = field(default_factory=dict)
    chunks: dict[bytes, memoryview] = field(default_factory=dict)
    held: dict[str, _StoredGroup] = field(default_factory=dict)
    """The new stored form of each group that changed, by name."""
    gone: set[str] = field(default_factory=set)

    def names(self) -> set[str]:
        """Return the variables that are written, and those that are stored together with them."""
        names = {name for key in self.payloads if (name := name_of(key)) is not None}
        return names.union(*(self.held[name].names for name in names if name in self.held))


class Variables:
    """The variables on top of a commit.

    Args:
        journal: where they are stored.
        codec: how.
        commit: what they start from; None for nothing.
    """

    def __init__(self, journal: Journal, codec: Codec, commit: str | None) -> None:
        self._journal = journal
        self._codec = codec
        self.commit = commit
        self._live: dict[str, Any] = {}
        self._packed: WeakValueDictionary[str, values.Group] = WeakValueDictionary()
        """Groups that are still in use as they were packed: variables that share objects are of one group."""
        self._held: dict[str, _StoredGroup] = {}
        self._watched: dict[str, values.Fingerprint | None] = {}
        """The names in `_held` whose objects may change (others cannot, before they are given out), with the
        fingerprint of each that is stored by itself."""
        self._looks = values.Looks()
        self._alone: set[str] = set()
        """Names whose objects were in nobody else's hands at the last look, and were not given out since."""
        self._sketched: tuple[tuple[str | None, str], dict[str, Any]] | None = None
        """The group that was shown last, and where it is stored: its variables are shown one by one."""
        self._of_workers: set[str] = set()
        """Names that were bound to what a worker packed, and are not stored yet."""
        self._bound: set[str] = set()
        """Names bound since the last commit."""
        self._gone: set[str] = set()
        """Names deleted since the last commit."""

    # -- as a mapping ------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        if name in self._live:
            return True
        return name not in self._gone and self._is_stored(name)

    def names(self) -> list[str]:
        """Return all names, sorted, without the cache and the imports."""
        stored = set(variables_at(self._journal, self.commit)) - self._gone
        return sorted(stored | {name for name in self._live if name != CACHE and not is_import(name)})

    def imports(self) -> dict[str, str]:
        """Return the imports that bind the variables that are modules, by variable."""
        stored = names_at(self._journal, self.commit, key_of(IMPORT))
        names = {f"{IMPORT}{name}" for name in stored} - self._gone | set(filter(is_import, self._live))
        return {name.removeprefix(IMPORT): self[name] for name in sorted(names)}

    def write_imports(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Take over which variables are modules, where that changed between two namespaces of a task."""
        for name, text in after.items():
            if before.get(name) != text:
                self[f"{IMPORT}{name}"] = text
        for name in before.keys() - after.keys():
            if f"{IMPORT}{name}" in self:
                del self[f"{IMPORT}{name}"]

    def __getitem__(self, name: str) -> Any:
        if name not in self._live:
            copy = self._copied(name)
            if copy is not None:
                return copy[0]
            if not self._load(name):
                raise KeyError(name)
        return self._given_out(name)

    def _given_out(self, name: str) -> Any:
        """Return a live object to somebody who may change it from now on."""
        self._alone.discard(name)
        if name in self._held:
            self._watch(name)
        return self._live[name]

    def _watch(self, name: str) -> None:
        held = self._held[name]
        self._watched[name] = held.fingerprint if len(held.names) == 1 else None

    def _leave(self, names: Iterable[str]) -> None:
        """Do not look any more at objects that are in nobody else's hands."""
        for name in names:
            self._watched.pop(name, None)

    def _keep(self, name: str, held: _StoredGroup) -> None:
        self._held[name] = held
        self._watch(name)

    def _drop(self, name: str) -> None:
        self._watched.pop(name, None)
        self._held.pop(name, None)

    def _copied(self, name: str) -> list[Any] | None:
        """Return a variable that is kept with code of a worker, which only a worker changes, as a copy."""
        stored = self._stored_at()
        recipe = None if stored is None or name in self._gone else stored.recipe(name)
        if stored is None or recipe is None or not (recipe.origin and recipe.has_code):
            return None
        return [stored.group(name, recipe)[1][name]]

    def __setitem__(self, name: str, value: Any) -> None:
        self._part(name)
        self._alone.discard(name)
        self._live[name] = value
        if type(value) is values.Packed:
            self._of_workers.add(name)
        self._bound.add(name)
        self._gone.discard(name)

    def __delitem__(self, name: str) -> None:
        if name not in self._live and (name in self._gone or not self._is_to_go(name)):
            raise KeyError(name)
        self._part(name)
        self._live.pop(name, None)
        self._alone.discard(name)
        self._bound.discard(name)
        self._gone.add(name)

    def _part(self, name: str) -> None:
        """Load what shares objects with a value that goes: it is stored without it from now on.

        An unreadable value stays as it is stored: giving up one variable must not demand the others.
        """
        if name in self._live or name in self._gone:
            return
        with contextlib.suppress(StateCorrupt, Unreadable):
            if self._shares(name):
                self._load(name)

    def all(self, *, packed: bool = False) -> dict[str, Any]:
        """Return every variable but the cache; in the place of one that cannot be read, a marker.

        Args:
            packed: as they were packed, where that was at another level of isolation.

        Raises:
            StateCorrupt: the bytes of one are damaged.
        """
        found: dict[str, Any] = {}
        names = self.names()
        for name in names:
            if name in found:
                continue
            try:
                found[name] = self.packed(name) if packed else self[name]
            except Unreadable as error:  # the whole group is, and is not tried again for each
                found |= {one: error.marker(one) for one in error.names if self._is_as_stored(one)}
        return {name: found[name] for name in names}

    def cache(self, *, packed: bool = False) -> Any:
        """Return the cache; a marker where it cannot be read, see `all`.

        Raises:
            KeyError: there is none.
        """
        try:
            return self.packed(CACHE) if packed else self[CACHE]
        except Unreadable as error:
            return error.marker(CACHE, " (the host gives it up with state.write_cache({}))")

    def packed(self, name: str) -> Any:
        """Return a variable: as it was packed, if that was at another level of isolation.

        Raises:
            KeyError: there is no such variable.
        """
        stored = self._stored_at()
        found = None if stored is None or name in self._live or name in self._gone else stored.found(name)
        if found is None or not found[1].origin:
            return self[name]
        home, recipe = found
        group = self._packed.get(home)
        if group is None or group.names != recipe.names:
            group = self._packed[home] = values.put_together(recipe, self._journal.chunk)
        return values.Packed(group, name)

    def sketch(self, name: str) -> Any:
        """Return a variable to be shown; a stored one is decoded without running guest code.

        Raises:
            KeyError: there is no such variable.
            StateCorrupt: its bytes are damaged.
            Unreadable: they are whole, but no objects are made of them here.
        """
        stored = self._stored_at()
        found = None if stored is None or name in self._live or name in self._gone else stored.found(name)
        if found is None:
            return values.sketched({name: self[name]}, allow=self._codec.allow)[name]
        home, recipe = found
        if self._sketched is None or self._sketched[0] != (self.commit, home):
            group = values.put_together(recipe, self._journal.chunk)
            whole = {each: values.Packed(group, each) for each in recipe.names}
            try:
                shown = values.opened(whole, allow=self._codec.allow, guest=values.Sketch())
            except StateCorrupt as error:
                raise Unreadable(name, recipe.names, error) from error
            self._sketched = (self.commit, home), shown
        return self._sketched[1][name]

    def is_live(self, name: str) -> bool:
        """Return whether the object itself is here."""
        return name in self._live

    def _load(self, name: str) -> bool:
        stored = self._stored_at()
        if stored is None or name in self._gone or (found := stored.found(name)) is None:
            return False
        home, recipe = found
        group, objects = stored.group(name, recipe)
        rest = stored.belonging(home, recipe)
        fresh = {one: objects[one] for one in rest if self._is_as_stored(one)}
        self._live.update(fresh)
        if fresh.keys() != objects.keys():
            self._bound |= fresh.keys()  # it was stored with what is gone or was bound anew since
        elif len(objects) > 1 or type(objects[name]) not in _ATOMS:
            self._hold(objects, group, recipe)
        return True

    def _hold(self, objects: Mapping[str, Any], stored: values.Group, recipe: values.Recipe) -> None:
        """Remember how loaded objects look, to see later whether they were changed."""
        for group in self._encode(objects):
            same = group.names == stored.names and group.stream == stored.stream
            held = _StoredGroup(
                group.names, values.fingerprint(group), recipe if same else None, _is_passing(group)
            )
            for name in group.names:
                self._keep(name, held)
            if group.names != stored.names:
                self._bound |= set(group.names)  # stored together, but sharing nothing any more

    def _shares(self, name: str) -> bool:
        stored = self._stored_at()
        recipe = None if stored is None else stored.recipe(name)
        return recipe is not None and len(recipe.names) > 1

    def _stored_at(self) -> Stored | None:
        return None if self.commit is None else Stored(self._journal, self.commit, self._codec)

    def _is_stored(self, name: str) -> bool:
        return self._stored(name) is not None

    # -- what changed ------------------------------------------------------------------------

    def change(self) -> Change:
        """Find what changed since the commit, in place or by name."""
        change = Change()
        found = self._looks.look(self._live, self._suspects(), self._encode)
        self._alone = set(found.alone)
        self._leave(found.alone & found.unchanged)
        for group in found.groups:
            now = values.fingerprint(group)
            held = self._held.get(group.names[0])
            if held is not None and held.names != group.names:
                held = None
            if held is not None and held.fingerprint == now and not self._bound & set(group.names):
                self._leave(found.alone & set(group.names))
                continue
            before = None if held is None or held.recipe is None else (held.fingerprint, held.recipe)
            cut = values.cut(group, self._journal.address, now=now, before=before)
            self._write(change, group, now, cut)
        for name in self._gone:
            if self._is_to_go(name):
                change.payloads[key_of(name)] = None
                change.gone.add(name)
        self._move(change)
        return change

    def _suspects(self) -> dict[str, values.Fingerprint | None]:
        """Return the variables to look at, with the fingerprint of each that was stored by itself."""
        known = {**self._watched, **dict.fromkeys(self._bound)}
        for name in self._gone:
            known.pop(name, None)
        if CACHE in self._live and (CACHE in self._bound or CACHE not in self._held):
            # One that was empty may not be written yet; an empty one is written only over a stored one.
            known[CACHE] = None
            if not self._live[CACHE] and not self._is_stored(CACHE):
                del known[CACHE]
        return known

    def _is_to_go(self, name: str) -> bool:
        """Return whether something is stored of a variable that is given up, be it damaged."""
        return self._given_up(name) != b""

    def _given_up(self, name: str) -> bytes | None:
        """Return the stored payload of a variable that is given up: empty for none, None for damage.

        Damage is no reason not to give it up. It stays in the commits before, where `fsck` finds it.
        """
        try:
            return self._stored(name) or b""
        except StateCorrupt:
            return None

    def _move(self, change: Change) -> None:
        """Put groups that could not be read under the key of another of their variables.

        They are under one that was deleted or bound anew; the others stay as they are stored.
        """
        stored = self._stored_at()
        for home in self._bound | self._gone if stored is not None else ():
            payload = self._given_up(home)
            if stored is None or not payload or payload[:1] != HERE:
                continue
            with contextlib.suppress(StateCorrupt):
                recipe = values.read_recipe(payload[1:])
                others = [one for one in stored.belonging(home, recipe) if self._is_as_stored(one)]
                for one in others:
                    change.payloads[key_of(one)] = ELSEWHERE + others[0].encode()
                if others:
                    change.payloads[key_of(others[0])] = payload

    def _is_as_stored(self, name: str) -> bool:
        return name not in self._live and name not in self._gone

    def _write(self, change: Change, group: values.Group, now: values.Fingerprint, cut: values.Cut) -> None:
        first, *others = group.names
        payloads = {first: HERE + cut.payload, **dict.fromkeys(others, ELSEWHERE + first.encode())}
        new = {name: payload for name, payload in payloads.items() if self._given_up(name) != payload}
        change.payloads.update({key_of(name): payload for name, payload in new.items()})
        if first in new:
            change.chunks.update(cut.chunks)
        held = _StoredGroup(group.names, now, cut.recipe, _is_passing(group))
        change.held.update(dict.fromkeys(group.names, held))

    def _stored(self, name: str) -> bytes | None:
        return None if self.commit is None else self._journal.read(self.commit, key_of(name))

    def _encode(
        self, objects: Mapping[str, Any], apart: AbstractSet[int] = frozenset()
    ) -> list[values.Group]:
        """Encode variables; those that workers packed go as they are."""
        if not objects:
            return []
        if not any(type(value) is values.Packed for value in objects.values()):
            return values.encode(objects, allow=self._codec.allow, guest=self._codec.guest, apart=apart)
        whole = list(values.packed_groups(objects))
        taken = {name for group in whole for name in group.names}
        rest = {name: value for name, value in objects.items() if name not in taken}
        return [*whole, *self._encode(self.opened(rest), apart)]

    def opened(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Decode those of some variables that workers packed."""
        return values.opened(variables, allow=self._codec.allow, guest=self._codec.guest)

    def committed(self, commit: str | None, change: Change) -> None:
        """Take note that a change was written."""
        self.commit = commit
        self._packed.clear()
        for name, held in change.held.items():
            if len(held.names) == 1 and type(self._live.get(name)) in _ATOMS:
                self._drop(name)
            else:
                self._keep(name, held)
                self._leave(self._alone & {name})
        for name in self._gone:
            self._drop(name)
        for name in self._of_workers:
            if type(self._live.get(name)) is values.Packed:
                del self._live[name]  # it is stored now, and read from there
                self._drop(name)
        self._of_workers.clear()
        self._bound.clear()
        self._gone.clear()

    def entries(self) -> Entries:
        """Return entries of the same journal, none of them put yet."""
        return Entries(self._journal, self._codec)

    def stand_on(self, commit: str) -> None:
        """Stand on a commit that changed no variable."""
        self.commit = commit

    # -- beside other lines of work --------------------------------------------------------------

    def at(self, commit: str | None) -> Variables:
        """Return the variables of another commit, none of them live."""
        return Variables(self._journal, self._codec, commit)

    def live(self) -> dict[str, Any]:
        """Return the objects that are here."""
        return {name: self._given_out(name) for name in self._live}

    @property
    def bound(self) -> AbstractSet[str]:
        """Names bound since the last commit."""
        return self._bound

    @property
    def gone(self) -> AbstractSet[str]:
        """Names deleted since the last commit."""
        return self._gone

    def is_changed(self, name: str, change: Change, commit: str | None) -> bool:
        """Return whether a variable has another value than at a commit, not only another neighbour.

        A group is stored as one. Where it is written anew, the variables in it may be what they were.
        """
        held = change.held.get(name)
        stored = None if commit is None else Stored(self._journal, commit, self._codec)
        if name in self._gone:
            return stored is not None and stored.holds(name)
        try:
            found = None if stored is None else stored.found(name)
            if held is None:
                return False  # it was only moved, see `_move`
            if stored is None or found is None:
                return True
            if len(held.names) == len(found[1].names) == 1 and commit == self.commit:
                return True  # it is written because it differs
            if type(self._live[name]) is values.Packed:
                return name in self._bound
            was = stored.group(name, found[1])[1][name]
        except Unreadable:
            return name in self._bound
        return self.look_of(was) != self.look_of(self._live[name])

    def is_touched(self, name: str) -> bool:
        """Return whether a live object was changed in place since the commit."""
        held = self._held.get(name)
        if held is None or any(each not in self._live for each in held.names):
            return False
        groups = self._encode({each: self._live[each] for each in held.names})
        return [values.fingerprint(group) for group in groups] != [held.fingerprint]

    def look_of(self, value: Any) -> list[values.Fingerprint]:
        """Return the fingerprint of a value by itself."""
        return [values.fingerprint(group) for group in self._encode({"it": value})]

    def forget(self, names: Iterable[str]) -> None:
        """Let these variables be what the commit has, whatever was done to them here."""
        for name in names:
            self._live.pop(name, None)
            self._drop(name)
            self._bound.discard(name)
            self._gone.discard(name)

    def written(self, commit: str | None, change: Change, names: Collection[str]) -> None:
        """Take note that these of the names of a change were written to a commit."""
        self.commit = commit
        self._bound -= set(names)
        self._gone -= set(names)
        for name in names:
            self._drop(name)
            held = change.held.get(name)
            is_atom = type(self._live.get(name)) in _ATOMS
            if held is not None and set(held.names) <= set(names) and not (is_atom and len(held.names) == 1):
                self._keep(name, held)

    def follow(self, commit: str | None, changed: AbstractSet[str], written: AbstractSet[str]) -> None:
        """Stand on a later commit; what was changed here stays so.

        Args:
            commit: the commit.
            changed: variables that have other values there.
            written: those that are stored otherwise, for instance with other variables.
        """
        affected = {*changed, *written}
        for name in list(affected):
            held = self._held.get(name)
            affected |= set() if held is None else set(held.names)
        self._bound |= {name for name in affected - changed if self.is_touched(name)}
        self.commit = commit
        self.forget(affected - self._bound - self._gone)

    def release(self) -> None:
        """Let go of objects that are to be read anew: a task is over, and what it could not keep with it."""
        for name, held in list(self._held.items()):
            if held.passing and not self._bound & set(held.names):
                self._drop(name)
                self._live.pop(name, None)


def _is_passing(group: values.Group) -> bool:
    return bool(group.lost) or group.has_code or group.is_of_session
