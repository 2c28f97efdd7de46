"""In a browser tab, what Pyodide's objects lead to: the page and everything that its user may do there.

A JavaScript object, as Python sees it, has ``constructor``, and from there it is two steps to code in the
page; an error, an input, a value that a function of the host gave back may be one. So in Pyodide the
receiver of every attribute is checked, as with ``Policy(strict=True)``, and nothing is read off an object
of Pyodide's own classes but what a class of the standard library below it has (a task's ``result``).

Calling such an object, or taking items from it, is what the host allows by handing it over.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from agex._interpreter.type_slots import module_of, mro_of, namespace_of

__all__ = ["IS_HERE", "belongs_to_it"]

IS_HERE = sys.platform == "emscripten"
"""Whether this interpreter runs in a page, or in another program of JavaScript."""

PACKAGES = frozenset({"js", "micropip", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core"})
"""What leads to the page."""


def belongs_to_it(receiver: Any, name: str) -> bool:
    """Tell whether an attribute of *receiver* would be answered by Pyodide."""
    if issubclass(type(receiver), types.ModuleType):
        return _package(types.ModuleType.__getattribute__(receiver, "__dict__").get("__name__")) in PACKAGES
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    for base in mro_of(subject):
        space = namespace_of(base)
        if _package(module_of(base)) in PACKAGES:
            if name in space or not _ANSWERS_ITSELF.isdisjoint(space):
                return True
        elif name in space and base is not object:
            return False  # the class of the guest, or of the library, that answers first
    return False


# As the type itself says it: a class of C has it nowhere else, and a metaclass of the guest is not asked.
_ANSWERS_ITSELF = frozenset({"__getattribute__", "__getattr__"})


def _package(module: object) -> str:
    return module.partition(".")[0] if type(module) is str else ""
