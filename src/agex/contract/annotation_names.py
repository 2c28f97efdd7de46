"""Names that a written-out signature contains, and the objects they stand for."""

from __future__ import annotations

import builtins
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, Union

from pydantic.fields import FieldInfo

from agex.contract.annotations import describe
from agex.contract.frame_schemas import frame_class

__all__ = ["annotation_names", "is_record"]

Named: TypeAlias = Iterator[tuple[str, Any]]


def annotation_names(annotation: Any) -> dict[str, Any]:
    """Return the names in a resolved annotation as ``describe`` writes it, without the builtins.

    They stand for classes, typing's forms, type variables and the classes of constraints.
    """
    return {
        name: value
        for name, value in _named(annotation)
        if name.isidentifier() and not hasattr(builtins, name)
    }


def is_record(value: object) -> bool:
    """Return whether *value* is a class that holds data: a model, a dataclass, an enum, a typed dict."""
    marks = ("__pydantic_fields__", "__dataclass_fields__", "_fields", "__total__", "__members__")
    return isinstance(value, type) and any(hasattr(value, mark) for mark in marks)


def _named(annotation: Any) -> Named:
    if annotation is None or annotation is ... or isinstance(annotation, str):
        return
    if isinstance(annotation, list):
        for each in annotation:
            yield from _named(each)
        return
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        yield "Literal", Literal
    elif origin is typing.Annotated:
        yield "Annotated", typing.Annotated
        yield from _constraints(annotation.__metadata__)
        yield from _named(args[0])
    elif origin in (Union, types.UnionType):
        yield from _named(list(args))
    elif (frame := frame_class(annotation if origin is None else origin)) is not None:
        yield frame.__name__, frame  # pandera's generic and its models are for annotations only
    elif origin is not None and describe(annotation).startswith("NDArray["):
        yield "NDArray", sys.modules["numpy"].typing.NDArray
        yield from _named(list(typing.get_args(args[1])))
    else:
        yield describe(annotation if origin is None else origin), annotation if origin is None else origin
        yield from _named(list(args))


def _constraints(metadata: tuple[Any, ...]) -> Named:
    for each in metadata:
        if isinstance(each, FieldInfo):
            yield from _constraints(tuple(each.metadata))
        elif type(each).__module__ == "annotated_types":
            yield type(each).__name__, type(each)
