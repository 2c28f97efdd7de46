"""The names that guest code has for host objects. Stored code refers to host objects by them."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxError
from agex.sandbox.runtime import provenance

if TYPE_CHECKING:
    from agex.sandbox.session import Session

__all__ = ["method", "method_of", "name_of", "named"]

_MODULE = "module "


def name_of(session: Session, value: object) -> str | None:
    """Return a name that `named` finds this very object by; None where guest code has no name for it.

    ``module math``, ``math:sqrt``, or the name of a builtin or of something registered. A module need not be
    the very one: each session has some of its own.
    """
    if type(value) is types.ModuleType:
        module = session.importer.name_of(value)
        return None if module is None else f"{_MODULE}{module}"
    return next((name for name in _names(session, value) if _is_named(session, name, value)), None)


def _is_named(session: Session, name: str, value: object) -> bool:
    try:
        return named(session, name) is value
    except KeyError:
        return False


def _names(session: Session, value: object) -> Iterator[str]:
    """Yield the names that an object may have, those of modules last."""
    yield from [name for name, each in session.builtins.items() if each is value and "!" not in name]
    home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if type(home) is str and type(name) is str:
        yield f"{home}:{name}"
    for module, content in list(session.importer.handed_out.items()):
        for name, each in list(vars(content).items()):
            if each is value:
                yield f"{module}:{name}"


def named(session: Session, name: str, *, run: bool = False) -> Any:
    """Return the object that a name stands for, under the policy of the session.

    With *run*, a module of the workspace is run where it is not loaded yet.

    Raises:
        KeyError: there is none, or it is not granted.
    """
    home, _, member = name.partition(":")
    if member:
        if member.startswith("_"):
            raise KeyError(name)
        return vars(_module(session, home, run=run))[member]
    if name.startswith(_MODULE):
        return _module(session, name.removeprefix(_MODULE), run=run)
    if "!" in name or name.startswith("_"):
        raise KeyError(name)
    return session.builtins[name]


def _module(session: Session, name: str, *, run: bool) -> types.ModuleType:
    try:
        found = session.imported(name, run=run)
    except ImportError:
        raise KeyError(name) from None
    if not isinstance(found, types.ModuleType):
        raise KeyError(name)
    return found


# -- methods -------------------------------------------------------------------------------------


def method_of(session: Session, value: Any) -> tuple[Any, str] | None:
    """Return the owner and the name by which guest code reads a method of the host: ``(str, "upper")``.

    Return None for any other object, and where guest code may not read it.
    """
    name = getattr(value, "__name__", None)
    if type(name) is not str or not issubclass(type(value), _READ):
        return None
    return next(
        ((owner, name) for owner in _owners(session, value) if _has(session, owner, name, value)), None
    )


def _has(session: Session, owner: Any, name: str, value: Any) -> bool:
    try:
        return bool(method(session, owner, name) == value)
    except KeyError:
        return False


def _owners(session: Session, value: Any) -> Iterator[Any]:
    """Yield the objects that a method may be read of: its object, or a class that guest code can name."""
    owner = getattr(value, "__self__", None)
    if owner is not None:
        if type(owner) is not types.ModuleType:
            yield owner
        return
    owner = getattr(value, "__objclass__", None)
    if owner is not None and name_of(session, owner) is not None:
        yield owner
    contents = [session.builtins, *(vars(module) for module in session.importer.handed_out.values())]
    for content in contents:
        yield from [each for each in list(content.values()) if issubclass(type(each), type)]


_OF_CLASSES = (types.MethodDescriptorType, types.ClassMethodDescriptorType)
_READ = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, *_OF_CLASSES)


def method(session: Session, owner: Any, name: str) -> Any:
    """Return a method of a host class or host object, as guest code reads it; nothing else is read.

    Raises:
        KeyError: there is no such method, or guest code may not read it, or reading it would run code.
    """
    is_class = issubclass(type(owner), type)
    if type(name) is not str or name.startswith("_"):
        raise KeyError(name)
    parts = mro_of(owner if is_class else type(owner))
    found = next((namespace_of(part)[name] for part in parts if name in namespace_of(part)), None)
    if not isinstance(found, _METHODS) or _answers_itself(owner, parts):
        raise KeyError(name)
    try:
        return session.builtins["getattr"](owner, name)
    except (SandboxError, AttributeError):
        raise KeyError(name) from None


_METHODS = (types.FunctionType, types.BuiltinFunctionType, staticmethod, classmethod, *_OF_CLASSES)


def _answers_itself(owner: Any, parts: tuple[type, ...]) -> bool:
    """Return whether reading an attribute runs Python code, of guest code or of the host."""
    if any(map(provenance.is_guest_class, parts)):
        return True
    kinds = mro_of(type(owner))
    asked = next(
        namespace_of(kind)["__getattribute__"] for kind in kinds if "__getattribute__" in namespace_of(kind)
    )
    return type(asked) is not types.WrapperDescriptorType
