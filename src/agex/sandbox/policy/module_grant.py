"""Modules as guest code sees them: plain copies of what is allowed.

Guest code never holds a module of the host. ``import m`` binds an ordinary ``ModuleType`` filled with the
allowed members. So access runs at native speed, and a write would hit the copy. A module is reached through
another one only inside a registered package. Mutable data (lists, dicts, sets) is copied for each session.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from agex.sandbox.classes import guest_type, lru_caches
from agex.sandbox.policy import catalog
from agex.sandbox.policy.exclusions import member_patterns
from agex.sandbox.runtime import audit_hook

__all__ = [
    "FUNCTIONS", "Known", "ModuleGrant", "Pattern", "blank", "handed_out",
    "is_for_guests", "is_foreign", "make_for_each", "matches", "note", "of_session",
    "open_while", "telling",
]  # fmt: skip

Pattern: TypeAlias = str | Iterable[str] | Callable[[str], bool]
"""A glob, several globs, or a predicate over a name."""

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_DATA = (list, dict, set, bytearray)
_NESTED = frozenset({*_DATA, tuple})
_FORMATTING = frozenset({"logging", "rich", "seaborn", "tqdm"})
"""Packages in `agex.sandbox.libraries.templates`."""


def matches(pattern: Pattern, name: str) -> bool:
    """Return whether *name* fits a pattern. Dotted globs are for members of classes and fit no plain name."""
    if isinstance(pattern, str):
        return fnmatchcase(name, pattern)
    if callable(pattern):
        return bool(pattern(name))
    return any(fnmatchcase(name, each) for each in pattern)


_FOR_GUESTS: weakref.WeakSet[types.ModuleType] = weakref.WeakSet()


def blank(name: str, doc: str | None = None) -> types.ModuleType:
    """Return a new, empty module for guest code."""
    made = types.ModuleType(name, doc)
    _FOR_GUESTS.add(made)
    return made


def note(module: types.ModuleType) -> types.ModuleType:
    """Note that a module, and those in it, were made for guest code; return it."""
    _FOR_GUESTS.add(module)
    _FOR_GUESTS.update(each for each in vars(module).values() if type(each) is types.ModuleType)
    return module


def is_for_guests(module: types.ModuleType) -> bool:
    """Return whether a module was made for guest code; a host module need not be in ``sys.modules``."""
    return type(module) is types.ModuleType and module in _FOR_GUESTS


class ModuleGrant:
    """One importable module, and the copies of it and of its submodules for guest code.

    Args:
        module: the module, or its name, to be imported when guest code first asks for it.
        include: the members that may be seen.
        exclude: the members that may not; it wins over *include*.
        recursive: whether submodules of the same package are part of the grant.
        replace: members that are handed out in place of the module's own.
        permissions: open while a function of the module runs. Classes are handed out as they are: their
            constructors and methods run without them.
        per_session: makes members with a state anew for each session.
        gives_way: whether a workspace module of that name comes before it.
        without: returns the package for whose sake an object is left out; None for any other object.
    """

    is_for_each_session = False
    """Whether the text of the module is compiled and run for each session."""

    def __init__(
        self,
        module: types.ModuleType | str,
        *,
        include: Pattern = "*",
        exclude: Pattern = ("_*", "*._*"),
        recursive: bool = True,
        replace: Mapping[str, Any] | None = None,
        permissions: tuple[str, ...] = (),
        per_session: Callable[[], Mapping[str, Any]] | None = None,
        gives_way: bool = False,
        without: Callable[[Any], str | None] | None = None,
    ) -> None:
        self._module = module
        self._include = include if isinstance(include, str) or callable(include) else tuple(include)
        self._exclude = exclude if isinstance(exclude, str) or callable(exclude) else tuple(exclude)
        self._recursive = recursive
        self._replace = dict(replace or {})
        self._permissions = permissions
        self.per_session = per_session
        self.gives_way = gives_way
        self._without = without
        self._copies: dict[str, types.ModuleType] = {}
        self._unfinished: dict[str, types.ModuleType] = {}
        self._making = threading.RLock()
        self.module_name = module if isinstance(module, str) else module.__name__
        self.root = self.module_name.partition(".")[0]
        has_templates = self.root in _FORMATTING and not self.is_for_each_session
        self._templates = catalog.templates() if has_templates else None

    def copy(self) -> types.ModuleType:
        """Return the copy of the module itself."""
        if isinstance(self._module, str):
            self._module = importlib.import_module(self._module)
        return self._copy_of(self._module)

    def own_copy(self) -> types.ModuleType:
        """Return a copy for one session only, with its members of `per_session`."""
        shared = self.copy()
        own = blank(shared.__name__, shared.__doc__)
        vars(own).update(vars(shared))
        if self.per_session is not None:
            vars(own).update(self.per_session())
        return own

    def submodule(self, path: str) -> types.ModuleType | None:
        """Return the copy of a submodule, e.g. ``"linalg"``; None if the grant does not hold it."""
        if not self._recursive:
            return None
        copy = self.copy()
        real = self._module
        for part in path.split("."):
            full = f"{real.__name__}.{part}"  # type: ignore[union-attr]
            if not self._allows(part, real.__name__) or not self._import(full):  # type: ignore[union-attr]
                return None
            real = sys.modules[full]
            child = self._copy_of(real)
            vars(copy).setdefault(part, child)
            copy = vars(copy)[part]
        return copy

    def has_submodule(self, name: str) -> bool:
        """Return whether the grant holds a submodule directly below its module, without importing it."""
        full = f"{self.module_name}.{name}"
        if not self._recursive or not self._allows(name, self.module_name):
            return False
        return full in sys.modules or importlib.util.find_spec(full) is not None

    def _import(self, full: str) -> bool:
        if full not in sys.modules:
            try:
                importlib.import_module(full)
            except ImportError:
                return False
        return True

    def _allows(self, name: str, home: str) -> bool:
        return matches(self._include, name) and not self._leaves_out(name, home)

    def _leaves_out(self, name: str, home: str) -> bool:
        """Return whether a member of the module *home* is excluded, by its name or by its path."""
        if matches(self._exclude, name):
            return True
        if callable(self._exclude):
            return False
        said = (self._exclude,) if isinstance(self._exclude, str) else self._exclude
        below = f"{home}.".removeprefix(f"{self.module_name}.")
        is_below = below not in {"", f"{home}."}
        whole = [each for each in said if each.startswith(f"{self.module_name}.")]
        return matches(whole, f"{home}.{name}") or (is_below and matches(self._exclude, f"{below}{name}"))

    def _copy_of(self, module: types.ModuleType) -> types.ModuleType:
        def fill(copy: types.ModuleType) -> None:
            if self._templates is not None:
                self._templates.hold_templates(self.root)
            vars(copy).update(self._members(module))

        return self._copies.get(module.__name__) or self._made_once(module.__name__, module, fill)

    def _made_once(
        self, name: str, module: types.ModuleType, fill: Callable[[types.ModuleType], None]
    ) -> types.ModuleType:
        """Return the copy of a module, made if there is none: whole, and one for all threads.

        Modules lead to each other in circles, so those that are being made are known to the thread that makes
        them. The others see them once all are whole. If making fails, where a limit strikes or the stack is
        used up, none of them is kept, and the next call begins anew.
        """
        with self._making:
            copy = self._copies.get(name) or self._unfinished.get(name)
            if copy is not None:
                return copy
            is_outermost = not self._unfinished
            copy = self._unfinished[name] = blank(module.__name__, module.__doc__)
            is_whole = False
            try:
                fill(copy)
                is_whole = True
            finally:
                if is_outermost:
                    if is_whole:
                        self._copies.update(self._unfinished)
                    self._unfinished.clear()
                elif not is_whole:
                    del self._unfinished[name]
            return copy

    def _members(self, module: types.ModuleType) -> Iterator[tuple[str, Any]]:
        public = getattr(module, "__all__", ())
        top = module.__name__ == self.module_name
        for name in dict.fromkeys((*vars(module), *public)):  # a public member may be made at access
            if not self._allows(name, module.__name__):
                continue
            try:
                value = getattr(module, name)
            except (
                AttributeError,
                ImportError,
            ):  # `__all__` names what is not there, or needs another package
                continue
            if self._is_left_out(value) or (self._without is not None and self._without(value) is not None):
                continue
            if top and name in self._replace:
                yield name, self._replace[name]
            elif isinstance(value, types.ModuleType):
                if self._recursive and value.__name__.startswith(self.module_name + "."):
                    yield name, self._copy_of(value)
            elif name in public or not is_foreign(value, self.root):
                yield name, self._opened(handed_out(value))
        if public and isinstance(public, (list, tuple)):
            yield "__all__", [name for name in public if self._allows(name, module.__name__)]
        if isinstance(version := vars(module).get("__version__"), str):
            yield "__version__", version

    def _is_left_out(self, value: Any) -> bool:
        """Return whether a class or function is excluded by its path, under any name."""
        return isinstance(value, (type, *FUNCTIONS)) and any(value is each for each in self._said_by_path)

    @functools.cached_property
    def _said_by_path(self) -> list[Any]:
        """The members of loaded modules that are excluded by their path in full."""
        if callable(self._exclude):
            return []
        said = (self._exclude,) if isinstance(self._exclude, str) else self._exclude
        paths = (each.removeprefix(f"{self.module_name}.").rpartition(".") for each in said if "." in each)
        found = [(sys.modules.get(f"{self.module_name}.{home}"), name) for home, _, name in paths if home]
        return [vars(module)[name] for module, name in found if module is not None and name in vars(module)]

    def _opened(self, value: Any) -> Any:
        """Return a function wrapped to open the permissions of the grant; any other object as it is."""
        return (
            open_while(self._permissions, value)
            if self._permissions and isinstance(value, FUNCTIONS)
            else value
        )

    def member_exclusions(self) -> tuple[tuple[str, str], ...]:
        """Return the exclusions of members, such as ``"DataFrame.to_*"``, as owner and member."""
        if callable(self._exclude):
            return ()
        return member_patterns((self._exclude,) if isinstance(self._exclude, str) else self._exclude)

    def class_exclusions(self) -> Iterator[tuple[type, tuple[str, ...]]]:
        """Return each class that a name of the module leads to, with its excluded members."""
        owners = self.member_exclusions()
        if not owners:
            return
        for name, value in vars(self.copy()).items():
            paths = name, f"{self.module_name}.{name}"
            members = tuple(m for owner, m in owners if any(fnmatchcase(path, owner) for path in paths))
            if members and isinstance(value, type):
                yield value, members


def open_while(opened: tuple[str, ...], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function during which the audit hook permits what *opened* names."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return audit_hook.call_with_permissions(opened, function, *args, **kwargs)

    call.__name__ = getattr(function, "__name__", "call")
    call.__qualname__ = getattr(function, "__qualname__", call.__name__)
    call.__doc__ = function.__doc__
    return call


def telling(
    on_error: Callable[[Exception], None], call: Callable[..., Any], function: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that reports the errors of *call* and looks like *function*, which *call* calls."""
    import inspect  # not at import: few hosts grant functions with it

    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            on_error(error)
            raise

    told.__name__ = getattr(function, "__name__", type(function).__name__)
    told.__qualname__ = getattr(function, "__qualname__", told.__name__)
    told.__doc__ = function.__doc__
    with contextlib.suppress(TypeError, ValueError):  # a builtin need not have one
        told.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return told


def is_foreign(value: Any, root: str) -> bool:
    """Return whether a function or class of package *root* was imported from the standard library."""
    if not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return False
    home = str(getattr(value, "__module__", None) or "").partition(".")[0].lstrip("_")
    return home != root.lstrip("_") and (
        home in sys.stdlib_module_names or f"_{home}" in sys.stdlib_module_names
    )


def _copied(value: Any, known: dict[int, Any]) -> Any:
    """Copy plain data, with the data in it; any other object in it stays the same."""
    kind = type(value)
    if id(value) in known:
        return known[id(value)]
    if kind is list and not _NESTED.isdisjoint(map(type, value)):
        items: list[Any] = []
        known[id(value)] = items
        items.extend(_copied(each, known) for each in value)
        return items
    if kind is dict:
        pairs: dict[Any, Any] = {}
        known[id(value)] = pairs
        pairs.update((key, _copied(each, known)) for key, each in value.items())
        return pairs
    if kind is tuple and not _NESTED.isdisjoint(map(type, value)):
        return tuple(_copied(each, known) for each in value)
    return value.copy() if kind in _DATA else value


Known: TypeAlias = dict[int, tuple[types.ModuleType, types.ModuleType]]
"""The modules of a session by the ids of those that all sessions share, with these, which then stay."""


def of_session(shared: types.ModuleType, known: Known) -> types.ModuleType:
    """Return a module, and those in it, with data of their own, so that changes stay in the session.

    A module in which nothing can be changed is returned as it is.
    """
    if id(shared) in known:
        return known[id(shared)][1]
    own = blank(shared.__name__, shared.__doc__)
    known[id(shared)] = shared, own
    kinds = {*_DATA, tuple, types.ModuleType, getattr(sys.modules.get("numpy"), "ndarray", tuple)}
    made = _MADE_FOR_EACH[shared]() if shared in _MADE_FOR_EACH else {}
    changed = {name: value for name, value in made.items() if name in vars(shared)}
    for name, value in [(n, v) for n, v in vars(shared).items() if type(v) in kinds]:
        mine = of_session(value, known) if type(value) is types.ModuleType else fresh(value)
        if mine is not value:
            changed[name] = mine
    if not changed:
        known[id(shared)] = shared, shared
        return shared
    vars(own).update(vars(shared))
    vars(own).update(changed)
    return own


_MADE_FOR_EACH: weakref.WeakKeyDictionary[types.ModuleType, Callable[[], Mapping[str, Any]]] = (
    weakref.WeakKeyDictionary()
)


def make_for_each(shared: types.ModuleType, make: Callable[[], Mapping[str, Any]]) -> None:
    """Register a function that makes members of a module anew for each session."""
    _MADE_FOR_EACH[shared] = make


def fresh(value: Any) -> Any:
    """Return a copy of plain data; any other object as it is."""
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return value.copy()
    return _copied(value, {})


def handed_out(value: Any) -> Any:
    """Return a module's member as guest code gets it."""
    if type(value) in _DATA:
        return fresh(value)
    if isinstance(value, type) and issubclass(value, type):
        return guest_type.stand_in(value)
    return lru_caches.of_plain(value) if lru_caches.is_memoized(value) else value
