"""Decode bytes to variables, with nothing called that is not on a list.

Three checks, each sufficient for its purpose:

* the stream is read through once before: it may use only the opcodes that the encoder writes, and every
  length in it must lie inside it (see `audit`);
* a global is a constructor of this room or of `stdlib.NATIVE`, found in a table and never imported;
* the stream is gone through once with nothing behind its names: it calls nothing but constructors, and gives
  items to nothing but containers (see `rehearse`). A callable that is no constructor (a class, a guest or
  host function) also comes in a handle, wherever handles are unwrapped.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agex.errors import StateCorrupt
from agex.values.adapters import arrow_tables as tables
from agex.values.adapters import numpy_arrays as arrays
from agex.values.adapters import pandas_frames as frames
from agex.values.adapters import pandas_scalars as scalars
from agex.values.adapters import stdlib as plain
from agex.values.adapters.callable_builder import CallableBuilder
from agex.values.base.allowlist import Allow
from agex.values.base.decode_budget import (
    BYTES_A_BYTE,
    CALL,
    SMALL_CALL,
    Clock,
    current,
    enough_for,
    file_of,
    size_of,
)
from agex.values.base.group import Group
from agex.values.base.guest_code import CodeElsewhere, GuestCode
from agex.values.base.handle import unwrapped
from agex.values.base.placeholders import NotKept
from agex.values.base.stream_names import module_now
from agex.values.base.type_checks import type_name
from agex.values.checks.dry_run import rehearse
from agex.values.checks.hash_cost import weigh
from agex.values.checks.opcode_audit import audit, surplus, unframed
from agex.values.code.instance_builder import InstanceBuilder
from agex.values.code.outline import Sketch
from agex.values.code.reconstructor import Builder

__all__ = ["decode"]


def _of_what_is_kept(make: Callable[..., Any], cost: int | None) -> Callable[..., Any]:
    """Let a constructor pay for its arguments, as often as it gets them.

    A constructor that gets a lost part, and cannot do without it, returns the lost part.
    """

    def made(*args: Any) -> Any:
        budget = current()
        if cost is not None:  # else it pays by itself
            budget.spend(cost + size_of(args, 3))
        try:
            with budget.stopped():
                return make(*args)
        except StateCorrupt:
            raise
        except Exception:  # an error of a library about a placeholder; any other goes on
            lost = _lost_among(args)
            if lost is None:
                raise
            return lost

    return made


def _lost_among(args: Sequence[Any], depth: int = 3) -> NotKept | None:
    for each in args:
        if type(each) in {list, tuple} and depth:
            each = _lost_among(each, depth - 1)  # noqa: PLW2901 - what is among its own
        if type(each) is NotKept:
            return each
    return None


_CONSTRUCTORS: Mapping[tuple[str, str], Any] = {
    **{(cls.__module__, cls.__qualname__): cls for cls in plain.NATIVE},
    **{("builtins", name): value for name, value in plain.CONSTANTS.items()},
    **{(function.__module__, function.__qualname__): function for function in plain.CONSTRUCTORS},
    **{
        (function.__module__, function.__qualname__): _of_what_is_kept(function, cost)
        for constructors, cost in (
            (arrays.CONSTRUCTORS, SMALL_CALL),
            (frames.CONSTRUCTORS, CALL),
            (scalars.CONSTRUCTORS, SMALL_CALL),
            (tables.CONSTRUCTORS, CALL),
        )
        for function in constructors
    },
    **{
        (function.__module__, function.__qualname__): _of_what_is_kept(function, None)
        for function in (arrays.fill_object_array, tables.make_figure)
    },
}
_INERT = frozenset((cls.__module__, cls.__qualname__) for cls in plain.NATIVE)
"""Types whose instances can be neither called nor given items."""
_METHODS = frozenset(
    (method.__module__, method.__qualname__)
    for cls in (Builder, InstanceBuilder, CallableBuilder)
    for name, method in vars(cls).items()
    if not name.startswith("_")
)


def decode(group: Group, *, allow: Allow, guest: GuestCode | None = None) -> dict[str, Any]:
    """Make the variables of a group again.

    Of a group from another level of isolation guest functions and classes are `NotKept`: they
    are made again only at that level. A `Sketch` runs nothing, and shows them wherever it is.

    A variable, or a part of one, that was not kept comes back as a `NotKept`. Buffers that can be
    written to become the memory of the values; others are copied.

    Args:
        group: what was encoded.
        allow: host classes that may be loaded.
        guest: makes guest functions and classes again; without it they are `NotKept`.

    Raises:
        StateCorrupt: the bytes are not what `encode` makes, or name a class that may not be loaded.
    """
    if group.origin and guest is not None and not isinstance(guest, Sketch):
        guest = CodeElsewhere(guest, group.origin)
    try:
        return _variables(group, allow, guest)
    except StateCorrupt:
        raise
    except ModuleNotFoundError as error:
        raise StateCorrupt(f"a stored value needs {error.name}, which is not installed here") from error
    except Exception as error:
        names = ", ".join(group.names)
        raise StateCorrupt(
            f"the stored value of {names} is damaged: {type(error).__name__}: {error}"
        ) from error


def _variables(group: Group, allow: Allow, guest: GuestCode | None) -> dict[str, Any]:
    """Make the variables of a group; instances that cannot be hashed are lost, their containers are not."""
    reason = ""
    for _ in range(2):
        load = _Loader(allow, guest, unhashed=reason)
        try:
            with enough_for(group.size):
                return dict(zip(group.names, load.values(group), strict=True))
        except Exception as error:
            if not _is_of_a_hash(error, guest):
                raise
            reason = f"its hash raised {type_name(error)} when it was loaded"
    return {name: NotKept(name, "value", f"it holds an object, and {reason}") for name in group.names}


def _is_of_a_hash(error: Exception, guest: GuestCode | None) -> bool:
    """Return whether code in Python that hashes or compares an instance raised an error.

    Other guest code runs only where a class is made again, and its errors lose that class.
    """
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(
        code.co_name in {"__hash__", "__eq__"} or (guest is not None and guest.source(code) is not None)
        for code in codes
    )


class _Loader:
    """Loader of a stream and of the streams nested in it."""

    def __init__(self, allow: Allow, guest: GuestCode | None, *, unhashed: str = "") -> None:
        self._allow = allow
        self._guest = guest
        self._unhashed = unhashed
        self.later: list[Callable[[], None]] = []
        """Work that is done when everything is made."""

    def values(self, group: Group) -> list[Any]:
        """Make the values of a group, in the order of its names."""
        *_, values, fillings = self(group.stream, (), group.buffers)
        for filling in fillings:
            self.builder().fill_namespace(*filling)
        for each in self.later:
            each()
        return [unwrapped(each) for each in values]

    def __call__(self, stream: bytes, outer: Sequence[Any], buffers: Sequence[Any]) -> Any:
        budget = current()
        budget.spend(BYTES_A_BYTE * len(stream))  # also for one that is nested, as often as it is loaded
        bare = unframed(stream)
        seen = audit(bare)
        budget.spend(surplus(seen.shorter, budget.left))
        weighed = weigh(bare, seen)
        clock = budget.watched() if weighed.is_metered else None
        return _Unpickler(weighed.stream, buffers, self.builder(outer), clock).load()

    def builder(self, outer: Sequence[Any] = ()) -> Builder:
        return Builder(self._allow, self._guest, self, outer, later=self.later, unhashed=self._unhashed)


def _constructor(module: str, name: str, builder: Builder) -> Any:
    found = _CONSTRUCTORS.get((module, name))
    if found is not None:
        return found
    if (module, name) in _METHODS:
        return getattr(builder, name.rpartition(".")[2])
    raise StateCorrupt(
        f"a stored value would call {module}.{name}, which is not allowed; "
        "if it is a class of yours, register it and store the value again"
    )


class _Unpickler(pickle.Unpickler):
    """The unpickler in C. A stream that names more than native types is rehearsed before it goes on."""

    def __init__(self, stream: bytes, buffers: Sequence[Any], builder: Builder, clock: Clock | None) -> None:
        super().__init__(file_of(stream, clock), buffers=buffers)
        self._whole = stream, buffers, clock
        self._rehearsed = False
        self._builder = builder

    def find_class(self, module: str, name: str) -> Any:
        module = module_now(module)
        found = _constructor(module, name, self._builder)
        if not self._rehearsed and (module, name) not in _INERT:
            rehearse(*self._whole)
            self._rehearsed = True
        return found
