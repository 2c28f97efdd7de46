"""The means that an agent has for one call of a task: a model, files, a sandbox and a session."""

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

__all__ = ["AgentBase"]


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

    _INNER = frozenset({
        "extras", "is_forkable", "page", "register", "resolved_model", "resolved_models", "sandbox",
        "session", "task_files",
    })  # fmt: skip
    """Methods for the other rooms, which no completion is to offer."""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._INNER]

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

    @property
    def is_forkable(self) -> bool:
        """Whether tasks can run side by side on copies of the workspace, or there is none."""
        workspace = self._workspace()
        return workspace is None or workspace.is_virtual

    @property
    def extras(self) -> str:
        """The part of the prompt that lists skills and commands of the terminal."""
        from agex.agent.prompt.skills import listed

        return listed(self._skills, self._commands)

    def task_files(self, state: State | None) -> TaskFiles | None:
        """Return the files of one task call; None where the agent has no workspace."""
        from agex.agent.execution.task_workspace import TaskFiles, workspace_of

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

    @property
    def command_names(self) -> tuple[str, ...]:
        """The host's own commands of the terminal."""
        return tuple(one.name for one in self._commands)

    # -- for a call ------------------------------------------------------------------------

    def resolved_model(self) -> Model:
        """Return the model that is asked first, looked up once for each value of ``model``.

        Raises:
            ModelNotConfigured: there is none.
        """
        return self.resolved_models()[0]

    def resolved_models(self) -> tuple[Model, ...]:
        """Return the models to ask, one after the other.

        Raises:
            ModelNotConfigured: one cannot be had.
        """
        from agex.models.resolve import resolve_model

        with self._lock:
            if self._resolved is None or self._resolved[0] is not self.model:
                specs = self.model if isinstance(self.model, list | tuple) else [self.model]
                self._resolved = (self.model, tuple(map(resolve_model, specs)))
            return self._resolved[1]

    def session(
        self, signature: TaskSignature, files: TaskFiles | None = None, sandbox: Sandbox | None = None
    ) -> GuestSession:
        """Open a session for the code of one call of a task, over its files; in another sandbox if given."""
        sandbox = self.sandbox(signature) if sandbox is None else sandbox
        workspace = None if files is None else files.workspace
        session: GuestSession
        if self.isolation == "none":
            session = sandbox.session(fs=workspace)
        else:
            from agex.isolation import executor_of

            classes = host_classes(self._registrations, signature)
            session = executor_of(self.isolation).session(
                sandbox.policy, sandbox.limits, {}, classes=classes, files=workspace, python=self.python
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
