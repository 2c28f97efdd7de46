"""Projects with something secret beside each thing that a host registers."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agex.sandbox import Policy

__all__ = ["CANARY", "PROJECTS", "Project", "reach"]

CANARY = "canary-beside-it-2718"

_CLASS = """
import functools
import threading
from dataclasses import dataclass

SECRET = "{canary}"
_lock = threading.Lock()


@dataclass
class P:
    price: int = 6

    @functools.cached_property
    def twice(self):
        with _lock:
            return double(self.price)


@functools.lru_cache
def double(number):
    return 2 * number
"""


class Project(NamedTuple):
    """A registered thing, what lies beside it, and what its code does when all is well."""

    policy: Policy
    source: str
    expected: str
    files: tuple[str, ...]
    modules: tuple[str, ...] = ()


def write(folder: Path, files: dict[str, str]) -> tuple[str, ...]:
    """Write files; return the paths of those with the canary in them."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.format(canary=CANARY))
    return tuple(str(folder / name) for name, text in files.items() if "{canary}" in text)


def of_class(cls: type, files: tuple[str, ...], modules: tuple[str, ...] = ()) -> Project:
    policy = Policy.default()
    policy.cls(cls, name="P")
    return Project(policy, "P().twice", "12", files, modules)


def of_module(name: str, source: str, files: tuple[str, ...], modules: tuple[str, ...]) -> Project:
    policy = Policy.default()
    policy.module(importlib.import_module(name))
    return Project(policy, source, "12", files, modules)


def script(folder: Path) -> Project:
    files = write(folder, {"job.py": _CLASS, "notes.txt": "{canary}", "settings.py": "KEY = '{canary}'"})
    return of_class(importlib.import_module("job").P, files, ("job", "settings"))


def package(folder: Path) -> Project:
    files = write(
        folder,
        {
            "shop/__init__.py": "",
            "shop/models.py": _CLASS,
            "shop/settings.py": "KEY = '{canary}'",
            "shop/.env": "KEY={canary}",
        },
    )
    return of_class(importlib.import_module("shop.models").P, files, ("shop.models", "shop.settings"))


def namespace_package(folder: Path) -> Project:
    files = write(folder, {"space/part/models.py": _CLASS, "space/other/keys.py": "KEY = '{canary}'"})
    return of_class(importlib.import_module("space.part.models").P, files, ("space.other.keys",))


def editable_install(folder: Path) -> Project:
    files = write(
        folder,
        {
            "project/src/tool/__init__.py": _CLASS,
            "project/src/tool/keys.py": "KEY = '{canary}'",
            "project/pyproject.toml": "# {canary}",
            "project/.git/config": "{canary}",
        },
    )
    sys.path.insert(0, str(folder / "project/src"))
    try:
        return of_class(importlib.import_module("tool").P, files, ("tool.keys",))
    finally:
        sys.path.remove(str(folder / "project/src"))


def notebook(folder: Path) -> Project:
    """A class of a cell: its module has no file, and the folder of the notebook is on the path."""
    files = write(folder, {"Untitled.ipynb": '["{canary}"]', "helper.py": "KEY = '{canary}'"})
    cell = {"__name__": "__main__", "KEY": CANARY}
    exec(_CLASS.format(canary=CANARY), cell)
    return of_class(cell["P"], files, ("helper",))


def links(folder: Path) -> Project:
    files = write(folder, {"kept/keys.py": "KEY = '{canary}'", "kept/real/__init__.py": _CLASS})
    (folder / "linked").symlink_to(folder / "kept/real")
    (folder / "kept/real/keys.py").symlink_to(folder / "kept/keys.py")
    (folder / "kept/real/token.py").symlink_to(folder / "kept/keys.py")
    more = (str(folder / "linked/keys.py"), str(folder / "linked/token.py"))
    return of_class(importlib.import_module("linked").P, files + more, ("linked.keys", "linked.token"))


def data_files(folder: Path) -> Project:
    files = write(
        folder,
        {
            "market/__init__.py": _CLASS,
            "market/prices.csv": "{canary}",
            "market/data/model.bin": "{canary}",
            "market/py.typed": "{canary}",
        },
    )
    return of_class(importlib.import_module("market").P, files)


def hidden_files(folder: Path) -> Project:
    names = (".env", ".git/HEAD", ".netrc", "dot/.env", "dot/.git/config", "dot/.aws/credentials")
    files = write(folder, {"dot/__init__.py": _CLASS, **dict.fromkeys(names, "{canary}")})
    return of_class(importlib.import_module("dot").P, files)


def registered_module(folder: Path) -> Project:
    files = write(
        folder,
        {
            "app/__init__.py": "from app import numbers",
            "app/numbers.py": "from .deep.more import TWO\n\ndef six(n):\n    return 6 * TWO",
            "app/deep/more.py": "TWO = 2",
            "app/settings.py": "KEY = '{canary}'",
            "app/data.json": '"{canary}"',
            "app/.env": "{canary}",
            "other.py": "KEY = '{canary}'",
        },
    )
    source = "from app.numbers import six\nsix(1)"
    return of_module("app", source, files, ("app.settings", "other"))


def module_of_a_script(folder: Path) -> Project:
    files = write(
        folder, {"tools.py": "def six():\n    return 12", "tools.env": "{canary}", "keys.py": "{canary}"}
    )
    return of_module("tools", "import tools\ntools.six()", files, ("keys",))


PROJECTS: dict[str, Callable[[Path], Project]] = {
    each.__name__: each
    for each in (
        script,
        package,
        namespace_package,
        editable_install,
        notebook,
        links,
        data_files,
        hidden_files,
        registered_module,
        module_of_a_script,
    )
}


def reach(files: tuple[str, ...], modules: tuple[str, ...], canary: str) -> list[str]:
    """Reach for files and modules in every way, and for the canary in all files that are not installed."""
    import importlib
    import os
    import pkgutil

    found = [path for path in [*files, *_others()] if _holds(path, canary)]
    for path in files:
        package = os.path.basename(os.path.dirname(path))
        try:
            data = pkgutil.get_data(package, os.path.basename(path)) or b""
        except (ImportError, OSError, ValueError, AttributeError):
            continue
        found += [f"data {path}"] if canary.encode() in data else []
    for name in modules:
        try:
            loaded = importlib.import_module(name)
        except ImportError:
            continue
        found += [f"module {name}"] if canary in repr(vars(loaded)) else []
    return found


def _holds(path: str, canary: str) -> bool:
    try:
        with open(path, "rb") as file:
            return canary.encode() in file.read()
    except OSError:
        return False


def _others() -> list[str]:
    """Return all files but those of the system and of installed packages."""
    import os

    found = []
    for top, folders, names in os.walk("/"):
        here = [name for name in folders if name not in ("site-packages", "lib", "lib64")]
        folders[:] = [name for name in here if top != "/" or name not in ("proc", "sys", "usr")]
        found += [f"{top}/{name}" for name in names if os.path.isfile(f"{top}/{name}")]
    return found


def main_script(folder: Path, program: str, environment: dict[str, str]) -> str:
    """Run a script that registers a class of its own; return what it prints."""
    write(folder, {".env": "{canary}", "settings.py": "KEY = '{canary}'", "main.py": _CLASS + program})
    done = subprocess.run(
        [sys.executable, str(folder / "main.py")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return done.stdout + done.stderr
