"""Workers without a zygote: an interpreter for each task, at the other end of two pipes."""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agex.errors import IsolationUnavailable
from agex.isolation.executor import Python
from agex.isolation.process.executor import ProcessExecutor, Saved
from agex.isolation.rpc.task_environment import WorkerHandle
from agex.isolation.wire.error_codec import ProtocolError, WorkerGone
from agex.isolation.wire.framing import Channel, Pipes
from agex.isolation.worker.environment import PROGRAM, import_path, worker_environment
from agex.isolation.worker.rlimits import resources_of
from agex.isolation.workspace.directory import WorkerDirectory
from agex.sandbox import Limits

if TYPE_CHECKING:
    from agex.files import FileTree

__all__ = ["PipedExecutor"]

_READY_SECONDS = 60.0
"""Time for an interpreter to start and to load the registered modules."""
_END_SECONDS = 5.0


class PipedExecutor(ProcessExecutor):
    """Starts an interpreter for each task. It needs less of the system than forking, and takes longer."""

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
        if tree is not None:
            raise IsolationUnavailable(
                "python='full' has no directory for its files at this level here; python='guarded' has"
            )
        worker = _Piped()
        order = {
            "about": about,
            "modules": list(saved.modules),
            "limits": {"seconds": limits.seconds, "output_chars": limits.output_chars},
            "has_files": has_files,
            "python": python,
            "level": self.level,
            **self._confinement(limits),
        }
        try:
            worker.channel.send(order, [saved.data], deadline=time.monotonic() + _READY_SECONDS)
            frame = worker.channel.receive(deadline=time.monotonic() + _READY_SECONDS)
        except (WorkerGone, TimeoutError, ProtocolError) as error:
            raise IsolationUnavailable(f"a worker was not ready: {error} ({worker.kill()})") from error
        if frame.kind != "ready":
            worker.close()
            raise IsolationUnavailable(f"a worker could not be confined: {frame.header.get('why')}")
        return worker

    def _confinement(self, limits: Limits) -> dict[str, Any]:
        """Return the confinement of a worker: the limits of its process, and mechanisms of the system."""
        return {"resources": resources_of(limits)}


class _Piped:
    """A worker in an interpreter of its own, and the process that watches it."""

    directory: WorkerDirectory | None = None

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own program
            [sys.executable, "-I", "-c", PROGRAM.format(entry="alone")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=worker_environment(),
            umask=0o077,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        reader, writer = (os.dup(pipe.fileno()) for pipe in (self._process.stdout, self._process.stdin))
        self._process.stdin.write(json.dumps(import_path()).encode() + b"\n")
        self._process.stdin.close()
        self._process.stdout.close()
        self.channel = Channel(Pipes(reader, writer))
        # In a context of its own: a collection may strike while guest code runs, which may end no process.
        end = contextvars.Context().run
        self._finalizer = weakref.finalize(self, end, _end, self.channel, self._process)

    def interrupt(self) -> None:
        if self._finalizer.alive and self._process.poll() is None:
            self._process.send_signal(signal.SIGUSR1)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def terminate(self) -> None:
        _kill(self._process)

    def kill(self) -> str:
        if not self._finalizer.alive:
            return "it was ended before"
        self.close()
        code = self._process.returncode
        return "it does not end" if code is None else f"exit status {code}"

    def close(self) -> None:
        self._finalizer()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker with its watcher: its group keeps its number until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(channel: Channel, process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    channel.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
