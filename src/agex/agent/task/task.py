"""Typed functions whose body an agent writes at each call."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from agex.agent.call.budget import Budget
from agex.agent.call.call import OnApproval, OnEvent, OnToken, current_call, host_time
from agex.agent.call.options import UNSET, CallOptions
from agex.agent.call.terms import Choose, Definition, Terms
from agex.agent.durable.solution_entries import Solution
from agex.agent.task.declared import Resolved, annotations_of, function_of, signature_of
from agex.agent.task.host_solutions import HostSolution
from agex.agent.task.invocation import Invocation
from agex.agent.task.kept_solutions import Keeping, SolutionStore, SolvedBy, SolvedWith
from agex.agent.task.pickling import Declaration, rebuilt
from agex.agent.task.replays import Replaying
from agex.agent.task.resumption import Resumption, waiting_for
from agex.agent.task.run import Run, let_replay
from agex.agent.task.sampling import Sampling
from agex.agent.task.solution_terms import terms_of
from agex.contract import TaskSignature
from agex.display import Shown
from agex.errors import DefinitionError
from agex.state import State

if TYPE_CHECKING:
    from agex.agent.base import AgentBase
    from agex.display import Page

__all__ = ["AnyTask", "AsyncTask", "Task"]

P = ParamSpec("P")
R = TypeVar("R")


if TYPE_CHECKING:

    class _Base: ...
else:
    _Base = functools.partial


_ANNOTATIONS = Resolved(lambda task: annotations_of(task.definition.terms.signature))
"""Each class of tasks has it in its own body: to read those of a class without any makes an empty dict there.

pyright takes it for the annotations of the class itself.
"""


class AnyTask(Shown, _Base, Generic[P, R]):
    """The base of sync and async tasks. Safe to call from many threads and coroutines at once.

    To other libraries a task is the function that it was made of: it has its name, module, docstring and
    annotations, resolved, and is a coroutine function where that is one. They find this in a
    ``functools.partial`` of that function, whose call is the task's.

    At the call, these keywords may be added to the function's own: ``state=`` (a ``Live``),
    ``on_event=``, ``on_token=``, ``budget=``, ``on_approval=``, ``samples=`` and ``choose=``. Type-checkers
    see the function's own parameters only; :meth:`using` takes the same keywords in a way they can check.
    """

    def __new__(cls, agent: AgentBase, function: FunctionType, definition: Definition) -> Self:
        return cls._empty(function)

    _INNER = frozenset({
        "args", "call_from_agent", "call_options", "definition", "func", "keywords", "page", "rebuilt",
    })  # fmt: skip
    """Methods for the other rooms and of ``functools.partial``, which no completion is to offer."""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._INNER]

    @classmethod
    def _empty(cls, function: FunctionType) -> Self:
        made: Self = _Base.__new__(cls, function)  # type: ignore[call-arg]  # a partial has one
        return made

    def __init__(self, agent: AgentBase, function: FunctionType, definition: Definition) -> None:
        self.agent = agent
        self.definition = definition
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self._options = CallOptions()
        self._solutions = SolutionStore(self.__name__)
        self.host_solution: HostSolution | None = None
        if definition.solution is not None:
            self.host_solution = HostSolution(
                definition.solution, fallback=definition.fallback, terms=definition.terms
            )

    def using(
        self,
        *,
        state: State | None = UNSET,
        on_event: OnEvent | None = UNSET,
        on_token: OnToken | None = UNSET,
        budget: Budget | None = UNSET,
        on_approval: OnApproval | None = UNSET,
        samples: int = UNSET,
        choose: Choose = UNSET,
    ) -> Self:
        """Return this task with call-time keywords set for all its calls; others stay as they are."""
        options = {
            "state": state,
            "on_event": on_event,
            "on_token": on_token,
            "budget": budget,
            "on_approval": on_approval,
            "samples": samples,
            "choose": choose,
        }
        given, _ = self._options.taken_from({k: v for k, v in options.items() if v is not UNSET})
        function: Any = self.definition.terms.signature.function
        other = self._empty(function)
        vars(other).update(vars(self))
        other._options = given
        return other

    def as_function(self) -> Callable[P, Any]:
        """Return a plain function that calls this task, for a library that takes nothing else."""
        return function_of(self, self.definition.terms.signature)

    __annotations__ = _ANNOTATIONS  # pyright: ignore[reportAssignmentType]
    __signature__ = Resolved(lambda task: signature_of(task.definition.terms.signature))

    @property
    def __globals__(self) -> dict[str, Any]:
        function: Any = self.definition.terms.signature.function
        found: Any = function.__globals__
        return found  # type: ignore[no-any-return]

    @property
    def __defaults__(self) -> tuple[Any, ...] | None:
        function: Any = self.definition.terms.signature.function
        found: Any = function.__defaults__
        return found  # type: ignore[no-any-return]

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        function: Any = self.definition.terms.signature.function
        found: Any = function.__kwdefaults__
        return found  # type: ignore[no-any-return]

    @property
    def state(self) -> State | None:
        """The state that its calls have where the caller gives no other."""
        return self.agent.state if self._options.state is UNSET else self._options.state

    @property
    def call_options(self) -> CallOptions:
        """The options that :meth:`using` has set."""
        return self._options

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it by its declaration, see ``agex.agent.task.pickling``."""
        terms = self.definition.terms
        settings = {
            "primer": self.definition.primer,
            "setup": self.definition.setup,
            "reuse": self.definition.reuse,
            "samples": self.definition.samples,
            "choose": self.definition.choose,
            "solution": self.definition.solution,
            "fallback": self.definition.fallback,
            "checks": terms.checks,
            "examples": terms.examples,
        }
        return rebuilt, (type(self), self.agent, Declaration.of(terms.signature), settings, self._options)

    @classmethod
    def rebuilt(
        cls, agent: AgentBase, declaration: Declaration, settings: dict[str, Any], options: CallOptions
    ) -> Self:
        """Make a task again of what its pickle holds."""
        function = declaration.function()
        own = dict(settings)
        terms = Terms(
            signature=TaskSignature.of(function), checks=own.pop("checks"), examples=own.pop("examples")
        )
        made = cls(agent, function, Definition(terms=terms, **own))
        made._options = options
        return made

    def __repr__(self) -> str:
        return f"<agex task {self.agent.name}.{self.__name__}{self.definition.terms.signature.signature}>"

    def page(self) -> Page:
        from agex.agent.task.pages import task_page

        return task_page(self, self.definition)

    def _invocation(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Invocation | Sampling:
        options, kwargs = self._options.taken_from(kwargs, self.definition.terms.signature.parameters)
        return self._invoke(args, kwargs, options, loop)

    def _invoke(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: CallOptions,
        loop: asyncio.AbstractEventLoop | None,
    ) -> Invocation | Sampling:
        samples = self.definition.samples if options.samples is UNSET else options.samples
        with host_time(current_call()):
            if samples != 1:
                return Sampling(
                    self.agent,
                    self.definition,
                    args,
                    kwargs,
                    options,
                    keeping=self.keeping,
                    has_kept_code=self._begins_with_solution(options),
                    host_solution=self.host_solution,
                    count=self.count,
                    loop=loop,
                )
            made = Invocation(
                self.agent,
                self.definition,
                args,
                kwargs,
                options,
                keeping=self.keeping,
                host_solution=self.host_solution,
                count=self.count,
                loop=loop,
                wait=waiting_for(self, options, {}),
            )
            let_replay(made.record, partial(Replaying, self))
            return made

    def _resumption(
        self, state: State | None, run_id: str | None, inputs: Mapping[str, Any] | None
    ) -> Resumption:
        where = self.state if state is UNSET else state
        return Resumption(self, self._options, where, run_id, inputs or {})

    # -- code that solved it -----------------------------------------------------------------

    @property
    def keeping(self) -> Keeping | None:
        """Return the way for a call to find and keep code; None without ``reuse=True``."""
        if not self.definition.reuse:
            return None
        return partial(self._solutions.begin, terms_of(self.agent, self.definition))

    def _begins_with_solution(self, options: CallOptions) -> bool:
        """Return whether there is kept code for a call that has samples."""
        if not self.definition.reuse:
            return False
        state = self.agent.state if options.state is UNSET else options.state
        self._solutions.begins(state)
        return self._solutions.current(state, terms_of(self.agent, self.definition)) is not None

    def count(self, how: SolvedWith) -> None:
        """Take note that a call was solved, for :attr:`solved_by`."""
        self._solutions.count(how)

    @property
    def solution(self) -> Solution | None:
        """The code that the next call tries first, see ``reuse=True``; None where there is none.

        It is that of the state which ``using(state=...)`` has set, else of the state of the last call,
        else of the agent's; in memory, where that is no ``Versioned``.

        Raises:
            StateCorrupt: the entry in the state is damaged.
        """
        found = self._solutions.current(self._state_of_solution(), terms_of(self.agent, self.definition))
        return None if found is None else found.solution()

    def freeze(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write :attr:`solution` as a Python module for a person to read, and its tests beside it.

        The module has the function with the task's types and docstring, what it needs, and where it comes
        from; ``test_NAME.py`` has the task's examples and checks, and calls that the code solved. Nothing of
        it is run.

        Args:
            path: of the module, or a folder for ``TASK.py``.
            overwrite: whether files that are there may be replaced.

        Returns:
            The path of the module.

        Raises:
            DefinitionError: there is no solution, it needs something that a module on its own has not, or
                a file is there already.
            StateCorrupt: the entry in the state is damaged.
        """
        from agex.agent.task.freezing import freeze  # which few programs do

        state = self._state_of_solution()
        return freeze(self, self._solutions.stored(state), state, path, overwrite=overwrite)

    @property
    def solved_by(self) -> SolvedBy:
        """How many calls of this process were solved by ``solution=``, by kept code and by a model."""
        return self._solutions.counts

    def _state_of_solution(self) -> State | None:
        if self._options.state is not UNSET:
            return self._options.state
        return self._solutions.last_state or self.agent.state


class Task(AnyTask[P, R]):
    """A function whose body the agent writes."""

    __annotations__ = _ANNOTATIONS  # pyright: ignore[reportAssignmentType]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry out the task; return its value.

        Raises:
            InputError: an argument does not fit its annotation.
            ModelNotConfigured: there is no model to ask.
            TaskError: the task ended without a value; see :mod:`agex.errors`.
        """
        return self.run(*args, **kwargs).value  # type: ignore[return-value]  # an ended run has a value

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Like calling it, with the whole record as the result."""
        return self._invocation(args, kwargs).run()

    async def arun(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Like :meth:`run`, without blocking the event loop."""
        return await self._invocation(args, kwargs).arun()

    def start(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Begin the task in a thread of its own; return its run, which can be watched and cancelled.

        Raises:
            InputError: an argument does not fit its annotation.
            ModelNotConfigured: there is no model to ask.
        """
        invocation = self._invocation(args, kwargs)
        context = contextvars.copy_context()
        work = partial(context.run, asyncio.run, _ended(invocation))
        threading.Thread(target=work, name=f"agex {self.__name__}", daemon=True).start()
        return invocation.record

    def resume(
        self,
        *,
        state: State | None = UNSET,
        run_id: str | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Run[R]:
        """Go on with a run whose process ended; return one that waits as it stands, to be answered.

        Args:
            state: the ``Versioned`` state that has it; the task's own if not given.
            run_id: see ``agex.runs(state)``; the only run of this task that can go on if not given.
            inputs: in the place of those that the state could not keep.

        Returns:
            The run: with its value; or waiting, see ``run.error``, ``run.approve()`` and ``run.answer()``.

        Raises:
            StateError: there is no such run, or it has failed.
            StateConflict: somebody else carries it on.
            DefinitionError: it began with other registrations, or an input is missing.
            ReplayMismatch: its code made another call to the world than before.
            TaskError: the task ended without a value.
        """
        found = self._resumption(state, run_id, inputs)
        return found.invocation(found.saved, None).run() if found.goes_on else found.waiting()

    def map(
        self,
        items: Iterable[Any],
        executor: Executor | None = None,
        max_workers: int | None = None,
        *,
        state: Callable[[Any], State] | None = None,
    ) -> list[R]:
        """Call the task with each item as its one argument, several at a time.

        Args:
            items: the arguments.
            executor: where to run; a pool of threads of its own by default. Processes and clusters
                (``distributed.Client.get_executor()``, ``agex.agent.ray.RayExecutor``) are sent the task
                and its agent by their settings; what the calls use there is booked here when they are over.
            max_workers: how many calls at a time, for that pool.
            state: gives the state of each call, by its item, e.g. a branch of one store for each; the
                task's own by default, which they then share.

        Returns:
            The values, in the order of *items*.

        Raises:
            DefinitionError: something that the task has, an item or a value cannot go to another process.
            WorkerLost: a worker died; the error has the values of the calls that were over.
            TaskError: the first failure in that order; calls not yet begun are dropped.
        """
        if executor is None:
            with ThreadPoolExecutor(max_workers) as pool:
                return self._map_here(items, pool, state)
        if isinstance(executor, ThreadPoolExecutor):
            return self._map_here(items, executor, state)
        from agex.agent.task.remote_calls import (
            Calls,  # which knows of processes, and few programs map over them
        )

        calls = Calls(self, executor, state)
        try:
            for item in items:  # one by one, so that what was begun is known if the next one fails
                calls.begin(item)
            return [calls.value(future.result()) for future in calls.futures()]
        except BrokenExecutor as error:
            raise calls.lost(error) from error
        finally:
            calls.give_up()

    def _map_here(
        self, items: Iterable[Any], pool: Executor, state: Callable[[Any], State] | None
    ) -> list[R]:
        futures: list[Future[R]] = []
        try:
            for item in items:
                task = self if state is None else self.using(state=state(item))
                futures.append(pool.submit(contextvars.copy_context().run, task, item))  # type: ignore[arg-type]
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def call_from_agent(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> R:
        """Call the task with arguments of an agent's code, which sets no options."""
        run: Run[R] = self._invoke(args, kwargs, self._options, None).run()
        return run.value  # type: ignore[return-value]


class AsyncTask(AnyTask[P, R]):
    """An ``async def`` function whose body the agent writes."""

    __annotations__ = _ANNOTATIONS  # pyright: ignore[reportAssignmentType]

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry out the task without blocking the event loop; see :meth:`Task.__call__`."""
        run = await self.arun(*args, **kwargs)
        return run.value  # type: ignore[return-value]

    async def arun(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Like calling it, with the whole record as the result."""
        return await self._invocation(args, kwargs, asyncio.get_running_loop()).arun()

    def start(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Begin the task in the running event loop; return its run, which can be watched and cancelled.

        Raises:
            InputError: an argument does not fit its annotation.
            ModelNotConfigured: there is no model to ask.
            RuntimeError: no event loop is running.
        """
        loop = asyncio.get_running_loop()
        invocation = self._invocation(args, kwargs, loop)
        task = loop.create_task(_ended(invocation))
        _STARTED.add(task)
        task.add_done_callback(_STARTED.discard)
        return invocation.record

    async def resume(
        self,
        *,
        state: State | None = UNSET,
        run_id: str | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Run[R]:
        """Go on with a run whose process ended, see :meth:`Task.resume`."""
        found = self._resumption(state, run_id, inputs)
        if not found.goes_on:
            return found.waiting()
        return await found.invocation(found.saved, asyncio.get_running_loop()).arun()

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Like :meth:`arun`, for code that runs no event loop."""
        return asyncio.run(self.arun(*args, **kwargs))

    async def map(
        self,
        items: Iterable[Any],
        executor: Executor | None = None,
        max_workers: int | None = None,
        *,
        state: Callable[[Any], State] | None = None,
    ) -> list[R]:
        """Call the task with each item as its one argument, at most *max_workers* at a time.

        The values come in the order of *items*; the first failure cancels the other calls. With an
        *executor* of processes or of a cluster each call has an event loop of its own there; see
        :meth:`Task.map`.

        Raises:
            DefinitionError: the executor is one of threads, which an event loop does not need; or as
                for :meth:`Task.map`.
            TaskError: the first failure.
        """
        if executor is not None:
            return await self._map_elsewhere(items, executor, state)
        gate = asyncio.Semaphore(max_workers) if max_workers is not None else nullcontext()

        async def one(item: Any) -> R:
            task = self if state is None else self.using(state=state(item))
            async with gate:
                return await task(item)  # type: ignore[call-arg]

        calls = [asyncio.ensure_future(one(item)) for item in items]
        try:
            return list(await asyncio.gather(*calls))
        finally:
            for call in calls:
                call.cancel()

    async def _map_elsewhere(
        self, items: Iterable[Any], executor: Executor, state: Callable[[Any], State] | None
    ) -> list[R]:
        if isinstance(executor, ThreadPoolExecutor):
            raise DefinitionError(
                "An async task runs in the event loop: leave executor= out, and bound it with max_workers=."
            )
        from agex.agent.task.remote_calls import Calls

        calls = Calls(self, executor, state)
        try:
            for item in items:
                calls.begin(item)
            return [calls.value(await asyncio.wrap_future(future)) for future in calls.futures()]
        except BrokenExecutor as error:
            raise calls.lost(error) from error
        finally:
            calls.give_up()

    async def call_from_agent(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> R:
        """Call the task with arguments of an agent's code, which sets no options."""
        loop = asyncio.get_running_loop()
        run: Run[R] = await self._invoke(args, kwargs, self._options, loop).arun()
        return run.value  # type: ignore[return-value]


_STARTED: set[asyncio.Task[None]] = set()
"""Event loops hold their tasks weakly."""


async def _ended(invocation: Invocation | Sampling) -> None:
    """Carry a started call out; what it raises is its run's to tell."""
    with suppress(Exception):
        await invocation.arun()
