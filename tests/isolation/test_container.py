"""Workers in containers: the same results, and the same raw hostile Python without a way out."""

from __future__ import annotations

import os
import socket
import time

import podman
import pytest
from hostile import raw

from agex import Agent
from agex.errors import IsolationUnavailable
from agex.files import connect_fs
from agex.isolation import ContainerExecutor
from agex.sandbox import Limits, Policy
from agex.shell import TerminalCommand
from agex.testing import ScriptedModel, check_executor, python_action

pytestmark = [
    pytest.mark.skipif(bool(podman.missing()), reason=f"no container engine: {podman.missing()}"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # the Docker SDK's sockets
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with podman.service(tmp_path_factory.mktemp("podman")) as found:
        yield found


@pytest.fixture(scope="module")
def container(address):
    made = ContainerExecutor(address)
    yield made
    made.close()


def attempt(executor, function, *args, **limits):
    session = executor.session(raw(function), Limits(**{"seconds": 10.0, **limits}), {"args": list(args)})
    try:
        result = session.run("Raw.go(*args)")
        return result.echo if result.error is None else f"{type(result.error).__name__}: {result.error}"
    finally:
        session.close()


def test_a_container_is_a_level(address):
    check_executor(lambda: ContainerExecutor(address))


def test_no_file_of_the_host_can_be_read_or_written(container, tmp_path):
    (tmp_path / "secret").write_text("12345")

    def reach(folder):
        failed = []
        for path, mode in (
            (f"{folder}/secret", "r"),
            (f"{folder}/new", "w"),
            ("/etc/shadow", "r"),
            ("/x", "w"),
            ("/tmp/x", "w"),
            ("/run/x", "w"),
            ("/var/tmp/x", "w"),
        ):
            try:
                with open(path, mode):
                    pass
            except OSError:
                failed.append(path)
        return len(failed)

    assert attempt(container, reach, str(tmp_path)) == "7"


def test_the_network_is_not_reached(container):
    listener = socket.create_server(("127.0.0.1", 0))

    def connect(port):
        import _socket

        sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        return sock.connect(("127.0.0.1", port))

    assert "Error" in attempt(container, connect, listener.getsockname()[1])
    listener.close()


def test_it_is_nobody_without_rights_and_sees_no_process_of_the_host(container):
    def rights():
        with open("/proc/self/status") as file:
            status = dict(line.rstrip().split(":\t", 1) for line in file if ":\t" in line)
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return os.getuid(), int(status["CapEff"], 16), status["NoNewPrivs"], len(pids) < 10

    assert attempt(container, rights) == "(65534, 0, '1', True)"


def test_processes_end(container):
    def fork():
        count = 0
        try:
            while count < 500:
                if os.fork() == 0:
                    import signal

                    signal.pause()
                count += 1
        except OSError:
            return count < 100
        return count

    assert attempt(container, fork) == "True"


def test_memory_ends_and_the_next_run_works(container):
    def take():
        return len(bytearray(3 << 30))

    session = container.session(raw(take), Limits(seconds=20.0, memory_mb=256), {"rows": [1]})
    assert session.run("Raw.go()").error is not None
    assert session.run("rows").echo == "[1]"
    session.close()


def test_a_worker_that_does_not_end_is_killed(container):
    session = container.session(Policy.default(), Limits(seconds=0.3), {})
    session.open()
    started = time.monotonic()
    assert "was killed" in str(session.run("sum(range(10 ** 13))").error)
    assert time.monotonic() - started < 5
    session.close()


def test_shell_commands_run_in_it_and_those_of_the_host_here(container):
    session = container.session(Policy.default(), Limits(seconds=10.0), {}, files=connect_fs())
    given = TerminalCommand(name="shout", handler=lambda context: context.stdin.read().upper())
    result = session.run_script("echo a > f; python -c 'print(open(\"f\").read())' | shout", {"shout": given})
    assert (result.error, result.value.text) == (None, "A\n\n")
    session.close()


def test_code_in_it_builds_agents(address, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", address)
    code = (
        "def twice(x): return 2 * x\na = Agent()\na.fn(twice)\n"
        "@a.task\ndef t(x: int) -> list[int]:\n    ...\ntask_success(t(4))"
    )
    agent = Agent(
        model=ScriptedModel([[python_action(code)], [python_action("task_success([twice(x)])")]]),
        isolation="container",
    )
    agent.cls(Agent)

    @agent.task
    def work() -> list[int]: ...

    assert work() == [8]


def test_without_a_service_the_level_is_refused_by_name(tmp_path):
    with pytest.raises(IsolationUnavailable, match="needs a running Docker or podman service"):
        ContainerExecutor(f"unix://{tmp_path}/none.sock")
