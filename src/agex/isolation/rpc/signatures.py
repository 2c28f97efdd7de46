"""Signatures of functions as plain data: names, kinds and texts, for `inspect.signature` at the other end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agex.isolation.wire.error_codec import ProtocolError

__all__ = ["Text", "described", "read"]

_KINDS = tuple(inspect._ParameterKind)  # pyright: ignore[reportPrivateUsage] - the enum of Parameter.kind has no other name
_MOST = 255
_CHARS = 200
_EMPTY = inspect.Parameter.empty


class Text(str):
    """Text in place of a default or an annotation: its repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def described(function: Callable[..., Any], show: Callable[[Any], str]) -> list[Any] | None:
    """Describe the signature of a function; None where it has none.

    Args:
        function: any callable.
        show: returns the text of a default or an annotation.
    """
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None
    return [
        [
            [p.name, int(p.kind), _default(p.default, show), _shown(p.annotation, show)]
            for p in list(signature.parameters.values())[:_MOST]
        ],
        _shown(signature.return_annotation, show),
    ]


def _default(value: Any, show: Callable[[Any], str]) -> str | None:
    return repr(value)[:_CHARS] if type(value) is str else _shown(value, show)


def _shown(value: Any, show: Callable[[Any], str]) -> str | None:
    if value is _EMPTY:
        return None
    return (value if type(value) is str else show(value))[:_CHARS]


def read(found: Any) -> inspect.Signature | None:
    """Make a signature from the result of `described`.

    Raises:
        ProtocolError: it is none.
    """
    if found is None:
        return None
    try:
        parameters, returned = found
        return inspect.Signature(
            [_parameter(*one) for one in parameters[:_MOST]], return_annotation=_text(returned)
        )
    except (TypeError, ValueError, IndexError) as error:
        raise ProtocolError(f"a signature is described wrongly: {error}") from None


def _parameter(name: str, kind: int, default: str | None, annotation: str | None) -> inspect.Parameter:
    return inspect.Parameter(name, _KINDS[kind], default=_text(default), annotation=_text(annotation))


def _text(value: str | None) -> Any:
    if value is None:
        return _EMPTY
    if type(value) is not str:
        raise TypeError("a text of a signature is no text")
    return Text(value)
