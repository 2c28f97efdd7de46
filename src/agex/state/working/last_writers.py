"""Who bound a variable last: how two parties that share objects notice a lost update."""

from __future__ import annotations

__all__ = ["Writes"]


class Writes:
    """The last write of each name, in order. A party is any object; None is the host."""

    def __init__(self) -> None:
        self.count = 0
        """Writes so far: a party that begins now has seen all of them."""
        self._last: dict[str, tuple[int, object]] = {}

    def note(self, name: str, party: object) -> None:
        """Take note that a party bound or deleted a name."""
        self.count += 1
        self._last[name] = self.count, party

    def is_lost(self, name: str, party: object, since: int) -> bool:
        """Return whether *party*, which began at *since*, would overwrite what it has not seen."""
        number, last = self._last.get(name, (0, party))
        return number > since and last is not party

    def is_by(self, name: str, party: object) -> bool:
        """Return whether a party wrote a name last."""
        return name in self._last and self._last[name][1] is party
