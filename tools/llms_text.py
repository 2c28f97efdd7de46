"""Writes docs/llms.txt, the list of pages for readers that are programs: ``make llms``.

The format is that of https://llmstxt.org: a title, a summary, and the pages by section with a line each. The
sections are those of mkdocs.yml; the line of a page is the first sentence of its text.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["text"]

ROOT = Path(__file__).parents[1]
KEYS = ("site_name", "site_description")
LEFT_OUT = {"Design"}
OTHER = re.compile(r"<!--.*?-->|^```.*?^```$", re.DOTALL | re.MULTILINE)
"""Comments and code."""
SENTENCE = re.compile(r"(.+?[.?!])(?:\s|$)", re.DOTALL)


NAV = re.compile(r"^  - (?P<section>[^.\n]+):$|^      - (?P<page>\S+\.md)$", re.MULTILINE)


def text(root: Path = ROOT) -> str:
    """Return the text of the file for the project in *root*."""
    settings = (root / "mkdocs.yml").read_text(encoding="utf-8")
    name, summary = (re.search(rf"^{key}: (.*)$", settings, re.MULTILINE) for key in KEYS)
    assert name is not None
    assert summary is not None
    lines, section = [f"# {name[1]}", "", f"> {summary[1]}"], ""
    for found in NAV.finditer(settings.partition("\nnav:\n")[2]):
        if found["section"]:
            section = found["section"]
            lines += [] if section in LEFT_OUT else ["", f"## {section}", ""]
        elif section not in LEFT_OUT:
            title, first = _head(root / "docs" / found["page"])
            lines.append(f"- [{title}]({found['page']}): {first}")
    return "\n".join(lines) + "\n"


def _head(page: Path) -> tuple[str, str]:
    """Return the title of a page and the first sentence of its text."""
    title, _, rest = page.read_text(encoding="utf-8").partition("\n")
    paragraphs = [part.strip() for part in OTHER.sub("", rest).split("\n\n")]
    prose = next(part for part in paragraphs if part and part[0] not in "#|-:" and part[-1] != ":")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|\*\*", r"\1", " ".join(prose.split()))
    found = SENTENCE.match(plain)
    return title.removeprefix("# "), found[1] if found else plain


if __name__ == "__main__":
    (ROOT / "docs" / "llms.txt").write_text(text(), encoding="utf-8")
