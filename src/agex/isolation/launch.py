"""Starting workers: the zygote of a level in this process, and the processes that it forks."""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agex import threads
from agex.errors import IsolationUnavailable
from agex.isolation.descriptors import receive_order, send_order
from agex.isolation.faults import ProtocolError, WorkerGone
from agex.isolation.frames import Channel, SocketStream

__all__ = ["Launcher", "Order", "WorkerProcess"]

_READY_SECONDS = 30.0
"""For the first worker of a policy, whose modules are loaded meanwhile; that of others is a millisecond."""
_END_SECONDS = 5.0
"""The kernel ends a killed process at once, unless it hangs in a driver."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a worker is to be."""

    policy: bytes
    about: Mapping[str, Any] = field(default_factory=dict)
    """What stays in the host, by name."""
    modules: Sequence[str] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    has_files: bool = False
    """Whether its code has a workspace, in the host."""
    walls: Mapping[str, Any] = field(default_factory=dict)
    """What the kernel is to hold it in; nothing at level ``process``."""


class WorkerProcess:
    """A worker, its connection, and the ways to end it.

    Args:
        channel: to it.
        pidfd: of its process, which is this object's from now on.
        launcher: whose zygote buries it.
        pid: of its process.
    """

    def __init__(self, channel: Channel, pidfd: int, launcher: Launcher, pid: int) -> None:
        self.channel = channel
        self.pid = pid
        self._pidfd = pidfd
        self._launcher = launcher
        self._lock = threading.Lock()  # of whoever signals it, and whoever closes what is signalled
        # In a context of its own: a collection may strike while guest code runs, which may send no signal.
        self._finalizer = weakref.finalize(self, contextvars.Context().run, _end, channel, pidfd)

    def interrupt(self) -> None:
        """Have it stop what it runs, at its next check."""
        self._signal(signal.SIGUSR1)

    def _signal(self, number: signal.Signals) -> None:
        with self._lock:
            if self._finalizer.alive:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        """Kill it, from any thread. Whoever talks to it notices; the connection stays theirs to close."""
        self._signal(signal.SIGKILL)

    def kill(self) -> str:
        """Kill it with all it started, wait for its end, and say how it ended; for whoever talks to it."""
        if not self._finalizer.alive:
            return "it was ended before"
        self._signal(signal.SIGKILL)
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        ended = poll.poll(_END_SECONDS * 1000)
        status = self._launcher.status(self.pid) if ended else None
        self.close()
        return "it does not end" if status is None else _told(status)

    def close(self) -> None:
        """End it, without looking how; for whoever talks to it."""
        with self._lock:
            self._finalizer()


def _end(channel: Channel, pidfd: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    channel.close()
    os.close(pidfd)


def _told(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return f"killed by {name}"
    return f"exit status {os.waitstatus_to_exitcode(status)}"


class Launcher:
    """The zygote of one level, started when it is first needed. Safe to share between threads.

    Args:
        namespaces: give it, and so its workers, a process namespace of its own.

    Raises:
        IsolationUnavailable: no process can be started here.
    """

    def __init__(self, *, namespaces: bool = False) -> None:
        if not threads.CAN_START:
            raise IsolationUnavailable(
                "This interpreter can start neither processes nor threads (it runs in WebAssembly), so code "
                "runs in it or not at all: isolation='none'. The browser is the boundary there."
            )
        self._namespaces = namespaces
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        _all.add(self)

    def launch(self, order: Order) -> WorkerProcess:
        """Start a worker.

        Raises:
            IsolationUnavailable: it cannot be started, or not be confined as ordered.
        """
        ours, theirs = socket.socketpair()
        try:
            with self._lock:
                control = self._started()
                send_order(control, self._text(order), order.policy, [theirs.fileno()])
                answer, _, descriptors = receive_order(control)
        except (OSError, EOFError) as error:
            ours.close()
            self.close()
            raise IsolationUnavailable(f"the process that starts workers ended: {error}") from error
        finally:
            theirs.close()
        if "error" in answer:
            ours.close()
            raise IsolationUnavailable(f"a worker cannot be started: {answer['error']}")
        worker = WorkerProcess(Channel(SocketStream(ours)), descriptors[0], self, answer["pid"])
        _require_ready(worker)
        return worker

    @staticmethod
    def _text(order: Order) -> dict[str, Any]:
        return {
            "do": "fork",
            "about": order.about,
            "modules": list(order.modules),
            "limits": order.limits,
            "resources": order.resources,
            "has_files": order.has_files,
            "walls": order.walls,
        }

    def status(self, pid: int) -> int | None:
        """Return the wait status of a worker that has ended; None where nobody knows it any more."""
        with self._lock:
            if self._control is None:
                return None
            try:
                send_order(self._control, {"do": "status", "pid": pid})
                answer, _, _ = receive_order(self._control)
            except (OSError, EOFError):
                return None
            status: int | None = answer.get("status")
            return status

    def _started(self) -> socket.socket:
        if self._control is None or self._process is None or self._process.poll() is not None:
            _require_linux()
            self._drop()
            ours, theirs = socket.socketpair()
            # The paths of this process, so that what is importable here is importable there.
            program = (
                f"import sys; sys.path[:] = {json.dumps([p for p in sys.path if p])}; "
                f"from agex.isolation.zygote import main; main({theirs.fileno()}, {self._namespaces})"
            )
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own program
                [sys.executable, "-I", "-c", program],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            theirs.close()
            self._control = ours
        return self._control

    @property
    def pid(self) -> int | None:
        """The zygote's process; None before it is needed."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the zygote and all its workers."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Let go of what a forked process has of its parent's zygote: it must not keep it alive."""
        self._lock = threading.Lock()
        if self._control is not None:
            self._control.close()
        self._control = self._process = None


_all: weakref.WeakSet[Launcher] = weakref.WeakSet()


def _after_fork() -> None:
    for launcher in list(_all):
        launcher.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _require_linux() -> None:
    if sys.platform != "linux":
        raise IsolationUnavailable(
            f"isolation='process' and 'kernel' need Linux 5.4 or later, and this is {sys.platform}; "
            "use isolation='container'"
        )


def _require_ready(worker: WorkerProcess) -> None:
    try:
        frame = worker.channel.receive(deadline=time.monotonic() + _READY_SECONDS)
    except (WorkerGone, TimeoutError, ProtocolError) as error:
        ended = worker.kill()
        raise IsolationUnavailable(f"a worker was not ready: {error} ({ended})") from error
    if frame.kind != "ready":
        worker.close()
        raise IsolationUnavailable(f"a worker could not be confined: {frame.header.get('why')}")
