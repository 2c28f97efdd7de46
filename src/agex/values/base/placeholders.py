"""Placeholders for objects that could not be kept."""

from __future__ import annotations

from typing import Any, NoReturn

from agex.errors import UnpicklableVariableError

__all__ = ["MODULE", "SEALED", "NotKept", "make_not_kept", "not_kept_error", "stand_in", "take_not_kept"]


MODULE = "module"
"""The type noted for a module that cannot be imported again."""
SEALED = "it is kept for the code that made it, and can be loaded by that alone"
"""The reason noted for an object in a seal, see `SealingCode`."""


def not_kept_error(lost: NotKept, name: str | None = None) -> UnpicklableVariableError:
    """Return the error for the use of an object that was not kept.

    Args:
        lost: its placeholder.
        name: the variable, where the caller knows it; else the path noted when it was lost.
    """
    path, type_, reason = object.__getattribute__(lost, "noted")
    variable = name or path
    if type_ == MODULE:
        return UnpicklableVariableError(
            f"{variable!r} was imported in an earlier task and cannot be imported now: {reason}"
        )
    about = (
        f"Variable '{variable}' ({type_}) is not available."
        if variable.isidentifier()
        else f"The part {variable or 'of a variable'} ({type_}) is not available."
    )
    if reason == SEALED:
        return UnpicklableVariableError(f"{about} {SEALED[0].upper()}{SEALED[1:]}.")
    return UnpicklableVariableError(
        f"{about}\nIt was not persisted from a previous execution because it is unpicklable: {reason}.\n\n"
        "Solutions:\n"
        f"  1. Recreate it: {_target(variable)} = ...\n"
        "  2. Chain operations: use the object in the expression that makes it, and keep the result\n"
        "  3. Use this variable only within a single turn"
    )


def _target(path: str) -> str:
    return path or "x"


def stand_in(lost: NotKept) -> Any:
    """Return an empty object whose class has the name of the lost object's type, for display."""
    _, type_, _ = object.__getattribute__(lost, "noted")
    return type(type_.rpartition(".")[2], (), {})()


class NotKept:
    """Placeholder in a container, or for a variable, of an object that could not be kept.

    The container around it works, its ``repr`` included; any use of the placeholder itself raises
    `UnpicklableVariableError`. It can be asked for its class, compared by ``is`` and copied, as itself.
    """

    __slots__ = ("noted",)

    def __init__(self, path: str, type_: str, reason: str) -> None:
        object.__setattr__(self, "noted", (path, type_, reason))

    def __repr__(self) -> str:
        path, type_, _ = object.__getattribute__(self, "noted")
        return f"<{type_} not kept>" if not path else f"<{path}: {type_} not kept>"

    def __getattribute__(self, name: str) -> Any:
        if name in {"__class__", "__repr__", "__copy__", "__deepcopy__"}:
            return object.__getattribute__(self, name)
        raise not_kept_error(self)

    def __hash__(self) -> int:
        return id(self)  # it may stand in a set or be a key

    def __copy__(self) -> NotKept:
        return self

    def __deepcopy__(self, _memo: Any) -> NotKept:
        return self  # what is around it can be copied

    def __dir__(self) -> list[str]:
        return []


def _refuse(self: NotKept, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise not_kept_error(self)


_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split()
_USES = [
    *"call setattr delattr str format bytes bool len iter next reversed contains".split(),
    *"getitem setitem delitem".split(),
    *"enter exit aenter aexit aiter anext await int float complex index round trunc floor ceil".split(),
    *"neg pos abs invert eq ne lt le gt ge get instancecheck fspath length_hint missing".split(),
    *"buffer mro_entries".split(),
    *_BINARY,
    *(f"r{name}" for name in _BINARY),
    *(f"i{name}" for name in _BINARY if name != "divmod"),
]
for _use in _USES:
    if _use != "get":  # as a class attribute it must not turn into a descriptor
        setattr(NotKept, f"__{_use}__", _refuse)


def make_not_kept(path: str, type_: str, reason: str) -> NotKept:
    """Make the placeholder of an object that could not be kept; the decoder calls it."""
    if not (type(path) is type(type_) is type(reason) is str):
        raise TypeError("a placeholder consists of three texts")
    return NotKept(path, type_, reason)


def take_not_kept(encoder: Any, value: NotKept) -> Any:
    """Keep a marker as it is."""
    encoder.note_session()
    return make_not_kept, object.__getattribute__(value, "noted")
