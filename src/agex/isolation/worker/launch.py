"""Launcher of workers: the zygotes of a level, and the processes that they fork.

A worker has everything in memory that its zygote has. So there is a zygote for each policy, which knows
that policy alone. It is forked from one that has loaded the modules of the policy, and that from one which
has loaded nothing: loaded modules serve another policy only where both name the same modules.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
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
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agex._interpreter import threads
from agex.errors import IsolationUnavailable
from agex.isolation.executor import Level, Python
from agex.isolation.rpc.task_environment import ORPHANED
from agex.isolation.wire.error_codec import ProtocolError, WorkerGone
from agex.isolation.wire.fd_passing import receive_order, send_order
from agex.isolation.wire.framing import Channel, SocketStream
from agex.isolation.worker.environment import import_path, worker_environment
from agex.isolation.workspace.directory import WorkerDirectory

__all__ = ["Launcher", "Order", "WorkerProcess"]

_READY_SECONDS = 30.0
"""Time for the first worker of a policy, whose modules are loaded meanwhile; others take a millisecond."""
_END_SECONDS = 5.0
"""The kernel ends a killed process at once, unless it hangs in a driver."""
_POLICIES = 16
"""Zygotes kept ready, each for a policy; a host has one for each task signature."""
_PROGRAM = """
import sys
sys.path[:] = {path}
from agex.isolation.worker.zygote import main
main({descriptor}, {namespaces})
"""
"""Read from standard input: the arguments of a process are visible to all users, and to its workers."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """Order for one worker."""

    policy: bytes
    about: Mapping[str, Any] = field(default_factory=dict)
    """Descriptions of the objects that stay in the host, by name."""
    modules: Sequence[str] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    has_files: bool = False
    """Whether its code has a workspace, in the host."""
    python: Python = "guarded"
    """The interpreter of its code."""
    level: Level = "process"
    """Where it runs, for errors that say so."""
    walls: Mapping[str, Any] = field(default_factory=dict)
    """Its confinement by the kernel; empty at level ``process``."""
    place: Mapping[str, str] = field(default_factory=dict)
    """The directory that it works in, and the one for temporary files; empty for neither."""


class WorkerProcess:
    """A worker, its connection, and the ways to end it.

    Args:
        channel: to it.
        pidfd: of its process; this object owns it from now on.
        zygote: that waits for its end.
        pid: of its process.
    """

    def __init__(self, channel: Channel, pidfd: int, zygote: _Zygote, pid: int) -> None:
        self.channel = channel
        self.pid = pid
        self.directory: WorkerDirectory | None = None
        self.pidfd = self._pidfd = pidfd
        self._zygote = zygote
        self._lock = threading.Lock()  # held to signal the process, and to close its pidfd
        # In a context of its own: a collection may strike while guest code runs, which may send no signal.
        self._finalizer = weakref.finalize(self, contextvars.Context().run, _end, channel, pidfd)

    def interrupt(self) -> None:
        """Make it stop its run at the next check."""
        self._signal(signal.SIGUSR1)

    def _signal(self, number: signal.Signals) -> None:
        with self._lock:
            if self._finalizer.alive:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, number)

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        poll = select.poll()
        with self._lock:
            if not self._finalizer.alive:
                return True
            poll.register(self._pidfd, select.POLLIN)
            return bool(poll.poll(0))

    def terminate(self) -> None:
        """Kill it, from any thread. The thread that talks to it notices, and closes the connection."""
        self._signal(signal.SIGKILL)

    def kill(self) -> str:
        """Kill it with all it started, and return how it ended; for the thread that talks to it."""
        if not self._finalizer.alive:
            return "it was ended before"
        self._signal(signal.SIGKILL)
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        ended = poll.poll(_END_SECONDS * 1000)
        status = self._zygote.status(self.pid) if ended else None
        self.close()
        if not ended:
            return "it does not end"
        return ORPHANED if status is None else _told(status)

    def close(self) -> None:
        """End it, without looking how; for the thread that talks to it."""
        with self._lock:
            self._finalizer()
        if self.directory is not None:
            self.directory.close()


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


class _Zygote:
    """The host's end of a zygote, which ends with the last reference to it. Safe to share between threads.

    Args:
        control: to it.
        parent: that forked it, and must not end before it does.
    """

    def __init__(self, control: socket.socket, parent: _Zygote | None = None) -> None:
        self._control = control
        self._parent = parent
        self._lock = threading.Lock()
        # In a context of its own: a collection may strike while guest code runs, which may use no socket.
        self.close = weakref.finalize(self, contextvars.Context().run, control.close)

    def ask(
        self, order: Mapping[str, Any], data: bytes = b"", descriptors: Sequence[int] = ()
    ) -> tuple[Any, list[int]]:
        """Send an order; return the answer, with descriptors.

        Raises:
            IsolationUnavailable: it could not be carried out.
            OSError, EOFError: the zygote ended.
        """
        with self._lock:
            send_order(self._control, order, data, descriptors)
            answer, _, received = receive_order(self._control)
        if "error" in answer:
            raise IsolationUnavailable(f"a worker cannot be started: {answer['error']}")
        return answer, received

    def fork(self, order: Mapping[str, Any], data: bytes = b"") -> _Zygote:
        """Order it to fork a zygote, and send that its first order."""
        ours, theirs = socket.socketpair()
        forked = _Zygote(ours, self)
        try:
            self.ask({"do": "divide"}, b"", [theirs.fileno()])
        finally:
            theirs.close()
        forked.ask(order, data)
        return forked

    def status(self, pid: int) -> int | None:
        """Return the wait status of a worker that has ended; None where it is unknown."""
        try:
            answer, _ = self.ask({"do": "status", "pid": pid})
        except (OSError, EOFError, IsolationUnavailable):
            return None
        status: int | None = answer.get("status")
        return status


class _ZygoteEnded(IsolationUnavailable):
    """A zygote was killed; it is not used any more."""


_GENERATIONS = 3
"""Zygotes above a worker: the first, that of its modules, that of its policy. Each may have been killed."""


class Launcher:
    """The zygotes of one level, started when they are first needed. Safe to share between threads.

    Args:
        namespaces: give them, and so their workers, a process namespace of their own.

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
        self._process: subprocess.Popen[bytes] | None = None
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._root: _Zygote | None = None
        self._of_modules: weakref.WeakValueDictionary[str, _Zygote] = weakref.WeakValueDictionary()
        self._of_policies: OrderedDict[str, _Zygote] = OrderedDict()

    def launch(self, order: Order, directory: WorkerDirectory | None = None) -> WorkerProcess:
        """Start a worker.

        Args:
            order: for it.
            directory: its own, as the order says; None if it has none that the host looks at.

        A zygote that somebody killed is started anew.

        Raises:
            IsolationUnavailable: it cannot be started, or not be confined as ordered.
        """
        for _ in range(_GENERATIONS - 1):
            with contextlib.suppress(_ZygoteEnded):
                return self._launched(order, directory)
        return self._launched(order, directory)

    def _launched(self, order: Order, directory: WorkerDirectory | None) -> WorkerProcess:
        try:
            zygote = self._zygote(order)
        except (OSError, EOFError) as error:
            self.close()
            raise _ZygoteEnded(f"the process that starts workers ended: {error}") from error
        gift, giver = socket.socketpair() if order.walls.get("directory") else (None, None)
        try:
            worker = self._forked(zygote, order, giver)
            _require_ready(worker)
            if gift is not None and directory is not None:
                gift.settimeout(_READY_SECONDS)
                directory.attach(worker.pidfd, receive_order(gift)[2][0])
            elif directory is not None:
                directory.attach(worker.pidfd, -1)
            worker.directory = directory
            return worker
        finally:
            for end in (gift, giver):
                if end is not None:
                    end.close()

    def _forked(self, zygote: _Zygote, order: Order, giver: socket.socket | None) -> WorkerProcess:
        ours, theirs = socket.socketpair()
        given = [theirs.fileno(), *([] if giver is None else [giver.fileno()])]
        try:
            answer, descriptors = zygote.ask(_text(order), b"", given)
        except (OSError, EOFError, IsolationUnavailable) as error:
            ours.close()
            if isinstance(error, IsolationUnavailable):
                raise
            with self._lock:
                self._of_policies = OrderedDict(
                    (key, each) for key, each in self._of_policies.items() if each is not zygote
                )
            raise _ZygoteEnded(f"the process that starts workers ended: {error}") from error
        finally:
            theirs.close()
        return WorkerProcess(Channel(SocketStream(ours)), descriptors[0], zygote, answer["pid"])

    def prepare(self, order: Order) -> bool:
        """Load in another thread what workers of an order need; return whether it is loaded already.

        An error is not told here: the launch that follows meets the same, and raises it.
        """
        _, _, key = _keys(order)
        if self._lock.acquire(blocking=False):
            try:
                if key in self._of_policies:
                    return True
            finally:
                self._lock.release()
        threading.Thread(target=self._load, args=[order], name="agex-prepare", daemon=True).start()
        return False

    def _load(self, order: Order) -> None:
        with contextlib.suppress(IsolationUnavailable, OSError, EOFError):
            self._zygote(order)

    def _zygote(self, order: Order) -> _Zygote:
        """Return the zygote of a policy, forked when it is first needed."""
        load, modules, key = _keys(order)
        with self._lock:
            root = self._started()
            if key not in self._of_policies:
                loaded = self._of_modules.get(modules)
                if loaded is None:
                    loaded = self._of_modules[modules] = root.fork(load)
                policy = {"do": "policy", "about": order.about, "python": order.python}
                self._of_policies[key] = loaded.fork(policy, order.policy)
                while len(self._of_policies) > _POLICIES:
                    self._of_policies.popitem(last=False)
            self._of_policies.move_to_end(key)
            return self._of_policies[key]

    def _started(self) -> _Zygote:
        if self._root is None or self._process is None or self._process.poll() is not None:
            _require_linux()
            self._drop()
            ours, theirs = socket.socketpair()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-"],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                cwd="/",
                env=worker_environment(),
                umask=0o077,
            )
            program = _PROGRAM.format(
                path=json.dumps(import_path()), descriptor=theirs.fileno(), namespaces=self._namespaces
            )
            theirs.close()
            assert self._process.stdin is not None
            with self._process.stdin as standard_input:
                standard_input.write(program.encode())
            self._root = _Zygote(ours)
        return self._root

    @property
    def pid(self) -> int | None:
        """The first zygote's process; None before it is needed."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the zygotes and all their workers."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        for zygote in (self._root, *self._of_modules.values(), *self._of_policies.values()):
            if zygote is not None:
                zygote.close()
        self._of_policies.clear()
        self._of_modules.clear()  # a worker that is lost may still hold one
        self._root = None
        if self._process is not None:
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Close the connections to a parent's zygotes in a forked process: it must not keep them alive."""
        for zygote in (self._root, *self._of_modules.values(), *self._of_policies.values()):
            if zygote is not None:
                zygote.close()
        self._process = None
        self._reset()


def _keys(order: Order) -> tuple[dict[str, Any], str, str]:
    """Return the order that loads the modules of workers, and the keys of these and of their policy."""
    load = {"do": "load", "modules": [*order.modules], "path": import_path()}
    modules = json.dumps(load)
    about = json.dumps([order.about, order.python])
    return load, modules, hashlib.blake2b(order.policy + modules.encode() + about.encode()).hexdigest()


def _text(order: Order) -> dict[str, Any]:
    return {
        "do": "fork",
        "limits": order.limits,
        "resources": order.resources,
        "has_files": order.has_files,
        "python": order.python,
        "level": order.level,
        "walls": order.walls,
        "place": order.place,
    }


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
