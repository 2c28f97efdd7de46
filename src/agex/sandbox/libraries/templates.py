"""Checks of library functions that fill in a text by ``str.format`` with their own objects.

The fields of such a text walk attributes by names that no guard sees. Where the library is registered
plainly, these functions take texts of guest code that read public attributes: ``"{task.description}"``.
Libraries with a policy have guards of their own.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.patches.replacement import is_stand_in, replace
from agex.sandbox.runtime.context import asking
from agex.sandbox.stdlib.string_format import reads_private, safe_format

__all__ = ["TEMPLATES", "hold_templates"]

TEMPLATES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "logging": (),
    "rich": (("rich.progress", "TextColumn", "__init__"),),
    "seaborn": (("seaborn.axisgrid", "FacetGrid", "set_titles"),),
    "tqdm": (("tqdm.std", "tqdm", "format_meter"),),
}
"""By package: module, class and method. All texts that these are given are checked.

Formatters of ``logging`` fill in what they were made with, and read it as guest code may.
"""


def hold_templates(package: str) -> None:
    """Check the texts that functions of a package are given, where these functions are loaded."""
    for home, owner, name in TEMPLATES.get(package, ()):
        class_: Any = getattr(sys.modules.get(home), owner, None)
        if class_ is None or is_stand_in(getattr(class_, name)):
            continue
        is_static = isinstance(vars(class_).get(name), staticmethod)
        replace(class_, name, partial(_looking, name))
        if is_static:
            setattr(class_, name, staticmethod(vars(class_)[name]))
    if package == "logging":
        replace(logging.StrFormatStyle, "_format", _filled)


def _looking(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if asking() is not None:
            for value in (*args, *kwargs.values()):
                if issubclass(type(value), str) and reads_private(value):
                    raise SandboxError(
                        f"{name} reads public attributes only: {value!r} names one that begins with '_'"
                    )
        return real(*args, **kwargs)

    return call


def _filled(real: Callable[..., Any]) -> Callable[..., str]:
    """Fill in records of ``logging`` as guest code may read them."""

    def fill(self: Any, record: Any) -> str:
        guards = asking()
        if guards is None:
            return str(real(self, record))
        defaults = getattr(self, "_defaults", None) or {}
        return safe_format(guards.getattr, self._fmt, **{**defaults, **record.__dict__})

    return fill
