"""The level ``container``: workers in containers of Docker or podman, through the Docker API.

The image holds the files of registered user modules, and of agex where that is not installed; else only
empty folders. Into them the running interpreter, its installed packages and the shared libraries are
mounted read-only, so that a worker has the modules of the host without a registry or a build. That needs a
daemon on this machine.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import io
import json
import os
import select
import signal
import socket
import struct
import sys
import tarfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agex.errors import IsolationUnavailable
from agex.isolation.executor import Level, Python, Wall
from agex.isolation.lockdown.namespaces import installation
from agex.isolation.process.executor import ProcessExecutor, Saved
from agex.isolation.rpc.module_sources import files_of, is_installed, package_files
from agex.isolation.wire.error_codec import OutOfMemory, ProtocolError, WorkerGone
from agex.isolation.wire.framing import Buffer, Channel, Pipes
from agex.isolation.wire.process_identity import has_ended, this_process
from agex.isolation.worker.environment import (
    PROGRAM,
    import_path,
    worker_environment,
)
from agex.isolation.workspace.directory import (
    TEMPORARY_MB,
    ReportedDirectory,
    WorkerDirectory,
    scratch,
    workspace_path,
)
from agex.sandbox import Limits

if TYPE_CHECKING:
    from agex.files import FileTree

__all__ = ["ContainerExecutor"]

_API = "1.41"
"""The version of the API that podman 4 speaks, too."""
_READY_SECONDS = 60.0
_END_SECONDS = 5.0
_AGAIN_SECONDS = 0.02
_MEMORY_MB = 4096
"""The memory of a worker without a limit: there must be one."""
_BASE_MB = 256
"""For the interpreter and the registered modules."""
_PROCESSES = 64
_FILES = 1024
_NOBODY = "65534:65534"
_LABEL = "agex.worker"
"""The label of containers and images that says which process made them."""
_OWN = "/agex"
"""The folder of the files in the image."""
_TEMPORARY = "/tmp"  # noqa: S108 - of the container
_NOTHING = "ro,size=64k,nosuid,nodev,noexec"
_KILLED = 128 + signal.SIGKILL


class ContainerExecutor(ProcessExecutor):
    """Runs each task's code in a container of its own.

    It has no network, a read-only root, no capabilities, no way to gain privileges, and bounds on memory,
    processes and files; the user is nobody.

    Args:
        url: of the daemon, e.g. ``"unix:///run/podman/podman.sock"``; None for what ``docker`` itself would
            use (``DOCKER_HOST``, else ``/var/run/docker.sock``).

    Raises:
        IsolationUnavailable: the extra ``docker`` is not installed, or there is no daemon.
    """

    level: Level = "container"

    def __init__(self, url: str | None = None) -> None:
        super().__init__()
        self._client, self._address = _connected(url)
        self._walls = self._examined()
        self._images: dict[bytes, str] = {}
        self._lock = threading.Lock()
        self._remove(of_others=True)

    def walls(self) -> tuple[Wall, ...]:
        return self._walls

    def _examined(self) -> tuple[Wall, ...]:
        about = self._client.version()
        engine = next((c["Name"] for c in about.get("Components", []) if "Name" in c), "engine")
        return (
            Wall(name="container", detail=f"{engine} {about.get('Version', '')}".strip()),
            Wall(name="network", detail="none"),
            Wall(name="root", detail="read-only"),
            Wall(name="capabilities", detail="none, no_new_privs, nobody"),
            Wall(name="cgroup", detail="memory, pids"),
        )

    def _launch(
        self,
        saved: Saved,
        limits: Limits,
        about: Mapping[str, Any],
        *,
        has_files: bool,
        python: Python,
        tree: FileTree | None,
    ) -> ContainerWorker:
        memory_mb = limits.memory_mb or _MEMORY_MB
        path = workspace_path(installation())
        directory = ReportedDirectory(tree, path) if tree is not None else None
        place = {"path": path, "temporary": _TEMPORARY} if python == "full" else {}
        writable = _writable(path, scratch(path)["size_mb"] if directory is None else directory.size_mb)
        if not place:
            writable = {}
        files = files_of([*saved.modules, *saved.imports])
        try:
            container = self._created(files, limits, memory_mb, writable)
            worker = ContainerWorker(container, self._address, memory_mb)
        except _errors() as error:
            raise IsolationUnavailable(f"a container cannot be started: {error}") from error
        worker.tell_path([*filter(is_installed, import_path()), f"{_OWN}/modules"])
        worker.channel.send(
            {
                "about": about,
                "modules": list(saved.modules),
                "limits": {"seconds": limits.seconds, "output_chars": limits.output_chars},
                "has_files": has_files,
                "python": python,
                "place": place,
                "level": self.level,
            },
            [saved.data],
        )
        _require_ready(worker)
        worker.directory = directory
        return worker

    def _created(
        self, files: Mapping[str, Path], limits: Limits, memory_mb: int, writable: Mapping[str, str]
    ) -> Any:
        from docker.errors import ImageNotFound

        image = self._image(files)
        try:
            return self._client.containers.create(**self._settings(image, limits, memory_mb, writable))
        except ImageNotFound:  # another process cleaned up
            self._images = {key: each for key, each in self._images.items() if each != image}
            image = self._image(files)
            return self._client.containers.create(**self._settings(image, limits, memory_mb, writable))

    def _settings(
        self, image: str, limits: Limits, memory_mb: int, writable: Mapping[str, str]
    ) -> dict[str, Any]:
        from docker.types import Mount, Ulimit

        mounts = {**{path: path for path in installation()}, f"{_OWN}/python": _executable()}
        return {
            "image": image,
            "command": [f"{_OWN}/python", "-I", "-S", "-c", PROGRAM.format(entry="main")],
            "environment": {**_NO_PROXIES, **worker_environment(), "OPENBLAS_NUM_THREADS": "4"},
            "use_config_proxy": False,
            "hostname": "worker",
            "mounts": [
                *(Mount(there, here, type="bind", read_only=True) for there, here in mounts.items()),
                # podman would put a copy of that file there.
                *(Mount(file, os.devnull, type="bind", read_only=True) for file in _HOST_NAMES),
            ],
            "stdin_open": True,
            # podman's removal stops first, and waits ten seconds for a process that ignores the signal.
            "stop_signal": "SIGKILL",
            "network_mode": "none",
            "read_only": True,
            # podman would put writable memory in these places.
            "tmpfs": {**dict.fromkeys((_TEMPORARY, "/run", "/var/tmp"), _NOTHING), **writable},  # noqa: S108
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "user": _NOBODY,
            "mem_limit": f"{memory_mb + _BASE_MB}m",
            "memswap_limit": f"{memory_mb + _BASE_MB}m",
            "pids_limit": _PROCESSES,
            "shm_size": "64k",
            # Both, or podman refuses: it would raise the other to what this process may not have.
            "ulimits": [
                Ulimit(name="nofile", soft=limits.open_files or _FILES, hard=limits.open_files or _FILES),
                Ulimit(name="nproc", soft=4096, hard=4096),
            ],
            "labels": {_LABEL: this_process()},
        }

    def _image(self, files: Mapping[str, Path]) -> str:
        """Return an image with these files of modules, made when it is first needed."""
        archive = _archive(installation(), {**package_files(), **_read(files)})
        key = hashlib.blake2b(archive).digest()
        with self._lock:
            if key not in self._images:
                told = self._client.api.import_image_from_data(
                    archive, changes=[f"LABEL {_LABEL}={this_process()}"]
                )
                # One JSON object a line; podman tells the image's number in the last, and gives it no name.
                self._images[key] = json.loads(told.strip().splitlines()[-1])["status"]
            return self._images[key]

    def close(self) -> None:
        super().close()
        for thread in list(_removing):
            thread.join()
        if _listens(self._address):
            self._remove(of_others=False)
        self._client.close()

    def _remove(self, *, of_others: bool) -> None:
        """Remove the containers and images of this process, or those that ended processes have left.

        A container of a process that is not seen from here may be in use, if it runs.
        """
        with contextlib.suppress(*_errors()):
            state = {"status": "exited"} if of_others else {}
            for container in self._client.containers.list(all=True, filters={"label": _LABEL, **state}):
                if _is_to_go(container.labels.get(_LABEL, ""), of_others=of_others):
                    container.remove(force=True)
            for image in self._client.images.list(filters={"label": _LABEL}):
                if _is_to_go(image.labels.get(_LABEL, ""), of_others=of_others):
                    with contextlib.suppress(*_errors()):  # one is in use
                        self._client.images.remove(image.id, force=not of_others)


def _is_to_go(label: str, *, of_others: bool) -> bool:
    return has_ended(label) if of_others else label == this_process()


_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
_NO_PROXIES = {each: "" for name in _PROXIES for each in (name, name.upper())}
"""podman would pass the variables of its service, which may hold a password."""
_HOST_NAMES = ("/etc/hosts", "/etc/resolv.conf")


def _writable(path: str, size_mb: int) -> dict[str, str]:
    """Return the file systems in memory that a worker of full Python may write in."""
    return {
        path: f"rw,exec,size={size_mb}m,mode=1777,nosuid,nodev",  # compiled modules are mapped from it
        _TEMPORARY: f"rw,size={TEMPORARY_MB}m,mode=1777,nosuid,nodev,noexec",
    }


def _executable() -> str:
    return str(Path(sys.executable).resolve())


def _read(files: Mapping[str, Path]) -> dict[str, bytes]:
    return {name: file.read_bytes() for name, file in files.items()}


def _archive(folders: Sequence[str], files: Mapping[str, bytes]) -> bytes:
    """Make an image: an empty place for each folder, the links of the system, and files of modules."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        made: set[str] = set()
        for path in folders:
            _place(tar, path, made, is_folder=Path(path).is_dir())
        for link in ("/lib", "/lib64", "/bin"):
            if Path(link).is_symlink() and link not in made:
                _add(tar, link, tarfile.SYMTYPE, made, target=str(Path(link).readlink()))
        for path in (f"{_OWN}/python", *_HOST_NAMES):
            _place(tar, path, made, is_folder=False)
        home = f"home = {Path(sys.base_prefix, 'bin')}\n"  # where the interpreter finds its library from
        _add(tar, f"{_OWN}/pyvenv.cfg", tarfile.REGTYPE, made, content=home.encode())
        _place(tar, f"{_OWN}/modules", made, is_folder=True)
        for name, content in sorted(files.items()):
            path = f"{_OWN}/modules/{name}"
            _place(tar, str(Path(path).parent), made, is_folder=True)
            _add(tar, path, tarfile.REGTYPE, made, content=content)
    return archive.getvalue()


def _place(tar: tarfile.TarFile, path: str, made: set[str], *, is_folder: bool) -> None:
    for parent in reversed(Path(path).parents):
        _add(tar, str(parent), tarfile.DIRTYPE, made)
    _add(tar, path, tarfile.DIRTYPE if is_folder else tarfile.REGTYPE, made)


def _add(
    tar: tarfile.TarFile, path: str, kind: bytes, made: set[str], *, target: str = "", content: bytes = b""
) -> None:
    name = path.strip("/")
    if not name or path in made:
        return
    made.add(path)
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.size = kind, 0o755, target, len(content)
    tar.addfile(info, io.BytesIO(content))


class ContainerWorker:
    """A container with a worker in it, and the connection to its standard input and output."""

    def __init__(self, container: Any, address: str, memory_mb: int) -> None:
        self._container = container
        self._memory_mb = memory_mb
        self._is_killed = False
        self.directory: WorkerDirectory | None = None
        attached = container.attach_socket(params={"stdin": 1, "stdout": 1, "stream": 1})
        self._stream = _Attached(attached)
        self.channel = Channel(self._stream)
        # In a context of its own: a collection may strike while guest code runs, which may start no thread.
        end = contextvars.Context().run
        self._finalizer = weakref.finalize(self, end, _end, self.channel, container, address)
        container.start()

    def interrupt(self) -> None:
        with contextlib.suppress(*_errors()):
            self._container.kill(signal="SIGUSR1")

    def has_ended(self) -> bool:
        return self._stream.has_ended()

    def tell_path(self, path: Sequence[str]) -> None:
        """Send the worker the path of its modules, which it waits for first."""
        self._stream.write([json.dumps(path).encode() + b"\n"], None, time.monotonic() + _READY_SECONDS)

    def terminate(self) -> None:
        self._is_killed = True
        with contextlib.suppress(*_errors()):
            self._container.kill(signal="SIGKILL")

    def kill(self) -> str:
        told = "killed"
        with contextlib.suppress(*_errors()):
            state = self._state()
            if not state.get("Running") and not self._is_killed:
                told = self._told(state.get("ExitCode"))
        self.close()
        return told

    def _state(self) -> Mapping[str, Any]:
        """Return the state of the container; where the other end hung up, its final state.

        The state is polled: podman 4 may answer ``wait`` only once the container is removed.
        """
        until = time.monotonic() + _END_SECONDS
        while True:
            self._container.reload()
            state: Mapping[str, Any] = self._container.attrs.get("State", {})
            if not (state.get("Running") and self._stream.has_ended()) or time.monotonic() > until:
                return state
            time.sleep(_AGAIN_SECONDS)

    def _told(self, status: Any) -> str:
        """Say how it ended by itself: only the kernel kills a process in there, for its memory."""
        if status == _KILLED:
            return OutOfMemory(f"it took more than {self._memory_mb} MiB of memory")
        return f"exit status {status}"

    def close(self) -> None:
        self._finalizer()


def _end(channel: Channel, container: Any, address: str) -> None:
    """Hang up, and have the container removed: that takes a third of a second, and nobody waits for it."""
    channel.close()
    thread = threading.Thread(target=_remove, args=(container, address), name="agex container", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends, and Python 3.12 starts no thread any more
        _remove(container, address)
    else:
        _removing.add(thread)


def _remove(container: Any, address: str) -> None:
    if not _listens(address):
        return
    with contextlib.suppress(*_errors()):
        container.remove(force=True)


_removing: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


class _Attached:
    """The bytes of an attached container: input as it is, output in frames of the Docker API."""

    shares_memory = False

    def __init__(self, attached: Any) -> None:
        self._pipes = Pipes(attached.fileno(), attached.fileno())
        self._attached = attached
        self._left = 0

    def read_into(self, view: memoryview, deadline: float | None) -> int:
        while not self._left:
            head = self._head(deadline)
            if head is None:
                return 0
            kind, self._left = struct.unpack(">B3xI", head)
            if kind != 1 and self._left:  # standard error: not part of the protocol
                self._skip(deadline)
        count = self._pipes.read_into(view[: min(view.nbytes, self._left)], deadline)
        self._left -= count
        return count

    def _head(self, deadline: float | None) -> bytes | None:
        head = bytearray(8)
        at = 0
        while at < len(head):
            count = self._pipes.read_into(memoryview(head)[at:], deadline)
            if not count:
                return None
            at += count
        return bytes(head)

    def _skip(self, deadline: float | None) -> None:
        scratch = memoryview(bytearray(65536))
        while self._left:
            count = self._pipes.read_into(scratch[: min(65536, self._left)], deadline)
            if not count:
                raise WorkerGone("the container ended")
            self._left -= count

    def write(self, parts: Sequence[Buffer], descriptor: int | None, deadline: float | None) -> None:
        self._pipes.write(parts, None, deadline)

    def taken_descriptor(self) -> int | None:
        return None

    def has_ended(self) -> bool:
        """Return whether the other end hung up."""
        poll = select.poll()
        poll.register(self._attached.fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))

    def close(self) -> None:
        # The SDK keeps the response with the reader it gives; closed after it, it would flush what is closed.
        response = getattr(self._attached, "_response", None)
        under = getattr(self._attached, "_sock", None)  # of the reader, which does not close it
        if response is not None:
            response.close()
        self._attached.close()
        if under is not None:
            under.close()


def _connected(url: str | None) -> tuple[Any, str]:
    """Return a client of the daemon, and its address."""
    try:
        import docker
        from docker.constants import DEFAULT_UNIX_SOCKET
        from docker.utils import kwargs_from_env
    except ImportError as error:
        raise IsolationUnavailable(
            "isolation='container' needs the extra docker: pip install 'agex-py[docker]'"
        ) from error
    settings = {"base_url": url} if url is not None else kwargs_from_env()
    address = settings.setdefault("base_url", DEFAULT_UNIX_SOCKET)
    try:
        _require_listener(address)
        client = docker.DockerClient(**settings, version=_API)
        if address.removeprefix("http+").startswith("unix:"):
            # No proxy leads to a socket. Looking for one would read the environment, which the program may be
            # changing just then, in the thread that removes containers.
            client.api.trust_env = False
        client.ping()
    except Exception as error:
        raise IsolationUnavailable(
            f"isolation='container' needs a running Docker or podman service: {error}. "
            "Start one (for podman: podman system service) and set DOCKER_HOST to its socket"
        ) from error
    return client, address


def _require_listener(address: str) -> None:
    """Require a listener: without one the SDK would leave a socket open."""
    path = address.removeprefix("http+").removeprefix("unix:")
    if path != address.removeprefix("http+"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect("/" + path.lstrip("/"))


def _listens(address: str) -> bool:
    try:
        _require_listener(address)
    except OSError:
        return False
    return True


def _errors() -> tuple[type[Exception], ...]:
    import docker.errors
    import requests.exceptions

    return (docker.errors.DockerException, requests.exceptions.RequestException, OSError)


def _require_ready(worker: ContainerWorker) -> None:
    try:
        frame = worker.channel.receive(deadline=time.monotonic() + _READY_SECONDS)
    except (WorkerGone, TimeoutError, ProtocolError) as error:
        raise IsolationUnavailable(
            f"a container's worker was not ready: {error} ({worker.kill()})"
        ) from error
    if frame.kind != "ready":
        worker.close()
        raise IsolationUnavailable(f"a container's worker cannot be started: {frame.header.get('why')}")
