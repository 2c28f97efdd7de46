"""Excel files of the workspace, read and written by openpyxl."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.sandbox.libraries.argument_checks import Stream, guarded
from agex.sandbox.libraries.pandas.options import prepared
from agex.sandbox.policy.library import Guard

__all__ = ["TO_EXCEL", "members"]


def _open_books() -> tuple[type, ...]:
    """Return the classes of workbooks that are open: they were checked when they were made."""
    pd: Any = import_module("pandas")

    prepared("openpyxl")
    writers: Any = import_module("pandas.io.excel._openpyxl")
    return (pd.ExcelFile, writers.OpenpyxlWriter)


def _stream(keyword: str, *, files: bool = False, writes: bool = False, copied: bool = False) -> Guard:
    """Return the guard of a function that takes a workbook, as a path, a stream or one that is open."""

    def call(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        books = _open_books()
        is_open = type(args[0] if args else kwargs.get(keyword)) in books
        stream = Stream(
            keyword=keyword,
            also=books,
            writes=writes,
            copied=copied,
            choices={"engine": frozenset({"openpyxl"})},
            without=("engine_kwargs", "storage_options"),
            defaults={} if is_open else {"engine": "openpyxl"},
            files=files,
        )
        return stream(real, *args, **kwargs)

    return call


TO_EXCEL = _stream("excel_writer", writes=True, copied=True)
"""The guard of ``to_excel``."""


def members(files: bool) -> dict[str, Any]:
    """Return the functions and classes of ``pandas`` for workbooks, as guest code gets them."""
    pd: Any = import_module("pandas")

    # Functions in place of the classes: their constructors choose an engine, and open what they are given.
    return {
        "read_excel": guarded(pd.read_excel, _stream("io", files=files, copied=True)),
        "ExcelFile": guarded(pd.ExcelFile, _stream("path_or_buffer", files=files, copied=True)),
        "ExcelWriter": guarded(pd.ExcelWriter, _stream("path", files=files, writes=True)),
    }
