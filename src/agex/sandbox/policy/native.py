"""Packages with compiled code that have no policy.

Compiled code opens files without an event that the audit hook could refuse, and which of its arguments are
paths is not known. So such a package is granted as a whole, with ``host_fs_access=True``, or not at all. The
packages to which a granted one of plain Python leads are checked too. Where they have compiled code, their
objects answer nothing, and their functions and classes are not handed out.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.sandbox.policy.catalog import has_policy
from agex.sandbox.policy.library import homes

if TYPE_CHECKING:
    from agex.sandbox.policy.library import Library

__all__ = ["UnknownPackages", "home_of", "inert_reason", "opens_unseen", "unseen"]

_LIBRARY_SUFFIXES = (".so", ".pyd", ".dll", ".dylib")

_OPEN_IN_PYTHON = frozenset("matplotlib mpl_toolkits numpy sklearn".split())
"""Compiled, but paths go through Python's own ``open``, where the audit hook and the workspace are."""

_OPEN_NOTHING = frozenset(
    """
    Levenshtein aiohttp brotli charset_normalizer contourpy frozenlist greenlet httptools jiter kiwisolver
    markupsafe msgpack msgspec multidict orjson propcache pydantic_core rapidfuzz regex rpds simplejson
    sqlalchemy tornado ujson websockets wrapt xxhash yaml yarl
    """.split()
)
"""Compiled, for values in memory alone: they take text, bytes and open streams, and no paths."""

_OVER_COMPILED = frozenset("dask duckdb geopandas ibis polars soundfile xarray".split())
"""Plain Python that lets compiled packages of other names open paths."""

_STDLIB_OPENS = frozenset({"ctypes", "curses", "dbm", "readline", "ssl", "tkinter"})
"""Packages of the standard library that hand paths to C libraries."""


def opens_unseen(module: str) -> bool:
    """Return whether a module belongs to a package whose compiled code may open files by path."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names:
        return root.lstrip("_") in _STDLIB_OPENS
    if root in _OPEN_IN_PYTHON or root in _OPEN_NOTHING:
        return False
    return root in _OVER_COMPILED or _has_compiled_code(root)


@functools.cache
def _has_compiled_code(root: str) -> bool:
    """Return whether a package holds a shared library, loaded or not."""
    import importlib.util  # not at import: a policy of the standard set has no use for these
    from pathlib import Path

    module = sys.modules.get(root)
    spec = getattr(module, "__spec__", None)
    if spec is None and module is None:
        spec = importlib.util.find_spec(root)
    origin = getattr(spec, "origin", None) or getattr(module, "__file__", None)
    if isinstance(origin, str) and origin.endswith(_LIBRARY_SUFFIXES):
        return True
    folders = getattr(spec, "submodule_search_locations", None) or getattr(module, "__path__", None) or ()
    return any(
        name.endswith(_LIBRARY_SUFFIXES) for folder in folders for name in map(str, Path(folder).rglob("*"))
    )


def unseen(name: str, library: Library | None) -> str:
    """Return why a module cannot be registered as it is, and what to write instead."""
    known = f"it is not in agex's policy for {library.name}, and " if library is not None else ""
    return (
        f"{name} cannot be registered as it is: {known}its compiled code can open files of this "
        "machine unseen. Register functions of yours that use it, agent.fn(f), or, if the code may have the "
        f"files of this machine, agent.module({name}, host_fs_access=True)"
    )


def inert_reason(package: str) -> str:
    """Return why objects of a package answer nothing, and what the host would write."""
    return (
        f"it is of {package}, whose compiled code can open files of this machine unseen; "
        f"only a host that registers {package} with host_fs_access=True hands it out"
    )


class UnknownPackages:
    """Packages whose objects answer nothing: registered packages lead to them, but they are not registered.

    A package leads to the packages of all objects in its modules, and to those that these lead to. Packages
    with a policy do not count.
    """

    def __init__(self) -> None:
        self._from: set[str] = set()
        self._open: set[str] = set()
        self._seen = 0
        self.packages: frozenset[str] = frozenset()

    def add(self, home: Any, opened: tuple[str, ...], *, installed: bool = False) -> frozenset[str]:
        """Note the registration of a module, or of something in it; return what `look` does.

        With *installed*, only installed packages count: the host knows its own code.
        """
        root = home.partition(".")[0] if type(home) is str else ""
        if not root or root in sys.stdlib_module_names or (installed and not _is_installed(home)):
            return frozenset()
        (self._open if "files" in opened else self._from).add(root)
        self._seen = 0
        return self.look()

    def look(self) -> frozenset[str]:
        """Look at modules imported since the last time; return the names to be checked from now on."""
        if not self._from or self._seen == len(sys.modules):
            return frozenset()
        self._seen = len(sys.modules)
        modules = _modules()
        found = frozenset(self._found(modules))
        new, self.packages = found - self.packages, found
        return frozenset(name for root in new for name in _public_names(modules.get(root, ())))

    def _found(self, modules: dict[str, list[types.ModuleType]]) -> Iterator[str]:
        known = {*self._from, *self._open, *_led_to(modules, self._open)}
        for root in _led_to(modules, self._from) - known:
            if opens_unseen(root):
                yield root

    def owner(self, class_: type, name: str) -> str | None:
        """Return the package that answers *name* for objects of a class, if it is one of these."""
        if not self.packages:
            return None
        part = next((part for part in mro_of(class_) if name in namespace_of(part)), class_)
        home = next(homes(part), ("", ""))[0]
        return home if home in self.packages else None

    def owns(self, value: Any) -> str | None:
        """Return the package that a class or function is of, if it is one of these."""
        home = home_of(value) if self.packages else ""
        return home if home in self.packages else None


def _is_installed(home: str) -> bool:
    file = getattr(sys.modules.get(home), "__file__", None)
    return isinstance(file, str) and ("site-packages" in file or "dist-packages" in file)


def _modules() -> dict[str, list[types.ModuleType]]:
    found: dict[str, list[types.ModuleType]] = {}
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType):
            found.setdefault(name.partition(".")[0], []).append(module)
    return found


def _led_to(modules: dict[str, list[types.ModuleType]], roots: set[str]) -> set[str]:
    """Return the packages to which some lead, without the standard library and those with a policy."""
    found: set[str] = set()
    left = list(roots)
    while left:
        for module in modules.get(left.pop(), ()):
            for root in set(map(home_of, list(vars(module).values()))) - found:
                if root in modules and root not in sys.stdlib_module_names and not has_policy(root):
                    found.add(root)
                    left.append(root)
    return found


def home_of(value: Any) -> str:
    """Return the package of a value, or of its class, without running its code."""
    if type(value) is functools.partial:
        value = value.func
    home: Any = None
    if isinstance(value, types.ModuleType):
        home = vars(value).get("__name__")
    elif issubclass(type(value), type):
        home = module_of(value)
    else:
        with suppress(AttributeError):
            home = object.__getattribute__(value, "__module__")
    return home.partition(".")[0].lstrip("_") if type(home) is str else ""


def _public_names(modules: Any) -> Iterator[str]:
    for module in modules:
        for class_ in list(vars(module).values()):
            if issubclass(type(class_), type) and home_of(class_) == home_of(module):
                for part in mro_of(class_):
                    yield from (name for name in namespace_of(part) if not name.startswith("_"))
