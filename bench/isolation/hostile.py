"""An adapter for a corpus of hostile snippets: full Python in a worker of one level.

``python run_corpus.py --adapter bench/isolation/hostile.py:FullAtKernel``, where ``run_corpus.py`` starts a
process for each snippet, holds secrets and canaries in it, and judges from outside what was reached.

Full Python refuses nothing of itself, so a snippet that does as it likes in its worker has reached nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agex import Memory, Versioned, connect_fs
from agex.isolation import Level, executor_of
from agex.sandbox import Limits, Policy, Result

SECONDS = 3.0
MEMORY_MB = 1024


class FullAtKernel:
    """Full Python at level ``kernel``, as the runner asks for it."""

    name = "agex-full-kernel"
    level: Level = "kernel"
    gates: Mapping[str, str] = {}
    needs: Sequence[str] = ()
    can_restore = True
    stays = True
    """Whether a registered class stays in the host. Otherwise its definition is given to workers."""

    def setup(self, needs: Sequence[str]) -> None:
        """Take the names of the libraries that the snippet needs."""
        self.needs = tuple(needs)
        self._session: Any = None
        self._result: Result | None = None

    def run(self, code: str, variables: Mapping[str, Any]) -> tuple[str, str]:
        """Run a snippet, with the objects of the runner's host as a user registers them."""
        policy = Policy.default()
        for name, value in variables.items():
            if name == "vault":
                policy.module(value, name=name)  # a live object: it stays in the host
            elif isinstance(value, type):
                policy.cls(value, name=name, stays=self.stays)
            elif callable(value):
                policy.fn(value, name=name)
        plain = {name: value for name, value in variables.items() if isinstance(value, str | int)}
        self._session = executor_of(self.level).session(
            policy,
            Limits(seconds=SECONDS, memory_mb=MEMORY_MB),
            plain,
            files=connect_fs(type="virtual"),
            python="full",
        )
        self._result = self._session.run(code, "<agent>")
        _ = self._session.namespace
        if self._result.error is not None:
            return "error", f"{type(self._result.error).__name__}: {self._result.error}"
        return "ok", ""

    def get(self, name: str) -> Any:
        """Return a variable that the snippet left, as the host has it."""
        found = self._session.look_up(name)
        if found is None:
            raise KeyError(name)
        return found

    def names(self) -> list[str]:
        """Return the names of the variables."""
        return list(self._session.namespace)

    def error(self) -> BaseException | None:
        """Return the error of the snippet."""
        return None if self._result is None else self._result.error

    def restore_state(self, blob: bytes) -> Any:
        """Load a state from bytes that the snippet made."""
        store = Memory()
        state = Versioned(store)
        state["x"] = 1
        state.commit()
        for key in list(store.keys()):
            store.set(key, blob)
        return dict(Versioned(store))

    def roundtrip(self, value: Any) -> Any:
        """Keep a value in a state, and read it again."""
        state = Versioned(Memory())
        state["x"] = value
        state.commit()
        return state["x"]

    def drop(self) -> None:
        """End the worker, and forget all that it gave."""
        if self._session is not None:
            self._session.close()
        self._session = self._result = None


class FullAtKernelWithClass(FullAtKernel):
    """The same, with the definition of the class given: a secret in it is one that a worker has."""

    name = "agex-full-kernel-with-class"
    stays = False
