"""The wheels of a site: this project's own, made from the running package, and what others hold.

The package index has another project whose package is called agex, so a wheel's name proves nothing: a file
inside it does, which no other project ships.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.resources
import re
import zipfile
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from agex.errors import StateError

__all__ = ["NAME", "modules_of", "with_own"]

NAME = "agex-py"
"""Of this project's distribution."""
MARKER = "agex/studio/project.txt"
"""Where a wheel of this project has the text that says so."""
_KEPT = ("METADATA", "licenses/LICENSE")
"""Of the installed distribution's own files."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest date of a zip: the same package gives the same bytes."""


def with_own(wheels: Iterable[Path], folder: Path) -> list[Path]:
    """Return wheels with this project's among them: the one that is given, else one made in a folder.

    Args:
        wheels: files, each a wheel.
        folder: where to make it.

    Raises:
        StateError: a file is no wheel, or is another project's of the same name.
    """
    found = sorted(wheels)
    own = [wheel for wheel in found if _is_own(wheel)]
    if len(own) > 1:
        raise StateError(f"{own[0].name} and {own[1].name} are both agex; remove one of them.")
    return found if own else sorted([*found, _pack_own(folder)], key=lambda wheel: wheel.name)


def _is_own(wheel: Path) -> bool:
    """Return whether a wheel is this project's; raise for one that only is called so."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            named = _named(archive)
            marked = MARKER in names and archive.read(MARKER) == _marker()
    except zipfile.BadZipFile:
        raise StateError(f"{wheel} is no wheel: it cannot be read as a zip; remove it.") from None
    name, version = named
    if not marked:
        if name in (NAME, "agex") or any(path.startswith("agex/") for path in names):
            raise StateError(
                f"{wheel} is the package {name} {version} of another project: the index has one of the same "
                "name. Remove the file, and leave agex out of what pip downloads: this command adds its own."
            )
        return False
    if (name, version) != (NAME, _installed().version):
        raise StateError(
            f"{wheel} is {name} {version}, and this command is of {NAME} {_installed().version}. Remove the "
            "file: this command adds its own."
        )
    return True


def _named(archive: zipfile.ZipFile) -> tuple[str, str]:
    """Return the name and the version that a wheel says it has."""
    found = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    if len(found) != 1:
        raise StateError(f"{archive.filename} is no wheel: it has no METADATA; remove it.")
    headers = HeaderParser().parsestr(archive.read(found[0]).decode("utf-8", "replace"))
    return re.sub(r"[-_.]+", "-", headers.get("Name", "")).lower(), headers.get("Version", "")


def _marker() -> bytes:
    return importlib.resources.files("agex.studio").joinpath("project.txt").read_bytes()


def _installed() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(NAME)
    except importlib.metadata.PackageNotFoundError:
        raise StateError(
            "agex is imported here from a folder that is not installed; install it: pip install -e ."
        ) from None


def _pack_own(folder: Path) -> Path:
    """Make the wheel of the running package, and return where it is."""
    distribution = _installed()
    stem = f"{NAME.replace('-', '_')}-{distribution.version}"
    info = f"{stem}.dist-info"
    files = dict(_files(importlib.resources.files("agex"), "agex"))
    for name in _KEPT:
        text = distribution.read_text(name)
        if text is not None:
            files[f"{info}/{name}"] = text.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{name},sha256={_hashed(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    made = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            archive.writestr(entry, data, compress_type=zipfile.ZIP_DEFLATED)
    return made


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files(each, f"{path}/{each.name}")
        elif not each.name.endswith((".pyc", ".pyo")):
            yield f"{path}/{each.name}", each.read_bytes()


def _hashed(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def modules_of(archive: Path) -> set[str]:
    """Return the modules, by dotted name, that a wheel or a zip of modules holds."""
    with zipfile.ZipFile(archive) as opened:
        paths = [PurePosixPath(name) for name in opened.namelist()]
    found = set[str]()
    for path in paths:
        stem, _, kind = path.name.partition(".")
        if not all(part.isidentifier() for part in path.parent.parts):
            continue  # a .dist-info
        if kind == "py" or kind.endswith("so"):
            parts = path.parent.parts if stem == "__init__" else (*path.parent.parts, stem)
            found.update(".".join(parts[: n + 1]) for n in range(len(parts)))
    return found
