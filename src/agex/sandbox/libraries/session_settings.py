"""Settings of libraries that belong to a session: what guest code set holds in its next run as well.

The settings are those of the process while a run is on. When it ends, `agex.sandbox.libraries.process_state`
puts back those of the host, and this module keeps what guest code had changed for the session's next run.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agex.sandbox.libraries import process_settings

if TYPE_CHECKING:
    from agex.sandbox.libraries.process_state import SavedSettings
    from agex.sandbox.libraries.settings_snapshot import Snapshot

__all__ = ["SessionSettings"]

_Values = dict[str, Any]


class SessionSettings:
    """The settings that guest code of one session has made, by library and name."""

    def __init__(self) -> None:
        self._kept: dict[str, _Values] = {}
        self._of_host: dict[str, _Values] = {}
        """As they were when the last run began."""

    def begin(self, process: SavedSettings | None) -> None:
        """Note what the host has set, and set what the session had set.

        Args:
            process: the settings of the process that the run puts back; None where it can change none.
        """
        self._of_host = dict(_read(_CONTEXT) if process is None else _of_process(process.found))
        for name, values in self._kept.items():
            with contextlib.suppress(AttributeError):  # another version of the library
                _TABLE[name][1](values)

    def keep_of_context(self) -> None:
        """Keep the settings of the context that differ from those of the host."""
        if self._of_host or self._kept:
            self._keep(_CONTEXT)

    def keep(self, is_unchanged: bool) -> None:
        """Keep the settings of the process that differ from those of the host. The caller puts them back.

        Args:
            is_unchanged: whether all of them are as they were when the run began.
        """
        if not is_unchanged or self._kept.keys() - _CONTEXT:
            self._keep(_TABLE.keys() - _CONTEXT)

    def _keep(self, names: Iterable[str]) -> None:
        for name, values in _read(names):
            was = self._of_host.get(name, {})
            changed = {key: value for key, value in values.items() if _differs(was.get(key, _ABSENT), value)}
            if changed and name in self._of_host:  # a library that was loaded in this run has no settings yet
                self._kept[name] = changed
            else:
                self._kept.pop(name, None)


def _of_process(found: Snapshot) -> Iterator[tuple[str, _Values]]:
    """Return all settings, by library; those of the process are read once for a snapshot of them."""
    yield from _read(_CONTEXT)
    last = _LAST.get("read")
    if last is None or last[0] is not found:
        last = _LAST["read"] = found, dict(_read(_TABLE.keys() - _CONTEXT))
    yield from last[1].items()


_LAST: dict[str, tuple[Snapshot, dict[str, _Values]]] = {}
"""A snapshot, and the settings that were read then."""


_ABSENT = object()
_PLAIN = frozenset({bool, float, int, str, list, tuple, type(None)})


def _differs(one: Any, other: Any) -> bool:
    """Return whether two values differ. Guest objects are compared by identity."""
    if one is other:
        return False
    return not (type(one) is type(other) and type(one) in _PLAIN and repr(one) == repr(other))


def _read(names: Iterable[str]) -> Iterator[tuple[str, _Values]]:
    for name in names:
        if sys.modules.get(name) is not None:
            with contextlib.suppress(AttributeError):  # still loading, or another version
                yield name, _TABLE[name][0]()


def _at(module: str) -> Any:
    return sys.modules[module]


# -- numpy: of the context


def _numpy() -> _Values:
    return {"print": _at("numpy._core.printoptions").format_options.get(), **_at("numpy").geterr()}


def _set_numpy(values: Mapping[str, Any]) -> None:
    errors = dict(values)
    if (options := errors.pop("print", None)) is not None:
        _at("numpy._core.printoptions").format_options.set(options)
    _at("numpy").seterr(**errors)


# -- pandas: a tree of dicts


def _flat(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if type(value) is dict:
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _pandas() -> _Values:
    return dict(_flat(_at("pandas._config.config")._global_config))


def _set_pandas(values: Mapping[str, Any]) -> None:
    config = _at("pandas._config.config")
    for name, value in values.items():
        *above, last = name.split(".")
        table = config._global_config
        for part in above:
            table = table[part]
        table[last] = value
        option = config._registered_options.get(name)
        if option is not None and option.cb is not None:
            option.cb(name)


# -- the others


def _matplotlib() -> _Values:
    values = dict.items(_at("matplotlib").rcParams)
    return {name: list(value) if type(value) is list else value for name, value in values}


def _set_matplotlib(values: Mapping[str, Any]) -> None:
    dict.update(_at("matplotlib").rcParams, values)


def _set_polars(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        _POLARS.write(name, value)


_POLARS = process_settings.POLARS

_TABLE: dict[str, tuple[Callable[[], _Values], Callable[[Mapping[str, Any]], None]]] = {
    "numpy._core.printoptions": (_numpy, _set_numpy),  # since numpy 2.1
    "pandas._config.config": (_pandas, _set_pandas),
    "matplotlib": (_matplotlib, _set_matplotlib),
    "polars.config": (lambda: dict(_POLARS.read()), _set_polars),
    "sklearn._config": (
        lambda: dict(_at("sklearn._config")._get_threadlocal_config()),
        lambda values: _at("sklearn._config")._get_threadlocal_config().update(values),
    ),
}
"""By the module that must be loaded: the functions that read and write."""

_CONTEXT = frozenset({"numpy._core.printoptions"})
"""Those that hold for a context, and not for the process."""
