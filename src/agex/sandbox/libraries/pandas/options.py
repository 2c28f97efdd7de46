"""Options of pandas that guest code may set, and what it draws with.

Both are settings of the process: the run puts back those of the host, and the session keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.patches.replacement import replace, replace_everywhere
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.policy import catalog
from agex.sandbox.policy.library_grant import prepare
from agex.sandbox.runtime import audit_hook
from agex.sandbox.runtime.context import asking

__all__ = ["hold_options", "hold_plotting", "prepared"]

_FREE = ("display.", "future.", "mode.", "plotting.matplotlib.", "styler.")
"""Beginnings of the options that guest code sets. The others name engines and backends, which are modules."""


def hold_options() -> None:
    """Check which option guest code sets."""
    config: Any = import_module("pandas._config.config")
    name = "_set_option_impl" if hasattr(config, "_set_option_impl") else "set_option"
    replace_everywhere("pandas._config.config", name, _checked)
    replace(config, name, _checked)


def _checked(real: Callable[..., Any]) -> Callable[..., Any]:
    config: Any = import_module("pandas._config.config")

    def set_option(*args: Any, **kwargs: Any) -> Any:
        if asking() is not None:
            args = _pairs(args)
            for pattern, value in zip(args[::2], args[1::2], strict=False):
                for key in config._select_options(pattern):
                    _check(key, value)
        return real(*args, **kwargs)

    return set_option


def _pairs(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return names and values in turn, the names as exact texts."""
    if len(args) == 1 and isinstance(args[0], dict):
        args = tuple(each for pair in dict.items(args[0]) for each in pair)
    return tuple(exact(each) if at % 2 == 0 else each for at, each in enumerate(args))


def _check(key: str, value: Any) -> None:
    if key == "plotting.backend" and exact(value) == "matplotlib":
        return
    if not key.startswith(_FREE):
        raise SandboxError(f"the option {key} belongs to the host; leave it as it is")


def hold_plotting() -> None:
    """Let guest code draw with matplotlib, under its policy, and with no other module."""
    replace_everywhere("pandas.plotting._core", "_get_plot_backend", _drawing)
    replace(import_module("pandas.plotting._core"), "_get_plot_backend", _drawing)


def _drawing(real: Callable[..., Any]) -> Callable[..., Any]:
    def backend_of(backend: Any = None) -> Any:
        if asking() is None:
            return real(backend)
        if backend is not None and exact(backend) != "matplotlib":
            raise SandboxError("pandas draws with matplotlib here; leave backend= out")
        prepared("matplotlib")
        return audit_hook.call_as_host(real, "matplotlib")

    return backend_of


def prepared(name: str) -> None:
    """Load a library that pandas uses, and prepare it as its policy needs.

    Raises:
        ImportError: it is not installed.
    """
    audit_hook.call_as_host(import_module, name)
    library = catalog.find(name)
    if library is not None:
        prepare(library)
