"""Modules compiled ahead: archives with bytecode beside each source.

A tab has no disk that outlives it, so Python would compile each module at each load of the page,
which takes longer than all else. This runs in Pyodide when a site is put together: bytecode is of one
version of Python. It needs nothing but the standard library.
"""

from __future__ import annotations

import importlib.util
import marshal
import zipfile
from pathlib import Path

__all__ = ["with_bytecode"]

_UNCHECKED = 1
"""Flags of bytecode that holds whatever its source's date: PEP 552."""


def with_bytecode(source: Path, made: Path, *, place: str, zipped: bool) -> None:
    """Copy an archive of modules with their bytecode.

    Args:
        source: a wheel, or a zip of modules.
        made: the copy.
        place: where its files will lie: tracebacks name it.
        zipped: whether they are imported out of the archive (`zipimport`), or unpacked first.
    """
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            data = archive.read(entry)
            copy.writestr(entry, data, zipfile.ZIP_DEFLATED)
            if entry.filename.endswith(".py"):
                code = _compiled(data, f"{place}/{entry.filename}")
                if code is not None:
                    beside = zipfile.ZipInfo(_path(entry.filename, zipped), entry.date_time)
                    copy.writestr(beside, code, zipfile.ZIP_DEFLATED)


def _path(source: str, zipped: bool) -> str:
    """Return where Python looks for the bytecode of a source."""
    return f"{source}c" if zipped else importlib.util.cache_from_source(source)


def _compiled(data: bytes, path: str) -> bytes | None:
    """Return the bytecode of a module; None for what does not compile: a template, or for another Python."""
    try:
        code = compile(data, path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):
        return None
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little")
    return head + importlib.util.source_hash(data) + marshal.dumps(code)
