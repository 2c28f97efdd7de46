"""The turns of a task, without any input or output of their own.

:func:`solve` is a generator. It yields effects and is sent their results; a driver carries
them out, synchronously or not, and tests do it by hand.

========================  ==================================================
effect                    what it is answered with
========================  ==================================================
``Ask(request, turn)``    a ``Reply``; or a ``ModelError`` is thrown in
``Execute(action, turn)`` an ``Observation``
``Emit(event)``           nothing
``Commit(turn)``          nothing
``Wait(seconds)``         nothing
========================  ==================================================

Where a task has several models, the first is asked until it fails too often or cannot be asked; then the
next goes on, told in short what was tried.

A turn is: ask the model, execute its actions in order, show it what happened. An action
that fails, or that ends the task, stops those after it. An answer that was cut is not
executed at all. Each executed action is a commit, which holds what was recorded since the
one before; the action that ends the task is committed by its caller, with the end. The
generator returns the task's value or raises a ``TaskError``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import uuid4

from agex.agent.call.budget import Ledger
from agex.agent.call.events import (
    HANDED_OVER,
    ActionEvent,
    ClarifyEvent,
    ErrorEvent,
    Event,
    FailEvent,
    FileEvent,
    OutputEvent,
    SuccessEvent,
    SystemNoteEvent,
)
from agex.agent.loop.task_endings import without_drafts
from agex.agent.rendering.images import MOST_PICTURES
from agex.agent.rendering.output_text import cut_middle
from agex.errors import BudgetExceeded, LLMFail, TaskClarify, TaskFail, TaskTimeout
from agex.models.actions import Action, PythonAction
from agex.models.base import Image, ModelError, Reply, Request, Usage
from agex.models.parser import MOST_ACTIONS
from agex.models.reasoning import spoken
from agex.models.surrogates import encodable

__all__ = [
    "Ask",
    "Clarification",
    "Commit",
    "Conversation",
    "Effect",
    "Emit",
    "Ending",
    "Execute",
    "Failure",
    "Loop",
    "Observation",
    "Plan",
    "Progress",
    "Success",
    "Talk",
    "Tried",
    "Wait",
    "solve",
]

FIRST_BACKOFF = 0.5
"""Seconds before the first retry of a request; doubled for each further one."""
LAST_BACKOFF = 30.0
"""No pause grows past this."""


@dataclass(frozen=True)
class Success:
    """The task has its value, checked."""

    value: Any


@dataclass(frozen=True)
class Failure:
    """The agent called ``task_fail``."""

    message: str


@dataclass(frozen=True)
class Clarification:
    """The agent called ``task_clarify``."""

    message: str


Ending: TypeAlias = Success | Failure | Clarification


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The effect of an action, as the model is shown it."""

    text: str = ""
    images: tuple[Image, ...] = ()
    failed: bool = False
    """The code raised, or the action could not be executed."""
    brief: str = ""
    """The problem alone, in a few lines, where there is one."""
    ending: Ending | None = None
    """How the action ended the task, if it did."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Files that it changed: ``added``, ``modified`` and ``removed``; empty for none."""
    recap: str = ""
    """The content of the workspace, where it changed."""
    results: tuple[str, ...] = ()
    """The text of each action of an answer that had several, in order; `text` has them all."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Ask:
    """Send this request to the model."""

    request: Request
    turn: int
    seconds: float = math.inf
    """How long to wait for the answer."""
    model: int = 0
    """Which of the task's models."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A turn that is not over: the answer, and the effects of those of its actions that were carried out."""

    turn: int
    reply: Reply
    seen: tuple[Observation, ...] = ()


@dataclass(frozen=True)
class Execute:
    """Carry out this action where the task runs."""

    action: Action
    turn: int
    progress: Progress | None = field(default=None, compare=False, repr=False)
    """The turn before this action; None before the first turn."""


@dataclass(frozen=True)
class Emit:
    """Record this event and tell the handlers."""

    event: Event


@dataclass(frozen=True)
class Commit:
    """Keep what the last action did, and what was recorded."""

    turn: int
    progress: Progress | None = field(default=None, compare=False, repr=False)
    """The turn after that action; None before the first turn."""


@dataclass(frozen=True)
class Wait:
    """Let this many seconds pass."""

    seconds: float


Effect: TypeAlias = Ask | Execute | Emit | Commit | Wait
T = TypeVar("T")
Loop: TypeAlias = Generator[Effect, Any, T]
E = TypeVar("E", bound=Event)
Tried: TypeAlias = tuple[Reply, Observation]
"""A turn: an answer, and what the model was shown of its effect."""


class Conversation(Protocol):
    """The requests to a model, turn by turn; one implementation for each prompt style.

    ``request`` gives the request of a turn. ``add`` takes in an answer and what the model is
    shown of its effect; ``answered`` what the caller says to its question.
    """

    def request(self, turn: int, turns_left: int) -> Request: ...

    def add(self, reply: Reply, seen: Observation) -> None: ...

    def answered(self, text: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a task that the loop needs."""

    agent: str
    task: str
    models: tuple[str, ...] = ("",)
    """The models to ask, one after the other: ``"provider:name"``."""
    escalate_after: int = 2
    """Failed turns of a model before the next one is asked."""
    max_iterations: int = 10
    """Turns."""
    llm_retries: int = 2
    """How often a request that may succeed later is repeated."""
    llm_timeout: float = 120.0
    """Seconds to wait for one answer, and at most before a request is repeated."""
    actions: tuple[str, ...] = ("python_action",)
    """The actions offered; any other is refused and the model is told."""
    max_actions: int = MOST_ACTIONS
    """Of one reply; those after them are not carried out."""
    output_chars: int = 20_000
    """Characters that the actions of one reply show together."""
    endings: tuple[str, ...] = ("task_success", "task_fail", "task_clarify")
    """The functions that end the task."""
    ends_by_function: bool = True
    """Whether code that defines a function of the task's name ends it."""
    kept_code: str | None = None
    """Code that solved this task before: tried first, before any model is asked."""
    run_id: str = field(default_factory=lambda: uuid4().hex)
    sample: int | None = None
    """Which of several runs of one call it is, from 1, or belongs to."""

    def event(self, kind: type[E], turn: int, **fields: Any) -> Emit:
        """Return the effect that records an event of this task."""
        named: dict[str, Any] = {"agent": self.agent, "task": self.task, "run_id": self.run_id}
        return Emit(kind(**named, sample=self.sample, turn=turn, **fields))


@dataclass
class Talk:
    """The conversation with the model that is asked now, and the turns that led to it."""

    conversation: Conversation
    successor: Callable[[int, Sequence[Tried]], Conversation] | None = None
    """Makes the conversation with a further model, out of what was tried before."""
    model: int = 0
    failed: int = 0
    """Turns of this model that failed."""
    tried: list[Tried] = field(default_factory=list)
    kept_failure: str | None = None
    """Why the kept code did not solve the task; None where it was not tried, or did."""


def solve(
    plan: Plan,
    talk: Talk,
    ledger: Ledger,
    *,
    turn: int = 0,
    last_turn: int | None = None,
    progress: Progress | None = None,
) -> Loop[Any]:
    """Run a task's turns to its end.

    Args:
        plan: the task.
        talk: what the model is told.
        ledger: what it may spend.
        turn: the last turn that is over, of a task that goes on; the turns are counted on.
        last_turn: the last one that it may take; as many as the plan has, from here, if not given.
        progress: the turn that was not over when the task stopped.

    Returns:
        The value of the task.

    Raises:
        TaskFail: the agent gave up.
        TaskClarify: the agent needs an answer.
        TaskTimeout: the turns are used up, or (BudgetExceeded) the budget is.
        LLMFail: the model could not be asked.
    """
    ending = (yield from _try_kept_code(plan, talk)) if plan.kept_code is not None and turn == 0 else None
    last = ""
    end = turn + plan.max_iterations if last_turn is None else last_turn
    while ending is None:
        if turn >= end and progress is None:
            late = TaskTimeout(_out_of_turns(plan, last))
            yield plan.event(ErrorEvent, turn, message=late.message, error="TaskTimeout")
            raise late
        turn += 1
        if progress is None:
            reply = yield from _answer(plan, talk, ledger, turn, end - turn)
            progress = Progress(turn=turn, reply=reply)
        reply = progress.reply
        ending, shown = yield from _act(plan, progress)
        progress = None
        last = shown.text if shown.failed else ""
        talk.conversation.add(reply, shown)
        talk.tried.append((reply, shown))
        talk.failed += shown.failed
        if ending is None and talk.failed >= plan.escalate_after and turn < end and _has_next(plan, talk):
            yield from _escalate(plan, talk, turn, f"failed {_turns(talk.failed)}")
    return (yield from _conclude(plan, ending, turn))


def _answer(plan: Plan, talk: Talk, ledger: Ledger, turn: int, turns_left: int) -> Loop[Reply]:
    """Ask for the actions of a turn; a model that cannot be asked is followed by the next."""
    while True:
        request = _sendable(plan, talk.conversation.request(turn, turns_left))
        try:
            return (yield from _ask(plan, request, ledger, turn, talk.model))
        except LLMFail:
            if not _has_next(plan, talk):
                raise
            yield from _escalate(plan, talk, turn, "cannot be asked")


def _has_next(plan: Plan, talk: Talk) -> bool:
    return talk.successor is not None and talk.model + 1 < len(plan.models)


def _escalate(plan: Plan, talk: Talk, turn: int, why: str) -> Loop[None]:
    """Hand the task over to the next model."""
    assert talk.successor is not None
    before = plan.models[talk.model]
    talk.model, talk.failed = talk.model + 1, 0
    talk.conversation = talk.successor(talk.model, talk.tried)
    note = f"{HANDED_OVER}{plan.models[talk.model]}, because {before} {why}."
    yield plan.event(SystemNoteEvent, turn, message=note)


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


def _try_kept_code(plan: Plan, talk: Talk) -> Loop[Ending | None]:
    kept = PythonAction(code=plan.kept_code or "")
    observation: Observation = yield Execute(kept, 0, Progress(turn=0, reply=Reply(actions=(kept,))))
    if observation.files:
        yield plan.event(FileEvent, 0, **observation.files)
    if isinstance(observation.ending, Success):
        note = "Solved by the code kept from an earlier call; no model was asked."
        yield plan.event(SystemNoteEvent, 0, message=note)
        return observation.ending
    talk.kept_failure = observation.text or "it ended the task without a value"
    note = "The code kept from an earlier call did not solve this one; the model is asked."
    yield plan.event(SystemNoteEvent, 0, message=f"{note}\n{observation.text}".strip())
    return None


def _ask(plan: Plan, request: Request, ledger: Ledger, turn: int, model: int) -> Loop[Reply]:
    retries = 0
    while True:
        yield from _within_budget(plan, turn, ledger.reserve)
        started = ledger.seconds
        try:
            # A little more than is left, so that the budget is used up when the wait is over.
            limit = min(plan.llm_timeout, ledger.seconds_left + 0.01)
            reply = _readable((yield Ask(request, turn, limit, model)))
        except ModelError as error:
            yield from _within_budget(plan, turn, ledger.settle, Usage(requests=1))
            if ledger.seconds_left <= 0:
                yield from _within_budget(plan, turn, ledger.admit)
            again = error.retryable and retries < plan.llm_retries and not _asks_too_much(plan, error)
            yield plan.event(
                ErrorEvent, turn, message=encodable(str(error)), error=type(error).__name__, recoverable=again
            )
            if not again:
                provider, _, name = plan.models[model].partition(":")
                told = _no_reply(plan, plan.models[model], error, retries)
                raise LLMFail(told, provider, name, retries) from error
            yield Wait(min(_pause(error, retries), ledger.seconds_left + 0.01))
            retries += 1
        else:
            yield plan.event(
                ActionEvent,
                turn,
                actions=reply.actions,
                text=reply.text,
                truncated=reply.truncated,
                usage=reply.usage,
                model=plan.models[model],
                seconds=ledger.seconds - started,
            )
            yield from _within_budget(plan, turn, ledger.settle, reply.usage)
            return reply


def _sendable(plan: Plan, request: Request) -> Request:
    """Return the request as it can be sent; primers, inputs and answers may hold half a character."""
    messages = tuple(replace(one, content=encodable(one.content)) for one in request.messages)
    return replace(request, messages=messages, max_actions=plan.max_actions, sample=plan.sample or 0)


def _readable(reply: Reply) -> Reply:
    """Return the reply as it can be recorded, shown and sent back."""
    actions = tuple(
        one.model_copy(update=fields) if (fields := _encodable_fields(one)) else one for one in reply.actions
    )
    notes = tuple(map(encodable, reply.notes))
    return replace(reply, text=encodable(reply.text), actions=actions, notes=notes)


def _encodable_fields(action: Action) -> dict[str, str]:
    """Return those fields of an action that UTF-8 cannot hold, as it can."""
    fields = action.model_dump(exclude={"kind"})
    return {name: encodable(text) for name, text in fields.items() if encodable(text) != text}


def _within_budget(plan: Plan, turn: int, book: Callable[..., None], *args: Usage) -> Loop[None]:
    try:
        book(*args)
    except BudgetExceeded as error:
        yield plan.event(ErrorEvent, turn, message=error.message, error="BudgetExceeded")
        raise


def _act(plan: Plan, progress: Progress) -> Loop[tuple[Ending | None, Observation]]:
    reply, turn = progress.reply, progress.turn
    refusal = _refusal(plan, reply)
    if refusal is not None:
        yield plan.event(OutputEvent, turn, text=refusal, error=True)
        return None, Observation(text=refusal, failed=True, brief=refusal)
    actions, notes = _counted(plan, reply)
    seen = list(progress.seen)
    for note in notes if not seen else ():
        yield plan.event(SystemNoteEvent, turn, message=note)
    for number, action in enumerate(actions[len(seen) :], start=len(seen) + 1):
        if seen and seen[-1].failed:
            break
        observation: Observation = yield Execute(action, turn, progress)
        skipped = len(actions) - number
        if observation.failed and skipped:
            observation = replace(observation, text=f"{observation.text}\n{_not_executed(skipped)}")
        if observation.ending is None or observation.text:
            yield plan.event(
                OutputEvent,
                turn,
                text=observation.text,
                images=observation.images,
                error=observation.failed,
                seconds=observation.seconds,
            )
        if observation.files:
            yield plan.event(FileEvent, turn, **observation.files)
        seen.append(observation)
        progress = replace(progress, seen=tuple(seen))
        if observation.ending is None:
            yield Commit(turn, progress)
        if observation.failed or observation.ending is not None:
            break
    shown = _together(seen, (*reply.notes, *notes), plan.output_chars)
    return seen[-1].ending, replace(shown, results=_results(reply, actions, seen, shown, plan.output_chars))


def _results(
    reply: Reply, actions: Sequence[Action], seen: list[Observation], shown: Observation, limit: int
) -> tuple[str, ...]:
    """Return the result of each action of a reply, for a provider that wants each call answered."""
    if len(reply.actions) < 2:
        return ()
    space = _fair_share([len(one.text) for one in seen], limit)
    texts = {id(action): cut_middle(one.text, space) for action, one in zip(actions, seen, strict=False)}
    results = [texts.get(id(action), "Not executed.") for action in reply.actions]
    notes = shown.text[len(_numbered(seen, limit)) :].strip()
    return (*results[:-1], f"{results[-1]}\n{notes}".strip())


def _counted(plan: Plan, reply: Reply) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    """Return the actions of a reply that are carried out, and what is to be said of the others."""
    actions, notes = reply.actions[: plan.max_actions], []
    if len(actions) < len(reply.actions):
        notes.append(f"Only the first {len(actions)} of {len(reply.actions)} actions were executed.")
    function = plan.task if plan.ends_by_function else None
    counted = without_drafts(actions, plan.endings, function)
    if len(counted) < len(actions):
        notes.append("Several blocks of one answer each ended the task: only the last of them counts.")
    return counted, tuple(notes)


def _refusal(plan: Plan, reply: Reply) -> str | None:
    """Return why nothing of this reply may be executed, or None."""
    notes = "".join(f"\n{note}" for note in reply.notes)
    if reply.truncated:
        return (
            "Your answer was cut off at the output limit, so nothing of it was executed. "
            f"Answer again, shorter: take a smaller step.{notes}"
        )
    unknown = sorted({action.kind for action in reply.actions} - set(plan.actions))
    if unknown:
        return (
            f"{', '.join(unknown)} is not available here, so nothing of your answer was executed. "
            f"Available: {', '.join(plan.actions)}.{notes}"
        )
    if not reply.actions:
        return (
            f"{_without_code(reply.text)} Answer with Python code in one block:\n```python\n...\n```{notes}"
        )
    return None


def _without_code(text: str) -> str:
    if not text.strip():
        return "Your answer was empty."
    if not spoken(text).strip():
        return "Your answer was only reasoning, which is never executed."
    return "Your answer contained no code to run."


def _not_executed(count: int) -> str:
    return (
        "The action after this one was not executed."
        if count == 1
        else f"The {count} after this were not executed."
    )


def _together(seen: list[Observation], notes: tuple[str, ...], limit: int) -> Observation:
    """Return one observation that shows all of them, in about as many characters as one may show."""
    images = tuple(image for one in seen for image in one.images)
    if len(images) > MOST_PICTURES:
        notes = (*notes, f"Only the first {MOST_PICTURES} of {len(images)} pictures are shown.")
    return Observation(
        text="\n".join([_numbered(seen, limit), *notes]).strip(),
        images=images[:MOST_PICTURES],
        failed=any(one.failed for one in seen),
        brief=seen[-1].brief,
        recap=next((one.recap for one in reversed(seen) if one.recap), ""),
    )


def _numbered(seen: list[Observation], limit: int) -> str:
    if len(seen) == 1:
        return seen[0].text
    space = _fair_share([len(one.text) for one in seen], limit)
    return "\n".join(
        f"[action {number}]\n{cut_middle(one.text, space)}" for number, one in enumerate(seen, 1)
    )


def _fair_share(lengths: list[int], limit: int) -> int:
    """Return how long each text may be for all to fit; what short ones leave goes to the long ones."""
    space = limit
    for position, length in enumerate(sorted(lengths)):
        share = space // (len(lengths) - position)
        if length > share:
            return share
        space -= length
    return limit


def _conclude(plan: Plan, ending: Ending, turn: int) -> Loop[Any]:
    match ending:
        case Success(value):
            yield plan.event(SuccessEvent, turn, result=value)
            return value
        case Failure(message):
            yield plan.event(FailEvent, turn, message=message)
            raise TaskFail(message)
        case Clarification(message):
            yield plan.event(ClarifyEvent, turn, message=message)
            raise TaskClarify(message)


def _asks_too_much(plan: Plan, error: ModelError) -> bool:
    """Return whether the provider asks for a longer pause than is waited for an answer."""
    return error.retry_after is not None and error.retry_after > plan.llm_timeout


def _pause(error: ModelError, retries: int) -> float:
    """Return the pause before the next retry: what the provider asked for, if it did."""
    asked = error.retry_after
    return _backoff(retries) if asked is None or math.isnan(asked) else max(0.0, asked)


def _backoff(retries: int) -> float:
    """Return the pause before the next retry: exponential, with half of it left to chance."""
    pause = min(FIRST_BACKOFF * 2.0**retries, LAST_BACKOFF)
    return pause * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads load, it guards nothing


def _no_reply(plan: Plan, model: str, error: ModelError, retries: int) -> str:
    times = f" after {retries} retr{'y' if retries == 1 else 'ies'}" if retries else ""
    told = f"{model} gave no usable reply{times}: {error}"
    if error.retryable and _asks_too_much(plan, error):
        asked, limit = error.retry_after, plan.llm_timeout
        told += f" It asks to wait {asked:g} s, which is longer than llm_timeout={limit:g} s."
    return encodable(told)


def _out_of_turns(plan: Plan, last: str) -> str:
    message = f"Task {plan.task!r} was not finished in {plan.max_iterations} turns (max_iterations)."
    return f"{message} The last error was:\n{last}" if last else message
