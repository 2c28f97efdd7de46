"""The level ``kernel``: workers under namespaces, Landlock, seccomp and limits of the Linux kernel.

Each mechanism is applied before any guest code runs and before there is a second thread, and none can be
undone. They do not depend on each other: a file is out of reach because it is not mounted, because Landlock
forbids it, and because the call that would write it is not allowed. Nothing is installed for this level,
and a missing mechanism is an error.

One module: `executor`, for Linux and for macOS. `agex.isolation.lockdown` does the work in the worker.
"""

from agex.isolation.kernel.executor import KernelExecutor
from agex.isolation.lockdown.linux import enclose, missing

__all__ = ["KernelExecutor", "enclose", "missing"]
