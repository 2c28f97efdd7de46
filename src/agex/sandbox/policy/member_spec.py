"""Settings of one member of a registration."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from agex.errors import DefinitionError

__all__ = ["MemberSpec", "Visibility", "unmarked"]

Visibility: TypeAlias = Literal["high", "medium", "low"]


class MemberSpec(NamedTuple):
    """How one member of a registration differs from the rest of it."""

    visibility: Visibility | None = None
    """How much of it is shown to the agent; None as its owner."""
    docstring: str | None = None
    """Its description for the agent; None for its own docstring."""
    constructable: bool | None = None
    """For a class: whether guest code may make instances; None as its owner."""
    external: bool | Literal["idempotent"] | None = None
    """For an agent: whether its calls act on the world, see ``agent.fn``; None as its owner."""
    approval: Any = None
    """For an agent: whether a person has to say yes to a call, see ``agent.fn``; None as its owner."""


def unmarked(configure: dict[str, MemberSpec]) -> dict[str, MemberSpec]:
    """Refuse marks of calls that act on the world: a policy has no journal of them."""
    for name, spec in configure.items():
        if spec.external is not None or spec.approval is not None:
            raise DefinitionError(
                f"configure= of {name!r} has external= or approval=: calls are journalled for an agent, "
                "so register it there"
            )
    return configure
