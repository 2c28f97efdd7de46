"""Calls of a task in other processes and on other machines, through any executor.

The task and the item of a call are packed here, before anything is sent, so that what cannot go says
so by name. What comes back is the value, or the error, and in either case what was used. The
executor's workers are trusted as this process is. Guest objects in them are not, so nothing is packed
whose packing would run guest code.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import cloudpickle

from agex.agent.call.budget import Ledger
from agex.agent.call.call import current_call, host_time, payer, sharing
from agex.agent.tape.current_tape import current_tape
from agex.contract import short_repr
from agex.contract.real_types import class_name, is_subclass
from agex.errors import AgexError, BudgetExceeded, DefinitionError, WorkerLost
from agex.models.base import Usage
from agex.sandbox.runtime import provenance as origins
from agex.state import State

if TYPE_CHECKING:
    from agex.agent.task.task import AnyTask

__all__ = ["Calls", "Ended", "run_elsewhere"]

_Task = Any
"""A task of either kind."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The result of a call in another process."""

    value: bytes | None = None
    error: bytes | None = None
    usage: Usage


def run_elsewhere(task: bytes, given: bytes, _call: str) -> Ended:
    """Run a task with an item in this process for another one.

    Args:
        task: the task, packed.
        given: the item and the state of its call, packed.
        _call: a name that no other call has. An executor may take calls with equal arguments for one
            (Dask does); a model does not answer the same twice.
    """
    try:
        called: _Task = pickle.loads(task)  # noqa: S301 - from the process that gave this one its work
        item, state = pickle.loads(given)  # noqa: S301
    except Exception as error:  # noqa: BLE001 - loading imports and runs whatever the task was made of
        message = (
            f"The task cannot be opened where it was sent to: {type(error).__name__}: {error}. What it uses "
            "must be installed and importable there, in the same versions as here."
        )
        return Ended(error=_outgoing(DefinitionError(message)), usage=Usage())
    opened = [each for each in (called.agent.state, called.state, state) if each is not None]
    if state is not None:
        called = called.using(state=state)
    with sharing() as ledger:
        try:
            value = called.run(item).value
            return Ended(value=_outgoing_value(called, value), usage=ledger.used)
        except Exception as error:  # noqa: BLE001 - raised again where the task was called
            return Ended(error=_outgoing(error), usage=ledger.used)
        finally:
            for each in opened:
                each.close()


class Calls:
    """The calls of one map, begun one by one, ended in order.

    Args:
        task: what is called.
        executor: where.
        state: gives the state of each call; None for the task's own.

    Raises:
        DefinitionError: the task cannot be sent to other processes.
    """

    def __init__(
        self, task: AnyTask[..., Any], executor: Executor, state: Callable[[Any], State] | None
    ) -> None:
        if current_tape() is not None:
            raise DefinitionError(
                "A tape is on, and it does not reach the processes of an executor: map in threads instead."
            )
        self._executor = executor
        self._state = state
        self._packed = _for_processes if isinstance(executor, ProcessPoolExecutor) else _packed
        self._ledger = payer()
        with host_time(current_call()):
            self._task = self._packed_task(task if state is None else task.using(state=None))
        self._begun: list[Future[Ended]] = []
        self._booked = 0

    def begin(self, item: Any) -> None:
        """Send an item.

        Raises:
            DefinitionError: it cannot be sent, or its state cannot.
        """
        with host_time(current_call()):
            state = None if self._state is None else self._state(item)
            given = self._packed_item(item, state)
            self._begun.append(self._executor.submit(run_elsewhere, self._task, given, uuid4().hex))

    def futures(self) -> Iterator[Future[Ended]]:
        """Yield what was begun, in order."""
        yield from self._begun

    def lost(self, error: BrokenExecutor) -> WorkerLost:
        """Return the error of a pool whose worker died, with the values of all calls that were over."""
        finished: dict[int, Any] = {}
        for number, future in enumerate(self._begun):
            if not future.done() or future.cancelled() or future.exception() is not None:
                continue
            ended = future.result()
            if number >= self._booked:
                with suppress(BudgetExceeded):  # the next request finds it
                    _charge(self._ledger, ended.usage)
            if ended.value is not None:
                finished[number] = pickle.loads(ended.value)  # noqa: S301 - see _Guarded
        self._booked = len(self._begun)
        return WorkerLost(
            f"A worker of the executor died ({error}). {len(finished)} of {len(self._begun)} calls were over "
            "before; their values are in .finished of this error. Map the other items with a new executor.",
            finished,
        )

    def value(self, ended: Ended) -> Any:
        """Return the value of the next call in order, after booking what it used.

        Raises:
            Exception: what ended the call.
        """
        self._booked += 1
        _charge(self._ledger, ended.usage)
        with host_time(current_call()):
            if ended.error is not None:
                raise pickle.loads(ended.error)  # noqa: S301 - of our own worker
            return pickle.loads(ended.value or b"")  # noqa: S301 - see _Guarded

    def give_up(self) -> None:
        """Drop what has not begun; what is under way is booked once it is over."""
        for future in self._begun[self._booked :]:
            if not future.cancel():
                future.add_done_callback(self._book_late)

    def _book_late(self, future: Future[Ended]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        with suppress(BudgetExceeded):  # the next request finds it
            _charge(self._ledger, future.result().usage)

    def _packed_item(self, item: Any, state: State | None) -> bytes:
        try:
            return self._packed((item, state))
        except Exception as error:
            advice = "Give plain data, or objects of classes at the top level of a module."
            what = f"Item {len(self._begun) + 1} of the map"
            raise self._refusal(
                what, [("the item", item, advice), ("its state", state, "")], error
            ) from error

    def _packed_task(self, task: AnyTask[..., Any]) -> bytes:
        try:
            return self._packed(task)
        except Exception as error:
            raise self._refusal(f"{task!r}", _parts(task), error) from error

    def _refusal(self, what: str, parts: list[tuple[str, Any, str]], error: BaseException) -> DefinitionError:
        """Say which part cannot be packed, why, and what to do."""
        for name, part, advice in parts:
            try:
                self._packed(part)
            except Exception as why:  # noqa: BLE001 - whatever packing it raises is what is looked for
                reason = f"{name} ({class_name(type(part))}): {type(why).__name__}: {why}"
                return DefinitionError(
                    f"{what} cannot be sent to another process, because of {reason} {advice}"
                )
        return DefinitionError(f"{what} cannot be sent to another process: {type(error).__name__}: {error}")


def _parts(task: AnyTask[..., Any]) -> list[tuple[str, Any, str]]:
    """Name what a task is made of, with what to do where it cannot be packed."""
    agent, definition, options = task.agent, task.definition, task.call_options
    function = "Give a function of a module, without objects of this process in it."
    parts = [
        ("its state", task.state, ""),
        ("its agent's state", agent.state, "or task.using(state=None) and an agent without a state"),
        ("its agent's model", agent.model, "Name the model, e.g. model='openai:gpt-5-mini'."),
        *(("a check", one, function) for one in definition.terms.checks),
        *[("choose", one, function) for one in (definition.choose, options.choose) if callable(one)],
        ("on_event", options.on_event, "Leave it out: task.using(on_event=None)."),
        ("on_token", options.on_token, "Leave it out: task.using(on_token=None)."),
    ]
    for one in agent.registrations:
        advice = "Register functions of a module that open it there." if one.kind == "object" else function
        parts.append((f"{one.name!r}, a registered {one.kind}", one, advice))
    return parts


def _charge(ledger: Ledger | None, usage: Usage) -> None:
    if ledger is not None:
        ledger.charge(usage)


# -- packing


class _Guarded:
    """For a pickler: asks no class and no object that an agent wrote how it is packed."""

    def reducer_override(self, obj: Any) -> Any:
        """Refuse what an agent wrote; the rest is the pickler's own."""
        kind = type(obj)
        written = (
            origins.is_guest_class(kind)
            or (is_subclass(kind, type) and origins.is_guest_class(obj))
            or (kind is FunctionType and origins.session_of(obj) is not None)
            or not _attributes(obj).keys().isdisjoint(_HOOKS)
        )
        if written:
            raise pickle.PicklingError(f"{short_repr(obj)} is made of code that the agent wrote.")
        return NotImplemented


class _ByName(_Guarded, pickle.Pickler):
    """Packs functions and classes by their names."""


class _ByValue(_Guarded, cloudpickle.Pickler):  # type: ignore[misc]  # without type information
    """Packs functions and classes of the main module, and those without a module, by what they are."""

    def reducer_override(self, obj: Any) -> Any:
        made = super().reducer_override(obj)
        return cloudpickle.Pickler.reducer_override(self, obj) if made is NotImplemented else made


_HOOKS = frozenset({"__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__"})
"""Attributes that pickle looks up on an object itself, before its class."""


def _attributes(obj: Any) -> dict[str, Any]:
    """Return the attributes that an object holds itself; none for a class."""
    if is_subclass(type(obj), type):
        return {}
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _outgoing(value: Any) -> bytes:
    """Pack an answer, or what stands for an error that cannot be packed."""
    if is_subclass(type(value), AgexError):
        value.run = None  # it has what the task had, which may not be able to go
    try:
        return _packed(value)
    except Exception:  # noqa: BLE001 - it is told in words
        return _packed(AgexError(f"{class_name(type(value))}: {short_repr(value, 500)}"))


def _outgoing_value(task: AnyTask[..., Any], value: Any) -> bytes:
    try:
        return _packed(value)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from being packed
        raise DefinitionError(
            f"What {task!r} returned cannot be sent back: {error}. Annotate what it returns as plain data, a "
            "class of a module, or a Callable, which goes by its source."
        ) from None


def _packed(value: Any, pickler: Any = _ByValue) -> bytes:
    """Pack a value.

    Raises:
        Exception: whatever keeps it from being packed.
    """
    file = io.BytesIO()
    pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def _for_processes(value: Any) -> bytes:
    """Pack for a pool of processes, which import this program's own main module."""
    try:
        return _packed(value, _ByName)
    except Exception:  # noqa: BLE001 - what has no name in a module goes by value, or raises again
        return _packed(value)
