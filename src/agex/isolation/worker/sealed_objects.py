"""Objects of types that only a worker has, kept as sealed bytes.

The bytes are a pickle, which runs code when it is loaded. Only a worker of full Python loads them, at the
level that made them; the host and guarded workers never do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cloudpickle

from agex.isolation.rpc.guest_codecs import InboundCode, OutboundCode, StoredCode
from agex.isolation.rpc.host_proxies import Stubs
from agex.values import GuestCode, SealingCode

__all__ = ["SealedInboundCode", "SealedStoredCode"]

_SECONDS = 3.0
"""Seconds for the pickling of one object, which runs its code: less than a worker may take for all."""


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
        failed = {place: why for place, each in enumerate(found) if (why := self._pickled([each])[1])}
        rest = [None if place in failed else each for place, each in enumerate(found)]
        whole, why = self._pickled(rest)
        return (b"", dict.fromkeys(range(len(found)), why)) if why else (whole, failed)

    def unsealed(self, sealed: bytes) -> Sequence[Any]:
        """Return the objects in the bytes; their code runs."""
        loaded: Sequence[Any] = self._in_time(lambda: cloudpickle.loads(sealed), _SECONDS)
        return loaded

    def _pickled(self, found: Sequence[Any]) -> tuple[bytes, str]:
        """Return objects as bytes, or why they cannot be pickled."""
        try:
            return self._in_time(lambda: cloudpickle.dumps(found, protocol=5), _SECONDS), ""
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
