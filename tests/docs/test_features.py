"""What the table of features names exists: pages, tests and examples."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "features.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if "| " in line]
TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>\w+)(?:\[(?P<case>[^`]+)\])?`")
EXAMPLE = re.compile(r"`(?P<file>\w+\.py)`")


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def functions_of(path: Path) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(source(path)).body if isinstance(node, functions)}


def features() -> list[list[str]]:
    return [row for row in ROWS if len(row) == 4 and row[0] != "Feature"]


def test_the_page_has_features_with_a_page_and_a_test_each() -> None:
    assert len(features()) > 50
    for feature, page, test, example in features():
        assert re.fullmatch(r"\[\w+\]\([\w.#-]+\)", page), feature
        assert TEST.fullmatch(test), feature
        assert example in {"", "|"} or EXAMPLE.fullmatch(example.strip(" |")), feature


def test_the_pages_exist() -> None:
    pages = re.findall(r"\]\((?P<page>[\w-]+\.md)", TEXT)
    assert [page for page in pages if not (PAGE.parent / page).is_file()] == []


@pytest.mark.parametrize("named", sorted({match[0] for match in TEST.finditer(TEXT)}))
def test_a_test_exists(named: str) -> None:
    match = TEST.fullmatch(named)
    assert match is not None
    path = ROOT / "tests" / match["file"]
    assert match["name"] in functions_of(path)
    assert match["case"] is None or f'"{match["case"]}"' in source(path)


def test_the_examples_exist_and_each_is_named() -> None:
    named = {example for row in features() for example in EXAMPLE.findall(row[3])}
    assert named == {path.name for path in (ROOT / "examples").glob("*.py")}
