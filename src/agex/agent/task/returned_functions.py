"""Functions that an agent wrote, in the hands of the host: called like any other, and pickled like any other.

A pickle of one holds its source with what it captured, and what its agent may use. Unpickling makes it
again under the same guards. It comes from the host process and is loaded like any pickle: only from
a source that you would load one from.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

from agex import values
from agex.agent.execution.grants import policy_with
from agex.agent.registration import Registration
from agex.sandbox import KeptCode, Limits, Sandbox
from agex.sandbox.runtime import provenance as origins
from agex.sandbox.runtime import source_lines

__all__ = ["Origin", "ReturnedFunction", "handed_over"]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The means of a function that an agent wrote, wherever it is rebuilt."""

    registrations: tuple[Registration, ...]
    named: Mapping[str, tuple[Any, bool]]
    """The names in the task's annotations, see ``execution.grants.named_by``."""

    def allow(self) -> values.Allow:
        """Return the classes of the host whose instances the function may have captured."""
        registered = {one.target for one in self.registrations if one.kind == "class"}
        return values.Allow(
            {*registered, *(each for each, _ in self.named.values() if isinstance(each, type))}
        )

    def sandbox(self) -> Sandbox:
        """Return a place to make the function in; called later, it has no clock."""
        return Sandbox(policy_with(self.registrations, self.named), limits=Limits(seconds=None))


class ReturnedFunction(functools.partial):  # type: ignore[type-arg]
    """A function that an agent wrote and returned. ``func`` is the function itself."""

    origin: Origin

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it by its source.

        Raises:
            pickle.PicklingError: it captured something that cannot be kept.
        """
        code = KeptCode(self.origin.sandbox())
        (group,) = values.encode({"function": self.func}, allow=self.origin.allow(), guest=code)
        for lost in group.lost.get("function", ()):
            raise pickle.PicklingError(
                f"{self.func.__name__} cannot be pickled: {lost.path} ({lost.type}) {lost.reason}"
            )
        return _made_again, (self.origin, group.stream, tuple(bytes(each) for each in group.buffers))


def handed_over(value: Any, origin: Callable[[], Origin]) -> Any:
    """Return a task's value for the host: a function that the agent wrote as one that can be pickled.

    `inspect` and tracebacks find the lines of functions and methods, also of those in lists and the like.
    """
    for each in _first_in(value):
        function = each.__func__ if type(each) is MethodType else each
        if type(function) is FunctionType:
            source_lines.show(function)
    if type(value) is not FunctionType or origins.session_of(value) is None:
        return value
    return _wrapped(value, origin())


def _first_in(value: Any) -> Iterator[Any]:
    """Yield a value and what plain containers in it hold, up to a number: large data holds no functions."""
    queue = deque([value])
    for _ in range(_LOOKED_AT):
        if not queue:
            return
        each = queue.popleft()
        yield each
        if type(each) in (list, tuple, set, frozenset):
            queue.extend(itertools.islice(each, _LOOKED_AT - len(queue)))
        elif type(each) is dict:
            queue.extend(itertools.islice(each.values(), _LOOKED_AT - len(queue)))


_LOOKED_AT = 1000
"""Objects in a value that may be functions."""


def _wrapped(function: FunctionType, origin: Origin) -> ReturnedFunction:
    source_lines.show(function)
    made = ReturnedFunction(function)
    functools.update_wrapper(made, function)
    made.origin = origin
    return made


def _made_again(origin: Origin, stream: bytes, buffers: tuple[bytes, ...]) -> ReturnedFunction:
    group = values.Group(names=("function",), stream=stream, buffers=tuple(map(memoryview, buffers)))
    found = values.decode(group, allow=origin.allow(), guest=KeptCode(origin.sandbox()))
    return _wrapped(found["function"], origin)
