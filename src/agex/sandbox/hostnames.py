"""The names that a guest has for objects of the host: how kept code says again what it referred to."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.session import Session

__all__ = ["name_of", "named"]

_MODULE = "module "


def name_of(session: Session, value: object) -> str | None:
    """Return a name that `named` finds this very object by; None for one that the guest cannot name.

    ``module math``, ``math:sqrt``, or the name of a builtin or of something registered.
    """
    candidates = [name for name, each in session.builtins.items() if each is value and "!" not in name]
    if isinstance(value, types.ModuleType):
        candidates.append(f"{_MODULE}{vars(value).get('__name__')}")
    else:
        home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if type(home) is str and type(name) is str:
            candidates.append(f"{home}:{name}")
    for candidate in candidates:
        try:
            if named(session, candidate) is value:
                return candidate
        except KeyError:
            continue
    return None


def named(session: Session, name: str, *, run: bool = False) -> Any:
    """Return the object that a name stands for, under the policy of the session.

    With *run*, a module that the guest wrote is run where it is not loaded yet.

    Raises:
        KeyError: there is none, or it is not granted.
    """
    home, _, member = name.partition(":")
    if member:
        if member.startswith("_"):
            raise KeyError(name)
        return vars(_module(session, home, run=run))[member]
    if name.startswith(_MODULE):
        return _module(session, name.removeprefix(_MODULE), run=run)
    if "!" in name or name.startswith("_"):
        raise KeyError(name)
    return session.builtins[name]


def _module(session: Session, name: str, *, run: bool) -> types.ModuleType:
    try:
        found = session.imported(name, run=run)
    except ImportError:
        raise KeyError(name) from None
    if not isinstance(found, types.ModuleType):
        raise KeyError(name)
    return found
