"""What stands for a descriptor in the view of a class: it is shown, and gives nothing."""

from __future__ import annotations

from typing import NoReturn

from agex.errors import SandboxAttributeError

__all__ = ["Inert"]


class Inert:  # noqa: D101 - each has the docstring of the descriptor for which it stands in the view of a class
    __slots__ = ("__doc__", "_text")

    def __init__(self, shown: object, doc: str | None) -> None:
        self.__doc__, self._text = doc, repr(shown)

    def __repr__(self) -> str:
        return self._text

    def __get__(self, instance: object, owner: object = None) -> NoReturn:
        raise SandboxAttributeError(
            f"{self._text} is not available on other classes; define a property of your own"
        )
