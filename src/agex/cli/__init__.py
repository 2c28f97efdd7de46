"""The command ``agex``: the one room that prints, reads the environment and exits.

Every command takes ``--json`` and then prints one JSON document. Exit codes: 0 for success,
1 when a task failed, 2 for wrong usage or a missing model. This room never decides what a command means:
each command calls one function of another room.

Reading order: ``app`` (the commands and their options), then a module for each command or family of them:
``run`` with ``progress``, ``history``, ``shell``, ``serve``, ``doctor`` with
``isolation_attempts``, ``demo``, ``humaneval`` with ``benchmark``.
"""

from agex.cli.app import main

__all__ = ["main"]
