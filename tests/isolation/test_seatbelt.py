"""The walls of macOS, as far as they can be looked at from elsewhere: the profile's text, and all around it.

Stopped by: isolation.kernel.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from agex.errors import IsolationUnavailable
from agex.isolation.kernel.executor import SeatbeltExecutor
from agex.isolation.lockdown.namespaces import DEVICES, installation
from agex.isolation.lockdown.seatbelt import profile, restrict
from agex.isolation.process.subprocess_executor import PipedExecutor
from agex.sandbox import Limits, Policy
from agex.testing import check_executor

elsewhere = pytest.mark.skipif(sys.platform == "darwin", reason="says what there is without Seatbelt")


def rules() -> list[str]:
    return profile(installation(), DEVICES).splitlines()


def test_everything_is_denied_that_is_not_allowed():
    assert rules()[:2] == ["(version 1)", "(deny default)"]


def test_the_installation_is_read_and_nothing_else():
    read = [rule for rule in rules() if rule.startswith("(allow file-read* ")]
    wanted = [f'(allow file-read* (subpath "{path}"))' for path in installation()]
    assert read == [*wanted, *(f'(allow file-read* (literal "{path}"))' for path in DEVICES)]


def test_of_folders_above_it_is_known_that_they_are_there():
    text = profile(["/a/b/c"], [])
    seen = [rule for rule in text.splitlines() if "metadata" in rule]
    assert seen == [f'(allow file-read-metadata (literal "{path}"))' for path in ("/", "/a", "/a/b")]


def test_nothing_is_written_connected_started_or_looked_up():
    allowed = {rule.split()[1].rstrip(")") for rule in rules() if rule.startswith("(allow")}
    assert allowed == {"file-read*", "file-read-metadata", "sysctl-read", "signal"}
    for what in ("file-write*", "network*", "process-fork", "process-exec*", "mach-lookup"):
        assert f"(deny {what})" in rules()


def test_a_path_cannot_add_a_rule():
    text = profile(['/a"))(allow network*)("', "/b\\"], [])
    assert '(subpath "/a\\"))(allow network*)(\\"")' in text
    assert '(subpath "/b\\\\")' in text
    for path in ("relative", "/a\nb", "/a\0"):
        with pytest.raises(ValueError, match="cannot stand in a profile"):
            profile([path], [])


@elsewhere
def test_where_there_is_no_seatbelt_nothing_runs():
    with pytest.raises(OSError, match="seatbelt"):
        restrict(installation(), DEVICES)
    with pytest.raises(IsolationUnavailable, match="Seatbelt is part of macOS"):
        SeatbeltExecutor()


class _Walled(PipedExecutor):
    """The executor of macOS, on a system that cannot put up its walls."""

    def _confinement(self, limits):
        return {"readable": installation(), "devices": list(DEVICES)}


@elsewhere
def test_a_profile_that_cannot_be_put_up_is_an_error_and_no_weaker_run():
    executor = _Walled()
    session = executor.session(Policy.default(), Limits(seconds=5.0), {})
    with pytest.raises(IsolationUnavailable, match="could not be confined: OSError: seatbelt"):
        session.open()
    executor.close()


@pytest.mark.slow
def test_an_interpreter_for_each_task_is_a_level():
    check_executor(PipedExecutor)


def test_a_worker_that_hangs_in_c_ends_with_its_host():
    program = (
        "from agex.isolation.process.subprocess_executor import PipedExecutor\n"
        "from agex.sandbox import Limits, Policy\n"
        "executor = PipedExecutor()\n"
        "s = executor.session(Policy.default(), Limits(seconds=60.0), {})\n"
        "s.open()\n"
        "print(s._connection.worker._process.pid, flush=True)\n"
        "s.run('sum(range(10 ** 13))')\n"
    )
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    watcher = int(host.stdout.readline())
    host.kill()
    host.wait()
    host.stdout.close()
    until = time.monotonic() + 10
    while time.monotonic() < until and _group(watcher):
        os.sched_yield()
    left = _group(watcher)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(watcher, signal.SIGKILL)
    assert left is False


def _group(number: int) -> bool:
    """Tell whether a process group has a process that is alive."""
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True
