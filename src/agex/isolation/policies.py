"""A policy as bytes from the host to its workers: the grants that made it, to be repeated there.

Classes and patterns go by cloudpickle, which only ever travels in this direction. Functions and
live objects stay in the host; the worker gets their descriptions.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import cloudpickle

from agex.errors import DefinitionError
from agex.isolation.stubs import LiveStub
from agex.sandbox import Policy
from agex.sandbox.policy import Grant

__all__ = ["granted", "load_policy", "modules_of", "save_policy"]

_STAYS = "stays"

_by_value = threading.Lock()
"""Which modules cloudpickle takes apart is noted for the whole process."""


def granted(policy: Policy) -> dict[str, Any]:
    """Return the functions, live objects and some classes of a policy, by name: what stays in the host."""
    found: dict[str, Any] = {}
    for grant in policy.grants:
        name = grant.settings.get("name") or getattr(grant.target, "__name__", None)
        if isinstance(name, str) and _stays(grant):
            found[name] = policy.names[name]
    return found


def _stays(grant: Grant) -> bool:
    if grant.kind == "cls":
        return grant.settings.get("stays") is True
    return grant.kind == "fn" or (grant.kind == "module" and not isinstance(grant.target, types.ModuleType))


def modules_of(policy: Policy) -> list[str]:
    """Return the modules of a policy that are worth loading before a worker starts."""
    found = {
        g.target.__name__
        for g in policy.grants
        if g.kind == "module" and isinstance(g.target, types.ModuleType)
    }
    found |= {
        g.target.__module__
        for g in policy.grants
        if g.kind == "cls" and not _stays(g) and not _travels(g.target.__module__)
    }
    return sorted(found)


def save_policy(policy: Policy, classes: Iterable[type]) -> bytes:
    """Give a policy, and the classes whose instances may cross, as bytes for a worker.

    Raises:
        DefinitionError: a class or pattern cannot be sent.
    """
    grants: list[tuple[str, Any, Mapping[str, Any]]] = []
    names = dict(policy.names)
    for grant in policy.grants:
        name = grant.settings.get("name") or getattr(grant.target, "__name__", None)
        names.pop(str(name), None)
        if _stays(grant):
            grants.append((_STAYS, name, {}))
        elif isinstance(grant.target, types.ModuleType):
            grants.append(("import", grant.target.__name__, grant.settings))
        else:
            grants.append((grant.kind, grant.target, grant.settings))
    found = tuple(classes)
    with _taken_apart(_homes(grants, names, found)):
        file = io.BytesIO()
        try:
            cloudpickle.Pickler(file, 5).dump((policy.strict, grants, names, found))
        except Exception as error:
            raise DefinitionError(
                f"what is registered cannot be sent to a worker: {type(error).__name__}: {error}; "
                "define its classes at the top of a module"
            ) from error
    return file.getvalue()


def _homes(
    grants: Iterable[tuple[str, Any, Any]], names: Mapping[str, Any], classes: Iterable[type]
) -> set[str]:
    """Name the modules of classes that a worker could not import."""
    found = [target for _, target, _ in grants if isinstance(target, type)]
    found += [value for value in names.values() if isinstance(value, type)]
    return {cls.__module__ for cls in (*found, *classes) if _travels(cls.__module__)}


def _travels(module: str) -> bool:
    """Tell whether a class of a module is sent as a whole, because a worker would not find the module."""
    if module in sys.stdlib_module_names or module not in sys.modules or module == "__main__":
        return False  # cloudpickle takes what is in __main__ apart by itself
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return True
    return (
        spec is None or spec.origin != getattr(sys.modules[module], "__file__", None) or not _on_path(module)
    )


def _on_path(module: str) -> bool:
    """Tell whether a module is found by its name, and not only because it is loaded already."""
    from importlib.machinery import PathFinder

    root = module.partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None)
    found = PathFinder.find_spec(root)
    return found is not None and (file is None or found.origin == file)


@contextlib.contextmanager
def _taken_apart(modules: Iterable[str]) -> Iterator[None]:
    with _by_value:
        noted = [sys.modules[name] for name in modules]
        for module in noted:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in noted:
                cloudpickle.unregister_pickle_by_value(module)


def load_policy(data: bytes, stub: Callable[[str], Any]) -> tuple[Policy, tuple[type, ...]]:
    """Make the policy again, in a worker.

    Args:
        data: what `save_policy` gave, in the host that started this worker.
        stub: gives what stands for a function or object that stayed in the host.
    """
    strict, grants, names, classes = cloudpickle.loads(data)
    policy = Policy(strict=strict)
    for kind, target, settings in grants:
        if kind == "default":
            policy = _with_defaults(policy)
        elif kind == "paths":
            policy.use_paths()
        elif kind == _STAYS:
            policy.names[target] = stub(target)
        elif kind == "import":
            policy.module(importlib.import_module(target), **settings)
        elif kind == "cls":
            policy.cls(target, **settings)
        else:
            raise DefinitionError(f"a worker knows no grant of kind {kind}")
    policy.names.update(names)
    policy.cls(LiveStub)  # what may be written to an object of the host is decided there
    del policy.names[LiveStub.__name__]
    return policy, classes


def _with_defaults(policy: Policy) -> Policy:
    fresh = Policy.default(strict=policy.strict)
    fresh.names.update(policy.names)
    return fresh
