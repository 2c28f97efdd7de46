"""The policy of one library, as data, and the name of a class in its library."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from agex._interpreter.type_slots import module_of, mro_of, qualname_of
from agex.sandbox.classes.errors import check_keywords
from agex.sandbox.runtime import provenance

__all__ = [
    "ClassRules",
    "Guard",
    "Library",
    "ModuleMembers",
    "PathGuard",
    "Replacements",
    "guarded",
    "homes",
    "less",
    "only",
]

Guard: TypeAlias = Callable[..., Any]
"""Called as ``guard(real, *args, **kwargs)``; checks the arguments and calls *real*, or raises."""


class PathGuard(abc.ABC):
    """A guard of a function that takes a path."""

    @abc.abstractmethod
    def __call__(self, real: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Check the arguments and call the function."""

    @abc.abstractmethod
    def opened(self) -> Guard:
        """Return the guard for a function to which the host opened its files."""


def guarded(real: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """Return a module's function behind a guard."""

    def call(*args: Any, **kwargs: Any) -> Any:
        check_keywords(kwargs)
        return guard(real, *args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(real, "__name__", "call")
    call.__doc__ = real.__doc__
    return call


def homes(class_: type) -> Iterator[tuple[str, str]]:
    """Return the library and the name there, of a class and of each of its bases."""
    # By name, not by identity: no library has to be imported, and a class keeps its name when it moves.
    for base in mro_of(class_):
        if provenance.is_guest_class(base):  # it may claim any name
            continue
        module = module_of(base)
        if type(module) is str:
            yield module.partition(".")[0].lstrip("_"), qualname_of(base)


Replacements: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By module path and member: the object that is handed out in its place."""


class ModuleMembers:
    """The public members of one module that are granted.

    Args:
        names: names and globs; None for all that the module offers, by its ``__all__`` or else as its
            own functions, classes and data.
        without: names and globs that are left out.
    """

    def __init__(self, names: tuple[str, ...] | None = None, without: tuple[str, ...] = ()) -> None:
        self._names, self._without = _Names(("*",) if names is None else names), _Names(without)
        self.is_explicit = names is not None
        """Whether the names are listed here."""

    def allows(self, name: str) -> bool:
        """Return whether a member may be handed out."""
        return not name.startswith("_") and name in self._names and name not in self._without


class _Names:
    """Names and globs. A library has hundreds of members, and most patterns are plain names."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._globs = tuple(each for each in patterns if set(each) & set("*?["))
        self._exact = frozenset(patterns)

    def __contains__(self, name: str) -> bool:
        return name in self._exact or any(fnmatchcase(name, each) for each in self._globs)


def less(*names: str) -> ModuleMembers:
    """Grant what a module offers, without the members named; one string may hold several names."""
    return ModuleMembers(without=_words(names))


def only(*names: str) -> ModuleMembers:
    """Grant the members named."""
    return ModuleMembers(names=_words(names))


def _words(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for text in texts for word in text.split())


def _nothing(files: bool) -> Replacements:
    return {}


def _itself(receiver: Any) -> Any:
    return receiver


def _ready() -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassRules:
    """Rules of a library for classes over its own."""

    makers: Callable[[type], tuple[str, ...]]
    """Returns the members by which a class makes others of its objects."""
    is_settings: Callable[[type, str], bool]
    """Returns whether a member of a class holds settings that the library reads when the class is made."""
    check_statement: Callable[[dict[str, Any], Any, Iterable[Any], dict[str, Any]], None]
    """Refuses a class statement: its namespace, name, bases and keywords."""
    check_stored: Callable[[type, Any], None]
    """Refuses settings from stored bytes that no class statement could have."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Library:
    """The rules for guest code that uses one library. Members are named ``name`` or ``Class.name``."""

    name: str
    """Its import name."""
    modules: Mapping[str, ModuleMembers] = field(default_factory=dict)
    """The granted modules, by path below the library (``""`` is itself, ``"/package.module"`` is another
    package's); no other module is reached."""
    lazy: tuple[str, ...] = ()
    """Globs of modules whose members are looked up when asked for; granted by their ``__all__``."""
    denied: frozenset[str] = frozenset()
    """Members that no object of the library answers."""
    answered: frozenset[str] = frozenset()
    """Members of single classes that are answered, though `denied` or `guarded` has their plain name."""
    guarded: Mapping[str, Guard] = field(default_factory=dict)
    """Members that are handed out in a guarded form."""
    functions: Mapping[str, Mapping[str, Guard]] = field(default_factory=dict)
    """Functions of modules, each by the module's path, that are handed out in a guarded form."""
    copied: frozenset[str] = frozenset()
    """Data that an object of the library trusts, and hands out as a copy."""
    trusted: frozenset[str] = frozenset()
    """Data that compiled code reads from an object and follows: no guest class overrides it."""
    whole: frozenset[str] = frozenset()
    """Classes without guest subclasses: compiled code trusts the results of their methods."""
    writable: frozenset[str] | None = frozenset()
    """Classes on whose instances attributes may be assigned; None where the registration decides."""
    fixed: frozenset[str] = frozenset()
    """Attributes of `writable` classes that may not be assigned."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Advice in place of members that are left out or fixed, where programs often use them."""
    sealed: tuple[str, ...] = ()
    """Classes, by dotted path, that are handed out for ``isinstance`` and their class methods only."""
    builtins: tuple[type, ...] = ()
    """Builtin classes that become sealed with it."""
    brings: tuple[str, ...] = ()
    """Libraries to whose objects its own lead: the rules for those are in force with it."""
    offers: tuple[str, ...] = ()
    """Libraries that can be imported with it: its users take them for granted beside it."""
    entrances: tuple[str, ...] = ()
    """Modules of it that stand for the whole: who registers one has registered the library."""
    has_settings: bool = False
    """Whether guest code may change settings of it that hold for the process: a run puts them back."""
    preload: tuple[str, ...] = ()
    """Modules that it imports when they are first needed."""
    prepare: Callable[[], None] = _ready
    """Does once, as the host, the work that the library would do at its first use."""
    own: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    """Makes members with a state anew for each session; by the module's path."""
    classes: ClassRules | None = None
    """Its rules for classes over its own."""
    stored_on: Callable[[Any], Any] = _itself
    """Returns the object on which an attribute that it decides about is set, in place of the one given."""
    replace: Callable[[bool], Replacements] = _nothing
    """Makes the objects in place of members, for each grant; called with whether files are open to it."""

    def members(self) -> frozenset[str]:
        """Return the names of members that the receiver decides."""
        return frozenset(key.rpartition(".")[2] for key in (*self.denied, *self.guarded, *self.copied))

    def granted(self, path: str) -> ModuleMembers | None:
        """Return the granted members of the module at *path*; None if it is not granted."""
        found = self.modules.get(path)
        if found is None and any(fnmatchcase(path, each) for each in self.lazy):
            return ModuleMembers()
        return found
