"""Names in a registration that are the name of nothing: a slip would leave open what was to be shut.

What a module has is known. What an object will have is not: there a name is taken for a slip where it is
much like one that the class has.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from agex._interpreter.type_slots import module_of, mro_of, namespace_of, qualname_of
from agex.errors import DefinitionError
from agex.sandbox.classes import host_classes as hostclass
from agex.sandbox.policy import library_classes
from agex.sandbox.policy.exclusions import Dotted
from agex.sandbox.policy.library_members import named
from agex.sandbox.policy.module_grant import Pattern

__all__ = ["check_class", "check_module", "configured", "settled"]

T = TypeVar("T")

_ANSWERS = ("__getattr__", "__getattribute__")
_ALIKE = 0.75
"""The share of letters, in order, that two names have in common: "wirte" and "write", "raed" and "read"."""


def settled(pattern: Pattern, target: Any, name: str | None = None) -> Pattern:
    """Return a pattern as one of the members of *target*, without what it says of their owner.

    ``"Robot.self_destruct"``, said of a class, is its ``self_destruct``. What is said of a module stays as it
    is: there a dotted name speaks of members of its submodules and classes.

    Args:
        pattern: as it was registered.
        target: a module, a class, or a live object.
        name: under which it is registered.

    Raises:
        DefinitionError: a pattern for a class or an object speaks of another.
    """
    if callable(pattern) or isinstance(target, types.ModuleType):
        return pattern
    if isinstance(pattern, str) and "." not in pattern:
        return pattern
    class_ = target if isinstance(target, type) else type(target)
    each_said = (pattern,) if isinstance(pattern, str) else tuple(pattern)
    return tuple([member for each in each_said for member in _members(each, class_, name or "")])


def configured(configure: Mapping[str, T], target: Any, name: str | None = None) -> dict[str, T]:
    """Return settings of members by their plain names; see `settled`."""
    if isinstance(target, types.ModuleType):
        return dict(configure)
    return {
        member: spec
        for said, spec in configure.items()
        for member in settled((said,), target, name)  # type: ignore[union-attr]
    }


def _members(pattern: str, class_: type, name: str) -> Iterator[str]:
    """Give what a pattern says of the members of a class: of a base, only of those that it has."""
    owner, _, member = pattern.rpartition(".")
    if not owner or fnmatchcase(name, owner) or any(fnmatchcase(each, owner) for each in _names_of(class_)):
        yield member
        return
    bases = [base for base in mro_of(class_)[1:-1] if any(fnmatchcase(e, owner) for e in _names_of(base))]
    if not bases:
        raise DefinitionError(
            f"{pattern!r} speaks of {owner!r}, and is said of the class {class_.__name__}; "
            f"for a member of that, say {member!r} or {f'{class_.__name__}.{member}'!r}"
        )
    if not set(member) & set("*?["):
        yield member
        return
    for base in bases:
        known = hostclass.public_names(base).union(library_classes.private_names(base), dir(base))
        yield from sorted(each for each in known if fnmatchcase(each, member))


def _names_of(class_: type) -> Iterator[str]:
    """Give the names that a pattern may have for a class: each end of its path."""
    parts = f"{module_of(class_)}.{qualname_of(class_)}".split(".")
    return (".".join(parts[first:]) for first in range(len(parts)))


def check_module(module: types.ModuleType, *said: Any) -> None:
    """Refuse names that *module* does not have. A dotted one may be of any class in its package.

    Raises:
        DefinitionError: with the name that was probably meant.
    """
    if "__getattr__" in vars(module):
        return  # it makes members when they are asked for
    known = frozenset(dir(module)) | frozenset(vars(module).get("__all__", ()))
    for name in _plain(said):
        if name not in known and not _is_submodule(module, name):
            raise _unknown(name, f"module {module.__name__}", _like(name, known))
    for pattern in sorted({each for one in said for each in named(one) if "." in each}):
        _check_dotted(module, pattern)


def _check_dotted(module: types.ModuleType, pattern: str) -> None:
    """Refuse a dotted name of which the first part is in the module, and the rest is not in that."""
    owner, _, member = pattern.removeprefix(f"{module.__name__}.").rpartition(".")
    if not owner:
        check_module(module, member)
        return
    found: Any = module
    for part in owner.split("."):
        if not isinstance(found, (types.ModuleType, type)):
            return
        found = namespace_of(found).get(part) if isinstance(found, type) else vars(found).get(part)
    if isinstance(found, types.ModuleType):
        check_module(found, member)
    elif isinstance(found, type):
        check_class(found, (), member)
    elif found is None and not _is_submodule(module, owner) and "__getattr__" not in vars(module):
        _check_class_of_package(module, owner, member)


def _check_class_of_package(module: types.ModuleType, owner: str, member: str) -> None:
    """Refuse a member of a class that no module of the package has, of those that are loaded."""
    classes = list(Dotted(module.__name__, ((owner, "*"),), frozenset()).classes())
    home = f"{module.__name__}."
    if any(name.startswith(home) and name.endswith(f".{owner}") for name in list(sys.modules)):
        return
    if not classes:
        raise DefinitionError(
            f"{f'{owner}.{member}'!r} speaks of {owner!r}, which is in no module of {module.__name__} that "
            f"is loaded; import what has it before, or say {f'*.{member}'!r}"
        )
    refused: DefinitionError | None = None
    for class_ in classes:
        try:
            check_class(class_, (), member)
        except DefinitionError as error:
            refused = error
        else:
            return
    assert refused is not None
    raise refused


def check_class(class_: type, held: Iterable[str], *said: Any) -> None:
    """Refuse names that are almost one of *class_*, or of those that an object holds itself.

    Raises:
        DefinitionError: with the name that was probably meant.
    """
    if any(name in namespace_of(part) for part in mro_of(class_)[:-1] for name in _ANSWERS):
        return  # its objects have what they like
    known = hostclass.public_names(class_).union(library_classes.private_names(class_), dir(class_), held)
    for name in _plain(said):
        if name not in known and (meant := _like(name, known)):
            raise _unknown(name, f"class {class_.__name__}", meant)


def _plain(said: Iterable[Any]) -> list[str]:
    return sorted({name for pattern in said for name in named(pattern) if "." not in name})


def _is_submodule(module: types.ModuleType, name: str) -> bool:
    from importlib.util import find_spec

    if not hasattr(module, "__path__"):
        return False
    try:
        return find_spec(f"{module.__name__}.{name}") is not None
    except ModuleNotFoundError:  # of a part of the name
        return False


def _like(name: str, known: Collection[str]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=_ALIKE)), None)


def _unknown(name: str, owner: str, meant: str | None) -> DefinitionError:
    guess = f"did you mean {meant!r}? If not, " if meant else ""
    return DefinitionError(
        f"{name!r} is the name of nothing that {owner} has; {guess}say what may come later as {name + '*'!r}"
    )
