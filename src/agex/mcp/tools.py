"""The tools of a server as a module, with names, signatures and docstrings from their descriptions."""

from __future__ import annotations

import builtins
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from agex.mcp.json_values import to_json
from agex.mcp.names import distinct, one_line
from agex.mcp.schema import Reader, is_short
from agex.mcp.typed_dicts import TypedDicts

if TYPE_CHECKING:
    from mcp.types import Tool

__all__ = ["CallTool", "is_wrapped", "make_module"]

CallTool: TypeAlias = "Callable[[Tool, dict[str, Any]], Any]"
"""Calls a tool with JSON data; returns its value."""

LINE_CHARS = 120
"""Of a description where only its first line is shown."""
DOC_CHARS = 1_000
"""Of a whole description."""
PARAMETERS = 40
"""A tool with more takes them as ``**arguments``."""


class _Omitted:
    """Stands for a parameter's default that the server knows and a signature does not say."""

    def __repr__(self) -> str:
        return "..."


OMITTED = _Omitted()


def make_module(name: str, doc: str, tools: Iterable[Tool], call: CallTool) -> ModuleType:
    """Return a module with one function for each tool, and the TypedDicts that their signatures name."""
    tools = list(tools)
    module = ModuleType(name, doc)
    names = distinct((tool.name for tool in tools), "tool")
    classes = TypedDicts(name, {*names, *dir(builtins), *typing.__all__})
    for own, tool in zip(names, tools, strict=True):
        vars(module)[own] = _function(own, name, tool, call, classes)
    vars(module).update(classes.by_name())
    return module


def _function(name: str, home: str, tool: Tool, call: CallTool, classes: TypedDicts) -> Callable[..., Any]:
    parameters = _parameters(tool.input_schema)
    signature = _signature(name, tool, parameters, classes)

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        if parameters is None:
            return call(tool, to_json(bound.get("arguments", {})))
        return call(tool, to_json({parameters[own]: value for own, value in bound.items()}))

    for attribute, value in (
        ("__name__", name),
        ("__qualname__", name),
        ("__module__", home),
        ("__doc__", _doc(tool, parameters)),
        ("__signature__", signature),
    ):
        setattr(function, attribute, value)
    return function


def _parameters(schema: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the parameters, Python's name to the tool's, required first; None if it lists them not."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return None
    if len(properties) > PARAMETERS or len(required) > PARAMETERS:
        return None
    if not all(isinstance(one, str) and one in properties for one in required):
        return None
    names = list(dict.fromkeys([*required, *properties]))
    return dict(zip(distinct(names, "argument"), names, strict=True)) if len(names) <= PARAMETERS else None


def _signature(
    name: str, tool: Tool, parameters: Mapping[str, str] | None, classes: TypedDicts
) -> inspect.Signature:
    schema = tool.input_schema
    reader = Reader(schema, classes)
    if parameters is None:
        rest = inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD, annotation=Any)
        return inspect.Signature([rest], return_annotation=_answer(name, tool, classes, reader.parts))
    made = [
        inspect.Parameter(
            own,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=_default(schema, given),
            annotation=reader.annotation(schema["properties"][given], f"{name}_{own}"),
        )
        for own, given in parameters.items()
    ]
    return inspect.Signature(made, return_annotation=_answer(name, tool, classes, reader.parts))


def _default(schema: Mapping[str, Any], name: str) -> Any:
    if name in schema.get("required", []):
        return inspect.Parameter.empty
    described = schema["properties"][name]
    default = described.get("default", OMITTED) if isinstance(described, Mapping) else OMITTED
    return default if is_short(default) else OMITTED


def _answer(name: str, tool: Tool, classes: TypedDicts, parts: int) -> Any:
    schema = tool.output_schema
    if schema is None:
        return Any
    described = schema["properties"]["result"] if is_wrapped(tool) else schema
    return Reader(schema, classes, parts).annotation(described, f"{name}_result")


def is_wrapped(tool: Tool) -> bool:
    """Return whether the tool's value is no object and so stands under ``result``, as is the custom."""
    properties = (tool.output_schema or {}).get("properties")
    return isinstance(properties, Mapping) and list(properties) == ["result"]


def _doc(tool: Tool, parameters: Mapping[str, str] | None) -> str:
    whole = one_line(tool.description or tool.title, DOC_CHARS)
    first = one_line(whole, LINE_CHARS)
    parts = [first, whole if whole != first else ""]
    lines = [f"    {own}: {said}" for own, name in (parameters or {}).items() if (said := _said(tool, name))]
    parts += ["\n".join(["Args:", *lines])] if lines else []
    return "\n\n".join(part for part in parts if part)


def _said(tool: Tool, name: str) -> str:
    described = tool.input_schema["properties"][name]
    said = described.get("description") if isinstance(described, Mapping) else None
    return one_line(said, LINE_CHARS) if isinstance(said, str) else ""
