"""Real servers for the tests: on loopback, on a free port, in a directory of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 30.0  # seconds for a server to begin or to end
NOBODY = 65534


@contextmanager
def redis_server() -> Iterator[str]:
    """Run a Redis server; give its url."""
    pytest.importorskip("redis", reason="needs `pip install redis`")
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("needs a Redis server: apt-get install redis-server")
    port = free_port()
    settings = ["--bind", "127.0.0.1", "--port", str(port), "--appendonly", "yes"]
    with directory() as path, running([binary, *settings, "--dir", path], lambda: connects(port)):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a PostgreSQL server, which refuses to be root; give its dsn."""
    pytest.importorskip("psycopg", reason="needs `pip install psycopg[binary]`")
    binaries = postgres_binaries()
    port = free_port()
    dsn = f"host=127.0.0.1 port={port} user=agex dbname=postgres"
    with directory() as path:
        data = f"{path}/data"
        initialize = ["initdb", "-D", data, "-U", "agex", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(
            as_nobody([f"{binaries}/{initialize[0]}", *initialize[1:]]),
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=path,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
        serve = [f"{binaries}/postgres", "-D", data, "-p", str(port), "-k", path]
        options = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with running(as_nobody([*serve, *options]), lambda: accepts(dsn)):
            yield dsn


def postgres_binaries() -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).parent
    if not installed:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    return installed[-1]


def as_nobody(command: Sequence[str]) -> list[str]:
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]


@contextmanager
def directory() -> Iterator[str]:
    """Give a directory that the server may write, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="agex-server-", dir="/tmp") as path:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        yield path


@contextmanager
def running(command: Sequence[str], ready: Callable[[], bool]) -> Iterator[None]:
    """Run a server from when it is ready until the block ends."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            assert server.poll() is None, f"{command[0]} ended with code {server.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            time.sleep(0.02)
        yield
    finally:
        server.terminate()
        server.wait(PATIENCE)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def accepts(dsn: str) -> bool:
    import psycopg

    try:
        psycopg.connect(dsn, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
