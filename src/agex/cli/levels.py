"""What each isolation level stops here, by trying: raw Python in a worker, past the sandbox's guards."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path
from typing import Any

from agex.errors import IsolationUnavailable
from agex.isolation import Executor, Level, executor_of
from agex.sandbox import Limits, Policy

__all__ = ["try_level"]

_SECONDS = 5.0


class Attempts:
    """What a worker's own process is asked to do. Each gives what it reached, or raises."""

    @staticmethod
    def go(name: str, *args: Any) -> Any:
        """Make one attempt where neither guards nor the second wall stand in the way."""
        from agex.sandbox.context import CURRENT

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
    def connect(port: int) -> None:
        import _socket

        _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect(("127.0.0.1", port))

    @staticmethod
    def fork() -> int:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        return os.waitpid(pid, 0)[0]

    @staticmethod
    def signal(pid: int) -> None:
        os.kill(pid, 0)


def try_level(level: Level) -> dict[str, Any]:
    """Try a level: say whether it is there, what holds it, and what raw Python was kept from."""
    try:
        executor = executor_of(level)
        return {"available": True, "walls": _walls(executor), "stopped": _attempts(executor)}
    except IsolationUnavailable as error:
        return {"available": False, "why": str(error)}


def _walls(executor: Executor) -> list[str]:
    return [f"{wall.name} ({wall.detail})" for wall in executor.walls()]


def _attempts(executor: Executor) -> dict[str, bool]:
    """Tell for each attempt whether it was stopped."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        secret = Path(folder, "secret")
        secret.write_text("secret", encoding="utf-8")
        calls: dict[str, tuple[Any, ...]] = {
            "read a file of the host": ("read", str(secret)),
            "write a file of the host": ("write", str(Path(folder, "new"))),
            "open a connection": ("connect", listener.getsockname()[1]),
            "start a process": ("fork",),
            "signal a process of the host": ("signal", os.getpid()),
        }
        stopped = {what: _is_stopped(executor, f"Attempts.go(*{args!r})") for what, args in calls.items()}
    stopped["run in C past its time"] = _is_stopped(executor, "sum(range(10 ** 13))", 0.3)
    return stopped


def _is_stopped(executor: Executor, source: str, seconds: float = _SECONDS) -> bool:
    policy = Policy.default()
    policy.cls(Attempts)
    session = executor.session(policy, Limits(seconds=seconds), {})
    try:
        return session.run(source).error is not None
    finally:
        session.close()
