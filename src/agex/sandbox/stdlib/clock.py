"""Clocks and chance for guest code from one function of the host: under a tape they are recorded.

``random`` is not here: its generator belongs to the session, and can be seeded.
"""

from __future__ import annotations

import base64
import time
import types
from collections.abc import Callable
from typing import Any

from agex.sandbox.policy.library import Guard, Library

__all__ = ["CLOCKS", "Draw", "clock_library", "clock_members"]

Draw = Callable[..., Any]
"""Called as ``draw(name, *args)``: returns a reading of a clock, or a draw of chance."""

CLOCKS = tuple(
    name
    for name in (
        *("time", "monotonic", "perf_counter", "process_time", "thread_time"),
        *("time_ns", "monotonic_ns", "perf_counter_ns", "process_time_ns", "thread_time_ns"),
    )
    if hasattr(time, name)  # WebAssembly knows no time of a thread
)
"""The clocks of ``time`` that there are here."""
_BROKEN_DOWN = {"localtime": 0, "gmtime": 0, "ctime": 0, "strftime": 1, "asctime": 0}
"""Functions that take the time that it is where none is given, with the place of the argument."""


def clock_members(draw: Draw) -> dict[str, dict[str, Any]]:
    """Return the members of modules that look at clocks or at chance, by module."""
    return {"time": _time_members(draw), "secrets": _secret_members(draw), "uuid": _uuid_members(draw)}


def _time_members(draw: Draw) -> dict[str, Any]:
    members: dict[str, Any] = {name: _reading(draw, name) for name in CLOCKS}
    members.update({name: _broken_down(draw, name, place) for name, place in _BROKEN_DOWN.items()})
    return members


def _reading(draw: Draw, name: str) -> Callable[[], Any]:
    def read() -> Any:
        return draw(name)

    return read


def _broken_down(draw: Draw, name: str, place: int) -> Callable[..., Any]:
    real = getattr(time, name)

    def now(*args: Any) -> Any:
        if len(args) > place and args[place] is not None:
            return real(*args)
        seconds = draw("time")
        given = time.localtime(seconds) if name in ("strftime", "asctime") else seconds
        return real(*args[:place], given)

    return now


def _secret_members(draw: Draw) -> dict[str, Any]:
    def token_bytes(nbytes: int | None = None) -> bytes:
        found: bytes = draw("bytes", nbytes)
        return found

    def token_hex(nbytes: int | None = None) -> str:
        return token_bytes(nbytes).hex()

    def token_urlsafe(nbytes: int | None = None) -> str:
        return base64.urlsafe_b64encode(token_bytes(nbytes)).rstrip(b"=").decode("ascii")

    def randbelow(exclusive_upper_bound: int) -> int:
        found: int = draw("below", exclusive_upper_bound)
        return found

    def randbits(k: int) -> int:
        return randbelow(1 << k)

    def choice(seq: Any) -> Any:
        if not len(seq):
            raise IndexError("Cannot choose from an empty sequence")
        return seq[randbelow(len(seq))]

    made = (token_bytes, token_hex, token_urlsafe, randbelow, randbits, choice)
    return {each.__name__: each for each in made}


def _uuid_members(draw: Draw) -> dict[str, Any]:
    def uuid4() -> Any:
        import uuid  # few programs need it

        return uuid.UUID(draw("uuid4"))

    return {"uuid4": uuid4}


def clock_library(draw: Draw) -> Library:
    """Return the rules for the methods of dates that look at the clock."""

    def now(real: Any, tz: Any = None) -> Any:
        return _class_of(real).fromtimestamp(draw("time"), tz)

    def utcnow(real: Any) -> Any:
        import datetime as dt

        return _class_of(real).fromtimestamp(draw("time"), dt.UTC).replace(tzinfo=None)

    def today(real: Any) -> Any:
        return _class_of(real).fromtimestamp(draw("time"))

    guards: dict[str, Guard] = {"datetime.now": now, "datetime.utcnow": utcnow, "date.today": today}
    return Library(name="datetime", guarded=guards, writable=None)


def _class_of(real: types.BuiltinMethodType) -> Any:
    """Return the class that a class method was read from."""
    return real.__self__
