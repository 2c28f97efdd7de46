"""``rcParams``, styles and their kin for guest code: checked, and put back after the run.

They are settings of the process. A run puts back those of the host, and the session keeps its own, see
`agex.sandbox.libraries.session_settings`. Guest code never sets those that name a backend (any module),
another program or a file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.patches.stdlib_caches import exact

__all__ = ["RcParams", "pyplot_members", "settings_members", "style_members"]

_NEVER = (
    "animation.", "backend", "backend_fallback", "datapath", "docstring.", "examples.", "interactive", "pgf.",
    "ps.", "savefig.directory", "text.latex", "text.usetex", "tk.", "toolbar", "webagg.",
)  # fmt: skip
"""Beginnings of names that guest code sets not: backends are modules; the others start programs, name files,
or belong to windows."""

_KINDS = frozenset({bool, bytes, float, int, str, type(None)})


def _checked(name: Any, value: Any) -> tuple[str, Any]:
    """Return a name and a value that guest code may set, as exact objects."""
    key = exact(name)
    if type(key) is not str:
        raise SandboxTypeError(f"a name of rcParams is a str, not {type(key).__name__}")
    if key.startswith(_NEVER):
        raise SandboxError(f"rcParams[{key!r}] belongs to the host; set the others, or style the one figure")
    return key, _plain(value)


def _plain(value: Any) -> Any:
    np: Any = import_module("numpy")
    cycler: Any = import_module("cycler")

    found = exact(value)
    if type(found) in _KINDS or type(found) is cycler.Cycler:
        return found
    if isinstance(found, (np.number, np.bool_)):
        return found.item()
    if type(found) in {list, tuple}:
        return type(found)(map(_plain, found))
    raise SandboxTypeError(f"a setting of rcParams is plain data, not {type(found).__name__}")


def _checked_all(values: Any) -> dict[str, Any]:
    pairs = values.items() if isinstance(values, (dict, RcParams)) else dict(values).items()
    return dict(_checked(name, value) for name, value in pairs)


class RcParams:
    """``matplotlib.rcParams`` for guest code."""

    __module__ = "matplotlib"

    def _real(self) -> Any:
        return import_module("matplotlib").rcParams

    def __getitem__(self, key: str) -> Any:
        if exact(key) == "backend":
            return "agg"
        value = self._real()[exact(key)]
        return list(value) if type(value) is list else value

    def __setitem__(self, key: str, value: Any) -> None:
        name, plain = _checked(key, value)
        self._real()[name] = plain

    def __contains__(self, key: object) -> bool:
        return exact(key) in self._real()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._real()))

    def __len__(self) -> int:
        return len(self._real())

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting, or *default*."""
        try:
            return self[key]
        except KeyError:
            return default

    def keys(self) -> list[str]:
        """Return the names of the settings."""
        return list(self)

    def values(self) -> list[Any]:
        """Return the settings."""
        return [self[key] for key in self]

    def items(self) -> list[tuple[str, Any]]:
        """Return the names and settings."""
        return [(key, self[key]) for key in self]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several settings."""
        for given in (*args, kwargs):
            for key, value in _checked_all(given).items():
                self[key] = value

    def copy(self) -> dict[str, Any]:
        """Return the settings as a dict."""
        return dict(self.items())

    def find_all(self, pattern: str) -> dict[str, Any]:
        """Return the settings whose names match a regular expression."""
        return {key: self[key] for key in self._real().find_all(exact(pattern))}

    def __repr__(self) -> str:
        return repr(self._real())


def _rc(group: Any, **kwargs: Any) -> None:
    groups = [group] if isinstance(group, str) else list(group)
    for name in groups:
        for key, value in kwargs.items():
            _checked(f"{exact(name)}.{key}", value)
    settled = {key: _plain(value) for key, value in kwargs.items()}
    import_module("matplotlib").rc([exact(each) for each in groups], **settled)


@contextlib.contextmanager
def _rc_context(rc: Any = None, fname: Any = None) -> Iterator[None]:
    if fname is not None:
        raise SandboxError("rc_context(fname=...) is not available; pass the settings: rc_context({...})")
    with import_module("matplotlib").rc_context(_checked_all(rc or {})):
        yield


def _styles(style: Any) -> list[Any]:
    """Return styles by name, or as settings: a path would be a file of the host, a dotted name any module."""
    given = [style] if isinstance(style, (str, dict, RcParams)) else list(style)
    known = import_module("matplotlib.style").library
    found: list[Any] = []
    for each in given:
        if isinstance(each, (dict, RcParams)):
            found.append(_checked_all(each))
        elif (name := exact(each)) == "default" or name in known:
            found.append(name)
        else:
            raise OSError(f"{name!r} is not a style; plt.style.available lists them")
    return found


def _use(style: Any) -> None:
    import_module("matplotlib.style").use(_styles(style))


@contextlib.contextmanager
def _context(style: Any, after_reset: bool = False) -> Iterator[None]:
    with import_module("matplotlib.style").context(_styles(style), after_reset=bool(after_reset)):
        yield


def _library() -> Mapping[str, Any]:
    library = import_module("matplotlib.style").library
    return {name: dict(dict.items(values)) for name, values in library.items()}


def _ion_or_ioff() -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _named(name: str, function: Any) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "matplotlib"
    return function


for _name, _function in (
    ("rc", _rc), ("rc_context", _rc_context), ("use", _use), ("context", _context), ("ion", _ion_or_ioff),
):  # fmt: skip
    _named(_name, _function)


def settings_members() -> dict[str, Any]:
    """Return the settings among the members of ``matplotlib``."""
    real: Any = import_module("matplotlib")
    return {
        "rcParams": RcParams(),
        "rcParamsDefault": {k: v for k, v in dict.items(real.rcParamsDefault) if not k.startswith("backend")},
        "rc": _rc,
        "rc_context": _rc_context,
        "rcdefaults": real.rcdefaults,
        "get_backend": _backend,
    }


def _backend() -> str:
    return "agg"


_named("get_backend", _backend)


def pyplot_members() -> dict[str, Any]:
    """Return the settings among the members of ``matplotlib.pyplot``."""
    members = settings_members()
    del members["rcParamsDefault"]
    return {**members, "ion": _ion_or_ioff, "ioff": _ion_or_ioff}


def style_members() -> dict[str, Any]:
    """Return the members of ``matplotlib.style``."""
    return {
        "use": _use,
        "context": _context,
        "available": list(import_module("matplotlib.style").available),
        "library": _library(),
    }
