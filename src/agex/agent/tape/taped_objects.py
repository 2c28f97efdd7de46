"""Registered things under a tape: each use of one goes by way of the tape, wherever the code runs.

Functions become functions of the same signature. Live objects, and the instances of classes, become stand-ins
whose every use is asked for, as those in a worker are. Data (dataclasses, models, enums) stay data. Tasks are
runs of their own, and modules run where the code runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from agex.agent.durable.external_functions import like
from agex.agent.registration import Registration
from agex.contract import is_record
from agex.errors import TapeError
from agex.sandbox.policy import catalog

__all__ = ["Asks", "parameters_of", "require_tapeable", "staying", "taped"]


class Asks(Protocol):
    """A run under a tape, as the stand-ins see it."""

    def call_function(self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any: ...

    async def acall_function(
        self, one: Registration, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any: ...


def staying(registrations: Iterable[Registration]) -> list[Registration]:
    """Return the registrations of which code gets stand-ins: live objects, and classes that are no data."""
    return [one for one in registrations if one.kind == "object" or (one.kind == "class" and _stays(one))]


def _stays(one: Registration) -> bool:
    if one.stays:
        return True
    target = one.target
    is_data = is_record(target) or issubclass(target, BaseException)
    return not is_data and catalog.find(str(target.__module__).partition(".")[0]) is None


def require_tapeable(registrations: Iterable[Registration], commands: Iterable[str]) -> None:
    """Refuse what acts on the world past the tape.

    Raises:
        TapeError: a module has permissions: its functions run where the code runs, perhaps in a worker. Or
            the terminal has commands of the host, which change files.
    """
    for name in commands:
        raise TapeError(
            f"The terminal has the command {name!r} of the host, and commands are not kept on a tape: "
            "register a function instead."
        )
    for one in registrations:
        if one.kind == "module" and one.permissions:
            raise TapeError(
                f"The module {one.name} is registered with permissions ({', '.join(one.permissions)}), and "
                "its functions run beside the tape: register the functions that the code needs instead."
            )


def taped(
    registrations: Iterable[Registration], stand_ins: Mapping[str, Any], run: Asks
) -> tuple[Registration, ...]:
    """Return the registrations whose targets are on the tape.

    Args:
        registrations: of the agent.
        stand_ins: of those that stay in the host, by name.
        run: is asked.
    """
    return tuple(_taped(one, stand_ins, run) for one in registrations)


def _taped(one: Registration, stand_ins: Mapping[str, Any], run: Asks) -> Registration:
    if one.name in stand_ins and one.kind in ("object", "class"):
        target = stand_ins[one.name]
        is_class = one.kind == "class"
        return replace(  # calls that act on the world are journalled where the tape has them made
            one,
            target=target,
            include="*",
            exclude="_*",
            configure={},
            stays=is_class or one.stays,
            external=False,
            approval=False,
        )
    if one.kind == "function":
        return replace(one, target=_afunction(one, run) if one.is_async else _function(one, run))
    return one


def _function(one: Registration, run: Asks) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        return run.call_function(one, args, kwargs)

    return like(one, called)


def _afunction(one: Registration, run: Asks) -> Callable[..., Any]:
    async def called(*args: Any, **kwargs: Any) -> Any:
        return await run.acall_function(one, args, kwargs)

    return like(one, called)


def parameters_of(function: Any) -> inspect.Signature | None:
    """Return the signature of a function; None for a builtin that has none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
