"""Guarded Python: ordinary code, transformed, compiled by CPython and run under a policy.

This room takes source text and a policy and returns a result. It knows nothing of agents, models or files.
It never interprets code, never wraps values, and never lets an error of guest code reach the host as an
exception.

**The threat.** A language model writes the code. Most of it is honest and clumsy; some may be dictated by a
text that the model read. Guest code may know this source. It may try to reach the files, network and
processes of the host, to change objects and caches that the host uses after the run, and to take time and
memory without end.

**Three boundaries**, each for the gaps in the one before:

1. *Guards* decide what guest code may say. The transformer refuses names that lead to the interpreter, and
   adds a check of the receiver where a name is harmless on most objects only. Syntax without a verdict is
   refused.
2. The *audit hook* decides what the process may do while guest code runs, however the call was reached. It
   refuses files, sockets, processes and native code to guest code, and to libraries that work for it.
3. The *kernel* confines a worker process: that is the room `agex.isolation`. In process, the first two are a
   guard rail for cooperative code. Only a worker stops an attack on the interpreter itself, or a C call that
   never ends (docs/security.md). Where a boundary is needed, it is that one: no further defence against one
   exotic attack belongs here.

**A run.** `Sandbox.exec` opens a `Session`. The session is a `run.Runner`: it sets the limits and notes the
state of the process. The compiler transforms and compiles the source, and ``exec`` runs it with guarded
builtins. The runner puts everything back and returns a `Result`.

**The map**, lowest room first:

* `rules`: names and syntax that guest code may use, as data
* `runtime`: the state of a run: context, limits, deadline, kill switch, output, audit hook
* `language`: transformer and compiler
* `classes`: guest classes, and host classes in the hands of guest code
* `patches`: process-wide replacements in the standard library, one module for each patched one
* `policy`: the registrations of the host, and the members that guest code may use
* `stdlib`: versions of standard modules for guest code, named like those
* `libraries`: policies of numpy, pandas and others, one module or folder for each
* `guards`: the checks that transformed code calls, the builtins, the import statement
* `program_exit`, `host_names`, `run`, `session`, `stored_code`, `sandbox`: the entrance

Rules, runtime, language, classes, policy, guards and the entrance are the core, which a reviewer of the
guards reads. Patches, stdlib and libraries are outer rings: many small parts, each to be read alone.

Names are imported when they are first used: importing this room loads none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.policy.policy import MemberSpec, Policy
    from agex.sandbox.runtime.limits import Limits
    from agex.sandbox.runtime.result import Enforcement, Result
    from agex.sandbox.sandbox import Sandbox
    from agex.sandbox.session import Session
    from agex.sandbox.stored_code import KeptCode

__all__ = ["Enforcement", "KeptCode", "Limits", "MemberSpec", "Policy", "Result", "Sandbox", "Session"]

_HOMES = {
    "Enforcement": "runtime.result",
    "KeptCode": "stored_code",
    "Limits": "runtime.limits",
    "MemberSpec": "policy.policy",
    "Policy": "policy.policy",
    "Result": "runtime.result",
    "Sandbox": "sandbox",
    "Session": "session",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'agex.sandbox' has no attribute {name!r}")
    home = importlib.import_module(f"agex.sandbox.{_HOMES[name]}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return __all__
