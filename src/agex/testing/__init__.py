"""Public doubles and conformance suites, for our tests and for yours.

A scripted model stands wherever a model does; a recorded one replays without a network.
Nothing here is used by agex itself at run time, and nothing here reaches a network.

Reading order: ``models`` (scripted, recorded, replayed), ``tapes`` (whole runs, recorded and replayed), then
a conformance suite for each seam:
``kvstore``, ``filesystem``, ``executor``.
"""

from __future__ import annotations

from agex.models.actions import edit_file, python_action, terminal_action, write_file
from agex.testing.executor import check_executor
from agex.testing.filesystem import check_filesystem
from agex.testing.kvstore import check_kvstore
from agex.testing.models import RecordingModel, ReplayMiss, ReplayModel, ScriptedModel, ScriptExhausted
from agex.testing.tapes import MASK, record, replay

__all__ = [
    "MASK",
    "RecordingModel",
    "ReplayMiss",
    "ReplayModel",
    "ScriptExhausted",
    "ScriptedModel",
    "check_executor",
    "check_filesystem",
    "check_kvstore",
    "edit_file",
    "python_action",
    "record",
    "replay",
    "terminal_action",
    "write_file",
]
