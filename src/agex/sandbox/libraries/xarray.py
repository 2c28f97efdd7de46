"""Policy of xarray: dask is loaded with it, by the host.

xarray loads it at its first use. psutil, which comes with it, then opens files below ``/proc``.
"""

from __future__ import annotations

from agex.sandbox.policy.library import Library

__all__ = ["LIBRARIES"]

LIBRARIES = {
    # Granted as it is, with the host's files: compiled code that it uses opens them.
    "xarray": Library(
        name="xarray", writable=None, offers=("numpy", "pandas"), preload=("dask.array", "distributed")
    ),
}
