"""Other sandboxes, each given the program, its imports and the names that its manual asks for.

A peer runs the same text or does not run it: no text is adapted to what a peer can do.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import operator
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.sandbox.sides import Run, Side

__all__ = ["PEERS", "installed"]

_SECONDS = 120.0
_IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


class Sandtrap(Side):
    """Rewrites the tree and asks a policy at each attribute, in process."""

    def prepare(self, source: str) -> Run:
        sandtrap = importlib.import_module("sandtrap")
        policy = sandtrap.Policy(timeout=_SECONDS)
        for name in _IMPORT.findall(source):
            policy.module(importlib.import_module(name), recursive=True)
        sandbox = sandtrap.sandbox(policy)

        def run() -> Any:
            done = sandbox.exec(source)
            if done.error is not None:
                raise done.error
            return done.namespace["result"]

        return run


class Smolagents(Side):
    """Walks the tree, in process."""

    def prepare(self, source: str) -> Run:
        executor = importlib.import_module("smolagents.local_python_executor").LocalPythonExecutor
        names = [pattern for name in _IMPORT.findall(source) for pattern in (name, f"{name}.*")]

        def run() -> Any:
            python = executor(names, timeout_seconds=None)
            python.send_tools({})
            python(source)
            return python.state["result"]

        return run


_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift,
    ">>=": operator.irshift,
}  # fmt: skip


class RestrictedPython(Side):
    """Rewrites the tree at compile time; the checks are those of its own ``Guards``."""

    def prepare(self, source: str) -> Run:
        restricted = importlib.import_module("RestrictedPython")
        guards = importlib.import_module("RestrictedPython.Guards")
        evaluation = importlib.import_module("RestrictedPython.Eval")
        code = restricted.compile_restricted(source, "<bench>", "exec")
        allowed = frozenset(_IMPORT.findall(source))

        def import_(name: str, *rest: Any) -> Any:
            if name.partition(".")[0] not in allowed:
                raise ImportError(name)
            return __import__(name, *rest)

        usual = (
            "all any dict enumerate filter iter list map max min next object reversed set sum super tuple "
            "type zip"
        )
        names = {
            **guards.safe_builtins,
            **{name: getattr(builtins, name) for name in usual.split()},
            "__import__": import_,
            "_getattr_": guards.safer_getattr,
            "_getitem_": evaluation.default_guarded_getitem,
            "_getiter_": evaluation.default_guarded_getiter,
            "_write_": guards.full_write_guard,
            "_inplacevar_": lambda op, x, y: _INPLACE[op](x, y),
            "_unpack_sequence_": guards.guarded_unpack_sequence,
            "_iter_unpack_sequence_": guards.guarded_iter_unpack_sequence,
            "_apply_": lambda function, *args, **kwargs: function(*args, **kwargs),
            "__metaclass__": type,
        }

        def run() -> Any:
            # Only marked objects may be written to; here the classes of the program mark theirs.
            namespace = {"__builtins__": names, "__name__": "__main__", **names}
            namespace["__metaclass__"] = _Writable
            exec(code, namespace)  # noqa: S102 - the peer's way to run
            return namespace["result"]

        return run


class _Writable(type):
    """Marks the classes of a RestrictedPython program as its own to write to."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
        return super().__new__(mcs, name, bases, {**namespace, "_guarded_writes": True})


class Monty(Side):
    """A virtual machine of its own, in worker processes: timed by the wall."""

    def clock(self) -> float:
        return time.perf_counter()

    def prepare(self, source: str) -> Run:
        monty = importlib.import_module("pydantic_monty")
        runs = self._runs(monty, source)
        return lambda: next(runs)

    def _runs(self, monty: Any, source: str) -> Iterator[Any]:
        with monty.Monty() as pool:
            while True:
                with pool.checkout() as session:
                    found = session.feed_run(source + "\nresult\n")
                yield getattr(found, "output", found)


PEERS: dict[str, tuple[str, Callable[[], Side]]] = {
    "sandtrap": ("sandtrap", Sandtrap),
    "smolagents": ("smolagents", Smolagents),
    "RestrictedPython": ("RestrictedPython", RestrictedPython),
    "monty": ("pydantic_monty", Monty),
}
"""Column title to the module that must be importable, and the side."""


def installed() -> list[str]:
    """Name the peers of this environment."""
    return [name for name, (module, _) in PEERS.items() if importlib.util.find_spec(module) is not None]
