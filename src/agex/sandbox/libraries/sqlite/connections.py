"""Connections and cursors that stay valid while SQLite works on them.

SQLite calls Python back in the middle of a statement: functions, aggregates, collations, adapters of
parameters, trace callbacks. Afterwards the module ``sqlite3`` goes on with the connection and the cursor of
the statement without a check. The process ends if the callback closed the connection, or used the running
cursor.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from agex.errors import SandboxTypeError
from agex.sandbox.classes import sealed_classes, stand_ins

__all__ = ["Connection", "Cursor", "alone", "stands_for"]

T = TypeVar("T")


@contextmanager
def alone(connection: sqlite3.Connection) -> Iterator[None]:
    """Keep a connection from opening other files: ``ATTACH`` creates and reads any, in compiled code."""
    before = connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    try:
        yield
    finally:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, before)


class _Use:
    """Counts the running calls of a connection or a cursor."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1

    def during(self, call: Callable[..., T]) -> Callable[..., T]:
        """Return a callback that counts as a call. It does not hold the connection, which holds it."""

        def counted(*args: Any) -> T:
            with self:
                return call(*args)

        return counted


def _counted(name: str) -> Any:
    """Return a method of cursors that is refused while another one of the same cursor runs."""
    real = getattr(sqlite3.Cursor, name)

    def call(self: Any, *args: Any, **options: Any) -> Any:
        if self._use.depth:
            raise sqlite3.ProgrammingError("Recursive use of cursors not allowed.")
        with self._use, self._whole:
            return real(self, *args, **options)

    call.__name__, call.__qualname__, call.__doc__ = name, f"Cursor.{name}", real.__doc__
    return call


class Cursor(sqlite3.Cursor):
    """A cursor that runs one call at a time."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._use, self._whole = _Use(), connection._use

    __next__ = _counted("__next__")
    close = _counted("close")
    execute = _counted("execute")
    executemany = _counted("executemany")
    executescript = _counted("executescript")
    fetchall = _counted("fetchall")
    fetchmany = _counted("fetchmany")
    fetchone = _counted("fetchone")


class _Aggregate:
    """A guest aggregate, each call of which is counted."""

    _METHODS: ClassVar = frozenset({"step", "finalize", "value", "inverse"})

    def __init__(self, use: _Use, aggregate: Any) -> None:
        self._use, self._aggregate = use, aggregate

    def __getattr__(self, name: str) -> Any:
        if name not in self._METHODS:
            raise AttributeError(name)
        return self._use.during(getattr(self._aggregate, name))


class Connection(sqlite3.Connection):
    """A connection that cannot be closed while one of its statements runs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._use = _Use()
        super().__init__(*args, **options)

    def cursor(self, factory: None = None) -> Cursor:  # type: ignore[override]
        if factory is not None:
            raise SandboxTypeError("cursor(factory=...) is not available; set row_factory")
        return super().cursor(Cursor)

    def execute(self, *args: Any) -> Cursor:  # the real ones make a cursor of the real class
        cursor = self.cursor()
        cursor.execute(*args)
        return cursor

    def executemany(self, *args: Any) -> Cursor:
        cursor = self.cursor()
        cursor.executemany(*args)
        return cursor

    def executescript(self, sql_script: str, /) -> Cursor:
        cursor = self.cursor()
        cursor.executescript(sql_script)
        return cursor

    def close(self) -> None:
        if self._use.depth:
            raise sqlite3.ProgrammingError("a connection cannot be closed while a statement of it runs")
        super().close()

    def backup(self, target: sqlite3.Connection, **options: Any) -> None:
        with self._use, target._use if isinstance(target, Connection) else _Use():
            super().backup(target, **options)

    def create_function(self, name: str, narg: int, func: Any, **options: Any) -> None:
        super().create_function(name, narg, self._during(func), **options)

    def create_collation(self, name: str, callback: Any, /) -> None:
        super().create_collation(name, self._during(callback))

    def set_trace_callback(self, trace_callback: Any) -> None:
        super().set_trace_callback(self._during(trace_callback))

    def create_aggregate(self, name: str, n_arg: int, aggregate_class: Any) -> None:
        super().create_aggregate(name, n_arg, self._made(aggregate_class))

    def create_window_function(self, name: str, num_params: int, aggregate_class: Any, /) -> None:
        super().create_window_function(name, num_params, self._made(aggregate_class))

    def _during(self, call: Any) -> Any:
        return self._use.during(call) if callable(call) else call

    def _made(self, class_: Any) -> Any:
        use = self._use
        return use.during(lambda: _Aggregate(use, class_())) if callable(class_) else class_


def stands_for(real: type, ours: type) -> None:
    """Show the class *ours* as *real*: by its names, and by ``type()`` of its objects for guest code."""
    ours.__module__, ours.__name__, ours.__qualname__ = real.__module__, real.__name__, real.__qualname__
    stand_ins.stands_for(ours, sealed_classes.sealed(real))


stands_for(sqlite3.Cursor, Cursor)
stands_for(sqlite3.Connection, Connection)
