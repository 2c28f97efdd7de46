"""Resolve annotations that are strings, and write annotations as short text."""

from __future__ import annotations

import builtins
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union

import typing_extensions
from pydantic.fields import FieldInfo

from agex._interpreter.type_slots import module_of
from agex.contract.frame_schemas import is_schema, schema_hint
from agex.contract.preview import short_repr
from agex.errors import DefinitionError

__all__ = ["Scope", "Unresolved", "describe", "strip"]

QUALIFIERS = (
    typing.Required,
    typing.NotRequired,
    typing_extensions.ReadOnly,
    getattr(typing, "ReadOnly", typing_extensions.ReadOnly),
    typing.Final,
    typing.ClassVar,
)


class Unresolved(DefinitionError):
    """An annotation names something that does not exist (yet)."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The names an annotation may use."""

    globals: Mapping[str, Any] = field(default_factory=dict)
    locals: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_function(cls, function: types.FunctionType, localns: Mapping[str, Any] | None = None) -> Scope:
        """Return the scope of a function's annotations: closure, then *localns*, then globals."""
        local = dict(localns or {})
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                local[name] = cell.cell_contents
            except ValueError:  # The name is bound later in the enclosing function.
                continue
        return cls(globals=function.__globals__, locals=local)

    def of_class(self, owner: type) -> Scope:
        """Return the scope of a class's annotations, which may be local to this one."""
        module = sys.modules.get(owner.__module__)
        names = {**self.globals, **self.locals, **(vars(module) if module else {})}
        return Scope(globals=names, locals={**self.locals, owner.__name__: owner})

    def resolve(self, annotation: Any) -> Any:
        """Evaluate *annotation* if it is a string or a forward reference.

        Raises:
            Unresolved: a name in it is not known.
            DefinitionError: it is not an annotation at all.
        """
        while isinstance(annotation, str | typing.ForwardRef):
            text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
            annotation = self._evaluate(text)
        return annotation

    def _evaluate(self, text: str) -> Any:
        names = {"__builtins__": builtins, **self.globals}
        try:
            return eval(text, names, dict(self.locals))  # noqa: S307  The host's own annotation.
        except NameError as error:
            told = f"{error}{schema_hint(text)}"
            raise Unresolved(f"the annotation {text!r} cannot be resolved: {told}") from error
        except (SyntaxError, TypeError, AttributeError, ValueError) as error:
            told = f"{error}{schema_hint(text)}"
            raise DefinitionError(f"the annotation {text!r} is not valid: {told}") from error


def strip(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Take qualifiers (``Required``, ``Final``, ...) off; return the rest and the qualifiers."""
    taken: list[Any] = []
    while typing.get_origin(annotation) in QUALIFIERS:
        taken.append(typing.get_origin(annotation))
        annotation = typing.get_args(annotation)[0]
    return annotation, tuple(taken)


def describe(annotation: Any) -> str:
    """Write an annotation the short way: ``list[str]``, ``DataFrame``, ``int | None``."""
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is ...:
        return "..."
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, list):
        return f"[{', '.join(map(describe, annotation))}]"
    origin = typing.get_origin(annotation)
    if origin is not None:
        return _describe_generic(annotation, origin, typing.get_args(annotation))
    if isinstance(annotation, type):
        return annotation.__qualname__.rpartition("<locals>.")[2]
    return str(getattr(annotation, "__name__", None) or annotation).replace("typing.", "")


def _describe_generic(annotation: Any, origin: Any, args: tuple[Any, ...]) -> str:
    if origin in (Union, types.UnionType):
        return " | ".join(map(describe, args))
    if origin is Literal:
        return f"Literal[{', '.join(short_repr(arg, 200) for arg in args)}]"
    if origin is typing.Annotated:
        told = [text for each in args[1:] if not is_schema(each) for text in _describe_metadata(each)]
        return f"Annotated[{', '.join([describe(args[0]), *told])}]" if told else describe(args[0])
    name = describe(origin) if isinstance(origin, type) else _special_name(annotation, origin)
    if name == "ndarray" and len(args) == 2:
        return f"NDArray[{', '.join(map(describe, typing.get_args(args[1])))}]"
    if not args and origin is not tuple:
        return name
    return f"{name}[{', '.join(map(describe, args)) or '()'}]"


def _describe_metadata(metadata: Any) -> list[str]:
    """Write what stands beside the type: constraints and descriptions, by their own repr."""
    if not isinstance(metadata, FieldInfo):
        return [_shown(metadata)]
    described = [metadata.description] if metadata.description else []
    return [_shown(each) for each in (*metadata.metadata, *described)]


def _shown(metadata: Any) -> str:
    """Return the repr of a library's constraint; the repr of any other class could run anything."""
    home = str(module_of(type(metadata))).partition(".")[0]
    return (
        repr(metadata) if home in {"annotated_types", "builtins", "pydantic"} else short_repr(metadata, 200)
    )


def _special_name(annotation: Any, origin: Any) -> str:
    name = getattr(origin, "__name__", None) or getattr(origin, "_name", None) or str(origin)
    return str(name).replace("typing.", "")
