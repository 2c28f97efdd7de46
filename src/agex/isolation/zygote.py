"""The process that workers are forked from: an interpreter with the registered modules loaded.

It is started by the host as a clean interpreter, runs no guest code and trusts the host. It
forks a worker for each task, in one to three milliseconds, and buries them: when a worker ends,
its whole process group is killed before its number can be given to another process.

It ends when the host does, because the connection to the host closes then; and its workers end
when it does, because the kernel kills them (``PR_SET_PDEATHSIG``).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

from agex.isolation.descriptors import close_all_but, receive_order, send_order
from agex.isolation.frames import Channel, SocketStream
from agex.isolation.policies import load_policy
from agex.isolation.resources import apply_resources
from agex.isolation.stubs import Stubs
from agex.isolation.worker import Template, Worker
from agex.sandbox import Limits

__all__ = ["main"]

_TEMPLATES = 16
"""Policies kept ready; a host has one for each task signature."""
_PR_SET_PDEATHSIG = 1


class Zygote:
    """Forks workers on order.

    Args:
        control: to the host.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._workers: dict[int, int] = {}
        """Process number to pidfd."""
        self._ended: dict[int, int] = {}
        """Process number to wait status, of workers whose end nobody asked for yet."""
        self._templates: dict[str, Template] = {}
        self._ask: Any = None

    def run(self) -> None:
        """Obey the host until it hangs up."""
        while True:
            for descriptor in self._ready():
                if descriptor in self._workers.values():
                    self._bury(descriptor)
                elif descriptor == self._control.fileno():
                    try:
                        order, data, descriptors = receive_order(self._control)
                    except (EOFError, ConnectionError):
                        return
                    self._obey(order, data, descriptors)

    def _ready(self) -> list[int]:
        """Wait until the host wants something or a worker has ended."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), *self._workers.values()):
            poll.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll()]

    def _obey(self, order: Mapping[str, Any], data: bytes, descriptors: list[int]) -> None:
        try:
            if order["do"] == "fork":
                self._fork(order, data, descriptors[0])
            elif order["do"] == "status":
                send_order(self._control, {"status": self._status(order["pid"])})
        except Exception as error:  # noqa: BLE001 - the host raises it
            send_order(self._control, {"error": f"{type(error).__name__}: {error}"})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _status(self, pid: int) -> int:
        """Return how a worker ended, which the host knows it did."""
        if pid in self._workers:
            self._bury(self._workers[pid])
        return self._ended.pop(pid)

    def _bury(self, pidfd: int) -> None:
        pid = next(pid for pid, each in self._workers.items() if each == pidfd)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # what it left; its number is its own until it is waited for
        _, self._ended[pid] = os.waitpid(pid, 0)
        os.close(self._workers.pop(pid))
        while len(self._ended) > 1000:
            self._ended.pop(next(iter(self._ended)))

    def _fork(self, order: Mapping[str, Any], data: bytes, connection: int) -> None:
        template = self._template(order, data)
        gc.freeze()
        own = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(order, template, connection, own)
        pidfd = os.pidfd_open(pid)
        self._workers[pid] = pidfd
        send_order(self._control, {"pid": pid}, b"", [pidfd])

    def _become(self, order: Mapping[str, Any], template: Template, connection: int, zygote: int) -> None:
        """Be a worker, to the end of this process."""
        status = 1
        try:
            _die_with_parent(zygote)
            os.setsid()
            own = os.dup2(connection, 3) if connection != 3 else 3
            silent = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(silent, standard)
            close_all_but({0, 1, 2, own})
            signal.set_wakeup_fd(-1)
            stream = SocketStream(socket.socket(fileno=own))
            stream.shares_memory = not order["walls"]  # behind them, no memory is made that no limit counts
            channel = Channel(stream)
            _confine(order, channel)
            worker = Worker(channel, template, Limits(**order["limits"]), has_files=order["has_files"])
            self._ask = worker.ask
            _serve(worker, channel)
            status = 0
        finally:
            os._exit(status)

    def _asked(self, what: str, of: int | str, name: str | None, args: Any, kwargs: Any) -> Any:
        """Ask the host: in the worker that this process became."""
        return self._ask(what, of, name, args, kwargs)

    def _template(self, order: Mapping[str, Any], data: bytes) -> Template:
        key = hashlib.blake2b(data + json.dumps(order["about"]).encode()).hexdigest()
        if key not in self._templates:
            for name in order["modules"]:
                importlib.import_module(name)
            stubs = Stubs(self._asked)
            stub = functools.partial(_granted, stubs, order["about"])
            policy, classes = load_policy(data, stub)
            for grant in policy.modules.values():
                if grant.root not in sys.stdlib_module_names:
                    grant.copy()
            self._templates[key] = Template(policy, classes, stubs)
            while len(self._templates) > _TEMPLATES:
                self._templates.pop(next(iter(self._templates)))
        return self._templates[key]


def _serve(worker: Worker, channel: Channel) -> None:
    """Serve the host to its end; tell it of a fault of ours."""
    try:
        worker.run()
    except Exception as error:
        with contextlib.suppress(Exception):
            channel.send({"k": "fault", "why": f"{type(error).__name__}: {error}"[:2000]})
        raise


def _confine(order: Mapping[str, Any], channel: Channel) -> None:
    """Put up what holds this process, and tell the host that it stands, or what does not."""
    try:
        apply_resources(order["resources"])
        if order["walls"]:
            from agex.isolation.kernel.walls import enclose

            enclose(order["walls"])
    except BaseException as error:
        channel.send({"k": "failed", "why": f"{type(error).__name__}: {error}"})
        raise
    channel.send({"k": "ready"})


def _granted(stubs: Stubs, about: Mapping[str, Any], name: str) -> Any:
    return stubs.get(name, about[name])


def _die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    _end_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # it ended before that


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _move_on(descriptor: int) -> None:
    """Go on in a child, the first process of a namespace of its own; end when it ends."""
    from agex.isolation.kernel.namespaces import own_processes

    own_processes()
    child = os.fork()
    if child == 0:
        _end_with_parent()
        return
    os.close(descriptor)
    _, status = os.waitpid(child, 0)
    os._exit(0 if status == 0 else 1)


def main(descriptor: int, namespaces: bool = False) -> None:
    """Be a zygote for the host at the other end of a socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keyboard's goes to the whole group; the host decides
    os.setsid()
    if namespaces:
        _move_on(descriptor)
    Zygote(socket.socket(fileno=descriptor)).run()
