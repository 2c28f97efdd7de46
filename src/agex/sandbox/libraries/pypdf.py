"""Policy of pypdf: a document is written into the workspace.

It opens the path by ``io.FileIO``, which is compiled and knows no workspace.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from agex.sandbox.patches.replacement import replace
from agex.sandbox.policy.library import Library
from agex.sandbox.runtime.context import asking

__all__ = ["LIBRARIES"]


def _prepare() -> None:
    replace(import_module("pypdf._writer"), "FileIO", _opening)


def _opening(real: Any) -> Any:
    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if asking() is None:
            return real(file, mode, *args, **kwargs)
        return open(file, f"{mode.replace('b', '')}b")  # noqa: PTH123 - the workspace's

    return open_


LIBRARIES = {
    # Its modules are plain Python, granted as they are; their imports are checked, see `native`.
    "pypdf": Library(name="pypdf", writable=None, prepare=_prepare),
}
