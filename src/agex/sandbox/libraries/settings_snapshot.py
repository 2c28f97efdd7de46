"""Settings of the process as they were at one moment, and how they are put back.

Guest code may have put its own objects into settings. None of them is compared by ``==``.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import module_of

if TYPE_CHECKING:
    from agex.sandbox.libraries.process_settings import Setting

__all__ = ["Snapshot"]


class Snapshot:
    """Settings of the process at one moment, with the contents of the tables among them."""

    def __init__(self) -> None:
        self.values: dict[Setting, dict[Any, Any]] = {}
        self.tables: dict[int, tuple[Any, Any]] = {}
        self.seeds: dict[str, tuple[Callable[[Any], object], Any]] = {}
        """Generators that were seeded since: the function that restores a state, and the state."""
        self._count = 0
        self._rows: _Rows | None = None
        self._seen: _Seen | None = None
        self.origin: Snapshot | None = None
        """The snapshot that this one is a copy of, as long as both hold the same."""

    def note(self, settings: Sequence[Setting]) -> None:
        """Note settings as they are now."""
        self._count = len(settings)
        for setting in settings:
            with contextlib.suppress(AttributeError):  # another version, or still loading
                values = self.values[setting] = setting.read()
                if setting.holds_tables:
                    self._note_tables(values.values(), deep=setting.deep)

    def _note_tables(self, values: Collection[Any], *, deep: bool) -> None:
        kinds = {type(each) for each in values}
        if not (kinds := {each for each in kinds if _is_table(each)}):
            return
        for table in values:
            if type(table) in kinds and id(table) not in self.tables:
                copied = _copied(table)
                self.tables[id(table)] = table, copied
                if deep:
                    self._note_tables(copied.values() if type(copied) is dict else copied, deep=True)

    def copied(self) -> Snapshot:
        """Return a copy, which takes over changes of the host. Until then it shares what was noted."""
        own = Snapshot()
        own._count, own._rows, own._seen = self._count, self._rows, self._seen
        own.values, own.tables, own.origin = self.values, self.tables, self
        return own

    def is_current(self, settings: Sequence[Setting]) -> bool:
        """Return whether the settings are as they were noted. This takes less time than to note them."""
        if len(settings) != self._count:
            return False
        try:
            if self._rows is None or not self._rows.is_current():
                # The rows first: where a setting changes meanwhile, they are not taken for what was noted.
                rows = _Rows(self.values)
                for setting, was in self.values.items():
                    now = setting.read()
                    if not _is_same(now, was) and (len(now) != len(was) or _changed(now, was)):
                        return False
                self._rows = rows
        except AttributeError:  # it is gone
            return False
        if self._seen is None:
            self._seen = _Seen(self.tables.values())
        return self._seen.is_current()

    def adopt(self, before: Snapshot, after: Snapshot) -> None:
        """Take over the changes between two snapshots: the host made them."""
        self._rows = self._seen = None
        if self.origin is not None:
            self.values = {setting: dict(values) for setting, values in self.values.items()}
            self.tables, self.origin = dict(self.tables), None
        for setting, values in after.values.items():
            was = before.values.get(setting)
            if was is None:
                self.values.setdefault(setting, dict(values))
            elif setting in self.values:
                _merge(self.values[setting], was, values)
        for key, (table, now) in after.tables.items():
            if key not in self.tables or key not in before.tables:
                self.tables[key] = table, now
            elif not _is_same(before.tables[key][1], now):
                mine = dict(self.tables[key][1]) if type(now) is dict else now
                if mine is not now:
                    _merge(mine, before.tables[key][1], now)
                self.tables[key] = table, mine

    def has_its_keys(self) -> bool:
        """Return whether the tables of a snapshot that is current have the keys that were noted."""
        if self._seen is None:
            self._seen = _Seen(self.tables.values())
        return self._seen.has_its_keys()

    def put_back(self) -> None:
        """Restore the settings as they were noted."""
        written: list[Setting] = []
        with contextlib.ExitStack() as steps:  # each step is made, also where one fails
            steps.callback(self.put_seeds_back)
            steps.callback(self._put_tables_back, written)
            for setting, was in self.values.items():
                steps.callback(_write, setting, was, written)

    def _put_tables_back(self, written: list[Setting]) -> None:
        restored = {id(table) for table, was in self.tables.values() if _restore(table, was)}
        for setting, was in self.values.items():
            if setting in written or not restored.isdisjoint(map(id, was.values())):
                setting.after()

    def put_seeds_back(self) -> None:
        """Restore the generators that were seeded."""
        while self.seeds:
            put, state = self.seeds.popitem()[1]
            put(state)


class _Rows:
    """The values of settings in two rows, compared by identity, and by value where reading makes them."""

    def __init__(self, settings: Collection[Setting]) -> None:
        kinds = [[each for each in settings if each.is_made is is_made] for is_made in (False, True)]
        self._places, self._calls = (
            [each.place for each in kind if each.place is not None] for kind in kinds
        )
        self._held, self._made = ([each.row for each in kind if each.place is None] for kind in kinds)
        self._objects, self._values = self._held_now(), self._made_now()
        self._kinds = [*map(type, self._values)]
        self._is_plain = _COMPARED.issuperset(self._kinds)

    def is_current(self) -> bool:
        """Return whether the settings have these values."""
        values = self._made_now()
        return (
            self._is_plain
            and _are_same(self._held_now(), self._objects)
            and _are_same([*map(type, values)], self._kinds)  # none of guest code is compared
            and values == self._values
        )

    def _held_now(self) -> list[Any]:
        modules = sys.modules
        values = [get(modules.get(module)) for module, get in self._places]
        for row in self._held:
            values += row()
        return values

    def _made_now(self) -> list[Any]:
        modules = sys.modules
        values = [get(modules.get(module))() for module, get in self._calls]
        for row in self._made:
            values += row()
        return values


_COMPARED = frozenset({bool, float, int, str, type(None)})


def _are_same(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


class _Seen:
    """The objects in tables, in one row, compared by one call into C: each host function does it."""

    def __init__(self, tables: Collection[tuple[Any, Any]]) -> None:
        self._dicts = [table for table, was in tables if type(was) is dict]
        self._lists = [table for table, was in tables if type(was) is list]
        # A set that nobody changes keeps its order, which a copy need not have.
        self._sets = [table if _is_same(table, was) else () for table, was in tables if type(was) is set]
        copies = [was for _, was in tables if type(was) is not set]
        dicts, lists = ([each for each in copies if type(each) is kind] for kind in (dict, list))
        self._sizes = [len(was) for was in (*dicts, *lists)] + [
            len(was) for _, was in tables if type(was) is set
        ]
        self._row = list(_row(dicts, lists, self._sets))
        self._keys = list(itertools.chain.from_iterable(dicts))

    def is_current(self) -> bool:
        """Return whether the tables hold the same objects."""
        sizes = [*map(dict.__len__, self._dicts), *map(len, self._lists), *map(len, self._sets)]
        return sizes == self._sizes and all(
            map(operator.is_, _row(self._dicts, self._lists, self._sets), self._row)
        )

    def has_its_keys(self) -> bool:
        """Return whether dicts that are current hold their values under the same keys."""
        return all(map(operator.is_, itertools.chain.from_iterable(map(dict.keys, self._dicts)), self._keys))


def _row(dicts: list[Any], lists: list[Any], sets: list[Any]) -> Iterator[Any]:
    """Return the values of dicts, lists and sets, and the last keys of dicts: a new one stands last."""
    lasts = map(next, map(dict.__reversed__, dicts), itertools.repeat(None))
    return itertools.chain(itertools.chain.from_iterable((*map(dict.values, dicts), *lists, *sets)), lasts)


_NONE: Any = object()


def _differs(one: Any, other: Any) -> bool:
    """Return whether two values differ: plain ones by value, others by identity."""
    return one is not other and not (type(one) is type(other) and type(one) in _PLAIN and one == other)


_PLAIN = frozenset({bool, float, int, str})


def _changed(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> list[Any]:
    return [name for name in {**one, **other} if _differs(one.get(name, _NONE), other.get(name, _NONE))]


def _merge(mine: dict[Any, Any], before: Mapping[Any, Any], after: Mapping[Any, Any]) -> None:
    changed = {name: each for name, each in after.items() if _differs(before.get(name, _NONE), each)}
    mine.update(changed)
    for name in before.keys() - after.keys():
        mine.pop(name, None)


def _write(setting: Setting, was: dict[Any, Any], written: list[Setting]) -> None:
    """Write the values of a setting that changed, and note the setting."""
    try:
        now = setting.read()
    except AttributeError:  # its holder was replaced
        return
    names = [] if _is_same(now, was) else _changed(now, was)
    for name in names:
        setting.write(name, was.get(name, setting.NONE))
    if names:
        written.append(setting)


def _is_table(kind: type) -> bool:
    """Return whether objects of a class are tables; some libraries use dicts that check their values."""
    if kind in _TABLES:
        return True
    return issubclass(kind, dict) and module_of(kind).partition(".")[0] in _WITH_TABLES


_TABLES = frozenset({dict, list, set})
_WITH_TABLES = frozenset({"matplotlib", "seaborn"})


def _copied(table: Any) -> Any:
    return dict(dict.items(table)) if isinstance(table, dict) else table.copy()


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two tables hold the same objects, by identity."""
    if type(other) is set:  # a copy may have another order
        return sorted(map(id, one)) == sorted(map(id, other))
    if type(other) is not dict:
        return len(one) == len(other) and all(map(operator.is_, one, other))
    return dict.__len__(one) == len(other) and (
        all(map(operator.is_, dict.values(one), other.values()))
        and all(map(operator.is_, dict.keys(one), other))
    )


def _restore(table: Any, was: Any) -> bool:
    """Restore the contents of a table; return whether they had changed."""
    if _is_same(table, was):
        return False
    if type(was) is dict:
        if not (dict.__len__(table) == len(was) and all(map(operator.is_, dict.keys(table), was))):
            dict.clear(table)  # at first, so that no key of guest code is compared
        dict.update(table, was)
    elif type(was) is list:
        table[:] = was
    else:
        table.clear()
        table.update(was)
    return True
