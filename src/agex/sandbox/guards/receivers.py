"""What stands for the ``self`` of a guest's method that was given an object of the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["Asked", "Door"]


class Asked:
    """Asks the guards of a session each time that something is asked of an object, and hands it on.

    It is the receiver of attributes in rewritten code, never a value there. One that is made for an augmented
    assignment to *name* asks first of all whether that may be set.
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
                # The interpreter would say that it was this object that lacks it, and show it to the guest.
                error.name, error.obj = name, receiver
            raise

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_GUARDS(self).check_store(_RECEIVER(self), name), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_GUARDS(self).check_delete(_RECEIVER(self), name), name)


_SET = object.__setattr__
_GUARDS = Asked.__dict__["_guards"].__get__
_RECEIVER = Asked.__dict__["_receiver"].__get__


class Door:
    """Answers the one attribute it is asked for with a guarded value."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", value)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "_value")
