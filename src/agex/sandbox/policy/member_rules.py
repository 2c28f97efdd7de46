"""The rules by which registrations leave out public members of host classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agex._interpreter.type_slots import mro_of
from agex.sandbox.classes import host_classes
from agex.sandbox.patches import enum
from agex.sandbox.policy.exclusions import ModuleExclusions
from agex.sandbox.policy.library_members import named
from agex.sandbox.policy.module_grant import Pattern, matches
from agex.sandbox.rules import names
from agex.sandbox.runtime import provenance

__all__ = ["MemberRules", "of_hosts"]


class _Rule:
    """The public members of a class and its subclasses that one registration leaves out."""

    def __init__(self, include: Pattern, exclude: Pattern, configured: frozenset[str]) -> None:
        self.include = include
        self.exclude = exclude
        self.configured = configured

    def denies(self, name: str) -> bool:
        if name in self.configured or names.is_dunder(name):
            return False
        if not matches(self.include, name):
            return True
        if name in names.PUBLIC_UNDERSCORE and not callable(self.exclude):
            return name in named(self.exclude)  # documented as public: "_*" does not cover it
        return matches(self.exclude, name)


class MemberRules:
    """The rules of all registrations of a policy. None brings back a member that another leaves out."""

    def __init__(self) -> None:
        self._rules: dict[type, dict[str, _Rule]] = {}  # by the name that it was registered under
        self._modules: dict[str, ModuleExclusions] = {}  # likewise

    def add(
        self,
        class_: type,
        by: str,
        include: Pattern,
        exclude: Pattern,
        *,
        configured: Collection[str],
        held: Iterable[str],
    ) -> set[str]:
        """Add the rule of a registration under the name *by*; return the names that it is known to leave out.

        *held* are the names of an object's own attributes.
        """
        rule = _Rule(include, exclude, frozenset(configured))
        enum.note(class_, rule.denies)
        self._rules.setdefault(class_, {})[by] = rule
        said = {name for name in named(exclude) if not names.is_private(name)}  # the class may not show it
        public = host_classes.public_names(class_).union(name for name in held if not name.startswith("_"))
        return said | {name for name in public if rule.denies(name)}

    def add_module(self, by: str, dotted: ModuleExclusions) -> frozenset[str]:
        """Add the exclusions of a module; return the names that they are known to leave out."""
        self._modules[by] = dotted
        return dotted.names()

    def denies(self, class_: type, name: str) -> bool:
        """Return whether a registration leaves out *name* of a class, or of one that it inherits from."""
        hosts = of_hosts(class_)
        if any(rule.denies(name) for base in hosts for rule in self._of(base)):
            return True
        return bool(self._modules) and any(
            each.denies(base, name) for base in hosts for each in self._modules.values()
        )

    def leaves_out(self, class_: type, name: str) -> bool:
        """Return whether a registration leaves out *name*, and the class is known to have it."""
        for base in of_hosts(class_):
            for rule in self._of(base):
                is_known = name in host_classes.public_names(base) or name in named(rule.exclude)
                if is_known and rule.denies(name):
                    return True
            if any(each.denies(base, name) for each in self._modules.values()):
                return True
        return False

    def speaks_of(self, class_: type) -> bool:
        """Return whether a registration has rules for the members of a class."""
        return class_ in self._rules or any(each.speaks_of(class_) for each in self._modules.values())

    def _of(self, class_: type) -> Iterable[_Rule]:
        return self._rules.get(class_, {}).values()


def of_hosts(class_: type) -> list[type]:
    """Return a class and its bases, without guest classes: these could claim to be registered."""
    return [part for part in mro_of(class_) if not provenance.is_guest_class(part)]
