"""The base class of objects that show themselves as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agex.display.page import Page

__all__ = ["Shown"]


class Shown:
    """Shows itself in notebooks, and as text where it is printed. A subclass defines its page."""

    __slots__ = ()

    def page(self) -> Page:
        """Return the object as a page, for `agex.display.to_html` and `to_text`."""
        raise NotImplementedError

    def __str__(self) -> str:
        from agex.display.terminal import to_text

        return to_text(self.page())

    def _repr_html_(self) -> str:
        from agex.display.document import to_html

        return to_html(self.page())
