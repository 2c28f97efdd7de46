"""Objects that attributes are read from in place of a receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["CheckedReceiver", "Door"]


class CheckedReceiver:
    """Asks the guards at each access to an attribute of a host object.

    It stands for ``self`` in a guest method that was given a host object. It is the receiver of attributes in
    transformed code, never a value there. For an augmented assignment to *name* it first checks that this
    may be set.
    """

    __slots__ = ("_guards", "_receiver")

    def __init__(self, guards: Guards, receiver: object, name: str = "") -> None:
        if name:
            guards.check_store(receiver, name)
        _SET(self, "_guards", guards)
        _SET(self, "_receiver", receiver)

    def __getattribute__(self, name: str) -> Any:
        receiver, guards = _RECEIVER(self), _GUARDS(self)
        try:
            return getattr(
                guards.check(receiver, name) if guards.policy.text.asks_for(name) else receiver, name
            )
        except AttributeError as error:
            if error.name is None and error.obj is None:
                # The interpreter would name this object in the error, and show it to guest code.
                error.name, error.obj = name, receiver
            raise

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_GUARDS(self).check_store(_RECEIVER(self), name), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_GUARDS(self).check_delete(_RECEIVER(self), name), name)


_SET = object.__setattr__
_GUARDS = CheckedReceiver.__dict__["_guards"].__get__
_RECEIVER = CheckedReceiver.__dict__["_receiver"].__get__


class Door:
    """Answers the one attribute it is asked for with a guarded value."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", value)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "_value")
