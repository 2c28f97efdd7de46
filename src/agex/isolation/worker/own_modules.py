"""Modules of the workspace in full Python: files below one directory, imported as CPython imports them.

A module whose file changed since it was imported runs anew when it is imported again, with those that
depend on it; so it is in guarded Python, and so the agent is told.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from importlib import machinery
from pathlib import Path

__all__ = ["OwnModules"]

_Stamp = tuple[int, int, int]


class OwnModules:
    """The modules of a workspace.

    They are noted as they are found, before they run. To look through all modules that are loaded would make
    a worker copy the memory of thousands, which it shares with its zygote.

    Args:
        root: its directory, from which modules are imported.
    """

    def __init__(self, root: str) -> None:
        self._root = f"{root.rstrip('/')}/"
        self._installed = tuple(f"{path.rstrip('/')}/" for path in sys.path if path)
        self._found: dict[str, _Stamp | None] = {}
        self._folders: list[str] = []
        self._looked_through: list[str] = []
        sys.path_hooks.insert(0, self._finder)
        sys.path.insert(0, root)

    def _finder(self, folder: str) -> _Finder:
        """Return the finder of a folder of the workspace.

        Raises:
            ImportError: it is another one; the next hook is asked.
        """
        if not f"{folder}/".startswith(self._root):
            raise ImportError(f"{folder} is not in the workspace")
        return _Finder(folder, self._found)

    def forget_changed(self) -> None:
        """Let modules whose files changed be imported anew, and files that are new be found."""
        self._forget_folders()
        found = self._modules()
        stamps = {name: _stamp(str(module.__file__)) for name, module in found.items()}
        changed = {name for name, stamp in stamps.items() if stamp != self._found[name]}
        while changed:
            gone = {name: found.pop(name) for name in changed}
            for name in gone:
                sys.modules.pop(name, None)
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
            elif callable(forget := getattr(finder, "invalidate_caches", None)):
                forget()

    def _may_change(self, folder: str) -> bool:
        return folder.startswith(self._root) or not folder.startswith(self._installed)

    def _modules(self) -> dict[str, types.ModuleType]:
        loaded = ((name, sys.modules.get(name)) for name in self._found)
        return {
            name: module
            for name, module in loaded
            if type(module) is types.ModuleType and str(vars(module).get("__file__")).startswith(self._root)
        }


class _Finder(machinery.FileFinder):
    """A finder that notes the names of the modules that it finds.

    Args:
        folder: that it looks in.
        found: gets the names, with the stamps of the files.
    """

    def __init__(self, folder: str, found: dict[str, _Stamp | None]) -> None:
        super().__init__(
            folder,
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        )
        self._found = found

    def find_spec(self, fullname: str, target: types.ModuleType | None = None) -> machinery.ModuleSpec | None:
        spec = super().find_spec(fullname, target)
        is_to_run = target is not None or fullname not in sys.modules
        if is_to_run and spec is not None and spec.origin is not None:
            self._found[fullname] = _stamp(spec.origin)
        return spec


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
