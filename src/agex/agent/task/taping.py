"""A call of a task under the tape that is on, if one is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agex.agent.base import AgentBase, command_names_of, sandbox_of
from agex.agent.call.call import Call, current_call
from agex.agent.execution.grants import host_classes, taped_sandbox
from agex.agent.loop.loop import Loop
from agex.agent.tape.current_tape import current_tape
from agex.agent.task.means import means_of
from agex.errors import AgexError, ReplayMismatch, TapeError

if TYPE_CHECKING:
    from agex.agent.durable.run_journal import KnownCall
    from agex.agent.registration import Registration
    from agex.agent.tape.taped_run import TapedRun
    from agex.contract import TaskSignature
    from agex.models.base import Model
    from agex.sandbox import Sandbox

__all__ = ["NOT_AGAIN", "Again", "Taping"]


@dataclass(frozen=True, kw_only=True)
class Again:
    """A run that is replayed."""

    models: tuple[Model, ...] = ()
    """Asked in the place of the agent's, where there are some."""
    calls: Mapping[str, KnownCall] | None = None
    """To the world, as they are recorded; None for a run that is not replayed."""


NOT_AGAIN = Again()


class Taping:
    """All that a call gets from outside: by way of the tape that is on, or as it is.

    Args:
        agent: whose task it is.
        signature: of the task.
        inputs: by name.
        sample: which of the samples of a call it is.
        find: returns the agent's models, and why they cannot be asked.
        again: a run that is replayed.

    Attributes:
        models: to be asked.
        unasked: why they cannot be; None where they can.
        inputs: as guest code gets them.
        registrations: what its code may use.

    Raises:
        ReplayMismatch: the tape has no such run.
        TapeError: the run uses what a tape cannot keep.
    """

    def __init__(
        self,
        agent: AgentBase,
        signature: TaskSignature,
        inputs: Mapping[str, Any],
        sample: int | None,
        *,
        find: Callable[[], tuple[tuple[Model, ...], Any]],
        again: Again,
    ) -> None:
        self._signature = signature
        self._sandbox = sandbox_of(agent, signature)
        self.again = again
        self.unasked: Any = None
        self._find = find
        self.run = run = self._begun(agent, inputs, sample)
        if again.models:
            self.models: tuple[Model, ...] = again.models
        elif run is not None:
            self.models = run.models
        else:
            self.models, self.unasked = find()
        self.inputs: Mapping[str, Any] = inputs if run is None else run.inputs
        self.registrations: tuple[Registration, ...] = (
            agent.registrations if run is None else run.registrations
        )

    def _begun(self, agent: AgentBase, inputs: Mapping[str, Any], sample: int | None) -> TapedRun | None:
        tape = current_tape()
        if tape is None:
            return None
        from agex.agent.tape.taped_objects import require_tapeable  # with isolation, which few runs need
        from agex.agent.tape.taped_run import Begins

        require_tapeable(agent.registrations, command_names_of(agent))
        parent = current_call()
        calls: Iterator[Call] = iter(()) if parent is None else parent.above()
        above = next((each.tape for each in calls if each.tape is not None), None)
        begins = Begins(
            agent=agent.name,
            task=self._signature.name,
            means=means_of(agent, agent.registrations, self._signature),
            models=self._found,
            inputs=inputs,
            registrations=agent.registrations,
            sandbox=self._sandbox,
            classes=host_classes(agent.registrations, self._signature),
            parent=above,
            sample=sample if sample is not None or parent is None else parent.sample,
        )
        run: TapedRun = tape.begin(begins)
        return run

    def _found(self) -> tuple[Model, ...]:
        models, self.unasked = self._find()
        return models

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox of the call's code; under a tape one of its own."""
        return self._sandbox if self.run is None else taped_sandbox(self._sandbox, self.run, self._signature)

    @property
    def received(self) -> Callable[[Any], Any] | None:
        """Returns a value of guest code as the host gets it; None where it is the same."""
        return None if self.run is None else self.run.received

    def tried(self, code: str | None) -> str | None:
        """Return the kept code that is tried, which is that of the tape in a replay."""
        return code if self.run is None else self.run.tried(code)

    def observed(self, steps: Loop[Any]) -> Loop[Any]:
        """Return the loop, of whose effects the tape takes note."""
        return steps if self.run is None else self.run.observed(steps)

    @contextmanager
    def ending(self, value: Callable[[], Any]) -> Iterator[None]:
        """Let the tape take note of how the run ended, with *value* where it has one."""
        if self.run is None:
            yield
            return
        try:
            yield
        except (ReplayMismatch, TapeError):
            raise
        except AgexError as error:
            self.run.ended(error=error)
            raise
        self.run.ended(value=value())
