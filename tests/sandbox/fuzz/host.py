"""The host that hostile programs are run against: what it registers, what it keeps to itself, and its state."""

from __future__ import annotations

import _abc
import builtins
import calendar
import collections.abc
import dataclasses
import decimal
import enum
import functools
import gc
import importlib
import numbers
import random
import re
import signal
import sys
import types
import typing
import warnings
from typing import Any

from agex.sandbox import Policy
from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.runtime.output import CAPTURE

SECRET = "S3CRET-5d1c7a"
"""Stands in everything that is private; no guest may come by a text that holds it."""


class Canary:
    """Never registered and never given out; held by private state, a closure, a default and a frame."""

    secret = SECRET

    def __init__(self) -> None:
        self.state = SECRET


CANARY = Canary()


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Record:
    a: int
    b: str = "b"


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    """A generic class: subscripting it gives an alias that speaks for it."""

    def __init__(self, item: Any = 1) -> None:
        self.item = item


class Vault:
    """A class with private state, an excluded member (`size`) and one of each kind of descriptor."""

    limit = 10
    _key = SECRET

    def __init__(self, label: str = "vault") -> None:
        self._secret = SECRET
        self._canary = CANARY
        self.label = label

    def describe(self) -> str:
        return "vault " + str(self.label)

    def size(self) -> int:
        return len(self._secret)

    def items(self) -> Any:
        token = self._secret
        yield from (1, 2)
        del token

    async def fetch(self, _token: str = SECRET) -> str:
        return self.label

    @property
    def initial(self) -> str:
        return str(self.label)[:1]

    @functools.cached_property
    def length(self) -> int:
        return len(self._secret)

    @classmethod
    def make(cls) -> Vault:
        return cls("made")

    @staticmethod
    def version() -> str:
        return "1"


class Sealed:
    """May not be constructed."""


@dataclasses.dataclass
class SealedRecord:
    a: int


def _private_function() -> str:
    return SECRET


def host_fn(x: Any = 1, _canary: Canary = CANARY) -> Any:
    return x


def host_fail(message: str = "boom") -> None:
    token = CANARY
    raise ValueError(message + token.secret[:0])


def host_lookup(name: str) -> Any:
    """Look a name up on the canary, which only answers with an error."""
    if not isinstance(name, str) or name in dir(CANARY):
        raise KeyError("name")
    return getattr(CANARY, name)


def host_apply(function: Any, *args: Any) -> Any:
    """Call back into what the guest gave."""
    token = SECRET
    try:
        return function(*args)
    finally:
        del token


def host_sort(values: Any, key: Any = None) -> Any:
    """Call back through Python code of the standard library."""
    import heapq

    return heapq.nsmallest(2, values, key=key)


def host_generator(n: int = 2) -> Any:
    token = CANARY
    yield from range(n if isinstance(n, int) and n < 5 else 2)
    del token


async def host_coroutine() -> int:
    token = CANARY
    del token
    return 1


FUNCTIONS = (host_fn, host_fail, host_lookup, host_apply, host_sort, host_generator, host_coroutine)
CLASSES = (Vault, Color, Record, Box)


def policy(*, strict: bool = False) -> Policy:
    """Give the policy of an application that registers what it needs and trusts the defaults for the rest."""
    made = Policy.default(strict=strict)
    made.cls(Vault, exclude=["_*", "size"])
    made.cls(Sealed, constructable=False)
    made.cls(SealedRecord, constructable=False)
    for class_ in CLASSES[1:]:
        made.cls(class_)
    for function in FUNCTIONS:
        made.fn(function)
    return made


def objects() -> dict[str, Any]:
    """Give the live objects that a program finds as variables."""
    vault = Vault()
    return {
        "vault": vault, "record": Record(1), "sealed": Sealed(), "box": Box(2), "bound": vault.describe,
        "config": types.MappingProxyType({"a": 1}), "view": memoryview(bytearray(b"ab")).toreadonly(),
        "sealed_record": SealedRecord(1),
    }  # fmt: skip


# -- the state of the host ---------------------------------------------------------------------------

_WATCHED_CLASSES: tuple[type, ...] = (Canary, Vault, Color, Record, Box, Sealed)


@functools.cache
def granted_modules() -> tuple[types.ModuleType, ...]:
    """Give the real modules behind the standard set."""
    return tuple(importlib.import_module(name) for name in Policy.default().modules)


@functools.cache
def _library_classes() -> tuple[type, ...]:
    """Give the classes of the granted modules that can be written to at all."""
    found = {
        id(value): value
        for module in granted_modules()
        for value in vars(module).values()
        if isinstance(value, type) and type.__dict__["__flags__"].__get__(value) & 1 << 9
    }
    return tuple(found.values())


_ABSTRACT = tuple(
    value
    for module in (numbers, collections.abc)
    for value in vars(module).values()
    if isinstance(type(value), type) and type(value).__name__ == "ABCMeta"
)

_GROWS = {
    "__warningregistry__",
    "__annotations__",
    "__abstractmethods__",
    "__annotations_cache__",
    "__slotnames__",
}
"""Entries that the interpreter adds when it is asked something harmless."""


class _Members:
    """The members of a namespace, by identity. Equal while nothing but what the interpreter adds has changed."""

    def __init__(self, namespace: Any) -> None:
        # Two tuples made in C: a thousand namespaces are looked at for each program.
        self._names = tuple(namespace)
        self._ids = tuple(map(id, namespace.values()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Members):
            return NotImplemented
        if self._names == other._names and self._ids == other._ids:
            return True
        return self._watched() == other._watched()

    __hash__ = None  # type: ignore[assignment]

    def _watched(self) -> dict[str, int]:
        return {n: i for n, i in zip(self._names, self._ids, strict=True) if n not in _GROWS}


class _Registry:
    """What is registered with an abstract class, weakly: it may become less by itself, but not more."""

    def __init__(self, references: Any) -> None:
        self._references = frozenset(references)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Registry) and other._references <= self._references

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


def _is_method(class_: type, name: str) -> bool:
    """Tell whether *name* on an instance hides a method of its class."""
    return any(callable(vars(base).get(name)) for base in class_.__mro__)


def snapshot(live: dict[str, Any]) -> dict[str, Any]:
    """Give the state of the host as something to compare: identities of members, values of settings."""
    state: dict[str, Any] = {f"members of {m.__name__}": _Members(vars(m)) for m in granted_modules()}
    state |= {
        f"members of class {c.__module__}.{c.__qualname__}": _Members(vars(c))
        for c in (*_WATCHED_CLASSES, *_library_classes())
    }
    state |= {
        f"registry of {c.__name__}": _Registry(_abc._get_dump(c)[0])  # type: ignore[attr-defined]
        for c in _ABSTRACT
    }
    state["builtins"] = _Members({n: v for n, v in vars(builtins).items() if n != "_"})
    state |= {
        "members of the host": _Members(globals()),
        "canary": dict(vars(CANARY)),
        "private state": {n: {k: id(v) for k, v in vars(o).items() if k[0] == "_"} for n, o in live.items()
                          if hasattr(o, "__dict__")},
        "methods": {n: [k for k in vars(o) if _is_method(type(o), k)] for n, o in live.items()
                    if hasattr(o, "__dict__") and not isinstance(o, types.MethodType)},
        "functions": [(dict(vars(f)), f.__code__, f.__defaults__, f.__name__) for f in FUNCTIONS],
        "enum": [(m._name_, m._value_) for m in (*Color, re.RegexFlag.ASCII, re.RegexFlag.IGNORECASE)],
        "fields": repr(dataclasses.fields(Record)),
        "cached property": vars(vars(Vault)["length"])["attrname"],
        "calendar": (calendar.firstweekday(), calendar.TextCalendar().firstweekday),
        "decimal": repr(decimal.getcontext()),
        "random": hash(random.getstate()),
        "warnings": list(map(id, warnings.filters)),
        "streams": (id(sys.stdout), id(sys.stderr), id(sys.stdin)),
        "implementation": repr(sys.implementation),
        "hooks": (id(sys.excepthook), id(sys.displayhook), sys.gettrace(), sys.getrecursionlimit()),
        "alarm": signal.getsignal(signal.SIGALRM),
        "collector": gc.isenabled(),
        "contexts": (CURRENT.get(), CAPTURE.get()),
    }  # fmt: skip
    return state


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Name what is different."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _changed_by_hand() -> dict[str, Any]:
    """Give what the tests of open holes change and no other test could bear."""
    return {
        "enum": [(m, m._name_, m._value_) for m in (*Color, re.RegexFlag.ASCII, re.RegexFlag.IGNORECASE)],
        "classes": [(c, dict(vars(c))) for c in (*_WATCHED_CLASSES, collections.abc.Mapping)],
        "fields": [(f, f.repr, f.name) for f in dataclasses.fields(Record)],
        "month names": calendar.month_name.format,  # type: ignore[attr-defined]
        "calendar": calendar.firstweekday(),
        "implementation": dict(vars(sys.implementation)),
    }


class _Emptied:
    """Empties the mapping behind a proxy."""

    def __ror__(self, mapping: Any) -> Any:
        mapping.clear()
        return self


_AT_FIRST = _changed_by_hand()


def restore() -> None:
    """Undo what a program did to the host through a hole."""
    for member, name, value in _AT_FIRST["enum"]:
        member._name_, member._value_ = name, value
    for class_, members in _AT_FIRST["classes"]:
        for name in vars(class_).keys() - members.keys() - _GROWS:
            type.__delattr__(class_, name)
        for name, value in members.items():
            if vars(class_).get(name) is not value and name not in _GROWS:
                type.__setattr__(class_, name, value)
    for field, shown, name in _AT_FIRST["fields"]:
        field.repr, field.name = shown, name
    calendar.setfirstweekday(_AT_FIRST["calendar"])
    for name in vars(sys.implementation).keys() - _AT_FIRST["implementation"].keys():
        delattr(sys.implementation, name)
    vars(Vault)["length"].attrname = "length"
    calendar.month_name.format = _AT_FIRST["month names"]  # type: ignore[attr-defined]
    dataclasses.fields(Record)[0].metadata | _Emptied()  # type: ignore[operator]
