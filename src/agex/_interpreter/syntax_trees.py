"""Syntax trees of Python source, made safely while other threads make theirs.

CPython 3.11 and 3.12 count the depth of all trees under construction in one number. A collection in the
middle runs finalizers, and with them maybe another thread that builds a tree: then the first one fails
with SystemError (python/cpython#106905). Without collections a tree is built in one go.
"""

from __future__ import annotations

import ast
import gc
import os
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["parse", "parse_expression", "undisturbed"]

T = TypeVar("T")

_lock = threading.RLock()
"""Held while the collector is switched off or on."""
_is_off = False
"""Whether it is off for that, and is to be on again."""


def _after_fork() -> None:
    global _is_off  # noqa: PLW0603 - the one collector of the process
    _lock._at_fork_reinit()  # type: ignore[attr-defined]  # as threading does with its own
    if _is_off:
        _is_off = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def parse(source: str | bytes) -> ast.Module:
    """Do what `ast.parse` does."""
    return undisturbed(lambda: ast.parse(source))


def parse_expression(source: str) -> ast.Expression:
    """Do what `ast.parse` does with ``mode="eval"``."""
    return undisturbed(lambda: ast.parse(source, "<string>", "eval"))


def undisturbed(work: Callable[[], T]) -> T:
    """Do some work while the collector is off, in all threads.

    No context manager: a time limit that strikes in one, which is Python code, can leave it entered for
    as long as the traceback lives.
    """
    global _is_off  # noqa: PLW0603 - the one collector of the process
    with _lock:
        if not gc.isenabled():
            return work()
        try:  # from here on: a limit may strike right behind the call
            _is_off = True
            gc.disable()
            return work()
        finally:
            gc.enable()
            _is_off = False
