"""``warnings`` for guest code: filters and shown warnings are kept with the session.

The filters of the process belong to the host. The guest's filters apply to warnings of its own code: they can
drop one, and pass all others on to the host's filters. Members that depend on the warnings of libraries are
left out, because these would have to pass the guest's filters as well.
"""

from __future__ import annotations

import itertools
import operator
import re
import warnings
from typing import Any, NoReturn

from agex.errors import SandboxError
from agex.sandbox.runtime.context import asking, frames_of

__all__ = ["WARNINGS"]

_ACTIONS = ("default", "error", "ignore", "always", "module", "once")


def warn(
    message: Any,
    category: Any = None,
    stacklevel: Any = 1,
    source: Any = None,
    *,
    skip_file_prefixes: Any = (),
) -> None:
    """Do what ``warnings.warn`` does, about a line of guest code."""
    if isinstance(message, Warning):
        category = type(message)
    elif category is None:
        category = UserWarning
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise TypeError(f"category must be a Warning subclass, not '{type(category).__name__}'")
    level, guards = operator.index(stacklevel), asking()
    frames = list(itertools.islice(frames_of(guards), max(level, 1))) if guards else []
    if guards is None or not frames:
        return
    frame = frames[-1]  # the guest frame so many calls up, or the outermost one
    action = _action(guards, message, category, frame.f_lineno)
    if action == "ignore":
        return
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        guards.classes.module_name,
        {} if action == "always" else guards.notes.setdefault("warned", {}),  # once per line
        source=source,
    )


def _action(guards: Any, message: Any, category: type, line: int) -> str | None:
    for action, said, kind, module, at in guards.notes.get("filters", ()):
        if (
            (said is None or said.match(str(message)))
            and issubclass(category, kind)
            and (module is None or module.match(guards.classes.module_name))
            and at in (0, line)
        ):
            return str(action)
    return None


def filterwarnings(  # noqa: PLR0917 - as in the standard library
    action: str,
    message: Any = "",
    category: type[Warning] = Warning,
    module: Any = "",
    lineno: int = 0,
    append: bool = False,
) -> None:
    """Do what ``warnings.filterwarnings`` does, for warnings of this code."""
    if not (isinstance(message, str) and isinstance(module, str)):
        raise TypeError("message and module must be strings")
    said = re.compile(message, re.IGNORECASE) if message else None
    _add(action, said, category, re.compile(module) if module else None, lineno, append=append)


def simplefilter(
    action: str, category: type[Warning] = Warning, lineno: int = 0, append: bool = False
) -> None:
    """Do what ``warnings.simplefilter`` does, for warnings of this code."""
    _add(action, None, category, None, lineno, append=append)


def _add(action: Any, said: Any, category: Any, module: Any, line: Any, *, append: bool) -> None:
    if type(action) is not str or action not in _ACTIONS:
        raise ValueError(f"invalid action: {action!r}")
    if action == "error":
        raise SandboxError("warnings cannot be made errors here; test the values that they are about")
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise TypeError("category must be a Warning subclass")
    if type(line) is not int or line < 0:
        raise ValueError("lineno must be an int >= 0")
    filters = _filters()
    added = action, said, category, module, line
    if append:
        filters.append(added)
    else:
        filters.insert(0, added)


def resetwarnings() -> None:
    """Remove the filters of this session."""
    _filters().clear()


def _filters() -> list[tuple[Any, ...]]:
    """Return the filters of the session: action, message, category, module, line. The first match counts."""
    guards = asking()
    return [] if guards is None else guards.notes.setdefault("filters", [])


class catch_warnings:  # noqa: N801 - its name in warnings
    """``warnings.catch_warnings``, over the filters of the session."""

    def __init__(
        self,
        *,
        record: bool = False,
        module: None = None,
        action: str | None = None,
        category: type[Warning] = Warning,
        lineno: int = 0,
        append: bool = False,
    ) -> None:
        if record or module is not None:
            _refuse_record()
        self._first = (action, category, lineno, append)
        self._kept: list[tuple[Any, ...]] | None = None

    def __enter__(self) -> None:
        if self._kept is not None:
            raise RuntimeError(f"Cannot enter {self!r} twice")
        self._kept = list(_filters())
        action, category, lineno, append = self._first
        if action is not None:
            simplefilter(action, category, lineno, append)

    def __exit__(self, *error: object) -> None:
        if self._kept is None:
            raise RuntimeError(f"Cannot exit {self!r} without entering first")
        _filters()[:] = self._kept

    def __repr__(self) -> str:
        return "catch_warnings()"


def _refuse_record() -> NoReturn:
    raise SandboxError(
        "what libraries warn of goes to the host and cannot be recorded here; look at what they return"
    )


WARNINGS = {
    "catch_warnings": catch_warnings,
    "filterwarnings": filterwarnings,
    "resetwarnings": resetwarnings,
    "simplefilter": simplefilter,
    "warn": warn,
}
