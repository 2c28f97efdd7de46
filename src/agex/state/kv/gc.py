"""Collecting garbage in a `KVStore`: mark from the heads, then drop the rest in slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from agex.state.commits.digests import addresses_in
from agex.state.commits.journal import Collected
from agex.state.kv.keytree import KeyTree
from agex.state.kv.objects import Objects, chunk_key, commit_key, object_key
from agex.state.kv.pins import Pins
from agex.state.kv.store import CONTENT, KVStore

if TYPE_CHECKING:
    from agex.state.commits.headers import Header

__all__ = ["collect"]

_COMMITS, _CHUNKS = f"{CONTENT}c/", f"{CONTENT}k/"
_SLICE = 500  # keys that are dropped at once: a writer waits for one slice at most


class _Marks:
    """The keys of all that some commits need."""

    def __init__(self, header: Callable[[str], Header], objects: Objects, tree: KeyTree) -> None:
        self.keys: set[str] = set()
        self._header = header
        self._objects = objects
        self._tree = tree
        self._nodes: set[bytes] = set()
        self._payloads: set[bytes] = set()

    def add(self, commits: Iterable[str]) -> None:
        """Mark commits, those before them, and all that they hold."""
        open_ends = list(commits)
        while open_ends:
            commit = open_ends.pop()
            if commit_key(commit) in self.keys:
                continue
            header = self._header(commit)
            for node, entries in self._tree.nodes(header.content, self._nodes):
                self.keys.add(object_key(node))
                self._add_payloads(set(entries.values()))
            if header.events:
                self.keys.add(object_key(header.events_digest))
            self.keys.add(commit_key(commit))
            open_ends += header.parents

    def _add_payloads(self, digests: set[bytes]) -> None:
        new = digests - self._payloads
        for payload in self._objects.get_many(new).values():
            self.keys |= set(map(chunk_key, addresses_in(payload)))
        self.keys |= set(map(object_key, new))
        self._payloads |= new


def collect(
    store: KVStore,
    header: Callable[[str], Header],
    objects: Objects,
    tree: KeyTree,
    heads: Callable[[], Iterable[str]],
) -> Collected:
    """Drop what no head reaches.

    Raises:
        StateCorrupt: something that a head reaches is gone or damaged; nothing is dropped then.
        StateError: another process is collecting.
    """
    marks = _Marks(header, objects, tree)
    marks.add(heads())
    commits = chunks = size = 0
    # Commits go first: a writer that builds on one after it is gone is told so, and one that somebody
    # builds on now keeps all that it holds.
    unmarked = [key for key in store.keys(CONTENT) if key not in marks.keys]
    for part in _slices(sorted(unmarked, key=lambda key: not key.startswith(_COMMITS))):
        with Pins(store).dooming(part) as free:
            pinned = (
                key.removeprefix(_COMMITS) for key in part if key.startswith(_COMMITS) and key not in free
            )
            marks.add([*pinned, *heads()])  # what is committed meanwhile
            dropped = free - marks.keys
            size += sum(map(len, store.get_many(dropped).values()))
            store.remove_many(dropped)
        commits += sum(key.startswith(_COMMITS) for key in dropped)
        chunks += sum(key.startswith(_CHUNKS) for key in dropped)
    return Collected(commits=commits, chunks=chunks, bytes=size)


def _slices(keys: list[str]) -> Iterator[list[str]]:
    return (keys[at : at + _SLICE] for at in range(0, len(keys), _SLICE))
