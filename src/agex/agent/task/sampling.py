"""Several runs of one task call side by side, of which one is chosen.

Each sample has a fork of the state, with its files, and copies of the inputs. The fork of the chosen one
becomes the state; the others leave nothing but their events in the run. All spend one budget.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agex import values
from agex._interpreter import threads
from agex.agent.base import AgentBase, is_forkable, sandbox_of
from agex.agent.call.budget import Ledger
from agex.agent.call.call import Call, current_call, driven, payer
from agex.agent.call.host_errors import tell_host
from agex.agent.call.options import UNSET, CallOptions
from agex.agent.call.terms import Choose, Definition
from agex.agent.durable.host_calls import Decision
from agex.agent.execution.grants import host_classes
from agex.agent.task.choice import Candidate, chosen, is_decided
from agex.agent.task.host_solutions import HostSolution, models_of
from agex.agent.task.invocation import Invocation
from agex.agent.task.kept_solutions import Keeping, SolvedWith
from agex.agent.task.means import acting
from agex.agent.task.run import Resume, Run, close, own_function, reopen
from agex.agent.task.state_codec import KeptCode
from agex.errors import (
    AgexError,
    CheckError,
    DefinitionError,
    LLMFail,
    ModelNotConfigured,
    StateConflict,
    StateError,
    TaskCancelled,
    TaskClarify,
    TaskError,
    TaskFail,
    TaskTimeout,
)

if TYPE_CHECKING:
    from agex.state import State
    from agex.state.base import Forks

__all__ = ["Sampling"]

_ENDS_ALL = (CheckError, DefinitionError, ModelNotConfigured, TaskCancelled)
"""Errors that no other sample would be spared: mistakes of the host, and its wish to end."""
_TELLING = (TaskFail | TaskClarify, TaskTimeout, LLMFail, TaskError)
"""Of failures, the more telling kinds first."""


@dataclass
class _Sample:
    """One of the runs."""

    number: int
    """From 1; 0 for the run of code kept from an earlier call."""
    invocation: Invocation
    error: Exception | None = None

    @property
    def run(self) -> Run[Any]:
        return self.invocation.record


class Sampling:
    """A call of a task with several samples; it is used like an `Invocation`.

    Args:
        agent: whose task it is.
        definition: the task.
        args, kwargs: the arguments.
        options: what the caller added.
        keeping: returns the kept code that a sample begins with.
        has_kept_code: whether there is some: it is tried once, before any sample.
        host_solution: tried once, before that.
        count: told by what it was solved.
        loop: the event loop of an async task.

    Raises:
        InputError: an argument does not fit.
        ModelNotConfigured: there is no model to ask.
        DefinitionError: an option cannot work here, or runs side by side cannot.
    """

    def __init__(
        self,
        agent: AgentBase,
        definition: Definition,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: CallOptions,
        *,
        keeping: Keeping | None = None,
        has_kept_code: bool = False,
        host_solution: HostSolution | None = None,
        count: Callable[[SolvedWith], None],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        signature = definition.terms.signature
        options.require_usable(in_async_task=signature.is_async)
        self._values = signature.bind(args, kwargs)
        models_of(agent, host_solution)
        self._agent = agent
        self._definition = definition
        self._count: int = definition.samples if options.samples is UNSET else options.samples
        self._choose: Choose = definition.choose if options.choose is UNSET else options.choose
        self._state: State | None = agent.state if options.state is UNSET else options.state
        self._options = replace(
            options, state=None, on_event=None, on_token=None, on_approval=None, budget=None
        )
        self._keeping = keeping
        self._host_solution = host_solution
        self._begins_with_code = has_kept_code or host_solution is not None
        self._count_solved = count
        self._loop = loop
        self._ledger = Ledger(options.budget or agent.budget, parent=payer())
        self.call = Call(
            ledger=self._ledger,
            agent=agent,
            parent=current_call(),
            on_event=options.on_event,
            on_token=options.on_token,
            loop=loop if signature.is_async else None,
            has_samples=True,
        )
        self.call.require_room()
        self._require_possible()
        self._name = signature.name
        self.record: Run[Any] = Run(
            run_id=uuid4().hex, agent=agent.name, task=self._name, state=self._state, call=self.call
        )
        if self._state is not None:
            classes = host_classes(agent.registrations, signature)
            self._state.admit(classes, KeptCode(sandbox_of(agent, signature)))
        self._samples: dict[int, _Sample] = {}
        self._over: list[_Sample] = []
        """Those that ended by themselves, in the order in which they did."""
        self._winner: _Sample | None = None
        self._forks: Forks | None = None
        self._kept: Forks | None = None
        """With the fork of the sample that asked."""

    def _require_possible(self) -> None:
        """Refuse what runs side by side would do several times, or to each other.

        Raises:
            DefinitionError: with the way out.
        """
        name = self._definition.terms.signature.name
        if names := acting(self._agent.registrations):
            raise DefinitionError(
                f"Task {name!r} cannot have {self._count} samples: each would call {', '.join(names)}, which "
                "acts on the world. Call it with samples=1."
            )
        if not is_forkable(self._agent):
            raise DefinitionError(
                f"Task {name!r} cannot have {self._count} samples: they would share one directory of the "
                "host. Use connect_fs(type='virtual') or fs=None, or call it with samples=1."
            )
        if self._state is not None and any(each.state is self._state for each in self.call.above()):
            raise DefinitionError(
                f"Task {name!r} cannot have {self._count} samples here: the task that calls it is at work on "
                "the same state. Give it a state of its own, or samples=1."
            )

    # -- carrying it out -----------------------------------------------------------------------

    def run(self) -> Run[Any]:
        """Carry it out; the calling thread waits."""
        with self._recorded(), self.call.entered():
            if threads.CAN_START:
                self._beside(self._race)
            else:
                self._in_turn()
        return self.record

    async def arun(self) -> Run[Any]:
        """Carry it out without blocking the event loop."""
        with self._recorded(), driven(self.call, self._name), self.call.entered():
            await self._race()
        return self.record

    def _beside(self, work: Callable[[], Any]) -> None:
        """Carry out *work* on an event loop in another thread, and wait for it here."""
        context = contextvars.copy_context()
        raised: list[BaseException] = []

        async def driven_work() -> None:
            with driven(self.call, self._name):
                await work()

        def carry_out() -> None:
            try:
                context.run(asyncio.run, driven_work())
            except BaseException as error:  # noqa: BLE001 - it is raised where the call waits
                raised.append(error)

        thread = threading.Thread(target=carry_out, name=f"agex {self._name}", daemon=True)
        thread.start()
        try:
            thread.join()
        except BaseException:
            self.call.withdraw()
            thread.join()
            raise
        if raised:
            raise raised[0]

    async def _race(self) -> None:
        """Run the samples side by side until the choice is made; cancel those that are left."""
        self._ledger.begin()
        await threads.off_loop(self._begin)
        if not await self._try_kept_code():
            left = {asyncio.ensure_future(self._sampled(number)) for number in range(1, self._count + 1)}
            try:
                while left and not self._is_decided(len(left)):
                    done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                    _taken(done)
                    self._over += sorted((one.result() for one in done), key=lambda one: one.number)
            finally:
                await _cancelled(left)
        await threads.off_loop(self._end)

    def _in_turn(self) -> None:
        """Run the samples one after the other: nothing runs side by side here."""
        self._ledger.begin()
        self._begin()
        numbers = [*([0] if self._begins_with_code else []), *range(1, self._count + 1)]
        for number in numbers:
            sample = self._sample(number)
            try:
                sample.invocation.run()
            except _ENDS_ALL:
                raise
            except Exception as error:  # noqa: BLE001 - another sample may do better
                sample.error = error
            if number == 0 and sample.error is not None:
                self._require_fallback(sample)
                continue
            self._over.append(sample)
            if number == 0 or self._is_decided(self._count - number):
                break
        self._end()

    async def _try_kept_code(self) -> bool:
        """Run the code that solved the task before; return whether it did again."""
        if not self._begins_with_code:
            return False
        sample = await self._sampled(0)
        self._require_fallback(sample)
        if sample.error is None:
            self._over.append(sample)
        return sample.error is None

    def _require_fallback(self, sample: _Sample) -> None:
        """Raise why the function of ``solution=`` failed, where no model is to be asked after it."""
        if sample.error is not None and self._host_solution is not None and not self._host_solution.fallback:
            raise sample.error

    async def _sampled(self, number: int) -> _Sample:
        sample = self._sample(number)
        try:
            await sample.invocation.arun()
        except _ENDS_ALL:
            raise
        except Exception as error:  # noqa: BLE001 - another sample may do better
            sample.error = error
        return sample

    def _sample(self, number: int) -> _Sample:
        """Return one of the runs, ready to begin."""
        state = None if self._forks is None else self._forks.states[number]
        invocation = Invocation(
            self._agent,
            self._definition,
            (),
            {},
            replace(self._options, state=state),
            loop=self._loop,
            sample=number or None,
            run_id=self.record.run_id,
            inputs=self._inputs(),
            keeping=None if self._keeping is None else partial(self._keeping, sample=number),
            host_solution=None if number else self._host_solution,
            only_kept_code=number == 0,
        )
        sample = self._samples[number] = _Sample(number, invocation)
        return sample

    def _inputs(self) -> dict[str, Any]:
        """Return the inputs of one sample: copies where code gets the objects themselves."""
        if self._agent.isolation != "none":
            return self._values
        signature = self._definition.terms.signature
        allow = values.Allow(host_classes(self._agent.registrations, signature))
        return values.copied(self._values, allow=allow, guest=KeptCode(sandbox_of(self._agent, signature)))

    def _begin(self) -> None:
        if self._state is not None:
            self._forks = self._state.forks(self.record.run_id[:8], self._count + 1)

    # -- the choice ----------------------------------------------------------------------------

    @property
    def _candidates(self) -> list[Candidate]:
        return [Candidate(each.number, each.run.value) for each in self._over if each.error is None]

    def _is_decided(self, left: int) -> bool:
        return is_decided(self._choose, self._candidates, left)

    def _end(self) -> None:
        """Choose, and let the state be what the chosen sample made of it."""
        self.record.samples = tuple(
            self._samples[number].run for number in sorted(self._samples) if number > 0
        )
        self._take(self._chosen())
        self._let_go()

    def _chosen(self) -> _Sample:
        """Return the sample whose value is taken.

        Raises:
            TaskError: none has a value, or they agree on none.
            CheckError: the caller's choice failed.
        """
        candidates = self._candidates
        if not candidates:
            raise self._failure()
        try:
            found = chosen(self._choose, candidates)
        except CheckError as error:
            tell_host(f"choose= of task {self._name!r}", error.__cause__ or error)
            raise
        return self._samples[found.sample]

    def _take(self, sample: _Sample) -> None:
        if self._forks is not None:
            try:
                self.call.commit = self._forks.take(sample.number)
            except StateConflict:
                self._let_go(keep=sample.number)  # the error names the branch
                raise
        self._winner = sample

    def _failure(self) -> Exception:
        """Return the most telling failure, which names the others."""
        failed = sorted(self._over, key=lambda one: (_rank(one.error), one.number))
        best, *others = failed
        error = best.error
        assert error is not None
        self._winner = best
        told = "".join(
            f"\nSample {each.number}: {type(each.error).__name__}: {each.error}"
            for each in sorted(others, key=lambda one: one.number)
        )
        if told and isinstance(error, TaskError):
            error.message = f"{error.message}\nThat was sample {best.number} of {len(failed)}.{told}"
            error.args = (error.message, *error.args[1:])
        elif told:
            error.add_note(f"That was sample {best.number} of {len(failed)}.{told}")
        return error

    def _let_go(self, *, keep: int | None = None) -> None:
        """Let go of the forks and of the runs that asked, but for one."""
        for each in self._over:
            if isinstance(each.error, TaskClarify) and each.number != keep:
                each.invocation.give_up()
        forks, self._forks = self._forks, None
        if forks is not None:
            forks.drop(keep=keep)
            self._kept = forks if keep is not None else None

    def _keep_events(self, error: BaseException) -> None:
        """Let the state know of a call that has no value: its events, and nothing that its code made."""
        if self._state is None:
            return
        for event in self.call.events:
            self._state.record(event)
        try:
            self.call.commit = self._state.settle(f"{self._name}: {type(error).__name__}")
        except StateError as unkept:
            error.add_note(f"Its end could not be committed: {unkept}")

    # -- the record ----------------------------------------------------------------------------

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Close the record with the value, or with what is raised."""
        try:
            yield
        except BaseException as error:
            ended = error if not isinstance(error, asyncio.CancelledError) else TaskCancelled("cancelled")
            if self._is_asking(ended):
                self._let_go(keep=self._winner.number if self._winner is not None else None)
            else:
                self._keep_events(ended)
                self._let_go()
            self._close(error=ended)
            if isinstance(ended, AgexError):
                ended.run = self.record
            raise
        assert self._winner is not None
        run = self._winner.run
        self._close(value=run.value, code=own_function(run))
        self._winner.invocation.choose()
        self._count_solved(self._winner.invocation.solved_with())

    def _close(
        self, *, value: Any = None, code: str | None = None, error: BaseException | None = None
    ) -> None:
        self._ledger.pause()
        winner, is_asking = self._winner, self._is_asking(error)
        close(
            self.record,
            value=value,
            code=code,
            error=error,
            resume=Resume(sync=self._go_on, asynchronous=self._ago_on) if is_asking else None,
            sample=None if winner is None else winner.number or None,
        )

    def _is_asking(self, error: BaseException | None) -> bool:
        """Return whether the call can go on with an answer to what one of its samples asked."""
        return isinstance(error, TaskClarify) and self._winner is not None and self._winner.error is error

    # -- after a question ----------------------------------------------------------------------

    def _go_on(self, decision: Decision) -> None:
        """Go on with the sample that asked; the others are over."""
        with self._recorded(), self._reopened() as sample, self.call.entered():
            sample.run.answer(decision.text)
            self._answered(sample)

    async def _ago_on(self, decision: Decision) -> None:
        with (
            self._recorded(),
            self._reopened() as sample,
            driven(self.call, self._name),
            self.call.entered(),
        ):
            await sample.run.aanswer(decision.text)
            await threads.off_loop(lambda: self._answered(sample))

    @contextmanager
    def _reopened(self) -> Iterator[_Sample]:
        sample = self._winner
        assert sample is not None
        reopen(self.record, self.call)
        self._ledger.resume()
        self._forks, self._kept = self._kept, None
        try:
            yield sample
        except TaskClarify as again:
            sample.error = again
            raise

    def _answered(self, sample: _Sample) -> None:
        sample.error = None
        self._take(sample)
        self._let_go()


def _rank(error: Exception | None) -> int:
    return next((rank for rank, kind in enumerate(_TELLING) if isinstance(error, kind)), len(_TELLING))


async def _cancelled(left: Collection[asyncio.Future[_Sample]]) -> None:
    """Cancel samples, and wait until they have ended."""
    for one in left:
        one.cancel()
    if left:
        await asyncio.wait(left)
    _taken(left)


def _taken(ended: Collection[asyncio.Future[_Sample]]) -> None:
    """Take the errors of samples that have ended, or asyncio says, whenever it is, that nobody did."""
    for one in ended:
        if not one.cancelled():
            one.exception()
