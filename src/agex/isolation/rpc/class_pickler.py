"""Pickler of classes of user modules: their own definitions, and nothing that stands beside them.

cloudpickle takes a class apart, with the functions of its methods and the globals that these name. It would
pickle by reference what it can import, and then a worker would need the whole module: the file at level
``container``, its memory at every level. So all modules are taken apart that are no part of the installation
and not registered themselves.
"""

from __future__ import annotations

import dis
import functools
import importlib
import io
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import cloudpickle
from typing_extensions import TypedDict, is_typeddict

from agex.isolation.rpc.module_sources import is_users

__all__ = ["Pickled", "by_value"]

_by_value = threading.Lock()
"""Held while cloudpickle works: it notes the modules to take apart for the whole process."""


class Pickled:
    """Result of `by_value`.

    Attributes:
        data: the pickle.
        modules: user modules that the definitions name as modules.
        imports: modules that functions in it import when they run.
    """

    def __init__(self) -> None:
        self.data = b""
        self.modules: set[str] = set()
        self.imports: set[str] = set()


def by_value(value: Any, registered: Iterable[str]) -> Pickled:
    """Pickle a value, with its classes of user modules by value.

    Args:
        value: any.
        registered: modules that a worker has: their classes go by reference.

    Raises:
        Exception: a part of it cannot be pickled; of any class.
    """
    registered = {*registered}
    file, pickled = io.BytesIO(), Pickled()
    with _by_value:
        noted = [module for module in _users() if not _is_below(module.__name__, registered)]
        for module in noted:
            cloudpickle.register_pickle_by_value(module)
        try:
            _Pickler(file, pickled, registered).dump(value)
        finally:
            for module in noted:
                cloudpickle.unregister_pickle_by_value(module)
    pickled.data = file.getvalue()
    return pickled


def _users() -> list[types.ModuleType]:
    return [
        module
        for name, module in list(sys.modules.items())
        if getattr(module, "__name__", None) == name and is_users(name)  # the attribute may be anything
    ]


def _is_below(name: str, packages: Iterable[str]) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # it has no types
    def __init__(self, file: io.BytesIO, pickled: Pickled, registered: Iterable[str]) -> None:
        super().__init__(file, 5)
        self._pickled = pickled
        self._registered = registered

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.ModuleType) and is_users(obj.__name__):
            self._pickled.modules.add(obj.__name__)
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, types.FunctionType) and not _is_below(obj.__module__ or "", self._registered):
            self._pickled.imports |= {*_imports(obj.__code__, obj.__globals__.get("__package__") or "")}
        if isinstance(obj, io.TextIOWrapper):  # cloudpickle would read the file and send its text
            raise pickle.PicklingError(f"an open file, {obj.name!r}, cannot be copied")
        made_again = _MADE_AGAIN.get(type(obj))
        if made_again is not None:
            return made_again(obj)
        reduced = super().reducer_override(obj)
        return reduced if reduced is NotImplemented or not is_typeddict(obj) else _typed_dict(obj)


def _imports(code: types.CodeType, package: str) -> Iterator[str]:
    """Return the modules that code imports when it runs."""
    names: list[Any] = []
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME":
            level, members = names[-2:]
            base = _absolute(one.argval, level, package)
            yield base
            yield from (f"{base}.{member}" for member in members or ())
        if one.opname != "EXTENDED_ARG":
            names.append(one.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _imports(constant, package)


def _absolute(name: str, level: int, package: str) -> str:
    if not level:
        return name
    above = package.rsplit(".", level - 1)[0]
    return f"{above}.{name}" if name else above


_OF_TYPED_DICT = (
    "__module__",
    "__qualname__",
    "__doc__",
    "__annotations__",
    "__required_keys__",
    "__optional_keys__",
    "__total__",
)


def _typed_dict(cls: Any) -> tuple[Any, ...]:
    """Return how a TypedDict is made again. cloudpickle would make it of its base, ``dict``, and be refused.

    Its fields come last, for it may contain itself.
    """
    state = {name: getattr(cls, name, None) for name in _OF_TYPED_DICT}
    return _empty_typed_dict, (cls.__name__,), state, None, None, _fill_typed_dict


def _empty_typed_dict(name: str) -> Any:
    return TypedDict(name, {})  # type: ignore[operator]  # made at run time


def _fill_typed_dict(cls: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        setattr(cls, name, value)


def _memoized(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _cached_property(function: Callable[[Any], Any], name: str | None) -> Any:
    made: functools.cached_property[Any] = functools.cached_property(function)
    if name is not None:
        made.__set_name__(type, name)
    return made


_MADE_AGAIN: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    type(functools.lru_cache(len)): lambda one: (_memoized, (one.__wrapped__, one.cache_parameters())),
    functools.cached_property: lambda one: (_cached_property, (one.func, one.attrname)),
    type(threading.Lock()): lambda _: (threading.Lock, ()),
    type(threading.RLock()): lambda _: (threading.RLock, ()),
    threading.local: lambda _: (threading.local, ()),
}
"""Types that cannot be pickled, and whose objects can be made anew in another process."""
