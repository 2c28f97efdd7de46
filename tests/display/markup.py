"""What HTML really says: a parser's view of it, and what must never be in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

TAGS = set("div b bdi span pre table thead tbody tr th td details summary img iframe".split())
ATTRIBUTES = {
    "style", "open", "scope", "alt", "src", "sandbox", "referrerpolicy", "title", "srcdoc",
}  # fmt: skip
VOID = {"img"}


@dataclass
class Markup(HTMLParser):
    """Reads a fragment and refuses what this project does not write itself."""

    tags: list[str] = field(default_factory=list)
    text: str = ""
    frames: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        said = dict(attrs)
        assert set(said) <= ATTRIBUTES, said
        assert "url(" not in (said.get("style") or "")
        if tag == "img":
            assert (said["src"] or "").startswith(
                ("data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,")
            )
        if tag == "iframe":
            assert said["sandbox"] == "allow-scripts"
            assert "src" not in said
            self.frames.append(said["srcdoc"] or "")
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction: {data}")

    def close(self) -> None:
        super().close()
        assert self._open == []


def read(html: str) -> Markup:
    """Parse HTML; fail where it holds what it must not."""
    found = Markup()
    found.feed(html)
    found.close()
    return found
