"""Exceptions: the fields of their C structures, beside their attributes.

State of the moment of raising is not kept: the traceback, and the object that an `AttributeError` is about.
`pickle` leaves out both, too.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agex.values.base.placeholders import NotKept
from agex.values.base.type_checks import is_a

__all__ = ["BUILTIN", "CONSTRUCTORS", "STRUCTURED", "blank", "builtin_of", "fill", "take"]

BUILTIN: Mapping[str, type[BaseException]] = {
    name: cls
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, BaseException) and cls.__name__ == name
}
_CLASSES = frozenset(BUILTIN.values())

_FIELDS: Mapping[type[BaseException], tuple[str, ...]] = {
    ImportError: ("msg", "name", "path", "name_from"),
    NameError: ("name",),
    AttributeError: ("name",),
    StopIteration: ("value",),
    SystemExit: ("code",),
    OSError: ("errno", "strerror", "filename", "filename2", "characters_written"),
    SyntaxError: (
        "msg", "filename", "lineno", "offset", "text", "end_lineno", "end_offset", "print_file_and_line",
    ),
}  # fmt: skip
"""Fields that take any object and can be set alone."""

_TEXTS: Mapping[type[BaseException], Mapping[str, type | tuple[type, ...]]] = {
    UnicodeDecodeError: {"encoding": str, "object": bytes, "start": int, "end": int, "reason": str},
    UnicodeEncodeError: {"encoding": str, "object": str, "start": int, "end": int, "reason": str},
    UnicodeTranslateError: {"object": str, "start": int, "end": int, "reason": str},
}
"""Fields whose type ``__init__`` checks: set alone to another type, they crash the interpreter."""

STRUCTURED = (*_FIELDS, *_TEXTS, BaseExceptionGroup)
"""Classes whose instances hold more than their arguments."""

_LINKS = ("__cause__", "__context__")
_MOST_LINKS = 30
"""The longest chain of exceptions that is kept: a loop that raises in its ``except`` adds one each time,
and a pickler follows the chain by recursion."""

_SLOTS = vars(BaseException)


def builtin_of(cls: type) -> type[BaseException]:
    """Return the builtin exception whose structure the instances of a class have."""
    while cls not in _CLASSES:
        cls = _base_of(cls)
    return cls


_base_of: Callable[[type], Any] = type.__dict__["__base__"].__get__


def blank(cls: type, args: tuple[Any, ...]) -> Any:
    """Make an exception that `fill` has not seen yet; the constructor of its class does not run.

    For a group with a lost exception, the lost one is returned in its place.
    """
    solid: Any = builtin_of(cls)
    if issubclass(solid, BaseExceptionGroup):
        for each in args[1]:
            if type(each) is NotKept:
                return each
    return solid.__new__(cls, *args)


def take(error: BaseException, captures: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of `blank` and of `fill` for an exception.

    Args:
        error: the exception.
        captures: tells which classes of exceptions can be kept.
    """
    solid = builtin_of(type(error))
    found = {"args": _SLOTS["args"].__get__(error), **_fields(error, solid), **_links(error, captures)}
    if issubclass(solid, BaseExceptionGroup):
        return (_group_of("message", error), list(_group_of("exceptions", error))), found
    return (), found


def _group_of(name: str, error: BaseException) -> Any:
    return vars(BaseExceptionGroup)[name].__get__(error)


def _fields(error: BaseException, solid: type[BaseException]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base, wanted in _TEXTS.items():
        if issubclass(solid, base):
            values = {name: _get(base, name, error) for name in wanted}
            if all(is_a(values[name], cls) for name, cls in wanted.items()):
                found["texts"] = tuple(values.values())
    for base, names in _FIELDS.items():
        if issubclass(solid, base):
            found |= {name: _get(base, name, error) for name in names if name in vars(base)}
    return {name: each for name, each in found.items() if each is not None}  # as it is before it is set


def _get(base: type, name: str, error: BaseException) -> Any:
    try:
        return vars(base)[name].__get__(error)
    except (AttributeError, TypeError):  # its constructor did not run
        return None


def _links(error: BaseException, captures: Any) -> dict[str, Any]:
    """Return the cause and the context of an exception."""
    if sum(1 for _ in _chain(error)) > _MOST_LINKS:
        return {}
    found = {name: each for name, each in _linked(error) if _can_be_kept(type(each), captures)}
    if found or _SLOTS["__suppress_context__"].__get__(error):
        found["__suppress_context__"] = _SLOTS["__suppress_context__"].__get__(error)
    return found


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return an exception with all its causes and contexts, each once."""
    seen: set[int] = set()
    rest = [error]
    while rest and len(seen) <= _MOST_LINKS + 1:
        each = rest.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            rest += [other for _, other in _linked(each)]


def _linked(error: BaseException) -> Iterator[tuple[str, Any]]:
    for name in _LINKS:
        each = _SLOTS[name].__get__(error)
        if each is not None:
            yield name, each


def _can_be_kept(cls: type, captures: Any) -> bool:
    """Return whether guest code sees an exception; internal ones of the host are left out silently."""
    kept: bool = cls in _CLASSES or captures.is_own(cls) or captures.allow.is_registered(cls)
    return kept


def fill(error: BaseException, fields: Mapping[str, Any]) -> None:
    """Set the fields of an exception.

    Raises:
        TypeError: a field is of a type that the interpreter does not give it.
    """
    solid: Any = builtin_of(type(error))
    if "texts" in fields:
        next(base for base in _TEXTS if issubclass(solid, base)).__init__(error, *fields["texts"])
    for base, names in _FIELDS.items():
        if issubclass(solid, base):
            for name in names:
                if name in fields and name in vars(base):
                    vars(base)[name].__set__(error, fields[name])
    for name in ("args", *_LINKS, "__suppress_context__"):  # a cause says that it suppresses the context
        if name in fields and type(fields[name]) is not NotKept:
            _SLOTS[name].__set__(error, _checked(name, fields[name]))


def _checked(name: str, value: Any) -> Any:
    if name == "args" and type(value) is not tuple:
        raise TypeError("the arguments of an exception are a tuple")
    return value


def make_blank_exception(name: str, args: tuple[Any, ...]) -> Any:
    """Make an exception of a builtin class, to be filled."""
    return blank(BUILTIN[name], args)


def fill_exception(error: Any, state: tuple[dict[str, Any] | None, dict[str, Any]]) -> None:
    """Set the attributes and the fields of an exception of a builtin class."""
    if type(error) is NotKept:
        return
    if type(error) not in _CLASSES:
        raise TypeError(f"fields of an exception for a {type(error).__name__}")
    attributes, fields = state
    fill(error, fields)
    for name, each in (attributes or {}).items():
        if type(name) is str and (name == "__notes__" or not name.startswith("__")):
            vars(error)[name] = each


CONSTRUCTORS: tuple[Callable[..., Any], ...] = (make_blank_exception, fill_exception)
