"""Files of user modules that a worker needs: the registered ones, and their imports.

A worker can read the installation (the interpreter, its libraries, installed packages) as it is. Any other
module is a user module: the script, the packages of a project, also one installed as editable.
"""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import marshal
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from types import CodeType, ModuleType

from agex.isolation.lockdown.namespaces import installation

__all__ = ["files_of", "is_installed", "is_users", "package_files"]

_OWN = "agex"


def is_users(name: str) -> bool:
    """Return whether a module is a user module."""
    root = name.partition(".")[0]
    if root == _OWN or root in sys.stdlib_module_names or name == "__main__":
        return False
    while name:  # one that has neither file nor folders is of its package
        places = _places(sys.modules.get(name))
        if places is not None:
            return not all(map(is_installed, places))
        name = name.rpartition(".")[0]
    return True


def _places(module: ModuleType | None) -> list[str] | None:
    """Return the file or the folders of a module; an empty list for a built-in one, None if unknown."""
    file = getattr(module, "__file__", None)
    if file is not None:
        return [file]
    spec = getattr(module, "__spec__", None)
    if spec is None:
        return None
    return [*(spec.submodule_search_locations or ())]


@functools.lru_cache(32_768)
def is_installed(path: str) -> bool:
    """Return whether a file or folder is part of the installation.

    It is asked of each loaded module for each policy, and to follow links takes a system call a folder.
    """
    real = os.path.realpath(path)
    return any(f"{real}/".startswith(f"{each}/") for each in _folders())


@functools.cache
def _folders() -> list[str]:
    return installation()


def files_of(modules: Iterable[str]) -> dict[str, Path]:
    """Return the files of the user modules among modules and their imports, by their place on a path.

    A module's imports are read off its text; no module is run or loaded for it.
    """
    found: dict[str, Path] = {}
    seen: set[str] = set()
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        spec = _spec(name)
        if spec is None:
            continue
        waiting += [name.rpartition(".")[0]] if "." in name else []
        if spec.origin is None or not spec.has_location:
            continue
        file, is_package = Path(spec.origin), spec.submodule_search_locations is not None
        place = name.replace(".", "/") + ("/__init__" if is_package else "")
        found[place + "".join(file.suffixes if file.suffix != ".py" else [".py"])] = file
        if file.suffix == ".py":
            waiting += _imported(file, name if is_package else name.rpartition(".")[0])
    return found


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Return the location of a user module; None for any other."""
    root = name.partition(".")[0]
    if not name or root == _OWN or root in sys.stdlib_module_names:
        return None
    spec = getattr(sys.modules.get(name), "__spec__", None) or _found(name)
    if spec is None or (spec.origin is not None and is_installed(spec.origin)):
        return None
    return spec


def _found(name: str) -> importlib.machinery.ModuleSpec | None:
    """Find a module that is not loaded, below a package that is not loaded for it."""
    parent = name.rpartition(".")[0]
    if not parent:
        return importlib.machinery.PathFinder.find_spec(name)
    above = _spec(parent)
    if above is None or above.submodule_search_locations is None:
        return None
    return importlib.machinery.PathFinder.find_spec(name, [*above.submodule_search_locations])


def _imported(file: Path, package: str) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@functools.cache
def package_files() -> Mapping[str, bytes]:
    """Return the files of agex itself that a worker needs; none where they are part of the installation."""
    folder = Path(__file__).resolve().parents[2]
    if is_installed(str(folder)):
        return {}
    found: dict[str, bytes] = {}
    for file in [*folder.rglob("*.py"), *folder.glob("sandbox/stdlib/sources/*.txt")]:
        place = f"{_OWN}/{file.relative_to(folder)}"
        found[place] = file.read_bytes()
        if file.suffix == ".py":  # a worker cannot keep what it compiles, and there are hundreds
            found[cache_from_source(place)] = _compiled(file, found[place], place)
    return found


def _compiled(file: Path, text: bytes, place: str) -> bytes:
    """Return a file of bytecode that is not compared with its source, see PEP 552."""
    code = SourceFileLoader(_OWN, str(file)).get_code(_OWN)
    assert code is not None
    return MAGIC_NUMBER + (1).to_bytes(4, "little") + source_hash(text) + marshal.dumps(_placed(code, place))


def _placed(code: CodeType, place: str) -> CodeType:
    """Return code with another file name."""
    constants = tuple([_placed(one, place) if isinstance(one, CodeType) else one for one in code.co_consts])
    return code.replace(co_filename=place, co_consts=constants)
