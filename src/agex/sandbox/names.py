"""A namespace of the guest as ``globals()`` and ``locals()`` show it: live, and without what is ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from agex.errors import SandboxNameError
from agex.sandbox import ledger

__all__ = ["Names", "is_bindable", "own_names"]


def is_bindable(name: object) -> bool:
    """Tell whether guest code may bind *name* as a variable."""
    return (
        isinstance(name, str)
        and str.isidentifier(name)
        and not (ledger.is_dunder(name) and name not in ledger.DEFINABLE)
    )


def own_names(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Give a copy of a namespace without the helpers."""
    return {k: v for k, v in namespace.items() if _is_shown(k)}


def _is_shown(name: object) -> bool:
    return type(name) is str and "!" not in name and name != "__builtins__"


class Names(MutableMapping[str, Any]):
    """A live view of a namespace. It is no dict; ``dict(globals())`` makes one."""

    __slots__ = ("_namespace",)

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    def __getitem__(self, name: str) -> Any:
        if not _is_shown(name):
            raise KeyError(name)
        return self._namespace[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if type(name) is not str or not is_bindable(name):
            raise SandboxNameError(f"{name!r} cannot be bound as a variable; choose another name")
        self._namespace[name] = value

    def __delitem__(self, name: str) -> None:
        if not _is_shown(name):
            raise KeyError(name)
        del self._namespace[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in list(self._namespace) if _is_shown(name)])

    def __len__(self) -> int:
        return sum(map(_is_shown, list(self._namespace)))

    def __repr__(self) -> str:
        return repr(own_names(self._namespace))

    def __or__(self, other: Any) -> dict[str, Any]:
        return own_names(self._namespace) | dict(other)

    def copy(self) -> dict[str, Any]:
        """Give a dict of the names as they are now."""
        return own_names(self._namespace)
