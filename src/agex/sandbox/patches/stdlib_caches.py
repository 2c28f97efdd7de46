"""Exact keys for the caches that the standard library keeps for the whole process.

A guest class can define its own ``__eq__``. As a key it would match another one, in the run and after it:
``re.match('^a$', ...)`` would get a pattern with other flags, ``ZoneInfo('UTC')`` another zone. So texts,
numbers and flags are converted to exact builtin objects before they are looked up. ``typing`` caches only
what is made of host classes: a guest class holds its whole session, and a text may be of any length.
Libraries pass on what they are given, so the functions are replaced once a process where possible. Elsewhere
guest code gets other functions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from agex.sandbox.classes import stand_ins
from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import CURRENT

__all__ = ["exact", "install", "is_shared", "keep_of_paths", "stand_in", "zone_members"]


def exact(value: Any) -> Any:
    """Return a text or number of a guest class as an exact builtin object; any other value as it is."""
    if provenance.is_guest_class(type(value)):
        for kind, made in _EXACT:
            if issubclass(type(value), kind):  # its real class, not its __class__
                return made(value)
    return value


_EXACT: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (bytes, lambda value: bytes(memoryview(value))),
    (int, int.__pos__),
)


def install() -> None:
    """Put the functions in place, once a process."""
    replace(re, "_compile", _on_exact)
    replace(re, "_compile_repl", _on_exact)  # in 3.11
    replace(re, "_compile_template", _on_exact)  # since 3.12
    replace(importlib.import_module("_strptime"), "_strptime", _on_exact)
    _replace_in_typing()
    if sys.version_info >= (3, 12):
        import fractions

        # The interpreter keeps the function above after its first call, which the host may have made before.
        replace(importlib.import_module("re._parser"), "parse_template", _of_no_guest)

        replace(fractions, "_hash_algorithm", _on_exact)
    zone_members()
    _keep_of_zones()


def _on_exact(real: Any) -> Callable[..., Any]:
    """Return a function that makes its two arguments exact, and caches nothing for other classes."""
    afresh = getattr(real, "__wrapped__", _refused)

    def call(first: Any, second: Any = _LEFT_OUT) -> Any:
        if type(first) is str and type(second) is int:
            return real(first, second)
        given = [exact(each) for each in (first, second) if each is not _LEFT_OUT]
        return (afresh if any(map(_is_guests, given)) else real)(*given)

    if not isinstance(real, types.FunctionType):
        vars(call)["cache_clear"] = real.cache_clear  # for re.purge()
    return call


def _refused(first: Any, second: Any = None) -> NoReturn:
    odd = first if _is_guests(first) else second
    raise TypeError(f"a pattern or format must be a str, and flags a number, got {type(odd).__name__}")


def _is_guests(value: Any) -> bool:
    return provenance.is_guest_class(type(value))


def _of_no_guest(real: Any) -> Callable[..., Any]:
    """Return a template reader that refuses guest objects: its caller is C code, which caches its key."""

    def parse_template(source: Any, *pattern: Any) -> Any:
        if _is_guests(source):
            raise TypeError(f"a template must be a str or bytes, got {type(source).__name__}")
        return real(source, *pattern)

    return parse_template


_LEFT_OUT = object()


def keep_of_paths() -> None:
    """Keep guest objects out of the caches of ``pathlib``, once a process."""
    for module, name in _OF_PATHS:
        real = getattr(sys.modules.get(module), name, None)
        if hasattr(real, "cache_clear"):
            replace(sys.modules[module], name, _of_guests_afresh)


_OF_PATHS = (
    *(("pathlib", name) for name in ("_is_case_sensitive", "_make_selector", "_compile_pattern_lines")),
    *(("pathlib", "_compile_pattern"), ("pathlib._abc", "_is_case_sensitive"), ("glob", "_compile_pattern")),
)


def _of_guests_afresh(real: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        is_plain = not any(map(_is_guests, (*args, *kwargs.values())))
        return (real if is_plain else real.__wrapped__)(*args, **kwargs)

    return call


def stand_in(real: type, make: Callable[..., Any], **members: Any) -> type:
    """Return a stand-in for the class *real*, which makes objects by *make* and cannot be subclassed."""

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    namespace = {"__module__": real.__module__.lstrip("_"), "__doc__": real.__doc__, **members}
    return stand_ins.stands_for(real, Meta(real.__name__, (real,), namespace))


# -- zoneinfo


@functools.cache
def zone_members() -> dict[str, Any]:
    """Return the members of ``zoneinfo`` that guest code gets."""
    import zoneinfo

    real = zoneinfo.ZoneInfo
    made = stand_in(
        real,
        lambda *args, **kwargs: _of_exact_key(real, args, kwargs),
        no_cache=staticmethod(lambda *args, **kwargs: _of_exact_key(real.no_cache, args, kwargs)),
    )
    return {"ZoneInfo": made}


def _exactly(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(*map(exact, args), **{name: exact(value) for name, value in kwargs.items()})


def _of_exact_key(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for each in (*args, *kwargs.values()):
        if _is_guests(exact(each)):
            raise TypeError(f"the key of a time zone must be a str, got {type(each).__name__}")
    return _exactly(call, args, kwargs)


def _keep_of_zones() -> None:
    """Refuse guest objects as keys of the real cache of zones, to which libraries pass their arguments."""
    import zoneinfo

    with contextlib.suppress(zoneinfo.ZoneInfoNotFoundError):  # where there are no zones
        for known in _tables_of(zoneinfo.ZoneInfo("UTC")):
            known.get = _of_no_key(known.get)


def _tables_of(value: Any) -> Iterator[Any]:
    """Yield the tables that hold *value* weakly: no name leads to the one of the C code."""
    for each in weakref.getweakrefs(value):
        for held in getattr(each.__callback__, "__defaults__", None) or ():
            table = held() if isinstance(held, weakref.ref) else None
            if isinstance(table, weakref.WeakValueDictionary) and "get" not in vars(table):
                yield table


def _of_no_key(real: Callable[..., Any]) -> Callable[..., Any]:
    def get(key: Any, default: Any = None) -> Any:
        if _is_guests(key):
            raise TypeError(f"the key of a time zone must be a str, got {type(key).__name__}")
        return real(key, default)

    return get


# -- typing


def _replace_in_typing() -> None:
    """Keep objects of a run out of the caches of ``typing``, in either form they have."""
    known: Any = getattr(typing, "_caches", None)
    if known is not None:  # since 3.12
        for function, cached in list(known.items()):
            known[function] = _remembering(function, cached)
        return
    for function in _functions_of_typing():
        if "cached" in function.__code__.co_freevars:
            cell = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))["cached"]
            cell.cell_contents = _remembering(vars(function)["__wrapped__"], cell.cell_contents)


def _functions_of_typing() -> list[types.FunctionType]:
    found: list[Any] = []
    for value in vars(typing).values():
        parts = getattr(value, "__dict__", {}).values() if not isinstance(value, types.ModuleType) else ()
        slots = [getattr(value, "_getitem", None)] if isinstance(value, _FORMS[0]) else []
        found += [value, *slots, *(getattr(part, "__func__", part) for part in parts)]
    functions = {id(each): each for each in found if type(each) is types.FunctionType}
    return [each for each in functions.values() if each.__module__ == "typing"]


def _remembering(function: Callable[..., Any], cached: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        remembers = CURRENT.get() is None or (not kwargs and _is_hosts(args))
        return (cached if remembers else function)(*args, **kwargs)

    return call


def _is_hosts(value: Any) -> bool:
    """Return whether *value* consists of host classes and forms, which hold nothing of a run."""
    kind = type(value)
    if kind is tuple:
        return all(map(_is_hosts, value))
    if issubclass(kind, type):
        return not (provenance.is_guest_class(value) or provenance.is_guest_class(kind))
    if issubclass(kind, (types.GenericAlias, _ALIAS)):
        return _is_hosts((value.__origin__, *value.__args__, *getattr(value, "__metadata__", ())))
    return value is None or value is ... or issubclass(kind, _FORMS)


_ALIAS: type = typing._GenericAlias  # type: ignore[attr-defined]
_FORMS: tuple[type, ...] = (typing._SpecialForm, typing._BaseGenericAlias)  # type: ignore[attr-defined]


# -- tables


def is_shared(name: str, table: Any) -> bool:
    """Return whether a table belongs to a class of the standard library, not to a single object."""
    classes = (getattr(sys.modules.get(module), class_, None) for module, class_ in _SHARING)
    return any(table is getattr(each, name, _LEFT_OUT) for each in classes)


_SHARING = (("calendar", "HTMLCalendar"), ("textwrap", "TextWrapper"))
