"""The walls of the Linux kernel around a worker: namespaces, Landlock, seccomp, limits.

Each is put up before any guest code runs and before there is a second thread, and none can be
taken down again. They do not depend on each other: a file is out of reach because it is not
mounted, because Landlock forbids it, and because the call that would write it is not allowed.
Nothing is installed for it; nothing works without it: what is missing is an error.
"""

from agex.isolation.kernel.executor import KernelExecutor
from agex.isolation.lockdown.linux import enclose, missing

__all__ = ["KernelExecutor", "enclose", "missing"]
