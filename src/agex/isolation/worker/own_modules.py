"""Modules of the workspace in full Python: files below one directory, imported as CPython imports them.

A module whose file changed since it was imported runs anew when it is imported again, with those that
depend on it; so it is in guarded Python, and so the agent is told.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Mapping
from pathlib import Path

__all__ = ["OwnModules"]

_Stamp = tuple[int, int, int]


class OwnModules:
    """The modules of a workspace.

    An action that imports nothing costs one look at the modules that are loaded, which are thousands.

    Args:
        root: its directory, from which modules are imported.
    """

    def __init__(self, root: str) -> None:
        self._root = f"{root.rstrip('/')}/"
        self._stamps: dict[str, _Stamp | None] = {}
        self._seen: list[object] = []
        self._folders: list[str] = []
        self._looked_through: list[str] = []
        self._installed = tuple(f"{path.rstrip('/')}/" for path in sys.path if path)
        sys.path.insert(0, root)

    def note(self) -> None:
        """Note the files of the modules that are imported by now."""
        loaded = [*sys.modules.values()]
        if len(loaded) == len(self._seen) and all(map(operator.is_, loaded, self._seen)):
            return
        self._seen = loaded
        self._stamps = {
            name: self._stamps[name] if name in self._stamps else _stamp(str(module.__file__))
            for name, module in self._modules().items()
        }

    def forget_changed(self) -> None:
        """Let modules whose files changed be imported anew, and files that are new be found."""
        self._forget_folders()
        if not self._stamps:
            return
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

    def _forget_folders(self) -> None:
        """Let new files be found in every folder but those of the installation, which do not change."""
        finders = sys.path_importer_cache
        if (looked_through := [*finders]) != self._looked_through:
            self._folders = [path for path in looked_through if self._may_change(f"{path}/")]
            self._looked_through = looked_through
        for path in self._folders:
            finder = finders.get(path)
            if finder is None:
                finders.pop(path, None)
            elif hasattr(finder, "invalidate_caches"):
                finder.invalidate_caches()

    def _may_change(self, folder: str) -> bool:
        return folder.startswith(self._root) or not folder.startswith(self._installed)

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
