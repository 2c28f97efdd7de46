"""The import statement of guest code: granted modules, modules over the workspace, guest modules."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import qualname_of
from agex.errors import SandboxImportError
from agex.sandbox.language.nodes import ITSELF
from agex.sandbox.policy.advice import instead_of_member, instead_of_module
from agex.sandbox.policy.module_grant import (
    Known,
    ModuleGrant,
    blank,
    is_for_guests,
    note,
    of_session,
)
from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.stdlib.source_modules import WrittenGrant

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards
    from agex.sandbox.guards.workspace_modules import Imports
    from agex.sandbox.policy.policy import Policy
    from agex.sandbox.runtime.workspace_files import FileModules

__all__ = ["Importer"]


def _holding(members: Mapping[str, Any]) -> types.ModuleType:
    """Return a module with the members that an import statement reads.

    For a missing member the statement looks under the module's name in ``sys.modules``, at the real module.
    """
    made = types.ModuleType("!")
    vars(made).update(members)
    return made


class Importer:
    """The finder of modules of one session.

    Args:
        policy: holds the grants.
        guards: of the session.

    Attributes:
        own: the guest modules, if the session has a workspace.
    """

    def __init__(self, policy: Policy, guards: Guards) -> None:
        self.own: Imports | None = None
        self._grants = policy.modules
        self._guards = guards
        self._apart: dict[str, types.ModuleType] = {}  # modules with a state of their own in each session
        self._bare: dict[str, types.ModuleType] = {}
        self._known: Known = {}
        self.handed_out: dict[str, types.ModuleType] = {}
        """The host modules that guest code has imported, by the names of their imports."""
        self._over_files: FileModules | None = None
        self._noted: set[str] = set()
        self._dotted: dict[str, None] = {}
        """The modules that ``import a.b`` has named, in order."""

    def use_files(self, own: Imports, over_files: FileModules | None) -> None:
        """Take a workspace: the guest modules, and the modules that work on files."""
        self.own = own
        self._over_files = over_files

    def __call__(self, name: str, importer: Any, fromlist: Any, level: int) -> Any:
        """Import a module.

        ``PyImport_Import``, by which C code imports what it needs itself, passes a *list*
        of one name; the import statement passes a tuple or None.

        Raises:
            ImportError: it is not granted.
        """
        if type(fromlist) is list:
            return __import__(name, {}, {}, fromlist, 0)
        if level:
            name = self._absolute(name, importer, level)
        if fromlist == (ITSELF,):
            return _holding({ITSELF: self._found(name)})
        top = self._package(name, fromlist) if fromlist else self._module(name)
        if not fromlist:
            return self._outermost(name, top) if "." in name else top
        for member in fromlist:
            if member != "*" and member not in vars(top):
                full = f"{name}.{member}"
                child = self._module(full) if full in self._grants else self._submodule(full)
                if child is None:
                    raise SandboxImportError(
                        f"cannot import name '{member}' from '{name}'; "
                        + (instead_of_member(name, member, vars(top)) or f"dir({name}) lists what is there"),
                        name=name,
                    )
                vars(top)[member] = child
        # The host imports with a star, in no namespace.
        if importer is None or self.own is None or not self.own.owns(top):
            return top
        # A guest module may lose a member meanwhile, by close() of a file that is dropped.
        if "*" in fromlist:
            return _holding(self.own.starred(name, top))
        return _holding({member: vars(top)[member] for member in fromlist})

    def name_of(self, module: types.ModuleType) -> str | None:
        """Return a name by which guest code of this session can import a module that it holds.

        The import may return another object: each session has its own copies of some modules.
        """
        if not is_for_guests(module):
            return None
        bare = next((name for name, each in self._bare.items() if each is module), None)
        own = None if self.own is None else self.own.name_of(module)
        return bare or own or next(filter(self._is_granted, self._names_of(module)), None)

    def home_of(self, value: Any) -> str | None:
        """Return the place of a function or class in a guest module, ``tools:Point``; None without one.

        A logger is kept with its handlers, so the maker of loggers is kept with it as well.
        """
        name = value.__name__ if type(value) is types.FunctionType else qualname_of(value)
        for home, module in ({} if self.own is None else self.own.modules()).items():
            if vars(module).get(name) is value:
                return f"{home}:{name}"
        return None

    def _names_of(self, module: types.ModuleType) -> Iterator[str]:
        """Yield the names that a module may have here: its own, and those of its registrations."""
        real = vars(module).get("__name__")
        if type(real) is not str:
            return
        yield real
        for name, grant in self._grants.items():
            if f"{real}.".startswith(f"{grant.module_name}."):
                yield name + real.removeprefix(grant.module_name)

    def _is_granted(self, name: str) -> bool:
        over_files = self._over_files is not None and name in self._over_files.names
        if over_files or name in self._grants or (self.own is not None and self.own.file_of(name)):
            return True
        try:
            return self._submodule(name) is not None
        except ImportError:
            return False

    def modules_in(self, name: str) -> list[str]:
        """Return the modules in a package that ``import a.b`` has named."""
        return [each for each in self._dotted if each.startswith(f"{name}.")]

    def _outermost(self, name: str, module: types.ModuleType) -> types.ModuleType:
        self._dotted[name] = None
        return self._linked(name, module)

    def _found(self, name: str) -> types.ModuleType:
        """Return a module, linked by attributes from the packages around it."""
        module = self._module(name)
        self._linked(name, module)
        return module

    def _package(self, name: str, members: Iterable[str]) -> types.ModuleType:
        """Return a module; an empty one if only the requested modules in it are granted."""
        try:
            return self._module(name)
        except SandboxImportError:
            is_bare = any(f"{name}.{member}" in self._grants for member in members)
            if not is_bare and name not in self._bare:
                raise
            return self._bare.setdefault(name, blank(name))

    def _absolute(self, name: str, importer: Any, level: int) -> str:
        if self.own is None:
            raise SandboxImportError("relative imports need a package; import the module by its full name")
        return self.own.absolute(name, importer, level)

    def _linked(self, name: str, module: types.ModuleType) -> types.ModuleType:
        """Return the outermost package of *name*, with attributes that lead to *module*."""
        package, _, child = name.rpartition(".")
        while package:
            try:
                parent = self._module(package)
            except SandboxImportError:  # a module was granted without the package around it
                parent = self._bare.setdefault(package, blank(package))
            vars(parent).setdefault(child, module)
            module = parent
            package, _, child = package.rpartition(".")
        return module

    def _module(self, name: str) -> types.ModuleType:
        found = self._made(name)
        if self.own is None or not self.own.owns(found):
            self.handed_out[name] = found
        return found

    def _made(self, name: str) -> types.ModuleType:
        if name in self._apart:
            return self._apart[name]
        grant = self._grants.get(name)
        if grant is not None or (self._over_files is not None and name in self._over_files.names):
            self._note_hidden(name)
        if self._over_files is not None and (own := self._module_of_files(name, grant)) is not None:
            self._apart[name] = own
            return own
        if isinstance(grant, WrittenGrant):
            self._apart[name] = grant.run(self._guards)
            return self._apart[name]
        if grant is not None and grant.per_session is not None:
            self._apart[name] = of_session(grant.own_copy(), self._known)
            return self._apart[name]
        if grant is not None:
            return of_session(grant.copy(), self._known)
        found = self._submodule(name)
        if found is None:
            instead = instead_of_module(name, self._grants)
            raise SandboxImportError(
                f"import of '{name}' is not allowed; {instead}", name=self._missing(name)
            )
        return found

    def _missing(self, name: str) -> str:
        """Return the outermost package of *name* that is missing, at which an import fails."""
        parts = name.split(".")
        for end in range(1, len(parts)):
            package = ".".join(parts[:end])
            granted = package in self._grants or any(key.startswith(f"{package}.") for key in self._grants)
            if not granted and (self.own is None or self.own.file_of(package) is None):
                return package
        return name

    def _module_of_files(self, name: str, grant: ModuleGrant | None) -> types.ModuleType | None:
        """Return a module over the workspace; one that the host registered comes first."""
        assert self._over_files is not None, "asked for only where there is a workspace"
        if grant is None or grant.gives_way:
            found = self._over_files.get(name)
            return None if found is None else note(found)
        members = self._over_files.additions.get(name)
        if members is None:
            return None
        own = of_session(grant.own_copy(), self._known)
        vars(own).update(members)
        return own

    def _submodule(self, name: str) -> types.ModuleType | None:
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            grant = self._grants.get(".".join(parts[:cut]))
            if grant is not None:
                found = grant.submodule(".".join(parts[cut:]))
                return None if found is None else of_session(found, self._known)
        return self._own_module(name)

    def _own_module(self, name: str) -> types.ModuleType | None:
        """Return a guest module. Its code runs within a run only, under limits."""
        if self.own is None:
            return None
        return self.own.load(name) if CURRENT.get() is self._guards else self.own.known(name)

    def _note_hidden(self, name: str) -> None:
        """Print a note if a file of the workspace has the name of a module that comes first."""
        if self.own is None or name in self._noted or CURRENT.get() is not self._guards:
            return
        self._noted.add(name)
        hidden = self.own.file_of(name)
        if hidden is not None and hidden.endswith(".py"):
            sys.stdout.write(
                f"note: import {name} gives the module of that name, not {hidden}; rename the file\n"
            )
