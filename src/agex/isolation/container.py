"""The level ``container``: workers in containers of Docker or podman, through the Docker API.

The image holds nothing but empty folders. Into them the running interpreter, its installed
packages and the shared libraries are mounted read-only, so that a worker has the very modules
of the host without a registry, a build or a copy. That needs a daemon on this machine.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import json
import os
import socket
import struct
import sys
import tarfile
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agex.errors import IsolationUnavailable
from agex.isolation.base import Level, Wall
from agex.isolation.faults import ProtocolError, WorkerGone
from agex.isolation.frames import Buffer, Channel, Pipes
from agex.isolation.kernel.namespaces import installation
from agex.isolation.process import ProcessExecutor, Saved
from agex.sandbox import Limits

__all__ = ["ContainerExecutor"]

_API = "1.41"
"""What podman 4 speaks, too."""
_READY_SECONDS = 60.0
_MEMORY_MB = 4096
"""What a worker may have where no limit is given: there must be one."""
_BASE_MB = 256
"""For the interpreter and the registered modules."""
_PROCESSES = 64
_FILES = 1024
_NOBODY = "65534:65534"
_LABEL = "agex.worker"
_PROGRAM = "import sys; sys.path[:] = {path!r}; from agex.isolation.supervised import main; main()"


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
        self._images: dict[str, str] = {}
        self._lock = threading.Lock()

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
        self, saved: Saved, limits: Limits, about: Mapping[str, Any], *, has_files: bool
    ) -> ContainerWorker:
        shown = _shown(saved.modules)
        try:
            container = self._client.containers.create(**self._settings(shown, limits))
            worker = ContainerWorker(container, self._address)
        except _errors() as error:
            raise IsolationUnavailable(f"a container cannot be started: {error}") from error
        worker.channel.send(
            {
                "about": about,
                "modules": list(saved.modules),
                "limits": {"seconds": limits.seconds, "output_chars": limits.output_chars},
                "has_files": has_files,
            },
            [saved.data],
        )
        _require_ready(worker)
        return worker

    def _settings(self, shown: Sequence[str], limits: Limits) -> dict[str, Any]:
        from docker.types import Mount, Ulimit

        executable = str(Path(sys.executable).resolve())
        program = _PROGRAM.format(path=[path for path in sys.path if path])
        paths = [*shown, executable]
        return {
            "image": self._image(paths),
            "command": [executable, "-I", "-S", "-c", program],
            "environment": {"PYTHONHOME": sys.base_prefix, "OPENBLAS_NUM_THREADS": "4"},
            "mounts": [Mount(path, path, type="bind", read_only=True) for path in paths],
            "stdin_open": True,
            # podman's removal stops first, and gives what does not listen to another signal ten seconds.
            "stop_signal": "SIGKILL",
            "network_mode": "none",
            "read_only": True,
            # podman would put writable memory in these places.
            "tmpfs": dict.fromkeys(("/tmp", "/run", "/var/tmp"), "ro,size=64k,nosuid,nodev,noexec"),  # noqa: S108
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "user": _NOBODY,
            "mem_limit": f"{(limits.memory_mb or _MEMORY_MB) + _BASE_MB}m",
            "memswap_limit": f"{(limits.memory_mb or _MEMORY_MB) + _BASE_MB}m",
            "pids_limit": _PROCESSES,
            "shm_size": "64k",
            # Both, or podman refuses: it would raise the other to what this process may not have.
            "ulimits": [
                Ulimit(name="nofile", soft=limits.open_files or _FILES, hard=limits.open_files or _FILES),
                Ulimit(name="nproc", soft=4096, hard=4096),
            ],
            "labels": {_LABEL: str(os.getpid())},
        }

    def _image(self, paths: Sequence[str]) -> str:
        """Return an image with the places of these paths, made when it is first needed."""
        key = "\n".join(paths)
        with self._lock:
            if key not in self._images:
                told = self._client.api.import_image_from_data(_empty(paths))
                # One JSON object a line; podman tells the image's number in the last, and gives it no name.
                self._images[key] = json.loads(told.strip().splitlines()[-1])["status"]
            return self._images[key]

    def close(self) -> None:
        super().close()
        for thread in list(_removing):
            thread.join()
        if _listens(self._address):
            self._clean_up()
        self._client.close()

    def _clean_up(self) -> None:
        """Remove the containers that this process has left, and the images."""
        with contextlib.suppress(*_errors()):
            own = {"label": f"{_LABEL}={os.getpid()}"}
            for container in self._client.containers.list(all=True, filters=own):
                container.remove(force=True)
            for image in self._images.values():
                self._client.images.remove(image, force=True)


def _shown(modules: Iterable[str]) -> list[str]:
    """Return what a worker sees of the host: the installation, and the packages of registered modules."""
    found = set(installation())
    for name in (*modules, "agex"):
        file = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None)
        if file is not None:
            path = Path(file).resolve()
            found.add(str(path.parent if path.name.startswith("__init__.") else path))
    return sorted(path for path in found if not any(path.startswith(f"{other}/") for other in found))


def _empty(paths: Sequence[str]) -> bytes:
    """Make the image as an archive: a folder or an empty file for each path, and the links of the system."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        made: set[str] = set()
        for path in paths:
            for parent in reversed(Path(path).parents):
                _add(tar, str(parent), tarfile.DIRTYPE, made)
            _add(tar, path, tarfile.DIRTYPE if Path(path).is_dir() else tarfile.REGTYPE, made)
        for link in ("/lib", "/lib64", "/bin"):
            if Path(link).is_symlink() and link not in made:
                _add(tar, link, tarfile.SYMTYPE, made, target=str(Path(link).readlink()))
    return archive.getvalue()


def _add(tar: tarfile.TarFile, path: str, kind: bytes, made: set[str], *, target: str = "") -> None:
    name = path.strip("/")
    if not name or path in made:
        return
    made.add(path)
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, 0o755, target
    tar.addfile(info)


class ContainerWorker:
    """A container with a worker in it, and the connection to its standard input and output."""

    def __init__(self, container: Any, address: str) -> None:
        self._container = container
        attached = container.attach_socket(params={"stdin": 1, "stdout": 1, "stream": 1})
        self.channel = Channel(_Attached(attached))
        # In a context of its own: a collection may strike while guest code runs, which may start no thread.
        end = contextvars.Context().run
        self._finalizer = weakref.finalize(self, end, _end, self.channel, container, address)
        container.start()

    def interrupt(self) -> None:
        with contextlib.suppress(*_errors()):
            self._container.kill(signal="SIGUSR1")

    def terminate(self) -> None:
        with contextlib.suppress(*_errors()):
            self._container.kill(signal="SIGKILL")

    def kill(self) -> str:
        told = "killed"
        with contextlib.suppress(*_errors()):
            self._container.reload()
            state = self._container.attrs.get("State", {})
            if not state.get("Running"):
                told = f"exit status {state.get('ExitCode')}"
        self.close()
        return told

    def close(self) -> None:
        self._finalizer()


def _end(channel: Channel, container: Any, address: str) -> None:
    """Hang up, and have the container removed: that takes a third of a second, and nobody waits for it."""
    channel.close()
    thread = threading.Thread(target=_remove, args=(container, address), name="agex container", daemon=True)
    _removing.add(thread)
    thread.start()


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
            if kind != 1 and self._left:  # standard error: not ours
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
            "isolation='container' needs the extra docker: pip install 'agex[docker]'"
        ) from error
    settings = {"base_url": url} if url is not None else kwargs_from_env()
    address = settings.setdefault("base_url", DEFAULT_UNIX_SOCKET)
    try:
        _require_listener(address)
        client = docker.DockerClient(**settings, version=_API)
        client.ping()
    except Exception as error:
        raise IsolationUnavailable(
            f"isolation='container' needs a running Docker or podman service: {error}. "
            "Start one (for podman: podman system service) and set DOCKER_HOST to its socket"
        ) from error
    return client, address


def _require_listener(address: str) -> None:
    """Look whether somebody listens: the SDK would leave a socket open where nobody does."""
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
