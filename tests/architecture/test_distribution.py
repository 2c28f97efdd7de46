"""The name under which the project is installed: `agex` in the package index is another project."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import agex

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "docs", "examples", "bench", "tools", "tests", ".ci", ".github")
FILES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "pyproject.toml", "constraints.txt")
KINDS = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".js", ".mjs", ".html", ".sh", ""}
WRONG = re.compile(
    r"""(?:pip|uv|pipx)[\w ]*\ (?:install|show|add|download|wheel)(?:\ -[-\w]+)*\ ["'`\\]*agex(?![-\w/])"""
    r"""|(?<![\w./-])agex\[[a-z][a-z, -]*\]["'`]|agex-\*\.whl""",
    re.VERBOSE,
)
"""Asks a package index for `agex`, by itself or with extras, or looks for a wheel of that name."""
OLD_WHEELS = "Makefile"
"""It removes those that an earlier version has left."""


def texts() -> dict[str, str]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    found = [path for path in (*paths, *(ROOT / name for name in FILES)) if path.is_file()]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in found
        if path.suffix in KINDS and "__pycache__" not in path.parts and path != Path(__file__)
    }


def test_nothing_says_to_install_agex_from_a_package_index() -> None:
    wrong = [
        f"{name}: {found[0]}"
        for name, text in texts().items()
        for found in WRONG.finditer(text)
        if not (name == OLD_WHEELS and found[0] == "agex-*.whl")
    ]
    assert wrong == []


def test_what_is_looked_for_is_found() -> None:
    for text in (
        "pip install agex",
        "pip install --upgrade agex`",
        'pip install "agex[mcp]"',
        '"agex[test]"',
        "agex-*.whl",
    ):
        assert WRONG.search(text), text
    for text in ('pip install "agex-py[mcp]"', "pip install ./agex", "installing agex-py[test] into"):
        assert not WRONG.search(text), text


def test_the_distribution_the_package_and_the_command_have_their_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["name"], list(project["scripts"])) == ("agex-py", ["agex"])
    assert agex.__version__ == distribution("agex-py").version
