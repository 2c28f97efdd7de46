"""Writes docs/llms.txt, the list of pages for readers that are programs: ``make llms``.

The format is that of https://llmstxt.org: a title, a summary, and the pages by section with a line each. The
sections are those of mkdocs.yml; the line of a page is the first sentence of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

__all__ = ["text"]

ROOT = Path(__file__).parents[1]
LEFT_OUT = {"Design"}
OTHER = re.compile(r"<!--.*?-->|^```.*?^```$", re.DOTALL | re.MULTILINE)
"""Comments and code."""
SENTENCE = re.compile(r"(.+?[.?!])(?:\s|$)", re.DOTALL)


class _Loader(yaml.SafeLoader):
    """Reads the file without its Python tags."""


_Loader.add_multi_constructor("", lambda loader, suffix, node: None)  # pyright: ignore[reportUnknownMemberType]


def text(root: Path = ROOT) -> str:
    """Return the text of the file for the project in *root*."""
    settings: Any = yaml.load((root / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}"]
    for entry in settings["nav"]:
        if isinstance(entry, dict):
            for section, pages in entry.items():
                if section not in LEFT_OUT:
                    lines += ["", f"## {section}", "", *_lines(root, pages)]
    return "\n".join(lines) + "\n"


def _lines(root: Path, pages: list[str]) -> Iterator[str]:
    for page in pages:
        title, first = _head(root / "docs" / page)
        yield f"- [{title}]({page}): {first}"


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
