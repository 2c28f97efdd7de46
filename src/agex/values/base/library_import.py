"""Libraries whose values are kept: imported when one comes by, never before."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["library"]


def library(name: str) -> Any:
    """Import a library that a stored value needs.

    Raises:
        ModuleNotFoundError: it is not installed here.
    """
    return importlib.import_module(name)
