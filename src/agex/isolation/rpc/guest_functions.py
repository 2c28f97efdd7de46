"""Guest functions in the host: each call of one is a call in a worker."""

from __future__ import annotations

import asyncio
import inspect
import types
import weakref
from collections.abc import Mapping
from typing import Any, Protocol

from agex.errors import SandboxError
from agex.escaping import line
from agex.isolation.rpc import signatures
from agex.isolation.rpc.guest_codecs import LINES_CHARS
from agex.isolation.wire.error_codec import ProtocolError
from agex.sandbox import Result
from agex.sandbox.runtime import source_lines

__all__ = ["GuestFunctions"]


class _Caller(Protocol):
    def __call__(
        self, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, awaits: bool
    ) -> Result: ...


class GuestFunctions:
    """Proxies of the guest functions of one session: one for each, while it is referred to.

    Args:
        call: calls a guest function by its number.
    """

    def __init__(self, call: _Caller) -> None:
        self._call = call
        self._by_number: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def number(self, value: Any) -> int | None:
        """Return the number of a guest function of this session; None for anything else."""
        return self._numbers.get(value) if inspect.isfunction(value) else None

    def numbers(self) -> list[int]:
        """Return the numbers of the functions that are still referred to."""
        return sorted(self._by_number.keys())

    def take(self, about: Mapping[str, Any]) -> Any:
        """Return the proxy of a guest function.

        Raises:
            ProtocolError: it is described wrongly.
        """
        number = about.get("id")
        if type(number) is not int:
            raise ProtocolError("a function is described wrongly")
        found = self._by_number.get(number)
        if found is None:
            found = _dressed(self._made(number, is_async=about.get("async") is True), about)
            self._by_number[number] = found
            self._numbers[found] = number
        return found

    def _made(self, number: int, *, is_async: bool) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return _value(self._call(number, args, kwargs, awaits=False))

        async def acall(*args: Any, **kwargs: Any) -> Any:
            return _value(await asyncio.to_thread(self._call, number, args, kwargs, awaits=True))

        return acall if is_async else call


def _dressed(function: Any, about: Mapping[str, Any]) -> Any:
    name, doc, text = about.get("name"), about.get("doc"), about.get("text")
    if type(name) is not str or type(doc) is not str or type(text) is not str or len(text) > LINES_CHARS:
        raise ProtocolError("a function is described wrongly")
    name = line(name)  # tracebacks show it
    if text:
        function.__code__ = _written_as(text, name, function.__code__)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc or None
    signature = signatures.read(about.get("sig"))
    if signature is not None:
        function.__signature__ = signature
    return function


def _note(error: BaseException, traceback: str) -> None:
    """Note where an error was raised in the worker; a traceback of the host shows notes."""
    lines = traceback.rstrip().split("\n")
    note = "\n".join(["In the worker:", *map(line, lines)])
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _written_as(text: str, name: str, code: types.CodeType) -> types.CodeType:
    """Return the code of a proxy for `inspect` and tracebacks: each instruction stands in the first line."""
    file = source_lines.source_file("worker", text)
    units = len(code.co_code) // 2
    rest = [min(_MOST_UNITS, units - start) for start in range(0, units, _MOST_UNITS)]
    lines = b"".join(bytes((_SAME_LINE | (count - 1), 0)) for count in rest)
    made = code.replace(
        co_filename=file.name, co_firstlineno=1, co_linetable=lines, co_name=name, co_qualname=name
    )
    source_lines.keep(made, file)
    return made


_MOST_UNITS, _SAME_LINE = 8, 0x80 | 13 << 3
"""An entry of a line table: of so many units at most; a line without columns, here with the offset 0
(``Objects/locations.md`` of CPython)."""


def _value(result: Result) -> Any:
    if result.stopped is not None:
        raise SandboxError("the function tried to end a task that is over") from result.stopped
    if result.error is not None:
        _note(result.error, result.traceback)
        raise result.error
    return result.value
