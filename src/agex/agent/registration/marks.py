"""Marks of the calls that act on the world: of a registration as a whole, and of single members of it.

A mark has to hold for each way that guest code has to the member. What could not hold is refused here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from agex.errors import DefinitionError

if TYPE_CHECKING:
    from agex.agent.registration.registration import Registration

__all__ = ["Mark", "acting_members", "mark_of", "marks", "operators_of", "require_marks"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Whether the calls of a function act on the world, and whether a person has to say yes to them."""

    external: bool | Literal["idempotent"] = False
    approval: Any = False


_NOT_MARKED = Mark()


def mark_of(one: Registration, name: str) -> Mark:
    """Return the mark of a member: its own, else that of the registration."""
    spec = one.configure.get(name)
    external = one.external if spec is None or spec.external is None else spec.external
    if not external:
        return _NOT_MARKED
    approval = one.approval if spec is None or spec.approval is None else spec.approval
    return Mark(external=external, approval=approval)


def marked(one: Registration) -> list[str]:
    """Return the members that are marked by themselves, sorted."""
    return sorted(name for name, spec in one.configure.items() if spec.external)


def acting_members(one: Registration) -> list[str]:
    """Return the public methods of a live object that act on the world, sorted."""
    own = {name for base in type(one.target).__mro__[:-1] for name in vars(base)}
    return sorted(name for name in own if not name.startswith("_") and mark_of(one, name).external)


def marks(one: Registration) -> Iterator[Mark]:
    """Yield the marks of a registration, as a whole and of its members."""
    yield Mark(external=one.external, approval=one.approval)
    yield from (mark_of(one, name) for name in one.configure)


def require_marks(one: Registration) -> None:
    """Refuse marks that are none, or that could not hold.

    Raises:
        DefinitionError: it says how to register the thing instead.
    """
    _require(one.external, one.approval, one.name)
    for name, spec in one.configure.items():
        if spec.approval not in (None, False) and not mark_of(one, name).external:
            raise _approval_alone(f"{one.name}.{name}")
        _require(spec.external or False, False if not spec.external else spec.approval or False, name)
        if spec.external is not None:
            _require_kind(one, f"configure= of {name}")
    if one.external:
        _require_kind(one, "external=")


def _require(external: Any, approval: Any, name: str) -> None:
    if external not in (True, False, "idempotent") or not isinstance(external, bool | str):
        raise DefinitionError(f"external={external!r} is none of: True, False, 'idempotent'.")
    if approval not in (True, False) and not callable(approval):
        raise DefinitionError(f"approval={approval!r} is neither True, False nor a predicate of a call.")
    if approval is not False and not external:
        raise _approval_alone(name)


def _approval_alone(name: str) -> DefinitionError:
    return DefinitionError(f"approval= is for calls that act on the world: add external=True to {name!r}.")


def _require_kind(one: Registration, said: str) -> None:
    if one.kind == "task":
        raise DefinitionError(
            f"external= is for functions, and {one.name!r} is a task: its own functions are."
        )
    if one.kind == "object":
        _require_object(one)
    elif one.kind == "module":
        for name in marked(one):
            member = getattr(one.target, name, None)
            if not callable(member) or isinstance(member, type | ModuleType):
                raise DefinitionError(
                    f"external= is for functions, and {name!r} of module {one.name} is none; register what "
                    "acts on the world as functions: agent.fn(f, external=True)."
                )
    elif one.kind == "class":
        raise DefinitionError(
            f"{said} cannot be kept for a class; register functions that use it: agent.fn(f, external=True)."
        )


_ANSWERS = ("__getattr__", "__getattribute__")
_HARMLESS = frozenset("__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __repr__ __str__ __bool__".split())
"""Operators that compare and show."""


def _require_object(one: Registration) -> None:
    from agex.sandbox.classes import host_classes

    class_ = type(one.target)
    if host_classes.is_static(class_):
        raise DefinitionError(
            f"{one.name} is an object of a class that is built into Python, which is no client of anything; "
            f"register functions that use it: agent.fn(f, external=True)."
        )
    if any(name in vars(base) for base in class_.__mro__[:-1] for name in _ANSWERS):
        raise DefinitionError(
            f"{one.name} answers any name that it is asked for, so no mark could hold; register functions "
            "that use it: agent.fn(f, external=True)."
        )
    for name in marked(one):
        _require_method(one, name)
    own = sorted(set(operators_of(class_)) - _HARMLESS)
    if one.external and own:
        raise DefinitionError(
            f"{one.name} has operators, of which calls are not journalled: {', '.join(own)}. Mark its "
            f"methods that act on the world alone: agent.module({one.name}, name={one.name!r}, "
            "configure={'send': MemberSpec(external=True)})."
        )


def operators_of(class_: type) -> list[str]:
    """Return the operators that a class has of its own, or of its bases but for ``object``."""
    from agex.isolation.rpc.host_objects import OPERATORS

    own = {name for base in class_.__mro__[:-1] for name in vars(base)}
    return sorted(name for name in own & OPERATORS if getattr(class_, name) is not None)


def _require_method(one: Registration, name: str) -> None:
    if name.startswith("__") and name.endswith("__"):
        raise DefinitionError(
            f"Python calls {name} of {one.name} by itself, so it cannot be marked; register a function that "
            "does it: agent.fn(f, external=True)."
        )
    member = inspect.getattr_static(type(one.target), name, None)
    function = getattr(member, "__func__", member)
    if isinstance(member, property) or not callable(function):
        raise DefinitionError(
            f"{name} of {one.name} is not a method of its class, so calls of it cannot be journalled; "
            f"register a function: agent.fn({one.name}.{name}, external=True)."
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(
            f"{name} of {one.name} is async; register it as a function: "
            f"agent.fn({one.name}.{name}, external=True)."
        )
