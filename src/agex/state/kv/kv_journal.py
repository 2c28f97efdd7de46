"""Commits in any `KVStore`: everything under the digest of its content, and a cas'd key for each branch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agex.errors import StateConflict, StateCorrupt, StateError, StateFull
from agex.state.commits.digests import Digest, new_digest, open_digest
from agex.state.commits.draft_checks import Unsure, choose, named_chunks, no_tag
from agex.state.commits.headers import Header
from agex.state.commits.journal import Collected, CommitInfo, Draft, HeadMoved
from agex.state.commits.length_prefixed import pack, unpack
from agex.state.commits.lru import Recent
from agex.state.kv.keytree import EMPTY, KeyTree
from agex.state.kv.objects import Objects, chunk_key, commit_key, object_key
from agex.state.kv.pins import Pins
from agex.state.kv.store import KVStore, swap

__all__ = ["FORMAT", "KVJournal"]

FORMAT = 1
"""The number of the format. A store of a higher one is refused."""

_SETTINGS = "agex/format"
_BRANCH, _TAG = "agex/branch/", "agex/tag/"
_RECENT, _SMALL = 4 * 1024 * 1024, 64 * 1024
"""Bytes that are held in memory, and of one content. A commit reads the tree of keys of the one before."""
_NONE = b""  # where the head of a deleted branch was: a store need not be able to cas a key away


class KVJournal:
    """The journal of any store that has no better one.

    Raises:
        StateError: the store is of a newer format, or needs a package that is not installed.
    """

    def __init__(self, store: KVStore, recent: Recent | None = None) -> None:
        self._store = store
        self._digest = _settled(store)
        self._objects = Objects(store, self._digest, recent or Recent(_RECENT, largest=_SMALL))
        self._pins = Pins(store)
        self._promised: set[bytes] = set()  # chunks that this journal said are there: commits may rely on it
        self._unsure = Unsure()  # of moves whose answers were lost
        self._tree = KeyTree(self._objects.get_many, _refuse, self._digest)

    # --- writing --------------------------------------------------------------------------------

    def commit(self, draft: Draft, *, branch: str, expect: str | None) -> str:
        """Write a commit and move a branch to it; see `Journal`."""
        promised = named_chunks(draft) & self._promised - draft.chunks.keys()
        commit, header, objects = self._written(draft)
        new = {object_key(digest): content for digest, content in objects.items()}
        new |= {chunk_key(address): bytes(content) for address, content in draft.chunks.items()}
        new[commit_key(commit)] = header
        parents, chunks = [*map(commit_key, draft.parents)], [*map(chunk_key, promised)]
        held, look = [*new, *parents, *chunks], [_BRANCH + branch, *parents]
        with self._pins.hold(held, look=look, write=new) as found:
            raw = found.get(_BRANCH + branch)
            self._unsure.require_head(branch, self._head(branch, raw), expect)
            for parent, key in zip(draft.parents, parents, strict=True):
                if key not in found:
                    raise _unknown(parent)
            if not all(key in self._store for key in chunks):
                self._promised -= promised
                raise StateConflict(
                    "Garbage was collected while this commit was made, and took a chunk that it needs; "
                    "the branch was not moved. Commit again."
                )
            self._swing(branch, raw, commit, expect)
        self._objects.note(objects, commit, header)
        return commit

    def move(self, branch: str, to: str | None, *, expect: str | None) -> None:
        """Point a branch at a commit, or delete it; see `Journal`."""
        needed = [] if to is None else [commit_key(to)]
        with self._pins.hold(needed, look=[_BRANCH + branch, *needed]) as found:
            raw = found.get(_BRANCH + branch)
            self._unsure.require_head(branch, self._head(branch, raw), expect)
            if to is None and raw is None:
                return
            if not found.keys() >= set(needed):
                raise _unknown(to or "")
            self._swing(branch, raw, to, expect)

    def tag(self, name: str, commit: str) -> None:
        """Name a commit for good; see `Journal`."""
        key = _TAG + name
        with self._pins.hold([commit_key(commit)], look=[key, commit_key(commit)]) as found:
            if commit_key(commit) not in found:
                raise _unknown(commit)
            raw = found.get(key)
            free = self._unsealed(key, raw) is None
            if free and swap(self._store, key, self._sealed(key, commit), raw)[0]:
                return
        old = self.tags().get(name, "")
        if old != commit:
            raise StateError(f"The tag {name!r} is given to commit {old[:12]} already; choose another name.")

    def untag(self, name: str) -> None:
        """Take a tag away; see `Journal`."""
        key = _TAG + name
        raw = self._store.get(key)
        if raw is None or self._unsealed(key, raw) is None:
            raise no_tag(name)
        if not swap(self._store, key, self._sealed(key, None), raw)[0] and name in self.tags():
            raise StateError(f"The tag {name!r} was given anew meanwhile; look again.")

    def _written(self, draft: Draft) -> tuple[str, bytes, dict[bytes, bytes]]:
        """Return the hash of a draft, its header, and by their digests the objects that it adds."""
        new: dict[bytes, bytes] = {}

        def save(content: bytes) -> bytes:
            digest = self._digest(content)
            new[digest] = content
            return digest

        payloads = {
            key.encode(): None if payload is None else save(payload) for key, payload in draft.changes.items()
        }

        def load(digests: list[bytes]) -> dict[bytes, bytes]:
            fresh = {digest: new[digest] for digest in digests if digest in new}
            return fresh | self._objects.get_many(digest for digest in digests if digest not in fresh)

        base = self._header(draft.parents[0]).content if draft.parents else EMPTY
        root = KeyTree(load, save, self._digest).update(base, payloads)
        header, events = Header.of(draft, content=root, digest=self._digest)
        if draft.events:
            save(events)
        packed = header.pack()
        return self._digest(packed).hex(), packed, new

    def _swing(self, branch: str, raw: bytes | None, to: str | None, expect: str | None) -> None:
        """Move a branch from what its key held."""
        key = _BRANCH + branch
        try:
            swapped, answered = swap(self._store, key, self._sealed(key, to), raw)
            head = to if swapped else self._head(branch, self._store.get(key))
            # If not, an earlier try may have come through, and others may have built on it since.
            moved = head != to and (answered or not self._is_built_on(head, to, expect))
        except StateFull:
            raise
        except StateError as error:
            self._unsure.note(branch, expect, to)
            raise StateError(
                f"Whether branch {branch!r} was moved is not known, as the store was lost just then: commit "
                f"again. ({error})"
            ) from error
        self._unsure.settle(branch)
        if moved:
            raise HeadMoved(branch, head)

    def _is_built_on(self, head: str | None, commit: str | None, before: str | None) -> bool:
        """Return whether a commit is among those up to *head* that came after *before*."""
        while head is not None and head != before:
            if head == commit:
                return True
            parents = self._header(head).parents
            head = parents[0] if parents else None
        return False

    # --- reading --------------------------------------------------------------------------------

    def address(self, content: bytes | memoryview) -> bytes:
        """Return the address of a chunk; see `Journal`."""
        return self._digest.address(content)

    def missing(self, addresses: Collection[bytes]) -> set[bytes]:
        """Return those of the addresses that there is no chunk for; see `Journal`."""
        missing = self._objects.missing(addresses)
        self._promised.update(address for address in addresses if address not in missing)
        return missing

    def chunk(self, address: bytes) -> bytes:
        """Return a chunk; see `Journal`."""
        content = self._objects.chunk(address)
        self._promised.add(address)
        return content

    def read(self, commit: str, key: str) -> bytes | None:
        """Return what a key holds at a commit; see `Journal`."""
        digest = self._tree.get(self._header(commit).content, key.encode())
        return None if digest is None else self._objects.get(digest)

    def read_all(self, commit: str, prefix: str = "") -> dict[str, bytes]:
        """Return every key and what it holds; see `Journal`."""
        entries = self._entries(commit, prefix)
        payloads = self._objects.get_many(set(entries.values()))
        return {key: payloads[digest] for key, digest in entries.items()}

    def keys(self, commit: str, prefix: str = "") -> list[str]:
        """Return the keys at a commit; see `Journal`."""
        return list(self._entries(commit, prefix))

    def record(self, commit: str) -> CommitInfo:
        """Return a commit; see `Journal`."""
        return self._header(commit).record(commit)

    def history(self, commit: str) -> Iterator[CommitInfo]:
        """Yield a commit and those before it; see `Journal`."""
        following: str | None = commit
        while following is not None:
            record = self.record(following)
            yield record
            following = record.parents[0] if record.parents else None

    def changes(self, commit: str) -> dict[str, bytes | None]:
        """Return what a commit changed; see `Journal`."""
        parents = self._header(commit).parents
        found = self.diff(parents[0] if parents else None, commit)
        return {key: payload for key, (_, payload) in found.items()}

    def diff(self, old: str | None, new: str) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Return the keys that differ between two commits; see `Journal`."""
        before = EMPTY if old is None else self._header(old).content
        found = self._tree.differing(before, self._header(new).content)
        wanted = {digest for pair in found.values() for digest in pair if digest is not None}
        payloads = self._objects.get_many(wanted)
        return {
            key.decode(): (was and payloads[was], holds and payloads[holds])
            for key, (was, holds) in sorted(found.items())
        }

    def events(self, commit: str) -> list[bytes]:
        """Return the events of a commit; see `Journal`."""
        header = self._header(commit)
        packed = self._objects.get(header.events_digest) if header.events else b""
        return header.unpack_events(packed, self._digest)

    def _entries(self, commit: str, prefix: str) -> dict[str, bytes]:
        """Return the keys with a prefix, sorted, and the digests of what they hold."""
        entries = self._tree.entries(self._header(commit).content)
        return {
            key.decode(): digest for key, digest in sorted(entries.items()) if key.startswith(prefix.encode())
        }

    def _header(self, commit: str) -> Header:
        packed = self._objects.header(commit)
        if packed is None:
            raise _unknown(commit)
        return Header.unpack(packed)

    # --- names ----------------------------------------------------------------------------------

    def resolve(self, text: str) -> str:
        """Return the hash of a branch, a tag or the start of a hash; see `Journal`."""
        for prefix in (_BRANCH, _TAG):
            named = self._unsealed(prefix + text, self._store.get(prefix + text))
            if named is not None:
                return named
        start = commit_key(text.lower())
        # A whole hash need not be searched, and most are whole.
        found = [start] if start in self._store else list(self._store.keys(start))
        return choose(text, [key.rpartition("/")[2] for key in found])

    def branches(self) -> dict[str, str]:
        """Return the head of each branch; see `Journal`."""
        return self._names(_BRANCH)

    def head(self, branch: str) -> str | None:
        """Return the head of one branch; see `Journal`."""
        return self._head(branch, self._store.get(_BRANCH + branch))

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag; see `Journal`."""
        return self._names(_TAG)

    def _names(self, prefix: str) -> dict[str, str]:
        found = {key: self._unsealed(key, raw) for key, raw in sorted(self._store.items(prefix))}
        return {key.removeprefix(prefix): commit for key, commit in found.items() if commit is not None}

    def _head(self, branch: str, raw: bytes | None) -> str | None:
        return self._unsealed(_BRANCH + branch, raw)

    def _sealed(self, key: str, commit: str | None) -> bytes:
        target = _NONE if commit is None else bytes.fromhex(commit)
        return pack(target, self._digest.check(key.encode(), target))

    def _unsealed(self, key: str, raw: bytes | None) -> str | None:
        if raw is None:
            return None
        target, *check = unpack(raw) or [b""]
        if check != [self._digest.check(key.encode(), target)]:
            raise StateCorrupt(f"The store's key {key!r} is damaged.")
        return target.hex() or None

    # --- care -----------------------------------------------------------------------------------

    def fsck(self) -> list[str]:
        """Check everything; see `Journal`."""
        from agex.state.kv.fsck import check

        return check(self._heads, self._header, self._objects, self._tree)

    def gc(self) -> Collected:
        """Drop what nothing reaches; see `Journal`."""
        from agex.state.kv.gc import collect

        self._objects.forget()
        return collect(self._store, self._header, self._objects, self._tree, self._heads)

    def _heads(self) -> list[str]:
        return [*self.branches().values(), *self.tags().values()]

    def close(self) -> None:
        """Let go of the store; see `Journal`."""
        self._store.close()


def _refuse(_content: bytes) -> bytes:
    raise AssertionError  # reading makes no nodes


def _unknown(commit: str) -> StateError:
    return StateError(f"There is no commit {commit[:12]!r} in this store.")


def _settled(store: KVStore) -> Digest:
    """Return the digest of a store, and settle which it is in a new one."""
    raw = store.get(_SETTINGS)
    if raw is None:
        digest = new_digest()
        store.cas(_SETTINGS, pack(str(FORMAT).encode(), digest.name.encode()), None)
        raw = store.get(_SETTINGS)  # another process may have been faster
    try:
        version, name = (field.decode() for field in unpack(raw or b""))
        number = int(version)
    except ValueError as error:
        raise StateCorrupt(f"The store's key {_SETTINGS!r} is damaged.") from error
    if number > FORMAT:
        raise StateError(
            f"The store is written in format {number} by a newer agex; this one reads up to {FORMAT}: "
            "run `pip install --upgrade agex-py`."
        )
    return open_digest(name)
