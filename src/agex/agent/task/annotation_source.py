"""Annotations written out as Python source, for the signature of frozen code."""

from __future__ import annotations

import collections.abc
import sys
import types
import typing
from typing import Any

from agex.agent.task.value_source import Imports, NotSource, importable, source_of

__all__ = ["annotation_source", "public_place"]


def annotation_source(annotation: Any, imports: Imports) -> str:
    """Return an annotation as source.

    Raises:
        NotSource: it names something that no program can import.
    """
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Ellipsis:
        return "..."
    if isinstance(annotation, str):
        raise NotSource(f"the annotation {annotation!r} is not resolved")
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        return _plain(annotation, imports)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(annotation_source(each, imports) for each in args)
    if origin is typing.Literal:
        return f"{imports.name('typing', 'Literal')}[{', '.join(source_of(each, imports) for each in args)}]"
    if origin is typing.Annotated:
        return _annotated(args, imports)
    inner = ", ".join(_argument(each, imports) for each in args)
    return f"{_plain(origin, imports)}[{inner}]" if args else _plain(origin, imports)


def _annotated(args: tuple[Any, ...], imports: Imports) -> str:
    """Return a type with its constraints; without them where they have no source."""
    base = annotation_source(args[0], imports)
    try:
        marks = [source_of(each, imports) for each in args[1:]]
    except NotSource:
        return base
    return f"{imports.name('typing', 'Annotated')}[{', '.join([base, *marks])}]"


def _argument(each: Any, imports: Imports) -> str:
    if isinstance(each, list):  # of a Callable
        return f"[{', '.join(annotation_source(one, imports) for one in each)}]"
    return "()" if each == () else annotation_source(each, imports)


def _plain(thing: Any, imports: Imports) -> str:
    if thing is Any:
        return imports.name("typing", "Any")
    name = str(getattr(thing, "__name__", thing))
    if isinstance(thing, type) and thing.__module__ == "builtins":
        return name
    if isinstance(thing, type) and getattr(collections.abc, name, None) is thing:
        return imports.name("collections.abc", name)
    place = public_place(thing)
    if place is None:
        raise NotSource(f"{name} cannot be imported: define it at the top level of a module")
    return imports.name(*place)


def public_place(thing: Any) -> tuple[str, str] | None:
    """Return where a program imports something from: the package that offers it, where one does."""
    place = importable(thing)
    name = getattr(thing, "__name__", None) if place is None else place[1]
    module = getattr(thing, "__module__", None)
    if type(module) is not str or type(name) is not str:
        return None
    root = module.partition(".")[0]
    if vars(sys.modules[root]).get(name) is thing if root in sys.modules else False:
        return root, name
    if place is not None:
        return place
    there = sys.modules.get(module)  # a TypeVar or a NewType has no qualified name
    return (module, name) if there is not None and vars(there).get(name) is thing else None
