"""Full Python that attacks its host, its level and its neighbours.

Stopped by: isolation.worker.connection, isolation.wire, isolation.kernel.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from agex.errors import EvalError, SandboxError
from agex.isolation import executor_of
from agex.isolation.kernel import missing
from agex.isolation.worker.host_session import RemoteSession
from agex.sandbox import Limits, Policy

needs_kernel = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold: {missing()}")


@pytest.fixture(params=["process", pytest.param("kernel", marks=needs_kernel)])
def level(request: pytest.FixtureRequest) -> str:
    return request.param


def opened(level: Any, policy: Policy | None = None, seconds: float = 5.0) -> RemoteSession:
    session: Any = executor_of(level).session(
        policy or Policy.default(), Limits(seconds=seconds), {"rows": [1]}, python="full"
    )
    return session


@pytest.fixture
def session(level: str) -> Iterator[RemoteSession]:
    made = opened(level)
    yield made
    made.close()


@pytest.fixture
def walled() -> Iterator[RemoteSession]:
    made = opened("kernel")
    yield made
    made.close()


CHANNEL = (
    "import gc\n"
    "channel = next(each for each in gc.get_objects() if type(each).__name__ == 'WorkerChannel')._channel\n"
)


# -- the level says what it refuses ----------------------------------------------------------------


@needs_kernel
@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import os\nos.fork()", id="fork"),
        pytest.param("import subprocess\nsubprocess.run(['true'])", id="subprocess"),
        pytest.param("import os\nos.system('true')", id="system"),
        pytest.param("import os\nos.posix_spawn('/bin/true', ['true'], {})", id="posix_spawn"),
        pytest.param("import multiprocessing\nmultiprocessing.Process(target=print).start()", id="Process"),
        pytest.param("import multiprocessing\nmultiprocessing.Lock()", id="Lock"),
        pytest.param("import multiprocessing\nmultiprocessing.Pool(2)", id="Pool"),
        pytest.param(
            "from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor(1).submit(len, '').result()",
            id="ProcessPoolExecutor",
        ),
    ],
)
def test_a_process_is_refused_with_the_name_of_the_level(walled, source):
    error = walled.run(source).error
    assert isinstance(error, OSError)
    assert "the level 'kernel' allows no processes" in str(error)


@needs_kernel
@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import socket\nsocket.socket()", id="socket"),
        pytest.param("import socket\nsocket.create_connection(('127.0.0.1', 80))", id="connection"),
        pytest.param("import urllib.request\nurllib.request.urlopen('http://127.0.0.1/')", id="urllib"),
    ],
)
def test_the_network_is_refused_with_the_name_of_the_level(walled, source):
    error = walled.run(source).error
    assert isinstance(error, OSError)
    assert "the level 'kernel' allows no network" in str(error)


@needs_kernel
@pytest.mark.parametrize(
    "source",
    [
        pytest.param("open('/etc/shadow').read()", id="a file"),
        pytest.param("import os\nos.kill(1, 9)", id="another process"),
        pytest.param("import os\nos.kill(os.getppid(), 9)", id="its parent"),
        pytest.param("import _posixsubprocess, os\nos.execv('/bin/true', ['true'])", id="exec"),
        pytest.param("import _socket\n_socket.socket()", id="a raw socket"),
        pytest.param(
            "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.fork() < 0: raise OSError(ctypes.get_errno(), '')",
            id="fork in C",
        ),
        pytest.param("import os\nos.setuid(0)", id="rights"),
    ],
)
def test_the_kernel_holds_without_guards(walled, source):
    assert isinstance(walled.run(source).error, OSError)


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("{'k': 'done', 'stopped': True}, [b'', b'', b'']", id="an ending nobody called"),
        pytest.param(
            "{'k': 'done', 'error': None, 'v': 1}, [b'', b'', b'', b'cos\\nsystem\\n(S\"true\"\\ntR.']",
            id="a pickle",
        ),
        pytest.param(
            "{'k': 'ask', 'what': 'call', 'of': 'nothing', 'v': 0}", id="a call of what was not given"
        ),
        pytest.param("{'k': 'ask', 'what': 'command', 'name': 'ls', 'v': 0}", id="a command"),
        pytest.param("{'k': 'ready'}", id="a word out of turn"),
    ],
)
def test_a_forged_message_ends_the_worker_and_nothing_else(session, message):
    result = session.run(f"{CHANNEL}channel.send({message})\nimport time\ntime.sleep(2)")
    assert isinstance(result.error, EvalError)
    assert result.stopped is None
    assert session.run("rows").echo == "[1]"


def test_a_closed_connection_ends_the_worker_and_nothing_else(session):
    result = session.run("import os\nos.closerange(0, 100)")
    assert isinstance(result.error, EvalError)
    assert session.run("rows").echo == "[1]"


def test_an_exit_of_the_process_ends_the_worker_and_nothing_else(session):
    result = session.run("import os\nos._exit(0)")
    assert "the process that ran the code ended" in str(result.error)
    assert session.run("rows").echo == "[1]"


def test_names_that_no_variable_can_have_stay_in_the_worker(session):
    session.run("globals().update({'a b': 1, 'x' * 10_000: 2, 'é': 3, 'import os': 4})\ny = 5")
    assert sorted(session.namespace) == ["rows", "y", "é"]


# -- neighbours ------------------------------------------------------------------------------------


def test_what_code_changes_in_its_interpreter_is_gone_in_the_next_worker(level):
    spoiling = (
        "import math, builtins, sys, json\nmath.pi = 3\nbuiltins.len = lambda _: 7\njson.loads = None\n"
        "import agex.values, agex.isolation.worker.server as s\ns.WorkerServer._run = None\n"
        "sys.modules['random'] = None\nimport os\nos.environ['SPOILED'] = 'yes'"
    )
    spoiled = opened(level)
    spoiled.run(spoiling)
    spoiled.close()
    fresh = opened(level)
    try:
        source = "import math, json, random, os\nmath.pi > 3.1, len('a'), json.loads('1'), os.environ.get('SPOILED')"
        assert fresh.run(source).echo == "(True, 1, 1, None)"
    finally:
        fresh.close()


def test_a_guarded_worker_beside_it_is_guarded(level):
    first = opened(level)
    first.run("1")
    guarded: Any = executor_of(level).session(Policy.default(), Limits(), {}, python="guarded")
    try:
        assert isinstance(guarded.run("import ctypes").error, SandboxError)
        assert isinstance(guarded.run("().__class__.__base__.__subclasses__()").error, SandboxError)
    finally:
        first.close()
        guarded.close()


def test_a_forked_process_does_not_answer_in_place_of_its_parent():
    session = opened("process")
    try:
        source = "import os\npid = os.fork()\nx = 'child' if pid == 0 else 'parent'\nx"
        for _ in range(5):
            assert session.run(source).echo == "'parent'"
        assert session.run("x").echo == "'parent'"
    finally:
        session.close()


def test_processes_that_code_starts_end_with_it():
    session = opened("process")
    started = session.run("import subprocess\np = subprocess.Popen(['sleep', '600'])\np.pid").echo
    assert started is not None
    pidfd = os.pidfd_open(int(started))
    session.close()
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        assert poll.poll(5_000)
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)


# -- threads that an action leaves -----------------------------------------------------------------


def test_a_thread_that_an_action_left_cannot_ask_the_host_between_two(level):
    calls: list[int] = []
    policy = Policy.default()
    policy.fn(calls.append, name="note")
    session = opened(level, policy)
    try:
        session.run(
            "import threading, time\nerrors = []\ndef late():\n    while not errors:\n        try:\n"
            "            note(1)\n        except Exception as error:\n            errors.append(type(error).__name__)\n"
            "            print('late')\nt = threading.Thread(target=late)\nt.start()"
        )
        assert session.run("t.join()\nerrors").echo == "['AttributeError']"
        assert session.run("1 + 1").echo == "2"
    finally:
        session.close()
