"""The declaration of a task that guest code wrote, as a plain host function.

Declaring a task evaluates annotations, shows defaults and reads examples. What the code of an
agent says there is taken over only where it is plain: nothing of it is evaluated, and no object
of its own is asked for anything.
"""

from __future__ import annotations

import collections.abc
import inspect
import keyword
import types
import typing
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agex._interpreter.type_slots import module_of
from agex.agent.rendering.output_text import exact
from agex.errors import DefinitionError
from agex.isolation.rpc.declarations import ALIASES, ATOMS, Declaration

__all__ = ["passed_on", "stub_of"]

_PLAIN = frozenset(
    {int, float, complex, bool, str, bytes, list, dict, set, frozenset, tuple, object, type(None)}
    | {collections.abc.Callable, collections.abc.Iterable, collections.abc.Sequence, collections.abc.Mapping}
)
"""Classes that anybody may name."""
_STDLIB = frozenset({"datetime", "decimal", "fractions", "uuid"})
"""Modules whose classes are values."""
_SPECIAL = (Any, typing.Callable, typing.Literal, typing.Union, typing.Optional, Ellipsis, None)


def stub_of(written: Declaration, may_be_named: Callable[[type], bool]) -> types.FunctionType:
    """Return an empty host function with a name, parameters, annotations and a docstring.

    Args:
        written: by an agent's code.
        may_be_named: tells which classes an annotation may name, beside plain ones.

    Raises:
        DefinitionError: it has a body, or says something that cannot be taken over.
    """
    name = _name(written.name)
    if not written.is_empty:
        raise DefinitionError(f"The body of {name} must be empty: its agent writes it.")
    signature = _signature(written, may_be_named)
    stub = _made(name, [*signature.parameters], is_async=written.is_async)
    stub.__doc__ = written.doc
    stub.__signature__ = signature  # type: ignore[attr-defined]
    stub.__annotations__ = {
        name: one.annotation
        for name, one in signature.parameters.items()
        if one.annotation is not inspect.Parameter.empty
    }
    if signature.return_annotation is not inspect.Signature.empty:
        stub.__annotations__["return"] = signature.return_annotation
    return stub


def passed_on(
    function: types.FunctionType, written: Declaration, may_be_named: Callable[[type], bool]
) -> types.FunctionType:
    """Return a host function that calls a guest function, and shows the plain part of its signature."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = _name(written.name)
    call.__doc__ = written.doc
    call.__signature__ = _outline(written, may_be_named)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]  # a def makes one


def _outline(written: Declaration, may_be_named: Callable[[type], bool]) -> inspect.Signature:
    shown: dict[str, Any] = {}
    for name, annotation in written.annotations.items():
        with suppress(DefinitionError):  # it is left out: only the agent that wrote it knows what it means
            shown[name] = _annotation(annotation, may_be_named)
    parameters = [
        inspect.Parameter(
            name,
            kind,
            annotation=shown.get(name, inspect.Parameter.empty),
            default=... if name in written.defaults else inspect.Parameter.empty,
        )
        for name, kind in zip(written.parameters, _kinds(written), strict=True)
    ]
    parameters.sort(key=lambda one: one.kind)
    return inspect.Signature(parameters, return_annotation=shown.get("return", inspect.Signature.empty))


def _kinds(written: Declaration) -> list[Any]:
    """Return the kinds of the parameters, in their order."""
    rest: list[Any] = [inspect.Parameter.VAR_POSITIONAL] * written.has_args
    rest += [inspect.Parameter.VAR_KEYWORD] * written.has_kwargs
    named = len(written.parameters) - len(rest) - written.by_keyword
    return [_ANY] * named + [_KEYWORD] * written.by_keyword + rest


def _made(name: str, parameters: list[str], *, is_async: bool) -> types.FunctionType:
    kind = "async def" if is_async else "def"
    made: dict[str, Any] = {}
    # Nothing but identifiers, checked one by one, goes into this text.
    exec(f"{kind} {name}({', '.join(parameters)}): ...", {"__name__": "agex"}, made)  # noqa: S102
    stub: types.FunctionType = made[name]
    return stub


def _signature(written: Declaration, may_be_named: Callable[[type], bool]) -> inspect.Signature:
    if written.has_args or written.has_kwargs:
        raise DefinitionError("A task takes named parameters, no *args or **kwargs.")
    annotations = {name: _annotation(each, may_be_named) for name, each in written.annotations.items()}
    defaults = {name: _default(value) for name, value in written.defaults.items()}
    parameters = [
        inspect.Parameter(
            _name(name),
            kind,
            default=defaults.get(name, inspect.Parameter.empty),
            annotation=annotations.get(name, inspect.Parameter.empty),
        )
        for name, kind in zip(written.parameters, _kinds(written), strict=True)
    ]
    try:
        returned = annotations.get("return", inspect.Signature.empty)
        return inspect.Signature(parameters, return_annotation=returned)
    except ValueError as error:  # only of a declaration that no def can have made
        raise DefinitionError(f"The parameters of a task do not fit together: {error}") from None


_ANY, _KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


def _name(name: Any) -> str:
    text = exact(name)
    if not text.isidentifier() or keyword.iskeyword(text) or text.startswith("__"):
        raise DefinitionError(f"{text!r} cannot be the name of a task or of its parameter.")
    return text


def _default(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_default, value))
    if type(value) not in ATOMS:
        raise DefinitionError("A default is a plain number or text here; use None for anything else.")
    return value


def _annotation(written: Any, may_be_named: Callable[[type], bool]) -> Any:
    """Return an annotation if nothing in it has to be evaluated or asked.

    Raises:
        DefinitionError: it is something else.
    """
    if any(written is special for special in _SPECIAL):
        return written
    if issubclass(type(written), type):
        if any(written is plain for plain in _PLAIN) or _is_value(written) or may_be_named(written):
            return written
        raise DefinitionError(
            "The annotations of a task that you build name builtin types, classes that you were given, and "
            "containers of them; describe other structures as dict or list."
        )
    if type(written) is list:  # the parameters of a Callable
        return [_annotation(each, may_be_named) for each in written]
    if any(type(written) is alias for alias in ALIASES):
        origin, args = typing.get_origin(written), typing.get_args(written)
        if origin is typing.Literal:
            for each in args:
                _default(each)
        else:
            _annotation(origin, may_be_named) if origin is not types.UnionType else None
            for each in args:
                _annotation(each, may_be_named)
        return written
    raise DefinitionError(
        "Write the annotations of a task that you build without quotes and without Annotated."
    )


def _is_value(cls: type) -> bool:
    home = module_of(cls)
    return type(home) is str and home in _STDLIB and type(cls) is type
