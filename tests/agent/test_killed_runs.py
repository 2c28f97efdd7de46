"""Runs whose process is killed with -9 in the middle, and that are resumed until they are done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS = os.environ.get("AGEX_KILLED_RUNS", "3")


def test_each_call_to_the_world_was_made_once_or_is_reported_in_doubt():
    command = [sys.executable, "-m", "bench.state.kills", "--runs", RUNS, "--workers", "2", "--pause", "0.05"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["once"] + found["in doubt"] == 3 * int(RUNS)
