"""Adapters: how the values of one library or type are taken apart, and made again.

A ``take_*`` function returns a reduction as `pickle` has it; a ``make_*`` function is a constructor that the
decoder may call with whatever is stored. In reading order: `exceptions`, `stdlib`; `instances` and
`enum_members` (instances of classes); `callable_builder`; `numpy_dtypes`, `numpy_arrays`; `pandas_scalars`,
`pandas_frames`; `arrow_ipc`, `arrow_tables` (pyarrow, polars, plotly).

An adapter never imports its library before a value of it comes by, and a constructor never makes anything
but a value of its type.
"""

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
