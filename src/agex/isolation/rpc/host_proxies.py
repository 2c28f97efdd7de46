"""Proxies of host functions and objects in a worker: each use asks the host.

The stub of an object is an instance of a class made for its description, with the object's public
methods and operators. Attributes are asked for when they are read. The host decides which requests are
allowed, not this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NoReturn, Protocol

from agex.isolation.rpc import signatures

__all__ = ["Asker", "InputsRecord", "LiveStub", "Stubs"]


class Asker(Protocol):
    """Asks the host."""

    def __call__(self, what: str, of: int | str, name: str | None, args: Any, kwargs: Any) -> Any: ...


class InputsRecord(SimpleNamespace):
    """Values as attributes, read-only: the inputs of a task."""

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"inputs is read-only; bind a variable instead: {name} = ...")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("inputs is read-only")

    def __getitem__(self, name: str) -> Any:
        try:
            return vars(self)[name]
        except KeyError:
            raise KeyError(f"no input is named {name!r}; there are: {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __repr__(self) -> str:
        return f"inputs({', '.join(f'{name}={_short(value)}' for name, value in vars(self).items())})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class LiveStub:
    """The base of all stubs of objects."""

    __slots__ = ("_ask", "_of")

    _ask: Asker
    _of: int | str

    def __getattr__(self, name: str) -> Any:
        return self._ask("get", self._of, name, (), {})

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", self._of, name, (value,), {})

    def __delattr__(self, name: str) -> None:
        self._ask("delete", self._of, name, (), {})


_ASK = LiveStub.__dict__["_ask"]
_OF = LiveStub.__dict__["_of"]


class Stubs:
    """The stubs of one worker: one for each object, so that ``is`` says what it says in the host.

    Args:
        ask: asks the host.
    """

    def __init__(self, ask: Asker) -> None:
        self._ask = ask
        self._made: dict[int | str, Any] = {}
        self._of: dict[int, int | str] = {}
        self._classes: dict[str, type] = {}

    def of(self, stub: object) -> int | str | None:
        """Return the number or name of a stub's object; None for any other value."""
        return self._of.get(id(stub))

    def known(self, which: int | str) -> Any:
        """Return the stub of a host object, if it was made; else None."""
        return self._made.get(which)

    def get(self, which: int | str, about: Mapping[str, Any]) -> Any:
        """Return the stub of a host object."""
        if which not in self._made:
            makers = {"function": self._function, "object": self._object, "class": self._constructor}
            made = makers[about["kind"]](which, about)
            self._made[which] = made
            self._of[id(made)] = which
        return self._made[which]

    def _function(self, which: int | str, about: Mapping[str, Any]) -> Any:
        ask = self._ask

        def call(*args: Any, **kwargs: Any) -> Any:
            return ask("call", which, None, args, kwargs)

        function: Any = _awaitable(call) if about.get("async") else call
        _dress(function, about["name"], about)
        for name, method in about["methods"].items():
            setattr(function, name, self._function_of(which, name, method, is_async=bool(about.get("async"))))
        return function

    def _function_of(
        self, which: int | str, name: str, about: Mapping[str, Any], *, is_async: bool
    ) -> Callable[..., Any]:
        """Return a function that is an attribute of a host function."""
        ask = self._ask

        def call(*args: Any, **kwargs: Any) -> Any:
            return ask("method", which, name, args, kwargs)

        function: Callable[..., Any] = _awaitable(call) if is_async else call
        _dress(function, name, about)
        return function

    def _object(self, which: int | str, about: Mapping[str, Any]) -> Any:
        cls = self._class(about)
        made: Any = object.__new__(cls)
        _ASK.__set__(made, self._ask)
        _OF.__set__(made, which)
        return made

    def _constructor(self, which: int | str, about: Mapping[str, Any]) -> type:
        """Make the proxy of a host class: calling it asks the host for an instance."""
        ask, cls = self._ask, self._class(about)

        def new(_: type, /, *args: Any, **kwargs: Any) -> Any:
            return ask("call", which, None, args, kwargs)

        def refuse(sub: type) -> NoReturn:
            raise TypeError(f"{cls.__name__} cannot be subclassed; make one and use it.")

        dressed: Any = cls
        dressed.__new__ = new
        dressed.__init_subclass__ = classmethod(refuse)
        return cls

    def _class(self, about: Mapping[str, Any]) -> type:
        key = (
            f"{about['module']}.{about['name']} {sorted(about['methods'])} {about['operators']} "
            f"{about.get('async')}"
        )
        if key not in self._classes:
            members = list(about["members"])
            space: dict[str, Any] = {
                "__slots__": (),
                "__doc__": about["doc"],
                "__module__": about["module"],
                "__dir__": lambda _: members,
            }
            for name, method in about["methods"].items():
                space[name] = _dress(_asking("method", name), name, method)
            for name in about["operators"]:
                space[name] = _exit if name == "__exit__" else _asking("operator", name)
            if about.get("async") and "__call__" in space:
                space["__call__"] = _awaitable(space["__call__"])
            if "__eq__" in space:
                space.setdefault("__hash__", None)
            self._classes[key] = type(about["name"], (LiveStub,), space)
        return self._classes[key]


def _asking(what: str, name: str) -> Callable[..., Any]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        ask: Asker = _ASK.__get__(self)
        return ask(what, _OF.__get__(self), name, args, kwargs)

    return method


def _exit(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
    """Leave a context: the host gets the text of an error, not the error itself."""
    ask: Asker = _ASK.__get__(self)
    told = (None, None, None) if error is None else (Exception, f"{kind.__name__}: {error}", None)
    return ask("operator", _OF.__get__(self), "__exit__", told, {})


def _dress(function: Any, name: str, about: Mapping[str, Any]) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = about["doc"] or None
    signature = signatures.read(about["sig"])
    if signature is not None:
        function.__signature__ = signature
    return function


def _awaitable(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns an awaitable in asynchronous code, and the result in other code."""

    def bridge(*args: Any, **kwargs: Any) -> Any:
        return _later(call, args, kwargs) if _awaits() else call(*args, **kwargs)

    return bridge


def _awaits() -> bool:
    """Return whether an event loop runs here: then asynchronous functions are awaited."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _later(call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return call(*args, **kwargs)
