"""What the table compares: plain ``exec``, agex under three policies, and full Python at ``kernel``."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import CodeType
from typing import Any

from bench.sandbox import registrations

from agex.errors import SandboxError
from agex.isolation import executor_of
from agex.sandbox import Limits, Policy, Sandbox

__all__ = ["SIDES", "Native", "Refused", "Side"]

Run = Callable[[], Any]
"""Runs a prepared program once, in a fresh namespace, and gives its ``result``."""


class Refused(Exception):
    """The side says no to a program."""


class Side(ABC):
    """One way to run a program. What can be prepared beforehand is: the runs alone are timed."""

    def clock(self) -> float:
        """Return seconds by which the side's programs are timed: processor time, where they run."""
        return time.process_time()

    def plain_clock(self) -> float:
        """Return seconds by which plain ``exec`` beside this side is timed."""
        return self.clock()

    def beside(self) -> Native:
        """Return what this side is compared with."""
        return Native()

    @abstractmethod
    def prepare(self, source: str) -> Run:
        """Make ready to run *source*."""


class Native(Side):
    """Plain ``exec``.

    Args:
        compiles: each run compiles its source, too.
    """

    def __init__(self, *, compiles: bool = False) -> None:
        self._compiles = compiles

    def prepare(self, source: str) -> Run:
        code = self._code(source)

        def run() -> Any:
            namespace: dict[str, Any] = {"__name__": "__main__"}
            exec(self._code(source) if self._compiles else code, namespace)  # noqa: S102 - the yardstick
            return namespace["result"]

        return run

    def _code(self, source: str) -> CodeType:
        return compile(source, "<bench>", "exec", dont_inherit=True)


class Agex(Side):
    """agex with the default policy and the libraries that the program imports."""

    def __init__(self, *, strict: bool = False, registered: bool = False) -> None:
        self._strict = strict
        self._registered = registered

    def policy(self, source: str) -> Policy:
        """Make the policy for a program: a host registers the libraries it wants to be used."""
        policy = Policy.default(strict=self._strict)
        for library in ("numpy", "pandas"):
            if f"import {library}" in source:
                policy.module(__import__(library))
        if self._registered:
            registrations.register(policy)
        return policy

    def prepare(self, source: str) -> Run:
        sandbox = Sandbox(self.policy(source), limits=Limits(seconds=60.0))

        def run() -> Any:
            done = sandbox.exec(source)
            if isinstance(done.error, SandboxError):
                raise Refused(str(done.error)) from done.error
            if done.error is not None:
                raise done.error
            return done.namespace["result"]

        return run


class Full(Side):
    """Full Python at level ``kernel``, in a session that stays open: each run is an action of it.

    The processor time is that of the worker, its part of the action included. An action is source, so plain
    CPython compiles it in each run, too. What the way to the worker and back takes is measured by
    `bench.isolation`.
    """

    def __init__(self) -> None:
        self._session = executor_of("kernel").session(
            Policy.default(), Limits(seconds=60.0), {}, python="full"
        )
        self._session.open()

    def clock(self) -> float:
        """Return the processor time that the worker has used, without that for garbage of earlier runs."""
        return float(self._done(_READ))

    def plain_clock(self) -> float:
        return time.process_time()

    def beside(self) -> Native:
        return Native(compiles=True)

    def prepare(self, source: str) -> Run:
        return lambda: self._done(source)

    def _done(self, source: str) -> Any:
        done = self._session.run(source, echo=False)
        if done.error is not None:
            raise done.error
        return self._session.look_up("result")


_READ = """
import gc, time
_read = time.process_time()
_spent = globals().get("_spent", 0.0)
result = _read - _spent
gc.collect()
_spent += time.process_time() - _read
"""
"""In this process, too, garbage is collected between the runs."""

SIDES: dict[str, Callable[[], Side]] = {
    "agex": Agex,
    "agex60": lambda: Agex(registered=True),
    "strict": lambda: Agex(strict=True),
    "full": Full,
}
