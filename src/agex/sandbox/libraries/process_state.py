"""What a registered library changes for the whole process is put back after the run.

matplotlib's rcParams, pandas' options, a locale, the level of a logger: guest code has no way to them by the
libraries that have a policy, but a module that the host registers plainly may set them in any of its
functions. So the settings of :mod:`agex.sandbox.libraries.process_settings` are noted where a run begins,
and put back where it ends, however it ends. Two kinds of changes stay: those of a function that the host
registered itself, whose business they are, and those of a module that is loaded in the run, which is loaded
only once.

Runs that overlap in threads share what the first of them noted; each puts it back. A run within a run puts
back what it found.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import operator
import sys
import threading
import types
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import module_of
from agex.sandbox.libraries import (
    process_settings as settings,  # here: behind the walls of a worker no file of agex is read
)
from agex.sandbox.runtime.host_time import of_host

if TYPE_CHECKING:
    from agex.sandbox.libraries.process_settings import Setting
    from agex.sandbox.policy.policy import Policy

__all__ = ["Held", "hold", "keep_functions", "may_change", "staying"]


def may_change(policy: Policy) -> bool:
    """Return whether a policy grants anything that may change settings of the process.

    The standard set and libraries with a policy leave out what would; functions and classes of the host are
    its own business, and called too often to look at so much each time.
    """
    count, said = policy.notes.get(_NOTE, (-1, False))
    if count != len(policy.grants):
        said = _may_change(policy)
        policy.notes[_NOTE] = len(policy.grants), said
    return bool(said)


_NOTE = "process state"


def _may_change(policy: Policy) -> bool:
    from agex.sandbox.policy.library_grant import LibraryGrant
    from agex.sandbox.stdlib import standard_set

    for grant in policy.grants:
        if grant.kind == "module" and isinstance(grant.target, types.ModuleType):
            made = policy.modules.get(grant.settings["name"] or grant.target.__name__)
            if isinstance(made, LibraryGrant):
                is_curated = not made.lifted
            else:
                is_curated = made is not None and made is standard_set.grants().get(grant.target.__name__)
            if not is_curated:
                return True
    return False


class _Noted:
    """Settings as they were, with the contents of the tables among them."""

    def __init__(self) -> None:
        self.values: dict[Setting, dict[Any, Any]] = {}
        self.tables: dict[int, tuple[Any, Any]] = {}
        self.seeds: dict[str, tuple[Callable[[Any], object], Any]] = {}
        """Generators that were seeded since: what puts their state back, and the state."""
        self._count = 0
        self._seen: _Seen | None = None

    def note(self, settings: Sequence[Setting]) -> None:
        """Note settings as they are now."""
        self._count = len(settings)
        for setting in settings:
            with contextlib.suppress(AttributeError):  # of another version; or another thread is loading it
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

    def copied(self) -> _Noted:
        """Return a note of one's own, which takes over what the host changes."""
        own = _Noted()
        own._count = self._count
        own.values = {setting: dict(values) for setting, values in self.values.items()}
        own.tables = dict(self.tables)
        return own

    def is_current(self, settings: Sequence[Setting]) -> bool:
        """Return whether the settings are as they were noted. It takes less than to note them."""
        if len(settings) != self._count:
            return False
        try:
            for setting, was in self.values.items():
                now = setting.read()
                if not _is_same(now, was) and (len(now) != len(was) or _changed(now, was)):
                    return False
        except AttributeError:  # it is there no more
            return False
        if self._seen is None:
            self._seen = _Seen(self.tables.values())
        return self._seen.is_current()

    def adopt(self, before: _Noted, after: _Noted) -> None:
        """Take over what changed between two notes: the host changed it."""
        self._seen = None
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

    def put_back(self) -> None:
        """Have the settings be as they were noted."""
        written: list[Setting] = []
        with contextlib.ExitStack() as steps:  # each is made, also where one fails
            steps.callback(self._put_seeds_back)
            steps.callback(self._put_tables_back, written)
            for setting, was in self.values.items():
                steps.callback(_write, setting, was, written)

    def _put_tables_back(self, written: list[Setting]) -> None:
        restored = {id(table) for table, was in self.tables.values() if _restore(table, was)}
        for setting, was in self.values.items():
            if setting in written or not restored.isdisjoint(map(id, was.values())):
                setting.after()

    def _put_seeds_back(self) -> None:
        while self.seeds:
            put, state = self.seeds.popitem()[1]
            put(state)


class _Seen:
    """The objects in tables, in one row: to look at them is one call into C. It is done at each function."""

    def __init__(self, tables: Collection[tuple[Any, Any]]) -> None:
        self._dicts = [table for table, was in tables if type(was) is dict]
        self._lists = [table for table, was in tables if type(was) is list]
        self._sets = [pair for pair in tables if type(pair[1]) is set]
        copies = [was for _, was in tables if type(was) is not set]
        dicts, lists = ([each for each in copies if type(each) is kind] for kind in (dict, list))
        self._sizes = [len(each) for each in (*dicts, *lists)]
        self._row = list(_row(dicts, lists))

    def is_current(self) -> bool:
        """Return whether the tables hold the same objects."""
        sizes = [*map(dict.__len__, self._dicts), *map(len, self._lists)]
        return (
            sizes == self._sizes
            and all(map(operator.is_, _row(self._dicts, self._lists), self._row))
            and all(_is_same(table, was) for table, was in self._sets)
        )


def _row(dicts: list[Any], lists: list[Any]) -> Iterator[Any]:
    """Return the values of dicts and their last keys: a new one stands last."""
    lasts = (next(dict.__reversed__(each), None) for each in dicts)
    return itertools.chain(itertools.chain.from_iterable((*map(dict.values, dicts), *lists)), lasts)


_NONE: Any = object()


def _differs(one: Any, other: Any) -> bool:
    """Return whether two values are not the same. None of a guest's class is asked what it equals."""
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
    """Write what is not as it was, and note a setting of which there is such."""
    try:
        now = setting.read()
    except AttributeError:  # what held it was changed for something else
        return
    names = [] if _is_same(now, was) else _changed(now, was)
    for name in names:
        setting.write(name, was.get(name, setting.NONE))
    if names:
        written.append(setting)


def _is_table(kind: type) -> bool:
    """Return whether objects of a class are tables. A dict of a library's checks what is written to it."""
    if kind in _TABLES:
        return True
    return issubclass(kind, dict) and module_of(kind).partition(".")[0] in _WITH_TABLES


_TABLES = frozenset({dict, list, set})
_WITH_TABLES = frozenset({"matplotlib", "seaborn"})


def _copied(table: Any) -> Any:
    return dict(dict.items(table)) if isinstance(table, dict) else table.copy()


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two tables hold the same objects. None is asked what it equals: it may be a guest's."""
    if type(other) is set:  # a copy may have another order
        return sorted(map(id, one)) == sorted(map(id, other))
    if type(other) is not dict:
        return len(one) == len(other) and all(map(operator.is_, one, other))
    return dict.__len__(one) == len(other) and (
        all(map(operator.is_, dict.values(one), other.values()))
        and all(map(operator.is_, dict.keys(one), other))
    )


def _restore(table: Any, was: Any) -> bool:
    """Put the contents of a table back; return whether they were others."""
    if _is_same(table, was):
        return False
    if type(was) is dict:
        if not (dict.__len__(table) == len(was) and all(map(operator.is_, dict.keys(table), was))):
            dict.clear(table)  # at first, so that no key of a guest's is asked what it equals
        dict.update(table, was)
    elif type(was) is list:
        table[:] = was
    else:
        table.clear()
        table.update(was)
    return True


class Held:
    """The settings that one run puts back. It also is what finds modules for the time being."""

    def __init__(self, noted: _Noted, shares: bool) -> None:
        self.noted = noted
        self.shares = shares
        """Whether it puts back what the host had, and not what a run around it had."""
        self._tokens = _AROUND.set(self), _WORKING.set(False)

    def put_back(self) -> None:
        """Put back what was noted; may be called again."""
        with _LOCK:
            if self not in _HELD:
                return
            _HELD.remove(self)
            if not _HELD:
                sys.meta_path.remove(_LOADING)
        with contextlib.suppress(ValueError):  # a dropped run, in another context than its own
            _WORKING.reset(self._tokens[1])
            _AROUND.reset(self._tokens[0])
        self.noted.put_back()
        if not _HELD:
            _LAST["noted"] = self.noted


_HELD: list[Held] = []
_LOCK = threading.RLock()
_AROUND: ContextVar[Held | None] = ContextVar("agex_process_state", default=None)
_WORKING: ContextVar[bool] = ContextVar("agex_host_changes", default=False)
"""Whether what changes here is of the host's doing."""


def hold() -> Held:
    """Note the settings of the process for a run that begins here."""
    around = _AROUND.get()
    with _LOCK:
        first = next((each for each in _HELD if each.shares), None)
        is_within = around is not None and around in _HELD
        noted = _now().copied() if first is None or is_within else first.noted
        held = Held(noted, shares=not is_within)
        if not _HELD:
            sys.meta_path.insert(0, _LOADING)
        _HELD.append(held)
    settings.watch_seeds(_note_seed)
    return held


def _now() -> _Noted:
    """Return the settings as they are, which nobody changes: what was noted last, where it holds."""
    found = settings.loaded()
    last = _LAST.get("noted")
    if last is None or not last.is_current(found):
        last = _LAST["noted"] = _Noted()
        last.note(found)
    return last


_LAST: dict[str, _Noted] = {}
"""What was noted last, by all threads. Between runs, it is what the host has."""


def _note_seed(name: str, put: Callable[[Any], object], state: Any) -> None:
    """Note the state of a generator of the process that is about to be seeded."""
    around = _AROUND.get()
    if around is not None and around in _HELD and not _WORKING.get():
        around.noted.seeds.setdefault(name, (put, state))


# -- what stays


@contextlib.contextmanager
def staying() -> Iterator[None]:
    """Have changes stay that are made in the block."""
    if not _HELD or _WORKING.get():
        yield
        return
    before, token = _now(), _WORKING.set(True)
    try:
        yield
    finally:
        _WORKING.reset(token)
        after = _now()
        if after is not before:
            with _LOCK:
                for noted in {id(each.noted): each.noted for each in _HELD}.values():
                    noted.adopt(before, after)


def keep_functions(policy: Policy) -> None:
    """Have the changes stay of the functions that a policy grants, where it grants what puts others back."""
    if may_change(policy):
        for grant in policy.grants:
            name = grant.kind == "fn" and (grant.settings["name"] or getattr(grant.target, "__name__", None))
            if name in policy.names:
                policy.names[name] = _kept(policy.names[name])


def _kept(function: Any) -> Any:
    """Return a function of the host's whose changes of settings stay; any other object as it is."""
    if not isinstance(function, types.FunctionType | types.MethodType) or function in _KEPT:
        return function
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wait(*args: Any, **kwargs: Any) -> Any:
            with staying():
                return await function(*args, **kwargs)

        _KEPT.add(wait)
        return wait

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with staying():
            return function(*args, **kwargs)

    _KEPT.add(call)
    return of_host(call)


_KEPT: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
"""Functions that were made here."""


class _Loading:
    """Finds modules as the other finders do, and has stay what they change as they are loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module; None where nothing is to be looked at."""
        if _WORKING.get() or not _HELD:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                loader: Any = spec.loader
                if hasattr(loader, "exec_module") and type(getattr(loader, "__dict__", None)) is dict:
                    vars(loader)["exec_module"] = functools.partial(_load, loader)
                return spec
        return None


def _load(loader: Any, module: types.ModuleType) -> None:
    del vars(loader)["exec_module"]  # it is the one of the class again
    with staying():
        loader.exec_module(module)


_LOADING: Any = _Loading()
