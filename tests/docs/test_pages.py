"""The pages: all are found, their links lead somewhere, and the reference has every public name."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import agex

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$", re.MULTILINE)
ROOMS = (
    "agent",
    "browser",
    "display",
    "errors",
    "evals",
    "isolation",
    "mcp",
    "models",
    "sandbox",
    "state",
    "testing",
    "tinyagent",
)


def prose_of(page: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    """Name the headings of a page as Python-Markdown's table of contents does."""
    texts = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", found["text"]) for found in HEADING.finditer(prose_of(page))
    )
    words = (re.sub(r"[^\w\s-]", "", text).strip().lower() for text in texts)
    return {re.sub(r"[-\s]+", "-", text) for text in words}


def broken(page: Path, target: str) -> bool:
    """Tell whether a link within the project leads nowhere."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(ROOT) or not file.exists():
        return True
    return bool(anchor) and (file.suffix != ".md" or anchor not in anchors_of(file))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_to_files_and_headings_that_exist(page: Path) -> None:
    targets = [found["target"] for found in LINK.finditer(prose_of(page))]
    assert [t for t in targets if "://" not in t and not t.startswith("mailto:") and broken(page, t)] == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_of_the_documentation_is_in_its_navigation(page: Path) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"- {page.relative_to(DOCS).as_posix()}\n" in settings


def folders_of(folder: Path) -> list[str]:
    """Return the names of the public folders in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("_"))


def test_the_map_of_the_sources_names_every_room_and_its_sub_rooms() -> None:
    text = (DOCS / "design" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", text, re.MULTILINE)
    told = {room: sorted(re.findall(r"`(\w+)`", sub_rooms)) for room, sub_rooms in rows}
    package = ROOT / "src" / "agex"
    assert told == {room: folders_of(package / room) for room in folders_of(package)}


def documented() -> set[str]:
    """Name what the reference shows."""
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    names: set[str] = set()
    for found in re.finditer(
        r"^::: (?P<name>[\w.]+)\n(?: +options:\n +members: \[(?P<some>.*)\]\n)?", text + "\n", re.MULTILINE
    ):
        name = found["name"]
        if found["some"] is not None:
            names |= {f"{name}.{each.strip()}" for each in found["some"].split(",")}
        elif name.rpartition(".")[2].islower() and "_" not in name:
            names |= {f"{name}.{each}" for each in importlib.import_module(name).__all__}
        else:
            names.add(name)
    return names


def test_every_name_of_the_package_is_in_the_reference() -> None:
    shown = {name.rpartition(".")[2] for name in documented()}
    assert sorted(set(agex.__all__) - shown) == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_public_room_is_in_the_reference(room: str) -> None:
    names = {f"agex.{room}.{name}" for name in importlib.import_module(f"agex.{room}").__all__}
    assert sorted(names - documented()) == []


def test_a_link_that_leads_nowhere_is_seen() -> None:
    page = DOCS / "index.md"
    assert [broken(page, target) for target in ("tasks.md", "tasks.md#a-question", "../README.md")] == [
        False
    ] * 3
    assert [broken(page, target) for target in ("nope.md", "tasks.md#nope", "#nope", "/etc/hosts")] == [
        True
    ] * 4


def test_the_list_of_pages_for_programs_is_that_of_today() -> None:
    spec = importlib.util.spec_from_file_location("llms_text", ROOT / "tools/llms_text.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (DOCS / "llms.txt").read_text(encoding="utf-8") == tool.text(ROOT), "make llms"


def test_every_page_but_the_design_records_is_in_the_list_for_programs() -> None:
    listed = {found["target"] for found in LINK.finditer((DOCS / "llms.txt").read_text(encoding="utf-8"))}
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert listed == {page for page in pages if not page.startswith("design/")} - {"index.md"}
