"""The names of monkeyfs and termish that are used: those that they give out, and a few that a test holds."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

SRC = Path(__file__).parents[2] / "src/agex"
LIBRARIES = ("monkeyfs", "termish")
PUBLIC = {"monkeyfs", "monkeyfs.context", "termish", "termish.fs"}
INNER = {
    "monkeyfs.patching.install": "_installed",
    "monkeyfs.patching.patches": "_is_safe_system_path",
}
"""Modules that ``sandbox/runtime/workspace_files.py`` imports, and a name that it needs of each."""


def modules_named(path: Path) -> set[str]:
    """Return the modules of the libraries that a file imports, or names in a text."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            found.add(node.value)
    return {name for name in found if name.partition(".")[0] in LIBRARIES}


def test_only_the_files_of_the_sandbox_use_inner_modules_of_the_libraries() -> None:
    inner = {
        str(path.relative_to(SRC)): names
        for path in sorted(SRC.rglob("*.py"))
        if (names := modules_named(path) - PUBLIC)
    }
    assert inner == {"sandbox/runtime/workspace_files.py": set(INNER)}


def test_the_inner_names_are_there_in_the_installed_version() -> None:
    assert [
        module for module, name in INNER.items() if not hasattr(importlib.import_module(module), name)
    ] == []
    assert callable(importlib.import_module("monkeyfs.patching.patches")._vfs_open)
