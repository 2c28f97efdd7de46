"""``agex worker MODULE --state STORE``: carry on the open runs of a store."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from agex.agent import AsyncTask, Task
from agex.cli.run import find_module
from agex.display import plain
from agex.durable import Report, Worker
from agex.errors import DefinitionError, StateError

if TYPE_CHECKING:
    from agex.state.kv.store import KVStore

__all__ = ["print_report", "store_at", "work"]

_POSTGRES, _REDIS = ("postgresql://", "postgres://"), ("redis://", "rediss://", "unix://")


def work(
    module: str,
    address: str,
    *,
    once: bool,
    lease: float,
    poll: float,
    attempts: int,
    model: str | None,
    tell: Callable[[dict[str, str]], None],
) -> bool:
    """Carry runs on until a signal; return whether one failed.

    Raises:
        DefinitionError: the module defines no task, or a number is out of range.
        StateError: the store cannot be opened.
    """
    tasks = tasks_of(module)
    if model is not None:
        for task in tasks:
            task.agent.model = model
    store, failed = store_at(address), False

    def on_report(report: Report) -> None:
        nonlocal failed
        failed = failed or report.what == "failed"
        tell(asdict(report))

    with contextlib.closing(store):
        worker = Worker(tasks, store, lease=lease, poll=poll, attempts=attempts, on_report=on_report)
        with _stopped_by_signals(worker):
            worker.run(once=once)
    return failed


def tasks_of(module: str) -> list[Any]:
    """Return the tasks that a module defines or imports.

    Raises:
        DefinitionError: there is no such module, or it has none.
    """
    names = vars(find_module(module)).values()
    found = list({id(one): one for one in names if isinstance(one, Task | AsyncTask)}.values())
    if not found:
        raise DefinitionError(f"module {module!r} defines no task; decorate functions with @agent.task")
    return found


def store_at(address: str) -> KVStore:
    """Open the store at a directory or the address of a server.

    Raises:
        StateError: there is none.
    """
    if address.startswith(_POSTGRES) or "dbname=" in address:
        from agex.state.postgres import PostgresStore

        return PostgresStore(address)
    if address.startswith(_REDIS):
        from agex.state.redis import RedisStore

        return RedisStore(address)
    from agex.state.disk.disk import Disk

    if "://" in address:
        raise StateError(f"{address!r} is no store: give a directory, postgresql://... or redis://...")
    if not (Path(address) / "state.db").is_file():
        raise StateError(f"{address} holds no state; give the directory of a Disk store")
    return Disk(address)


def print_report(report: dict[str, str]) -> None:
    """Print what became of a run, in a line."""
    run = " ".join(part for part in (report["task"], report["run_id"]) if part)
    where = f"{run} on {report['branch']}" if report["branch"] else ""
    text = "  ".join(part for part in (f"{report['what']:8}", where, report["text"]) if part)
    Console(highlight=False, soft_wrap=True).print(Text(plain(text)))


@contextlib.contextmanager
def _stopped_by_signals(worker: Worker) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C stop a worker; the second one ends the process, as a crash would."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    # A handler interrupts the main thread anywhere, also where it holds a lock that stop() wants: so another
    # thread stops the worker. A SimpleQueue may be put to from a handler.
    news: SimpleQueue[bool] = SimpleQueue()

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        news.put(True)

    def watch() -> None:
        if news.get():
            worker.stop()

    watcher = threading.Thread(target=watch, name="agex signals", daemon=True)
    watcher.start()
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        news.put(False)
        watcher.join()
        for number, handler in before.items():
            signal.signal(number, handler)
