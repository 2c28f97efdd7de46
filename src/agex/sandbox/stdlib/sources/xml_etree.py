"""``xml.etree`` for guest code: the library's own Python source, compiled as guest programs are.

The C version calls guest objects in the midst of its work, and these may free what it works on. The prefixes
of namespaces belong to the process. So guest code gets the Python version that the library falls back to,
anew for each session, over a parser without callbacks, which returns what it has read.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agex.errors import SandboxImportError
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.runtime import audit_hook

__all__ = ["HELPERS", "MODULES", "text_of"]

_WITHOUT = frozenset({"XMLParser", "iterparse", "_get_writer", "_ListDataStream", "tostringlist"})
"""Replaced names: they hang methods on a parser, need a ``__del__``, or use streams of the interpreter."""

MODULES = ("xml.etree.ElementPath", "xml.etree.ElementTree")
# Read at import, as the sources of `source_modules` are.
_OURS = (Path(__file__).parent / "xml_etree.txt").read_text("utf-8")


@functools.cache
def text_of(name: str) -> str:
    """Return the source of one of the modules."""
    text = audit_hook.call_as_host(_source, name)
    return text if name == MODULES[0] else f"{_less(text)}\n{_OURS}"


def _source(name: str) -> str:
    spec = importlib.util.find_spec(name)
    loader: Any = None if spec is None else spec.loader
    text: str | None = None if loader is None else loader.get_source(name)
    if text is None:
        raise SandboxImportError(f"'{name}' is not installed as Python that could be read; use re")
    return text


def _less(text: str) -> str:
    """Remove the replaced statements of the top level from a source, and leave their lines empty."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        is_ours = getattr(node, "name", None) in _WITHOUT
        is_relative = isinstance(node, ast.ImportFrom) and node.level
        if is_ours or is_relative or isinstance(node, ast.Try):  # that imports the C version
            lines[first - 1 : node.end_lineno] = [""] * ((node.end_lineno or first) - first + 1)
        if is_relative:
            lines[first - 1] = "from xml.etree import ElementPath"
    return "\n".join(lines)


def expat_feed(encoding: Any, told: Any) -> Callable[[Any, bool], tuple[list[Any], Any]]:
    """Make a parser; return a function that feeds it, and returns the events and the error met."""
    from pyexpat import ExpatError, ParserCreate

    parser: Any = ParserCreate(None if encoding is None else str.__str__(encoding), "}")
    parser.ordered_attributes = True
    events: list[Any] = []

    def note(event: str) -> Callable[..., None]:
        return lambda *values: events.append((event, *values))

    for event, handler in _HANDLERS.items():
        if event in told:
            setattr(parser, handler, note(event))
    parser.DefaultHandlerExpand = lambda text: events.append(
        ("default", text, parser.ErrorLineNumber, parser.ErrorColumnNumber)
    )

    def feed(data: Any, is_last: bool) -> tuple[list[Any], Any]:
        given = exact(data)
        if type(given) not in {str, bytes}:
            given = bytes(memoryview(given))
        error = None
        try:
            parser.Parse(given, bool(is_last))
        except ExpatError as failure:
            error = str(failure), failure.code, failure.lineno, failure.offset
        read = list(events)
        events.clear()
        return read, error

    return feed


_HANDLERS = {
    "start": "StartElementHandler",
    "end": "EndElementHandler",
    "start-ns": "StartNamespaceDeclHandler",
    "end-ns": "EndNamespaceDeclHandler",
    "data": "CharacterDataHandler",
    "comment": "CommentHandler",
    "pi": "ProcessingInstructionHandler",
}
expat_feed.__module__ = MODULES[1]  # stored code finds it under this name
HELPERS = {"expat_feed": expat_feed}
