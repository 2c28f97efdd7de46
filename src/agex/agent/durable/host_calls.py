"""A call of an external function, as a person or a function of the host judges it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from agex.errors import DefinitionError

__all__ = ["Approval", "Decision", "HostCall", "with_arguments"]


@dataclass(frozen=True, kw_only=True)
class HostCall:
    """A call that the agent's code wants to make."""

    id: str
    """The run, the turn, the action in it and the number of the call in that: the same when it is resumed."""
    name: str
    """The function, as the agent's code calls it."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None
    """The line in the code of the action; None where the code runs in another process."""
    source: str = ""
    """The text of that line."""

    def __str__(self) -> str:
        from agex.contract import preview

        shown = [preview(value, 200) for value in self.args]
        shown += [f"{name}={preview(value, 200)}" for name, value in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The word of a person to a run that waits."""

    kind: Literal["answer", "approve", "reject"]
    text: str = ""
    """The answer, or why not."""
    arguments: Mapping[str, Any] | None = None
    """Other arguments of the call, by name."""
    call: str | None = None
    """The id of the call that is meant; None for the one that waits."""


Approval: TypeAlias = bool | Callable[[HostCall], bool]
"""Whether a call needs a person's yes; a predicate says so for each call."""


def with_arguments(call: HostCall, function: Any, arguments: Mapping[str, Any] | None) -> HostCall:
    """Return a call with some of its arguments replaced, by the names of the function's parameters.

    Raises:
        DefinitionError: the function takes no such argument.
    """
    if not arguments:
        return call
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*call.args, **call.kwargs)
    except (TypeError, ValueError):
        return replace(call, kwargs={**call.kwargs, **arguments})
    unknown = [name for name in arguments if name not in signature.parameters]
    if unknown:
        raise DefinitionError(
            f"{call.name}() takes no argument {', '.join(map(repr, unknown))}; it has: "
            f"{', '.join(signature.parameters)}."
        )
    bound.arguments.update(arguments)
    return replace(call, args=bound.args, kwargs=bound.kwargs)
