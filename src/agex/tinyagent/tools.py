"""Tools: host functions that an agent's code calls by name."""

from __future__ import annotations

import contextlib
import inspect
import keyword
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, overload

from agex.agent.execution.task_bridge import without_run
from agex.agent.registration import is_async
from agex.contract import TaskSignature, Unresolved
from agex.contract.annotations import Scope
from agex.errors import DefinitionError, TaskError, ToolDefinitionError
from agex.sandbox.runtime.context import call_serving

__all__ = ["NAMES", "Tool", "checked_tools", "guest_function", "tool"]

NAMES = frozenset(
    """
    commit dir explore fail final_answer help memory observe open print recall store uncertain
    """.split()
)
"""Names that an agent's code already has."""


class Tool:
    """A host function with the name and types by which an agent's code calls it.

    Calling it calls the function. Made by `tool`.

    Attributes:
        fn: the function.
        name: its name in the agent's code.
        doc: its description for the model.
        signature: its parameters and their types.
        is_async: whether a call returns an awaitable.
    """

    def __init__(self, fn: FunctionType, name: str, localns: Mapping[str, Any] | None = None) -> None:
        self.fn = fn
        self.name = name
        self.doc = inspect.getdoc(fn) or ""
        self.signature = inspect.signature(fn)
        self.is_async = is_async(fn)
        self.__name__ = name
        self.__doc__ = fn.__doc__
        self.__signature__ = self.signature
        self._contract = TaskSignature(fn, self.signature, Scope.of_function(fn, localns))
        for parameter in self.signature.parameters:
            with contextlib.suppress(Unresolved):  # it names what is defined later: the first call tells
                self._contract.checker(parameter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as it is."""
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}{self.signature}>"

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call, checked against their types.

        Raises:
            InputError: they do not fit; it is a ``TypeError``.
        """
        return self._contract.arguments(self._contract.bind(args, kwargs))


@overload
def tool(fn: Callable[..., Any], /) -> Tool: ...


@overload
def tool(*, name: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(fn: Any = None, /, *, name: str | None = None) -> Any:
    """Make a tool of a function. Every parameter and the result need a type. Also a decorator.

    Args:
        fn: a plain function.
        name: what the agent's code calls it; its own name by default.

    Raises:
        ToolDefinitionError: it is no plain function, a type is missing, or the name cannot be used.
    """
    frame = inspect.currentframe()
    localns = frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}
    if fn is None:
        return lambda fn: _made(fn, name, localns)
    return _made(fn, name, localns)


def _made(fn: Any, name: str | None, localns: Mapping[str, Any]) -> Tool:
    if not isinstance(fn, FunctionType):
        raise ToolDefinitionError(
            f"@tool takes a plain function, not {fn!r:.100}; wrap it: def name(...): ..."
        )
    name = name or fn.__name__
    _require_name(name)
    _require_types(fn)
    if not inspect.getdoc(fn):
        text = f"Tool {name!r} has no docstring: the model will not know what it is for"
        warnings.warn(text, stacklevel=3)
    try:
        return Tool(fn, name, localns)
    except DefinitionError as error:
        raise ToolDefinitionError(f"Tool {name!r} cannot be used: {error}") from error


def _require_name(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise ToolDefinitionError(f"{name!r} cannot be a tool's name; give another: @tool(name='lookup').")
    if name in NAMES:
        raise ToolDefinitionError(
            f"The agent's code has a {name!r} of its own; give the tool another name: @tool(name=...)."
        )


def _require_types(fn: FunctionType) -> None:
    signature = inspect.signature(fn)
    for parameter in signature.parameters.values():
        if parameter.annotation is inspect.Parameter.empty:
            raise ToolDefinitionError(
                f"Missing type hint for parameter {parameter.name!r} in {fn.__name__}; "
                f"write {parameter.name}: int, or another type."
            )
    if signature.return_annotation is inspect.Signature.empty:
        raise ToolDefinitionError(
            f"Missing return type annotation for {fn.__name__}; write -> str, or another type."
        )


def checked_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the tools, if an agent can have them.

    Raises:
        ToolDefinitionError: one is no tool, is async, or has the name of another.
    """
    known: dict[str, Tool] = {}
    for each in tools:
        if not isinstance(each, Tool):
            raise ToolDefinitionError(f"Invalid tool: {each!r:.100}. Use the @tool decorator.")
        if each.is_async:
            raise ToolDefinitionError(
                f"TinyCodeAgent does not support async tools: {each.name!r}. Write it with def; "
                "an async task of an agex.Agent can call async functions."
            )
        if each.name in known:
            raise ToolDefinitionError(
                f"Duplicate tool name {each.name!r} detected. Existing tool: {known[each.name]!r}, "
                f"conflicting tool: {each!r}. Each tool must have a unique name."
            )
        known[each.name] = each
    return tuple(known.values())


def guest_function(tool: Tool, called: Callable[[Tool], None]) -> Callable[..., Any]:
    """Return the function that stands for a tool in the agent's code; it checks its arguments.

    The audit hook permits everything while the tool itself runs, because the tool is host code. Its printed
    text is part of the step's output, and its time is part of the step's time.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        called(tool)
        args, kwargs = tool.bind(args, kwargs)
        try:
            return call_serving(tool.fn, *args, **kwargs)
        except TaskError as error:
            failure = error
        raise without_run(failure)  # not in the handler: it would be the error's ``__context__``

    call.__name__ = call.__qualname__ = tool.name
    call.__doc__ = tool.doc
    call.__signature__ = tool.signature  # type: ignore[attr-defined]  # what help() reads
    return call
