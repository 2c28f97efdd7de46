"""Attempts on each isolation level of this machine: raw Python in a worker, past the sandbox's guards."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from agex.errors import IsolationUnavailable
from agex.isolation import Executor, Level, executor_of, resolve_python
from agex.sandbox import Limits, Policy, Result

__all__ = ["try_level"]

_SECONDS = 5.0
_VARIABLE = "AGEX_DOCTOR_CANARY"
_PROCESSES = 200
"""More than one container may have, and few enough to start them where nothing stops it."""


class Attempts:
    """The attempts, made in a worker's own process. Each returns what it reached, or raises."""

    @staticmethod
    def go(name: str, *args: Any) -> Any:
        """Make one attempt without the guards and without the audit hook."""
        from agex.sandbox.runtime.context import CURRENT

        token = CURRENT.set(None)
        try:
            return getattr(Attempts, name)(*args)
        finally:
            CURRENT.reset(token)

    @staticmethod
    def read(path: str) -> int:
        return len(Path(path).read_text(encoding="utf-8"))

    @staticmethod
    def write(path: str) -> int:
        return Path(path).write_text("x", encoding="utf-8")

    @staticmethod
    def variable(name: str) -> str:
        return os.environ[name]

    @staticmethod
    def connect(port: int) -> None:
        import _socket

        _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect(("127.0.0.1", port))

    @staticmethod
    def fork(most: int) -> int:
        """Start processes that wait for each other; return how many could be started."""
        reader, writer = os.pipe()
        started: list[int] = []
        try:
            for _ in range(most):
                pid = os.fork()
                if pid == 0:
                    os.close(writer)
                    os.read(reader, 1)  # until the last of the others closes it
                    os._exit(0)
                started.append(pid)
        except OSError:
            if not started:
                raise
        finally:
            os.close(reader)
            os.close(writer)
        for pid in started:
            os.waitpid(pid, 0)
        return len(started)

    @staticmethod
    def signal(pid: int) -> None:
        os.kill(pid, 0)


def try_level(level: Level) -> dict[str, Any]:
    """Try a level.

    Returns:
        Whether it is available, its kernel walls, the Python that its code has by default, the milliseconds
        that a worker of it takes to start, and the attempts that it stopped.
    """
    try:
        os.environ[_VARIABLE] = "secret"
        executor = executor_of(level)
        return {
            "available": True,
            "walls": _walls(executor),
            "python": resolve_python(None, level),
            "start_ms": _start(executor),
            "stopped": _attempts(executor),
        }
    except IsolationUnavailable as error:
        return {"available": False, "why": str(error)}
    finally:
        os.environ.pop(_VARIABLE, None)


def _start(executor: Executor) -> dict[str, float]:
    """Return the milliseconds until a worker runs code: the first, which loads it all, and a later one."""
    python = resolve_python(None, executor.level)
    found: dict[str, float] = {}
    for which in ("first", "later"):
        begun = time.perf_counter()
        session = executor.session(Policy.default(), Limits(seconds=_SECONDS), {}, python=python)
        try:
            session.run("1")
        finally:
            session.close()
        found[which] = round((time.perf_counter() - begun) * 1000, 1)
    return found


def _walls(executor: Executor) -> list[str]:
    return [f"{wall.name} ({wall.detail})" for wall in executor.walls()]


def _attempts(executor: Executor) -> dict[str, bool | Literal["bounded"]]:
    """Return for each attempt whether it was stopped."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        secret = Path(folder, "secret")
        secret.write_text("secret", encoding="utf-8")
        calls: dict[str, tuple[Any, ...]] = {
            "read a file of the host": ("read", str(secret)),
            "write a file of the host": ("write", str(Path(folder, "new"))),
            "read the host's environment": ("variable", _VARIABLE),
            "open a connection": ("connect", listener.getsockname()[1]),
            "signal a process of the host": ("signal", os.getpid()),
        }
        stopped: dict[str, bool | Literal["bounded"]] = {
            what: _run(executor, f"Attempts.go(*{args!r})").error is not None for what, args in calls.items()
        }
    forked = _run(executor, f"Attempts.go('fork', {_PROCESSES})")
    is_bounded = forked.error is None and forked.echo != str(_PROCESSES)
    stopped["start a process"] = "bounded" if is_bounded else forked.error is not None
    stopped["run in C past its time"] = _run(executor, "sum(range(10 ** 13))", 0.3).error is not None
    return stopped


def _run(executor: Executor, source: str, seconds: float = _SECONDS) -> Result:
    policy = Policy.default()
    policy.cls(Attempts)
    session = executor.session(policy, Limits(seconds=seconds), {})
    try:
        return session.run(source)
    finally:
        session.close()
