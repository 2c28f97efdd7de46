"""The means of a run, by name: registrations and the place where code runs. It goes on with no others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agex.agent.call.call import Call
from agex.agent.durable.external_functions import journal_above
from agex.agent.registration import Mark, Registration, mark_of
from agex.contract import TaskSignature
from agex.errors import DefinitionError

if TYPE_CHECKING:
    from agex.agent.base import AgentBase

__all__ = ["acting", "acts", "means_of", "require_answer", "require_same"]

_TASK = "the task"
_ISOLATION = "isolation"


def means_of(
    agent: AgentBase, registrations: tuple[Registration, ...], signature: TaskSignature
) -> dict[str, str]:
    """Return the means of a run, each as text by its name."""
    found = {one.name: _described(one) for one in registrations}
    return {**found, _TASK: signature.render(), _ISOLATION: f"{agent.isolation}, {agent.python}"}


def acts(registrations: tuple[Registration, ...]) -> bool:
    """Return whether code may act on the world, by a function of its own or by tasks that it calls."""
    return bool(acting(registrations))


def acting(registrations: tuple[Registration, ...]) -> list[str]:
    """Return the names of functions that act on the world, those of called tasks included."""
    return sorted({one.name for one in _reached(registrations) if one.acts})


def _reached(registrations: tuple[Registration, ...]) -> Iterator[Registration]:
    """Yield what code may use, and what the code of tasks that it calls may."""
    seen: set[int] = set()
    rest = [*registrations]
    while rest:
        one = rest.pop()
        yield one
        if one.kind == "task" and id(one.target) not in seen:
            seen.add(id(one.target))
            rest += one.target.agent.registrations


def require_same(run_id: str, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to go on with a run that began with other means; further ones do no harm.

    Raises:
        DefinitionError: it names those that differ.
    """
    wrong = [
        f"{name} was {then[name]!r} and is {now[name]!r}" if name in now else f"{name} is not registered"
        for name in sorted(then)
        if now.get(name) != then[name]
    ]
    if wrong:
        raise DefinitionError(
            f"Run {run_id} began with other registrations, so it cannot go on with these: {'; '.join(wrong)}."
        )


def require_answer(registrations: tuple[Registration, ...], call: Call) -> None:
    """Refuse functions that need a person's yes where nobody can be asked.

    Raises:
        DefinitionError: nobody can.
    """
    needing = [one.name for one in registrations if one.asks]
    journal = journal_above(call)
    if not needing or (journal is not None and journal.is_durable):
        return
    if any(each.on_approval is not None for each in call.above()):
        return
    raise DefinitionError(
        f"{', '.join(needing)} needs approval, and this run can neither wait nor ask: give the task a "
        "Versioned state, or on_approval=."
    )


def _described(one: Registration) -> str:
    """Return a registration as text that is the same in each process."""
    marks = [*(["external"] if one.external else []), *(["approval"] if one.approval else [])]
    members = sorted(name for name, spec in one.configure.items() if _marks(spec))
    marks += [_marked(name, mark_of(one, name)) for name in members]
    if one.kind in ("function", "task"):
        return " ".join([f"{one.kind}({_parameters(one)})", *marks])
    if one.kind == "object":
        return " ".join([f"object {type(one.target).__module__}.{type(one.target).__qualname__}", *marks])
    home = getattr(one.target, "__module__", None)
    name = getattr(one.target, "__qualname__", None) or getattr(one.target, "__name__", "")
    return " ".join([f"{one.kind} {home + '.' if home else ''}{name}", *marks])


def _marks(spec: Any) -> bool:
    return spec.external is not None or spec.approval is not None


def _marked(name: str, mark: Mark) -> str:
    said = [*(["external"] if mark.external else ["not external"]), *(["approval"] if mark.approval else [])]
    return f"{name}: {' and '.join(said)}"


def _parameters(one: Registration) -> str:
    try:
        return ", ".join(inspect.signature(one.target).parameters)
    except (TypeError, ValueError):  # a builtin need not have a signature
        return "..."
