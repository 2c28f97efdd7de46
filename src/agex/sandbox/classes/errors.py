"""Messages of refusals, made without a call of the refused object."""

from __future__ import annotations

import builtins as host
import types
from typing import Any

from agex.errors import SandboxAttributeError, SandboxTypeError

__all__ = ["check_keywords", "described", "exact_name", "refusal", "unwritable"]


def exact_name(name: Any) -> str:
    """Return the name of an attribute as a plain str; raise TypeError as ``getattr`` does."""
    if type(name) is str:
        return name
    if issubclass(type(name), str):
        return str.__str__(name)
    raise TypeError(f"attribute name must be string, not '{type(name).__name__}'")


def check_keywords(named: dict[str, Any]) -> None:
    """Refuse keywords of a guest subclass of str: such a keyword is found under no parameter's name."""
    for name in named:
        if type(name) is not str:
            raise SandboxTypeError(f"a keyword is a {type(name).__name__} here; name it by a plain str")


def described(receiver: Any) -> str:
    """Return a description of an object for an error message, without a call of it."""
    if issubclass(type(receiver), types.ModuleType):
        return f"module '{host.vars(receiver).get('__name__', '?')}'"
    if issubclass(type(receiver), type):
        return f"class '{receiver.__name__}'"
    return f"'{type(receiver).__name__}' object"


def refusal(receiver: Any, name: str, instead: str | None = None) -> SandboxAttributeError:
    """Return the error that refuses to read an attribute and says what to write instead."""
    text = instead or "use its other public members, dir() lists them"
    return SandboxAttributeError(f"attribute '{name}' of {described(receiver)} is not accessible; {text}")


def unwritable(receiver: Any, name: str, instead: str | None) -> SandboxAttributeError:
    """Return the error that refuses to assign an attribute."""
    text = instead or "keep your own value in a variable or an object of your own"
    return SandboxAttributeError(f"attribute '{name}' of {described(receiver)} cannot be changed; {text}")
