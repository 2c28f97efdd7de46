"""The shape of the sources: modules of a readable size, rooms that say what they are for."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "agex"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(path.parent for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)
MAX_LINES = 600


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as the linter sorts them."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name.lstrip("_")[:1].isupper() else 2
    return kind, name


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_at_most_600_lines(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_a_docstring(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring


@pytest.mark.parametrize("room", sorted(set(ROOMS)), ids=name_of)
def test_a_room_gives_out_its_names_sorted_and_each_exists(room: Path) -> None:
    module = importlib.import_module(name_of(room))
    assert list(module.__all__) == sorted(set(module.__all__), key=order)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
