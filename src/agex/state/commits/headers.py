"""A commit as bytes. Its hash is the digest of its header, and the header names all the rest by digest."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from agex.errors import StateCorrupt, StateError
from agex.state.commits.digests import Digest
from agex.state.commits.journal import CommitInfo, Draft
from agex.state.commits.length_prefixed import pack, unpack

__all__ = ["Header"]

_VERSION = b"1"
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Header:
    """The content that the hash of a commit covers."""

    parents: tuple[str, ...]
    time: float
    message: str
    events: int
    """How many events it holds."""
    events_digest: bytes
    """Of its events, packed; empty without any."""
    content: bytes
    """The digest of what it changed or of all that it holds, as its journal has it."""

    @classmethod
    def of(cls, draft: Draft, *, content: bytes, digest: Digest) -> tuple[Header, bytes]:
        """Return the header of a draft, and its events in one piece.

        Raises:
            StateError: a parent is no hash of a commit.
        """
        for parent in draft.parents:
            if not _HASH.fullmatch(parent):
                raise StateError(f"There is no commit {parent[:12]!r} in this store.")
        events = pack(*draft.events)
        header = cls(
            parents=draft.parents,
            time=float(draft.time),
            message=draft.message,
            events=len(draft.events),
            events_digest=digest(events) if draft.events else b"",
            content=content,
        )
        return header, events

    def pack(self) -> bytes:
        """Return it as bytes; equal headers give equal bytes."""
        return pack(
            _VERSION,
            b"".join(map(bytes.fromhex, self.parents)),
            struct.pack(">d", self.time),
            self.message.encode("utf-8", "surrogatepass"),
            str(self.events).encode(),
            self.events_digest,
            self.content,
        )

    @classmethod
    def unpack(cls, packed: bytes) -> Header:
        """Return the header that was packed.

        Raises:
            StateCorrupt: it is not one of this version.
        """
        try:
            version, parents, time, message, events, events_digest, content = unpack(packed)
            if version != _VERSION:
                raise StateCorrupt("A commit of the store has a header of an unknown kind.")
            return cls(
                parents=tuple(parents[at : at + 32].hex() for at in range(0, len(parents), 32)),
                time=struct.unpack(">d", time)[0],
                message=message.decode("utf-8", "surrogatepass"),
                events=int(events),
                events_digest=events_digest,
                content=content,
            )
        except (ValueError, struct.error) as error:
            raise StateCorrupt("A commit of the store has a header that cannot be read.") from error

    def unpack_events(self, packed: bytes, digest: Digest) -> list[bytes]:
        """Return the events, checked against the header.

        Raises:
            StateCorrupt: they are not the ones that were committed.
        """
        if not self.events and not packed:
            return []
        if digest(packed) != self.events_digest:
            raise StateCorrupt("The events of a commit are not what was committed.")
        events = unpack(packed)
        if len(events) != self.events:
            raise StateCorrupt("The events of a commit are not all there.")
        return events

    def record(self, commit: str) -> CommitInfo:
        """Return it as the history lists it."""
        return CommitInfo(
            hash=commit, parents=self.parents, time=self.time, message=self.message, events=self.events
        )
