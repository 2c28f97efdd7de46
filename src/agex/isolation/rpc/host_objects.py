"""Host objects that a worker may use without having them: functions to call, objects to ask.

Every request of a worker is carried out under the policy of its task, by a session in this process that
runs no guest code: attributes are read through its guards, and calls have its limits and its audit hook.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
from collections.abc import Callable, Mapping
from typing import Any

from agex import values
from agex.errors import SandboxError
from agex.host_texts import HostTexts
from agex.isolation.rpc.signatures import described
from agex.isolation.wire.error_codec import ProtocolError
from agex.sandbox import KeptCode, Sandbox, Session
from agex.sandbox.host_names import name_of, named
from agex.values.adapters.callable_builder import LIBRARY

__all__ = ["OPERATORS", "HostExports", "describe", "is_callable_kind"]

OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        "len iter next contains getitem setitem delitem call enter exit bool reversed length_hint "
        "eq ne lt le gt ge add radd sub rsub mul rmul matmul truediv rtruediv floordiv mod pow "
        "and or xor neg pos abs invert int float index str repr hash aiter anext"
    ).split()
)
"""Operators of a live object that a worker may use."""

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_REPR_CHARS = 10_000
_DOC_CHARS = 4_000


def is_callable_kind(value: object) -> bool:
    """Return whether a value can only be called."""
    return isinstance(value, _FUNCTIONS)


def describe(value: Any, dir_of: Callable[[Any], list[str]], show: Callable[[Any], str]) -> dict[str, Any]:
    """Describe the uses of a host function or object."""
    if is_callable_kind(value):
        mapped = vars(value).get("map") if isinstance(value, types.FunctionType) else None
        return {
            "kind": "function",
            "methods": {"map": _described(mapped, show)} if is_callable_kind(mapped) else {},
            "name": str(getattr(value, "__name__", "function")),
            "doc": (inspect.getdoc(value) or "")[:_DOC_CHARS],
            "sig": described(value, show),
            "async": inspect.iscoroutinefunction(value) or getattr(value, "is_async", False) is True,
        }
    cls = value if isinstance(value, type) else type(value)
    members = [name for name in dir_of(value) if not name.startswith("_")]
    methods = [name for name in members if callable(inspect.getattr_static(cls, name, None))]
    return {
        "kind": "class" if cls is value else "object",
        "async": inspect.getattr_static(value, "is_async", False) is True,
        "name": cls.__name__,
        "module": cls.__module__,
        "doc": (inspect.getdoc(cls) or "")[:_DOC_CHARS],
        "methods": {name: _method(cls, name, show) for name in methods},
        "members": members,
        "operators": sorted(name for name in OPERATORS if _has_own(cls, name)),
    }


def _method(cls: type, name: str, show: Callable[[Any], str]) -> dict[str, Any]:
    return _described(getattr(cls, name), show)


def _described(function: Any, show: Callable[[Any], str]) -> dict[str, Any]:
    return {"doc": (inspect.getdoc(function) or "")[:_DOC_CHARS], "sig": described(function, show)}


def _has_own(cls: type, name: str) -> bool:
    own = getattr(cls, name, None)
    return own is not None and own is not getattr(object, name, None)


class HostExports(KeptCode):
    """The host functions and objects that one worker may use, and the functions that it returned.

    It is the `agex.values.GuestCode` of this end: it names what does not cross, and finds what is named.

    Args:
        sandbox: its policy holds.
        monitor: carries out the requests of the worker.
        allow: classes whose instances cross by their fields.
        granted: functions and objects of the policy, by name.
        take: makes a proxy from the description of a guest function.
        give: returns the number of such a proxy; None for any other function.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        monitor: Session,
        *,
        allow: values.Allow,
        granted: Mapping[str, Any],
        take: Callable[[Mapping[str, Any]], Any],
        give: Callable[[Any], int | None],
    ) -> None:
        super().__init__(sandbox, monitor)
        self.monitor = monitor
        self._is_sealed = sandbox.policy.is_sealed
        self._allow = allow
        self._granted = dict(granted)
        self._take = take
        self._give = give
        self._texts = HostTexts()
        self._objects: list[Any] = []
        self._ids: dict[int, int] = {}

    # -- naming --------------------------------------------------------------------

    def host_name(self, value: object) -> str | None:
        number = self._give(value)
        if number is not None:
            return "g:" + json.dumps({"id": number})
        known = name_of(self.monitor, value)
        if known is not None:
            return f"n:{known}" if known in self._granted else known
        if isinstance(value, types.ModuleType | type) or self._allow.is_registered(type(value)):
            return None
        return "h:" + json.dumps(self.exported(value))

    def exported(self, value: Any) -> dict[str, Any]:
        """Return the description of an object that the worker may use from now on."""
        number = self._ids.get(id(value))
        if number is None:
            number = self._ids[id(value)] = len(self._objects)
            self._objects.append(value)
        return {"id": number, **describe(value, self._dir, self._short)}

    def descriptions(self) -> dict[str, Any]:
        """Describe the functions and objects that the policy grants by name."""
        return {name: describe(value, self._dir, self._short) for name, value in self._granted.items()}

    def _dir(self, value: Any) -> list[str]:
        found: list[str] = self.monitor.builtins["dir"](value)
        return found

    def _short(self, value: Any) -> str:
        """Return the text of a default or an annotation, under a limit of time: any object can be one."""
        if isinstance(value, type):
            return value.__name__
        text = repr(value) if _is_plain(value) else self._texts.of(value)
        return f"<{type(value).__name__}>" if text is None else text[:_REPR_CHARS]

    def host_object(self, name: str) -> Any:
        """Find an object that a worker named: one that it was given, or a function of its own."""
        if name.startswith("g:"):
            return self._take(_description(name[2:]))
        if name.startswith("h:"):
            return self.found(_description(name[2:]).get("id"))
        if name.startswith("m:"):
            return self._module(name[2:])
        if name in LIBRARY:
            return named(self.monitor, name)
        return self.found(name.removeprefix("n:"))

    def _module(self, name: str) -> types.ModuleType:
        """Return a module that guest code may import, in its version of it.

        Raises:
            ProtocolError: there is none of that name.
        """
        try:
            found = named(self.monitor, f"module {name}")
        except KeyError:
            found = None
        if not isinstance(found, types.ModuleType):
            raise ProtocolError(f"the worker names the module {name[:80]!r}, which it was not given")
        return found

    def found(self, which: Any) -> Any:
        """Return an object by its number, or by the name under which the policy grants it.

        Raises:
            ProtocolError: the worker was given no such object.
        """
        if type(which) is int and 0 <= which < len(self._objects):
            return self._objects[which]
        if type(which) is str and which in self._granted:
            return self._granted[which]
        raise ProtocolError(f"the worker asks for {str(which)[:80]!r}, which it was not given")

    def method_of(self, value: object) -> tuple[Any, str] | None:
        """Name a method of a class: a method of a host object stays with the object, and is used here."""
        return super().method_of(value) if type(value) in _OF_CLASSES else None

    def method(self, owner: Any, name: str) -> Any:
        raise KeyError(name)  # a worker asks for a call instead

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        raise SandboxError("guest code is not run in this process")

    # -- doing ---------------------------------------------------------------------

    def work(self, asked: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the function that carries out a request, to be called with its arguments.

        Raises:
            ProtocolError: no worker makes such a request.
        """
        target = self.found(asked.get("of"))
        what, name = asked.get("what"), asked.get("name")
        if isinstance(target, type) and (what == "operator" or (what == "call" and self._is_sealed(target))):
            raise ProtocolError(
                f"the worker asks for an instance of {target.__name__}, which it may not make"
            )
        if what == "call":
            return target  # type: ignore[no-any-return]  # what is no function says so when it is called
        if type(name) is not str:
            raise ProtocolError("the worker names an attribute by something other than a text")
        read, write, delete = (self.monitor.builtins[f"{each}attr"] for each in ("get", "set", "del"))
        if what == "get":
            return functools.partial(read, target, name)
        if what == "set":
            return functools.partial(write, target, name)
        if what == "delete":
            return functools.partial(delete, target, name)
        if what == "method":
            return functools.partial(_method_call, read, target, name)
        if what == "operator" and name in OPERATORS and _has_own(type(target), name):
            return functools.partial(getattr(type(target), name), target)
        raise ProtocolError(f"the worker asks for {str(what)[:80]!r}, which is no request")


_OF_CLASSES = (types.MethodDescriptorType, types.ClassMethodDescriptorType)


def _method_call(read: Callable[..., Any], target: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    return read(target, name)(*args, **kwargs)


def _description(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ProtocolError("an object is described wrongly")
    return found


_ATOMS = (int, float, complex, bool, str, bytes, type(None), type(...))


def _is_plain(value: Any) -> bool:
    """Return whether the repr of a value runs no code but the interpreter's."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    if type(value).__module__ in ("types", "typing") and not hasattr(value, "__metadata__"):
        return all(map(_is_plain, getattr(value, "__args__", ())))
    return type(value) in _ATOMS or isinstance(value, type)
