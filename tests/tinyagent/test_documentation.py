"""The tables of the documentation name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "tinyagent.md"


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    sources = [path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py")]
    existing = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert named - existing == set()
    assert len(named) > 40
