"""The policy of a sandbox: registrations as data, and the decisions drawn from them.

Default deny: a :class:`Policy` grants nothing but the language itself. A grant is a name (a function, a
class, a live object) or an importable module. Objects that a grant leads to by public attributes are granted
with it. Modules are not: one is reached through another only inside the same registered package.

An excluded member is denied by *name and type*. Its name becomes contested: only programs that use the name
pay for the check.
"""

from __future__ import annotations

import enum
import functools
import importlib
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agex._interpreter.type_slots import module_of, mro_of
from agex.errors import DefinitionError
from agex.sandbox.classes import host_classes, lru_caches
from agex.sandbox.patches import inspect as inspect_patch
from agex.sandbox.patches import threading
from agex.sandbox.policy import browser, catalog, library_classes, spelling
from agex.sandbox.policy.evaluators import without_evaluators
from agex.sandbox.policy.exclusions import ModuleExclusions
from agex.sandbox.policy.library import Guard, homes
from agex.sandbox.policy.library_grant import LibraryGrant, prepare
from agex.sandbox.policy.library_members import DENIED, ActiveLibraries, named, open_guard, unsealed
from agex.sandbox.policy.member_rules import MemberRules, of_hosts
from agex.sandbox.policy.member_spec import MemberSpec, unmarked
from agex.sandbox.policy.module_grant import FUNCTIONS, ModuleGrant, Pattern, open_while, telling
from agex.sandbox.policy.native import UnknownPackages, inert_reason, opens_unseen, unseen
from agex.sandbox.rules.names import CONTESTED, is_dunder
from agex.sandbox.rules.ruleset import Rules
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.host_time import HOST_TIME, methods_of_host, of_host, require_timeout

if TYPE_CHECKING:
    from agex.sandbox.policy.library import Library

__all__ = ["Grant", "MemberSpec", "Pattern", "Policy"]

CLOCK = "clock!"
"""The name of the clock: none that guest code can write."""


class Grant(NamedTuple):
    """One registration call: a worker repeats them all to have the same policy."""

    kind: Literal["default", "paths", "fn", "cls", "module", "clock"]
    target: Any
    settings: Mapping[str, Any]


class Policy:
    """The grants of a sandbox.

    Args:
        strict: decide about every attribute when it is read, for hosts that hand over live
            objects whose graph they do not know: see docs/security.md. Always so in a browser
            tab, see `agex.sandbox.policy.browser`.

    Attributes:
        names: the variables that guest code finds.
        modules: the modules that guest code may import.
        grants: the registration calls, in order.
        is_standard: whether it has the standard set, to which modules for files belong in a workspace.
        notes: data that other modules keep with the policy. A table of their own would hold it for good,
            where a granted object leads to it.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict or browser.IS_HERE
        self.names: dict[str, Any] = {}
        self.modules: dict[str, ModuleGrant] = {}
        self.grants: list[Grant] = []
        self.is_standard = False
        self.notes: dict[str, Any] = {}
        self._rules = MemberRules()
        self._sealed: set[type] = set()
        self._unloaded: dict[str, set[str]] = {}  # names of sealed classes, by the module they wait for
        self._contested: set[str] = set()
        self._of_builtins: set[str] = set()
        self._hot: set[str] = set()
        self._writable: set[type] = set()
        self._libraries = ActiveLibraries()
        self._used: set[str] = set()
        self._unprepared = {name: _known(name) for name in catalog.EVALUATING}
        self._open: dict[type, tuple[str, ...]] = {}
        self.has_host_time = False
        self._offered: set[str] = set()
        self.unknown = UnknownPackages()
        self._imported = 0  # modules that there were when what they lead to was looked at
        for name in catalog.OPEN_UNSEEN:  # their objects may come from anywhere: an input, a function
            library = _known(name)
            self._libraries.add(library)
            self._contest(library.members())

    @classmethod
    def default(cls, *, strict: bool = False) -> Policy:
        """Return a policy with the standard set: the harmless part of the standard library."""
        policy = cls(strict=strict)
        policy.modules.update(catalog.standard_set())
        policy.grants.append(Grant("default", None, {}))
        for name in catalog.STANDARD:
            library = _known(name)
            policy._use(library)
            policy.modules[name] = LibraryGrant(library, name)
        policy.is_standard = True
        return policy

    def use_paths(self) -> None:
        """Add ``pathlib`` to the standard set: there is a workspace that its paths can lead into."""
        if self.is_standard and "pathlib" not in self.modules:
            library = _known("pathlib")
            self._use(library)
            self.modules["pathlib"] = LibraryGrant(library, "pathlib")
            self.grants.append(Grant("paths", None, {}))

    def leave_out(self, class_: type, names: Iterable[str], *, by: str) -> None:
        """Deny members of a class, wherever its instances come from; *by* names the rule."""
        self._rule(class_, by, "*", tuple(names), {})

    def use_clock(self, draw: Callable[..., Any]) -> None:
        """Let guest code have the readings of clocks, and the draws of chance, from *draw*.

        It is called with the name of a reading (``"time"``, ``"uuid4"``) and its arguments. Random numbers
        are drawn from generators of the session as before.
        """
        self.grants.append(Grant("clock", draw, {"name": CLOCK}))
        self.names[CLOCK] = draw
        modules, library = catalog.clocks(draw)
        self.modules.update({name: grant for name, grant in modules.items() if name in self.modules})
        self._libraries.add(library)
        self._contest(library.members())
        vars(self).pop("text", None)

    # -- granting ------------------------------------------------------------------

    def fn(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        host_fs_access: bool = False,
        network_access: bool = False,
        timeout: float | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Callable[..., Any]:
        """Grant a function under *name*; return it unchanged.

        *host_fs_access* and *network_access* open files and network while it runs, also to what it calls.
        Its time does not count for guest code. The run ends if it takes longer than *timeout* seconds.
        *on_error* is called with each error that it raises, before guest code gets the error.
        """
        if not callable(function):
            raise DefinitionError(f"Policy.fn needs a callable, got {type(function).__name__}")
        opened = _permissions(host_fs_access, network_access)
        self.grants.append(Grant("fn", function, {"name": name}))  # no permissions: it runs in this process
        require_timeout(timeout)
        home = getattr(function, "__module__", None)
        self._contest(self.unknown.add(home, opened, installed=True))
        given = open_while(opened, function) if opened else _plain_function(function)
        given = of_host(given, timeout=timeout)
        given = given if on_error is None else telling(on_error, given, function)
        self.has_host_time = True
        self._grant(name or getattr(function, "__name__", None), given, function)
        return function

    def cls(
        self,
        class_: type,
        *,
        name: str | None = None,
        constructable: bool = True,
        include: Pattern = "*",
        exclude: Pattern = "_*",
        configure: Mapping[str, MemberSpec] | None = None,
        host_fs_access: bool = False,
        network_access: bool = False,
        stays: bool = False,
    ) -> type:
        """Grant a class: its public members, and its construction unless *constructable* is false.

        *host_fs_access* and *network_access* open files and network while a public method runs that guest
        code calls. Properties and the constructor run without them: grant a function that opens the files or
        connections of the object.

        With *stays*, code that runs in another process makes and uses instances in this one.
        """
        if not isinstance(class_, type):
            raise DefinitionError(f"Policy.cls needs a class, got {type(class_).__name__}")
        spelling.require_bools(constructable=constructable, stays=stays)
        include, exclude = (spelling.settled(each, class_, name) for each in (include, exclude))
        configure = unmarked(spelling.configured(configure or {}, class_, name))
        spelling.check_class(class_, (), include, exclude, tuple(configure or ()))
        spelling.check_left_out(class_, exclude)
        settings = {
            "name": name,
            "constructable": constructable,
            "include": include,
            "exclude": exclude,
            "configure": dict(configure or {}),
            "host_fs_access": host_fs_access,
            "network_access": network_access,
            "stays": stays,
        }
        self.grants.append(Grant("cls", class_, settings))
        self._use_home(class_, _permissions(host_fs_access, network_access))
        self._open_methods(class_, _permissions(host_fs_access, network_access))
        self._rule(class_, name or class_.__name__, include, exclude, configure or {})
        self._hot |= library_classes.private_names(class_)
        self._writable.add(class_)
        if not constructable:
            self._sealed.add(class_)
            self._contest_of(class_, _MAKING)
            self._rule(class_, "", "*", library_classes.makers(class_), {})
        self._grant(name or class_.__name__, class_, class_)
        return class_

    def module(
        self,
        module: Any,
        *,
        name: str | None = None,
        include: Pattern = "*",
        exclude: Pattern = ("_*", "*._*"),
        configure: Mapping[str, MemberSpec] | None = None,
        recursive: bool = True,
        host_fs_access: bool = False,
        network_access: bool = False,
    ) -> Any:
        """Grant a module for import, or a live object as the variable *name*.

        A library that agex knows (see docs/libraries.md) comes under its curated policy: *include*
        and *exclude* narrow it, and a dotted name without a wildcard in *include* lifts it for that member.

        *host_fs_access* and *network_access* open files and network while a function of the module runs that
        guest code calls, or a public method of the live object.
        """
        spelling.require_bools(recursive=recursive)
        include, exclude = (spelling.settled(each, module, name) for each in (include, exclude))
        configure = unmarked(spelling.configured(configure or {}, module, name))
        spelling.check_left_out(module, exclude)
        if isinstance(module, types.ModuleType):
            spelling.check_module(module, include, exclude, tuple(configure or ()))
        else:
            held = host_classes.held(module)
            spelling.check_class(type(module), held, include, exclude, tuple(configure or ()))
        opened = _permissions(host_fs_access, network_access)
        settings = {
            "name": name,
            "include": include,
            "exclude": exclude,
            "configure": dict(configure or {}),
            "recursive": recursive,
            "host_fs_access": host_fs_access,
            "network_access": network_access,
        }
        self.grants.append(Grant("module", module, settings))
        if not isinstance(module, types.ModuleType):
            if name is None:
                raise DefinitionError("a live object needs a name: module(connection, name='db')")
            if isinstance(module, (type, *FUNCTIONS)):  # what is said of its members would be said of all
                kind, way = ("class", "cls") if isinstance(module, type) else ("function", "fn")
                raise DefinitionError(f"{name} is a {kind}, not a module: register it with {way}({name})")
            self._use_home(type(module), opened)
            is_told = methods_of_host(type(module)) or type(module).__module__ == "builtins"
            self._open_methods(type(module), opened if is_told else (*opened, HOST_TIME))
            self.has_host_time = True
            self._rule(type(module), name, include, exclude, configure or {}, held=host_classes.held(module))
            self._writable.add(type(module))
            self._grant(name, module, module)
            return module
        library = catalog.find(module.__name__.partition(".")[0])
        curated = catalog.standard_set().get(module.__name__)
        if curated is not None and curated.is_for_each_session:  # which is not this module
            curated = None
        plain = include == "*" and exclude in ("_*", ("_*", "*._*")) and not configure and not opened
        if curated is not None and plain and (library is None or library.name not in self._used):
            self.modules[name or module.__name__] = curated
            return module
        grant = self._module_grant(
            module, library, include=include, exclude=exclude, recursive=recursive, opened=opened
        )
        if module.__name__ in self._offered and name not in (None, module.__name__):
            del self.modules[module.__name__]  # the host says itself how it is granted
        self.modules[name or module.__name__] = grant
        self._grant_beside(module.__name__, library)
        if patterns := grant.member_exclusions():
            by = name or module.__name__
            dotted = ModuleExclusions(module.__name__, patterns, frozenset(configure or ()))
            self._contest(self._rules.add_module(by, dotted))
        for owner, members in grant.class_exclusions():
            self._rule(unsealed(owner), name or module.__name__, "*", members, configure or {})
        vars(self).pop("text", None)
        return module

    def _grant_beside(self, name: str, library: Library | None) -> None:
        """Grant the libraries that users of a registered module take for granted beside it."""
        beside: tuple[str, ...] = catalog.BESIDE.get(name, ())
        if library is not None and name == library.name:
            beside = library.offers
        elif library is not None and name.partition(".")[2] in library.entrances:
            beside = library.name, *library.offers
        self._offered.discard(name)
        for other in beside:
            if not any(grant.module_name == other for grant in self.modules.values()):
                self._use(_known(other))
                self.modules[other] = LibraryGrant(_known(other), other)
                self._offered.add(other)

    def _module_grant(
        self,
        module: types.ModuleType,
        library: Library | None,
        *,
        include: Pattern,
        exclude: Pattern,
        recursive: bool,
        opened: tuple[str, ...],
    ) -> ModuleGrant:
        if library is not None:
            self._use(library)
            self._libraries.loosen(library, named(include), opened)
        path = module.__name__.partition(".")[2]
        if (
            library is None or library.granted(path) is None
        ):  # a module off the list: the host named it itself
            exclude = without_evaluators(module.__name__, include, exclude)
            if "files" not in opened and opens_unseen(module.__name__):
                raise DefinitionError(unseen(module.__name__, library))
            self._contest(self.unknown.add(module.__name__, opened))
            return ModuleGrant(
                module,
                include=include,
                exclude=exclude,
                recursive=recursive,
                permissions=opened,
                without=self.unknown.owns,
            )
        return LibraryGrant(
            library,
            module.__name__,
            include=include,
            exclude=exclude,
            recursive=recursive,
            permissions=opened,
        )

    def _use(self, library: Library) -> None:
        """Put the rules of a library for its objects in force."""
        if library.name in self._used:
            return
        self._used.add(library.name)
        self._unprepared[library.name] = library
        self._libraries.add(library)
        self._contest(library.members())
        for path in library.sealed:
            module, _, name = path.rpartition(".")
            self._unloaded.setdefault(module, set()).add(name)
        for builtin in library.builtins:
            self._sealed.add(builtin)
            self.names[builtin.__name__] = builtin
        if library.name in self.modules and library.modules:
            self.modules[library.name] = LibraryGrant(library, library.name, recursive=False)
        for name in library.brings:
            self._use(_known(name))
        vars(self).pop("text", None)

    def prepare(self) -> None:
        """Prepare the loaded libraries that are in force: their objects may be there, too."""
        if "inspect" in sys.modules:
            inspect_patch.hold()
        if self._imported != (count := len(sys.modules)):  # takes less time than the questions below
            threading.hold_executors()
            self._contest(self.unknown.look())
            self._imported = count
        if self._unprepared.keys().isdisjoint(sys.modules.keys()):
            return
        for name, library in list(self._unprepared.items()):
            if name in sys.modules:
                prepare(library)
                self._unprepared.pop(name, None)  # another thread may have

    def _use_home(self, class_: type, opened: tuple[str, ...]) -> None:
        """Put the policies of the libraries that a class comes from in force."""
        self._contest(self.unknown.add(module_of(class_), opened, installed=True))
        for home, _ in homes(class_):
            if (library := catalog.find(home)) is not None and library.modules:
                self._use(library)

    def _open_methods(self, class_: type, opened: tuple[str, ...]) -> None:
        if opened:
            self._open[class_] = opened
            self._contest_of(
                class_, (n for n in dir(class_) if not n.startswith("_") and callable(getattr(class_, n)))
            )

    def _contest(self, names: Collection[str]) -> None:
        """Let the receivers of these names be checked, and answer as the libraries say."""
        if not names:
            return
        for name in names:
            self._contested.add(name)
        vars(self).pop("text", None)

    def _contest_of(self, class_: type, names: Iterable[str]) -> None:
        """Let the receivers of these names be checked for the sake of one class."""
        found = set(names)
        if class_.__module__ == "builtins":
            self._of_builtins |= found
        self._contest(found)

    def _grant(self, name: str | None, value: Any, target: Any) -> None:
        if not name or not name.isidentifier() or is_dunder(name):
            raise DefinitionError(f"{name!r} is not a usable name for {target!r}; pass name='an_identifier'")
        self.names[name] = value
        vars(self).pop("text", None)

    def _rule(
        self,
        class_: type,
        by: str,
        include: Pattern,
        exclude: Pattern,
        configure: Mapping[str, MemberSpec],
        *,
        held: Iterable[str] = (),
    ) -> None:
        """Note the members that the registration *by* leaves out; *held* are attributes of an object."""
        known = self._rules.add(class_, by, include, exclude, configured=configure.keys(), held=held)
        self._contest_of(class_, known)
        vars(self).pop("text", None)

    # -- deciding ------------------------------------------------------------------

    @functools.cached_property
    def text(self) -> Rules:
        """The rules of this policy for the text of a program; another object after each registration."""
        contested = CONTESTED | self._contested
        return Rules(
            contested=frozenset(contested),
            only_elsewhere=frozenset(contested - CONTESTED - self._of_builtins),
            hot=frozenset(self._hot),
            strict=self.strict,
        )

    def denies(self, class_: type, name: str) -> bool:
        """Return whether a registration excludes the public member *name* of *class_*."""
        if name not in self._contested and not self.strict:
            return False
        class_ = unsealed(class_)
        if name in _MAKING and any(map(self.is_sealed, mro_of(class_))):
            return True
        if self.unknown.owner(class_, name) is not None:
            return True
        return self._rules.denies(class_, name) or self._libraries.verdict(class_, name) is DENIED

    def guard(self, class_: type, name: str) -> Guard | None:
        """Return the guard by which objects of *class_* answer *name*; None for the plain member."""
        class_ = unsealed(class_)
        said = self._libraries.verdict(class_, name)
        if said is not None:
            return said
        opened = next((self._open[base] for base in of_hosts(class_) if base in self._open), ())
        return open_guard(opened)

    def imports(self, name: str, value: Any) -> bool:
        """Return whether a granted module has *value* itself under *name*."""
        home = str(getattr(value, "__module__", ""))
        root = home.partition(".")[0]
        grants = [grant for grant in list(self.modules.values()) if grant.root == root]
        return any(vars(grant.copy()).get(name, self) is value for grant in grants)

    def restricts(self, class_: type) -> bool:
        """Return whether a registration, or a library in force, has rules for the members of a class."""
        if provenance.is_guest_class(class_):
            return False
        said = class_ in self._open or self.is_sealed(class_) or self._rules.speaks_of(class_)
        return said or self._libraries.restricts(class_)

    def leaves_out(self, class_: type, name: str) -> bool:
        """Return whether a registration, or a library, excludes a public *name* of *class_*.

        The class must be known to have it. A class without guest subclasses has no ``__init_subclass__``.
        """
        if name == "__init_subclass__":
            return self._libraries.is_whole(class_)
        if self._libraries.keeps(unsealed(class_), name):
            return True
        if name.startswith("_"):
            return False
        return self._rules.leaves_out(unsealed(class_), name)

    def is_sealed(self, class_: type) -> bool:
        """Return whether guest code may not make instances of *class_*."""
        for module in self._unloaded.keys() & sys.modules.keys():
            self._seal(module)
        is_sealed = class_ in self._sealed or self.unknown.owns(class_) is not None
        return is_sealed and not provenance.is_guest_class(class_)

    def _seal(self, module: str) -> None:
        """Seal the classes of a module that is loaded; nobody has an instance before that."""
        with suppress(ImportError):  # of another version
            importlib.import_module(module)  # waits where another thread is loading it
        loaded = sys.modules.get(module)
        found = {name: getattr(loaded, name, None) for name in self._unloaded.get(module, ())}
        self._sealed.update(class_ for class_ in found.values() if isinstance(class_, type))
        if not getattr(getattr(loaded, "__spec__", None), "_initializing", False):  # by this thread
            self._unloaded.pop(module, None)

    def instead(self, class_: type, name: str) -> str | None:
        """Return advice in place of a refused member; None where no library has any."""
        package = self.unknown.owner(unsealed(class_), name)
        return self._libraries.instead(class_, name) if package is None else inert_reason(package)

    def is_writable(self, class_: type, name: str) -> bool:
        """Return whether a public data attribute of instances of *class_* may be assigned."""
        if (said := self._libraries.is_writable(class_, name)) is not None:
            return said
        if issubclass(type(class_), enum.EnumType):  # a member is the only one of its kind
            return False
        for base in of_hosts(class_):
            if base in self._writable:
                return True
            root = str(getattr(base, "__module__", "")).partition(".")[0]
            # An object of the standard library is often the only one of its kind in the interpreter.
            if root in sys.stdlib_module_names:
                if f"{base.__module__}.{base.__qualname__}" in _FREELY_WRITTEN:
                    return True
            elif self._covers(root):
                return True
        return False

    def _covers(self, root: str) -> bool:
        return any(grant.root == root for grant in self.modules.values())

    def covers(self, root: str) -> bool:
        """Return whether guest code may have something of a package."""
        return root in self._used or self._covers(root) or root in catalog.OPEN_UNSEEN


_MAKING = frozenset({"_make", "_replace"})
"""Public members of named tuples that make others."""

_FREELY_WRITTEN = frozenset(
    {
        "argparse.Namespace", "collections.UserDict", "collections.UserList", "collections.UserString",
        "collections.defaultdict", "decimal.Context", "enum.auto", "functools.partial", "reprlib.Repr",
        "textwrap.TextWrapper", "types.SimpleNamespace",
    }
)  # fmt: skip
"""Classes of the standard library whose instances are made by guest code, to be written to."""


def _permissions(host_fs_access: bool, network_access: bool) -> tuple[str, ...]:
    spelling.require_bools(host_fs_access=host_fs_access, network_access=network_access)
    asked = (("files", host_fs_access), ("network", network_access))
    return tuple(each for each, is_asked in asked if is_asked)


def _known(name: str) -> Library:
    library = catalog.find(name)
    assert library is not None, f"a library policy names {name}, which has none"
    return library


def _plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a callable whose attributes would show its parts, or that keeps its results."""
    if isinstance(function, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
        return function
    if lru_caches.is_memoized(function):
        return lru_caches.of_plain(function)
    if not isinstance(function, functools.partial):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(function.func, "__name__", "partial")
    call.__doc__ = function.func.__doc__
    return call
