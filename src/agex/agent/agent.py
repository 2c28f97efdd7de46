"""The agent: a model, what its code may use, the limits it has, and the tasks it carries out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ParamSpec, TypeVar, overload

from agex.agent.base import VIRTUAL_FS, AgentBase, Isolation, Python
from agex.agent.call.budget import Budget
from agex.agent.call.terms import Check, Choose
from agex.agent.registration import Access, Registration, checks_keywords, require_known
from agex.agent.task.decorator import TASK_SETTINGS, TaskDecorator, locals_of_caller
from agex.agent.task.task import AnyTask, AsyncTask, Task
from agex.errors import DefinitionError
from agex.state import State

__all__ = ["VIRTUAL_FS", "Agent"]

P = ParamSpec("P")
R = TypeVar("R")


@checks_keywords
class Agent(AgentBase):
    """A model with what its code may use. Safe to share between threads.

    Args:
        model: a string such as ``"openai:gpt-5-mini"`` or ``"local"``, a pydantic-ai model, an
            ``agex.testing`` double, a function of the messages that returns or awaits the answer's text,
            or None for what the environment offers. A list of these is asked in its order: the next one
            goes on where a model fails too often or cannot be asked. Looked up at the first call of a task.
        name: how it is called in events; names need not be unique.
        primer: standing instructions, put after the rules in the prompt.
        state: where variables live from task to task; None for nowhere.
        fs: the workspace, of ``connect_fs``: by default a virtual one, which is kept in the state; None
            for no files. It is of the host at every level of *isolation*.
        isolation: where code runs. ``"none"`` is in this process: a guard rail for cooperative
            code, not a boundary. ``"process"`` can be killed; ``"kernel"`` and ``"container"`` are
            boundaries, see docs/isolation.md.
        python: ``"guarded"`` is Python behind guards; ``"full"`` is all of CPython with every installed
            package, for a worker: a boundary at ``"kernel"`` and ``"container"``, none at ``"process"``.
            None is ``"full"`` where the level is a boundary and *max_memory_mb* leaves room for it, else
            ``"guarded"``: see docs/where-code-runs.md.
        max_iterations: turns of one task.
        timeout_seconds: wall seconds of one action.
        max_memory_mb: megabytes an action may add; None for no limit.
        max_open_files: files an action may hold open; None for no limit.
        max_output_chars: characters of output that the actions of one answer may show.
        max_actions: actions of one answer that are carried out.
        budget: what one call may spend, with all the tasks it calls.
        llm_retries: how often a failed request is repeated.
        llm_timeout: seconds to wait for one answer of the model, and at most before a retry.
        escalate_after: failed turns of one task before the next model of a list is asked.

    Raises:
        DefinitionError: a setting cannot work.
        IsolationUnavailable: that level does not hold here.
    """

    def __init__(
        self,
        model: object = None,
        *,
        name: str | None = None,
        primer: str | None = None,
        state: State | None = None,
        fs: Any = VIRTUAL_FS,
        isolation: Isolation = "none",
        python: Python | None = None,
        max_iterations: int = 10,
        timeout_seconds: float = 30.0,
        max_memory_mb: int | None = None,
        max_open_files: int | None = None,
        max_output_chars: int = 20_000,
        max_actions: int = 32,
        budget: Budget | None = None,
        llm_retries: int = 2,
        llm_timeout: float = 120.0,
        escalate_after: int = 2,
    ) -> None:
        super().__init__(
            name=name,
            primer=primer,
            model=model,
            state=state,
            fs=fs,
            isolation=isolation,
            python=python,
            max_iterations=max_iterations,
            timeout_seconds=timeout_seconds,
            max_memory_mb=max_memory_mb,
            max_open_files=max_open_files,
            max_output_chars=max_output_chars,
            max_actions=max_actions,
            budget=budget,
            llm_retries=llm_retries,
            llm_timeout=llm_timeout,
            escalate_after=escalate_after,
        )

    # A coroutine function is also a function of R: the first that fits is meant.
    @overload
    def task(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        primer: str | None = None,
        /,
        *,
        setup: str | None = None,
        checks: Iterable[Check] = (),
        examples: Iterable[object] = (),
        reuse: bool = False,
        samples: int = 1,
        choose: Choose = "first",
        solution: str | None = None,
        fallback: bool = True,
    ) -> TaskDecorator: ...

    @overload
    def task(
        self,
        /,
        *,
        primer: str | None = None,
        setup: str | None = None,
        checks: Iterable[Check] = (),
        examples: Iterable[object] = (),
        reuse: bool = False,
        samples: int = 1,
        choose: Choose = "first",
        solution: str | None = None,
        fallback: bool = True,
    ) -> TaskDecorator: ...

    def task(self, first: Any = None, /, **settings: Any) -> Any:
        """Make a task of a function with an empty body: the agent writes the body at each call.

        Use it as ``@agent.task``, ``@agent.task("primer")`` or ``@agent.task(primer=..., ...)``.

        Args:
            first: the function, or the primer.
            **settings: ``primer``, instructions beside the docstring; ``setup``, code run before the
                first turn in the same place as the agent's; ``checks``, functions
                ``f(value, inputs)`` that return None or True, or raise or return what is wrong;
                ``examples``, calls that must hold, as ``((args, kwargs), expected)``;
                ``reuse=True`` keeps the code of a solved task and tries it first next time;
                ``solution="package.module:function"`` is tried before that, in the host, and
                ``fallback=False`` asks no model where it does not solve a call;
                ``samples=n`` runs it n times side by side, in forks of the state and with one budget, and
                ``choose`` says which value is taken: that of the ``"first"`` to succeed, the one that most
                ``"agree"`` on, or the one that a function of the list of values returns.

        Raises:
            DefinitionError: the function cannot be a task.
        """
        require_known(settings, TASK_SETTINGS, "agent.task()")
        if first is None or isinstance(first, str):
            if first is not None and settings.setdefault("primer", first) != first:
                raise DefinitionError(
                    "The primer is given twice; write @agent.task('primer') or task(primer=...)."
                )
            return TaskDecorator(self, **settings)
        return TaskDecorator(self, **settings).define(first, locals_of_caller(inspect.currentframe()))

    # -- what is registered ----------------------------------------------------------------

    def _function_record(self, f: Any, name: str, access: Access) -> Registration:
        if not isinstance(f, AnyTask):
            return super()._function_record(f, name, access)
        if f.agent is self:
            raise DefinitionError(
                f"{f.__name__!r} is a task of this agent, which cannot call itself; "
                "register it on another agent."
            )
        return Registration.of(f, kind="task", name=name, access=access)

    def _class_records(self, c: type, name: str | None, access: Access) -> Iterable[Registration]:
        if c is not Agent:
            return super()._class_records(c, name, access)
        from agex.agent.built_agents import registrations

        return registrations(name or "Agent", access)
