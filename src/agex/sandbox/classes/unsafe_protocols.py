"""Protocols that guest objects may not speak: addresses of memory, schemas and futures.

* numpy asks any object for ``__array_interface__`` and believes the address: a pointer to anywhere. Libraries
  of tables ask for ``__dataframe__``, whose buffers have an address.
* pydantic asks for ``__get_pydantic_core_schema__`` and reads private attributes of other objects by it. It
  hands its own to ``__get_pydantic_json_schema__``.
* A task asks each awaited object whether it is a future, and hands futures its context.

So guest objects never have these attributes, whether set on the class, in the dict of an instance or answered
by ``__getattr__``. This holds while the class is made, too: guest code runs during that, and ``copy`` fills
the dict of an object.
"""

from __future__ import annotations

import functools
import types
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from agex._interpreter.type_slots import mro_of, name_of, namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes import hook_guards, stand_ins
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.runtime import provenance

__all__ = [
    "NAMES", "NOWHERE", "First", "SimpleNamespace", "failed", "first", "guarding", "is_kept", "is_namespace",
    "keep_from", "kept_from",
]  # fmt: skip

NAMES = (*hook_guards.RAW_MEMORY, hook_guards.FUTURE)
SCHEMAS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")
TABLE = "__dataframe__"


class _Nowhere:
    """A data descriptor, which comes before the dict of an instance."""

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise AttributeError("no address of memory, schema or future is available here")

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise AttributeError("no address of memory, schema or future is available here")


NOWHERE = _Nowhere()


class First(_Nowhere):
    """Stands first in the namespace of a class and registers it, before guest members are told of it.

    These may keep the class and fail, and then it would never be registered.
    """

    def __init__(self, note: Callable[[type], None]) -> None:
        self._note = note
        self.failed: BaseException | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        try:
            self._note(owner)
        except BaseException as error:
            self.failed = error
            raise


def is_kept(value: object) -> bool:
    """Return whether a member of a class is there to refuse a protocol."""
    return value is NOWHERE or type(value) is First


def kept_from(bases: Iterable[Any], note: Callable[[type], None]) -> dict[str, Any]:
    """Return the first members of a namespace over *bases*; *note* is called with the class."""
    parts = [part for base in bases if isinstance(base, type) for part in mro_of(base)]
    first = {NAMES[0]: First(note)}  # see `keep_from`, which puts another in its place
    if is_one_of(type, parts):
        return first
    protocol: Any = typing.Protocol
    if is_one_of(protocol, parts):
        _leave_out_of_protocols()
    # Models of pydantic have these methods, and a private name is a field there.
    names = hook_guards.RAW_MEMORY if _is_said(SCHEMAS[0], parts) else (*NAMES, *SCHEMAS)
    return dict.fromkeys(names if _is_said(TABLE, parts) else (*names, TABLE), NOWHERE) | first


def failed(error: RuntimeError, kept: dict[str, Any]) -> BaseException | None:
    """Return the error of a registration, which CPython 3.11 wraps in another."""
    noting = kept[NAMES[0]]
    found, noting.failed = noting.failed, None
    return found if type(error) is RuntimeError and error.__cause__ is found else None


def first(namespace: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a namespace in which *kept* comes first and nothing overrides it."""
    return {**kept, **dict(dict.items(namespace)), **kept}


def _is_said(name: str, parts: Iterable[type]) -> bool:
    return any(name in namespace_of(part) for part in parts)


def guarding(
    metaclass: Any,
    bases: Iterable[Any],
    namespace: dict[str, Any],
    shown: hook_guards.Shown,
    note: Callable[[type], None],
    *,
    copies: bool,
) -> Any:
    """Guard the hooks of a namespace, and return a function that makes a class without these protocols.

    Args:
        metaclass: called with the namespace.
        bases: of the class.
        namespace: checked.
        shown: returns a value as guest code may hold it.
        note: called with the class before any guest code is.
        copies: whether the class may be made of a copy; the namespace of a library must stay itself.
    """
    for hook, guarded in hook_guards.guard(namespace, shown).items():
        dict.__setitem__(namespace, hook, guarded)
    is_call = not isinstance(metaclass, functools.partial)
    maker = metaclass if is_call else metaclass.args[0]
    is_made = not is_call and type(metaclass.func) is types.BuiltinFunctionType  # by its __new__
    kinds = [type(base) for base in bases if isinstance(base, type)]
    others = [kind for kind in kinds if not is_one_of(kind, mro_of(maker))] if is_made else [maker, *kinds]
    # Guest code that gets the namespace first calls a metaclass with it, where it is guarded.
    if not isinstance(maker, type) or _has(others, "__new__") or (is_call and _is_called_otherwise(maker)):
        return metaclass
    kept = kept_from(bases, note)
    if not copies:
        all_in_order = first(namespace, kept)
        dict.clear(namespace)
        dict.update(namespace, all_in_order)
        return metaclass
    tells = not is_made and _has(others, "__init__")

    def make(name: Any, bases: Any, namespace: dict[str, Any], /, **kwargs: Any) -> Any:
        kind: Any = OrderedDict if type(namespace) is OrderedDict else dict  # which has an order of its own
        given = first(dict(kind.items(namespace)), kept)
        try:
            if not tells:
                return metaclass(name, bases, given, **kwargs)
            made: Any = maker.__new__(maker, name, bases, given, **kwargs)
        except RuntimeError as error:
            if (meant := failed(error, kept)) is not None:
                raise meant from None
            raise
        made_by: Any = type(made)
        if issubclass(made_by, maker):
            made_by.__init__(made, name, bases, namespace, **kwargs)  # it gets the namespace as written
        return made

    return make


def _has(makers: Iterable[type], hook: str) -> bool:
    """Return whether guest code defines a hook of one of the metaclasses."""
    parts = (part for maker in makers for part in mro_of(maker))
    return any(provenance.is_guest_class(part) and hook in namespace_of(part) for part in parts)


def _is_called_otherwise(maker: type) -> bool:
    """Return whether a metaclass has a call of its own, which comes to this module again."""
    return any("__call__" in namespace_of(part) for part in mro_of(type(maker)) if part is not type)


def keep_from(class_: type) -> None:
    """Make the instances of a class refuse these protocols."""
    if issubclass(class_, type):
        if type(namespace_of(class_).get(NAMES[0])) is First:
            type.__delattr__(class_, NAMES[0])  # on a metaclass it would stand before the classes' own
        return
    metaclass: type = type(class_)
    if metaclass is not type and any(
        name in namespace_of(part) for part in mro_of(metaclass) for name in NAMES
    ):
        raise SandboxTypeError(
            f"the metaclass of class {name_of(class_)} cannot also be a subclass of an ordinary class; "
            "make it two classes"
        )
    protocol: Any = typing.Protocol
    if is_one_of(protocol, mro_of(class_)):
        _leave_out_of_protocols()
    for name in NAMES:
        type.__setattr__(class_, name, NOWHERE)
    # Models of pydantic have methods for the first ones, tables of pandas for the last.
    for name in (*SCHEMAS, TABLE):
        if not _is_said(name, mro_of(class_)):
            type.__setattr__(class_, name, NOWHERE)


def _leave_out_of_protocols() -> None:
    """Add the names to those that ``typing`` takes for no member of a protocol."""
    known: Any = typing.EXCLUDED_ATTRIBUTES  # type: ignore[attr-defined]  # a list or a frozenset, by version
    if NAMES[0] not in known:
        typing.EXCLUDED_ATTRIBUTES = type(known)([*known, *NAMES, *SCHEMAS, TABLE])  # type: ignore[attr-defined]


class SimpleNamespace(types.SimpleNamespace):
    """``types.SimpleNamespace``, whose attributes may have any name."""

    __array_interface__ = NOWHERE
    __array_struct__ = NOWHERE
    _asyncio_future_blocking = NOWHERE
    __get_pydantic_core_schema__ = NOWHERE
    __get_pydantic_json_schema__ = NOWHERE
    __dataframe__ = NOWHERE

    def __repr__(self) -> str:
        return f"namespace{super().__repr__().removeprefix(type(self).__name__)}"


def is_namespace(value: object) -> bool:
    """Return whether a value is a namespace that guest code made; those of the host are of the real class."""
    return type(value) is SimpleNamespace


SimpleNamespace.__module__ = "types"
stand_ins.stands_for(types.SimpleNamespace, SimpleNamespace)
