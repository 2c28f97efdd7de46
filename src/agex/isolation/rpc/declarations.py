"""Declarations of guest functions as data, for a host that builds on one without calling it.

In this process annotations are objects of guest code. From a worker they come as names that the policy
grants and as the forms below, and nothing that it sends is evaluated.

``{"name": NAME}``              an object that guest code finds by name, see `agex.sandbox.host_names`
``{"is": "none" | "..."}``
``{"of": FORM, "args": [...]}`` ``list[int]``, ``Callable[[int], str]``
``{"any": [...]}``              a union
``{"literal": [...]}``
``{"list": [...]}``             the parameters of a ``Callable``
``{"class": TEXT}``             a class that is not granted
``{}``                          anything else
"""

from __future__ import annotations

import collections.abc
import dis
import functools
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agex._interpreter import type_slots as typeslots
from agex.isolation.wire.error_codec import ProtocolError
from agex.sandbox import Policy, Session
from agex.sandbox.classes.generic_classes import Alias
from agex.sandbox.host_names import name_of, named
from agex.sandbox.language.compiler import compile_module

__all__ = ["ALIASES", "ATOMS", "Declaration", "Unknown", "declared", "read", "told"]

ATOMS = frozenset({int, float, bool, str, bytes, type(None)})
"""Exact types of the values that a declaration may show."""
ALIASES: tuple[Any, ...] = (
    types.GenericAlias,
    Alias,
    types.UnionType,
    type(typing.Union[int, str]),  # noqa: UP007 - its type is what is meant
    type(typing.Literal[1]),
    type(typing.List[int]),  # noqa: UP006 - its type is what is meant
    type(typing.Callable[[int], int]),
    type(collections.abc.Callable[[int], int]),
)
"""Exact types of parametrised types."""
_UNIONS = (types.UnionType, typing.Union)
_DEEPEST = 20
_MOST = 255
_BITS = 1024


class Unknown:
    """Marker of a part that cannot be sent."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A function as it is written, without its body."""

    name: str
    doc: str | None = None
    is_async: bool = False
    is_empty: bool = False
    """Whether its body is a docstring, ``...`` or ``pass``."""
    parameters: tuple[str, ...] = ()
    """Positional ones, then those by keyword alone, then that of ``*args``, then that of ``**kwargs``."""
    by_keyword: int = 0
    """How many are by keyword alone."""
    has_args: bool = False
    has_kwargs: bool = False
    defaults: Mapping[str, Any]
    """By parameter, as guest code wrote them."""
    annotations: Mapping[str, Any]
    """By parameter and ``return``, as guest code wrote them."""


def declared(function: types.FunctionType) -> Declaration:
    """Read a function of this process. No guest object runs any code."""
    code = function.__code__
    doc: Any = function.__doc__
    has_args = bool(code.co_flags & inspect.CO_VARARGS)
    has_kwargs = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    count = code.co_argcount + code.co_kwonlyargcount + has_args + has_kwargs
    return Declaration(
        name=str.__str__(function.__name__),
        doc=str.__str__(doc) if issubclass(type(doc), str) else None,
        is_async=bool(code.co_flags & inspect.CO_COROUTINE),
        is_empty=_steps(code) in _empty_bodies(),
        parameters=code.co_varnames[:count],
        by_keyword=code.co_kwonlyargcount,
        has_args=has_args,
        has_kwargs=has_kwargs,
        defaults=_defaults(function),
        annotations=dict(dict.items(function.__annotations__)),
    )


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    code, given = function.__code__, function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    return dict(zip(last, given, strict=True)) | dict(dict.items(function.__kwdefaults__ or {}))


def _steps(code: types.CodeType) -> list[tuple[str, Any]]:
    return [
        (one.opname, one.argval) for one in dis.get_instructions(code) if one.opname not in {"NOP", "CACHE"}
    ]


@functools.cache
def _empty_bodies() -> list[list[tuple[str, Any]]]:
    """Return the forms of empty bodies in the sandbox; that of a nested function begins with a check."""
    found: list[list[tuple[str, Any]]] = []
    for kind in ("def", "async def"):
        for body in ("...", "pass", '"""doc"""'):
            empty = f"{kind} f():\n    {body}\n"
            for text in (empty, f"def g():\n{textwrap.indent(empty, '    ')}"):
                code = compile_module(text, "<empty>", Policy().text, echo=False)
                found += [_steps(each) for each in _functions(code) if each.co_name == "f"]
    return found


def _functions(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _functions(each)


# -- from a worker ---------------------------------------------------------------------------


def told(one: Declaration, session: Session) -> dict[str, Any]:
    """Return a declaration as plain data, with the names that guest code of *session* uses."""
    return {
        "name": one.name,
        "doc": one.doc,
        "async": one.is_async,
        "empty": one.is_empty,
        "parameters": list(one.parameters),
        "by_keyword": one.by_keyword,
        "args": one.has_args,
        "kwargs": one.has_kwargs,
        "defaults": {name: _told_value(value) for name, value in one.defaults.items()},
        "annotations": {name: _told_form(form, session) for name, form in one.annotations.items()},
    }


def _told_value(value: Any) -> Any:
    if type(value) is tuple:
        return {"tuple": [_told_value(each) for each in value]}
    if type(value) is bytes:
        return {"bytes": value.decode("latin-1")}
    if type(value) not in ATOMS or (type(value) is int and value.bit_length() > _BITS):
        return {}
    return value


def _told_form(form: Any, session: Session) -> Any:
    if form is None:
        return {"is": "none"}
    if form is ...:
        return {"is": "..."}
    if type(form) is list:
        return {"list": [_told_form(each, session) for each in form]}
    if any(type(form) is alias for alias in ALIASES):
        origin, args = typing.get_origin(form), typing.get_args(form)
        if origin is typing.Literal:
            return {"literal": [_told_value(each) for each in args]}
        forms = [_told_form(each, session) for each in args]
        if any(origin is union for union in _UNIONS):
            return {"any": forms}
        return {"of": _told_form(origin, session), "args": forms}
    name = _name(form, session)
    if name is not None:
        return {"name": name}
    return {"class": "class"} if issubclass(type(form), type) else {}


def _name(form: Any, session: Session) -> str | None:
    name = name_of(session, form)
    if name is None and isinstance(form, type):  # a library may show its classes elsewhere than they live
        home, own = typeslots.module_of(form), typeslots.name_of(form)
        shown = f"{str(home).partition('.')[0]}:{own}"
        try:
            return shown if named(session, shown) is form else None
        except KeyError:
            return None
    return name


def read(found: Any, session: Session) -> Declaration:
    """Read the result of `told` from untrusted data.

    Args:
        found: a JSON value.
        session: its policy says which objects the names stand for.

    Raises:
        ProtocolError: it is none.
    """
    fields = found if type(found) is dict else {}
    names, count = fields.get("parameters"), fields.get("by_keyword")
    defaults, annotations = fields.get("defaults"), fields.get("annotations")
    flags: list[Any] = [fields.get(name) for name in ("async", "empty", "args", "kwargs")]
    if not (
        type(fields.get("name")) is str
        and type(fields.get("doc")) in {str, type(None)}
        and type(names) is list
        and len(names) <= _MOST
        and all(map(_is_name, names))
        and len(set(names)) == len(names)
        and type(count) is int
        and all(type(flag) is bool for flag in flags)
        and 0 <= count <= len(names) - flags[2] - flags[3]
        and type(defaults) is dict
        and type(annotations) is dict
        and defaults.keys() <= set(names)
        and annotations.keys() <= {*names, "return"}
    ):
        raise ProtocolError("a function declares itself wrongly")
    return Declaration(
        name=fields["name"],
        doc=fields["doc"],
        is_async=fields["async"],
        is_empty=fields["empty"],
        parameters=tuple(names),
        by_keyword=count,
        has_args=fields["args"],
        has_kwargs=fields["kwargs"],
        defaults={name: _value(each, 0) for name, each in defaults.items()},
        annotations={name: _form(each, session, 0) for name, each in annotations.items()},
    )


def _is_name(found: Any) -> bool:
    return type(found) is str and found.isidentifier()


def _value(found: Any, depth: int) -> Any:
    if type(found) in ATOMS:
        return found
    kind, content = _only(found, depth)
    if kind == "tuple" and type(content) is list:
        return tuple([_value(each, depth + 1) for each in content])
    if kind == "bytes" and type(content) is str:
        return content.encode("latin-1", "replace")
    return Unknown()


def _form(found: Any, session: Session, depth: int) -> Any:
    if type(found) is dict and found.keys() == {"of", "args"}:
        _require_depth(depth)
        return _applied(_form(found["of"], session, depth + 1), _forms(found["args"], session, depth))
    kind, content = _only(found, depth)
    if kind == "is":
        return {"none": None, "...": ...}.get(content, Unknown()) if type(content) is str else Unknown()
    if kind == "name" and type(content) is str:
        return _granted(session, content)
    if kind == "class":
        return Unknown  # a class without a name for guest code
    if kind in {"list", "any"}:
        forms = _forms(content, session, depth)
        return forms if kind == "list" else _union(forms)
    if kind == "literal" and type(content) is list and content:
        values = [_value(each, depth + 1) for each in content]
        return typing.Literal[tuple(values)] if all(type(each) in ATOMS for each in values) else Unknown()
    return Unknown()


def _forms(found: Any, session: Session, depth: int) -> list[Any]:
    if type(found) is not list or len(found) > _MOST:
        raise ProtocolError("a function declares itself wrongly")
    return [_form(each, session, depth + 1) for each in found]


def _granted(session: Session, name: str) -> Any:
    try:
        found = named(session, name)
    except KeyError:
        return Unknown
    is_form = isinstance(found, type) or any(found is each for each in _SPECIAL)
    return found if is_form else Unknown()


_SPECIAL = (Any, typing.Callable, typing.Literal, typing.Union, typing.Optional)


def _union(forms: Sequence[Any]) -> Any:
    if not forms or any(type(form) is Unknown or form is ... or type(form) is list for form in forms):
        return Unknown()
    return typing.Union[tuple(forms)]  # noqa: UP007 - of a number of types that is not known here


def _applied(origin: Any, args: Any) -> Any:
    """Return ``origin[args]``, made so that no class is asked for it."""
    is_class: bool = isinstance(origin, type)
    if not is_class or any(type(each) is Unknown for each in args):
        return Unknown()
    if origin is collections.abc.Callable:
        is_form = len(args) == 2 and (type(args[0]) is list or args[0] is ...)
        made: Any = typing.Callable
        return made[args[0], args[1]] if is_form else Unknown()
    return types.GenericAlias(origin, tuple(args))


def _only(found: Any, depth: int) -> tuple[str, Any]:
    """Return the one key of an object, and its value; an empty key where it has another shape."""
    _require_depth(depth)
    if type(found) is not dict or len(found) != 1:
        return "", None
    return next(iter(found.items()))


def _require_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise ProtocolError("a function declares itself wrongly: too deep")
