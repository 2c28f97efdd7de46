"""Settings of the process that a run could change for the host: noted at its begin, restored at its end.

* Settings of libraries: matplotlib's rcParams, pandas' options, a locale, the level of a logger. Libraries
  with a policy leave out what sets them; a module that the host registers plainly may set them in any
  function. So the settings of :mod:`agex.sandbox.libraries.process_settings` are noted and restored. Two
  kinds of changes stay: those of a function that the host registered itself, and those of a module that is
  loaded in the run, which is loaded only once.
* Floating point errors and print options of numpy, which hold for a context. ``np.errstate`` limits a change
  to a block, but a block may be entered and never left (an ``ExitStack``, a generator).
* The decimal context, which guest code keeps from run to run.
* ``gc.callbacks``: they are called as the host, also where a collection comes in a run.

Runs that overlap in threads share the first snapshot; each restores it. A run within a run restores what it
found. While another run is on, nobody can tell whose a change is: then also those of registered functions are
restored.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from agex.sandbox.libraries import (
    process_settings,  # at import: once a worker is locked down, it cannot read files of agex
)
from agex.sandbox.libraries.settings_snapshot import Snapshot
from agex.sandbox.runtime.host_time import of_host

if TYPE_CHECKING:
    from agex.sandbox.policy.policy import Policy

__all__ = [
    "SavedSettings", "float_settings", "give_decimals_back", "hold", "keep_functions", "may_change",
    "release_callbacks", "restore_float_settings", "staying", "take_decimals",
]  # fmt: skip


def may_change(policy: Policy) -> bool:
    """Return whether a policy grants anything that may change settings of the process.

    The standard set and libraries with a policy leave out such functions. Changes by functions and classes of
    the host stay; they are called too often for a snapshot each time.
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
                is_curated = not made.lifted and not made.library.has_settings
            else:
                is_curated = made is not None and made is standard_set.grants().get(grant.target.__name__)
            if not is_curated:
                return True
    return False


class SavedSettings:
    """The settings that one run restores."""

    def __init__(self, noted: Snapshot, found: Snapshot, *, shares: bool) -> None:
        self.noted = noted
        self.found = found
        """The settings when the run began: those of the host, or what another run has made of them."""
        self.shares = shares
        """Whether it restores the settings of the host, and not those of a run around it."""
        self.around = _AROUND.get()
        self._tokens = _AROUND.set(self), _WORKING.set(False)

    def is_unchanged(self) -> bool:
        """Return whether the settings are those with which the run began."""
        return self.found.is_current(process_settings.loaded()) and self.found.has_its_keys()

    def put_back(self, is_unchanged: bool) -> None:
        """Restore the settings noted; may be called again.

        Args:
            is_unchanged: what `is_unchanged` returned, with no code run since.
        """
        with _LOCK:  # a run that begins meanwhile would take for the host's what is not yet restored
            if self not in _HELD:
                return
            with contextlib.suppress(ValueError):  # a dropped run, in another context than its own
                _WORKING.reset(self._tokens[1])
                _AROUND.reset(self._tokens[0])
            try:
                if is_unchanged and self.noted.origin is self.found:
                    self.noted.put_seeds_back()
                else:
                    self.noted.put_back()
            finally:
                _HELD.remove(self)
                if not _HELD:
                    sys.meta_path.remove(_LOADING)
                    _LAST["noted"] = self.noted.origin or self.noted


_HELD: list[SavedSettings] = []
_LOCK = threading.RLock()
_AROUND: ContextVar[SavedSettings | None] = ContextVar("agex_process_state", default=None)
_WORKING: ContextVar[bool] = ContextVar("agex_host_changes", default=False)
"""Whether changes in this context are made by the host."""
_IS_LOADING: ContextVar[bool] = ContextVar("agex_loads_module", default=False)
"""Whether a module is being loaded in this context, with those that it imports."""


def hold() -> SavedSettings:
    """Note the settings of the process for a run that begins here."""
    around = _AROUND.get()
    with _LOCK:
        first = next((each for each in _HELD if each.shares), None)
        is_within = around is not None and around in _HELD
        found = _now()
        noted = found.copied() if first is None or is_within else first.noted
        held = SavedSettings(noted, found, shares=not is_within)
        if not _HELD:
            sys.meta_path.insert(0, _LOADING)
        _HELD.append(held)
    process_settings.watch_seeds(_note_seed)
    return held


def _now() -> Snapshot:
    """Return a snapshot of the present settings: the last one, where it holds. Callers do not change it."""
    found = process_settings.loaded()
    last = _LAST.get("noted")
    if last is None or not last.is_current(found):
        last = _LAST["noted"] = Snapshot()
        last.note(found)
    return last


_LAST: dict[str, Snapshot] = {}
"""The last snapshot of all threads. Between runs it holds the settings of the host."""


def _note_seed(name: str, put: Callable[[Any], object], state: Any) -> None:
    """Note the state of a generator of the process that is about to be seeded."""
    around = _AROUND.get()
    if around is not None and around in _HELD and not _WORKING.get():
        around.noted.seeds.setdefault(name, (put, state))


# -- changes that stay ---------------------------------------------------------------------------


@contextlib.contextmanager
def staying() -> Iterator[None]:
    """Keep the changes that are made in the block, unless another run may have made them."""
    if not _HELD or _WORKING.get():
        yield
        return
    with _kept_while(lambda: not _others()):
        yield


@contextlib.contextmanager
def _kept_while(may_stay: Callable[[], bool]) -> Iterator[None]:
    before, token = (_now() if may_stay() else None), _WORKING.set(True)
    try:
        yield
    finally:
        _WORKING.reset(token)
        after = _now() if before is not None and may_stay() else before
        if before is not None and after is not None and after is not before:
            with _LOCK:
                for noted in {id(each.noted): each.noted for each in _HELD}.values():
                    noted.adopt(before, after)


def _others() -> bool:
    """Return whether runs are on that are not around the present code: in other threads, or other tasks."""
    around, mine = _AROUND.get(), 0
    while around is not None:
        mine += around in _HELD
        around = around.around
    return len(_HELD) > mine


def keep_functions(policy: Policy) -> None:
    """Keep the changes of host functions, where a policy grants anything whose changes are put back."""
    if may_change(policy):
        for grant in policy.grants:
            name = grant.kind == "fn" and (grant.settings["name"] or getattr(grant.target, "__name__", None))
            if name in policy.names:
                policy.names[name] = _kept(policy.names[name])


def _kept(function: Any) -> Any:
    """Return a host function whose changes of settings stay; any other object as it is."""
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
"""Functions made by `_kept`."""


class _Loading:
    """Finds modules as the other finders do, and keeps the changes that they make while they are loaded.

    A module is loaded once, so they are kept in any case: also in a function of the host whose own are not.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module; None where no run is on, and within the load of another module."""
        if _IS_LOADING.get() or not _HELD:
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
    token = _IS_LOADING.set(True)
    try:
        with _kept_while(lambda: bool(_HELD)):
            loader.exec_module(module)
    finally:
        _IS_LOADING.reset(token)


_LOADING: Any = _Loading()


# -- settings of a context: floating point errors, how arrays are shown, decimals ---------------

_AT_FIRST: dict[str, dict[str, str]] = {
    "numpy": {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"},
    "scipy.special": {"all": "ignore", "memory": "raise"},
}
"""Modules with such a setting, and its value when they are imported: numpy, and scipy on top of it."""


def take_decimals(guests: Any) -> Any:
    """Set the decimal context of guest code; return that of the host, None where there is no such module."""
    decimal = sys.modules.get("decimal")
    if decimal is None:
        return None  # if guest code imports it in this run, the module starts with a new context
    host = decimal.getcontext()
    decimal.setcontext(host.copy() if guests is None else guests)
    return host


def give_decimals_back(host: Any) -> Any:
    """Set the decimal context of the host; return that of guest code, None where there is no such module."""
    decimal = sys.modules.get("decimal")
    if decimal is None:
        return None
    guests = decimal.getcontext()
    decimal.setcontext(decimal.Context() if host is None else host)
    return guests


def float_settings() -> dict[str, Any]:
    """Return the settings as they are, of the modules that are there."""
    if "numpy" not in sys.modules:
        return {}
    found = {name: _error_settings(module) for name in _AT_FIRST if (module := sys.modules.get(name))}
    if _PRINTING in sys.modules:
        found[_PRINTING] = _print_options()
    return found


def restore_float_settings(before: dict[str, Any]) -> None:
    """Restore the settings; modules that were not loaded yet get their initial ones."""
    if "numpy" not in sys.modules:
        return
    for name, at_first in _AT_FIRST.items():
        if module := sys.modules.get(name):
            _restore_errors(module, before.get(name, (at_first, None)))
    if _PRINTING in sys.modules:
        _restore_print_options(before.get(_PRINTING))


def _error_settings(module: Any) -> tuple[dict[str, str], Any]:
    if not hasattr(module, "geterr"):  # it is being imported
        return _AT_FIRST[module.__name__], None
    return module.geterr(), module.geterrcall() if hasattr(module, "geterrcall") else None


def _restore_errors(module: Any, before: tuple[dict[str, str], Any]) -> None:
    if hasattr(module, "geterr") and _error_settings(module) != before:
        module.seterr(**before[0])
        if hasattr(module, "seterrcall"):
            module.seterrcall(before[1])


def _print_options() -> Any:
    """Return the settings by which arrays are shown; None before numpy is there."""
    printing: Any = sys.modules.get(_PRINTING)
    return printing.format_options.get() if hasattr(printing, "format_options") else None


def _restore_print_options(before: Any) -> None:
    printing: Any = sys.modules.get(_PRINTING)
    if hasattr(printing, "format_options"):
        options = printing.default_format_options_dict if before is None else before
        # By identity: options that guest code set hold its own functions and objects.
        if printing.format_options.get() is not options:
            printing.format_options.set(options)


_PRINTING = "numpy._core.printoptions"  # since numpy 2.1


# -- callbacks of the collector -----------------------------------------------------------------


def release_callbacks() -> None:
    """Wrap each of ``gc.callbacks`` to be called as the host: with its files, its streams and no audit hook.

    A wrapped callback equals the original, for the host may remove it; another thread may do so meanwhile.
    """
    if not gc.callbacks:
        return
    for callback in [each for each in gc.callbacks if type(each) is not _Released]:
        # One context is enough: there is one collection at a time, of all threads.
        gc.callbacks.append(_Released(Context().run, callback))
        gc.callbacks.remove(callback)  # the first of the two, or the other where it is gone already


class _Released(functools.partial[Any]):
    """A callback in a context of its own, called in C: a collection may come with the stack used up."""

    def __eq__(self, other: object) -> bool:
        return bool(self.args[0] == (other.args[0] if type(other) is _Released else other))

    def __hash__(self) -> int:
        return hash(self.args[0])
