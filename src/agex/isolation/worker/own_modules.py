"""Modules of the workspace in full Python: files below one directory, imported as CPython imports them.

A module whose file changed since it was imported runs anew when it is imported again, with those that
depend on it; so it is in guarded Python, and so the agent is told.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Mapping
from pathlib import Path

__all__ = ["OwnModules"]

_Stamp = tuple[int, int, int]


class OwnModules:
    """The modules of a workspace.

    Args:
        root: its directory, from which modules are imported.
    """

    def __init__(self, root: str) -> None:
        self._root = f"{root.rstrip('/')}/"
        self._stamps: dict[str, _Stamp | None] = {}
        sys.path.insert(0, root)

    def note(self) -> None:
        """Note the files of the modules that are imported by now."""
        found = self._modules()
        self._stamps = {
            name: self._stamps[name] if name in self._stamps else _stamp(str(module.__file__))
            for name, module in found.items()
        }

    def forget_changed(self) -> None:
        """Let modules whose files changed be imported anew, and files that are new be found."""
        importlib.invalidate_caches()
        found = self._modules()
        changed = {
            name
            for name, stamp in self._stamps.items()
            if name in found and _stamp(str(found[name].__file__)) != stamp
        }
        while changed:
            for name in changed:
                sys.modules.pop(name, None)
                self._stamps.pop(name, None)
            gone = {name: found.pop(name) for name in changed}
            changed = {name for name, module in found.items() if _depends(module, gone)}

    def _modules(self) -> dict[str, types.ModuleType]:
        return {
            name: module
            for name, module in list(sys.modules.items())
            if type(module) is types.ModuleType and str(vars(module).get("__file__")).startswith(self._root)
        }


def _stamp(file: str) -> _Stamp | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _depends(module: types.ModuleType, others: Mapping[str, types.ModuleType]) -> bool:
    """Return whether a module has one of others, or a function or class of one, under a name."""
    values = list(vars(module).values())
    return any(
        value in others.values() if type(value) is types.ModuleType else _home(value) in others
        for value in values
    )


def _home(value: object) -> object:
    return value.__module__ if isinstance(value, type | types.FunctionType) else None
