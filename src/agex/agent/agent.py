"""Who does the work: a model, what its code may use, and the limits it has."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_args, overload
from weakref import WeakKeyDictionary

from agex.agent.budget import Budget
from agex.agent.execution import Check, Terms, example_inputs
from agex.agent.invocation import Definition
from agex.agent.registration import (
    Isolation,
    Kind,
    Pattern,
    Registration,
    Visibility,
    add,
    host_classes,
    is_async,
    policy_for,
)
from agex.agent.task import AnyTask, AsyncTask, Task
from agex.contract import TaskSignature, Unresolved, doc_examples, given_examples
from agex.errors import DefinitionError, IsolationUnavailable
from agex.models.base import Model
from agex.state import State

if TYPE_CHECKING:
    from agex.isolation import GuestSession
    from agex.sandbox import Sandbox

__all__ = ["VIRTUAL_FS", "Agent"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
T = TypeVar("T")

VIRTUAL_FS: Any = type("VIRTUAL_FS", (), {"__repr__": lambda self: "VIRTUAL_FS"})()
"""The default ``fs``: files in memory, once the workspace is there."""


class Agent:
    """A model with what its code may use. Safe to share between threads.

    Args:
        name: how it is called in events; names need not be unique.
        primer: standing instructions, put after the rules in the prompt.
        model: a string such as ``"openai:gpt-5-mini"`` or ``"local"``, a pydantic-ai model, an
            ``agex.testing`` double, or None for what the environment offers. Looked up at the
            first call of a task.
        state: where variables live from task to task; None for nowhere.
        fs: the workspace; not there yet, so only the default and None are accepted.
        isolation: where code runs. ``"none"`` is in this process: a guard rail for cooperative
            code, not a boundary. ``"process"`` can be killed; ``"kernel"`` and ``"container"`` are
            boundaries, see docs/isolation.md.
        max_iterations: turns of one task.
        timeout_seconds: wall seconds of one action.
        max_memory_mb: megabytes an action may add; None for no limit.
        max_open_files: files an action may hold open; None for no limit.
        max_output_chars: characters of output that one action may show.
        budget: what one call may spend, with all the tasks it calls.
        llm_retries: how often a failed request is repeated.

    Raises:
        DefinitionError: a setting cannot work.
        IsolationUnavailable: that level does not hold here.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        primer: str | None = None,
        model: object = None,
        state: State | None = None,
        fs: object = VIRTUAL_FS,
        isolation: Isolation = "none",
        max_iterations: int = 10,
        timeout_seconds: float = 30.0,
        max_memory_mb: int | None = None,
        max_open_files: int | None = None,
        max_output_chars: int = 20_000,
        budget: Budget | None = None,
        llm_retries: int = 2,
    ) -> None:
        _require_isolation(isolation)
        _require(fs is VIRTUAL_FS or fs is None, f"fs={fs!r}: the workspace is not there yet; leave fs out.")
        _require(
            state is None or isinstance(state, State),
            f"state={state!r}: give Live(), Versioned(...) or None.",
        )
        _require(budget is None or isinstance(budget, Budget), f"budget={budget!r}: give Budget(tokens=...).")
        _require(max_iterations >= 1, f"max_iterations={max_iterations}: a task needs at least 1 turn.")
        _require(timeout_seconds > 0, f"timeout_seconds={timeout_seconds}: give more than 0 seconds.")
        _require(max_output_chars >= 200, f"max_output_chars={max_output_chars}: give at least 200.")
        _require(llm_retries >= 0, f"llm_retries={llm_retries}: give 0 or more.")
        self.name = name or "agent"
        self.primer = primer
        self.model = model
        self.state = state
        self.isolation: Isolation = isolation
        self.max_iterations = max_iterations
        self.timeout_seconds = timeout_seconds
        self.max_memory_mb = max_memory_mb
        self.max_open_files = max_open_files
        self.max_output_chars = max_output_chars
        self.budget = budget
        self.llm_retries = llm_retries
        self._registrations: tuple[Registration, ...] = ()
        self._resolved: tuple[object, Model] | None = None
        self._sandboxes: WeakKeyDictionary[TaskSignature, tuple[object, Sandbox]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<agex agent {self.name}>"

    # -- what its code may use -------------------------------------------------------------

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """What its code may use, in order of registration."""
        return self._registrations

    @overload
    def fn(
        self,
        f: F,
        /,
        *,
        name: str | None = None,
        visibility: Visibility = "high",
        docstring: str | None = None,
        host_fs_access: bool = False,
        network_access: bool = False,
    ) -> F: ...

    @overload
    def fn(
        self,
        /,
        *,
        name: str | None = None,
        visibility: Visibility = "high",
        docstring: str | None = None,
        host_fs_access: bool = False,
        network_access: bool = False,
    ) -> Callable[[F], F]: ...

    def fn(self, f: Any = None, /, *, name: str | None = None, **settings: Any) -> Any:
        """Let the agent's code call a function, or a task of another agent. Also a decorator.

        Args:
            f: the function; an async one is called like a sync one in async tasks.
            name: what the agent's code calls it; its own name by default.
            **settings: ``visibility="high"`` lists signature and docstring in the prompt,
                ``"medium"`` the signature, ``"low"`` nothing;
                ``docstring`` replaces its own in the prompt; ``host_fs_access`` and
                ``network_access`` let it open files of the host and use the network.

        Raises:
            DefinitionError: it is no function, a task of this same agent, or the name is taken.
        """
        if f is None:
            return lambda f: self.fn(f, name=name, **settings)
        if isinstance(f, type) or not callable(f):
            raise DefinitionError(f"agent.fn() takes a function, not {f!r}; for a class use agent.cls().")
        if isinstance(f, AnyTask) and f.agent is self:
            raise DefinitionError(
                f"{f.__name__!r} is a task of this agent, which cannot call itself; "
                "register it on another agent."
            )
        kind: Kind = "task" if isinstance(f, AnyTask) else "function"
        self.register(Registration(kind=kind, name=name or _name_of(f), target=f, **settings))
        return f

    @overload
    def cls(
        self,
        c: C,
        /,
        *,
        name: str | None = None,
        visibility: Visibility = "high",
        constructable: bool = True,
        include: Pattern = "*",
        exclude: Pattern = "_*",
        configure: Mapping[str, Any] = {},
    ) -> C: ...

    @overload
    def cls(
        self,
        /,
        *,
        name: str | None = None,
        visibility: Visibility = "high",
        constructable: bool = True,
        include: Pattern = "*",
        exclude: Pattern = "_*",
        configure: Mapping[str, Any] = {},
    ) -> Callable[[C], C]: ...

    def cls(self, c: Any = None, /, *, name: str | None = None, **settings: Any) -> Any:
        """Let the agent's code use a class. Also a decorator.

        Args:
            c: the class.
            name: what the agent's code calls it.
            **settings: ``visibility`` as for :meth:`fn`; ``constructable=False`` lets the agent use
                instances but not make them; ``include`` and ``exclude`` name the members it may
                and may not use (a glob, several, or a predicate of the name; exclusion wins);
                ``configure`` gives single members a ``MemberSpec``.

        With ``Agent`` itself, the agent's code can build agents, see ``agex.agent.architect``.

        Raises:
            DefinitionError: it is no class, or the name is taken.
        """
        if c is None:
            return lambda c: self.cls(c, name=name, **settings)
        if not isinstance(c, type):
            raise DefinitionError(
                f"agent.cls() takes a class, not {c!r}; for an object, agent.module(it, name='it')."
            )
        if c is Agent:
            if self.isolation != "none":
                raise IsolationUnavailable(
                    f"Agents whose code builds agents need isolation='none', and this one's is "
                    f"{self.isolation!r}; register tasks of other agents instead."
                )
            from agex.agent.architect import registrations

            for one in registrations(name or "Agent", settings):
                self.register(one)
            return c
        self.register(Registration(kind="class", name=name or c.__name__, target=c, **settings))
        return c

    def module(
        self,
        m: T,
        /,
        *,
        name: str | None = None,
        visibility: Visibility = "medium",
        include: Pattern = "*",
        exclude: Pattern = ("_*", "*._*"),
        configure: Mapping[str, Any] = {},
        recursive: bool = True,
        host_fs_access: bool = False,
        network_access: bool = False,
    ) -> T:
        """Let the agent's code import a module, or use a live object under a name.

        Args:
            m: the module, which covers the types that live in it; or any object.
            name: the import name; for an object, the variable, and required.
            visibility: see :meth:`fn`.
            include: the members it may use; dotted names reach into classes.
            exclude: the members it may not use; wins over *include*.
            configure: settings of single members, name to ``MemberSpec``.
            recursive: whether submodules come along.
            host_fs_access: its functions may open files of the host.
            network_access: its functions may use the network.

        Raises:
            DefinitionError: an object without a name, or the name is taken.
        """
        is_module = isinstance(m, ModuleType)
        if not is_module and name is None:
            raise DefinitionError(f"{type(m).__name__} object needs a name: agent.module(it, name='db').")
        self.register(
            Registration(
                kind="module" if is_module else "object",
                name=name or m.__name__,  # type: ignore[attr-defined]  # only a module has no name given
                target=m,
                visibility=visibility,
                include=include,
                exclude=exclude,
                configure=configure,
                recursive=recursive,
                host_fs_access=host_fs_access,
                network_access=network_access,
            )
        )
        return m

    def register(self, registration: Registration) -> None:
        """Take a registration as it is; :meth:`fn`, :meth:`cls` and :meth:`module` make them."""
        with self._lock:
            self._registrations = add(self._registrations, registration)

    # -- tasks -----------------------------------------------------------------------------

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
    ) -> _TaskDecorator: ...

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
    ) -> _TaskDecorator: ...

    def task(self, first: Any = None, /, **settings: Any) -> Any:
        """Make a task of a function with an empty body: the agent writes the body at each call.

        Use it as ``@agent.task``, ``@agent.task("primer")`` or ``@agent.task(primer=..., ...)``.

        Args:
            first: the function, or the primer.
            **settings: ``primer``, instructions beside the docstring; ``setup``, code run before the
                first turn in the same place as the agent's; ``checks``, functions
                ``f(value, inputs)`` that return None or True, or raise or return what is wrong;
                ``examples``, calls that must hold, as ``((args, kwargs), expected)``;
                ``reuse=True`` keeps the code of a solved task and tries it first next time.

        Raises:
            DefinitionError: the function cannot be a task.
        """
        if first is None or isinstance(first, str):
            if first is not None and settings.setdefault("primer", first) != first:
                raise DefinitionError(
                    "The primer is given twice; write @agent.task('primer') or task(primer=...)."
                )
            return _TaskDecorator(self, **settings)
        return _TaskDecorator(self, **settings).define(first, _locals_of_caller(inspect.currentframe()))

    # -- what a call needs -----------------------------------------------------------------

    def resolved_model(self) -> Model:
        """Return the model to ask, looked up once for each value of ``model``.

        Raises:
            ModelNotConfigured: there is none.
        """
        from agex.models.resolve import resolve_model

        with self._lock:
            if self._resolved is None or self._resolved[0] is not self.model:
                self._resolved = (self.model, resolve_model(self.model))
            return self._resolved[1]

    def place(self, signature: TaskSignature) -> GuestSession:
        """Open a place for the code of one call of a task."""
        sandbox = self.sandbox(signature)
        if self.isolation == "none":
            return sandbox.session()
        from agex.isolation import executor_of

        classes = host_classes(self._registrations, signature)
        return executor_of(self.isolation).session(sandbox.policy, sandbox.limits, {}, classes=classes)

    def sandbox(self, signature: TaskSignature) -> Sandbox:
        """Return the sandbox of a task, for what is registered now."""
        from agex.sandbox import Limits, Sandbox

        registrations = self._registrations
        with self._lock:
            known = self._sandboxes.get(signature)
            if known is None or known[0] is not registrations:
                limits = Limits(
                    seconds=self.timeout_seconds,
                    memory_mb=self.max_memory_mb,
                    open_files=self.max_open_files,
                    output_chars=self.max_output_chars,
                )
                sandbox = Sandbox(policy_for(registrations, signature), limits=limits)
                known = self._sandboxes[signature] = (registrations, sandbox)
            return known[1]


class _TaskDecorator:
    """Makes tasks of functions, with the settings given."""

    def __init__(
        self,
        agent: Agent,
        *,
        primer: str | None = None,
        setup: str | None = None,
        checks: Iterable[Check] = (),
        examples: Iterable[object] = (),
        reuse: bool = False,
    ) -> None:
        self._agent = agent
        self._primer = primer
        self._setup = setup
        self._checks = tuple(checks)
        self._examples = tuple(examples)
        self._reuse = reuse

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...

    def __call__(self, function: Any, /) -> Any:
        return self.define(function, _locals_of_caller(inspect.currentframe()))

    def define(self, function: object, localns: Mapping[str, Any]) -> AnyTask[Any, Any]:
        """Make a task of *function*, whose annotations may use the names in *localns*."""
        plain = _require_plain_function(function)
        signature = TaskSignature.of(plain, localns=localns)
        for check in self._checks:
            _require(callable(check), f"checks takes functions f(value, inputs), not {check!r}.")
            _require(not is_async(check), f"The check {_name_of(check)!r} is async; write it with def.")
        examples = doc_examples(signature.doc, signature.name) + given_examples(
            self._examples, signature.name
        )
        with contextlib.suppress(Unresolved):  # then the first call tells
            for example in examples:
                example_inputs(example, signature)
        terms = Terms(
            signature=signature,
            checks=self._checks,
            examples=examples,
        )
        definition = Definition(terms=terms, primer=self._primer, setup=self._setup, reuse=self._reuse)
        kind = AsyncTask if signature.is_async else Task
        task: AnyTask[Any, Any] = kind(self._agent, plain, definition)
        return task


def _locals_of_caller(frame: FrameType | None) -> Mapping[str, Any]:
    """Return the locals of the frame that called *frame*: annotations may name what is defined there."""
    return frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}


def _require_plain_function(function: object) -> FunctionType:
    if isinstance(function, AnyTask):
        raise DefinitionError(f"{function.__name__!r} is a task already; one function is one agent's task.")
    if not isinstance(function, FunctionType):
        raise DefinitionError(f"agent.task takes a function with an empty body, not {function!r}.")
    owner = function.__qualname__.rpartition(".")[0]
    if owner and not owner.endswith("<locals>"):
        raise DefinitionError(
            f"{function.__qualname__!r} is a method; a task is a plain function. Define it at the top level "
            "of the module and pass the object as an argument."
        )
    return function


def _require_isolation(isolation: Isolation) -> None:
    levels = get_args(Isolation)
    _require(isolation in levels, f"isolation={isolation!r} is none of: {', '.join(levels)}.")
    if isolation != "none":
        from agex.isolation import executor_of

        executor_of(isolation)  # raises, where that level does not hold


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise DefinitionError(message)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
