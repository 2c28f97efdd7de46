"""A time limit strikes anywhere in the host's own work for a guest: nothing stays set behind it."""

from __future__ import annotations

import gc

import pytest
from monkeyfs import current_fs

from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.context import CURRENT, call_serving
from agex.sandbox.modules import open_while
from agex.sandbox.wall import DOORS

LOOPS = {
    "files": "import os\nwhile True: os.path.exists('a')",
    "doors": "while True: opened()",
    "tools": "while True: served()",
}


def _contexts():
    return CURRENT.get(), DOORS.get(), current_fs.get()


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_limit_leaves_no_door_open_and_no_guest_in_place(loop):
    """Each run is struck at another place; in one of ten it was within a context manager."""
    names = {"opened": open_while(("files", "network"), int), "served": lambda: call_serving(int)}
    found = set()
    for turn in range(60):
        sandbox = Sandbox(Policy.default(), fs=connect_fs(), limits=Limits(seconds=0.003 + turn * 5e-5))
        result = sandbox.exec(loop, names)
        assert result.error is not None
        found.add(_contexts())
        del result
        gc.collect()
        found.add(_contexts())

    assert found == {(None, frozenset(), None)}
