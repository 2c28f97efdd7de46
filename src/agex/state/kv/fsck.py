"""Checking a `KVStore`'s commits: everything that the heads need is there and is what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from agex.errors import StateError
from agex.state.commits.digests import addresses_in
from agex.state.kv.keytree import KeyTree
from agex.state.kv.objects import Objects, chunk_key, object_key

if TYPE_CHECKING:
    from agex.state.commits.headers import Header

__all__ = ["check"]


class _Check:
    def __init__(self, header: Callable[[str], Header], objects: Objects, tree: KeyTree) -> None:
        self._header = header
        self._objects = objects
        self._tree = tree
        self._seen: set[str] = set()
        self._nodes: set[bytes] = set()

    def commits(self, heads: list[str]) -> Iterator[str]:
        """Yield what is wrong with commits and those before them."""
        open_ends = list(heads)
        while open_ends:
            commit = open_ends.pop()
            if commit in self._seen:
                continue
            self._seen.add(commit)
            try:
                header = self._header(commit)
            except StateError as error:
                yield f"commit {commit[:12]}: {error}"
                continue
            yield from self._events(commit, header)
            yield from self._holdings(commit, header)
            open_ends += header.parents

    def _events(self, commit: str, header: Header) -> Iterator[str]:
        if header.events:
            try:
                self._objects.get(header.events_digest)
            except StateError as error:
                yield f"events of commit {commit[:12]}: {error}"

    def _holdings(self, commit: str, header: Header) -> Iterator[str]:
        try:
            for _, entries in self._tree.nodes(header.content, self._nodes):
                for key, digest in entries.items():
                    yield from self._payload(commit, key, digest)
        except StateError as error:
            yield f"keys of commit {commit[:12]}: {error}"

    def _payload(self, commit: str, key: bytes, digest: bytes) -> Iterator[str]:
        where = f"{key.decode(errors='replace')!r} at commit {commit[:12]}"
        if object_key(digest) in self._seen:
            return
        self._seen.add(object_key(digest))
        try:
            payload = self._objects.get(digest)
        except StateError as error:
            yield f"{where}: {error}"
            return
        for address in addresses_in(payload):
            if chunk_key(address) in self._seen:
                continue
            self._seen.add(chunk_key(address))
            try:
                self._objects.chunk(address)
            except StateError as error:
                yield f"{where}: {error}"


def check(
    heads: Callable[[], list[str]], header: Callable[[str], Header], objects: Objects, tree: KeyTree
) -> list[str]:
    """Return what is wrong with what the heads reach, a line each."""
    try:
        commits = heads()
    except StateError as error:
        return [str(error)]
    return list(_Check(header, objects, tree).commits(commits))
