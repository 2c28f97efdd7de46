"""Guest modules: files of the workspace.

They run behind the same guards as programs. A module runs again if its file, or a module that it imports, has
changed since. Its classes are known as guest classes by the ``__name__`` of the module.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from agex.errors import SandboxImportError
from agex.sandbox.policy.module_grant import blank
from agex.sandbox.rules import names
from agex.sandbox.runtime.scopes import is_bindable

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards
    from agex.sandbox.runtime.workspace_files import GuestFiles

__all__ = ["Imports"]

Compile = Callable[[str, str], types.CodeType]
"""Compiles source, with the name of its file."""


class _Loaded(NamedTuple):
    """A module with its source."""

    module: types.ModuleType
    source: str
    needs: set[str]
    """The modules of the workspace that it imported while it ran."""


class Imports:
    """The modules of one session's workspace.

    Args:
        guards: of the session.
        files: the workspace.
        compile: compiles guarded code.
    """

    def __init__(self, guards: Guards, files: GuestFiles, compile: Compile) -> None:  # noqa: A002
        self._guards = guards
        self._files = files
        self._compile = compile
        self._loaded: dict[str, _Loaded] = {}
        self._running: list[str] = []
        """Modules whose code runs, the innermost last."""

    def known(self, name: str) -> types.ModuleType | None:
        """Return a module that is loaded already, as it is."""
        found = self._loaded.get(name)
        return None if found is None else found.module

    def owns(self, module: types.ModuleType) -> bool:
        """Return whether a module is a guest module."""
        return self.name_of(module) is not None

    def name_of(self, module: types.ModuleType) -> str | None:
        """Return the name of a guest module; None for any other module."""
        for name, each in self._loaded.items():  # no generator: an exceeded limit would leave it suspended
            if each.module is module:
                return name
        return None

    def modules(self) -> dict[str, types.ModuleType]:
        """Return the modules that are loaded, by name."""
        return {name: each.module for name, each in self._loaded.items()}

    def file_of(self, name: str) -> str | None:
        """Return the file that a module of that name is in; None where there is none."""
        found = self._find(name)
        return None if found is None else found[0]

    def load(self, name: str) -> types.ModuleType | None:
        """Return a module, after a run of its file if needed; None if there is no such file."""
        if self._find(name) is None:
            return None
        parts = name.split(".")
        parent: types.ModuleType | None = None
        for depth, part in enumerate(parts, start=1):
            module = self._one(".".join(parts[:depth]))
            if module is None:
                return None
            if parent is not None:
                vars(parent)[part] = module
            parent = module
        return parent

    def absolute(self, name: str, importer: dict[str, Any] | None, level: int) -> str:
        """Return the full name that a relative import means.

        Raises:
            ImportError: the importing code is in no package, or not so deep in one.
        """
        package = (importer or {}).get("__package__")
        parts = package.split(".") if type(package) is str and package else []
        if level > len(parts):
            raise SandboxImportError(
                "relative imports need a package; import the module by its full name"
                if not parts
                else f"the relative import goes above the package {package}"
            )
        return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])

    def starred(self, home: str, module: types.ModuleType) -> dict[str, Any]:
        """Return the members for ``from module import *``, which reads any name in ``__all__``.

        Raises:
            AttributeError: the module has no such name, or guest code may not read it.
        """
        read = self._guards.getattr
        said = read(module, "__all__", None)
        public = (name for name in vars(module) if not name.startswith("_") and is_bindable(name))
        found: dict[str, Any] = {}
        for name in list(public if said is None else said):
            if type(name) is not str:
                raise TypeError(f"Item in {home}.__all__ must be str, not {type(name).__name__}")
            if not is_bindable(name):
                raise SandboxImportError(f"the name {name!r} cannot be imported; take it out of __all__")
            found[name] = read(module, name)
        return {**found, "__all__": list(found)}

    # -- one module ------------------------------------------------------------------------------

    def _one(self, name: str) -> types.ModuleType | None:
        found = self._find(name)
        if found is None:
            return None
        if self._running:
            self._loaded[self._running[-1]].needs.add(name)
        if name in self._running or not self._is_stale(name, set()):
            return self._loaded[name].module
        return self._run(name, *found)

    def _find(self, name: str) -> tuple[str, bool] | None:
        """Return the file of a module, and whether it is a package; a package without one is a directory.

        No file is found for a name that every module has: ``from m import __dict__`` reads the attribute.
        """
        if any(map(names.is_dunder, name.split("."))):
            return None
        base = "/" + name.replace(".", "/")
        if self._files.isfile(f"{base}/__init__.py"):
            return f"{base}/__init__.py", True
        if self._files.isfile(f"{base}.py"):
            return f"{base}.py", False
        return (base, True) if self._files.isdir(base) and name.isidentifier() | ("." in name) else None

    def _source(self, path: str) -> str:
        return self._files.read(path).decode("utf-8-sig") if self._files.isfile(path) else ""

    def _is_stale(self, name: str, seen: set[str]) -> bool:
        """Return whether a module must run: for the first time, or because a file has changed."""
        seen.add(name)
        known, found = self._loaded.get(name), self._find(name)
        if known is None or found is None or self._source(found[0]) != known.source:
            return True
        return any(need not in seen and self._is_stale(need, seen) for need in known.needs)

    def _run(self, name: str, path: str, is_package: bool) -> types.ModuleType:
        """Run a file; a module that was loaded before stays the same object."""
        source = self._source(path)
        before = self._loaded.get(name)
        module = blank(name) if before is None else before.module
        space, was = vars(module), dict(vars(module))
        around, is_done = len(self._running), False
        try:
            self._loaded[name] = _Loaded(module, source, set())
            self._running.append(name)
            space.clear()
            space.update(
                __builtins__=self._guards.builtins,
                __name__=self._guards.classes.mark(name),
                __package__=name if is_package else name.rpartition(".")[0],
            )
            exec(self._compile(source, path), space)  # noqa: S102 - rewritten code
            is_done = True
        finally:
            del self._running[around:]
            if not is_done:
                self._loaded.pop(name, None)
                if before is not None:
                    self._loaded[name] = before
                    space.clear()
                    space.update(was)
        return module
