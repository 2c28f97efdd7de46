"""Figures of ``pyplot``: guest code closes its own, and no others of the process."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxError
from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime.context import asking

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["close", "note_figures"]

# By their managers, which are matplotlib's own: a guest subclass of Figure may define __eq__.
_MADE: weakref.WeakKeyDictionary[Any, weakref.ref[Membrane]] = weakref.WeakKeyDictionary()


def note_figures() -> None:
    """Record the session that makes a figure."""
    replace(import_module("matplotlib.pyplot"), "new_figure_manager", _noting)


def _noting(real: Any) -> Any:
    def new_figure_manager(*args: Any, **kwargs: Any) -> Any:
        manager, guards = real(*args, **kwargs), asking()
        if guards is not None:
            _MADE[manager] = weakref.ref(guards)
        return manager

    return new_figure_manager


def close(real: Callable[..., Any], fig: Any = None) -> None:
    """Close a figure, one of its number, or for ``"all"`` those that guest code made; host figures stay."""
    figures: Any = import_module("matplotlib.figure")

    if fig is None or isinstance(fig, figures.Figure):
        real(fig)
        return
    is_own = _numbers()
    if type(fig) is str and fig == "all":
        for number in [each for each, is_guests in is_own.items() if is_guests]:
            real(number)
    elif type(fig) is not int or not is_own.get(fig, True):
        raise SandboxError("close a figure of your own: plt.close(fig)")
    elif fig in is_own:
        real(fig)


def _numbers() -> dict[int, bool]:
    """Return the numbers of all figures, and whether the calling session made each."""
    helpers: Any = import_module("matplotlib._pylab_helpers")

    guards = asking()
    managers: list[Any] = helpers.Gcf.get_all_fig_managers()
    return {int(each.num): each in _MADE and _MADE[each]() is guards for each in managers}
