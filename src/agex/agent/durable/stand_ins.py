"""The base of the stand-ins of live objects of which methods act on the world, see `external_members`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

__all__ = ["StandIn", "original", "originals", "stand_in"]


class StandIn:
    """Stands for an object of the host; a function of the host gets the object itself."""

    __slots__ = ("_target",)

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{cls.__name__} cannot be made here; use the one that is registered.")


_TARGET = StandIn.__dict__["_target"]


def stand_in(cls: type[StandIn], target: Any) -> Any:
    """Return an instance of a class of stand-ins."""
    made = object.__new__(cls)
    _TARGET.__set__(made, target)
    return made


def original(value: Any) -> Any:
    """Return the object that a stand-in stands for; any other value as it is."""
    return _TARGET.__get__(value) if issubclass(type(value), StandIn) else value


def originals(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function of the host with the objects themselves in the place of their stand-ins."""
    return function(*map(original, args), **{name: original(each) for name, each in kwargs.items()})
