"""Policy of sqlite3. It is part of the standard set, so nothing here imports sqlite3 before it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.sandbox.libraries.sqlite import attributes
from agex.sandbox.policy.library import Guard, Library, Replacements, only

__all__ = ["LIBRARIES"]

_MODULES = {
    # register_adapter, register_converter, enable_callback_tracebacks change the process; Connection
    # and Blob are results of connect; dbapi2 and dump repeat the module
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

_CALLING = """
    create_aggregate create_collation create_function create_window_function set_trace_callback
""".split()
"""Methods that register a callback on a connection."""


def _late(name: str) -> Guard:
    """Return a guard of `agex.sandbox.libraries.sqlite.databases`, which imports sqlite3."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return getattr(_databases(), name)(real, *args, **kwargs)

    return guard


def _databases() -> Any:
    return import_module("agex.sandbox.libraries.sqlite.databases")


def _replace(files: bool) -> Replacements:
    made: Replacements = _databases().members(files)
    return made


LIBRARIES = {
    "sqlite3": Library(
        name="sqlite3",
        modules=_MODULES,
        denied=_DENIED,
        guarded={
            "Connection.backup": _late("backup"),
            **{f"Connection.{name}": _late("of_own") for name in _CALLING},
            **{
                f"{owner}.{name}": _late("alone")
                for owner in ("Connection", "Cursor")
                for name in ("execute", "executemany", "executescript")
            },
        },
        writable=frozenset({"Connection", "Cursor"}),
        sealed=("sqlite3.Connection", "sqlite3.Cursor"),
        stored_on=attributes.stored_on,
        replace=_replace,
    )
}
