"""What the pages outside of the documentation point at exists; the forms for issues can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "examples" / "README.md",
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
]
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_files_that_a_page_links_exist(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_something_and_names_each_field_once(form: Path) -> None:
    page = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert sorted(page) == ["body", "description", "labels", "name"]
    fields = [field for field in page["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert all(field["attributes"]["label"] for field in fields)
    assert any(
        field.get("validations", {}).get("required") or field["type"] == "checkboxes" for field in fields
    )


def test_what_leaves_a_boundary_is_reported_in_private() -> None:
    policy = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    assert "*Report a vulnerability*" in policy
    assert "SECURITY.md" in (ROOT / ".github" / "ISSUE_TEMPLATE" / "escape.yml").read_text(encoding="utf-8")
    assert not list(ROOT.rglob("CODEOWNERS"))
