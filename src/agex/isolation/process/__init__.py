"""The level ``process``: workers that can be killed, with the rights of the host.

In reading order: `executor` (workers forked from a zygote), `subprocess_executor` (an interpreter for each
task). It confines nothing: code that leaves the sandbox has the rights of the host.
"""

__all__: list[str] = []
