"""Facts about host classes, read without a call of their code."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from agex._interpreter.type_slots import is_static, module_of, mro_of, namespace_of, qualname_of
from agex.sandbox.rules import names

__all__ = [
    "STANDARD_BASES",
    "answers",
    "has",
    "held",
    "is_dispatcher",
    "is_method",
    "is_standard",
    "is_static",
    "is_unaware",
    "private_names",
    "public_names",
]

STANDARD_BASES = frozenset(
    {
        "abc", "argparse", "ast", "collections", "collections.abc", "contextlib", "csv", "dataclasses",
        "decimal", "enum", "fractions", "functools", "html.parser", "io", "json.decoder", "json.encoder",
        "numbers", "operator", "queue", "random", "re", "statistics", "string", "textwrap", "types", "typing",
        "typing_extensions", "weakref", "datetime", "_collections_abc", "asyncio", "uuid", "graphlib",
    }
)  # fmt: skip
"""Modules whose classes hold no state of the host: guest code may derive from them freely."""


def is_standard(class_: type, modules: frozenset[str]) -> bool:
    """Return whether a class is built in, or one of *modules* holds it under its name."""
    home: object = module_of(class_)
    if type(home) is not str:
        return False
    if is_static(class_):
        return home.partition(".")[0] in _OF_THE_INTERPRETER
    found: Any = sys.modules.get(home) if home in modules else None
    for name in qualname_of(class_).split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found is class_


_OF_THE_INTERPRETER = sys.stdlib_module_names | {"builtins"}


@lru_cache(maxsize=1024)
def private_names(class_: type) -> frozenset[str]:
    """Return every private name that the code of *class_* or of its bases uses.

    Names in its namespace, its slots and its annotations, and all names that its functions
    read or write: an attribute set by ``__init__`` shows nowhere else.
    """
    return frozenset(filter(names.is_private, _names(class_)))


@lru_cache(maxsize=1024)
def public_names(class_: type) -> frozenset[str]:
    """Return the public members of a class: its attributes, and those that its code assigns."""
    return frozenset(n for n in _names(class_) if not n.startswith("_")) | _attributes(class_)


def held(value: object) -> frozenset[str]:
    """Return the names in the dict of an object, without a call of its code."""
    try:
        return frozenset(filter(_is_text, object.__getattribute__(value, "__dict__")))
    except AttributeError:  # it has slots
        return frozenset()


def _is_text(key: object) -> bool:
    return type(key) is str


def _attributes(class_: type) -> frozenset[str]:
    return frozenset(n for base in mro_of(class_) for n in vars(base) if not n.startswith("_"))


def _names(class_: type) -> Iterator[str]:
    for base in mro_of(class_):
        if is_static(base):
            continue
        yield from vars(base)
        slots = vars(base).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
        yield from vars(base).get("__annotations__", ())
        yield from vars(base).get("__private_attributes__", ())  # pydantic removes them from the class
        for member in vars(base).values():
            for function in _functions(member):
                yield from _code_names(function.__code__)


def _functions(member: object) -> Iterator[types.FunctionType]:
    """Yield the functions in a member of a class, behind decorators and in closures too."""
    waiting, seen = [member], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            waiting += _behind(part)
            if isinstance(part, types.FunctionType):
                yield part


def _behind(part: Any) -> Iterable[Any]:
    if isinstance(part, property):
        return part.fget, part.fset, part.fdel
    if isinstance(part, (staticmethod, classmethod)):
        return (part.__func__,)
    if isinstance(part, (functools.partial, functools.partialmethod, functools.cached_property)):
        return (part.func,)
    held: list[Any] = []
    if not isinstance(part, type):
        with contextlib.suppress(AttributeError):
            held += object.__getattribute__(part, "__dict__").values()  # its own may be code of a program
    for cell in part.__closure__ or () if isinstance(part, types.FunctionType) else ():
        with contextlib.suppress(ValueError):  # the cell is empty
            held.append(cell.cell_contents)
    return [each for each in held if isinstance(each, _OF_FUNCTIONS)]


_OF_FUNCTIONS = (
    types.FunctionType, property, staticmethod, classmethod, functools.partial, functools.partialmethod,
    functools.cached_property,
)  # fmt: skip


def _code_names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that code uses, and private names in its strings: ``setattr(self, "_x", 1)``."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_names(constant)
        for word in constant if isinstance(constant, tuple) else (constant,):
            if isinstance(word, str) and names.is_private(word) and word.isidentifier():
                yield word


def is_dispatcher(value: object) -> bool:
    """Return whether a function dispatches for the host: its later calls run the registered functions."""
    if type(value) is _BOUND_DISPATCHER:
        return type(vars(value)["_unbound"]) is functools.singledispatchmethod
    if type(value) is not types.FunctionType:
        return False
    register = vars(value).get("register")
    if type(register) is types.MethodType:
        return type(register.__self__) is functools.singledispatchmethod
    return type(register) is types.FunctionType and register.__module__ == "functools"


_BOUND_DISPATCHER = getattr(functools, "_singledispatchmethod_get", None)
"""The type of a dispatching method that is bound to an object, since Python 3.14."""


def is_method(member: object) -> bool:
    """Return whether a member of a class is called: a value stored in its place would be called, too."""
    kind = type(member)
    is_read = has(kind, "__get__") and not has(kind, "__set__") and kind is not functools.cached_property
    return is_read or callable(member)


def is_unaware(member: object) -> bool:
    """Return whether a member of a class is not told when its name is set on an instance."""
    return is_static(type(member)) and not has(type(member), "__set__")


def answers(class_: type, name: str, function: object) -> bool:
    """Return whether a class or a base has a function under *name*; C code checks that itself."""
    parts = map(namespace_of, mro_of(class_))
    return type(function) is not types.FunctionType or any(part.get(name) is function for part in parts)


def has(class_: type, name: str) -> bool:
    """Return whether a class or one of its bases has *name*."""
    return any(name in namespace_of(part) for part in mro_of(class_))
