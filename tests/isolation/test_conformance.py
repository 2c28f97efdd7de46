"""Every level runs code as this process does."""

from __future__ import annotations

from agex.isolation import InProcessExecutor, ProcessExecutor
from agex.testing import check_executor


def test_this_process_is_a_level():
    check_executor(InProcessExecutor)


def test_a_process_is_a_level():
    check_executor(ProcessExecutor)
