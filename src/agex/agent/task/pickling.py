"""Tasks in other processes: what they declare, without what they have open.

A task is pickled by its declaration and its agent by its settings, wherever they were defined. So they
go to an executor of processes or of a cluster; what cannot go there, such as a state in memory, says so.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from agex.contract import TaskSignature

if TYPE_CHECKING:
    from agex.agent.task.task import AnyTask

__all__ = ["Declaration", "rebuilt"]


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The declaration of a task's function, with its annotations resolved."""

    name: str
    qualname: str
    module: str
    doc: str | None
    signature: inspect.Signature
    is_async: bool = False

    @classmethod
    def of(cls, signature: TaskSignature) -> Declaration:
        """Read the declaration of a task.

        Raises:
            DefinitionError: an annotation cannot be resolved.
        """
        function = signature.function
        parameters = [
            one
            if one.annotation is inspect.Parameter.empty
            else one.replace(annotation=signature.checker(one.name).annotation)
            for one in signature.parameters.values()
        ]
        returned = signature.return_annotation if signature.has_return else inspect.Signature.empty
        return cls(
            name=function.__name__,
            qualname=function.__qualname__,
            module=function.__module__,
            doc=function.__doc__,
            signature=signature.signature.replace(parameters=parameters, return_annotation=returned),
            is_async=signature.is_async,
        )

    def function(self) -> FunctionType:
        """Return an empty function that says all of it."""

        def plain(*args: Any, **kwargs: Any) -> Any: ...

        async def awaited(*args: Any, **kwargs: Any) -> Any: ...

        made: Any = awaited if self.is_async else plain
        made.__name__, made.__qualname__, made.__module__ = self.name, self.qualname, self.module
        made.__doc__, made.__signature__ = self.doc, self.signature
        parameters = self.signature.parameters.values()
        said = {one.name: one.annotation for one in parameters} | {"return": self.signature.return_annotation}
        made.__annotations__ = {
            name: each for name, each in said.items() if each is not inspect.Parameter.empty
        }
        function: FunctionType = made
        return function


def rebuilt(kind: type[AnyTask[Any, Any]], *parts: Any) -> AnyTask[Any, Any]:
    """Make a task again of what its pickle holds."""
    agent, declaration, settings, options = parts
    return kind.rebuilt(agent, declaration, settings, options)
