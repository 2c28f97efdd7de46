"""Validation of tables read in Arrow's own format.

The format is the memory of the arrays. Arrow follows the offsets and positions in it without a check. Forged
ones lead out of the memory, unless Arrow is asked to validate what it has read.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["checked_batch", "checked_batches", "checked_first", "checked_frame", "checked_table"]


def checked_table(real: Callable[..., Any]) -> Callable[..., Any]:
    """Validate the table that a function returns."""

    def read_table(*args: Any, **kwargs: Any) -> Any:
        return _valid(real(*args, **kwargs))

    return _named(read_table, real)


def checked_first(real: Callable[..., Any], read_table: Callable[[Any], Any]) -> Callable[..., Any]:
    """Validate the table of which a function makes a frame. The source is read twice."""

    def read_frame(source: Any, *args: Any, **kwargs: Any) -> Any:
        _valid(read_table(source))
        if hasattr(source, "seek"):
            source.seek(0)
        return real(source, *args, **kwargs)

    return _named(read_frame, real)


def checked_batches(real: Callable[..., Any]) -> Callable[..., Any]:
    """Validate each batch that a reader of a stream returns, also to compiled code."""

    def open_stream(*args: Any, **kwargs: Any) -> Any:
        pa: Any = import_module("pyarrow")
        reader = real(*args, **kwargs)
        return pa.RecordBatchReader.from_batches(reader.schema, map(_valid, reader))

    return _named(open_stream, real)


def checked_batch(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Guard a method that returns a batch or a table."""
    result = real(*args, **kwargs)
    _valid(getattr(result, "batch", result))
    return result


def checked_frame(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Guard the method that makes a frame of all batches of a file."""
    reader = real.args[0] if hasattr(real, "args") else real.__self__  # read off the class, or bound
    _valid(reader.read_all())
    return real(*args, **kwargs)


def _valid(table: Any) -> Any:
    table.validate(full=True)
    return table


def _named(function: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__, function.__doc__ = real.__name__, real.__doc__
    return function
