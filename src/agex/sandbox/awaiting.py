"""``asyncio.gather`` of coroutines and asyncio's own futures.

The real one takes whatever says that it is a future, asks it for its event loop and has
that loop call what waits for the result, in the context of the host: all of the sandbox's
own variables are in it.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

__all__ = ["ASYNCIO"]


def gather(*coros_or_futures: Any, return_exceptions: bool = False) -> Any:
    """Do what ``asyncio.gather`` does."""
    import asyncio  # takes longer than the rest of this room; a guest that is here has imported it

    native = {id(each): _native(each, asyncio.Future) for each in coros_or_futures}
    return asyncio.gather(
        *(native[id(each)] for each in coros_or_futures), return_exceptions=bool(return_exceptions)
    )


def _native(awaitable: Any, future: type) -> Any:
    """Give a coroutine of ours in place of an object that could answer for a future."""
    class_ = type(awaitable)
    if class_ is types.CoroutineType or issubclass(class_, future):
        return awaitable
    if not inspect.isawaitable(awaitable):
        raise TypeError("An asyncio.Future, a coroutine or an awaitable is required")
    return _awaited(awaitable)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


ASYNCIO: dict[str, Any] = {"gather": gather}
"""The members of ``asyncio`` that are guarded."""
