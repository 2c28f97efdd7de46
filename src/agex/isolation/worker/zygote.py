"""Zygote: the process that workers are forked from, an interpreter with the registered modules loaded.

The host starts the first as a clean interpreter. It runs no guest code and trusts the host. It divides into
zygotes that load modules, and these into some that know one policy each and fork a worker for each task, in
one to three milliseconds. Each waits for its children: when a worker ends, its whole process group is
killed before its number can be reused.

A zygote ends when the host does, because the connection to the host closes then. Its children end with it,
because the kernel kills them (``PR_SET_PDEATHSIG``).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from agex.isolation.executor import Python
from agex.isolation.rpc.host_proxies import Stubs
from agex.isolation.rpc.policy_codec import load_policy
from agex.isolation.wire.fd_passing import close_all_but, receive_order, send_order
from agex.isolation.wire.framing import Channel, SocketStream
from agex.isolation.worker.environment import reset_signals
from agex.isolation.worker.rlimits import apply_resources
from agex.isolation.worker.server import Template, WorkerServer
from agex.sandbox import Limits, Policy, Session
from agex.values.checks.opcode_audit import compile_patterns

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_LATE_IMPORTS = ("encodings.ascii", "resource", "_posixsubprocess", "_multiprocessing")
"""Modules that a worker imports only as it is confined and begins."""
_QUIET_MS = 50
"""Milliseconds after an order in which no spare is forked: the worker that it started wants the machine."""
_TAKEN = b"1"
"""Answer of a waiting worker to its order."""
_CONNECTION = 3
"""The descriptor of a forked process that leads to the host."""
_GIFT = 4
"""The descriptor of a worker by which it sends the host the one of its directory."""


class Zygote:
    """Forks on order.

    Args:
        control: to the host.
        namespaces: whether its workers are confined in namespaces of their own.
    """

    def __init__(self, control: socket.socket, *, namespaces: bool = False) -> None:
        self._control = control
        self._namespaces = namespaces
        self._forked: dict[int, int] = {}
        """Process number to pidfd."""
        self._ended: dict[int, int] = {}
        """Process number to wait status, of ended workers whose status the host has not asked for."""
        self._template: Template | None = None
        self._spare: Spare | None = None
        self._wants_spare = False
        self._ask: Any = None

    def run(self) -> None:
        """Obey the host until it hangs up."""
        while True:
            if not (ready := self._ready()):
                self._wants_spare = False
                with contextlib.suppress(OSError):  # too many processes: the next order tries again
                    self._spare = self._forked_ahead()
            for descriptor in ready:
                if descriptor in self._forked.values():
                    self._bury(descriptor)
                elif descriptor == self._control.fileno():
                    try:
                        order, data, descriptors = receive_order(self._control)
                    except (EOFError, ConnectionError):
                        return self._bury_all()
                    self._obey(order, data, descriptors)
                    self._wants_spare = self._template is not None

    def _ready(self) -> list[int]:
        """Wait for an order or the end of a process; return their descriptors, none if a spare is due."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), *self._forked.values()):
            poll.register(descriptor, select.POLLIN)
        is_due = self._wants_spare and self._spare is None
        return [descriptor for descriptor, _ in poll.poll(_QUIET_MS if is_due else None)]

    def _obey(self, order: Mapping[str, Any], data: bytes, descriptors: list[int]) -> None:
        answer: dict[str, Any] = {}
        given: list[int] = []
        try:
            if order["do"] == "divide":
                if self._divided(descriptors[0]):
                    return  # the other of the two answers, and has the descriptors
            elif order["do"] == "load":
                sys.path[:] = order["path"]
                with _surroundings_of_workers() if self._namespaces else contextlib.nullcontext():
                    for name in order["modules"]:
                        _load(name)
            elif order["do"] == "policy":
                self._template = self._loaded(order["about"], data, order["python"])
            elif order["do"] == "fork":
                answer["pid"] = self._fork(order, descriptors)
                given = [self._forked[answer["pid"]]]
            elif order["do"] == "status":
                answer["status"] = self._status(order["pid"])
        except Exception as error:  # noqa: BLE001 - the host raises it
            answer = {"error": f"{type(error).__name__}: {error}"}
        for descriptor in descriptors:
            os.close(descriptor)
        send_order(self._control, answer, b"", given)

    def _status(self, pid: int) -> int:
        """Return the wait status of a worker that the host knows to have ended."""
        if pid in self._forked:
            self._bury(self._forked[pid])
        return self._ended.pop(pid)

    def _bury(self, pidfd: int) -> None:
        pid = next(pid for pid, each in self._forked.items() if each == pidfd)
        if self._spare is not None and self._spare.pid == pid:
            self._spare.close()
            self._spare = None
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # its group; the number is reserved until it is waited for
        _, self._ended[pid] = os.waitpid(pid, 0)
        os.close(self._forked.pop(pid))
        while len(self._ended) > 1000:
            self._ended.pop(next(iter(self._ended)))

    def _bury_all(self) -> None:
        for pidfd in [*self._forked.values()]:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            self._bury(pidfd)

    # -- forking -----------------------------------------------------------------------

    def _divided(self, connection: int) -> bool:
        """Fork a zygote; return whether this process is the forked one."""
        own = os.getpid()
        gc.freeze()
        pid = os.fork()
        if pid:
            self._forked[pid] = os.pidfd_open(pid)
            return False
        try:
            self._part(connection, own)
            self._control = socket.socket(fileno=_CONNECTION)
        except BaseException:  # noqa: BLE001 - this process must not answer in place of its parent
            os._exit(1)
        return True

    def _part(self, connection: int, parent: int) -> None:
        """Keep only the loaded modules of the parent, in a process that was forked from it."""
        _die_with_parent(parent)
        os.setsid()
        if self._spare is not None:
            self._spare.close()
        _keep_only(connection)
        self._control.detach()
        self._forked, self._ended, self._spare = {}, {}, None

    def _forked_ahead(self) -> Spare:
        """Fork the next worker before it is ordered: with large libraries that takes milliseconds."""
        ours, theirs = socket.socketpair()
        with theirs:
            gc.freeze()
            own = os.getpid()
            pid = os.fork()
            if pid == 0:
                ours.detach()
                self._wait_for_order(theirs.detach(), own)
        self._forked[pid] = os.pidfd_open(pid)
        return Spare(pid, ours)

    def _wait_for_order(self, connection: int, zygote: int) -> NoReturn:
        """Become the worker of the order that the zygote passes on, until this process ends."""
        try:
            self._part(connection, zygote)
            control = socket.socket(fileno=_CONNECTION)
            order, _, descriptors = receive_order(control)
            control.sendall(_TAKEN)
            control.detach()
        except BaseException:  # noqa: BLE001 - this process must not answer in place of its parent
            os._exit(1)
        self._become(order, descriptors)

    def _fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Give a worker its order; return its process number."""
        for _ in range(2):  # the one that waited may have been killed, for lack of memory
            spare, self._spare = self._spare or self._forked_ahead(), None
            if spare.begin(order, descriptors):
                return spare.pid
        raise ChildProcessError("a forked process ends before it gets its order")

    def _become(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
        """Run a worker until this process ends."""
        status = 1
        try:
            _keep_only(*descriptors)
            silent = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(silent, standard)
            os.close(silent)
            signal.set_wakeup_fd(-1)
            sys.dont_write_bytecode = True  # of a library's late imports: the audit hook would refuse it
            stream = SocketStream(socket.socket(fileno=_CONNECTION))
            stream.shares_memory = not order["walls"]  # under them, every limit counts all memory
            channel = Channel(stream)
            _confine(order, channel)
            assert self._template is not None
            limits = Limits(**order["limits"])
            worker = WorkerServer(
                channel,
                self._template,
                limits,
                has_files=order["has_files"],
                python=order["python"],
                level=order["level"],
            )
            self._ask = worker.ask
            _serve(worker, channel)
            status = 0
        finally:
            os._exit(status)

    def _asked(self, what: str, of: int | str, name: str | None, args: Any, kwargs: Any) -> Any:
        """Ask the host: in the worker that this process became."""
        return self._ask(what, of, name, args, kwargs)

    def _loaded(self, about: Mapping[str, Any], data: bytes, python: Python) -> Template:
        stubs = Stubs(self._asked)
        policy, classes = load_policy(data, functools.partial(_granted, stubs, about))
        compile_patterns()
        if python == "guarded":
            _prepare(policy)
        _load_late_imports()
        return Template(policy, classes, stubs)


class Spare:
    """A worker that waits for its order.

    Args:
        pid: of its process.
        connection: to it.
    """

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection

    def begin(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> bool:
        """Give it its order; return whether it could take it."""
        with self._connection:
            try:
                send_order(self._connection, order, b"", descriptors)
                return self._connection.recv(len(_TAKEN)) == _TAKEN
            except (BrokenPipeError, ConnectionResetError):
                return False

    def close(self) -> None:
        """Let it end, without an order."""
        self._connection.close()


def _keep_only(*descriptors: int) -> None:
    """Give descriptors the numbers from `_CONNECTION` on, and close all others but the standard ones."""
    # From numbers that neither copy closes.
    kept = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 16) for each in descriptors]
    for number, each in enumerate(kept, _CONNECTION):
        os.dup2(each, number)
    close_all_but({0, 1, 2, *range(_CONNECTION, _CONNECTION + len(kept))})


def _load_late_imports() -> None:
    """Do once what each worker would do as it starts: load modules, and free what the import system noted."""
    for name in _LATE_IMPORTS:
        importlib.import_module(name)
    sys.path_importer_cache.clear()


def _prepare(policy: Policy) -> None:
    """Do once what each worker would do first: copy the modules, install the patches of the sandbox."""
    for grant in policy.modules.values():
        if grant.root not in sys.stdlib_module_names:
            grant.copy()
    Session(policy, Limits(), {})


@contextlib.contextmanager
def _surroundings_of_workers() -> Iterator[None]:
    """Let modules find, when they are imported in a block, what they will find in a confined worker."""
    from agex.isolation.lockdown.namespaces import hidden_processes

    # Else joblib tries here whether there can be processes, and relies on them later.
    with hidden_processes():
        os.environ["JOBLIB_MULTIPROCESSING"] = "0"  # noqa: TID251 - of this process alone, and taken back
        try:
            yield
        finally:
            del os.environ["JOBLIB_MULTIPROCESSING"]  # noqa: TID251 - the same


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:
        raise ImportError(
            f"{name} cannot be imported in a worker, which has of the host's environment nothing but locale "
            f"and time zone: {type(error).__name__}: {error}"
        ) from error


def _serve(worker: WorkerServer, channel: Channel) -> None:
    """Serve the host to its end; report a fault of the worker."""
    try:
        worker.run()
    except Exception as error:
        with contextlib.suppress(Exception):
            channel.send({"k": "fault", "why": f"{type(error).__name__}: {error}"[:2000]})
        raise


def _confine(order: Mapping[str, Any], channel: Channel) -> None:
    """Confine this process, and report to the host that it is confined, or which mechanism failed."""
    try:
        apply_resources(order["resources"])
        if order["walls"]:
            from agex.isolation.lockdown.linux import enclose

            enclose(order["walls"], _give_to_host)
            _forget_folders(order["walls"]["readable"])
        if order["place"]:
            from agex.isolation.workspace.requests import move_in

            move_in(**order["place"])
    except BaseException as error:
        channel.send({"k": "failed", "why": f"{type(error).__name__}: {error}"})
        raise
    channel.send({"k": "ready"})


def _give_to_host(descriptor: int) -> None:
    """Send the host a descriptor, and close the connection that it wants it by."""
    with socket.socket(fileno=_GIFT) as host:
        send_order(host, {}, b"", [descriptor])


def _forget_folders(readable: Sequence[str]) -> None:
    """Forget the folders of modules that cannot be read any more, and the names of all files in them."""
    sys.path[:] = [path for path in sys.path if any(f"{path}/".startswith(f"{each}/") for each in readable)]
    sys.path_importer_cache.clear()


def _granted(stubs: Stubs, about: Mapping[str, Any], name: str) -> Any:
    return stubs.get(name, about[name])


def _die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends."""
    _end_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # it ended before that


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _move_on(descriptor: int) -> None:
    """Go on in a child, the first process of a namespace of its own; end when it ends."""
    from agex.isolation.lockdown.namespaces import own_processes

    own_processes()
    child = os.fork()
    if child == 0:
        _end_with_parent()
        return
    os.close(descriptor)
    _, status = os.waitpid(child, 0)
    os._exit(0 if status == 0 else 1)


def main(descriptor: int, namespaces: bool = False) -> None:
    """Run a zygote for the host at the other end of a socket."""
    reset_signals()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # one from the keyboard goes to the whole group; the host decides
    os.setsid()
    if namespaces:
        _move_on(descriptor)
    Zygote(socket.socket(fileno=descriptor), namespaces=namespaces).run()
    os._exit(0)  # without exit handlers of modules, which each zygote would run
