"""Keywords that a function does not take, refused with the one that was meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

from agex.errors import KeywordError

__all__ = ["checks_keywords", "require_known"]

C = TypeVar("C", bound=type)


def require_known(given: Iterable[str], known: Collection[str], owner: str) -> None:
    """Refuse keywords that *owner* does not take.

    Raises:
        KeywordError: it names the one that was meant.
    """
    for name in given:
        if name in known:
            continue
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        meant = f"did you mean {close[0]}=?" if close else f"it takes {', '.join(sorted(known))}."
        raise KeywordError(f"{owner} takes no {name}=; {meant}")


def checks_keywords(cls: C) -> C:
    """Let a class say which keyword was meant, where its constructor takes no such one."""
    plain: Any = cls.__init__  # type: ignore[misc]  # of this class, not of one that derives from it
    known = [name for name in inspect.signature(plain).parameters if name != "self"]

    @functools.wraps(plain)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> None:
        require_known(kwargs, known, f"{cls.__name__}()")
        plain(self, *args, **kwargs)

    setattr(cls, "__init__", checked)  # noqa: B010 - an assignment is an error to type checkers
    return cls
