"""Executor of the level ``process``, and base of those that confine their workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agex.isolation.executor import Level, Python, Wall, resolve_python
from agex.isolation.rpc.policy_codec import granted, save_policy
from agex.isolation.rpc.task_environment import TaskEnvironment, WorkerHandle
from agex.isolation.worker.host_session import RemoteSession
from agex.isolation.worker.launch import Launcher, Order
from agex.isolation.worker.rlimits import resources_of
from agex.isolation.workspace.directory import PlainDirectory, WorkerDirectory
from agex.sandbox import Limits, Policy

if TYPE_CHECKING:
    from agex.files import FileTree
    from agex.sandbox.runtime.workspace_files import Files

__all__ = ["ProcessExecutor", "Saved"]


class ProcessExecutor:
    """Runs each task's code in a process of its own, forked from a clean interpreter.

    It contains what the guards in process cannot: a call into C that does not return, memory without end, a
    crash. It does not confine code that left the sandbox, which has the rights of the host.
    """

    level: Level = "process"

    def __init__(self) -> None:
        self._launcher = Launcher()

    def walls(self) -> tuple[Wall, ...]:
        return (Wall(name="process", detail="killed by group at the deadline"),)

    def session(
        self,
        policy: Policy,
        limits: Limits,
        namespace: Mapping[str, Any],
        *,
        classes: Iterable[type] = (),
        files: Files | None = None,
        python: Python = "guarded",
    ) -> RemoteSession:
        resolve_python(python, self.level, limits.memory_mb)
        if files is not None:
            policy.use_paths()
        saved = _saved(policy, tuple(sorted(classes, key=lambda cls: (cls.__module__, cls.__qualname__))))

        def start(about: Mapping[str, Any]) -> WorkerHandle:
            tree = getattr(files, "files", None) if python == "full" else None
            return self._launch(saved, limits, about, has_files=files is not None, python=python, tree=tree)

        def prepare(about: Mapping[str, Any]) -> bool:
            return self._launcher.prepare(replace(self._order(saved, limits, about), python=python))

        environment = TaskEnvironment(
            level=self.level,
            policy=policy,
            limits=limits,
            classes=saved.classes,
            granted=saved.granted,
            start=start,
            prepare=prepare,
            files=files,
            python=python,
            walls=tuple(f"{wall.name} ({wall.detail})" for wall in self.walls()),
        )
        return RemoteSession(environment, namespace)

    def _launch(
        self,
        saved: Saved,
        limits: Limits,
        about: Mapping[str, Any],
        *,
        has_files: bool,
        python: Python,
        tree: FileTree | None,
    ) -> WorkerHandle:
        order = replace(
            self._order(saved, limits, about), has_files=has_files, python=python, level=self.level
        )
        directory = None if tree is None else self._directory(tree)
        if python == "full":
            order = self._placed(order, limits, directory)
        try:
            return self._launcher.launch(order, directory)
        except BaseException:
            if directory is not None:
                directory.close()
            raise

    def _directory(self, tree: FileTree) -> WorkerDirectory:
        """Return a worker's directory over a workspace."""
        return PlainDirectory(tree)

    def _placed(self, order: Order, limits: Limits, directory: WorkerDirectory | None) -> Order:
        """Return the order for a worker with a directory of its own; with None, nobody looks at it."""
        return order if directory is None else replace(order, place=directory.order)

    def _order(self, saved: Saved, limits: Limits, about: Mapping[str, Any]) -> Order:
        return Order(
            policy=saved.data,
            about=about,
            modules=saved.modules,
            limits={"seconds": limits.seconds, "output_chars": limits.output_chars},
            resources=resources_of(limits),
        )

    def close(self) -> None:
        self._launcher.close()


class Saved:
    """A policy in the form that its workers load."""

    def __init__(self, policy: Policy, classes: tuple[type, ...]) -> None:
        self.count = len(policy.grants)
        self.classes = classes
        self.granted = granted(policy)
        saved = save_policy(policy, classes)
        self.data, self.modules, self.imports = saved.data, saved.modules, saved.imports


def _saved(policy: Policy, classes: tuple[type, ...]) -> Saved:
    """Return a policy as bytes, made once: one policy serves all calls of a task."""
    saved = policy.notes.get("saved")
    if isinstance(saved, Saved) and saved.count == len(policy.grants) and saved.classes == classes:
        return saved
    saved = policy.notes["saved"] = Saved(policy, classes)
    return saved
