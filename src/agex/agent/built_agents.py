"""Agents that an agent's code builds, once its host has registered ``Agent`` with it.

What such an agent may use, spend and reach is a part of what its maker may: it is given things
that its maker was given or wrote, thinks with the same model, runs in the same place, and is
charged to its caller. The agent's code never holds an ``Agent`` or ``Task`` itself, only
a stand-in with the few methods below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from agex._interpreter.type_slots import module_of
from agex.agent.base import AgentBase, register
from agex.agent.call.budget import Budget
from agex.agent.call.call import Call, current_call
from agex.agent.call.terms import Definition, Terms
from agex.agent.execution.task_bridge import bridged
from agex.agent.registration import Access, Registration, Visibility, is_async
from agex.agent.rendering.output_text import exact
from agex.agent.task.task import AsyncTask, Task
from agex.agent.task_stubs import passed_on, stub_of
from agex.contract import TaskSignature
from agex.errors import DefinitionError
from agex.isolation.rpc.declarations import Declaration, declared
from agex.sandbox import Session
from agex.sandbox.runtime.context import CURRENT

if TYPE_CHECKING:
    from agex.isolation.worker.host_session import RemoteSession

__all__ = ["DEEPEST", "BuiltAgent", "BuiltTask", "registrations"]

DEEPEST = 8
"""Calls that may be open above an agent that is built: agents that build agents must come to an end."""


class BuiltTask:
    """A task of an agent that an agent built; called like a function, also by the host.

    Attributes:
        task: the :class:`~agex.Task` itself, for the host.
        is_async: whether calling it gives something to await.
    """

    def __init__(self, task: Task[..., Any] | AsyncTask[..., Any]) -> None:
        self.task = task
        self.__name__ = task.__name__
        self.__doc__ = task.__doc__
        self.__signature__ = task.definition.terms.signature.signature
        self.is_async = is_async(task)

    def __init_subclass__(cls) -> None:
        raise TypeError("A task cannot be subclassed; call it.")

    def __repr__(self) -> str:
        return repr(self.task)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Carry out the task; see :class:`~agex.Task`."""
        if CURRENT.get() is None:
            return self.task(*args, **kwargs)
        call = _call_of_agent()
        assert call.session is not None
        registered = Registration(kind="task", name=self.__name__, target=self.task)
        return bridged(registered, call.session, call)(*args, **kwargs)


class BuiltAgent:
    """An agent of your own: ``@it.task`` makes a function whose body it writes at each call.

    Give it what it needs with ``it.fn(f)``, ``it.cls(C)`` and ``it.module(m)``: functions you wrote, and
    anything you were given yourself.

    Args:
        name: how it is called in the record.
        primer: its standing instructions.
        max_iterations: turns of one task; at most your own.
        timeout_seconds: of one piece of its code; at most your own.
        budget: a ``Budget``; at most your own.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        primer: str | None = None,
        max_iterations: int | None = None,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
    ) -> None:
        call = _call_of_agent()
        if call.depth >= DEEPEST:
            raise RuntimeError(f"Agents that build agents go {DEEPEST} deep at most; do the work here.")
        maker = call.agent
        assert isinstance(maker, AgentBase)
        self._call = call
        self._maker = maker
        self._agent = type(maker)(
            name=_text(name, "name"),
            primer=_text(primer, "primer"),
            model=maker.model,
            fs=None,
            isolation=maker.isolation,
            python=maker.python,
            max_iterations=_at_most(max_iterations, maker.max_iterations),
            timeout_seconds=_at_most(timeout_seconds, maker.timeout_seconds),
            max_memory_mb=maker.max_memory_mb,
            max_open_files=maker.max_open_files,
            max_output_chars=maker.max_output_chars,
            budget=_within(budget, maker.budget),
            max_actions=maker.max_actions,
            llm_retries=maker.llm_retries,
            llm_timeout=maker.llm_timeout,
            escalate_after=maker.escalate_after,
        )

    def __init_subclass__(cls) -> None:
        raise TypeError("Agent cannot be subclassed; build one and give it a primer.")

    def __repr__(self) -> str:
        return repr(self._agent)

    def fn(
        self, f: Any = None, /, *, name: str | None = None, visibility: Visibility = "high",
        docstring: str | None = None,
    ) -> Any:  # fmt: skip
        """Let it call a function that you wrote or were given, or another agent's task. Also a decorator."""
        if f is None:
            return lambda f: self.fn(f, name=name, visibility=visibility, docstring=docstring)
        given = self._given(f, "fn")
        self._add(given, name=name, visibility=visibility, docstring=docstring)
        return f

    def cls(self, c: Any, /, *, visibility: Visibility = "high", docstring: str | None = None) -> Any:
        """Let it use a class that you were given. Also a decorator."""
        given = self._given(c, "cls")
        self._add(given, visibility=visibility, docstring=docstring)
        if given.target is BuiltAgent:  # its tasks are stand-ins there too, under the same rules
            for one in registrations(given.name, Access())[1:]:
                self._add(one)
        return c

    def module(self, m: Any, /, *, visibility: Visibility = "medium", docstring: str | None = None) -> Any:
        """Let it use a module or an object that you were given."""
        self._add(self._given(m, "module"), visibility=visibility, docstring=docstring)
        return m

    def task(self, function: Any = None, /, *, primer: str | None = None) -> Any:
        """Make a task of a function with an empty body and typed parameters. Also a decorator."""
        if function is None or issubclass(type(function), str):
            told = _text(function if primer is None else primer, "primer")
            return lambda function: self.task(function, primer=told)
        written = self._written(function)
        if written is None:
            raise DefinitionError("task takes a function that you define with an empty body.")
        stub = stub_of(written, self._may_be_named())
        signature = TaskSignature.of(stub)
        definition = Definition(terms=Terms(signature=signature), primer=_text(primer, "primer"))
        kind = AsyncTask if signature.is_async else Task
        return BuiltTask(kind(self._agent, stub, definition))

    # -- what it may be given ----------------------------------------------------------------

    def _add(self, one: Registration, **settings: Any) -> None:
        given = {name: _text(value, name) for name, value in settings.items() if value is not None}
        register(self._agent, replace(one, **given))

    def _given(self, thing: Any, method: str) -> Registration:
        """Return the registration for what the maker's code passes on."""
        if type(thing) is BuiltTask:
            return Registration(kind="task", name=thing.__name__, target=thing.task)
        written = self._written(thing) if method == "fn" else None
        if written is not None:
            passed = passed_on(thing, written, self._may_be_named())
            return Registration(kind="function", name=passed.__name__, target=passed)
        for one in self._maker.registrations:
            if self._holds(one, thing):
                return one
        raise DefinitionError(
            "An agent can be given functions that you write here, and what you were given yourself: "
            f"{', '.join(each.name for each in self._maker.registrations)}."
        )

    def _holds(self, one: Registration, thing: Any) -> bool:
        """Return whether *thing* is the form in which guest code of the maker has a registration."""
        if one.kind == "module":
            return type(thing) is ModuleType and thing.__name__ == one.name
        session = self._call.session
        return session is not None and session.builtins.get(one.name) is thing

    def _written(self, thing: Any) -> Declaration | None:
        """Return the declaration of a function that the maker's code wrote; None for anything else."""
        session = self._call.session
        if session is None or type(thing) is not FunctionType or not session.is_guest_function(thing):
            return None
        return (
            declared(thing)
            if isinstance(session, Session)
            else cast("RemoteSession", session).declaration(thing)
        )

    def _may_be_named(self) -> Callable[[type], bool]:
        """Return a predicate: whether an annotation may name a class."""
        classes = {one.target for one in self._maker.registrations if one.kind == "class"}
        packages = {one.name.partition(".")[0] for one in self._maker.registrations if one.kind == "module"}

        def may(cls: type) -> bool:
            home = module_of(cls)
            return cls in classes or (type(home) is str and home.partition(".")[0] in packages)

        return may


def _call_of_agent() -> Call:
    call = current_call()
    if call is None or call.agent is None or call.session is None:
        raise RuntimeError("Only the code of an agent builds agents this way; write agex.Agent(...).")
    return call


def _text(value: Any, name: str) -> Any:
    if value is None:
        return None
    if not issubclass(type(value), str):
        raise TypeError(f"{name} is a text, not {type(value).__name__}")
    return exact(value)


def _at_most(asked: Any, limit: Any) -> Any:
    if asked is None:
        return limit
    if type(asked) not in {int, float}:
        raise TypeError(f"a limit is a number, not {type(asked).__name__}")
    return min(asked, limit)


def _within(asked: Any, limit: Budget | None) -> Budget | None:
    """Return the smaller of two budgets, limit by limit."""
    if asked is None:
        return limit
    if type(asked) is not Budget:
        raise TypeError(f"budget is a Budget(...), not {type(asked).__name__}")
    least: dict[str, Any] = {}
    for field in fields(Budget):
        mine, own = getattr(asked, field.name), getattr(limit, field.name, None)
        if mine is not None or own is not None:
            least[field.name] = own if mine is None else mine if own is None else _at_most(mine, own)
    return Budget(**{name: _number(value) for name, value in least.items()}) if least else None


def _number(value: Any) -> Any:
    if type(value) not in {int, float}:
        raise TypeError(f"a limit is a number, not {type(value).__name__}")
    return value


def registrations(name: str, access: Access) -> tuple[Registration, ...]:
    """Return the registrations of an agent that may build agents: those, budgets and built tasks."""
    return (
        Registration.of(BuiltAgent, kind="class", name=name, access=replace(access, stays=True)),
        Registration(kind="class", name="Budget", target=Budget, visibility="low"),
        Registration(
            kind="class",
            name="BuiltTask",
            target=BuiltTask,
            visibility="low",
            constructable=False,
            exclude="*",
            stays=True,
        ),
    )
