"""The inputs of a task call, as the agent's code sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NoReturn

from agex.contract import preview

__all__ = ["Inputs"]


class Inputs(SimpleNamespace):
    """The inputs as attributes: ``inputs.x`` or ``inputs["x"]`` is the argument for ``x``. Read-only."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"inputs is read-only; bind a variable instead: {name} = ...")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("inputs is read-only")

    def __getitem__(self, name: str) -> Any:
        """Return the input *name*, as ``inputs.name`` does."""
        try:
            return vars(self)[name]
        except KeyError:
            raise KeyError(f"no input is named {name!r}; there are: {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(vars(self))

    def __repr__(self) -> str:
        return f"inputs({', '.join(f'{name}={preview(value, 80)}' for name, value in vars(self).items())})"
