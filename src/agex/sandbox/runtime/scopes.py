"""Namespaces of guest code as ``globals()`` and ``locals()`` show them: live, and without the helpers."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from agex.errors import SandboxNameError
from agex.sandbox.rules import names as ledger
from agex.sandbox.rules.code_flags import CO_OPTIMIZED

__all__ = ["Names", "defined_in", "is_bindable", "own_names", "replace_names", "scope_of"]


def is_bindable(name: object) -> bool:
    """Return whether guest code may bind *name* as a variable."""
    return (
        isinstance(name, str)
        and str.isidentifier(name)
        and not (ledger.is_dunder(name) and name not in ledger.OF_MODULES)
    )


def own_names(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a namespace without the helpers."""
    return {k: v for k, v in namespace.items() if _is_shown(k)}


def _is_shown(name: object) -> bool:
    return type(name) is str and "!" not in name and name not in _HIDDEN


_HIDDEN = frozenset({"__builtins__", "__classdict__", "__classdictcell__"})
"""Python 3.12 puts the real namespace of a class into the last one, past every guard."""


def replace_names(namespace: Any, names: Mapping[str, Any]) -> None:
    """Replace all names that a namespace shows by *names*."""
    for gone in [name for name in namespace if _is_shown(name) and name not in names]:
        del namespace[gone]
    for name, value in names.items():
        if name not in namespace or namespace[name] is not value:  # some mappings take a name once only
            namespace[name] = value


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
        """Return a dict of the names as they are now."""
        return own_names(self._namespace)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return self.copy()  # of the names: the namespace itself holds the helpers


def scope_of(frame: types.FrameType) -> Mapping[str, Any]:
    """Return the names of a scope: a live view where CPython's is live, else a copy."""
    is_function = frame.f_code.co_flags & CO_OPTIMIZED
    return own_names(frame.f_locals) if is_function else Names(frame.f_locals)


def defined_in(code: types.CodeType) -> Iterator[str]:
    """Return the names of the functions and classes that a module's code makes."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name.isidentifier():
            yield constant.co_name
