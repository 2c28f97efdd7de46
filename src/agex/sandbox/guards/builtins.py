"""The builtins that guest code runs with.

`STATIC` holds those that all sessions share. `BuiltinGuards` has those that a session answers itself: they
take the names of attributes, show namespaces or run code from strings.
"""

from __future__ import annotations

import builtins as host
import functools
import sys
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.classes import host_classes, unsafe_protocols
from agex.sandbox.classes.errors import described, exact_name, refusal
from agex.sandbox.classes.super_lookup import is_inherited
from agex.sandbox.classes.views import shown_namespace, standard_namespace
from agex.sandbox.language import compiler
from agex.sandbox.language.exec_namespaces import Spaces, runs_apart
from agex.sandbox.policy import browser
from agex.sandbox.rules import names as ledger
from agex.sandbox.rules.code_flags import CO_OPTIMIZED
from agex.sandbox.runtime.context import caller
from agex.sandbox.runtime.scopes import Names, own_names, replace_names, scope_of
from agex.sandbox.stdlib import itertools
from agex.sandbox.stdlib.builtins import REFUSING, as_builtin, print_, refuse_call, source_text

if TYPE_CHECKING:
    from agex.sandbox.classes.class_registry import ClassRegistry
    from agex.sandbox.guards.import_statement import Importer
    from agex.sandbox.policy.policy import Policy

__all__ = ["STATIC", "BuiltinGuards"]

_SAFE_BUILTINS = (
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate "
    "filter float frozenset hash hex id int isinstance issubclass iter len list map max memoryview min next "
    "object oct ord pow property range repr reversed round set slice sorted staticmethod str sum super "
    "tuple zip aiter anext format True False None Ellipsis NotImplemented __debug__"
).split()
"""Builtins that guest code gets as they are."""

_EXCEPTIONS = [
    name
    for name, value in vars(host).items()
    if isinstance(value, type) and issubclass(value, BaseException) and value is not KeyboardInterrupt
]
"""All exceptions but KeyboardInterrupt, which belongs to the keyboard; guest code gets another class."""

STATIC: dict[str, Any] = {name: getattr(host, name) for name in (*_SAFE_BUILTINS, *_EXCEPTIONS)}
STATIC |= itertools.BUILTINS | REFUSING
STATIC["KeyboardInterrupt"] = type("KeyboardInterrupt", (BaseException,), {"__module__": "builtins"})

_OWN_SCOPE = object()
"""Stands for an argument that was left out."""

_NAMED = ("getattr", "hasattr", "setattr", "delattr", "vars", "dir", "globals", "locals", "eval", "exec")
"""Builtins that a session answers itself."""


class BuiltinGuards:
    """The builtins that a session answers itself; `Guards` adds the checks that they ask."""

    policy: Policy
    classes: ClassRegistry
    importer: Importer
    builtins: dict[str, Any]

    if TYPE_CHECKING:

        def check(self, receiver: Any, name: str) -> Any:
            """Return what a private or contested attribute is read from."""

        def check_store(self, receiver: Any, name: str) -> Any:
            """Return the object whose attribute may be set."""

        def check_delete(self, receiver: Any, name: str) -> Any:
            """Return the object whose attribute may be deleted."""

        def check_module(self, module: types.ModuleType) -> None:
            """Refuse a module of the interpreter that an object led to."""

        def is_guest_function(self, function: Any) -> bool:
            """Return whether a function was compiled for this session."""
            ...

        def is_own(self, receiver: Any) -> bool:
            """Return whether a receiver is a pure guest class or an instance of one."""
            ...

        def is_listed(self, value: Any, name: str) -> bool:
            """Return whether ``dir`` shows a name."""
            ...

    def session_builtins(self) -> dict[str, Any]:
        """Return the builtins that the session answers, by name."""
        own = {name: as_builtin(name, getattr(self, name)) for name in _NAMED}
        return {**own, "print": as_builtin("print", print_)}

    @functools.cached_property
    def _spaces(self) -> Spaces:
        # Made for the first exec() that is given a namespace: most sessions never call it.
        return Spaces()

    # -- builtins that take names ----------------------------------------------------

    def getattr(
        self, receiver: Any = _OWN_SCOPE, name: Any = _OWN_SCOPE, /, *default: Any, **named: Any
    ) -> Any:
        """Do what ``getattr`` does, for names that guest code could have written."""
        if name is _OWN_SCOPE or named:
            refuse_call("getattr", receiver is not _OWN_SCOPE, named)
        name = exact_name(name)
        try:
            return host.getattr(self.readable(receiver, name), name, *default)
        except SandboxAttributeError:
            raise
        except AttributeError:  # a door found no such attribute
            if not default:
                raise
            return default[0]

    def readable(self, receiver: Any, name: str) -> Any:
        if ledger.is_denied(name):
            raise refusal(receiver, name)
        rules = self.policy.text
        if browser.IS_HERE and browser.belongs_to_it(receiver, name):
            raise refusal(receiver, name)
        if (ledger.is_private(name) or name in rules.contested or rules.strict) and (
            name in rules.hot
            or issubclass(type(receiver), type)  # a guest metaclass does not make its class a guest class
            or not self.classes.is_pure(type(receiver))
            or (name in ledger.INHERITED and is_inherited(self.classes.is_guest, receiver, name))
        ):
            return self.check(receiver, name)
        return receiver

    def hasattr(self, receiver: Any = _OWN_SCOPE, name: Any = _OWN_SCOPE, /, *more: Any) -> bool:
        """Do what ``hasattr`` does: a public member that is left out is not there. A private name raises."""
        if name is _OWN_SCOPE or more:
            refuse_call("hasattr", _count(receiver, name, *more))
        name = exact_name(name)
        try:
            return host.hasattr(self.readable(receiver, name), name)
        except SandboxAttributeError:
            if name.startswith("_"):
                raise
            return False
        except AttributeError:  # a door found no such attribute
            return False

    def setattr(
        self, receiver: Any = _OWN_SCOPE, name: Any = _OWN_SCOPE, value: Any = _OWN_SCOPE, /, *more: Any
    ) -> None:
        """Do what ``setattr`` does, for names that guest code could have written."""
        if value is _OWN_SCOPE or more:
            refuse_call("setattr", _count(receiver, name, value, *more))
        name = exact_name(name)
        self.check_storable(receiver, name)
        host.setattr(self.check_store(receiver, name), name, value)

    def delattr(self, receiver: Any = _OWN_SCOPE, name: Any = _OWN_SCOPE, /, *more: Any) -> None:
        """Do what ``delattr`` does, for names that guest code could have written."""
        if name is _OWN_SCOPE or more:
            refuse_call("delattr", _count(receiver, name, *more))
        name = exact_name(name)
        self.check_storable(receiver, name)
        host.delattr(self.check_delete(receiver, name), name)

    def check_storable(self, receiver: Any, name: str) -> None:
        if ledger.is_denied(name) or (ledger.is_dunder(name) and name not in ledger.STORABLE):
            raise SandboxAttributeError(f"attribute '{name}' of {described(receiver)} cannot be changed")

    def vars(self, value: Any = _OWN_SCOPE, /, *more: Any) -> Any:
        """Do what ``vars`` does; the dict of a module is read-only, that of a host object refused."""
        if more:
            refuse_call("vars", 1 + len(more))
        if value is _OWN_SCOPE:
            return scope_of(caller(self.builtins))
        if issubclass(type(value), types.ModuleType):
            if self.policy.strict:
                self.check_module(value)
            return types.MappingProxyType(
                {k: v for k, v in host.vars(value).items() if not ledger.is_dunder(k)}
            )
        if not (unsafe_protocols.is_namespace(value) or self.is_own(value) or self.is_guest_function(value)):
            if issubclass(type(value), type) and host_classes.is_standard(value, host_classes.STANDARD_BASES):
                return standard_namespace(self, value)
            raise SandboxTypeError(
                f"vars() of {described(value)} is not available; use dir() and its attributes"
            )
        if issubclass(type(value), type):
            return shown_namespace(self, value)
        if type(value) is types.FunctionType:
            return Names(host.vars(value))
        return host.vars(value)

    def dir(self, value: Any = _OWN_SCOPE, /, *more: Any) -> list[str]:
        """Do what ``dir`` does, for the names that may be read."""
        if more:
            refuse_call("dir", 1 + len(more))
        if value is _OWN_SCOPE:
            return sorted(own_names(caller(self.builtins).f_locals))
        if self.policy.strict and issubclass(type(value), types.ModuleType):
            self.check_module(value)
        return [name for name in host.dir(value) if self.is_listed(value, name)]

    def globals(self, *more: Any) -> Names:
        """Return a live view of the global names of guest code."""
        if more:
            refuse_call("globals", len(more))
        return Names(caller(self.builtins).f_globals)

    def locals(self, *more: Any) -> Mapping[str, Any]:
        """Return the names of the calling scope: a live view where that of CPython is live, else a copy."""
        if more:
            refuse_call("locals", len(more))
        return scope_of(caller(self.builtins))

    # -- code from strings ---------------------------------------------------------

    def eval(self, source: Any = _OWN_SCOPE, globals: Any = None, locals: Any = None, /, *more: Any) -> Any:
        """Do what ``eval`` does, with transformed code."""
        if source is _OWN_SCOPE or more:
            refuse_call("eval", 3 + len(more) if more else 0)
        frame = caller(self.builtins)
        apart = runs_apart(globals, frame.f_globals)
        code = compiler.compile_expression(source_text(source, "eval"), self.policy.text, apart=apart)
        return self._run(code, globals, locals, frame)

    def exec(self, source: Any = _OWN_SCOPE, globals: Any = None, locals: Any = None, /, *more: Any) -> None:
        """Do what ``exec`` does, with transformed code."""
        if source is _OWN_SCOPE or more:
            refuse_call("exec", 3 + len(more) if more else 0)
        frame = caller(self.builtins)
        text, apart = source_text(source, "exec"), runs_apart(globals, frame.f_globals)
        code = compiler.compile_module(text, "<string>", self.policy.text, echo=False, apart=apart)
        self._run(code, globals, locals, frame)

    def _run(self, code: types.CodeType, outer: Any, inner: Any, frame: types.FrameType) -> Any:
        """Run code in namespaces that cannot shadow a helper; copy back the names that it binds."""
        outer = None if type(outer) is Names else outer  # globals() itself
        for mapping in (outer, inner):
            if mapping is not None and type(mapping) not in {dict, Names}:
                raise SandboxTypeError(f"a namespace must be a dict, got {type(mapping).__name__}")
        if outer is None:
            names = frame.f_globals
            here = frame.f_locals if inner is None else inner
            here = None if here is names else here
        else:
            names = self._spaces.enter(outer, {"__builtins__": self.builtins})
            if names.get("__name__") == "__main__":
                names["__name__"] = self.classes.module_name  # by which new classes are known
            here = inner
        scope = names if here is None else own_names(here)
        try:
            return host.eval(code, names, scope)
        finally:
            if outer is not None:
                self._spaces.leave(names)
            if inner is not None or (here is not None and _is_written_to(frame)):
                replace_names(here, own_names(scope))

    # -- imports -------------------------------------------------------------------

    def import_(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        """Do what the import statement does; guest code cannot call it."""
        return self.importer(name, globals, fromlist, level)


def _count(*given: Any) -> int:
    """Count the arguments of a call."""
    return sum(each is not _OWN_SCOPE for each in given)


def _is_written_to(frame: types.FrameType) -> bool:
    """Return whether ``exec`` binds names in this scope; in functions it does so up to Python 3.12 only."""
    return sys.version_info < (3, 13) or not frame.f_code.co_flags & CO_OPTIMIZED


for _function in (print_, *(vars(BuiltinGuards)[name] for name in _NAMED)):  # as error messages name them
    _function.__name__ = _function.__qualname__ = _function.__name__.strip("_")
    _function.__module__ = "builtins"
