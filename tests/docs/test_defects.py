"""The table of defects names all of them, and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "design" / "0008-defects.md").read_text(encoding="utf-8")
ROWS = [line for line in TABLE.splitlines() if re.match(r"\| \d", line)]
TESTS = {
    name
    for path in (ROOT / "tests" / "agent").glob("test_defects_*.py")
    for name in re.findall(r"^(?:async )?def test_(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}


def test_the_table_has_a_line_for_each_defect() -> None:
    assert [int(row.split()[1].rstrip(".")) for row in ROWS] == list(range(1, 40))


def test_the_tests_that_the_table_names_exist() -> None:
    quoted = {text.rpartition(" ")[2] for row in ROWS for text in re.findall(r"`([^`]+)`", row.split("|")[2])}
    named = {text for text in quoted if text.count("_") >= 3}
    assert sorted(named - TESTS - {"a_bare_import_is_quick"}) == []


def test_the_files_that_the_table_names_exist() -> None:
    files = re.findall(r"`((?:\w+/)?test_\w+)(?:: [^`]*)?`", "\n".join(ROWS))
    paths = {name if "/" in name else f"agent/{name}" for name in files}
    assert sorted(name for name in paths if not (ROOT / "tests" / f"{name}.py").exists()) == []
