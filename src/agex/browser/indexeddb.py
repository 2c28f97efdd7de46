"""A store in the browser's own database."""

# js and pyodide are there in a tab only.
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Self

from agex.browser.host import ffi, page
from agex.browser.mirror import MirroredStore
from agex.errors import StateConflict, StateError

__all__ = ["IndexedDBStore"]

_STORE = "agex"


class IndexedDBStore(MirroredStore):
    """Keep everything in an IndexedDB database of the page's origin; open it with ``await open(name)``.

    **Durability.** All of it is read into memory when it is opened, and reads answer from there. Each
    write begins its transaction at once, with strict durability where the browser has it, and in the
    order of the writes; it is kept when ``await flush()`` returns. A tab that dies before that loses the
    last writes and no others: what it finds afterwards is the store as it was at some earlier moment. The
    browser may drop the whole database when the disk is full, unless the page asked for
    ``navigator.storage.persist()``; a user may clear it.

    **One tab.** The store is held by a Web Lock as long as it is open: a second tab, or a second ``open``,
    is refused. So a compare-and-set is one for all tabs. The lock goes with the tab, however it ends.
    """

    @classmethod
    async def open(cls, name: str) -> Self:
        """Open a database, or make it.

        Raises:
            StateConflict: another tab has it open.
            StateError: this page has no IndexedDB or no Web Locks, or the database cannot be opened.
        """
        js = page()

        if not getattr(js, "indexedDB", None) or not getattr(getattr(js, "navigator", None), "locks", None):
            raise StateError(
                "IndexedDB with Web Locks is there in pages served over https or from localhost only; "
                "serve the page that way, or use Memory()."
            )
        lock = await _Lock.take(f"agex/{name}")
        try:
            database = await _opened(name)
            try:
                values = await _all(database)
            except BaseException:
                database.close()
                raise
        except BaseException:
            lock.release()
            raise
        return cls(_Database(database, lock), values)


class _Lock:
    """A Web Lock, held until it is released."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._granted: asyncio.Future[bool] = loop.create_future()
        self._released: asyncio.Future[None] = loop.create_future()

    @classmethod
    async def take(cls, name: str) -> _Lock:
        """Take a lock, or raise StateConflict where another tab has it."""
        js = page()
        create_once_callable = ffi().create_once_callable
        to_js = ffi().to_js

        lock = cls()
        options = to_js({"ifAvailable": True}, dict_converter=js.Object.fromEntries)
        js.navigator.locks.request(name, options, create_once_callable(lock._hold))
        if not await lock._granted:
            raise StateConflict(
                f"{name.partition('/')[2]!r} is open in another tab; close that one, or go on in it."
            )
        return lock

    async def _hold(self, lock: Any) -> None:
        granted = getattr(lock, "name", None) is not None  # JavaScript's null where it is taken
        self._granted.set_result(granted)
        if granted:
            await self._released

    def release(self) -> None:
        if not self._released.done():
            self._released.set_result(None)


class _Database:
    """An open database, and the lock on it."""

    def __init__(self, database: Any, lock: _Lock) -> None:
        self._database = database
        self._lock = lock
        self._closing = False
        self._last: asyncio.Future[None] | None = None

    def write(self, items: Mapping[str, bytes], removed: Iterable[str]) -> asyncio.Future[None]:
        """Begin a transaction; IndexedDB carries out those on one store in the order they were begun.

        Raises:
            OSError: the database takes none: it is closed, or a user cleared it.
        """
        failure: type[Exception] = ffi().JsException
        try:
            return self._begun(items, removed)
        except failure as error:
            # Only its text: the error itself is an object of the page's.
            raise OSError(str(error)) from None

    def _begun(self, items: Mapping[str, bytes], removed: Iterable[str]) -> asyncio.Future[None]:
        to_js = ffi().to_js
        durability = to_js({"durability": "strict"}, dict_converter=page().Object.fromEntries)
        transaction = self._database.transaction(_STORE, "readwrite", durability)
        self._last = _end_of(transaction)
        store = transaction.objectStore(_STORE)
        for key, value in items.items():
            store.put(to_js(value), key)
        for key in removed:
            store.delete(key)
        return self._last

    def close(self) -> None:
        """Close once what was begun has ended, then let other tabs have it."""
        self._database.close()  # the browser waits for transactions
        if self._last is None or self._last.done():
            self._lock.release()
        else:
            self._last.add_done_callback(lambda _: self._lock.release())


async def _opened(name: str) -> Any:
    js = page()
    create_once_callable = ffi().create_once_callable

    request = js.indexedDB.open(name, 1)
    upgrade = create_once_callable(lambda _event: request.result.createObjectStore(_STORE))
    request.onupgradeneeded = upgrade
    return await _result_of(request)


async def _all(database: Any) -> dict[str, bytes]:
    """Read the whole store, in one transaction."""
    store = database.transaction(_STORE, "readonly").objectStore(_STORE)
    keys, values = _result_of(store.getAllKeys()), _result_of(store.getAll())
    return {key: value.to_bytes() for key, value in zip(await keys, await values, strict=True)}


def _result_of(request: Any) -> asyncio.Future[Any]:
    """Return what a request gives, when it does."""
    return _settled(request, {"onsuccess": lambda: request.result}, ("onerror", "onblocked"))


def _end_of(transaction: Any) -> asyncio.Future[None]:
    """Return the end of a transaction."""
    return _settled(transaction, {"oncomplete": lambda: None}, ("onabort",))


def _settled(source: Any, good: Mapping[str, Any], bad: Iterable[str]) -> asyncio.Future[Any]:
    """Return a future that is settled by the events of a request or transaction.

    An error becomes an ``OSError``: an object of the page's is to go no further than here.
    """
    create_proxy = ffi().create_proxy

    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    proxies: list[Any] = []

    def end() -> None:
        for proxy in proxies:
            proxy.destroy()

    def on_good(name: str) -> Any:
        def handle(_event: Any) -> None:
            if not future.done():
                future.set_result(good[name]())
            end()

        return handle

    def on_bad(_event: Any) -> None:
        if not future.done():
            future.set_exception(OSError(_why(source)))
        end()

    for name in good:
        proxies.append(create_proxy(on_good(name)))
        setattr(source, name, proxies[-1])
    for name in bad:
        proxies.append(create_proxy(on_bad))
        setattr(source, name, proxies[-1])
    return future


def _why(source: Any) -> str:
    error = getattr(source, "error", None)
    name, message = getattr(error, "name", ""), getattr(error, "message", "")
    return f"{name}: {message}" if name else "the browser does not say why"
