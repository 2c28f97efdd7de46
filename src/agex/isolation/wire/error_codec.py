"""Codec of errors between host and worker: class name and plain arguments, never an object.

An error of a class that both ends know (a builtin, one of agex, a registered one) comes out
as one of that class. Any other comes out as one of a class made for it, of the same name,
under the nearest base that is known, so that ``except ValueError`` still catches it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

from agex import errors
from agex._interpreter.type_slots import module_of, mro_of, qualname_of

__all__ = ["OutOfMemory", "ProtocolError", "WorkerGone", "WorkerLost", "pack_error", "unpack_error"]

_TEXT = 20_000
"""Characters of a text in an error; more says no more."""
_ARGS = 20
_BASES = 20

Finder = Callable[[str], type | None]
"""Returns a registered class by its full name."""


class ProtocolError(Exception):
    """The other end violated the protocol. Nothing else that it sends can be trusted."""


class WorkerGone(Exception):
    """The other end is not there any more."""


class OutOfMemory(str):
    """The end of a worker that was killed because it took too much memory."""

    __slots__ = ()


class WorkerLost(errors.EvalError):
    """The worker is not usable any more; the text says why."""

    memory: str | None = None
    """Its end, if it was killed for its memory."""
    was_killed = False
    """Whether somebody else ended it, by a signal that no code of its own gets."""


def _known() -> dict[str, type[Exception]]:
    found: dict[str, type[Exception]] = {}
    for home in (builtins, errors):
        for name, value in vars(home).items():
            if isinstance(value, type) and issubclass(value, Exception):
                found[f"{home.__name__}.{name}"] = value
    return found


_KNOWN = _known()
_FILENAME: Callable[[BaseException], Any] = vars(OSError)["filename"].__get__
_ARGUMENTS: Callable[[BaseException], tuple[Any, ...]] = vars(BaseException)["args"].__get__


def pack_error(error: BaseException, text: str) -> dict[str, Any]:
    """Describe an error.

    Args:
        error: of any class, also a guest class: only its class and arguments are read.
        text: its message, made where that is safe.
    """
    args = _arguments(error)
    is_plain = len(args) <= _ARGS and all(_is_plain(each) for each in args)
    cause = error.__cause__ if type(error) is errors.EvalError else None
    return {
        "mro": [_full_name(base) for base in mro_of(type(error))[:_BASES]],
        "args": [_bounded(each) for each in args] if is_plain else [_bounded(text)],
        "text": _bounded(text),
        "fields": _fields(error),
        "cause": None if cause is None else pack_error(cause, str(cause)),
    }


def _arguments(error: BaseException) -> tuple[Any, ...]:
    args = _ARGUMENTS(error)
    if issubclass(type(error), OSError) and len(args) == 2:  # the file it is about is kept beside them
        file = _FILENAME(error)
        return args if file is None else (*args, file)
    return args


def _is_plain(value: Any) -> bool:
    """Return whether an argument can be sent as it is; that of a syntax error is a tuple."""
    if type(value) is tuple:
        return len(value) <= _ARGS and all(type(each) in _PLAIN for each in value)
    return type(value) in _PLAIN


_SYNTAX = tuple(
    (name, vars(SyntaxError)[name])
    for name in ("msg", "filename", "lineno", "offset", "text", "end_lineno", "end_offset")
)
"""The attributes that hold the message of a syntax error."""


def _fields(error: BaseException) -> dict[str, Any]:
    if issubclass(type(error), SyntaxError):
        found = {name: field.__get__(error) for name, field in _SYNTAX}
        return {name: _bounded(value) for name, value in found.items() if type(value) in _PLAIN}
    try:
        own = object.__getattribute__(error, "__dict__")
    except AttributeError:
        return {}
    return {
        name: _bounded(value)
        for name, value in list(own.items())[:_ARGS]
        if type(name) is str and name.isidentifier() and not name.startswith("_") and type(value) in _PLAIN
    }


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _bounded(value: Any) -> Any:
    if type(value) is int and value.bit_length() > 1024:
        return f"an int of {value.bit_length()} bits"
    if type(value) is tuple:
        return [_bounded(each) for each in value]
    return value[:_TEXT] if type(value) is str else value


def _full_name(cls: type) -> str:
    module, name = module_of(cls), qualname_of(cls)
    return f"{module if type(module) is str else 'unknown'}.{name}"[:200]


def unpack_error(packed: Any, find: Finder) -> Exception:
    """Make an error from an untrusted description.

    Raises:
        ProtocolError: it is none.
    """
    error = _unpacked(packed, find)
    if type(error) is errors.EvalError and (cause := packed.get("cause")) is not None:
        error.__cause__ = _unpacked(cause, find)
    return error


def _unpacked(packed: Any, find: Finder) -> Exception:
    mro, args, text, fields = _parts(packed)
    name = mro[0]
    for full in mro:
        base = _KNOWN.get(full) or find(full)
        if base is not None and issubclass(base, Exception):
            cls = base if full == name else _made(name, base, text)
            break
    else:
        cls = _made(name, Exception, text)
    shaped = next((base for base in mro_of(cls) if base in _SHAPED), None)
    if shaped is not None:  # its message is not its arguments: only its constructor knows how they are kept
        return _constructed(cls, shaped, args, text, fields)
    solid: Any = next(base for base in mro_of(cls) if module_of(base) == "builtins")
    error: Exception = solid.__new__(cls, *args)
    error.__dict__.update(fields)
    return error


def _constructed(
    cls: type[Exception], shaped: type, args: list[Any], text: str, fields: Mapping[str, Any]
) -> Exception:
    try:
        error: Exception = cls(*args) if cls in _KNOWN.values() else cls(text)
    except (TypeError, ValueError):
        return _made(_full_name(cls), ValueError if shaped is UnicodeError else Exception, text)(text)
    if shaped is SyntaxError:
        for name, field in _SYNTAX:
            field.__set__(error, fields.get(name))
    return error


_SHAPED = frozenset({OSError, SyntaxError, UnicodeError})


def _parts(packed: Any) -> tuple[list[str], list[Any], str, Mapping[str, Any]]:
    if type(packed) is not dict:
        raise ProtocolError("an error is described wrongly")
    mro, args, text, fields = (packed.get(key) for key in ("mro", "args", "text", "fields"))
    if not (
        type(mro) is list
        and 0 < len(mro) <= _BASES
        and all(type(each) is str and len(each) <= 200 for each in mro)
        and type(args) is list
        and len(args) <= _ARGS
        and all(type(each) in _PLAIN or _is_plain(_as_tuple(each)) for each in args)
        and type(text) is str
        and type(fields) is dict
        and all(key.isidentifier() and not key.startswith("_") for key in fields)
        and all(type(value) in _PLAIN for value in fields.values())
    ):
        raise ProtocolError("an error is described wrongly")
    return mro, [_as_tuple(each) for each in args], text, fields


def _as_tuple(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _made(full: str, base: type[Exception], text: str) -> type[Exception]:
    """Make a class in place of one that only the other end has."""
    module, _, name = full.rpartition(".")
    name = name if name.isidentifier() else "UnknownError"
    space = {"__module__": module, "__str__": lambda _: text}
    return type(name, (base,), space)
