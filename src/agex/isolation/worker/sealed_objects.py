"""Objects of types that only a worker has, kept as sealed bytes.

The bytes are a pickle, which runs code when it is loaded. Only a worker of full Python loads them, at the
level that made them; the host and guarded workers never do.
"""

from __future__ import annotations

import functools
import io
import operator
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cloudpickle

from agex.isolation.rpc.guest_codecs import InboundCode, OutboundCode, StoredCode
from agex.isolation.rpc.host_proxies import Stubs
from agex.values import GuestCode, SealingCode

__all__ = ["SealedInboundCode", "SealedStoredCode"]

_SECONDS = 3.0
"""Seconds for the pickling of one object, which runs its code: less than a worker may take for all."""
_LOADING_SECONDS = 8.0
"""Seconds for the loading of all objects in one seal."""


class _Apart(NamedTuple):
    """Objects that were pickled one by one, each in a list of its own; no bytes for one that cannot be."""

    pickled: tuple[bytes, ...]


def _loaded(sealed: bytes) -> Sequence[Any]:
    found: Sequence[Any] = cloudpickle.loads(sealed)
    if isinstance(found, _Apart):
        return [cloudpickle.loads(each)[0] if each else None for each in found.pickled]
    return found


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """A pickler for the next worker.

    That has no module to find a `NewType` of guest code in. And where code asks whether an object is the mark
    of a library (``dataclasses.KW_ONLY``), it has to be that mark, which a copy is not.
    """

    def reducer_override(self, obj: Any) -> Any:
        kind: Any = type(obj)
        if kind.__module__ != "__main__":
            for name in _marks(kind):
                module = sys.modules[kind.__module__]
                if vars(module).get(name) is obj:
                    return operator.attrgetter(name), (module,)
        if getattr(obj, "__module__", None) == "__main__":
            if type(obj) is typing.NewType:
                return typing.NewType, (obj.__name__, obj.__supertype__), {"__module__": "__main__"}
            if type(obj) is typing.ParamSpec:
                return typing.ParamSpec, (obj.__name__,)
        return super().reducer_override(obj)


@functools.cache
def _marks(kind: Any) -> tuple[str, ...]:
    """Return the names of the instances without contents that a class has in its own module of a library."""
    module = sys.modules.get(kind.__module__)
    if module is None or kind.__module__ == "builtins":
        return ()
    is_plain = all(
        getattr(kind, name, None) is getattr(object, name) for name in ("__reduce__", "__reduce_ex__")
    )
    found = [name for name, each in list(vars(module).items()) if type(each) is kind] if is_plain else []
    return tuple(name for name in found if not getattr(vars(module)[name], "__dict__", None))


def _dumped(found: Sequence[Any]) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file, protocol=5).dump(found)
        return file.getvalue()


class _Seals(SealingCode):
    """Seals objects, and opens seals; the base of codecs that do.

    Args:
        in_time: calls a function under a limit of seconds.
    """

    def __init__(self, in_time: Callable[[Callable[[], Any], float], Any]) -> None:
        self._in_time = in_time

    def sealed(self, found: Sequence[Any]) -> tuple[bytes, Mapping[int, str]]:
        """Return objects as bytes, and why single ones are not in them."""
        whole, why = self._pickled(found)
        if not why:
            return whole, {}
        single = [self._pickled([each]) for each in found]
        failed = {place: why for place, (_, why) in enumerate(single) if why}
        rest = [None if place in failed else each for place, each in enumerate(found)]
        whole, why = self._pickled(rest) if failed else (b"", why)
        if not why:
            return whole, failed
        # Together they take too long, and alone they do not: kept apart, they share nothing any more.
        return cloudpickle.dumps(_Apart(tuple(pickled for pickled, _ in single))), failed

    def unsealed(self, sealed: bytes) -> Sequence[Any]:
        """Return the objects in the bytes; their code runs."""
        loaded: Sequence[Any] = self._in_time(lambda: _loaded(sealed), _LOADING_SECONDS)
        return loaded

    def _pickled(self, found: Sequence[Any]) -> tuple[bytes, str]:
        """Return objects as bytes, or why they cannot be pickled."""
        try:
            return self._in_time(lambda: _dumped(found), _SECONDS), ""
        except Exception as error:  # noqa: BLE001 - any error of a library about one of its objects
            return b"", f"{type(error).__name__}: {error}"


class SealedStoredCode(_Seals, StoredCode):
    """`StoredCode` that seals objects of other types."""

    def __init__(
        self,
        code: GuestCode,
        names: Mapping[str, Any],
        in_time: Callable[[Callable[[], Any], float], Any],
    ) -> None:
        _Seals.__init__(self, in_time)
        StoredCode.__init__(self, code, names)


class SealedInboundCode(_Seals, InboundCode):
    """`InboundCode` that opens seals."""

    def __init__(
        self,
        code: GuestCode,
        stubs: Stubs,
        given: OutboundCode,
        in_time: Callable[[Callable[[], Any], float], Any],
    ) -> None:
        _Seals.__init__(self, in_time)
        InboundCode.__init__(self, code, stubs, given)
