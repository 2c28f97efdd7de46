"""Objects of Pyodide in a browser tab: they lead to the page, and to everything that its user may do there.

A JavaScript object, as Python sees it, has ``constructor``, and two steps further is code in the page. An
error, an input or the result of a host function may be such an object. So the receiver of every attribute is
checked in Pyodide, as with ``Policy(strict=True)``. Objects of its own classes answer only the attributes of
a class of the standard library among their bases (a task's ``result``).

A host that hands such an object over allows guest code to call it and to take items from it.
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
"""Packages whose objects lead to the page."""


def belongs_to_it(receiver: Any, name: str) -> bool:
    """Return whether an attribute of *receiver* would be answered by Pyodide."""
    if issubclass(type(receiver), types.ModuleType):
        return _package(types.ModuleType.__getattribute__(receiver, "__dict__").get("__name__")) in PACKAGES
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    for base in mro_of(subject):
        space = namespace_of(base)
        if _package(module_of(base)) in PACKAGES:
            if name in space or not _ANSWERS_ITSELF.isdisjoint(space):
                return True
        elif name in space and base is not object:
            return False  # a guest class, or one of a library, answers first
    return False


# From the namespace of the type itself: a C class has it nowhere else, and a guest metaclass is not asked.
_ANSWERS_ITSELF = frozenset({"__getattribute__", "__getattr__"})


def _package(module: object) -> str:
    return module.partition(".")[0] if type(module) is str else ""
