"""The declaration of a task that an agent's code wrote, as a plain function of the host's.

Declaring a task evaluates annotations, shows defaults and reads examples. What the code of an
agent says there is taken over only where it is plain: nothing of it is evaluated, and no object
of its own is asked for anything.
"""

from __future__ import annotations

import collections.abc
import dis
import functools
import inspect
import keyword
import types
import typing
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agex.agent.observation import exact
from agex.errors import DefinitionError

__all__ = ["passed_on", "stub_of"]

_PLAIN = frozenset(
    {int, float, complex, bool, str, bytes, list, dict, set, frozenset, tuple, object, type(None)}
    | {collections.abc.Callable, collections.abc.Iterable, collections.abc.Sequence, collections.abc.Mapping}
)
"""Classes that anybody may name."""
_STDLIB = frozenset({"datetime", "decimal", "fractions", "uuid"})
"""Modules whose classes are values."""
_SPECIAL = (Any, typing.Callable, typing.Literal, typing.Union, typing.Optional, Ellipsis, None)
_ALIASES = (
    types.GenericAlias,
    types.UnionType,
    type(typing.Union[int, str]),  # noqa: UP007 - its type is what is meant
    type(typing.Literal[1]),
    type(typing.List[int]),  # noqa: UP006 - its type is what is meant
    type(typing.Callable[[int], int]),
    type(collections.abc.Callable[[int], int]),
)
"""Exact types of what names a type with others in it."""
_ATOMS = frozenset({int, float, bool, str, bytes, type(None)})

_MODULE = vars(type)["__module__"].__get__


def stub_of(function: types.FunctionType, may_be_named: Callable[[type], bool]) -> types.FunctionType:
    """Return an empty function of the host's with the name, parameters, annotations and docstring of another.

    Args:
        function: written by an agent's code.
        may_be_named: tells which classes an annotation may name, beside plain ones.

    Raises:
        DefinitionError: it has a body, or says something that cannot be taken over.
    """
    if not _is_empty(function):
        raise DefinitionError(f"The body of {_name(function.__name__)} must be empty: its agent writes it.")
    signature = _signature(function, may_be_named)
    stub = _made(_name(function.__name__), [*signature.parameters], function)
    doc: Any = function.__doc__
    stub.__doc__ = exact(doc) if issubclass(type(doc), str) else None
    stub.__signature__ = signature  # type: ignore[attr-defined]
    stub.__annotations__ = {
        name: one.annotation
        for name, one in signature.parameters.items()
        if one.annotation is not inspect.Parameter.empty
    }
    if signature.return_annotation is not inspect.Signature.empty:
        stub.__annotations__["return"] = signature.return_annotation
    return stub


def passed_on(function: types.FunctionType, may_be_named: Callable[[type], bool]) -> types.FunctionType:
    """Return a function of the host's that calls one an agent's code wrote, and shows what is plain of it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    doc: Any = function.__doc__
    call.__name__ = call.__qualname__ = _name(function.__name__)
    call.__doc__ = exact(doc) if issubclass(type(doc), str) else None
    call.__signature__ = _outline(function, may_be_named)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]  # a def makes one


def _outline(function: types.FunctionType, may_be_named: Callable[[type], bool]) -> inspect.Signature:
    code = function.__code__
    kinds: list[Any] = [_ANY] * code.co_argcount + [_KEYWORD] * code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        kinds.append(inspect.Parameter.VAR_POSITIONAL)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kinds.append(inspect.Parameter.VAR_KEYWORD)
    written = dict(dict.items(function.__annotations__))
    shown: dict[str, Any] = {}
    for name, annotation in written.items():
        with suppress(DefinitionError):  # it is left out: only the agent that wrote it knows what it means
            shown[name] = _annotation(annotation, may_be_named)
    optional = {*_last(function), *dict.keys(function.__kwdefaults__ or {})}
    parameters = [
        inspect.Parameter(
            name,
            kind,
            annotation=shown.get(name, inspect.Parameter.empty),
            default=... if name in optional else inspect.Parameter.empty,
        )
        for name, kind in zip(code.co_varnames, kinds, strict=False)
    ]
    parameters.sort(key=lambda one: one.kind)
    return inspect.Signature(parameters, return_annotation=shown.get("return", inspect.Signature.empty))


def _made(name: str, parameters: list[str], function: types.FunctionType) -> types.FunctionType:
    kind = "async def" if inspect.iscoroutinefunction(function) else "def"
    made: dict[str, Any] = {}
    # Nothing but identifiers, checked one by one, goes into this text.
    exec(f"{kind} {name}({', '.join(parameters)}): ...", {"__name__": "agex"}, made)  # noqa: S102
    stub: types.FunctionType = made[name]
    return stub


def _signature(function: types.FunctionType, may_be_named: Callable[[type], bool]) -> inspect.Signature:
    code = function.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise DefinitionError("A task takes named parameters, no *args or **kwargs.")
    written = dict(dict.items(function.__annotations__))
    annotations = {name: _annotation(each, may_be_named) for name, each in written.items()}
    defaults = _defaults(function)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    parameters = [
        inspect.Parameter(
            _name(name),
            _KEYWORD if number >= code.co_argcount else _ANY,
            default=defaults.get(name, inspect.Parameter.empty),
            annotation=annotations.get(name, inspect.Parameter.empty),
        )
        for number, name in enumerate(names)
    ]
    return inspect.Signature(parameters, return_annotation=annotations.get("return", inspect.Signature.empty))


_ANY, _KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    found = dict(zip(_last(function), function.__defaults__ or (), strict=True))
    found |= dict(dict.items(function.__kwdefaults__ or {}))
    return {name: _default(value) for name, value in found.items()}


def _last(function: types.FunctionType) -> tuple[str, ...]:
    """Return the positional parameters that have a default."""
    count = function.__code__.co_argcount
    return function.__code__.co_varnames[count - len(function.__defaults__ or ()) : count]


def _name(name: Any) -> str:
    text = exact(name)
    if not text.isidentifier() or keyword.iskeyword(text) or text.startswith("__"):
        raise DefinitionError(f"{text!r} cannot be the name of a task or of its parameter.")
    return text


def _default(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_default, value))
    if type(value) not in _ATOMS:
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
    if any(type(written) is alias for alias in _ALIASES):
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
    home = _MODULE(cls)
    return type(home) is str and home in _STDLIB and type(cls) is type


def _is_empty(function: types.FunctionType) -> bool:
    code = function.__code__
    return _steps(code) in _empty_bodies()


def _steps(code: types.CodeType) -> list[tuple[str, Any]]:
    return [
        (one.opname, one.argval) for one in dis.get_instructions(code) if one.opname not in {"NOP", "CACHE"}
    ]


@functools.cache
def _empty_bodies() -> list[list[tuple[str, Any]]]:
    """Return what the bodies of empty functions become in the sandbox."""
    from agex.sandbox import Policy
    from agex.sandbox.compiled import compile_module

    found: list[list[tuple[str, Any]]] = []
    for kind in ("def", "async def"):
        for body in ("...", "pass", '"""doc"""'):
            code = compile_module(f"{kind} f():\n    {body}\n", "<empty>", Policy().text, echo=False)
            found += [_steps(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return found
