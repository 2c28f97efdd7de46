"""The figures of the benchmarks on the page and in its pictures are those of the files in bench/results."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from bench.figures import FILES, PAGE, PICTURES, RESULTS, Bar, drawn, page_with_figures, pictures

TEXT = PAGE.read_text(encoding="utf-8")
NAMES = [name for name in FILES if (RESULTS / f"{name}.json").exists()]


def test_the_page_shows_what_the_files_say():
    assert page_with_figures(TEXT) == TEXT, "run python -m bench.figures"


@pytest.mark.parametrize("name", NAMES)
def test_each_file_is_on_the_page(name):
    assert f"<!-- figures: {name} -->" in TEXT


def test_the_pictures_show_what_the_files_say_and_are_on_the_page():
    found = pictures()
    assert set(found) == {f"{name}.svg" for name in NAMES if FILES[name].bars is not None}
    for name, picture in found.items():
        assert (PICTURES / name).read_text(encoding="utf-8") == picture, "run python -m bench.figures"
        assert f"](pictures/{name})" in TEXT


def test_a_bar_is_as_long_as_its_value_and_says_it():
    bars = [Bar("a < b", 50.0, 40.0, 60.0, "5 of 10"), Bar("c", 100.0, shown="10 of 10")]
    root = ET.fromstring(drawn("Passed & counted", bars, most=100))
    widths = [float(each.get("width") or 0) for each in root.iter() if each.get("class") == "bar"]
    assert widths[0] == pytest.approx(widths[1] / 2, abs=0.1)
    texts = [each.text for each in root.iter() if each.tag.endswith("text")]
    assert texts == ["Passed & counted", "a < b", "5 of 10", "c", "10 of 10"]
