"""A namespace of the guest as ``globals()`` and ``locals()`` show it: live, and without what is ours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from agex.errors import SandboxNameError
from agex.sandbox import ledger

__all__ = ["Names", "Spaces", "is_bindable", "own_names", "replace_names"]


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


def replace_names(namespace: Any, names: Mapping[str, Any]) -> None:
    """Make *names* all that a namespace shows."""
    for gone in [name for name in namespace if _is_shown(name) and name not in names]:
        del namespace[gone]
    for name, value in names.items():
        if name not in namespace or namespace[name] is not value:  # some mappings take a name once only
            namespace[name] = value


class Spaces:
    """The dicts that ``exec(text, names)`` was given, each with the globals that its code really has.

    Code cannot run in a dict of the guest, which could shadow a helper there. So it runs in another
    one, which stays the same for the same dict: its functions see what later code binds. What is
    assigned in between, on one side only, is carried over when code runs there the next time.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Any, dict[str, Any], dict[str, Any]]] = OrderedDict()

    def enter(self, given: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Give the globals for a dict, which hold *fixed* as well."""
        known = self._known.get(id(given))
        if known is None or known[0] is not given:
            return {**own_names(given), **fixed}
        _, names, before = known
        now = own_names(given)
        for name, value in own_names(names).items():
            if now.get(name, _NOTHING) is before.get(name, _NOTHING) is not value:
                now[name] = value  # a function of earlier code assigned it
        replace_names(names, now)
        names.update(fixed)
        return names

    def leave(self, given: Any, names: dict[str, Any]) -> None:
        """Carry what was bound over to the dict, and remember the two."""
        shown = own_names(names)
        replace_names(given, shown)
        self._known[id(given)] = given, names, shown
        self._known.move_to_end(id(given))
        if len(self._known) > _SPACES:
            self._known.popitem(last=False)


_NOTHING = object()
_SPACES = 32
"""How many dicts are remembered: they live as long."""


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

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return self.copy()  # of the names: the namespace itself holds the helpers
