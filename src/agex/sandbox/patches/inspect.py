"""Signatures that are text: ``inspect`` looks the names in their defaults up in any module of the host.

A docstring may begin with one, as those of builtin functions do, and ``__signature__`` may be one since
Python 3.12. Whoever asks for the signature of a guest's object would be shown what a module of the host has.
"""

from __future__ import annotations

import ast
import sys
import types
from typing import Any

from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime import provenance as origins

__all__ = ["hold"]


def hold() -> None:
    """Have names in them refused, once a process and where somebody has loaded ``inspect``."""
    library: Any = sys.modules.get("inspect")
    if library is not None and vars(library).get(_NAME) is not _Held.function:
        replace(library, _NAME, _of_literals)
        _Held.function = vars(library).get(_NAME)


_NAME = "_signature_fromstr"


class _Held:
    """What stands there: to ask whether it is one of ours is a tenth of what beginning a run takes."""

    function: Any = None


def _of_literals(real: Any) -> Any:
    def read(cls: Any, obj: Any, s: Any, *args: Any, **kwargs: Any) -> Any:
        class_ = obj if issubclass(type(obj), type) else type(obj)
        # A function in Python has no such text, but for what somebody put into its namespace.
        may_be_guests = class_ is types.FunctionType or origins.is_guest_class(class_)
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
        return False  # which the real one refuses
    return any(isinstance(node, ast.Name | ast.Attribute) for node in ast.walk(tree))
