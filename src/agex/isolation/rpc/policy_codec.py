"""Codec of a policy from the host to its workers: its grants, to be repeated there.

Classes and patterns go by cloudpickle, which only ever travels in this direction. Functions and
live objects stay in the host; the worker gets their descriptions.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from typing_extensions import is_typeddict

from agex.errors import DefinitionError
from agex.isolation.rpc.class_pickler import by_value
from agex.isolation.rpc.host_proxies import LiveStub
from agex.isolation.rpc.module_sources import is_users
from agex.sandbox import Policy
from agex.sandbox.policy.policy import Grant

__all__ = ["SavedPolicy", "granted", "load_policy", "save_policy"]

_MADE = "made"
"""The kind of a grant whose module was made in the host: a worker has one with stubs of its functions."""
_STAYS = "stays"


def granted(policy: Policy) -> dict[str, Any]:
    """Return the objects of a policy that stay in the host, by name."""
    found: dict[str, Any] = {}
    for grant in policy.grants:
        name = grant.settings.get("name") or getattr(grant.target, "__name__", None)
        if isinstance(name, str) and _stays(grant):
            found[name] = policy.names[name]
        elif _is_made_here(grant.target):
            functions = _functions_of(policy, str(name))
            found.update({f"{name}.{member}": function for member, function in functions.items()})
    return found


def _stays(grant: Grant) -> bool:
    if grant.kind == "cls":
        return grant.settings.get("stays") is True
    return grant.kind in ("fn", "clock") or (
        grant.kind == "module" and not isinstance(grant.target, types.ModuleType)
    )


def _is_made_here(target: Any) -> bool:
    """Return whether a value is a module that was made in this process, as that of an MCP server's tools is.

    No worker can import it, so its functions stay in the host.
    """
    if not isinstance(target, types.ModuleType) or target.__spec__ is not None:
        return False
    return sys.modules.get(target.__name__) is not target


def _functions_of(policy: Policy, name: str) -> dict[str, Any]:
    """Return the functions that guest code may use of a module."""
    members = vars(policy.modules[name].copy())
    return {member: value for member, value in members.items() if isinstance(value, types.FunctionType)}


def _about_made(policy: Policy, name: str, module: types.ModuleType) -> dict[str, Any]:
    """Return what a worker must know of a module that was made in the host.

    Raises:
        DefinitionError: it has members that can neither be copied nor called from there.
    """
    values, others = {}, []
    for member, value in vars(policy.modules[name].copy()).items():
        if type(value) in _PLAIN or is_typeddict(value):
            values[member] = value
        elif not isinstance(value, types.FunctionType | types.ModuleType) and not member.startswith("__"):
            others.append(member)
    if others:
        raise DefinitionError(
            f"module {name!r} was made in this process, so a worker gets its functions, plain values and "
            f"TypedDicts, and these are neither: {', '.join(others)}. Leave them out (exclude=), or register "
            "them themselves"
        )
    return {"doc": module.__doc__, "functions": [*_functions_of(policy, name)], "values": values}


_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def _made_module(name: str, about: Mapping[str, Any], stub: Callable[[str], Any]) -> types.ModuleType:
    """Make the module of a worker whose functions are called in the host."""
    module = types.ModuleType(name, about["doc"])
    vars(module).update(about["values"])
    for member in about["functions"]:
        function = stub(f"{name}.{member}")
        function.__module__ = name
        vars(module)[member] = function
    return module


@dataclass(frozen=True, kw_only=True)
class SavedPolicy:
    """A policy as bytes, and the modules that it takes to load them."""

    data: bytes
    modules: Sequence[str]
    """Loaded before a worker starts: those registered, and those that definitions name."""
    imports: Sequence[str]
    """Other modules that code of the definitions imports when it runs."""


def save_policy(policy: Policy, classes: Iterable[type]) -> SavedPolicy:
    """Return a policy, and the classes whose instances may cross, as bytes for a worker.

    Raises:
        DefinitionError: a class or pattern cannot be sent.
    """
    grants: list[tuple[str, Any, Mapping[str, Any]]] = []
    names = dict(policy.names)
    for grant in policy.grants:
        name = grant.settings.get("name") or getattr(grant.target, "__name__", None)
        names.pop(str(name), None)
        if grant.kind == "clock":
            grants.append(("clock", name, {}))
        elif _stays(grant):
            grants.append((_STAYS, name, {}))
        elif _is_made_here(grant.target):
            grants.append((_MADE, name, _about_made(policy, str(name), grant.target)))
        elif isinstance(grant.target, types.ModuleType):
            grants.append(("import", grant.target.__name__, grant.settings))
        else:
            grants.append((grant.kind, grant.target, grant.settings))
    modules = {target for kind, target, _ in grants if kind == "import"}
    try:
        pickled = by_value((policy.strict, grants, names, tuple(classes)), modules)
    except Exception as error:
        raise DefinitionError(
            f"what is registered cannot be sent to a worker: {type(error).__name__}: {error}; define its "
            "classes at the top of a module, and let their methods name no global that cannot be copied. "
            "Or register that module, too: a worker then imports it as a whole"
        ) from error
    modules |= {target.__module__ for kind, target, _ in grants if kind == "cls" and _is_there(target)}
    modules |= pickled.modules | {name for name in pickled.imports if name in sys.modules and is_users(name)}
    return SavedPolicy(data=pickled.data, modules=sorted(modules), imports=sorted(pickled.imports))


def _is_there(cls: type) -> bool:
    """Return whether a worker can import the module of a class."""
    return cls.__module__ in sys.modules and cls.__module__ != "__main__" and not is_users(cls.__module__)


def load_policy(data: bytes, stub: Callable[[str], Any]) -> tuple[Policy, tuple[type, ...]]:
    """Make the policy again, in a worker.

    Args:
        data: from `save_policy`, in the host that started this worker.
        stub: returns the proxy of a function or object that stayed in the host.
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
        elif kind == "clock":
            policy.use_clock(stub(target))
        elif kind == _MADE:
            policy.module(_made_module(target, settings, stub), name=target)
        elif kind == "import":
            policy.module(importlib.import_module(target), **settings)
        elif kind == "cls":
            policy.cls(target, **settings)
        else:
            raise DefinitionError(f"a worker knows no grant of kind {kind}")
    policy.names.update(names)
    policy.cls(LiveStub)  # the host decides which attributes may be written
    del policy.names[LiveStub.__name__]
    return policy, classes


def _with_defaults(policy: Policy) -> Policy:
    fresh = Policy.default(strict=policy.strict)
    fresh.names.update(policy.names)
    return fresh
