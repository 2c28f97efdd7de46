"""The map of imports in docs/design is that of the sources, and has no circle."""

from __future__ import annotations

import graphlib
from pathlib import Path

import import_map
import pytest


def test_the_page_has_the_imports_of_today() -> None:
    written = import_map.PAGE.read_text(encoding="utf-8")
    assert written == import_map.page(written), "run `make map`"


def test_a_circle_is_an_error(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("from agex.room.second import x\n", encoding="utf-8")
    second.write_text("def f():\n    from agex.room.first import y\n", encoding="utf-8")
    known = {"agex.room.first": first, "agex.room.second": second}
    with pytest.raises(graphlib.CycleError):
        import_map.picture("agex.room", known)
