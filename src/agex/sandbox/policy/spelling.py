"""Spelling of names in a registration: a misspelled exclusion would leave its member open.

The members of a module are known. The attributes of an object may come later: there a name counts as
misspelled where it is much like one of the class.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from agex._interpreter.type_slots import module_of, mro_of, namespace_of, qualname_of
from agex.errors import DefinitionError
from agex.sandbox.classes import host_classes
from agex.sandbox.policy import library_classes
from agex.sandbox.policy.exclusions import ModuleExclusions
from agex.sandbox.policy.library_members import named
from agex.sandbox.policy.module_grant import Pattern
from agex.sandbox.rules import names

__all__ = ["check_class", "check_left_out", "check_module", "configured", "require_bools", "settled"]

T = TypeVar("T")

_ANSWERS = ("__getattr__", "__getattribute__")
_ALIKE = 0.75
"""The share of letters, in order, that two names have in common: "wirte" and "write", "raed" and "read"."""


def settled(pattern: Pattern, target: Any, name: str | None = None) -> Pattern:
    """Return a pattern for members of *target*, without the name of the owner.

    ``"Robot.self_destruct"``, said of a class, is its ``self_destruct``. A pattern for a module stays as it
    is: there a dotted name is for members of its submodules and classes.

    Args:
        pattern: as it was registered.
        target: a module, a class, or a live object.
        name: under which it is registered.

    Raises:
        DefinitionError: it is no pattern, or one for a class or an object names another.
    """
    if callable(pattern):
        return pattern
    each_said = _texts(pattern)
    if isinstance(target, types.ModuleType) or (isinstance(pattern, str) and "." not in pattern):
        return pattern if isinstance(pattern, str) else each_said
    class_ = target if isinstance(target, type) else type(target)
    return tuple([member for each in each_said for member in _members(each, class_, name or "")])


def _texts(pattern: Any) -> tuple[str, ...]:
    """Return the texts of a pattern, which may be an iterator."""
    said = (pattern,) if isinstance(pattern, str) else tuple(pattern) if isinstance(pattern, Iterable) else ()
    if not all(isinstance(each, str) and each for each in said) or not (
        said or isinstance(pattern, Iterable)
    ):
        raise DefinitionError(
            f"{pattern!r} is no pattern; give a name or a glob, several of them, or a function of the name"
        )
    return said


def require_bools(**said: Any) -> None:
    """Refuse settings that are neither true nor false: ``"no"`` would be taken for true.

    Raises:
        DefinitionError: with its name.
    """
    for name, value in said.items():
        if not isinstance(value, bool):
            raise DefinitionError(f"{name}={value!r} is neither True nor False")


def configured(configure: Mapping[str, T], target: Any, name: str | None = None) -> dict[str, T]:
    """Return settings of members by their plain names; see `settled`.

    Raises:
        DefinitionError: one is no ``MemberSpec``, or one for a class or an object names another.
    """
    for said, spec in configure.items():
        if not hasattr(type(spec), "_fields"):  # a named tuple of agex.sandbox.policy, which imports this
            raise DefinitionError(f"configure= has {spec!r} for {said!r}; give a MemberSpec(...)")
    if isinstance(target, types.ModuleType):
        return dict(configure)
    return {
        member: spec
        for said, spec in configure.items()
        for member in settled((said,), target, name)  # type: ignore[union-attr]
    }


def _members(pattern: str, class_: type, name: str) -> Iterator[str]:
    """Return the members of a class that a pattern names; for a base, only those that the base has."""
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
        known = host_classes.public_names(base).union(library_classes.private_names(base), dir(base))
        yield from sorted(each for each in known if fnmatchcase(each, member))


def _names_of(class_: type) -> Iterator[str]:
    """Return the names that a pattern may have for a class: each end of its path."""
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
    for pattern in sorted({each for one in said for each in _with_owner(one)}):
        _check_dotted(module, pattern)


def _with_owner(pattern: Pattern) -> Iterator[str]:
    """Return the dotted patterns that name the owner in full; the member may be a glob."""
    if callable(pattern):
        return
    for each in (pattern,) if isinstance(pattern, str) else pattern:
        if "." in each and not set(each.rpartition(".")[0]) & _WILD:
            yield each


_WILD = frozenset("*?[")


def _check_dotted(module: types.ModuleType, pattern: str) -> None:
    """Refuse a dotted name whose owner is in the module and lacks the member."""
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
    """Refuse a member of a class that no loaded module of the package has."""
    classes = list(ModuleExclusions(module.__name__, ((owner, "*"),), frozenset()).classes())
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
    """Refuse names that are almost a name of *class_*, or an attribute that an object holds itself.

    Raises:
        DefinitionError: with the name that was probably meant.
    """
    if any(name in namespace_of(part) for part in mro_of(class_)[:-1] for name in _ANSWERS):
        return  # its objects may answer any name
    known = host_classes.public_names(class_).union(library_classes.private_names(class_), dir(class_), held)
    for name in _plain(said):
        if name not in known and (meant := _like(name, known)):
            raise _unknown(name, f"class {class_.__name__}", meant)


def check_left_out(target: Any, exclude: Pattern) -> None:
    """Refuse exclusions that leave nothing out, though they look as if they did.

    A glob may be for members that come later. That does not hold for one in the syntax of another language,
    or for one of a module that fits members of classes alone.

    Raises:
        DefinitionError: with what to write instead.
    """
    if callable(exclude):
        return
    is_module = isinstance(target, types.ModuleType)
    for each in (exclude,) if isinstance(exclude, str) else exclude:
        member = each.rpartition(".")[2]
        if member in _BY_SYNTAX and ("." in each or not is_module):
            raise DefinitionError(
                f"exclude={each!r} cannot hold: Python asks for {member} by itself, and not by its name; "
                f"{_BY_SYNTAX[member]}"
            )
        if set(each) & _WILD:
            _check_glob(target, each)


_BY_SYNTAX = {
    **dict.fromkeys(
        names.OPERATORS, "register a function, or an object of a class that has no such operator"
    ),
    **dict.fromkeys(("__init__", "__new__"), "register the class with constructable=False"),
    "__class__": "register an object of a class that may be known",
}


def _check_glob(target: Any, pattern: str) -> None:
    owner, _, member = pattern.rpartition(".")
    if _NO_NAME.search(pattern):
        raise DefinitionError(f"{pattern!r} is no glob; say names with *, ? and [abc], one for each pattern")
    if not isinstance(target, types.ModuleType):
        class_ = target if isinstance(target, type) else type(target)
        _check_case(pattern, member, host_classes.public_names(class_).union(dir(class_)))
    elif not owner and "__getattr__" not in vars(target):
        known = frozenset(dir(target)).union(vars(target).get("__all__", ()), _submodules(target))
        if any(fnmatchcase(name, pattern) for name in known):
            return
        _check_case(pattern, pattern, known)
        classes = [value for value in vars(target).values() if isinstance(value, type)]
        own = [each for each in classes if str(module_of(each)).startswith(target.__name__)]
        fits = pattern.lower()
        if any(fnmatchcase(name.lower(), fits) for each in own for name in host_classes.public_names(each)):
            raise DefinitionError(
                f"{pattern!r} is the name of nothing that module {target.__name__} has, but of members of "
                f"its classes: for these, say {f'*.{pattern}'!r}"
            )


_NO_NAME = re.compile(r"[^\w.*?\[\]!-]")
"""Characters of no name and no glob: those of expressions, of lists in one text, and spaces."""


def _check_case(pattern: str, member: str, known: Collection[str]) -> None:
    """Refuse a glob that fits no name only because of its case."""
    if any(fnmatchcase(name, member) for name in known):
        return
    meant = next((name for name in sorted(known) if fnmatchcase(name.lower(), member.lower())), None)
    if meant is not None:
        raise DefinitionError(f"{pattern!r} is the name of nothing: did you mean {meant!r}?")


def _submodules(module: types.ModuleType) -> Iterator[str]:
    import pkgutil
    from importlib.machinery import PathFinder

    path = getattr(module, "__path__", ())
    # Since CPython 3.13, `importlib.invalidate_caches` makes the finder of an archive forget its directory.
    # pkgutil looks into that directory without the finder, which would read it again: let it read it here.
    PathFinder.find_spec(module.__name__, path)
    return (each.name for each in pkgutil.iter_modules(path))


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
