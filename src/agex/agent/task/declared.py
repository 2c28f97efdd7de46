"""The declaration of a task as other libraries read it: annotations that are types, not texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agex.contract import TaskSignature, Unresolved

__all__ = ["Resolved", "annotations_of", "function_of", "signature_of"]


class Resolved:
    """An attribute of a task that is found when it is asked for: an annotation may name what comes later.

    A class has no such attribute: inspect would take the descriptor itself for a signature.
    """

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, task: Any, owner: type) -> Any:
        if task is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        return self._read(task)


def annotations_of(signature: TaskSignature) -> dict[str, Any]:
    """Return the annotations of a task, resolved where they can be."""
    written = {name: one.annotation for name, one in signature.parameters.items()}
    written["return"] = signature.signature.return_annotation
    given = {name: one for name, one in written.items() if one is not inspect.Parameter.empty}
    return {name: _resolved(signature, name, one) for name, one in given.items()}


def signature_of(signature: TaskSignature) -> inspect.Signature:
    """Return the signature of a task, with its annotations resolved where they can be."""
    found = annotations_of(signature)
    parameters = [
        one.replace(annotation=found[name]) if name in found else one
        for name, one in signature.parameters.items()
    ]
    return signature.signature.replace(
        parameters=parameters, return_annotation=found.get("return", inspect.Signature.empty)
    )


def function_of(task: Any, signature: TaskSignature) -> Callable[..., Any]:
    """Return a function with the declaration of a task, which calls it."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        return task(*args, **kwargs)

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return await task(*args, **kwargs)

    made: Any = awaited if signature.is_async else plain
    function = signature.function
    made.__name__, made.__qualname__ = function.__name__, function.__qualname__
    made.__module__, made.__doc__ = function.__module__, function.__doc__
    made.__annotations__, made.__signature__ = annotations_of(signature), signature_of(signature)
    found: Callable[..., Any] = made
    return found


def _resolved(signature: TaskSignature, name: str, written: Any) -> Any:
    try:
        return signature.checker(name).annotation
    except Unresolved:
        return written
