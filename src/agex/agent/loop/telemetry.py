"""Spans by OpenTelemetry's conventions for generative AI: one a task, one an action.

::

    invoke_agent NAME                  a task call
    ├── chat MODEL                     a request, by pydantic-ai's own instrumentation
    └── execute_tool python_action     an action
        └── invoke_agent OTHER         a task that the action called

They are made where the process has a tracer provider (``opentelemetry.trace.set_tracer_provider``)
and cost nothing otherwise. No span carries what was asked, written, computed or said.

Source: OpenTelemetry semantic conventions 1.37, gen-ai agent spans.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from agex.agent.call.call import Call
from agex.agent.loop.loop import Observation, Plan
from agex.errors import TaskCancelled
from agex.models.actions import Action
from agex.models.instrumentation import tracer_provider

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

__all__ = ["action_span", "task_span"]

Recorder: TypeAlias = Callable[[Observation], Observation]
"""Records the effect of an action, and returns it."""


def task_span(plan: Plan, call: Call) -> AbstractContextManager[None]:
    """Trace a task call for the length of the block."""
    tracer = _tracer()
    return nullcontext() if tracer is None else _task_span(tracer, plan, call)


def action_span(plan: Plan, action: Action, turn: int) -> AbstractContextManager[Recorder]:
    """Open a span around an action. The block passes its observation through the yielded recorder."""
    tracer = _tracer()
    return nullcontext(_same) if tracer is None else _action_span(tracer, plan, action, turn)


def _tracer() -> Tracer | None:
    provider = tracer_provider()
    return provider.get_tracer("agex") if provider is not None else None


def _same(observation: Observation) -> Observation:
    return observation


@contextmanager
def _task_span(tracer: Tracer, plan: Plan, call: Call) -> Iterator[None]:
    provider, _, model = plan.models[0].partition(":")
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": plan.agent,
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "agex.task.name": plan.task,
        "agex.run.id": plan.run_id,
    }
    with _span(tracer, f"invoke_agent {plan.agent}", attributes) as span:
        try:
            yield
        finally:
            span.set_attributes(_spent(call))


def _spent(call: Call) -> dict[str, Any]:
    """Return the usage of a call and all it called, by names that no backend adds up a second time."""
    used = call.ledger.used
    spent: dict[str, Any] = {
        "gen_ai.aggregated_usage.input_tokens": used.input_tokens,
        "gen_ai.aggregated_usage.output_tokens": used.output_tokens,
        "agex.requests": used.requests,
    }
    if used.cost is not None:
        spent["operation.cost"] = used.cost
    if call.commit is not None:
        spent["agex.commit"] = call.commit
    return spent


@contextmanager
def _action_span(tracer: Tracer, plan: Plan, action: Action, turn: int) -> Iterator[Recorder]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": action.kind,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": plan.agent,
        "agex.run.id": plan.run_id,
        "agex.turn": turn,
    }
    with _span(tracer, f"execute_tool {action.kind}", attributes) as span:

        def record(observation: Observation) -> Observation:
            span.set_attribute("agex.action.failed", observation.failed)
            if observation.failed:
                _fail(span, "_OTHER")  # the conventions' word for an error of no known type
            return observation

        yield record


@contextmanager
def _span(tracer: Tracer, name: str, attributes: dict[str, Any]) -> Iterator[Span]:
    started = tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    )
    with started as span:
        try:
            yield span
        except (asyncio.CancelledError, TaskCancelled):
            _fail(span, "cancelled")
            raise
        except BaseException as error:
            _fail(span, type(error).__qualname__)
            raise


def _fail(span: Span, kind: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
