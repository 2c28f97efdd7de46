"""Groups of exceptions of the guest: ``except*`` calls ``split()`` and trusts what that gives to be a pair.

What is none ends the process. So a class over one of them has a ``split`` that looks at what that gives,
and comes before what an object has of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.runtime import provenance as origins

__all__ = ["is_split", "keep_whole"]


class _Split:
    """A data descriptor, which comes before an object's dict.

    Args:
        own: what the guest wrote there; None for nothing.
    """

    __slots__ = ("_own",)

    def __init__(self, own: Any) -> None:
        self._own = own

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        found = BaseExceptionGroup.split if self._own is None else self._own
        get = getattr(type(found), "__get__", None)
        bound = found if get is None else get(found, instance, owner)
        return bound if instance is None or self._own is None else _checked(bound)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        # What can be called is guarded between runs, as methods are.
        raise TypeError("it is a method, and is called on an object")

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise SandboxAttributeError("split() of a group of exceptions can be defined in its class only")


def _checked(split: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*args: Any, **kwargs: Any) -> Any:
        pair = split(*args, **kwargs)
        if type(pair) is tuple and len(pair) == 2 and all(map(_is_part, pair)):
            return pair
        raise TypeError(
            "split() of a group of exceptions must give two groups, or None for one that is empty"
        )

    return checked


def _is_part(value: Any) -> bool:
    return value is None or issubclass(type(value), BaseExceptionGroup)


def keep_whole(namespace: dict[str, Any], class_name: Any, bases: Iterable[Any]) -> None:
    """Have a class over a group of exceptions give pairs, by whatever way it is asked for ``split``."""
    parts = [part for base in bases if isinstance(base, type) for part in mro_of(base)]
    if not any(part is BaseExceptionGroup for part in parts):
        return
    guests = [namespace, *(namespace_of(part) for part in parts if origins.is_guest_class(part))]
    if any("__getattribute__" in names for names in guests):
        raise SandboxTypeError(
            f"class {class_name} cannot define __getattribute__: it is a group of exceptions"
        )
    own = dict.get(namespace, "split")
    dict.__setitem__(namespace, "split", own if type(own) is _Split else _Split(own))


def is_split(class_: type, name: str) -> bool:
    """Tell whether *name* is that of the ``split`` of such a class."""
    return name == "split" and issubclass(class_, BaseExceptionGroup)
