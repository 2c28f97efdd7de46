"""Lines of guest code for host tools: `inspect.getsource`, tracebacks, debuggers, notebooks.

They look for the lines of a function in `linecache`, under the file name of its code. Guest code has names
such as ``<turn 1>``, which many programs share. So a function that is handed to the host gets code with a
name of its own, and the lines are kept under that name until the last function with such code is gone.
"""

from __future__ import annotations

import hashlib
import io
import re
import types
import weakref
from typing import Any

from agex.sandbox.runtime import provenance

__all__ = ["SourceFile", "keep", "show", "source_file"]

_DIGITS = 12
"""Digits of a program's digest in its name: enough to tell programs apart, short enough for a traceback."""


class SourceFile:
    """The lines of a program in `linecache`, while this object lives."""

    def __init__(self, name: str, source: str) -> None:
        import linecache  # loads the tokenizer

        self.name = name
        self.source = source
        shown = _UNPRINTABLE.sub(_spelled, source)
        entry = (len(shown), None, io.StringIO(shown, newline=None).readlines(), name)
        linecache.cache[name] = entry
        weakref.finalize(self, _forget, linecache.cache, name, entry).atexit = False


_UNPRINTABLE = re.compile(r"[^\x20-\x7e\n\r\t\f]")


def _spelled(found: re.Match[str]) -> str:
    """Return how a character stands in a traceback: spelled out if it could steer a terminal."""
    return found[0] if found[0].isprintable() else found[0].encode("unicode_escape").decode()


def _forget(cache: dict[str, Any], name: str, entry: object) -> None:
    if cache.get(name) is entry:
        del cache[name]


_files: weakref.WeakValueDictionary[str, SourceFile] = weakref.WeakValueDictionary()
_shown: provenance.Notes[SourceFile] = provenance.Notes()
"""The lines of code objects, which keep them."""


def source_file(label: str, source: str) -> SourceFile:
    """Keep the lines of a program under a name that starts with *label*; other programs get another name."""
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
    short, whole = f"<{label}, {digest[:_DIGITS]}>", f"<{label}, {digest}>"
    found = _files.get(short)
    if found is not None and found.source != source:
        short, found = whole, _files.get(whole)
    if found is None:
        found = _files[short] = SourceFile(short, source)
    return found


def keep(code: types.CodeType, file: SourceFile) -> None:
    """Keep the lines of a file as long as *code* lives."""
    _shown.set(code, file)


def show(function: types.FunctionType) -> None:
    """Let host tools find the source of a function that guest code defined; others are left as they are."""
    code = function.__code__
    source = provenance.source_of(code)
    if source is None or _shown.get(code) is not None:
        return
    file = source_file(code.co_filename.strip("<>"), source)
    function.__code__ = _named(code, file)
    session = provenance.session_of(function)
    if session is not None:
        session.note_file(file.name, source)


def _named(code: types.CodeType, file: SourceFile) -> types.CodeType:
    """Return code, and that of functions in it, with the name of a file."""
    parts = tuple([_named(each, file) if type(each) is types.CodeType else each for each in code.co_consts])
    made = code.replace(co_filename=file.name, co_consts=parts)
    provenance.note_source(made, file.source)
    keep(made, file)
    return made
