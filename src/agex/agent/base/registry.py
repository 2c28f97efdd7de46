"""The methods that register what an agent's code may use."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from agex.agent.base.settings import AgentSettings
from agex.agent.durable.host_calls import Approval
from agex.agent.registration import Access, Kind, Pattern, Registration, Visibility, add, require_known
from agex.errors import DefinitionError

if TYPE_CHECKING:
    import os

    from agex.files.skill import Skill
    from agex.shell import TerminalCommand

__all__ = ["Registry", "register"]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
T = TypeVar("T")
S = TypeVar("S")


class Registry(AgentSettings):
    """Settings, with functions, classes, modules, skills and commands that guest code may use."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._skills: tuple[Skill, ...] = ()
        self._commands: tuple[TerminalCommand, ...] = ()
        self._registrations: tuple[Registration, ...] = ()
        self._lock = threading.Lock()

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The things that its code may use, in order of registration."""
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
        external: bool | Literal["idempotent"] = False,
        approval: Approval = False,
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
        external: bool | Literal["idempotent"] = False,
        approval: Approval = False,
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
                the action's own. ``external=True`` says that it acts on the world: each call is journalled
                in the state, and is not made again when the run is resumed; ``"idempotent"`` lets it be made
                again where its result was lost. ``approval=True``, or a predicate of the call, stops the
                run before such a call until a person says yes.

        Raises:
            DefinitionError: it is no function, a task of this same agent, or the name is taken.
        """
        if f is None:
            return lambda f: self.fn(f, name=name, **settings)
        require_known(settings, _OF_FUNCTIONS, "agent.fn()")
        if isinstance(f, type) or not callable(f):
            raise DefinitionError(f"agent.fn() takes a function, not {f!r}; for a class use agent.cls().")
        register(self, self._function_record(f, _name_of(f, name), Access(**settings)))
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

        With ``Agent`` itself, the agent's code can build agents, see ``agex.agent.built_agents``.

        Raises:
            DefinitionError: it is no class, or the name is taken.
        """
        if c is None:
            return lambda c: self.cls(c, name=name, **settings)
        require_known(settings, _OF_CLASSES, "agent.cls()")
        if not isinstance(c, type):
            raise DefinitionError(
                f"agent.cls() takes a class, not {c!r}; for an object, agent.module(it, name='it')."
            )
        for one in self._class_records(c, name, Access(**settings)):
            register(self, one)
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
        external: bool | Literal["idempotent"] = False,
        approval: Any = False,
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
            external: its functions, or the methods of the object, act on the world, see :meth:`fn`; for some
                alone, ``configure={"send": MemberSpec(external=True)}``. Of a module the code gets
                functions, which the journal calls ``module.function``, and plain data; where it offers more,
                leave the rest out. Of an object it gets a stand-in with the same members.
            approval: such calls need a person's yes, see :meth:`fn`.

        Raises:
            DefinitionError: an object without a name, or the name is taken.
        """
        is_module = isinstance(m, ModuleType)
        if isinstance(m, str) and _is_module_name(m):
            raise DefinitionError(
                f"agent.module({m!r}): give the module itself: import {m}; agent.module({m})."
            )
        if not is_module and name is None:
            raise DefinitionError(f"{type(m).__name__} object needs a name: agent.module(it, name='db').")
        access = Access(
            visibility=visibility,
            include=include,
            exclude=exclude,
            configure=configure,
            recursive=recursive,
            host_fs_access=host_fs_access,
            network_access=network_access,
            external=external,
            approval=approval,
        )
        kind: Kind = "module" if is_module else "object"
        own = _name_of(m, name)
        register(self, Registration.of(m, kind=kind, name=own, access=access))
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
        configure: Mapping[str, Any] = {},
        external: bool | Literal["idempotent"] = False,
        approval: Any = False,
    ) -> S:
        """Let the agent's code import the tools of an MCP server as functions of a module.

        Registering connects to the server. It runs with the powers of the host, even where guest code is
        refused the same, and its descriptions of tools are shown to the model.

        Args:
            server: a command as a list of strings, a URL, the SDK's ``StdioServerParameters``, or a
                ``agex.mcp.ToolServer``, which can be closed.
            name: of the module; by default what the server calls itself.
            visibility: see :meth:`fn`.
            include: the tools it may use, by the functions' names.
            exclude: the tools it may not; wins over *include*.
            configure: settings of single tools, name to ``MemberSpec``.
            external: the tools act on the world, see :meth:`fn`; for those that only read,
                ``configure={"look": MemberSpec(external=False)}``.
            approval: calls of the tools need a person's yes, see :meth:`fn`.

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
            include=_with_classes(include, module),
            exclude=exclude,
            configure=configure,
            recursive=False,
            external=external,
            approval=approval,
        )
        return server

    def skill(self, source: str | os.PathLike[str] | bytes) -> Skill:
        """Register documentation that the agent reads when it needs it, at ``/skills/NAME``.

        Args:
            source: a folder with a ``SKILL.md`` in the Agent Skills format, that file, or its bytes.

        Raises:
            DefinitionError: there is none, it has no name and description, or the name is taken.
        """
        from agex.files.skill import read_skill

        skill = read_skill(source)
        with self._lock:
            if any(skill.name == one.name for one in self._skills):
                raise DefinitionError(f"There is a skill {skill.name!r} already; give this one another name.")
            self._skills = (*self._skills, skill)
        return skill

    def terminal(self, handler: Any = None, /, *, name: str | None = None, **settings: Any) -> Any:
        """Let the agent run a function of the host as a command of its terminal. Also a decorator.

        Args:
            handler: called with a context that has ``args``, ``stdin``, ``stdout``, ``fs`` and ``env``,
                with the powers of the host.
            name: of the command; the function's own by default.
            **settings: ``visibility="high"`` shows its docstring in the prompt, ``"medium"`` the first line
                of it, ``"low"`` nothing; ``docstring`` replaces its own. ``NAME --help`` prints it.

        Raises:
            DefinitionError: it takes no argument, is no function, or the name is taken.

        A name of one of the usual commands is warned of: the handler stands in for it.
        """
        from agex.agent.prompt.skills import new_command

        if handler is None:
            return lambda handler: self.terminal(handler, name=name, **settings)
        require_known(settings, ("docstring", "visibility"), "agent.terminal()")
        with self._lock:
            command = new_command(handler, name or _name_of(handler), self._commands, **settings)
            self._commands = (*self._commands, command)
        return handler

    def _function_record(self, f: Any, name: str, access: Access) -> Registration:
        """Return the record that registering a function adds."""
        return Registration.of(f, kind="function", name=name, access=access)

    def _class_records(self, c: type, name: str | None, access: Access) -> Iterable[Registration]:
        """Return the records that registering a class adds."""
        return (Registration.of(c, kind="class", name=_name_of(c, name), access=access),)


def register(agent: Registry, registration: Registration) -> None:
    """Take a registration as it is; the methods of an agent make them."""
    with agent._lock:  # pyright: ignore[reportPrivateUsage] - as a method would
        agent._registrations = add(agent._registrations, registration)  # pyright: ignore[reportPrivateUsage]


_OF_FUNCTIONS = (
    "visibility", "docstring", "host_fs_access", "network_access", "timeout", "external", "approval",
)  # fmt: skip
_OF_CLASSES = ("visibility", "constructable", "include", "exclude", "configure")


def _is_module_name(text: str) -> bool:
    """Return whether a text is the name of a module that can be imported; nothing is imported for it."""
    top = text.partition(".")[0]
    return top.isidentifier() and importlib.util.find_spec(top) is not None


def _with_classes(include: Any, module: ModuleType) -> Any:
    """Return a pattern that lets the classes of a module through as well: signatures name them."""
    classes = [name for name, value in vars(module).items() if isinstance(value, type)]
    if isinstance(include, str):
        return (include, *classes)
    if callable(include):
        return lambda name: name in classes or include(name)
    return (*include, *classes) if isinstance(include, Iterable) else include


def _name_of(thing: Any, given: str | None = None) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__)) if given is None else given
