"""Codecs of guest code in a worker: names for functions and objects that both ends know."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Callable, Mapping
from typing import Any

from agex._interpreter.type_slots import name_of
from agex.isolation.rpc import signatures
from agex.isolation.rpc.host_proxies import LiveStub, Stubs
from agex.values import ForwardedCode, GuestCode
from agex.values.code.source import function_lines

__all__ = ["LINES_CHARS", "InboundCode", "OutboundCode", "StoredCode"]

_CALLABLE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_CHARS = 200
LINES_CHARS = 20_000
"""Characters of a source that crosses; of a longer one nothing does, as half a function is no source."""


class OutboundCode(ForwardedCode):
    """The `agex.values.GuestCode` of a worker, for values that go to the host.

    A guest function goes by number. Guest classes do not cross, and their instances only as those of
    registered classes.
    """

    def __init__(self, code: GuestCode, stubs: Stubs) -> None:
        super().__init__(code)
        self._stubs = stubs
        self._functions: list[Callable[..., Any]] = []
        self._ids: dict[int, int] = {}

    def function(self, number: int) -> Callable[..., Any]:
        """Return a function that the host got."""
        return self._functions[number]

    def is_guest_function(self, value: object) -> bool:
        return False

    def is_guest_class(self, value: type) -> bool:
        return False

    def host_name(self, value: object) -> str | None:
        which = self._stubs.of(value)
        if which is not None:
            return f"n:{which}" if isinstance(which, str) else "h:" + json.dumps({"id": which})
        if isinstance(value, _CALLABLE):
            return "g:" + json.dumps(self._described(value))
        if isinstance(value, types.ModuleType):
            name = super().host_name(value)
            return None if name is None else f"m:{name.removeprefix('module ')}"
        return None

    def method_of(self, value: object) -> tuple[Any, str] | None:
        return None  # callables go by number

    def _described(self, function: Callable[..., Any]) -> dict[str, Any]:
        number = self._ids.get(id(function))
        if number is None:
            number = self._ids[id(function)] = len(self._functions)
            self._functions.append(function)
        doc = getattr(function, "__doc__", None)
        return {
            "id": number,
            "name": str(getattr(function, "__name__", "function"))[:_CHARS],
            "doc": doc[:4000] if type(doc) is str else "",
            "sig": signatures.described(function, _shown),
            "async": inspect.iscoroutinefunction(function),
            "text": self._lines(function),
        }

    def _lines(self, function: Callable[..., Any]) -> str:
        """Return the lines of a guest function as they were written; empty for any other callable."""
        found: Any = function.__func__ if isinstance(function, types.MethodType) else function
        if type(found) is not types.FunctionType:
            return ""
        source = self.source(found.__code__)
        lines = (source and function_lines(source, found.__code__)) or ""
        return lines if len(lines) <= LINES_CHARS else ""


class StoredCode(ForwardedCode):
    """The `agex.values.GuestCode` of a worker, for variables that are returned to be stored.

    Args:
        code: of the session.
        names: that guest code finds beside its variables.
    """

    def __init__(self, code: GuestCode, names: Mapping[str, Any]) -> None:
        super().__init__(code)
        self._names = names

    def host_name(self, value: object) -> str | None:
        if not isinstance(value, LiveStub):
            return super().host_name(value)
        # Recognised by type: reading an attribute would ask the host, which is not listening.
        return next((name for name, each in self._names.items() if each is value and "!" not in name), None)


class InboundCode(ForwardedCode):
    """The `agex.values.GuestCode` of a worker, for values from the host."""

    def __init__(self, code: GuestCode, stubs: Stubs, given: OutboundCode) -> None:
        super().__init__(code)
        self._stubs = stubs
        self._given = given

    def host_object(self, name: str) -> Any:
        kind, _, rest = name.partition(":")
        if kind == "g":
            return self._given.function(json.loads(rest)["id"])
        if kind == "h":
            about = json.loads(rest)
            return self._stubs.get(about["id"], about)
        return super().host_object(rest if kind == "n" else name)


def _shown(value: Any) -> str:
    """Return the text of a default or annotation without asking a guest class for it."""
    if isinstance(value, type):
        return name_of(value)
    return repr(value)[:_CHARS] if type(value) in _PLAIN else "..."


_PLAIN = frozenset({str, int, float, bool, type(None), bytes, complex})
