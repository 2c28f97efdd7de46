"""Checks of text that a library evaluates while guest code runs: no guard has seen it.

Libraries evaluate text that they write themselves (``namedtuple``, attrs), and text that they are given. The
two cannot be told apart. So such code is searched for names that lead to the interpreter or past it, for
which neither has a use. The check is a net below the policies of libraries: a name that is put together at
run time is in no code.
"""

from __future__ import annotations

import types
from collections.abc import Iterator

from agex.errors import SandboxError
from agex.sandbox.rules import names
from agex.sandbox.runtime.context import is_between

__all__ = ["check"]

_LEADING = names.DENIED | frozenset(
    {
        "__base__", "__bases__", "__builtins__", "__closure__", "__code__", "__getattribute__", "__globals__",
        "__import__", "__loader__", "__mro__", "__reduce_ex__", "__self__", "__spec__", "__subclasses__",
        "__traceback__", "mro",
    }
)  # fmt: skip


def check(code: object, frame: types.FrameType) -> None:
    """Refuse code of text that a library's *frame* is about to run, if it has a name that leads out."""
    if not isinstance(code, types.CodeType) or not _is_text(code.co_filename) or not is_between(frame):
        return
    for name in _names(code):
        if name in _LEADING:
            raise SandboxError(
                f"{frame.f_globals.get('__name__')} does not evaluate text that says {name!r} while "
                "sandboxed code runs; write it in your own code"
            )


def _is_text(filename: str) -> bool:
    return filename.startswith("<") and not filename.startswith("<frozen ")


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
