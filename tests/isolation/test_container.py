"""Workers in containers: the same results, and the same raw hostile Python without a way out.

Stopped by: isolation.container.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import podman
import pytest
from hostile import attempt, raw

from agex import Agent
from agex.cli.isolation_attempts import try_level
from agex.errors import EvalError, IsolationUnavailable
from agex.files import connect_fs
from agex.isolation import ContainerExecutor
from agex.isolation.container.executor import _removing
from agex.isolation.lockdown.namespaces import installation
from agex.isolation.wire.process_identity import this_process
from agex.sandbox import Limits, Policy
from agex.shell import TerminalCommand
from agex.testing import ScriptedModel, check_executor, python_action

pytestmark = [
    pytest.mark.skipif(bool(podman.missing()), reason=f"no container engine: {podman.missing()}"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # the Docker SDK's sockets
]

CANARY = "canary-of-the-host-7391"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with podman.service(tmp_path_factory.mktemp("podman")) as found:
        yield found


@pytest.fixture(scope="module")
def container(address):
    made = ContainerExecutor(address)
    yield made
    made.close()


def test_a_container_is_a_level(address):
    check_executor(lambda: ContainerExecutor(address))


def test_full_python_in_a_container_is_a_level(address):
    check_executor(lambda: ContainerExecutor(address), python="full")


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


def take():
    return len(bytearray(3 << 30))


def test_memory_ends_is_told_as_memory_and_the_next_run_works(container):
    session = container.session(raw(take), Limits(seconds=20.0, memory_mb=256), {"rows": [1]})
    error = session.run("Raw.go()").error
    assert type(error) is EvalError
    assert type(error.__cause__) is MemoryError
    assert "MemoryError" in str(error)
    assert "256 MiB" in str(error)
    assert session.run("rows").echo == "[1]"
    session.close()


def test_a_worker_that_ends_by_itself_is_not_told_as_memory(container):
    session = container.session(raw(lambda: os._exit(3)), Limits(seconds=20.0), {})
    error = session.run("Raw.go()").error
    assert "exit status 3" in str(error)
    assert error.__cause__ is None
    session.close()


# -- surroundings ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told(address):
    """An executor whose host and whose service have a canary in each of their surroundings."""
    patch = pytest.MonkeyPatch()
    for name in ("API_KEY", "HTTP_PROXY", "https_proxy", "PATH", "LC_SECRET"):
        patch.setenv(name, f"{os.environ.get(name, '')}:/{CANARY}")
    patch.setenv("TZ", "Asia/Kathmandu")
    patch.syspath_prepend(f"/{CANARY}")
    made = ContainerExecutor(address)
    yield made
    patch.undo()
    made.close()


def surroundings():
    found = [dict(os.environ), sys.argv, sys.orig_argv, sys.path, os.getcwd(), socket.gethostname()]
    for name in (
        "/proc/1/environ",
        "/proc/1/cmdline",
        "/proc/self/environ",
        "/etc/hosts",
        "/etc/resolv.conf",
    ):
        try:
            with open(name) as file:
                found.append(file.read())
        except OSError as error:
            found.append(type(error).__name__)
    return found


def test_it_is_told_nothing_of_its_host_but_locale_and_time_zone(told):
    found = attempt(told, surroundings)
    assert CANARY not in found
    assert "API_KEY" not in found
    assert "Asia/Kathmandu" in found
    assert str(Path(__file__).parents[2]) + "/src" not in found
    assert os.uname().nodename not in found


def test_the_proxies_of_the_service_are_not_given_on(tmp_path, monkeypatch):
    for name in ("HTTP_PROXY", "https_proxy", "NO_PROXY", "ftp_proxy"):
        monkeypatch.setenv(name, f"http://user:{CANARY}@proxy:1")
    with podman.service(tmp_path) as own:
        executor = ContainerExecutor(own)
        assert CANARY not in attempt(executor, surroundings)
        executor.close()


def test_what_the_daemon_is_told_names_no_folder_of_the_user(container, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    session = container.session(Policy.default(), Limits(seconds=5.0), {})
    session.open()
    about = session._connection.worker._container.client.api.inspect_container(
        session._connection.worker._container.id
    )
    assert str(tmp_path) not in str(about)
    assert "python" in about["Path"]
    assert list(about["Config"]["Labels"].values()) == [this_process()]
    mounted = {each["Source"] for each in about["Mounts"] if each["Type"] == "bind"}
    allowed = {*installation(), os.path.realpath(sys.executable), os.devnull}
    assert mounted <= allowed
    session.close()


def test_what_ended_hosts_have_left_is_removed_at_the_next_start(container, address):
    program = f"""
import os, sys
sys.path.append({str(Path(__file__).parent)!r})
from agex.isolation import ContainerExecutor
from agex.isolation.container.executor import _removing
from agex.isolation.wire.process_identity import this_process
from agex.isolation.lockdown.namespaces import installation
from agex.sandbox import Limits, Policy
executor = ContainerExecutor({address!r})
session = executor.session(Policy.default(), Limits(seconds=5.0), {{}})
session.open()
print(session._connection.worker._container.id, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    client = container._client
    (own,) = [one for one in everything(client) if one.id == done.stdout.strip()]
    label = own.labels["agex.worker"]
    own.wait()
    assert [each for each in client.images.list() if each.labels.get("agex.worker") == label]
    live = container.session(Policy.default(), Limits(seconds=5.0), {"x": 1})
    live.open()
    ContainerExecutor(address).close()
    assert done.stdout.strip() not in [one.id for one in everything(client)]
    assert not [each for each in client.images.list() if each.labels.get("agex.worker") == label]


def test_an_image_that_is_gone_is_made_again(container):
    def image():
        session = container.session(Policy.default(), Limits(seconds=5.0), {"x": 1})
        assert session.run("x").echo == "1"
        found = session._connection.worker._container.image.id
        session.close()
        for thread in list(_removing):
            thread.join()
        return found

    container._client.images.remove(image(), force=True)
    assert image()


def everything(client):
    return client.containers.list(all=True)


def test_its_row_of_the_doctor_says_that_processes_are_bounded(address, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", address)
    found = try_level("container")
    assert found["stopped"].pop("start a process") == "bounded"
    assert set(found["stopped"].values()) == {True}


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
