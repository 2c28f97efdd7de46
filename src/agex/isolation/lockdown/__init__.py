"""Confinement by the operating system, which a worker puts around itself for good.

In reading order: `syscalls` (calls into the kernel), `namespaces`, `own_directory`, `landlock`, `seccomp`,
then `linux`, which applies all of them in order and names those that are missing; `seatbelt` for macOS.

It never starts a process and never talks to the host. Nothing here is optional: a mechanism that is missing
is an error, never a weaker confinement.
"""

__all__: list[str] = []
