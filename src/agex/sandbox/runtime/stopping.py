"""Stop checks of code that is not the guest's: where it may have swallowed what ends a run."""

from __future__ import annotations

from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.runtime.limits import Stop

__all__ = ["check_stop"]


def check_stop() -> None:
    """Raise `Stop` if the run that is on here is to end."""
    guards = CURRENT.get()
    if guards is not None and guards.builtins["stop!"]:
        raise Stop
