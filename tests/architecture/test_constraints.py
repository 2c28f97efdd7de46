"""The pinned versions: names and versions only, and all that the project names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"(?P<name>[\w.-]+)==[\w.]+")
PINS = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def normal(name: str) -> str:
    """Return a distribution's name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {normal(re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0]) for group in groups for line in group}
    return names - {"agex-py"}


def test_a_constraint_is_a_name_and_a_version_and_nothing_else() -> None:
    assert [line for line in PINS if not PIN.fullmatch(line)] == []


def test_every_dependency_is_pinned() -> None:
    pinned = {normal(line.partition("==")[0]) for line in PINS}
    assert required() - pinned == set()
