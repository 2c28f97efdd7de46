"""What variables look like as bytes: the unit that is encoded, fingerprinted, stored and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BLOCK", "Group", "Lost"]

BLOCK = 256 * 1024
"""Bytes of a chunk, and of what one digest of a fingerprint covers. The knee between the size of a
recipe (400 addresses for 100 MB) and of what one changed cell writes."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A part of a variable that cannot be kept; the rest of the variable is."""

    path: str
    """Where it is, as an expression: ``rows[3]['lock']``. The variable's name alone: all of it."""
    type: str
    """The name of its type."""
    reason: str
    """Why, in a few words."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Variables that share mutable objects, as one value: they are stored and loaded together."""

    names: tuple[str, ...]
    """The variables, sorted."""
    stream: bytes
    """A pickle of their values, of the few opcodes that the decoder takes."""
    buffers: tuple[memoryview, ...] = ()
    """Large memory that the stream refers to. After `encode` it is the live objects' own: whoever keeps it
    copies it before the guest runs again."""
    lost: Mapping[str, tuple[Lost, ...]] = field(default_factory=dict)
    """What of each variable is not kept; empty for a group that was read."""
    has_code: bool = False
    """Whether functions or guest classes are in it, which read their captured values anew (see
    `frozen`). Of a group that was read, it is known only where it has an origin."""
    is_of_session: bool = False
    """Whether host objects are in it by their names, or markers of what could not be made: another
    session may make others of them. After `encode` only."""
    origin: str = ""
    """The level of isolation that the bytes come from; empty for this process. Functions and classes in
    bytes from elsewhere are made again only where code of that level may run, see `decode`."""

    @property
    def size(self) -> int:
        """Bytes of the stream and all buffers."""
        return len(self.stream) + sum(part.nbytes for part in self.buffers)
