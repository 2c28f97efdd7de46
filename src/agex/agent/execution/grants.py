"""The sandbox policy of a task, made from what is registered and from what its annotations name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any, NewType, TypeVar

from annotated_types import BaseMetadata
from typing_extensions import is_typeddict

from agex.agent.call.host_errors import noting
from agex.agent.durable.external_functions import external
from agex.agent.durable.external_members import external_module, external_object, with_originals
from agex.agent.registration import TAKEN, Registration, acting_members
from agex.contract import TaskSignature, annotation_names, is_record, named_records

if TYPE_CHECKING:
    from agex.agent.tape.taped_run import TapedRun
    from agex.sandbox import Policy, Sandbox

__all__ = ["host_classes", "named_by", "policy_for", "policy_with", "taped_sandbox"]


def policy_for(registrations: Iterable[Registration], signature: TaskSignature) -> Policy:
    """Return the standard policy, plus what is registered, plus the names the signature says.

    Async functions and tasks are left out: they are bound for each call, see ``execution``.
    """
    return policy_with(registrations, named_by(signature))


def taped_sandbox(sandbox: Sandbox, run: TapedRun, signature: TaskSignature) -> Sandbox:
    """Return a sandbox with the same limits, in which all that comes from outside is on a tape."""
    from agex.isolation.rpc.host_proxies import LiveStub
    from agex.sandbox import Sandbox

    policy = policy_for(run.registrations, signature)
    policy.cls(LiveStub)  # the run decides which attributes may be written
    del policy.names[LiveStub.__name__]
    policy.use_clock(run.draw)
    return Sandbox(policy, limits=sandbox.limits)


def policy_with(registrations: Iterable[Registration], named: Mapping[str, tuple[Any, bool]]) -> Policy:
    """Like :func:`policy_for`, with what `named_by` gave for the signature."""
    from agex.sandbox import Policy

    policy = Policy.default()
    _grant_registered(policy, registrations)
    _grant_named(policy, named)
    return policy


def named_by(signature: TaskSignature) -> dict[str, tuple[Any, bool]]:
    """Return the objects that a task's annotations name, and whether the agent's code may make instances.

    The data that a record holds in its fields is named with it. Instances may be made of the data that is
    to be returned, and of enums. Of other classes that nothing else grants, the code has the instances it
    was given.
    """
    returned = {**_records(signature, "return"), **_written(signature, "return")}
    names = dict(returned)
    for parameter in signature.parameters:
        names = {**_records(signature, parameter), **names, **_written(signature, parameter)}
    return {
        name: (value, is_record(value) and (name in returned or issubclass(value, Enum | BaseMetadata)))
        for name, value in names.items()
    }


def _written(signature: TaskSignature, owner: str) -> dict[str, Any]:
    """Return the names that stand in an annotation itself."""
    return annotation_names(signature.checker(owner).annotation)


def _records(signature: TaskSignature, owner: str) -> dict[str, Any]:
    """Return the records that an annotation leads to, through the fields of others."""
    return named_records(signature.checker(owner).annotation, signature.scope)


def host_classes(registrations: Iterable[Registration], signature: TaskSignature) -> set[type]:
    """Return the classes whose instances a task may leave in a state: the registered, and data it names."""
    registrations = tuple(registrations)
    found = {one.target for one in registrations if one.kind == "class" and not one.stays}
    for parameter in ("return", *signature.parameters):
        named = (*_written(signature, parameter).values(), *_records(signature, parameter).values())
        found |= {each for each in named if isinstance(each, type) and is_record(each)}
    return found | {cls for one in registrations if one.kind == "module" for cls in _made_dicts(one.target)}


def _made_dicts(module: ModuleType) -> Iterator[type]:
    """Yield the TypedDicts of a module that was made in this process, as that of an MCP server's tools is."""
    if module.__spec__ is None:
        yield from (value for value in vars(module).values() if is_typeddict(value))


def _grant_registered(policy: Policy, registrations: Iterable[Registration]) -> None:
    registrations = tuple(registrations)
    has_stand_ins = any(one.kind == "object" and one.acts for one in registrations)
    for one in registrations:
        if one.kind == "class":
            policy.cls(one.target, name=one.name, **one.of_class())
        elif one.kind == "module" and one.acts:
            _grant_external(policy, one)
        elif one.kind == "object" and one.acts:
            _grant_external_object(policy, one)
        elif one.kind in ("module", "object"):
            policy.module(one.target, name=one.name, **one.of_module())
        elif one.kind == "function" and not one.is_async:
            target = with_originals(one.target) if has_stand_ins else one.target
            target = external(one) if one.external else target
            policy.fn(target, name=one.name, on_error=noting(one.name), **one.of_function())


def _grant_external(policy: Policy, one: Registration) -> None:
    """Grant a stand-in for a module whose functions act on the world: it does not lead to them."""
    from agex.sandbox import Policy

    settings = _unmarked(one)
    whole = Policy()
    whole.module(one.target, name=one.name, **settings)
    made = external_module(one, vars(whole.modules[one.name].copy()))
    policy.module(made, name=one.name, **_permissions(one))


def _grant_external_object(policy: Policy, one: Registration) -> None:
    """Grant a stand-in for a live object; of itself, where code comes to it, methods that act are denied."""
    settings = _unmarked(one)
    policy.module(one.target, name=one.name, **settings)
    class_ = type(one.target)
    made = external_object(one, lambda name: policy.denies(class_, name))
    policy.leave_out(class_, acting_members(one), by=f"{one.name}!")
    policy.module(made, name=one.name, **_permissions(one))


def _unmarked(one: Registration) -> dict[str, Any]:
    """Return the settings of a module without marks, which a policy does not know."""
    settings = one.of_module()
    configure = {name: spec._replace(external=None, approval=None) for name, spec in one.configure.items()}
    return {**settings, "configure": configure}


def _permissions(one: Registration) -> dict[str, Any]:
    return {"host_fs_access": one.host_fs_access, "network_access": one.network_access}


def _grant_named(policy: Policy, named: Mapping[str, tuple[Any, bool]]) -> None:
    """Grant what the annotations name, so that the agent's code can repeat them."""
    for name, (value, makes) in named.items():
        if name in TAKEN or name in policy.names:
            continue
        if isinstance(value, TypeVar | NewType) or policy.imports(name, value):
            policy.names[name] = value
        elif isinstance(value, type):
            policy.cls(value, name=name, constructable=makes)
