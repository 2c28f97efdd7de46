"""A check of text signatures: ``inspect`` looks the names in their defaults up in any host module.

A docstring may begin with a signature, as those of builtin functions do, and ``__signature__`` may be a text
since Python 3.12. The signature of a guest object would show values of a host module.
"""

from __future__ import annotations

import ast
import sys
import types
from typing import Any

from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime import provenance

__all__ = ["hold"]


def hold() -> None:
    """Refuse names in text signatures, once a process, if ``inspect`` is loaded."""
    library: Any = sys.modules.get("inspect")
    if library is not None and vars(library).get(_NAME) is not _Installed.function:
        replace(library, _NAME, _of_literals)
        _Installed.function = vars(library).get(_NAME)


_NAME = "_signature_fromstr"


class _Installed:
    """Keeps the installed function: to ask `is_stand_in` would take a tenth of the start of a run."""

    function: Any = None


def _of_literals(real: Any) -> Any:
    def read(cls: Any, obj: Any, s: Any, *args: Any, **kwargs: Any) -> Any:
        class_ = obj if issubclass(type(obj), type) else type(obj)
        # A Python function has no such text, unless one was put into its namespace.
        may_be_guests = class_ is types.FunctionType or provenance.is_guest_class(class_)
        if may_be_guests and _says_names(s):
            raise ValueError("the defaults of a signature that is text can be literals only")
        return real(cls, obj, s, *args, **kwargs)

    return read


def _says_names(text: Any) -> bool:
    if type(text) is not str:
        return True
    clean, *_ = vars(sys.modules["inspect"])["_signature_strip_non_python_syntax"](text)
    try:
        tree = ast.parse(f"def f{clean}: pass")
    except SyntaxError:
        return False  # the real function refuses it
    return any(isinstance(node, ast.Name | ast.Attribute) for node in ast.walk(tree))
