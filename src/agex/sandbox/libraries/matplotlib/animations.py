"""Animations as HTML: their frames lie in a folder of the workspace until they are in the page."""

from __future__ import annotations

import itertools
import os
from importlib import import_module
from typing import Any

from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime.context import asking
from agex.sandbox.runtime.workspace_files import workspace

__all__ = ["hold_folders"]


def hold_folders() -> None:
    """Make the folder of frames in the workspace where guest code asks."""
    replace(import_module("matplotlib.animation"), "TemporaryDirectory", _folder)


def _folder(real: Any) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs) if asking() is None else _OfWorkspace()

    return make


_NUMBERS = itertools.count()


class _OfWorkspace:
    """Stands for a ``tempfile.TemporaryDirectory``."""

    def __init__(self) -> None:
        self.name = f"/tmp/frames{next(_NUMBERS)}"  # noqa: S108 - of the workspace
        workspace()  # without one the folder would be the host's
        os.makedirs(self.name, exist_ok=True)  # noqa: PTH103 - the workspace's, while guest code runs

    def cleanup(self) -> None:
        """Remove the folder, but not after the run: then the path is one of the host."""
        if asking() is None or not os.path.isdir(self.name):  # noqa: PTH112
            return
        for name in os.listdir(self.name):  # noqa: PTH208
            os.remove(f"{self.name}/{name}")  # noqa: PTH107
        os.rmdir(self.name)  # noqa: PTH106

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *raised: object) -> None:
        self.cleanup()
