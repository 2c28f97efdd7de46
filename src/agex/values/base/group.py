"""Variables as bytes: the unit that is encoded, fingerprinted, stored and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BLOCK", "Group", "Lost"]

BLOCK = 256 * 1024
"""Bytes of a chunk, and of the memory under one digest of a fingerprint. The knee between the size of a
recipe (400 addresses for 100 MB) and the bytes that one changed cell writes."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A part of a variable that cannot be kept; the rest of the variable is kept."""

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
    """Large memory that the stream refers to. After `encode` it belongs to the live objects: a caller that
    keeps it copies it before guest code runs again."""
    lost: Mapping[str, tuple[Lost, ...]] = field(default_factory=dict)
    """The lost parts, by variable; empty for a group that was read."""
    has_code: bool = False
    """Whether functions or guest classes are in it, which read their captured values anew (see
    `frozen`). Of a group that was read, it is known only where it has an origin."""
    is_of_session: bool = False
    """Whether it holds names of host objects, or markers of lost ones: another session may resolve them
    differently. After `encode` only."""
    origin: str = ""
    """The level of isolation that the bytes come from; empty for this process. Functions and classes in
    bytes from elsewhere are made again only where code of that level may run, see `decode`."""

    @property
    def size(self) -> int:
        """Bytes of the stream and all buffers."""
        return len(self.stream) + sum(part.nbytes for part in self.buffers)
