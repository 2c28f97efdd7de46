"""Policy of openpyxl: sheets stay in memory until they are in the workbook.

openpyxl writes each sheet to a temporary file by lxml. Its compiled code bypasses the audit hook and the
workspace: the sheet would lie among the host's files, and the workbook would lack it.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from agex.sandbox.patches.replacement import replace
from agex.sandbox.policy.library import Library
from agex.sandbox.runtime.context import asking

__all__ = ["LIBRARIES"]


def _prepare() -> None:
    writer: Any = import_module("openpyxl.worksheet._writer")
    replace(writer, "create_temporary_file", _in_memory)
    replace(writer.WorksheetWriter, "cleanup", _cleaned)
    replace(import_module("openpyxl.writer.excel").ExcelWriter, "write_worksheet", _written)


def _in_memory(real: Any) -> Any:
    return lambda *args, **kwargs: real(*args, **kwargs) if asking() is None else io.BytesIO()


def _cleaned(real: Any) -> Any:
    def cleanup(self: Any) -> None:
        if type(self.out) is not io.BytesIO:
            real(self)

    return cleanup


def _written(real: Any) -> Any:
    def write_worksheet(self: Any, ws: Any) -> None:
        archive = self._archive
        self._archive = _Archive(archive)
        try:
            real(self, ws)
        finally:
            self._archive = archive

    return write_worksheet


class _Archive:
    """An archive that accepts content in memory as if it were a file."""

    def __init__(self, archive: Any) -> None:
        self._archive = archive

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    def write(self, filename: Any, arcname: Any) -> None:
        if type(filename) is io.BytesIO:
            self._archive.writestr(arcname, filename.getvalue())
        else:
            self._archive.write(filename, arcname)


LIBRARIES = {
    # Its modules are plain Python, granted as they are; their imports are checked, see `native`.
    "openpyxl": Library(
        name="openpyxl", writable=None, preload=("openpyxl.packaging.extended", "PIL.Image"), prepare=_prepare
    ),
}
