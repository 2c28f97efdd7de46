"""The command ``agex``: the one room that prints, reads the environment and exits.

Every command takes ``--json`` and then prints one JSON document. Exit codes: 0 for success,
1 when a task failed, 2 for wrong usage or a missing model.
"""

from agex.cli.app import main

__all__ = ["main"]
