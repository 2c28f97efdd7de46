"""What no guest may have: looks at everything that a run left behind, without asking any of it.

Every look is taken with the methods of the real types (``dict.items(x)``, ``type.__dict__[...]``): what is
looked at was made by a hostile program.
"""

from __future__ import annotations

import asyncio
import builtins
import functools
import io
import itertools
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from agex.sandbox import Policy, sandbox, session
from agex.sandbox.classes import class_registry, guest_type
from agex.sandbox.classes import host_calls as session_hooks
from agex.sandbox.guards import guards
from agex.sandbox.policy import module_grant as grants
from agex.sandbox.rules import ruleset as rules
from agex.sandbox.runtime import deadline, limits, output
from agex.sandbox.runtime.scopes import Names

_DEPTH = 8
_MOST = 20_000
"""Objects of one run: a program of a few lines makes no more that are worth a look."""

_INTERPRETER = (types.FrameType, types.CodeType, types.TracebackType)
_MACHINERY: tuple[type, ...] = (
    guards.Guards, session.Session, sandbox.Sandbox, Policy, class_registry.ClassRegistry, grants.ModuleGrant,
    deadline.Deadline, limits.Stop, session_hooks.Hooks, output.Output, output._Router,
)  # fmt: skip
"""Classes of the sandbox itself, whose objects decide or hold what is real."""

_NAMESPACES = type.__dict__["__dict__"].__get__
_MRO = type.__dict__["__mro__"].__get__
_DICT = types.FunctionType.__dict__["__globals__"].__get__
_SLOT = types.MemberDescriptorType

_WORLD = (
    "_ctypes _imp _io _posixsubprocess _socket _thread _winapi code codeop concurrent ctypes gc importlib "
    "inspect io linecache marshal mmap multiprocessing nt os pathlib pickle posix pty runpy shelve shutil "
    "signal site socket ssl subprocess sys tempfile threading traceback zipimport"
).split()
"""Modules whose functions and classes reach the world or the interpreter."""

_STREAM: type = io.IOBase.__mro__[1]  # the one that streams written in C derive from
_LIBRARIES = {name.partition(".")[0] for name in Policy.default().modules}
_REAL_BUILTINS = {
    id(value): name
    for name, value in vars(builtins).items()
    if name in set("__build_class__ __import__ breakpoint compile delattr dir eval exec getattr globals hasattr input "
                   "locals open print setattr vars".split())
}  # fmt: skip


class Oracle:
    """Finds denied objects among what the guest of one session holds.

    Args:
        secret: a text that stands in everything private.
        private: objects of the host that were never given out.
        live: the objects that were; their private state is denied.
    """

    def __init__(
        self, run: session.Session, *, secret: str, private: tuple[Any, ...], live: dict[str, Any]
    ) -> None:
        self._secret = secret
        self._private = {id(each): each for each in private}
        self._classes = run._guards.classes
        self._builtins = run._builtins
        self._globals = run.globals
        self._dicts = {
            id(vars(m)): name for name, m in list(sys.modules.items()) if isinstance(m, types.ModuleType)
        }
        self._dicts |= {id(vars(o)): f"the dict of {n}" for n, o in live.items() if hasattr(o, "__dict__")}
        self._dicts |= {id(run._builtins): "the guest's builtins", id(run.globals): "the session's namespace"}
        self._modules = {
            id(m): name for name, m in list(sys.modules.items()) if isinstance(m, types.ModuleType)
        }
        self._granted = {id(value) for value in _granted()}
        self._given = {id(value) for value in (*live.values(), *map(type, live.values()))}

    def findings(self, *held: Any) -> list[str]:
        """Say what is denied among *held* and everything that it leads to."""
        found: list[str] = []
        seen: dict[int, Any] = {}
        waiting = deque((value, "", 0) for value in held)
        while waiting and len(seen) < _MOST:
            value, path, depth = waiting.popleft()
            if id(value) in seen:
                continue
            seen[id(value)] = value  # kept alive, so that its id stays its own
            if (what := self.verdict(value)) is not None:
                found.append(f"{path or 'a value'}: {what}")
            elif depth < _DEPTH:
                waiting.extend((part, f"{path}{step}", depth + 1) for step, part in self._parts(value))
        return found

    def verdict(self, value: Any) -> str | None:
        """Say what makes *value* denied; None if nothing does."""
        kind = type(value)
        if kind is str or kind is bytes:
            return (
                "the secret" if self._secret in (value if kind is str else value.decode("latin-1")) else None
            )
        if id(value) in self._private:
            return f"a private object of the host, a {kind.__name__}"
        if isinstance_of(value, _INTERPRETER):
            return f"a {kind.__name__}"
        if isinstance_of(value, (types.ModuleType,)) and id(value) in self._modules:
            return f"the real module {self._modules[id(value)]}"
        if id(value) in self._dicts:
            return f"the namespace of {self._dicts[id(value)]}"
        if isinstance_of(value, (type,)):
            return self._class_verdict(value)
        return self._object_verdict(value, kind)

    def _object_verdict(self, value: Any, kind: type) -> str | None:
        if id(value) in self._granted or id(value) in self._given:
            return None
        if isinstance_of(value, _MACHINERY):
            return f"an object of the sandbox, a {kind.__name__}"
        if isinstance_of(value, (_STREAM,)) and not isinstance_of(value, (io.StringIO, io.BytesIO)):
            return f"a stream, a {kind.__name__}"
        if isinstance_of(value, (asyncio.AbstractEventLoop,)):
            return "the event loop"
        if kind in {types.FunctionType, types.BuiltinFunctionType}:
            return self._function_verdict(value)
        if kind is types.MethodType:
            owner = types.MethodType.__dict__["__self__"].__get__(value)
            if isinstance_of(owner, _MACHINERY) and not self._is_builtin(value):
                return "a method of the sandbox"
        namespace = getattr(value, "_namespace", None) if kind is Names else None
        if id(namespace) in self._dicts and namespace is not self._globals:
            return f"a view of {self._dicts[id(namespace)]}"
        if any(
            value is self._builtins.get(name) for name in rules.HELPERS if name not in {"stop!", "value!"}
        ):
            return "a helper of the guarded code"
        return None

    def _is_builtin(self, method: types.MethodType) -> bool:
        """Tell whether a method of the guards is one of the guest's builtins."""
        return any(
            type(each) is types.MethodType
            and each.__func__ is method.__func__
            and each.__self__ is method.__self__
            for name, each in self._builtins.items()
            if name.isidentifier()
        )

    def _function_verdict(self, value: Any) -> str | None:
        if id(value) in _REAL_BUILTINS:
            return f"the real {_REAL_BUILTINS[id(value)]}()"
        # A stand-in takes the names of what it stands for, and what is made of it by the sandbox takes them on.
        is_ours = str(getattr(value, "__globals__", {}).get("__name__")).startswith("agex.sandbox.")
        home = str(value.__module__ or "").partition(".")[0]
        if home in _WORLD and not is_ours:
            return f"{value.__module__}.{value.__qualname__}"
        return None

    def _class_verdict(self, value: type) -> str | None:
        if self._classes.is_guest(value) or id(value) in self._granted:
            return None
        if _is_one_of(value, _INTERPRETER) or _is_one_of(value, _MACHINERY):
            return f"the class {value.__name__}"
        if type in _MRO(value) and not isinstance_of(value, (type(guest_type.GuestType),)):
            return None if self._is_made_by_guest(value) else f"the real metaclass {value.__name__}"
        if _is_one_of(value, _io_bases()):
            return None
        if _STREAM in _MRO(value):
            return f"the class {value.__name__}"
        module, name = str(_NAMESPACES(value).get("__module__", "")), type.__dict__["__name__"].__get__(value)
        is_there = vars(sys.modules.get(module, types)).get(name) is value  # a guest may say so of its own
        return f"the class {module}.{name}" if is_there and module.partition(".")[0] in _WORLD else None

    def _is_made_by_guest(self, class_: type) -> bool:
        return any(self._classes.is_guest(part) for part in _MRO(class_))

    # -- what a value leads to -----------------------------------------------------------

    def _parts(self, value: Any) -> Iterator[tuple[str, Any]]:
        kind = type(value)
        yield from _elements(value, kind)
        if kind is types.FunctionType:
            yield from self._parts_of_function(value)
        elif isinstance_of(value, (type,)):
            if self._classes.is_guest(value):
                yield from ((f".{k}", v) for k, v in list(_NAMESPACES(value).items()) if _is_shown(k))
        elif isinstance_of(value, (BaseException,)):
            yield ".args", BaseException.__dict__["args"].__get__(value)
            yield ".__cause__", BaseException.__dict__["__cause__"].__get__(value)
        elif (
            kind is types.GeneratorType and value.gi_frame is not None and self._is_guest_code(value.gi_frame)
        ):
            yield from ((f".{k}", v) for k, v in list(value.gi_frame.f_locals.items()) if "!" not in k)
        if self._classes.is_guest(kind):
            yield from self._parts_of_instance(value, kind)
        elif id(value) not in self._granted and id(value) not in self._given:
            yield from self._public_parts(value, kind)

    def _public_parts(self, value: Any, kind: type) -> Iterator[tuple[str, Any]]:
        """Give what an object of a library shows by plain attributes: ``_GeneratorContextManager.gen``."""
        home = str(_NAMESPACES(kind).get("__module__", "")).partition(".")[0]
        if home in _LIBRARIES and "__dict__" in _has_dict(kind):
            state = object.__getattribute__(value, "__dict__")
            if type(state) is dict:
                yield from ((f".{k}", v) for k, v in list(state.items()) if type(k) is str and k[0] != "_")

    def _is_guest_code(self, frame: types.FrameType) -> bool:
        return frame.f_builtins is self._builtins

    def _parts_of_function(self, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        if types.FunctionType.__dict__["__builtins__"].__get__(function) is not self._builtins:
            return
        for cell in function.__closure__ or ():
            try:
                yield ".closure", cell.cell_contents
            except ValueError:  # not bound yet
                continue
        yield ".defaults", function.__defaults__
        yield ".dict", dict(function.__dict__)

    def _parts_of_instance(self, value: Any, kind: type) -> Iterator[tuple[str, Any]]:
        """Give what the guest itself put on an object of its own class; a host base's private part is not seen."""
        pure = self._classes.is_pure(kind)
        for base in _MRO(kind):
            for name, member in list(_NAMESPACES(base).items()):
                if type(member) is _SLOT and self._classes.is_guest(base):
                    try:
                        yield f".{name}", member.__get__(value)
                    except AttributeError:
                        continue
        if pure and isinstance_of(value, (object,)) and "__dict__" in _has_dict(kind):
            try:
                state = object.__getattribute__(value, "__dict__")
            except AttributeError:
                return
            if type(state) is dict:
                yield from ((f".{k}", v) for k, v in list(state.items()))


def _elements(value: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """Give what a container holds, with the methods of the built-in one that it is or derives from."""
    if isinstance_of(value, (dict,)):
        for key, item in list(dict.items(value)):
            yield ".key", key
            yield f"[{key!r}]" if type(key) is str else "[...]", item
    elif kind is types.MappingProxyType:
        yield from ((f"[{key!r}]", item) for key, item in list(value.items()) if type(key) is str)
    elif kind is functools.partial:
        yield from ((".partial", part) for part in (value.func, value.args, value.keywords))
    for sequence in (list, tuple, set, frozenset, deque):
        if isinstance_of(value, (sequence,)):
            yield from (("[...]", item) for item in list(sequence.__iter__(value)))


def isinstance_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Do what ``isinstance`` does, by the type alone: an object may lie about its ``__class__``."""
    return any(kind in _MRO(type(value)) for kind in kinds)


def _is_shown(name: Any) -> bool:
    """Tell whether a class's entry is one that the guest can read."""
    return type(name) is str and name not in {
        "__dict__",
        "__weakref__",
        "__array_interface__",
        "__array_struct__",
    }


def _has_dict(kind: type) -> set[str]:
    return {name for base in _MRO(kind) for name in _NAMESPACES(base) if name == "__dict__"}


def _is_one_of(value: type, classes: Iterable[type]) -> bool:
    """Look for a class itself: its metaclass may have a hash or an equality of its own, or none."""
    return any(value is one for one in classes)


@functools.cache
def _io_bases() -> frozenset[type]:
    return frozenset(
        itertools.chain(io.StringIO.__mro__, io.BytesIO.__mro__, io.UnsupportedOperation.__mro__)
    )


@functools.cache
def _granted() -> tuple[Any, ...]:
    """Give the members of the standard set, as guests get them."""
    return tuple(
        value
        for grant in Policy.default().modules.values()
        for value in vars(grant.copy()).values()
        if not isinstance(value, (str, bytes, int, tuple, types.ModuleType)) and value is not None
    )
