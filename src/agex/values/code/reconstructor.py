"""Constructors of functions, classes and namespaces, for one load: host classes, guest code.

The unpickler calls the methods with whatever is stored, so each checks its arguments.
"""

from __future__ import annotations

import enum
import functools
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from agex._interpreter.type_slots import mro_of, name_of, namespace_of, qualname_of
from agex.errors import StateCorrupt
from agex.values.adapters import enum_members as members
from agex.values.adapters.callable_builder import exact, made_of, missing, missing_host
from agex.values.base.allowlist import Allow
from agex.values.base.decode_budget import CALL, current, spend
from agex.values.base.function_wrappers import MANAGERS, functions_of, plain_function
from agex.values.base.guest_code import GuestCode, sealing
from agex.values.base.handle import Handle, unwrapped
from agex.values.base.placeholders import SEALED, NotKept
from agex.values.base.type_checks import is_a, is_class, is_function
from agex.values.code.instance_builder import OBJECT, PLACE, InstanceBuilder, is_guests, refused

__all__ = [
    "GIVEN",
    "MADE",
    "RUN",
    "Builder",
    "Namespace",
    "may_store",
]


class Namespace:
    """The globals of rebuilt code, with the values that the functions of one group captured."""

    __slots__ = ("globals",)

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}


class Builder(InstanceBuilder):
    """The constructors of one load.

    Args:
        allow: host classes.
        guest: makes guest code; without it, placeholders stand for that code.
        thaw: loads a nested stream: its bytes, the handles that it refers to, its buffers.
        outer: those handles, in a nested stream.
        later: collects the work that is done when all classes are made.
        unhashed: why no instance is made of a class that hashes itself, if none is.
    """

    def __init__(
        self,
        allow: Allow,
        guest: GuestCode | None,
        thaw: Callable[..., dict[str, Any]],
        outer: Sequence[Any] = (),
        *,
        later: list[Callable[[], None]] | None = None,
        unhashed: str = "",
    ) -> None:
        self._allow = allow
        self._guest = guest
        self._thaw = thaw
        self._outer = outer
        self._later = [] if later is None else later
        self._unhashed = unhashed
        self._makers: dict[Any, Callable[[], Any]] = {}
        self._unsealed: dict[bytes, Sequence[Any] | str] = {}
        self._at_home: dict[int, Any] = {}
        """Functions and classes of guest modules, by id: they keep the attributes that they have there."""
        self._filled: dict[int, type] = {}
        self._dressed: dict[int, Any] = {}
        """The functions and classes made here, by id: only they get attributes."""

    # -- what is not called while loading ----------------------------------------------------

    def real(self, handle: Any) -> Any:
        """Return the target of a handle, for a place where handles are not unwrapped."""
        return unwrapped(handle)

    def outer(self, number: int) -> Any:
        """Return the handle of code that the stream around this one holds."""
        return self._outer[number]

    def host(self, name: str) -> Any:
        """Find a host object by its name in guest code."""
        if self._guest is None:
            return missing(name, "object of the host", "no guest code can be loaded here")
        try:
            return Handle(self._guest.host_object(name))
        except KeyError:
            return missing_host(name)

    def sealed(self, path: str, type_: str, sealed: bytes, place: int) -> Any:
        """Take an object of a type that only a worker has out of its seal; elsewhere, a placeholder."""
        code = sealing(self._guest)
        if code is None:
            return NotKept(exact(path), exact(type_), SEALED)
        if sealed not in self._unsealed:
            try:
                self._unsealed[sealed] = code.unsealed(sealed)
            except Exception as error:  # noqa: BLE001 - its own code runs
                self._unsealed[sealed] = f"it cannot be loaded: {type(error).__name__}: {error}"
        found = self._unsealed[sealed]
        return NotKept(exact(path), exact(type_), found) if isinstance(found, str) else found[place]

    def named(self, name: str) -> Any:
        """Find a class by its name."""
        found = self._allow.named(name)
        if found is None:
            raise refused(name)
        return Handle(found)

    def partial(
        self,
        function: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        """Make a `functools.partial`, in a handle."""
        spend(OBJECT + 8 * len(args) + PLACE * (len(keywords) + len(attributes or ())))
        given = [unwrapped(each) for each in args]
        named = {exact(name): unwrapped(each) for name, each in keywords.items()}
        made = made_of(function, lambda f: functools.partial(f, *given, **named))
        if attributes and type(made) is Handle:
            own = {exact(name): unwrapped(each) for name, each in attributes.items()}
            vars(made.target).update(own)
        return made

    def type_variable(self, name: str, bounds: tuple[Any, ...], variance: tuple[bool, bool]) -> Any:
        """Make a `typing.TypeVar` of its bound and its constraints, in a handle."""
        if any(type(each) is str for each in bounds):  # which typing compiles
            raise StateCorrupt("a stored type variable is bound by a text")
        bound, *constraints = map(unwrapped, bounds)
        spend(OBJECT * 4 + 8 * len(constraints))
        lost = next((each for each in (bound, *constraints) if type(each) is NotKept), None)
        if lost is not None:
            return lost
        given = dict(zip(("covariant", "contravariant"), map(bool, variance), strict=True))
        kind: Any = typing.TypeVar
        made = kind(exact(name), *constraints, bound=bound, **given)
        made.__module__ = "__main__"
        return Handle(made)

    def cached(self, function: Any, maxsize: int | None, typed: bool) -> Any:
        """Wrap a function in ``functools.lru_cache`` again, with an empty cache."""
        if not (maxsize is None or type(maxsize) is int):  # `lru_cache` takes a callable for the function
            raise StateCorrupt("a stored cache has a size that is no number")
        make = self._of_library("functools:lru_cache")
        return make if type(make) is NotKept else made_of(function, make(maxsize, typed))

    def manager(self, name: str, function: Any) -> Any:
        """Wrap a function in ``contextlib.contextmanager`` or its asynchronous twin again."""
        if name not in MANAGERS:
            raise StateCorrupt(f"no decorator of context managers is called {name}")
        make = self._of_library(f"contextlib:{name}")
        return make if type(make) is NotKept else made_of(function, make)

    def method(self, name: str, owner: Any) -> Any:
        """Bind a method by its name to *owner*, an instance or a class."""
        owner = unwrapped(owner)
        if type(owner) is NotKept or not is_guests(self._guest, owner):
            return missing(name, "method", "its object was not kept")
        found = next((vars(c)[name] for c in _mro(owner) if name in vars(c)), None)
        found = plain_function(found)
        if found is None:
            return missing(name, "method", "its class has none of that name")
        return made_of(found, lambda f: types.MethodType(f, owner))

    # -- code --------------------------------------------------------------------------------

    def namespace(self) -> Namespace:
        """Make the globals of code, to be filled when everything is loaded."""
        return Namespace()

    def cell(self) -> types.CellType:
        """Make the cell of a captured local variable."""
        return types.CellType()

    @staticmethod
    def fill_cell(cell: types.CellType, content: Any) -> None:
        """Put a value into a cell."""
        _require_cell(cell).cell_contents = unwrapped(content)

    def _found_at(self, home: str, kind: type) -> Handle | None:
        """Find a function or class in a guest module by its place there."""
        found = None if not home or self._guest is None else self._guest.at_home(exact(home))
        if not is_a(found, kind):
            return None
        self._at_home[id(found)] = found
        return Handle(found)

    def _is_at_home(self, handle: Any) -> bool:
        return type(handle) is Handle and id(handle.target) in self._at_home

    def function(  # noqa: PLR0917 - streams give arguments by position
        self,
        source: str,
        name: str,
        names: tuple[str, ...],
        cells: tuple[Any, ...],
        namespace: Namespace,
        home: str = "",
    ) -> Any:
        """Compile a function over its captured cells; its defaults come later.

        With a *home* it is the one of that module, if there is one now.
        """
        if (at_home := self._found_at(home, types.FunctionType)) is not None:
            return at_home
        made = self._rebuilt(source, name, "function", namespace, (None,) * len(names))
        if type(made) is NotKept:
            return made
        by_name = dict(zip(names, cells, strict=True))
        closure = tuple([by_name.get(free) or types.CellType() for free in made.__code__.co_freevars])
        found = types.FunctionType(made.__code__, namespace.globals, exact(name), None, closure or None)
        self._dressed[id(found)] = found
        return Handle(found)

    def fill_function(self, handle: Any, state: dict[str, Any]) -> None:
        """Set the defaults and attributes of a function."""
        if type(handle) is not NotKept and not self._is_at_home(handle):
            _dress(self._own(handle, types.FunctionType), state)

    def _own(self, handle: Any, kind: type) -> Any:
        """Return a function or class that was made here; stored values may change no other."""
        target = handle.target if type(handle) is Handle else None
        if id(target) not in self._dressed or not issubclass(type(target), kind):
            raise StateCorrupt("a stored value changes a function or class that it does not make")
        return target

    def class_(  # noqa: PLR0917 - streams give arguments by position
        self,
        source: str,
        name: str,
        given: list[tuple[Any, ...]],
        captured: tuple[Any, ...],
        namespace: Namespace,
        home: str = "",
    ) -> Any:
        """Run a class statement of guest code under its guards, over its captured values.

        The statement changes copies of captured values: they have its effect already.

        Args:
            source: the program that makes the class, or, where it captured anything, a function that does.
            name: of the class.
            given: contents that namespaces need before.
            captured: the names of the program's parameters; the names of captured variables and their
                cells; values by name that are there before, see `Captures`.
            namespace: the globals.
            home: its place in a guest module; a class that stands there now is used instead.
        """
        if (found := self._found_at(home, type)) is not None:
            return found
        for each in given:
            self.fill_namespace(*each)
        parameters, variables, cells, direct, *copied = captured
        values = {**direct, **self._thaw(*copied)} if copied else direct
        arguments = tuple([unwrapped(values.get(each)) for each in parameters])
        made = self._rebuilt(source, name, "class", namespace, arguments)
        if is_function(made):
            by_name = dict(zip(variables, map(_require_cell, cells), strict=True))
            for variable in by_name.keys() & values.keys():
                by_name[variable].cell_contents = unwrapped(values[variable])
            made = self._run(made, name, by_name)
        if type(made) is NotKept:
            return made
        if not (is_class(made) and is_guests(self._guest, made)):
            raise StateCorrupt("a stored class is something else")
        self._dressed[id(made)] = made
        return Handle(made)

    def _run(self, make: types.FunctionType, name: str, cells: dict[str, types.CellType]) -> Any:
        """Call a guest function that makes a class, over cells that others may share."""
        own = zip(make.__code__.co_freevars, make.__closure__ or (), strict=True)
        closure: Any = tuple([cells.get(variable, cell) for variable, cell in own])
        over = types.FunctionType(make.__code__, make.__globals__, make.__name__, None, closure or None)
        namespace = Namespace()
        namespace.globals = make.__globals__
        return self._rebuilt(f"{MADE} = {GIVEN}()\n", name, "class", namespace, over)

    def attribute(self, cls: Any, name: str) -> Any:
        """Return a class or function from the namespace of a guest class."""
        cls = unwrapped(cls)
        if type(cls) is NotKept:
            return cls
        if not (is_class(cls) and is_guests(self._guest, cls)):
            raise StateCorrupt("a stored function is of something that is not a class")
        found = plain_function(vars(cls).get(name))
        if not (is_class(found) or is_function(found)):
            return missing(name, "function", f"the class {cls.__name__} has none of that name")
        return Handle(found)

    def fill_namespace(self, namespace: Namespace, direct: dict[str, Any], *copied: Any) -> None:
        """Put captured values into the namespace of rebuilt code."""
        if type(namespace) is not Namespace:
            raise StateCorrupt("a stored value fills something that is not a namespace")
        values = {**direct, **self._thaw(*copied)} if copied else direct
        spend(PLACE * len(values))
        namespace.globals.update({sys.intern(exact(name)): unwrapped(each) for name, each in values.items()})

    def fillings(self) -> list[Any]:
        """Make the list of the contents of namespaces."""
        return []

    def _rebuilt(self, source: str, name: str, kind: str, namespace: Namespace, given: Any) -> Any:
        if self._guest is None:
            return missing(name, kind, "no guest code can be loaded here")
        budget = current()
        budget.spend(CALL + 4 * len(source))
        namespace.globals[GIVEN] = given
        try:
            with budget.stopped():
                return self._guest.rebuild(source, MADE, namespace.globals)
        except Exception as error:  # noqa: BLE001 - code that cannot be loaded is lost, and only it
            return missing(name, kind, f"{type(error).__name__}: {error}")
        finally:
            for each in (MADE, GIVEN):
                namespace.globals.pop(each, None)

    def fill_class(self, handle: Any, state: tuple[Any, ...]) -> None:
        """Set the attributes of a class, and the contents of the cells that it captured."""
        qualified, attributes, cells, *kept = state
        for cell, content in cells:  # of a class that is lost, too: functions share them
            _require_cell(cell).cell_contents = unwrapped(content)
        if type(handle) is NotKept or self._is_at_home(handle):
            return
        cls = self._own(handle, type)
        self._rename(cls, exact(qualified))
        for name, each in attributes.items():
            value = unwrapped(each)
            if not may_store(self._guest, cls, exact(name), value):
                raise StateCorrupt(f"a stored class has an attribute {name} that may not be set")
            if not _is_there(cls, name, value):
                self._store(cls, name, value)
        if kept and issubclass(cls, enum.Enum):
            reason = members.restore(cls, kept[0])
            if reason:
                handle.target = missing(name_of(cls), "class", reason)

    def _store(self, cls: type, name: str, value: Any) -> None:
        """Set an attribute of a guest class, which counts as changed since its statement then.

        The statements of subclasses run afterwards and may add to a container again, as classes that register
        themselves do. So until then it has a copy.
        """
        assert self._guest is not None
        copied = type(value) in {list, dict, set}
        self._guest.store(cls, name, value.copy() if copied else value)
        if copied:
            self._later.append(functools.partial(self._guest.store, cls, name, value))

    def _rename(self, cls: type, qualified: str) -> None:
        """Restore the qualified names of a class and of the code that its statement made."""
        before = f"{qualname_of(cls)}."
        # The same object as its name where it is the same text, so that it encodes to the same bytes again.
        type.__setattr__(cls, "__qualname__", sys.intern(qualified))
        for function in functions_of(cls):
            is_own = self._guest is not None and self._guest.is_guest_function(function)
            if is_own and function.__qualname__.startswith(before):
                function.__qualname__ = f"{qualified}.{function.__qualname__.removeprefix(before)}"
        for inner in list(vars(cls).values()):
            if is_class(inner) and is_guests(self._guest, inner):
                name = qualname_of(inner)
                if name.startswith(before):
                    self._rename(inner, f"{qualified}.{name.removeprefix(before)}")


for _name, _method in vars(InstanceBuilder).items():
    if is_function(_method):  # streams name them as methods of `Builder`, where they stood first
        _method.__module__, _method.__qualname__ = Builder.__module__, f"{Builder.__qualname__}.{_name}"


MADE, GIVEN, RUN = "made_here", "given_here", "run_here"
"""Names in the program of a stored function or class: of the result, of the captured values, and of the
function that makes a class."""


def may_store(guest: GuestCode | None, cls: type, name: str, value: Any) -> bool:
    """Return whether an attribute of a guest class is kept beside its statement.

    Under names with two underscores around them only methods are: the others belong to the interpreter.
    """
    if guest is None or not guest.may_store(cls, name):
        return False
    is_special = name.startswith("__") and name.endswith("__")
    return not is_special or (is_function(value) and guest.is_guest_function(value))


def _is_there(cls: type, name: str, value: Any) -> bool:
    """Return whether a class has a constant already, from its statement."""
    now = namespace_of(cls).get(name)
    return type(value) in _CONSTANTS and type(now) is type(value) and bool(now == value)


_CONSTANTS = frozenset({type(None), bool, int, str, bytes})


def _require_cell(cell: Any) -> types.CellType:
    if type(cell) is not types.CellType:
        raise StateCorrupt("a stored value fills something that is not a cell")
    return cell


def _dress(function: types.FunctionType, state: dict[str, Any]) -> None:
    """Set the defaults, names and attributes of a function."""
    defaults, keywords = state["defaults"], state["keywords"]
    name, qualified, doc = state["names"]
    function.__defaults__ = None if defaults is None else tuple([unwrapped(each) for each in defaults])
    function.__kwdefaults__ = (
        None
        if keywords is None
        else {sys.intern(exact(name)): unwrapped(each) for name, each in keywords.items()}
    )
    function.__name__, function.__qualname__ = sys.intern(exact(name)), sys.intern(exact(qualified))
    function.__doc__ = None if doc is None else exact(doc)
    texts = state.get("annotations", ())  # earlier streams have none
    function.__annotations__ = {exact(name): exact(text) for name, text in texts}
    function.__dict__.update({exact(name): unwrapped(each) for name, each in state["attributes"].items()})


def _mro(owner: Any) -> tuple[type, ...]:
    return mro_of(owner if is_class(owner) else type(owner))
