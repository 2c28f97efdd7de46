"""The level ``container``: workers in containers of Docker or podman.

In reading order: `executor` (the host's side), `init` (the first process of a container, and of a worker
without a zygote). It never builds on a registry, and never uses an image that another process made.
"""

__all__: list[str] = []
