"""The first process of a container: it runs a worker, and ends when the worker or the host does.

The worker talks to the host over standard input and output. It may hang in a call into C for
ever; this process never does, and with it the container ends.
"""

from __future__ import annotations

import functools
import importlib
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from agex.isolation.rpc.host_proxies import Stubs
from agex.isolation.rpc.policy_codec import load_policy
from agex.isolation.wire.framing import Channel, Frame, Pipes
from agex.isolation.worker.environment import reset_signals
from agex.isolation.worker.rlimits import apply_resources
from agex.isolation.worker.server import Template, WorkerServer
from agex.isolation.workspace.requests import move_in
from agex.sandbox import Limits

__all__ = ["alone", "main"]


class _Contained:
    """A worker that learns from the host what it is to be."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._worker: WorkerServer | None = None

    def run(self) -> None:
        order = self._channel.receive()
        try:
            template = self._template(order)
            _confine(order.header)
        except Exception as error:
            self._channel.send({"k": "failed", "why": f"{type(error).__name__}: {error}"})
            raise
        limits = Limits(**order.header["limits"])
        settings = {name: order.header[name] for name in ("has_files", "python", "level")}
        self._worker = WorkerServer(self._channel, template, limits, **settings)
        self._channel.send({"k": "ready"})
        self._worker.run()

    def _template(self, order: Frame) -> Template:
        for name in order.header["modules"]:
            importlib.import_module(name)
        stubs = Stubs(self._ask)
        about: Mapping[str, Any] = order.header["about"]
        stub = functools.partial(_granted, stubs, about)
        policy, classes = load_policy(bytes(order.parts[0]), stub)
        return Template(policy, classes, stubs)

    def _ask(self, what: str, of: int | str, name: str | None, args: Any, kwargs: Any) -> Any:
        assert self._worker is not None
        return self._worker.ask(what, of, name, args, kwargs)


def _confine(order: Mapping[str, Any]) -> None:
    """Confine this process as the host orders, before guest code runs: a container needs nothing."""
    if order.get("place"):
        move_in(**order["place"])
    if "resources" in order:
        apply_resources(order["resources"])
    if "readable" in order:
        from agex.isolation.lockdown.seatbelt import restrict

        restrict(order["readable"], order["devices"])


def _granted(stubs: Stubs, about: Mapping[str, Any], name: str) -> Any:
    return stubs.get(name, about[name])


def main() -> None:
    """Run a worker over standard input and output, until it or the host ends."""
    reset_signals()
    child = os.fork()
    if child == 0:
        _work()
    signal.signal(signal.SIGUSR1, lambda *_: os.kill(child, signal.SIGUSR1))
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(0, 0)  # only that the host hung up: its messages are for the worker
    poll.poll()
    done, status = os.waitpid(child, os.WNOHANG)
    os._exit(_as_status(status) if done else 0)


def alone() -> None:
    """Run a worker outside a container, without mechanisms that only Linux has."""
    reset_signals()
    child = os.fork()
    if child == 0:
        _work()
    signal.signal(signal.SIGUSR1, lambda *_: os.kill(child, signal.SIGUSR1))
    threading.Thread(target=_end_with_host, args=(child,), daemon=True).start()
    _, status = os.waitpid(child, 0)
    os._exit(_as_status(status))


def _as_status(status: int) -> int:
    """Return the exit status for the end of a child, as a shell does: 128 and a signal's number."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_with_host(child: int) -> None:
    poll = select.poll()
    poll.register(0, 0)  # only that the host hung up
    poll.poll()
    os.kill(child, signal.SIGKILL)


def _work() -> None:
    """Run the worker until this process ends."""
    status = 1
    try:
        reader, writer = os.dup(0), os.dup(1)
        silent = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(silent, standard)
        sys.stdin.close()
        sys.dont_write_bytecode = True  # of a library's late imports: the audit hook would refuse it
        _Contained(Channel(Pipes(reader, writer))).run()
        status = 0
    finally:
        os._exit(status)
