"""Databases of sqlite3 for guest code: in memory, and files of the workspace.

A file of the workspace is copied into memory, and written back whole when it is committed or closed. SQLite
itself never opens a file.
"""

from __future__ import annotations

import functools
import os
import pathlib
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.classes.errors import check_keywords
from agex.sandbox.libraries.sqlite import connections
from agex.sandbox.policy.library import Replacements
from agex.sandbox.runtime import audit_hook
from agex.sandbox.runtime.workspace_files import workspace

if TYPE_CHECKING:
    from types import TracebackType

    from agex.sandbox.runtime.workspace_files import GuestFiles

__all__ = ["alone", "backup", "members", "of_own"]

_PRAGMAS = frozenset(
    """
    application_id case_sensitive_like collation_list compile_options count_changes data_version database_list
    defer_foreign_keys encoding foreign_key_check foreign_key_list foreign_keys function_list index_info
    index_list
    index_xinfo integrity_check page_count page_size quick_check recursive_triggers reverse_unordered_selects
    synchronous table_info table_list table_xinfo temp_store user_version journal_mode cache_size
    """.split()
)
"""Pragmas that describe a database, or how it works in memory; no directories, no writable schema."""

_VIRTUAL = frozenset(
    {"fts3", "fts4", "fts5", "rtree", "rtree_i32", "json_each", "json_tree", "generate_series"}
)
_NO_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})

_STEPS = 10_000  # of SQLite's machine between two checks of the limits: about a millisecond


def _judge(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    """Authorise the action of a statement (sqlite.org: Compile-Time Authorization Callbacks)."""
    if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):  # VACUUM INTO attaches its target
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() not in _PRAGMAS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_CREATE_VTABLE and (second or "").lower() not in _VIRTUAL:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _NO_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _tick() -> int:
    """Return Python a chance to notice a limit."""
    return 0


def backup(real: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call Python between steps: SQLite would wait for ever for an uncommitted transaction."""
    if options.get("progress") is None:
        options["progress"] = _step
    return real(*args, **options)


def of_own(real: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Refuse callbacks on a host connection, which would call them after the run for host statements."""
    if not isinstance(getattr(real, "__self__", None), connections.Connection):
        raise SandboxTypeError(
            f"{real.__name__}() is for connections of your own, sqlite3.connect(':memory:') for example; "
            "work on the rows instead"
        )
    return real(*args, **options)


def alone(real: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Keep a host connection, which nothing else restrains, from opening other files."""
    subject: Any = getattr(real, "__self__", None)
    if not isinstance(subject, (sqlite3.Connection, sqlite3.Cursor)):  # read off the class
        subject = args[0] if args else None
    connection = subject.connection if isinstance(subject, sqlite3.Cursor) else subject
    if not isinstance(connection, sqlite3.Connection) or isinstance(connection, connections.Connection):
        return real(*args, **options)
    with connections.alone(connection):
        return real(*args, **options)


def _step(status: int, remaining: int, total: int) -> None:
    """Return Python a chance to notice a limit."""


class _InWorkspace(connections.Connection):
    """A database whose file is in the workspace."""

    _files: GuestFiles
    _path: str

    def _take(self, files: GuestFiles, path: str) -> None:
        """Read the file, if there is one."""
        self._files, self._path = files, path
        if files.exists(path):
            if content := files.read(path):
                self.deserialize(content)
        else:
            files.write(path, b"")

    def _put_back(self) -> None:
        self._files.write(self._path, self.serialize())

    def commit(self) -> None:
        super().commit()
        self._put_back()

    def executescript(self, sql_script: str, /) -> connections.Cursor:
        cursor = super().executescript(sql_script)
        if not self.in_transaction:
            self._put_back()
        return cursor

    def close(self) -> None:
        if self._is_open() and not self._use.depth:
            self.rollback()  # uncommitted changes are lost, as in a file
            self._put_back()
        super().close()

    def _is_open(self) -> bool:
        try:
            self.total_changes  # noqa: B018 - raises once it is closed
        except sqlite3.ProgrammingError:
            return False
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._put_back()
        return False


connections.stands_for(sqlite3.Connection, _InWorkspace)


def _connection(database: Any, options: dict[str, Any]) -> sqlite3.Connection:
    """Open a database that `_judge` restrains, and that a limit can end."""
    connection = audit_hook.call_with_permissions(
        ("files",), sqlite3.connect, database, factory=connections.Connection, **options
    )
    return _restrained(connection)


def _restrained(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.set_authorizer(_judge)
    connection.set_progress_handler(_tick, _STEPS)
    return connection


def _of_workspace(path: str, options: dict[str, Any]) -> sqlite3.Connection:
    files = workspace()
    if path.startswith("file:"):
        raise SandboxError(f"sqlite3.connect() takes a path here, not {path[:60]!r}")
    if options.get("isolation_level", "") is None or "autocommit" in options:
        raise SandboxTypeError(
            "sqlite3.connect(isolation_level=None) is for ':memory:' here: a file is written when it is "
            "committed; call commit(), or use the connection in a with block"
        )
    made = functools.partial(sqlite3.connect, ":memory:", factory=_InWorkspace)
    connection: Any = audit_hook.call_with_permissions(
        ("files",), made, **options
    )  # it is told to open nothing
    connection._take(files, path)  # pyright: ignore[reportPrivateUsage] - no name that a guest could say
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):  # the image may be made by hand
        connection.execute(f"PRAGMA {pragma}")
    return _restrained(connection)


def members(files: bool) -> Replacements:
    """Return the function that opens a database, for a grant with or without the host's files."""

    def connect(database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
        """Open a database in memory or in the workspace; a host file if the host opened its files."""
        check_keywords(options)
        path = os.fspath(database) if isinstance(database, pathlib.PurePosixPath) else database
        if not files and type(path) is not str:
            raise SandboxError("sqlite3.connect() opens ':memory:' or a path of the workspace here")
        if args or options.keys() & {"factory", "uri"}:
            raise SandboxTypeError(
                "sqlite3.connect(factory=...) and uri= are not available; name other options"
            )
        return _connection(path, options) if files or path == ":memory:" else _of_workspace(path, options)

    return {"": {"connect": connect}}
