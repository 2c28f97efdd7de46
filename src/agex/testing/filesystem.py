"""The conformance suite of file systems: the behaviour that agents rely on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["check_filesystem"]

_AT = "/agex_conformance"
_OUTSIDE = ("../../../../../../etc/passwd", "/../etc/passwd", "/proc/self/environ", "a/../../../etc/passwd")


def check_filesystem(fs: Any) -> None:
    """Prove a file system: monkeyfs's and termish's own suites, and what a workspace promises beyond.

    Args:
        fs: an empty one; what is written is removed again.

    Raises:
        AssertionError: with what is wrong, at the first thing that is.
    """
    import monkeyfs
    import termish.fs

    monkeyfs.check_filesystem(fs)
    termish.fs.check_filesystem(fs)
    fs.makedirs(_AT)
    try:
        for check in (_stays_inside, _refuses_links, _writes_whole, _keeps_what_is_refused, _names_any_text):
            check(fs)
    finally:
        _remove_all(fs, _AT)


def _require(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _raises(kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


def _stays_inside(fs: Any) -> None:
    for path in _OUTSIDE:
        _require(_raises(OSError, partial(fs.read, path)), f"read({path!r}) must not find the host's file")
    _require(fs.realpath("/../..") == "/", "'..' above the root must stay at the root")
    _require(
        _raises(ValueError, lambda: fs.read(f"{_AT}/a\0b")),
        "a null in a path must raise ValueError, as in open()",
    )


def _refuses_links(fs: Any) -> None:
    for make in ("symlink", "link"):
        method = getattr(fs, make, None)
        _require(
            method is None or _raises(OSError, partial(method, "/etc/passwd", f"{_AT}/link")),
            f"{make}() must be refused: a link may lead out",
        )


def _writes_whole(fs: Any) -> None:
    path = f"{_AT}/whole"
    fs.write(path, b"1" * 10_000)
    fs.write(path, b"2")
    _require(fs.read(path) == b"2", "write() must replace the whole file")
    fs.write(path, b"3", mode="a")
    _require(fs.read(path) == b"23", "write(mode='a') must add to the end")


def _keeps_what_is_refused(fs: Any) -> None:
    path = f"{_AT}/kept"
    fs.write(path, b"kept")
    fs.makedirs(f"{_AT}/directory")
    _require(
        _raises(OSError, lambda: fs.rename(path, f"{_AT}/directory/missing/kept")),
        "rename() into a directory that is not there must raise OSError",
    )
    _require(fs.read(path) == b"kept", "a rename that was refused must leave the file")
    fs.write(f"{_AT}/directory/inner", b"")
    _require(
        _raises(OSError, lambda: fs.rmdir(f"{_AT}/directory")), "rmdir() must refuse a directory with files"
    )


def _names_any_text(fs: Any) -> None:
    for name in ("é ü", "a\nb", "名前", "-rf", "~", "a'b\"c", "%2e%2e"):
        path = f"{_AT}/names/{name}"
        fs.makedirs(f"{_AT}/names")
        fs.write(path, name.encode())
        _require(name in fs.list(f"{_AT}/names"), f"a file must be listed by its name, {name!r}")
        _require(fs.read(path) == name.encode(), f"a file must be read by its name, {name!r}")
    _require(
        _raises((OSError, ValueError), lambda: fs.write(f"{_AT}/\udc80", b"")),
        "a name that is no text must be refused",
    )


def _remove_all(fs: Any, directory: str) -> None:
    for name in fs.list(directory):
        path = f"{directory}/{name}"
        if fs.isdir(path):
            _remove_all(fs, path)
        else:
            fs.remove(path)
    fs.rmdir(directory)
