"""All keys of a commit as a tree of content-addressed nodes (a hash array mapped trie).

A commit makes new nodes along the way to what it changed and shares all others, two commits
are compared by the nodes that they do not share, and what the root's digest says is proven by
every node on the way, absence included.

Reference: Bagwell, Ideal Hash Trees, 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from agex.errors import StateCorrupt
from agex.state.commits.digests import Digest
from agex.state.commits.length_prefixed import pack, unpack

__all__ = ["EMPTY", "KeyTree"]

EMPTY = b""
"""The root of a tree without keys."""

_WIDTH = 16  # children of a node: one for each half byte of the digest of a key
_DEEPEST = 64  # levels: half bytes of a digest
_LEAF = 16  # entries that a leaf holds at most: about 1 KB

Entries: TypeAlias = dict[bytes, bytes]
"""Each key, and the digest of its payload."""


class KeyTree:
    """Trees over a store of nodes.

    Args:
        load: gives nodes by digest, checked; all of those asked for.
        save: takes a node and gives its digest.
        digest: decides where a key belongs.
    """

    def __init__(
        self,
        load: Callable[[list[bytes]], Mapping[bytes, bytes]],
        save: Callable[[bytes], bytes],
        digest: Digest,
    ) -> None:
        self._load = load
        self._save = save
        self._digest = digest

    def get(self, root: bytes, key: bytes) -> bytes | None:
        """Return the digest under a key; None where there is none."""
        path = self._path(key)
        for depth in range(len(path)):
            if root == EMPTY:
                return None
            node = self._node(root)
            if isinstance(node, dict):
                return node.get(key)
            root = node[path[depth]]
        raise _too_deep()

    def entries(self, root: bytes) -> Entries:
        """Return all entries of a tree. Nodes are loaded a level at a time.

        Raises:
            StateCorrupt: a node is in two places. Keys have one each, and a few such nodes would be a
                tree without end.
        """
        found: Entries = {}
        seen: set[bytes] = set()
        level = [root] if root != EMPTY else []
        while level:
            _add_once(level, seen)
            nodes = self._load(level)
            following = []
            for digest in level:
                node = _unpack(nodes[digest])
                if isinstance(node, dict):
                    found.update(node)
                else:
                    following += [child for child in node if child != EMPTY]
            level = following
        return found

    def nodes(self, root: bytes, seen: set[bytes]) -> Iterator[tuple[bytes, Entries]]:
        """Yield the nodes of a tree that were not seen yet, and the entries of those that are leaves.

        Raises:
            StateCorrupt: a node is in two places of the tree, see `entries`.
        """
        level = [root] if root != EMPTY and root not in seen else []
        here: set[bytes] = set()
        while level:
            seen.update(level)
            nodes = self._load(level)
            following: dict[bytes, None] = {}
            for digest in level:
                node = _unpack(nodes[digest])
                if isinstance(node, dict):
                    yield digest, node
                else:
                    yield digest, {}
                    _add_once([child for child in node if child != EMPTY], here)
                    following |= dict.fromkeys(c for c in node if c != EMPTY and c not in seen)
            level = list(following)

    def differing(self, old: bytes, new: bytes) -> dict[bytes, tuple[bytes | None, bytes | None]]:
        """Return the keys that differ between two trees, with both digests.

        Raises:
            StateCorrupt: a node is in two places of a tree, see `entries`.
        """
        found: dict[bytes, tuple[bytes | None, bytes | None]] = {}
        seen: tuple[set[bytes], set[bytes]] = set(), set()
        pairs = [(old, new)]
        while pairs:
            a, b = pairs.pop()
            if a == b:
                continue
            for digest, known in zip((a, b), seen, strict=True):
                if digest != EMPTY:
                    _add_once([digest], known)
            one, other = self._node(a), self._node(b)
            if not isinstance(one, dict) and not isinstance(other, dict):
                pairs += zip(one, other, strict=True)
                continue
            before, after = self.entries(a), self.entries(b)  # one of them is a leaf
            for key in before.keys() | after.keys():
                if before.get(key) != after.get(key):
                    found[key] = before.get(key), after.get(key)
        return found

    def update(self, root: bytes, changes: Mapping[bytes, bytes | None]) -> bytes:
        """Return the root of the tree with changes; None takes a key away."""
        return self._update(root, {self._path(key): (key, value) for key, value in changes.items()}, 0)

    def _update(self, root: bytes, changes: dict[bytes, tuple[bytes, bytes | None]], depth: int) -> bytes:
        if depth == _DEEPEST:
            raise _too_deep()
        node = self._node(root)
        if isinstance(node, dict):
            entries = {**node, **dict(changes.values())}
            return self._build({key: value for key, value in entries.items() if value is not None}, depth)
        parts: dict[int, dict[bytes, tuple[bytes, bytes | None]]] = {}
        for path, change in changes.items():
            parts.setdefault(path[depth], {})[path] = change
        children = list(node)
        for half, part in parts.items():
            children[half] = self._update(children[half], part, depth + 1)
        return self._joined(children, shrunk=any(value is None for _, value in changes.values()))

    def _joined(self, children: list[bytes], *, shrunk: bool) -> bytes:
        """Return a node over children, or a leaf where few entries are left: equal contents, equal trees."""
        if shrunk:
            entries: Entries = {}
            for child in children:
                below = self._node(child)
                if not isinstance(below, dict):
                    break
                entries |= below
            else:
                if len(entries) <= _LEAF:
                    return self._leaf(entries)
        return self._save(pack(b"n", *children))

    def _build(self, entries: Entries, depth: int) -> bytes:
        if len(entries) <= _LEAF:
            return self._leaf(entries)
        if depth == _DEEPEST:
            raise _too_deep()
        parts: list[Entries] = [{} for _ in range(_WIDTH)]
        for key, value in entries.items():
            parts[self._path(key)[depth]][key] = value
        return self._save(pack(b"n", *(self._build(part, depth + 1) for part in parts)))

    def _leaf(self, entries: Entries) -> bytes:
        if not entries:
            return EMPTY
        return self._save(pack(b"l", *(field for entry in sorted(entries.items()) for field in entry)))

    def _node(self, digest: bytes) -> Entries | list[bytes]:
        return {} if digest == EMPTY else _unpack(self._load([digest])[digest])

    def _path(self, key: bytes) -> bytes:
        """Return the way to a key, a half byte a step."""
        return bytes(half for byte in self._digest(key) for half in (byte >> 4, byte & 15))


def _add_once(digests: list[bytes], seen: set[bytes]) -> None:
    before = len(seen)
    seen.update(digests)
    if len(seen) != before + len(digests):
        raise StateCorrupt("A node of the store's tree of keys is in two places.")


def _too_deep() -> StateCorrupt:
    return StateCorrupt("The store's tree of keys is deeper than any key.")


def _unpack(packed: bytes) -> Entries | list[bytes]:
    """Return the entries of a leaf, or the children of a node."""
    kind, *fields = unpack(packed)
    if kind == b"l" and len(fields) % 2 == 0:
        return dict(zip(fields[::2], fields[1::2], strict=True))
    if kind == b"n" and len(fields) == _WIDTH:
        return fields
    raise StateCorrupt("A node of the store's tree of keys is of no known kind.")
