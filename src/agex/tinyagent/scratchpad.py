"""The working memory of an agent: its notes for later steps and later runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agex import escaping as printable
from agex.contract import preview

__all__ = ["AgentMemory", "functions_of"]

VALUE_CHARS = 100
"""Of each stored value, where the model is shown it."""
NOTE_CHARS = 500
"""Of each observation and failed approach there."""
SHOWN = 20
"""Entries of each kind there, the last ones; the rest are counted."""


@dataclass(slots=True)
class AgentMemory:
    """Notes by name and in order. They stay until `clear`, from run to run of one agent.

    The agent's code writes to it with ``store``, ``recall``, ``observe`` and ``fail``, and the host
    with the methods of the same names. Values are kept by reference.
    """

    variables: dict[str, Any] = field(default_factory=dict)
    observations: list[str] = field(default_factory=list)
    failed_approaches: list[str] = field(default_factory=list)

    def store(self, name: str, value: Any) -> None:
        """Keep a value under a name."""
        self.variables[_text(name)] = value

    def recall(self, name: str, default: Any = None) -> Any:
        """Return what was stored under a name, or *default*."""
        return self.variables.get(_text(name), default)

    def observe(self, observation: str) -> None:
        """Note something that was found out."""
        self.observations.append(_text(observation))

    def fail(self, approach: str) -> None:
        """Note an approach that did not work, so that it is not tried again."""
        self.failed_approaches.append(_text(approach))

    def clear(self) -> None:
        """Forget everything."""
        self.variables.clear()
        self.observations.clear()
        self.failed_approaches.clear()

    def to_context(self, failed: Iterable[str] = ()) -> str:
        """Return the memory as the model is shown it, bounded; empty if there is nothing in it.

        Args:
            failed: failed approaches that are not part of the memory, shown after those that are.
        """
        stored = [f"{name}: {preview(value, VALUE_CHARS)}" for name, value in list(self.variables.items())]
        sections = (
            ("Stored Values", stored),
            ("Observations", list(self.observations)),
            ("Failed Approaches (avoid these)", [*self.failed_approaches, *failed]),
        )
        shown = ["\n".join([f"### {title}", *_entries(entries)]) for title, entries in sections if entries]
        return "\n\n".join(["## Working Memory", *shown]) if shown else ""


def functions_of(memory: AgentMemory) -> dict[str, Callable[..., Any]]:
    """Return the memory's functions for the agent's code: plain ones, which lead to no owner."""

    def store(name: str, value: Any) -> None:
        memory.store(name, value)

    def recall(name: str, default: Any = None) -> Any:
        return memory.recall(name, default)

    def observe(observation: str) -> None:
        memory.observe(observation)

    def fail(approach: str) -> None:
        memory.fail(approach)

    functions = {each.__name__: each for each in (store, recall, observe, fail)}
    for name, function in functions.items():
        function.__doc__ = getattr(AgentMemory, name).__doc__
    return functions


def _entries(entries: list[str]) -> Iterator[str]:
    hidden = len(entries) - SHOWN
    if hidden > 0:
        yield f"- ({hidden} earlier ones are not shown)"
    for entry in entries[-SHOWN:]:
        yield f"- {printable.hanging(entry[:NOTE_CHARS])}{'...' if len(entry) > NOTE_CHARS else ''}"


def _text(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a note is a text, not {type(value).__name__}")
    return str.__str__(value)  # a subclass of the agent's own may have methods of any kind
