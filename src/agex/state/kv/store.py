"""The interface of a store of bytes. Implement it, and `Versioned` runs on your database.

`agex.testing.check_kvstore` proves an implementation.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agex.errors import StateError, StateFull

if TYPE_CHECKING:
    from agex.state.commits.journal import Journal
    from agex.state.commits.lru import Recent

__all__ = ["CONTENT", "KVStore", "swap"]

CONTENT = "agex/o/"
"""The prefix of keys that are named by their content: what has such a key never changes."""
_TRIES = 3


class KVStore(abc.ABC):
    """Keep bytes under text keys.

    A key is any text that UTF-8 can encode, a value any bytes, up to some megabytes. What
    one thread or process wrote, every other reads from then on; nothing is ever dropped by
    itself. A store may be shared between threads.

    Every method raises `StateError` where the store cannot be reached.
    """

    @abc.abstractmethod
    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None where there is none."""

    @abc.abstractmethod
    def set(self, key: str, value: bytes) -> None:
        """Set the value of a key."""

    @abc.abstractmethod
    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the values of those keys that have one."""

    @abc.abstractmethod
    def set_many(self, items: Mapping[str, bytes]) -> None:
        """Set the value of each key. A reader beside it may see some of them only."""

    @abc.abstractmethod
    def remove(self, key: str) -> None:
        """Take a key away; one that is not there is no error."""

    @abc.abstractmethod
    def remove_many(self, keys: Iterable[str]) -> None:
        """Take keys away; those that are not there are no error."""

    @abc.abstractmethod
    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield each key with that prefix, and its value, in any order.

        A key that is there all the while is yielded once; one that comes or goes meanwhile, once or never.
        """

    @abc.abstractmethod
    def __contains__(self, key: object) -> bool: ...

    @abc.abstractmethod
    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        """Set the value of a key if it has the expected one (None: if there is none), in one step.

        Of any number of threads, processes and machines that expect the same value, one gets True.

        Raises:
            StateError: the store cannot be reached, or was lost before it answered: the key may have the
                value or not. So do not try again where an earlier try may have come through; `swap` does.
        """

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Yield each key with that prefix, in any order.

        Override it where values need not be read for that.
        """
        for key, _ in self.items(prefix):
            yield key

    def stage(
        self,
        items: Mapping[str, bytes],
        *,
        look: Collection[str] = (),
        then: Mapping[str, bytes] | None = None,
    ) -> dict[str, bytes]:
        """Set the value of each key, then read others, then set more. A commit does it before its `cas`.

        Override it where all that takes one request, or where what is set need not be on disk before the next
        `cas` through this store is: a commit is lost or kept as a whole.

        Args:
            items: as `set_many` takes them.
            look: keys that are read once others can see what was set.
            then: set once those are read.

        Returns:
            The values of the keys of *look* that have one.
        """
        if items:
            self.set_many(items)
        found = self.get_many(look) if look else {}
        if then:
            self.set_many(then)
        return found

    def unstage(self, key: str) -> None:
        """Take away a key that was staged; where the store is lost just then, it may stay."""
        self.remove(key)

    def journal(self, recent: Recent | None = None) -> Journal:
        """Return the commits that are kept in this store.

        Args:
            recent: where checked content is kept in memory; a `Cache` before the store gives it.
        """
        from agex.state.kv.kv_journal import KVJournal

        return KVJournal(self, recent)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store into a directory, also while it is in use.

        Raises:
            StateError: it has no files that could be copied.
        """
        raise StateError(
            f"{self!r} has no files to copy to {os.fspath(path)!r}. Back up a server with its own tools, "
            "such as pg_dump or BGSAVE; a state in Disk(path) can be backed up here."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a store by how it is opened: it is opened again where it is unpickled.

        Raises:
            TypeError: it lives in this process only.
        """
        arguments = self._opened_with()
        if arguments is None:
            raise TypeError(
                f"{self!r} lives in this process only; for several processes use Disk, RedisStore "
                "or PostgresStore."
            )
        return _opened, (type(self), arguments)

    def _opened_with(self) -> dict[str, Any] | None:
        """Return the keyword arguments that open this store elsewhere; None where that cannot be."""
        return None

    def close(self) -> None:  # noqa: B027 - a store may have nothing to let go of
        """Let go of files and connections; may be called again."""


def swap(store: KVStore, key: str, value: bytes, expected: bytes | None) -> tuple[bool, bool]:
    """Do a `cas`; where its answer is lost, look what became of it, and try again if nothing did.

    A try that was lost may come through later. That does no harm: it sets the same value, or finds another
    one than it expects.

    Returns:
        Whether the key has got the value, and whether no answer was lost.

    Raises:
        StateError: the store cannot be reached; the key may have the value or not.
    """
    answered = True
    for left in reversed(range(_TRIES)):
        try:
            return store.cas(key, value, expected), answered
        except StateFull:  # that is an answer
            raise
        except StateError:
            answered = False
            held = store.get(key)
            if held == value or held != expected:
                return held == value, answered
            if not left:
                raise
    raise AssertionError  # the last try returns or raises


def _opened(kind: type[KVStore], arguments: dict[str, Any]) -> KVStore:
    return kind(**arguments)
