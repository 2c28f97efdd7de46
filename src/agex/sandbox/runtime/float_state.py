"""What happens at a division by zero, and how arrays are shown, is the host's setting after a run, too.

``np.errstate`` and ``np.printoptions`` limit a change to a block. A block that is entered and not left (by an
``ExitStack``, in a generator) would change it for the host, down to a function of the guest's that numpy
calls.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["give_back", "give_decimals_back", "in_force", "take_decimals"]

_AT_FIRST: dict[str, dict[str, str]] = {
    "numpy": {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"},
    "scipy.special": {"all": "ignore", "memory": "raise"},
}
"""Modules with such a setting, and what it is when they are imported: numpy, and what imports it."""


def take_decimals(guests: Any) -> Any:
    """Set the guest's own decimal context, which it has from run to run; return the host's, if any."""
    decimal = sys.modules.get("decimal")
    if decimal is None:
        return None  # what the guest imports now has a context of its own
    host = decimal.getcontext()
    decimal.setcontext(host.copy() if guests is None else guests)
    return host


def give_decimals_back(host: Any) -> Any:
    """Set the host's decimal context again; return the guest's, None where there is no such module."""
    decimal = sys.modules.get("decimal")
    if decimal is None:
        return None
    guests = decimal.getcontext()
    decimal.setcontext(decimal.Context() if host is None else host)
    return guests


def in_force() -> dict[str, Any]:
    """Give the settings as they are, of the modules that are there."""
    if "numpy" not in sys.modules:
        return {}
    found = {name: _settings(module) for name in _AT_FIRST if (module := sys.modules.get(name))}
    if _PRINTING in sys.modules:
        found[_PRINTING] = _shown()
    return found


def give_back(before: dict[str, Any]) -> None:
    """Have the settings be as they were, in modules that were not there yet as they are at first."""
    if "numpy" not in sys.modules:
        return
    for name, at_first in _AT_FIRST.items():
        if module := sys.modules.get(name):
            _restore(module, before.get(name, (at_first, None)))
    if _PRINTING in sys.modules:
        _show(before.get(_PRINTING))


def _settings(module: Any) -> tuple[dict[str, str], Any]:
    if not hasattr(module, "geterr"):  # it is being imported
        return _AT_FIRST[module.__name__], None
    return module.geterr(), module.geterrcall() if hasattr(module, "geterrcall") else None


def _restore(module: Any, before: tuple[dict[str, str], Any]) -> None:
    if hasattr(module, "geterr") and _settings(module) != before:
        module.seterr(**before[0])
        if hasattr(module, "seterrcall"):
            module.seterrcall(before[1])


def _shown() -> Any:
    """Give the settings by which arrays are shown; None before numpy is there."""
    printing: Any = sys.modules.get(_PRINTING)
    return printing.format_options.get() if hasattr(printing, "format_options") else None


def _show(before: Any) -> None:
    printing: Any = sys.modules.get(_PRINTING)
    if hasattr(printing, "format_options"):
        options = printing.default_format_options_dict if before is None else before
        # By identity: in what a guest set are functions and objects of its own.
        if printing.format_options.get() is not options:
            printing.format_options.set(options)


_PRINTING = "numpy._core.printoptions"  # since numpy 2.1
