"""Entries of a commit that are no variables: what a run needs to go on, and its calls to the world.

They are under keys of their own. A commit of entries alone changes no variable and no file.
"""

from __future__ import annotations

from typing import Any

from agex import values
from agex.errors import StateCorrupt
from agex.state.commits.journal import Journal
from agex.state.working.stored_variables import Codec

__all__ = ["Entries"]

_PREFIX = "r/"
_NAME = "entry"


class Entries:
    """The entries on top of a commit: those that it has, and those that wait for the next one.

    Args:
        journal: where they are stored.
        codec: how.
    """

    def __init__(self, journal: Journal, codec: Codec) -> None:
        self._journal = journal
        self._codec = codec
        self.payloads: dict[str, bytes | None] = {}
        """The payloads that the next commit writes, by the key of the store."""
        self.chunks: dict[bytes, memoryview] = {}
        self._prints: dict[str, values.Fingerprint] = {}

    def put(self, key: str, value: Any) -> tuple[values.Lost, ...]:
        """Let the next commit hold an entry; return the parts that it cannot keep.

        One that is as it was put the last time is not written again.
        """
        (group,) = values.encode({_NAME: value}, allow=self._codec.allow, guest=self._codec.guest)
        now = values.fingerprint(group)
        if self._prints.get(key) != now:
            cut = values.cut(group, self._journal.address)
            self.payloads[_PREFIX + key] = cut.payload
            self.chunks.update(cut.chunks)
            self._prints[key] = now
        return group.lost.get(_NAME, ())

    def remove(self, key: str) -> None:
        """Let the next commit be without an entry that there is."""
        self._prints.pop(key, None)
        self.payloads[_PREFIX + key] = None

    def written(self) -> None:
        """Take note that a commit holds what waited."""
        self.payloads, self.chunks = {}, {}

    def drop(self) -> None:
        """Forget what waited."""
        for key in self.payloads:
            self._prints.pop(key.removeprefix(_PREFIX), None)
        self.written()

    def read(self, commit: str | None, key: str) -> Any:
        """Return an entry of a commit; None where there is none.

        Raises:
            StateCorrupt: its bytes are damaged, or ask for what is not on the list.
        """
        payload = None if commit is None else self._journal.read(commit, _PREFIX + key)
        if payload is None:
            return None
        recipe = values.read_recipe(payload)
        if recipe.names != (_NAME,):
            raise StateCorrupt(f"The entry {key!r} is of no known kind")
        group = values.put_together(recipe, self._journal.chunk)
        return values.decode(group, allow=self._codec.allow, guest=self._codec.guest)[_NAME]

    def keys(self, commit: str | None, prefix: str = "") -> list[str]:
        """Return the keys of a commit's entries that begin so, sorted."""
        found = [] if commit is None else self._journal.keys(commit, _PREFIX + prefix)
        return [key.removeprefix(_PREFIX) for key in found]
