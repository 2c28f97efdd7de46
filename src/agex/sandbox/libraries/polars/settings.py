"""``polars.Config`` for guest code: how frames are shown.

polars keeps it in variables of the environment and in its compiled code. The run puts back what the host had
set, and the session keeps its own, see `agex.sandbox.libraries.session_settings`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.libraries.process_settings import POLARS
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.runtime import audit_hook

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Config"]

_SETTERS = """
    ascii_tables auto_structify decimal_separator expr_depth_warning float_precision fmt_float fmt_str_lengths
    fmt_table_cell_list_len tbl_cell_alignment tbl_cell_numeric_alignment tbl_cols tbl_column_data_type_inline
    tbl_dataframe_shape_below tbl_formatting tbl_hide_column_data_types tbl_hide_column_names
    tbl_hide_dataframe_shape tbl_hide_dtype_separator tbl_rows tbl_width_chars thousands_separator
    trim_decimal_zeros
""".split()
_PLAIN = frozenset({bool, int, float, str, type(None)})


def _real() -> Any:
    return import_module("polars").Config


def _set(name: str, *args: Any, **kwargs: Any) -> None:
    given = [*map(exact, args)], {key: exact(value) for key, value in kwargs.items()}
    for value in (*given[0], *given[1].values()):
        if type(value) not in _PLAIN:
            raise SandboxTypeError(f"Config.{name}() takes plain values, not {type(value).__name__}")
    setter = getattr(_real(), name, None)
    if setter is None or name.removeprefix("set_") not in _SETTERS:
        raise SandboxAttributeError(
            f"Config.{name} is not available here; dir(pl.Config) lists what is there"
        )
    audit_hook.call_as_host(setter, *given[0], **given[1])


class Config:
    """How polars shows frames, until the end of a ``with`` block or for good."""

    def __init__(
        self, *, restore_defaults: bool = False, apply_on_context_enter: bool = False, **options: Any
    ) -> None:
        self.__before = dict(POLARS.read())
        self.__late = options if apply_on_context_enter else {}
        if restore_defaults:
            self.restore_defaults()
        if not apply_on_context_enter:
            self.__apply(options)

    def __apply(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            _set(name if name.startswith("set_") else f"set_{name}", value)

    def __enter__(self) -> Self:
        self.__apply(self.__late)
        return self

    def __exit__(self, *raised: object) -> None:
        now = POLARS.read()
        for name, value in self.__before.items():
            if now.get(name) != value:
                POLARS.write(name, value)

    @classmethod
    def restore_defaults(cls) -> type[Config]:
        """Show frames as polars does without settings."""
        for name in POLARS.read():
            POLARS.write(name, None)
        return cls

    @classmethod
    def state(cls, *, if_set: bool = False, env_only: bool = False) -> dict[str, Any]:
        """Return the settings by their names."""
        found = POLARS.read()
        return {
            name: value
            for name, value in found.items()
            if (value is not None or not if_set) and not (env_only and name.startswith("set_"))
        }


def _setter(name: str) -> Callable[..., Any]:
    def setter(cls: type[Config], *args: Any, **kwargs: Any) -> type[Config]:
        _set(name, *args, **kwargs)
        return cls

    setter.__name__ = setter.__qualname__ = name
    setter.__doc__ = f"Do what ``polars.Config.{name}`` does."
    return setter


for _name in _SETTERS:
    setattr(Config, f"set_{_name}", classmethod(_setter(f"set_{_name}")))
