"""The pictures of the documentation: made by a script, shown by a page, readable on light and on dark."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest
from bench import figures

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
IMAGE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
DRAWN = [
    "commits-and-forks.svg",
    "four-forms.svg",
    "one-turn.svg",
    "terminal.svg",
    "what-crosses.svg",
    "where-code-runs.svg",
]


FIGURES = sorted(figures.pictures())
"""Made from results of benchmarks: `test_figures` holds them against those."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "tools" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_those_that_the_script_draws_today(script: ModuleType) -> None:
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert sorted(there) == sorted([*DRAWN, *FIGURES])
    assert {name: there[name] for name in DRAWN} == script.pictures(), "run: make pictures"


def test_each_picture_is_shown_by_a_page_and_each_image_of_a_page_is_there() -> None:
    shown = {
        (page.parent / found["target"]).resolve()
        for page in PAGES
        for found in IMAGE.finditer(page.read_text(encoding="utf-8"))
        if "://" not in found["target"]
    }
    assert [str(path) for path in shown if not path.is_file()] == []
    assert {path.name for path in shown if path.parent == FOLDER} == {*DRAWN, *FIGURES}


def test_each_image_has_a_text_for_those_who_do_not_see_it() -> None:
    texts = [found["text"] for page in PAGES for found in IMAGE.finditer(page.read_text(encoding="utf-8"))]
    assert all(texts)


@pytest.mark.parametrize("name", [*DRAWN, *FIGURES])
def test_a_picture_loads_nothing_and_has_colours_for_light_and_dark(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    root = ET.fromstring(text)
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme:dark" in text
    assert "<script" not in text


@pytest.mark.parametrize("name", DRAWN)
def test_no_text_of_a_picture_leaves_it(name: str) -> None:
    root = ET.fromstring((FOLDER / name).read_text(encoding="utf-8"))
    width = int(root.attrib["width"])
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        wide = 8 if "code" in text.attrib.get("class", "") else 7
        length = wide * len("".join(text.itertext()))
        x = int(text.attrib["x"]) - (length // 2 if text.attrib.get("text-anchor") == "middle" else 0)
        assert x >= 0
        assert x + length <= width, "".join(text.itertext())
