"""What guest code may do with sqlite3: databases in memory."""

from __future__ import annotations

import sqlite3
from typing import Any

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox import wall
from agex.sandbox.libraries.library import Library, Replacements, only

__all__ = ["LIBRARIES"]

_MODULES = {
    # register_adapter, register_converter, enable_callback_tracebacks change the process; Connection
    # and Blob are what connect gives; dbapi2 and dump are the same again
    "": only(
        "PARSE_* Row Cursor Connection Binary Date Time Timestamp DateFromTicks apilevel paramstyle",
        "threadsafety",
        "sqlite_version sqlite_version_info complete_statement *Error Warning",
    )
}

_DENIED = frozenset(
    """
    set_authorizer set_progress_handler
    enable_load_extension load_extension
    deserialize setconfig
    """.split()
    # the first two are ours; extensions are native code; a damaged image is parsed by C
)

_PRAGMAS = frozenset(
    """
    application_id case_sensitive_like collation_list compile_options count_changes data_version database_list
    defer_foreign_keys encoding foreign_key_check foreign_key_list foreign_keys function_list index_info
    index_list
    index_xinfo integrity_check page_count page_size quick_check recursive_triggers reverse_unordered_selects
    synchronous table_info table_list table_xinfo temp_store user_version journal_mode cache_size
    """.split()
)
"""What describes a database or how it works in memory; no directories, no writable schema."""

_VIRTUAL = frozenset(
    {"fts3", "fts4", "fts5", "rtree", "rtree_i32", "json_each", "json_tree", "generate_series"}
)
_NO_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})

_STEPS = 10_000  # of SQLite's machine between two looks at the limits: about a millisecond


def _judge(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    """Authorise what a statement does (sqlite.org: Compile-Time Authorization Callbacks)."""
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
    """Give Python a chance to notice a limit."""
    return 0


def _connection(database: Any, options: dict[str, Any]) -> sqlite3.Connection:
    """Open a database that stays within `_judge`, and that a limit can end."""
    with wall.opened("files"):
        connection: sqlite3.Connection = sqlite3.connect(database, **options)
    connection.set_authorizer(_judge)
    connection.set_progress_handler(_tick, _STEPS)
    return connection


def _replace(files: bool) -> Replacements:
    def connect(database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
        """Open a database in memory; a file as well if the host opened its files."""
        if not files and (type(database) is not str or database != ":memory:"):
            raise SandboxError("sqlite3.connect() opens ':memory:' here, not a file")
        if args or options.keys() & {"factory", "uri"}:
            raise SandboxTypeError(
                "sqlite3.connect(factory=...) and uri= are not available; name other options"
            )
        return _connection(database, options)

    return {"": {"connect": connect}}


LIBRARIES = {
    "sqlite3": Library(
        name="sqlite3",
        modules=_MODULES,
        denied=_DENIED,
        writable=frozenset({"Connection", "Cursor"}),
        sealed=("sqlite3.Connection",),
        replace=_replace,
    )
}
