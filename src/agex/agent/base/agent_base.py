"""The means that an agent has for one call of a task: a model, files, a sandbox and a session."""

# The functions below the class are the agent's own, as its methods are.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agex.agent.base.registry import Registry
from agex.agent.base.settings import VIRTUAL_FS
from agex.agent.call.options import UNSET
from agex.agent.execution.grants import host_classes, policy_for
from agex.contract import TaskSignature
from agex.errors import DefinitionError
from agex.models.base import Model
from agex.state import State

if TYPE_CHECKING:
    from agex.agent.execution.task_workspace import TaskFiles
    from agex.display import Page
    from agex.files import Workspace
    from agex.isolation import GuestSession
    from agex.sandbox import Sandbox

__all__ = [
    "AgentBase",
    "command_names_of",
    "extras_of",
    "is_forkable",
    "resolved_models",
    "sandbox_of",
    "session_of",
    "task_files_of",
]


class AgentBase(Registry):
    """An agent without the methods that declare tasks."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._open()

    _OPEN = frozenset({"_connected", "_lock", "_resolved", "_sandboxes"})
    """Attributes that belong to this process and are not pickled."""

    def _open(self) -> None:
        self._connected: Workspace | None = None
        self._resolved: tuple[object, tuple[Model, ...]] | None = None
        self._sandboxes: WeakKeyDictionary[TaskSignature, tuple[object, Sandbox]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<agex agent {self.name}>"

    def page(self) -> Page:
        from agex.agent.base.page import agent_page

        return agent_page(self)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle its settings and what is registered."""
        return {name: value for name, value in vars(self).items() if name not in self._OPEN}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._open()

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

    def _workspace(self) -> Workspace | None:
        if self._fs is None:
            return None
        with self._lock:
            if self._connected is None:
                from agex.files import connect_fs

                self._connected = connect_fs() if self._fs is VIRTUAL_FS else self._fs
            return self._connected

    def resolved_model(self) -> Model:
        """Return the model that is asked first, looked up once for each value of ``model``.

        Raises:
            ModelNotConfigured: there is none.
        """
        return resolved_models(self)[0]


# -- for the rooms that carry a call out: functions, so that an agent offers users what is theirs ----------


def is_forkable(agent: AgentBase) -> bool:
    """Return whether tasks can run side by side on copies of the workspace, or there is none."""
    workspace = agent._workspace()
    return workspace is None or workspace.is_virtual


def extras_of(agent: AgentBase) -> str:
    """Return the part of the prompt that lists skills and commands of the terminal."""
    from agex.agent.prompt.skills import listed

    return listed(agent._skills, agent._commands)


def command_names_of(agent: AgentBase) -> tuple[str, ...]:
    """Return the names of the commands that the host added to the terminal."""
    return tuple(one.name for one in agent._commands)


def task_files_of(agent: AgentBase, state: State | None) -> TaskFiles | None:
    """Return the files of one task call; None where the agent has no workspace."""
    from agex.agent.execution.task_workspace import TaskFiles, workspace_of

    workspace = workspace_of(agent._workspace(), state)
    if workspace is None:
        return None
    return TaskFiles(workspace, skills=agent._skills, commands=agent._commands)


def resolved_models(agent: AgentBase) -> tuple[Model, ...]:
    """Return the models to ask, one after the other.

    Raises:
        ModelNotConfigured: one cannot be had.
    """
    from agex.models.resolve import resolve_model

    with agent._lock:
        if agent._resolved is None or agent._resolved[0] is not agent.model:
            specs = agent.model if isinstance(agent.model, list | tuple) else [agent.model]
            agent._resolved = (agent.model, tuple(map(resolve_model, specs)))
        return agent._resolved[1]


def session_of(
    agent: AgentBase,
    signature: TaskSignature,
    files: TaskFiles | None = None,
    sandbox: Sandbox | None = None,
) -> GuestSession:
    """Open a session for the code of one call of a task, over its files; in another sandbox if given."""
    sandbox = sandbox_of(agent, signature) if sandbox is None else sandbox
    workspace = None if files is None else files.workspace
    session: GuestSession
    if agent.isolation == "none":
        session = sandbox.session(fs=workspace)
    else:
        from agex.isolation import executor_of

        classes = host_classes(agent.registrations, signature)
        session = executor_of(agent.isolation).session(
            sandbox.policy, sandbox.limits, {}, classes=classes, files=workspace, python=agent.python
        )
    if files is not None:
        files.attach(session)
    return session


def sandbox_of(agent: AgentBase, signature: TaskSignature) -> Sandbox:
    """Return the sandbox of a task, for what is registered now."""
    from agex.sandbox import Limits, Sandbox

    registrations = agent.registrations
    with agent._lock:
        known = agent._sandboxes.get(signature)
        if known is None or known[0] is not registrations:
            limits = Limits(
                seconds=agent.timeout_seconds,
                memory_mb=agent.max_memory_mb,
                open_files=agent.max_open_files,
                output_chars=agent.max_output_chars,
            )
            sandbox = Sandbox(policy_for(registrations, signature), limits=limits)
            known = agent._sandboxes[signature] = (registrations, sandbox)
        return known[1]
