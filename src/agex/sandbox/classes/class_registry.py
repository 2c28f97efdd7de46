"""The register of the classes that guest code makes.

A class statement in guest code builds a real class, of one of two kinds:

* *pure*: all its bases are built in or guest classes. Guest code may do with its instances what it likes.
* *mixed*: it inherits from a host class. Its instances hold private state of the host, so guest code may
  neither read that nor hook how it is read and written.

A class that a metaclass makes is registered as well, see `agex.sandbox.classes.guest_type`.
"""

from __future__ import annotations

import abc
import enum
import functools
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from agex._interpreter.type_slots import bases_of, mro_of, name_of, namespace_of, worked_out_mro
from agex.errors import SandboxTypeError
from agex.sandbox.classes import (
    generic_classes,
    hook_guards,
    host_classes,
    identity,
    stand_ins,
    unsafe_protocols,
)
from agex.sandbox.classes import namespace as members
from agex.sandbox.classes.guest_type import PLAIN, StandInMeta, as_shown, exact_bases, real_metaclass
from agex.sandbox.classes.stand_ins import LazyMeta
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.provenance import Statement

__all__ = ["ClassRegistry", "LibraryRules"]

_HOOKS = frozenset(
    {
        "__class__", "__delattr__", "__getattribute__", "__getstate__", "__init_subclass__", "__setattr__",
        "__setstate__",
    }
)  # fmt: skip
"""Names that a class over a host class may not define: they see private state of the host, or replace it."""

_IDENTITY = frozenset({"__hash__", "__eq__"})
"""Names that its metaclass may not define: guarded code looks for guest classes in a set."""

T = TypeVar("T")


class LibraryRules(Protocol):
    """The rules of libraries for classes: `agex.sandbox.policy.library_classes`."""

    def private_names(self, class_: type, /) -> frozenset[str]:
        """Return every private name that the code of a host class uses, and that compiled code follows."""
        ...

    def is_settings(self, class_: type, name: str, /) -> bool:
        """Return whether a member holds the settings that a library read when the class was made."""
        ...

    def check_class_statement(
        self, namespace: dict[str, Any], class_name: Any, bases: Iterable[Any], said: dict[str, Any], /
    ) -> Any:
        """Refuse a guest class that a library would let reach further."""


class ClassRegistry:
    """The classes of one session."""

    def __init__(
        self,
        restricts: Callable[[type], bool],
        leaves_out: Callable[[type, str], bool],
        libraries: LibraryRules,
    ) -> None:
        self._restricts = restricts  # whether a registration restricts a host class
        self._leaves_out = leaves_out  # whether it excludes a member
        self._libraries = libraries
        self.module_name = str(b"__main__", "ascii")
        """``__name__`` in guest code: a string equal to others and identical to none. A class body stores
        this very object as ``__module__``. No host class can have it, so it marks guest classes."""
        self.builtins_name = str(b"builtins", "ascii")
        """Likewise where `exec` runs code in a namespace without a ``__name__``."""
        self._marks: dict[str, str] = {}
        self.own: set[type] = set()  # read by compiled code, under the name own!
        self.trusted: set[type] = set(PLAIN)  # likewise, in strict mode, under the name ok!
        self.builtins: dict[str, Any] = {}
        """The builtins of guest code."""
        self._pure: dict[int, type] = {}
        self._mixed: dict[int, type] = {}
        self._statements: dict[int, Statement] = {}

    def made(self) -> list[type]:
        """Return the guest classes."""
        return [*self._pure.values(), *self._mixed.values()]

    # By identity: a guest metaclass could define __hash__ and __eq__.
    def is_pure(self, class_: type) -> bool:
        """Return whether a class is a guest class without any host class among its bases."""
        return self._known(class_) is self._pure

    def is_mixed(self, class_: type) -> bool:
        """Return whether a class is a guest class over a host class."""
        return self._known(class_) is self._mixed

    def _known(self, class_: type) -> dict[int, type] | None:
        """Return the register that holds a class; a guest class under construction is registered first."""
        for register in (self._pure, self._mixed):
            if register.get(id(class_)) is class_:
                return register
        if not self._is_marked(class_) or worked_out_mro(class_) is None:
            return None
        self.adopt(class_)
        return self._known(class_)

    def is_guest(self, class_: type) -> bool:
        """Return whether a class is a guest class."""
        return self._known(class_) is not None

    def build(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Make the ``__build_class__`` of a session."""

        def build_class(function: Any, name: str, /, *bases: Any, **kwargs: Any) -> Any:
            statement = Statement(function, bases, dict(kwargs))
            if not bases and not kwargs:
                made = real(function, name, metaclass=self._plain)
            else:
                made = self._build_checked(real, function, name, bases, kwargs)
            if isinstance(made, type) and self.is_guest(made):
                self._statements[id(made)] = statement
            return made

        build_class.__name__ = build_class.__qualname__ = "__build_class__"
        build_class.__module__ = "builtins"
        return build_class

    def _plain(self, name: str, bases: tuple[()], namespace: dict[str, Any]) -> type:
        """Make a class without bases, of a namespace that the interpreter made."""
        namespace = dict(namespace)  # what locals() gave in its body may be written to meanwhile
        members.check(namespace, name)
        namespace |= hook_guards.guard(namespace, as_shown)
        kept = unsafe_protocols.kept_from((), self.note)
        try:
            made = type(name, bases, unsafe_protocols.first(namespace, kept))
        except RuntimeError as error:
            if (meant := unsafe_protocols.failed(error, kept)) is not None:
                raise meant from None
            raise
        self.adopt(made)
        return made

    def makes_new(self, *makers: Any) -> bool:
        """Return whether calling these metaclasses makes a new class; a guest metaclass may return any class.

        A class that a guest metaclass returns is known by its mark: the name of its module, which the
        interpreter puts into the namespace of a new class, and which here is an object of this session alone.
        """
        return all(isinstance(maker, type) and not any(map(self.is_guest, mro_of(maker))) for maker in makers)

    def _is_marked(self, class_: type) -> bool:
        return self.is_mark(namespace_of(class_).get("__module__"))

    def is_mark(self, module: object) -> bool:
        """Return whether the ``__module__`` of a class marks a guest class."""
        is_plain = module is self.module_name or module is self.builtins_name
        return is_plain or (type(module) is str and self._marks.get(module) is module)

    def mark(self, name: str) -> str:
        """Return the ``__name__`` of a guest module: identical to no other string, as `module_name` is."""
        if name not in self._marks:
            shown = name if len(name) > 1 else f"workspace.{name}"  # of one character there is one object
            self._marks[shown] = self._marks[name] = str(shown.encode(), "utf-8")
        return self._marks[name]

    def statement_of(self, class_: type) -> Statement | None:
        """Return the class statement that made a class; None where none did."""
        return self._statements.get(id(class_)) if self.is_guest(class_) else None

    def dressed(self, made: T) -> T:
        """Note that the decorators of a class statement are done; compiled code calls this last."""
        statement = self.statement_of(made) if isinstance(made, type) else None
        if statement is not None:
            statement.dressed |= statement.altered
            statement.altered = set()
        return made

    def alter(self, class_: type, name: str) -> None:
        """Note that an attribute of a guest class is set or deleted."""
        statement = self.statement_of(class_)
        if statement is not None:
            statement.altered.add(name)

    def succeed(self, class_: type, made: type) -> None:
        """Register a class that a decorator made from a guest class, with the statement of that class."""
        self.adopt(made)
        statement = self._statements.get(id(class_))
        if statement is not None:
            self._statements[id(made)] = statement

    def _build_checked(
        self, real: Any, function: Any, name: str, bases: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Build a class over host classes, or a metaclass: it is checked before it exists."""
        self.reconcile(kwargs.get("metaclass"), bases, name)
        resolved = types.resolve_bases(bases)
        metaclass: Any = real_metaclass(kwargs.pop("metaclass", type(resolved[0]) if resolved else type))
        if isinstance(metaclass, type):
            for each in map(type, resolved):  # the most derived one makes the class
                metaclass = each if issubclass(each, metaclass) else metaclass
            if not all(map(self._is_harmless, resolved)):
                self._check_metaclass(metaclass, name)

        def make(name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kw: Any) -> Any:
            makes_new = self.makes_new(metaclass, *map(type, bases))
            return self.create(metaclass, makes_new, name, bases, namespace, **kw)

        def prepare(*args: Any, **kw: Any) -> Any:
            members.check_prepared(function.__code__, metaclass, name)
            namespace = getattr(metaclass, "__prepare__", type.__prepare__)(*args, **kw)
            if not hasattr(type(namespace), "__getitem__"):  # the interpreter would name our function
                shown = metaclass.__name__ if isinstance(metaclass, type) else "<metaclass>"
                kind = name_of(type(namespace))
                raise TypeError(f"{shown}.__prepare__() must return a mapping, not {kind}")
            return namespace

        make.__prepare__ = prepare  # type: ignore[attr-defined]
        return real(function, name, *bases, metaclass=make, **kwargs)

    def reconcile(self, metaclass: Any, bases: Any, name: Any = "") -> None:
        """Check the metaclasses of a class to be made, and derive guest metaclasses from `StandInMeta`.

        ``class M(type, metaclass=MM)``: ``type`` in guest code is an instance of `StandInMeta`, so the
        metaclass of its subclasses must be a subclass of that. It becomes one when it is first needed: the
        base makes each call of such a class slower.
        """
        bases = exact_bases(bases)
        is_meta = any(issubclass(type(base), StandInMeta) for base in bases)
        is_mixed = not all(map(self._is_harmless, bases))
        if not (is_meta or is_mixed):
            return
        for each in (metaclass, *map(type, bases)):
            if isinstance(each, type) and is_mixed:
                self._check_metaclass(each, name)
            if isinstance(each, type) and is_meta and self.is_guest(each):
                self._check_order(each)
                if not issubclass(each, StandInMeta):
                    each.__bases__ = (*bases_of(each), StandInMeta)

    def _check_order(self, metaclass: type) -> None:
        """Refuse a metaclass that orders the bases of metaclasses: our own classes are among them."""
        while self.is_guest(metaclass):
            for part in mro_of(metaclass):
                if self.is_guest(part) and "mro" in namespace_of(part):
                    raise SandboxTypeError(
                        f"{metaclass.__name__} defines mro() and cannot be the metaclass of a metaclass; "
                        "define it on a metaclass of ordinary classes"
                    )
            metaclass = type(metaclass)

    def create(
        self, metaclass: Any, makes_new: bool, name: Any, bases: Any, namespace: Any, /, **kwargs: Any
    ) -> Any:
        """Check a namespace, call a metaclass with it and register the class."""
        bases = exact_bases(bases) if isinstance(bases, tuple) else bases  # as the interpreter sees them
        is_partial = isinstance(metaclass, functools.partial)
        made_by, makers = (metaclass.func, metaclass.args) if is_partial else (metaclass, (metaclass,))
        makers = (*makers, *map(type, exact_bases(bases)))
        is_read = any(map(self._reads_namespace, makers))
        if is_read:  # any mapping would do
            namespace = members.of_its_own(namespace, name, makers)
        if isinstance(namespace, dict):
            if not makes_new and not self.is_mark(dict.get(namespace, "__module__", self.module_name)):
                raise SandboxTypeError(
                    f"class {name} cannot say its __module__ where your metaclass makes it; leave it out"
                )
            is_final = makes_new and not is_read and not isinstance(made_by, types.FunctionType)
            if is_final or not dict.__contains__(namespace, "__module__"):  # otherwise it may be of any type
                namespace = members.settled(namespace, self.module_name)
            is_unseen = isinstance(metaclass, type) and self.makes_new(*makers)
            members.check_given(namespace, name, is_unseen=is_unseen)
            resolved = types.resolve_bases(exact_bases(bases))
            members.check_over(
                namespace,
                name,
                resolved,
                makers,
                kwargs,
                check_statement=self._libraries.check_class_statement,
            )
            self._check_bases(name, resolved, namespace)
            note = self.note
            metaclass = unsafe_protocols.guarding(
                metaclass, resolved, namespace, as_shown, note, copies=not is_read
            )
        made = metaclass(name, bases, namespace, **kwargs)
        if isinstance(made, type) and (makes_new or self._is_marked(made)):
            self.adopt(made)
        return made

    def _reads_namespace(self, maker: Any) -> bool:
        """Return whether Python code of a library reads the namespace when it makes a class."""
        parts = mro_of(maker) if isinstance(maker, type) else ()
        made = (each for each in parts if "__new__" in namespace_of(each) and not self.is_guest(each))
        return any(each is not abc.ABCMeta and not host_classes.is_static(each) for each in made)

    def _check_bases(self, name: Any, bases: tuple[Any, ...], namespace: dict[str, Any]) -> None:
        classes = [base for base in bases if isinstance(base, type)]
        for base in classes:
            closed = _closed_part(base) or (base if self._leaves_out(base, "__init_subclass__") else None)
            if closed is not None:
                if closed is _SPECIAL:
                    raise SandboxTypeError("Cannot subclass special typing classes")
                raise SandboxTypeError(
                    f"class {name} cannot inherit from {closed.__name__}; keep one in an attribute instead"
                )
        if any(issubclass(base, type) for base in classes):
            self._watch_order(name, classes, namespace)
            for said in _SAID_OF_CLASSES:
                if not isinstance(dict.get(namespace, said), str | None):
                    raise SandboxTypeError(f"metaclass {name} cannot define {said}: everyone asks for it")
        if any(issubclass(type(base), enum.EnumType) for base in classes):
            members.check_enumeration(namespace, name, classes)
        if not all(map(self._is_harmless, bases)):
            self._check_mixed(name, bases, namespace)

    def _watch_order(self, name: Any, bases: list[type], namespace: dict[str, Any]) -> None:
        """Let a guest metaclass order bases and make classes, but return no host class in their place."""
        plain = [part for base in bases for part in mro_of(base) if not issubclass(part, type)]
        for hook, watched in self._watches:
            said = dict.get(namespace, hook)
            said = said.__func__ if type(said) is staticmethod else said
            is_inherited = any(self.is_guest(part) and hook in namespace_of(part) for part in plain)
            if is_inherited or (said is not None and type(said) is not types.FunctionType):
                raise SandboxTypeError(
                    f"metaclass {name} needs {hook}() to be a method of its own; define it in its class body"
                )
            if said is not None:
                dict.__setitem__(namespace, hook, watched(said))

    @property
    def _watches(self) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
        compared = functools.partial(hook_guards.compared, shown=as_shown)
        new = members.making(self.is_guest)
        return ("mro", self._watched), ("__new__", new), ("__eq__", compared), ("__ne__", compared)

    def _watched(self, order: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
        def mro(cls: type) -> list[Any]:
            found = list(order(cls))
            for each in found:
                if each is not cls and not (isinstance(each, type) and self._is_harmless(each)):
                    raise SandboxTypeError("mro() can order classes of your own only, not those of the host")
            return found

        return mro

    def adopt(self, class_: type) -> None:
        """Register a guest class."""
        unsafe_protocols.keep_from(class_)
        self.note(class_)
        if self.is_mixed(class_):
            self._check_metaclass(type(class_), name_of(class_))

    def note(self, class_: type) -> None:
        """Register a class while it is made, before guest code is told of it."""
        generic_classes.keep_from(class_)
        provenance.note_class(class_, self)
        if all(map(self._is_harmless, mro_of(class_)[1:])):
            self._pure[id(class_)] = class_
            if not identity.is_told_by(class_):
                self._tell_by_identity()
            elif not issubclass(class_, type):  # an instance of a metaclass may be a class over a host class
                self.own.add(class_)
                self.trusted.add(class_)
        else:
            self._mixed[id(class_)] = class_

    def reconsider(self) -> None:
        """Sort the classes again after a registration, which may restrict one of their bases."""
        for class_ in list(self._pure.values()):
            if not all(map(self._is_harmless, mro_of(class_)[1:])):
                if identity.is_told_by(class_):
                    self.own.discard(class_)
                    self.trusted.discard(class_)
                self._mixed[id(class_)] = class_
                del self._pure[id(class_)]  # last: if this is interrupted before, the class is sorted again

    def _tell_by_identity(self) -> None:
        """Let compiled code look for classes by identity: a set would call their ``__hash__``."""
        self.builtins["own!"] = identity.ByIdentity(self._pure)
        self.builtins["ok!"] = identity.ByIdentity(self._pure, PLAIN)

    def _check_metaclass(self, metaclass: type, name: str) -> None:
        """Refuse a guest metaclass whose hooks would see private state of a host class."""
        for part in mro_of(metaclass):
            if self.is_guest(part):
                for hook in (_HOOKS | _IDENTITY).intersection(namespace_of(part)):
                    raise SandboxTypeError(
                        f"class {name} cannot have a metaclass that defines {hook}: it inherits from a class "
                        "of the host; keep the host object in an attribute instead"
                    )

    def _is_harmless(self, base: Any) -> bool:
        if not isinstance(base, type):
            return type(base).__module__ in host_classes.STANDARD_BASES or isinstance(base, typing.NewType)
        return self.is_pure(base) or all(map(self._holds_no_secrets, mro_of(base)))

    def _holds_no_secrets(self, part: type) -> bool:
        if self.is_guest(part):
            return self.is_pure(part)
        if isinstance(part, StandInMeta) or issubclass(part, StandInMeta):
            return True
        known = stand_ins.is_ours(part) or host_classes.is_standard(part, host_classes.STANDARD_BASES)
        return known and not self._restricts(part)

    def _check_mixed(self, name: Any, bases: tuple[Any, ...], namespace: dict[str, Any]) -> None:
        hosts = [base for base in bases if isinstance(base, type)]
        private = self.host_names(*hosts)
        guest_parts = [dict(dict.items(namespace))]
        for base in bases:
            if isinstance(base, type):
                guest_parts += [dict(namespace_of(part)) for part in mro_of(base) if self.is_guest(part)]
        for part in guest_parts:
            for member, value in part.items():
                is_told = not host_classes.is_unaware(value) and self._hides(hosts, member)
                if type(value) is not members.OF_ABSTRACT and (
                    member in _HOOKS or member in private or is_told
                ):
                    raise SandboxTypeError(
                        f"class {name} cannot define {member}: it inherits from a class of the host; "
                        "keep the host object in an attribute instead"
                    )
            fields = part.get("__dataclass_fields__", {})
            if not members.are_fields(fields) or any(
                each in private or self._hides(hosts, each) for each in fields
            ):
                raise SandboxTypeError(f"class {name} needs the fields that @dataclass gives it")
            slots = part.get("__slots__", ())
            named = (slots,) if isinstance(slots, str) else slots
            if type(named) not in {tuple, list} or not all(type(slot) is str for slot in named):
                raise SandboxTypeError(f"class {name} needs __slots__ that are a tuple of plain strings")
            if private.intersection(named):
                raise SandboxTypeError(f"class {name} cannot use slots of the host class it inherits from")

    def host_names(self, *class_: type) -> frozenset[str]:
        """Return the private names of all host classes among the classes and their bases."""
        names: set[str] = set()
        for each in class_:
            for base in mro_of(each):
                if not self.is_guest(base):
                    names |= self._libraries.private_names(base)
        return frozenset(names)

    def may_store_on_class(self, class_: type, name: str) -> bool:
        """Return whether guest code may set an attribute of a guest class."""
        if not self.is_guest(class_):
            return False
        family = self._family(class_)
        is_watched = name in dict(self._watches) and any(issubclass(each, type) for each in family)
        if is_watched or members.is_kept(class_, name):  # see `_watch_order`
            return False
        if issubclass(class_, type) and name in _HOOKS | _IDENTITY:
            if self._mixed:  # it could be the metaclass of one
                return False
            self._tell_by_identity()
        if not any(map(self.is_mixed, family)):
            return True
        is_hidden = self._hides(family, name) and not self._libraries.is_settings(class_, name)
        return name not in _HOOKS and name not in self.host_names(*family) and not is_hidden

    def _hides(self, classes: list[type], name: str) -> bool:
        """Return whether instances of these classes have an excluded member of that name."""
        return any(self._leaves_out(each, name) for each in classes)

    def _family(self, class_: type) -> list[type]:
        family = [class_]
        child: type
        for child in type.__subclasses__(class_):
            family += self._family(child)
        return family


_SAID_OF_CLASSES = ("__name__", "__qualname__", "__module__", "__doc__")
"""Names that host code reads of any class, for example for the text of an error."""

_SPECIAL: Any = typing._BaseGenericAlias  # type: ignore[attr-defined]
_CLOSED = (super, types.GenericAlias, types.ModuleType, _SPECIAL)
"""Classes whose instances answer for another object, or from their dict: guest code would be asked."""


def _closed_part(class_: type) -> type | None:
    for part in mro_of(class_):
        is_other = stand_ins.shown(part) is not part  # guest code has another class of that name
        if identity.is_one_of(part, _CLOSED) or (is_other and not isinstance(part, LazyMeta)):
            return part
    return None
