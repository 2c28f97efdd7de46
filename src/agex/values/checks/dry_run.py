"""Dry run of a stream with nothing behind its names, before it is loaded.

The unpickler in C calls whatever lies where a call takes its function from, and gives items to whatever
lies there: to a list, but also to an instance of a class that has an ``extend``, an ``add`` or a
``__setitem__`` of its own. The layout of the stack does not depend on the results of constructors. So here
they return an object that can be neither called nor filled, or an empty container: a stream that reaches
its end calls only constructors, and fills only containers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agex.values.adapters import stdlib as plain
from agex.values.base.decode_budget import Clock, file_of
from agex.values.base.stream_names import module_now
from agex.values.code.reconstructor import Builder

__all__ = ["rehearse"]

_NOTHING = object()


def _make_nothing(*_args: Any) -> object:
    return _NOTHING


def _make_list(*_args: Any) -> list[Any]:
    return []


def _make_dict(*_args: Any) -> dict[Any, Any]:
    return {}


_CONTAINERS: Mapping[tuple[str, str], Callable[..., Any]] = {
    (constructor.__module__, constructor.__qualname__): stand_in
    for constructor, stand_in in (
        (plain.make_deque, _make_list),
        (Builder.fillings, _make_list),
        (plain.make_ordered, _make_dict),
        (plain.make_counter, _make_dict),
        (plain.make_defaultdict, _make_dict),
    )
}
"""The constructors whose results are filled afterwards."""


def rehearse(stream: bytes, buffers: Sequence[Any], clock: Clock | None = None) -> None:
    """Check what a stream calls and what it gives items to.

    Raises:
        Exception: it calls what is no constructor or fills what is no container; the error is the
            unpickler's.
    """
    _Rehearsal(file_of(stream, clock), buffers=buffers).load()


class _Rehearsal(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _CONTAINERS.get((module_now(module), name), _make_nothing)
