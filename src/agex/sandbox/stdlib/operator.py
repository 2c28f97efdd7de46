"""``operator`` for guest code: attributes by name are read through the guarded ``getattr``."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from agex.errors import SandboxAttributeError
from agex.sandbox.rules import names
from agex.sandbox.runtime.context import asking

__all__ = ["OPERATOR"]


def _guarded_getattr() -> Callable[[Any, str], Any]:
    guards = asking()
    if guards is None:
        raise SandboxAttributeError("attributes by name can be read while the sandbox runs, not after")
    return guards.getattr


class _attrgetter:  # noqa: N801 - it stands for operator.attrgetter
    """Do what ``operator.attrgetter`` does, through the guarded ``getattr``."""

    def __init__(self, attribute: str, /, *more: str) -> None:
        for name in (attribute, *more):
            if not isinstance(name, str):
                raise TypeError("attribute name must be a string")
        self._names = tuple(str.__str__(name) for name in (attribute, *more))
        self._paths = tuple(tuple(name.split(".")) for name in self._names)

    def __call__(self, subject: Any, /) -> Any:
        read = _guarded_getattr()
        values = tuple(functools.reduce(read, path, subject) for path in self._paths)
        return values[0] if len(values) == 1 else values

    def __repr__(self) -> str:
        return f"operator.attrgetter({', '.join(map(repr, self._names))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._names


class _methodcaller:  # noqa: N801 - it stands for operator.methodcaller
    """Do what ``operator.methodcaller`` does, through the guarded ``getattr``."""

    def __init__(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        if not isinstance(name, str):
            raise TypeError("method name must be a string")
        self._name, self._args, self._kwargs = str.__str__(name), args, kwargs

    def __call__(self, subject: Any, /) -> Any:
        return _guarded_getattr()(subject, self._name)(*self._args, **self._kwargs)

    def __repr__(self) -> str:
        given = [*map(repr, (self._name, *self._args)), *(f"{k}={v!r}" for k, v in self._kwargs.items())]
        return f"operator.methodcaller({', '.join(given)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), self._name, **self._kwargs), self._args


def _operator_dunders() -> dict[str, Any]:
    """Return the functions of ``operator`` by their dunder names; a module has others of these names."""
    return {name: value for name, value in vars(operator).items() if name in names.OPERATORS}


OPERATOR: dict[str, Any] = {"attrgetter": _attrgetter, "methodcaller": _methodcaller, **_operator_dunders()}
"""The members of ``operator`` that are guarded, and its functions under their dunder names."""
