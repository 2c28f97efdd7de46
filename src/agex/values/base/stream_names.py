"""Names of constructors in streams that were stored before a module moved.

A stream names each constructor by its module, so the names are part of the format on disk. A module that
moves gets a line here; `tests/values/streams_0_1.json` holds streams of the first layout.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["module_now"]

_MOVED: Mapping[str, str] = {
    "agex.values.arrays": "agex.values.adapters.numpy_arrays",
    "agex.values.builder": "agex.values.code.reconstructor",
    "agex.values.callable_builder": "agex.values.adapters.callable_builder",
    "agex.values.dtypes": "agex.values.adapters.numpy_dtypes",
    "agex.values.exceptions": "agex.values.adapters.exceptions",
    "agex.values.frames": "agex.values.adapters.pandas_frames",
    "agex.values.lost": "agex.values.base.placeholders",
    "agex.values.plain": "agex.values.adapters.stdlib",
    "agex.values.scalars": "agex.values.adapters.pandas_scalars",
    "agex.values.tables": "agex.values.adapters.arrow_tables",
}


def module_now(name: str) -> str:
    """Return where the constructors of a module stand today; any other name as it is."""
    return _MOVED.get(name, name)
