"""Ray as an executor of ``concurrent.futures``, which it does not bring itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from agex.errors import DefinitionError

__all__ = ["RayExecutor"]

P = ParamSpec("P")
T = TypeVar("T")


class RayExecutor(Executor):
    """Run calls as tasks of a Ray cluster that ``ray.init()`` has connected to.

    A cancelled call is cancelled in Ray, too. Shutting it down leaves Ray as it is: end it with
    ``ray.shutdown()``.

    Args:
        **options: of each task, as for ``ray.remote``, e.g. ``num_cpus=1`` or ``max_retries=0``.

    Raises:
        DefinitionError: Ray is not installed, or not connected.
    """

    def __init__(self, **options: Any) -> None:
        try:
            ray: Any = importlib.import_module("ray")
        except ModuleNotFoundError as error:
            raise DefinitionError("Ray is not installed: pip install ray") from error
        if not ray.is_initialized():
            raise DefinitionError("Ray is not connected: call ray.init() first.")
        self._ray = ray
        self._options = options

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin a call."""
        remote = self._ray.remote(**self._options)(fn) if self._options else self._ray.remote(fn)
        reference = remote.remote(*args, **kwargs)
        future: Future[T] = reference.future()

        def withdraw(done: Future[T]) -> None:
            if done.cancelled():
                self._ray.cancel(reference)

        future.add_done_callback(withdraw)
        return future
