"""Carrying out the effects of the loop, with blocking calls or with ``await``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from agex.agent.call.call import Call
from agex.agent.call.events import CancelledEvent, ErrorEvent
from agex.agent.call.host_errors import faults
from agex.agent.loop.loop import Ask, Commit, Effect, Emit, Execute, Loop, Observation, Plan, Wait
from agex.agent.loop.model_requests import aask, ask
from agex.agent.loop.telemetry import action_span
from agex.errors import TaskCancelled
from agex.models.actions import Action
from agex.models.base import Model, ModelError

__all__ = ["ActionRunner", "adrive", "drive"]


class ActionRunner(Protocol):
    """Runs actions, in this thread or without blocking the event loop."""

    def run(self, action: Action, turn: int) -> Observation: ...

    async def arun(self, action: Action, turn: int) -> Observation: ...


@dataclass(frozen=True)
class _Done:
    value: Any


def drive(loop: Loop[Any], plan: Plan, call: Call, models: Sequence[Model], runner: ActionRunner) -> Any:
    """Run *loop* to its end with blocking calls; return its value. *models* are those of the plan."""
    effect = _advance(loop, None)
    while not isinstance(effect, _Done):
        try:
            call.check()
            if isinstance(effect, Ask | Execute | Wait):
                call.pass_gate(begins=True)
            answer = _perform(effect, plan, call, models, runner)
        except ModelError as error:
            effect = _fail(loop, error)
        except (TaskCancelled, KeyboardInterrupt) as error:
            call.tell(plan.event(CancelledEvent, 0, message=str(error) or "interrupted").event)
            raise
        else:
            effect = _advance(loop, answer)
    return effect.value


def _perform(effect: Effect, plan: Plan, call: Call, models: Sequence[Model], runner: ActionRunner) -> Any:
    match effect:
        case Ask(request, turn):
            return ask(
                models[effect.model], request, call.tokens(plan.agent, plan.task, turn), call, effect.seconds
            )
        case Execute(action, turn):
            with action_span(plan, action, turn) as record, _journalled(call, effect):
                try:
                    return record(runner.run(action, turn))
                finally:
                    for fault in faults(call):
                        call.tell(plan.event(ErrorEvent, turn, **fault).event)
        case Emit(event):
            return call.tell(event)
        case Commit(turn):
            _advance_journal(call, effect)
            return call.settle(f"{plan.task}: turn {turn}")
        case Wait(seconds):
            return call.wait(seconds)


async def adrive(
    loop: Loop[Any], plan: Plan, call: Call, models: Sequence[Model], runner: ActionRunner
) -> Any:
    """Run *loop* to its end without blocking the event loop; return its value."""
    effect = _advance(loop, None)
    while not isinstance(effect, _Done):
        try:
            call.check()
            if isinstance(effect, Ask | Execute | Wait):
                call.pass_gate(begins=True)
            answer = await _aperform(effect, plan, call, models, runner)
        except ModelError as error:
            effect = _fail(loop, error)
        except (TaskCancelled, asyncio.CancelledError) as error:
            await call.atell(plan.event(CancelledEvent, 0, message=str(error) or "cancelled").event)
            raise
        else:
            effect = _advance(loop, answer)
    return effect.value


async def _aperform(
    effect: Effect, plan: Plan, call: Call, models: Sequence[Model], runner: ActionRunner
) -> Any:
    match effect:
        case Ask(request, turn):
            return await aask(
                models[effect.model], request, call.tokens(plan.agent, plan.task, turn), effect.seconds
            )
        case Execute(action, turn):
            with action_span(plan, action, turn) as record, _journalled(call, effect):
                try:
                    return record(await runner.arun(action, turn))
                finally:
                    for fault in faults(call):
                        await call.atell(plan.event(ErrorEvent, turn, **fault).event)
        case Emit(event):
            return await call.atell(event)
        case Commit(turn):
            _advance_journal(call, effect)
            return await call.asettle(f"{plan.task}: turn {turn}")
        case Wait(seconds):
            return await asyncio.sleep(seconds)


@contextmanager
def _journalled(call: Call, effect: Execute) -> Iterator[None]:
    """Let the journal of a run know that an action begins, and that it is over."""
    journal = call.journal
    if journal is not None:
        journal.begin_action(effect.action, effect.turn, effect.progress)
    yield
    if journal is not None:
        journal.end_action()


def _advance_journal(call: Call, effect: Commit) -> None:
    if call.journal is not None:
        call.journal.advance(effect.turn, effect.progress)


def _advance(loop: Loop[Any], answer: Any) -> Effect | _Done:
    try:
        return loop.send(answer)
    except StopIteration as stop:
        return _Done(stop.value)


def _fail(loop: Loop[Any], error: ModelError) -> Effect | _Done:
    try:
        return loop.throw(error)
    except StopIteration as stop:
        return _Done(stop.value)
