"""Names in a registration that are the name of nothing: a slip would leave open what was to be shut.

What a module has is known. What an object will have is not: there a name is taken for a slip where it is
much like one that the class has.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable
from typing import Any

from agex.errors import DefinitionError
from agex.sandbox import hostclass
from agex.sandbox.libraries.lookup import named
from agex.typeslots import mro_of, namespace_of

__all__ = ["check_class", "check_module"]

_ANSWERS = ("__getattr__", "__getattribute__")
_ALIKE = 0.75
"""The share of letters, in order, that two names have in common: "wirte" and "write", "raed" and "read"."""


def check_module(module: types.ModuleType, *said: Any) -> None:
    """Refuse names that *module* does not have. A dotted one may be of any class in its package.

    Raises:
        DefinitionError: with the name that was probably meant.
    """
    if "__getattr__" in vars(module):
        return  # it makes members when they are asked for
    known = frozenset(dir(module)) | frozenset(vars(module).get("__all__", ()))
    for name in _plain(said):
        if name not in known and not _is_submodule(module, name):
            raise _unknown(name, f"module {module.__name__}", _like(name, known))


def check_class(class_: type, held: Iterable[str], *said: Any) -> None:
    """Refuse names that are almost one of *class_*, or of those that an object holds itself.

    Raises:
        DefinitionError: with the name that was probably meant.
    """
    if any(name in namespace_of(part) for part in mro_of(class_)[:-1] for name in _ANSWERS):
        return  # its objects have what they like
    known = hostclass.public_names(class_).union(hostclass.private_names(class_), dir(class_), held)
    for name in _plain(said):
        if name not in known and (meant := _like(name, known)):
            raise _unknown(name, f"class {class_.__name__}", meant)


def _plain(said: Iterable[Any]) -> list[str]:
    return sorted({name for pattern in said for name in named(pattern) if "." not in name})


def _is_submodule(module: types.ModuleType, name: str) -> bool:
    from importlib.util import find_spec

    return hasattr(module, "__path__") and find_spec(f"{module.__name__}.{name}") is not None


def _like(name: str, known: Collection[str]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=_ALIKE)), None)


def _unknown(name: str, owner: str, meant: str | None) -> DefinitionError:
    guess = f"did you mean {meant!r}? If not, " if meant else ""
    return DefinitionError(
        f"{name!r} is the name of nothing that {owner} has; {guess}say what may come later as {name + '*'!r}"
    )
