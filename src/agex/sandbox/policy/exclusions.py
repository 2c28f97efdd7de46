"""Exclusions of members that a module's registration says of all classes of its package.

``*.secret`` holds for every class of the package: in submodules, of which some are loaded later, in other
classes, and where only a function returns its instances.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from agex._interpreter.type_slots import module_of, namespace_of, qualname_of
from agex.sandbox.classes import host_classes
from agex.sandbox.rules.names import PUBLIC_UNDERSCORE, is_dunder, is_private

__all__ = ["ModuleExclusions", "member_patterns"]


def member_patterns(exclude: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the patterns of members as owner and member; private members are left out anyway."""
    pairs = (pattern.rpartition(".")[::2] for pattern in exclude if "." in pattern)
    return tuple((owner, member) for owner, member in pairs if not is_private(member))


class ModuleExclusions(NamedTuple):
    """The exclusions of members that were registered with one module."""

    home: str
    """The name of the module."""
    patterns: tuple[tuple[str, str], ...]
    configured: frozenset[str]

    def denies(self, class_: type, name: str) -> bool:
        """Return whether a public member is left out of a class that has it itself."""
        if is_private(name) or is_dunder(name) or name in self.configured:
            return False
        fits = operator.eq if name in PUBLIC_UNDERSCORE else fnmatchcase
        said = [owner for owner, member in self.patterns if fits(name, member)]
        paths = list(self._paths(class_)) if said else ()
        return any(fnmatchcase(path, owner) for owner in said for path in paths)

    def speaks_of(self, class_: type) -> bool:
        """Return whether a pattern may leave out members of a class."""
        return any(fnmatchcase(path, owner) for path in self._paths(class_) for owner, _ in self.patterns)

    def names(self) -> frozenset[str]:
        """Return the names that are left out for certain: those said in full, and those of loaded classes."""
        said = {member for _, member in self.patterns if not set(member) & set("*?[")}
        globs = ModuleExclusions(
            self.home, tuple(p for p in self.patterns if p[1] not in said), self.configured
        )
        if globs.patterns:
            for class_ in globs.classes():
                said |= {name for name in host_classes.public_names(class_) if globs.denies(class_, name)}
        return frozenset(said)

    def classes(self) -> Iterator[type]:
        """Return the loaded classes of the package of which a pattern may speak."""
        seen = set[int]()
        waiting: list[type | types.ModuleType] = [
            module
            for name, module in list(sys.modules.items())
            if self._holds(name) and isinstance(module, types.ModuleType)
        ]
        while waiting:
            part = waiting.pop()
            if isinstance(part, type):
                if id(part) in seen or not self._holds(module_of(part)):
                    continue
                seen.add(id(part))
                if self.speaks_of(part):
                    yield part
            held = namespace_of(part) if isinstance(part, type) else vars(part)
            waiting += [each for each in list(held.values()) if isinstance(each, type)]

    def _holds(self, module: object) -> bool:
        return type(module) is str and (module == self.home or module.startswith(f"{self.home}."))

    def _paths(self, class_: type) -> Iterator[str]:
        """Return the names that a pattern may have for a class: each end of its path."""
        module = module_of(class_)
        if self._holds(module):
            parts = f"{module}.{qualname_of(class_)}".split(".")
            yield from (".".join(parts[first:]) for first in range(len(parts)))
