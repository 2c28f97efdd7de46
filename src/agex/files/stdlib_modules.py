"""The standard library's modules for files, each over one workspace and nothing else.

``os`` is made of the workspace's own methods. The modules written in Python over ``os`` and ``open``
(``os.path``, ``glob``, ``shutil``, ``zipfile``, ``tarfile``, ``gzip``, ...) are the interpreter's own
code, loaded a second time over these. So a function of theirs has nothing but the workspace, also when it
is called while no guest code runs.
"""

from __future__ import annotations

import builtins
import functools
import importlib.util
import io
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agex.files import os_module, tempfile_module
from agex.files.guest_files import GuardedFiles

__all__ = ["FileModules"]

_COPIED = frozenset(
    {"bz2", "genericpath", "glob", "gzip", "lzma", "posixpath", "shutil", "tarfile", "zipfile"}
)
"""Loaded anew, with their submodules."""

_ABSENT = frozenset({"fcntl", "grp", "nt", "pwd"})
"""Modules that they do without: the users of the machine, other systems."""

_PUBLIC: dict[str, tuple[str, ...]] = {
    "bz2": ("BZ2File", "BZ2Compressor", "BZ2Decompressor", "open", "compress", "decompress"),
    "glob": ("glob", "iglob", "escape"),
    "gzip": ("BadGzipFile", "GzipFile", "compress", "decompress", "open"),
    "lzma": (
        "FORMAT_*", "CHECK_*", "FILTER_*", "LZMACompressor", "LZMADecompressor", "LZMAError", "LZMAFile",
        "compress", "decompress", "open",
    ),
    "os": (*os_module.PUBLIC, "path"),
    # not ismount, lexists of links that there are none of
    "os.path": tuple(
        "abspath altsep basename commonpath commonprefix curdir defpath devnull dirname exists expanduser "
        "expandvars extsep getatime getctime getmtime getsize isabs isdir isfile isjunction islink join "
        "lexists normcase normpath pardir pathsep realpath relpath samefile sep split splitdrive splitext "
        "splitroot".split()
    ),
    # not chown, disk_usage, which, get_terminal_size: the machine; register_*: hands functions to later calls
    "shutil": tuple(
        "Error ReadError SameFileError SpecialFileError copy copy2 copyfile copyfileobj copymode copystat "
        "copytree get_archive_formats get_unpack_formats ignore_patterns make_archive move rmtree "
        "unpack_archive".split()
    ),
    "tarfile": (
        "*Error", "TarFile", "TarInfo", "is_tarfile", "open", "*_FORMAT", "*TYPE", "data_filter",
        "fully_trusted_filter", "tar_filter",
    ),
    "tempfile": tempfile_module.PUBLIC,
    # not PyZipFile, which compiles; Path, which leads to the real pathlib
    "zipfile": (
        "BadZipFile", "BadZipfile", "LargeZipFile", "ZIP_*", "ZipFile", "ZipInfo", "error", "is_zipfile",
    ),
}  # fmt: skip
"""The modules that are handed out, and the members of each."""


class FileModules:
    """The modules of one workspace, made when they are asked for.

    Args:
        files: what they work on.
    """

    names = frozenset(_PUBLIC)
    """The names that can be imported."""

    def __init__(self, files: GuardedFiles) -> None:
        self._files = files
        self._loaded: dict[str, types.ModuleType] = {}
        self._given: dict[str, types.ModuleType] = {}
        self._builtins = types.ModuleType("builtins")
        vars(self._builtins).update(vars(builtins), open=files.open, __import__=self._import)
        self._io = types.ModuleType("io")

    def get(self, name: str) -> types.ModuleType | None:
        """Return a module as guests get it; None for one that is not about files."""
        if name not in _PUBLIC:
            return None
        if name not in self._given:
            real = self._load("posixpath" if name == "os.path" else name)
            given = types.ModuleType(name, real.__doc__)
            vars(given).update(_members(real, _PUBLIC[name]))
            if name == "os":
                vars(given)["path"] = self.get("os.path")
            self._given[name] = given  # at last: a limit may strike before, and half a module is none
        return self._given[name]

    @property
    def additions(self) -> Mapping[str, Mapping[str, Callable[..., Any]]]:
        """Return members of other modules that are about files as well."""
        import json

        return {
            "io": {"TextIOWrapper": io.TextIOWrapper, "open": self._files.open},  # what open() gives
            "json": {"load": json.load, "dump": json.dump},
        }

    # -- loading ---------------------------------------------------------------------------------

    def _load(self, name: str) -> types.ModuleType:
        if name not in self._loaded:
            module = self._loaded[name] = types.ModuleType(name)
            try:
                self._fill(module)
            except BaseException:
                del self._loaded[name]
                raise
        return self._loaded[name]

    def _fill(self, module: types.ModuleType) -> None:
        name = module.__name__
        if name == "os":
            vars(module).update(os_module.FileOs(self._files).members())
            vars(module)["path"] = self._load("posixpath")
            vars(module).update(os_module.composed(vars(module)))
        elif name == "tempfile":
            temporaries = tempfile_module.Temporaries(self._files, self._load("shutil"))
            vars(module).update(temporaries.members())
        else:
            code, is_package = _code(name)
            vars(module)["__builtins__"] = vars(self._builtins)
            vars(module)["__package__"] = name if is_package else name.rpartition(".")[0]
            if is_package:
                vars(module)["__path__"] = []
            exec(code, vars(module))  # noqa: S102 - the interpreter's own module

    def _import(
        self, name: str, space: Any = None, scope: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        """Import for the modules themselves: each other, these ``os`` and ``open``, and what all share."""
        if level:
            package = space["__package__"]
            name = f"{package}.{name}" if name else package
        root = name.partition(".")[0]
        if root in _ABSENT:
            raise ImportError(f"there is no {name} in a workspace")
        if name == "builtins":
            return self._builtins
        if name == "io":
            vars(self._io).update(vars(builtins.__import__("io")), open=self._files.open)
            return self._io
        if root == "os" and name != "os":
            return self._load("posixpath") if fromlist else self._load("os")
        if root != "os" and root not in _COPIED:
            return builtins.__import__(name, space, scope, fromlist, 0)
        module = self._load(name)
        for member in fromlist or ():
            if member != "*" and member not in vars(module):
                vars(module)[member] = self._load(f"{name}.{member}")
        return module if fromlist else self._load(root)


@functools.cache
def _code(name: str) -> tuple[types.CodeType, bool]:
    spec = importlib.util.find_spec(name)
    loader: Any = None if spec is None else spec.loader
    if spec is None or loader is None:
        raise ImportError(f"this interpreter has no {name}")
    return loader.get_code(name), spec.submodule_search_locations is not None


def _members(module: types.ModuleType, patterns: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    from fnmatch import fnmatchcase

    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            yield name, value
