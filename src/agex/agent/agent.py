"""Who does the work: a model, what its code may use, and the limits it has."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload
from weakref import WeakKeyDictionary

from agex.agent.acceptance import Check
from agex.agent.budget import Budget
from agex.agent.declaring import TaskDecorator, locals_of_caller
from agex.agent.invocation import UNSET
from agex.agent.registration import (
    Isolation,
    Kind,
    Pattern,
    Registration,
    Visibility,
    add,
    host_classes,
    policy_for,
    require_isolation,
)
from agex.agent.task import AnyTask, AsyncTask, Task
from agex.contract import TaskSignature
from agex.display import Shown
from agex.errors import DefinitionError
from agex.models.base import Model
from agex.state import State

if TYPE_CHECKING:
    import os

    from agex.agent.workspace import TaskFiles
    from agex.display import Page
    from agex.files import Workspace
    from agex.files.skill import Skill
    from agex.isolation import GuestSession
    from agex.sandbox import Sandbox
    from agex.shell import TerminalCommand

__all__ = ["VIRTUAL_FS", "Agent"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
T = TypeVar("T")
S = TypeVar("S")


class _Default(Enum):
    """A sentinel that is the same in every process."""

    VIRTUAL_FS = 0

    def __repr__(self) -> str:
        return "VIRTUAL_FS"


VIRTUAL_FS: Any = _Default.VIRTUAL_FS
"""The default ``fs``: a virtual workspace without a limit."""


class Agent(Shown):
    """A model with what its code may use. Safe to share between threads.

    Args:
        name: how it is called in events; names need not be unique.
        primer: standing instructions, put after the rules in the prompt.
        model: a string such as ``"openai:gpt-5-mini"`` or ``"local"``, a pydantic-ai model, an
            ``agex.testing`` double, a function of the messages that returns or awaits the answer's text,
            or None for what the environment offers. Looked up at the first call of a task.
        state: where variables live from task to task; None for nowhere.
        fs: the workspace, of ``connect_fs``: by default a virtual one, which is kept in the state; None
            for no files. It is of the host at every level of *isolation*.
        isolation: where code runs. ``"none"`` is in this process: a guard rail for cooperative
            code, not a boundary. ``"process"`` can be killed; ``"kernel"`` and ``"container"`` are
            boundaries, see docs/isolation.md.
        max_iterations: turns of one task.
        timeout_seconds: wall seconds of one action.
        max_memory_mb: megabytes an action may add; None for no limit.
        max_open_files: files an action may hold open; None for no limit.
        max_output_chars: characters of output that the actions of one answer may show.
        max_actions: actions of one answer that are carried out.
        budget: what one call may spend, with all the tasks it calls.
        llm_retries: how often a failed request is repeated.
        llm_timeout: seconds to wait for one answer of the model, and at most before a retry.

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
        fs: Any = VIRTUAL_FS,
        isolation: Isolation = "none",
        max_iterations: int = 10,
        timeout_seconds: float = 30.0,
        max_memory_mb: int | None = None,
        max_open_files: int | None = None,
        max_output_chars: int = 20_000,
        max_actions: int = 32,
        budget: Budget | None = None,
        llm_retries: int = 2,
        llm_timeout: float = 120.0,
    ) -> None:
        require_isolation(isolation)
        _require(
            fs is VIRTUAL_FS or fs is None or hasattr(fs, "over"),
            f"fs={fs!r}: give connect_fs(type='virtual'), connect_fs(type='isolated', root=...) or None.",
        )
        _require(
            state is None or isinstance(state, State),
            f"state={state!r}: give Live(), Versioned(...) or None.",
        )
        _require(budget is None or isinstance(budget, Budget), f"budget={budget!r}: give Budget(tokens=...).")
        _require(max_iterations >= 1, f"max_iterations={max_iterations}: a task needs at least 1 turn.")
        _require(timeout_seconds > 0, f"timeout_seconds={timeout_seconds}: give more than 0 seconds.")
        _require(max_output_chars >= 200, f"max_output_chars={max_output_chars}: give at least 200.")
        _require(max_actions >= 1, f"max_actions={max_actions}: an answer has at least 1 action.")
        _require(llm_retries >= 0, f"llm_retries={llm_retries}: give 0 or more.")
        _require(llm_timeout > 0, f"llm_timeout={llm_timeout}: give more than 0 seconds.")
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
        self.max_actions = max_actions
        self.budget = budget
        self.llm_retries = llm_retries
        self.llm_timeout = llm_timeout
        self._fs = fs
        self._skills: tuple[Skill, ...] = ()
        self._commands: tuple[TerminalCommand, ...] = ()
        self._registrations: tuple[Registration, ...] = ()
        self._open()

    _OPEN = frozenset({"_connected", "_lock", "_resolved", "_sandboxes"})
    """What belongs to this process."""

    def _open(self) -> None:
        self._connected: Workspace | None = None
        self._resolved: tuple[object, Model] | None = None
        self._sandboxes: WeakKeyDictionary[TaskSignature, tuple[object, Sandbox]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<agex agent {self.name}>"

    def page(self) -> Page:
        from agex.agent.pages import agent_page

        return agent_page(self)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle its settings and what is registered."""
        return {name: value for name, value in vars(self).items() if name not in self._OPEN}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._open()

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
        timeout: float | None = None,
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
        timeout: float | None = None,
    ) -> Callable[[F], F]: ...

    def fn(self, f: Any = None, /, *, name: str | None = None, **settings: Any) -> Any:
        """Let the agent's code call a function, or a task of another agent. Also a decorator.

        Args:
            f: the function; an async one is called like a sync one in async tasks.
            name: what the agent's code calls it; its own name by default.
            **settings: ``visibility="high"`` lists signature and docstring in the prompt,
                ``"medium"`` the signature, ``"low"`` nothing;
                ``docstring`` replaces its own in the prompt; ``host_fs_access`` and
                ``network_access`` let it open files of the host and use the network; ``timeout``
                is how many seconds an action waits for it, which ends with that. Its time is not
                the action's own.

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
        self.register(Registration(kind=kind, name=_name_of(f, name), target=f, **settings))
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
            from agex.agent.architect import registrations

            for one in registrations(name or "Agent", settings):
                self.register(one)
            return c
        self.register(Registration(kind="class", name=_name_of(c, name), target=c, **settings))
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
                name=_name_of(m, name),
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

    def mcp(
        self,
        server: S,
        /,
        *,
        name: str | None = None,
        visibility: Visibility = "high",
        include: Pattern = "*",
        exclude: Pattern = "_*",
    ) -> S:
        """Let the agent's code import the tools of an MCP server as functions of a module.

        Registering connects to the server: it runs with the host's powers, whatever is refused
        to the agent's code, and what it says of its tools is shown to the model.

        Args:
            server: a command as a list of strings, a URL, the SDK's ``StdioServerParameters``, or a
                ``agex.mcp.ToolServer``, which can be closed.
            name: of the module; by default what the server calls itself.
            visibility: see :meth:`fn`.
            include: the tools it may use, by the functions' names.
            exclude: the tools it may not; wins over *include*.

        Raises:
            DefinitionError: it is no server, or the name is taken.
            ToolError: the server cannot be reached.
        """
        from agex.mcp import ToolServer

        tools = server if isinstance(server, ToolServer) else ToolServer(server)  # type: ignore[arg-type]  # it looks
        module = tools.module(name)
        self.module(
            module,
            name=module.__name__,
            visibility=visibility,
            include=include,
            exclude=exclude,
            recursive=False,
        )
        return server

    def skill(self, source: str | os.PathLike[str] | bytes) -> Skill:
        """Give the agent documentation that it reads when it needs it, at ``/skills/NAME``.

        Args:
            source: a folder with a ``SKILL.md`` in the Agent Skills format, that file, or its bytes.

        Raises:
            DefinitionError: there is none, it has no name and description, or the name is taken.
        """
        from agex.files.skill import read_skill

        skill = read_skill(source)
        with self._lock:
            _require(
                all(skill.name != one.name for one in self._skills),
                f"There is a skill {skill.name!r} already; give this one another name.",
            )
            self._skills = (*self._skills, skill)
        return skill

    def terminal(self, handler: Any = None, /, *, name: str | None = None, **settings: Any) -> Any:
        """Let the agent run a function of the host as a command of its terminal. Also a decorator.

        Args:
            handler: called with a context that has ``args``, ``stdin``, ``stdout``, ``fs`` and ``env``,
                with the host's own powers.
            name: of the command; the function's own by default.
            **settings: ``visibility="high"`` shows its docstring in the prompt, ``"medium"`` the first line
                of it, ``"low"`` nothing; ``docstring`` replaces its own. ``NAME --help`` prints it.

        Raises:
            DefinitionError: it is no function, or the name is taken.
        """
        from agex.agent.extras import new_command

        if handler is None:
            return lambda handler: self.terminal(handler, name=name, **settings)
        with self._lock:
            command = new_command(handler, name or _name_of(handler), self._commands, **settings)
            self._commands = (*self._commands, command)
        return handler

    def fs(self, state: State | None = UNSET) -> Workspace:
        """Return the workspace, to be read and written by the host.

        Args:
            state: whose files; the agent's own state if not given.

        Raises:
            DefinitionError: the agent has no workspace, or it lives for one task only.
        """
        own = self._workspace()
        where = self.state if state is UNSET else state
        if own is None:
            raise DefinitionError("This agent has no workspace: it was made with fs=None.")
        if own.is_virtual and where is None:
            raise DefinitionError(
                "Without a state, files live for one task only; write agent.fs(state), or give the agent one."
            )
        return own if where is None else own.over(where.files)

    @property
    def extras(self) -> str:
        """What the prompt says of skills and of the terminal's commands."""
        from agex.agent.extras import listed

        return listed(self._skills, self._commands)

    def task_files(self, state: State | None) -> TaskFiles | None:
        """Return the files of one task call; None where the agent has no workspace."""
        from agex.agent.workspace import TaskFiles, workspace_of

        workspace = workspace_of(self._workspace(), state)
        if workspace is None:
            return None
        return TaskFiles(workspace, skills=self._skills, commands=self._commands)

    def _workspace(self) -> Workspace | None:
        if self._fs is None:
            return None
        with self._lock:
            if self._connected is None:
                from agex.files import connect_fs

                self._connected = connect_fs() if self._fs is VIRTUAL_FS else self._fs
            return self._connected

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
                ``reuse=True`` keeps the code of a solved task and tries it first next time.

        Raises:
            DefinitionError: the function cannot be a task.
        """
        if first is None or isinstance(first, str):
            if first is not None and settings.setdefault("primer", first) != first:
                raise DefinitionError(
                    "The primer is given twice; write @agent.task('primer') or task(primer=...)."
                )
            return TaskDecorator(self, **settings)
        return TaskDecorator(self, **settings).define(first, locals_of_caller(inspect.currentframe()))

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

    def place(self, signature: TaskSignature, files: TaskFiles | None = None) -> GuestSession:
        """Open a place for the code of one call of a task, over its files."""
        sandbox = self.sandbox(signature)
        workspace = None if files is None else files.workspace
        session: GuestSession
        if self.isolation == "none":
            session = sandbox.session(fs=workspace)
        else:
            from agex.isolation import executor_of

            classes = host_classes(self._registrations, signature)
            session = executor_of(self.isolation).session(
                sandbox.policy, sandbox.limits, {}, classes=classes, files=workspace
            )
        if files is not None:
            files.attach(session)
        return session

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


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise DefinitionError(message)


def _name_of(thing: Any, given: str | None = None) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__)) if given is None else given
