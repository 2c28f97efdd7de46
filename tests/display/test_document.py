"""Pages as HTML and as text: what strangers wrote stays text, and nothing is without bounds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markup import read

from agex.display import Code, Fold, Page, Part, Picture, Scripted, Shown, Table, Text, to_html, to_text
from agex.display.document import COLORS, PAGE_CHARS, PICTURE_BYTES

ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '<a href="javascript:alert(1)">look</a>',
    "</pre></details></div></div><script>",
    "<!-- ",
    "]]><svg/onload=alert(1)>",
    "<style>*{display:none}</style>",
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1">',
    "<iframe srcdoc='<script>parent.alert(1)</script>'>",
    "&lt;script&gt;",
    "<scr\x00ipt>alert(1)</scr\x00ipt>",
    "\ud800<\udfff",
    "}</style><script>",
    "<details open ontoggle=alert(1)>",
]


def everywhere(text: str) -> Page:
    """Put a text in every place that a page has for one."""
    parts: list[Part] = [
        Text(text=text, label=text, bad=True),
        Code(text=text, label=text, language=text),
        Table(rows=[(text, text)], head=(text, text), label=text, note=text),
        Table(rows=[(text, text)]),
        Picture(data=text.encode("utf-8", "replace"), media_type="image/png", label=text),
        Picture(data=b"", media_type=text, label=text),
        Scripted(document=text, label=text),
    ]
    inner = Page(title=text, facts=(text,), parts=parts, tone="bad")
    return Page(title=text, facts=(text, text), parts=[*parts, Fold(page=inner, open=True)])


@pytest.mark.parametrize("attack", ATTACKS)
def test_markup_of_strangers_is_shown_as_text(attack: str) -> None:
    found = read(to_html(everywhere(attack)))
    spelled = attack.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    assert found.text.count(spelled) >= 20
    assert found.frames == [attack, attack] if "\x00" not in attack else len(found.frames) == 2


@given(st.text(st.characters(), max_size=60))
def test_any_text_gives_sound_markup_that_utf8_holds(text: str) -> None:
    html = to_html(Page(title=text, parts=[Text(text=text), Table(rows=[(text,)], head=(text,))]))
    read(html)
    html.encode()


@pytest.mark.parametrize(
    "attack", ["\x1b[2J", "\x9b31m", "a\rb", "\x07", "\u202egnp.exe", "\u2066", "\x00", "\x7f"]
)
def test_text_cannot_give_orders_to_a_terminal_or_turn_itself_around(attack: str) -> None:
    shown = to_text(everywhere(attack)) + to_html(everywhere(attack)).partition("<iframe")[0]
    assert not set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown))


def test_a_text_of_a_class_of_its_own_is_read_as_the_text_it_is() -> None:
    class Sly(str):
        __slots__ = ()

        def replace(self, *_: object) -> str:  # type: ignore[override]
            return "<script>"

        __str__ = __getitem__ = __format__ = __add__ = replace  # type: ignore[assignment]

    page = Page(title=Sly("title"), parts=[Text(text=Sly("body"))])
    assert read(to_html(page)).text == "titlebody"
    assert to_text(page) == "title\n  body"


def test_ten_megabytes_of_output_give_a_page_of_bounded_size() -> None:
    text = "<&>" * (10 * 2**20 // 3)
    page = Page(title="run", parts=[Fold(page=Page(title="turn", parts=[Text(text=text)]))] * 5_000)
    html, lines = to_html(page), to_text(page)
    assert (len(html) < 2 * PAGE_CHARS, len(lines) < 60_000) == (True, True)
    assert "the page is full" in read(html).text


def test_a_page_in_a_page_has_no_more_room_than_all() -> None:
    page = Page(title="leaf", parts=[Text(text="<" * 6_000)] * 50)
    for _ in range(3):
        page = Page(title="branch", parts=[Fold(page=page)] * 50)
    assert len(to_html(page)) < 2 * PAGE_CHARS
    assert "the page is full" in to_html(page)
    read(to_html(page))


def test_a_wide_and_long_table_is_cut_and_says_so() -> None:
    page = Page(title="t", parts=[Table(rows=[["x" * 10_000] * 1_000] * 5_000, head=["n"] * 1_000)])
    found = read(to_html(page))
    assert found.tags.count("tr") == 51
    assert "4,950 more rows" in found.text
    assert "more columns are not shown" in found.text
    assert len(to_text(page)) < 60_000


def test_pictures_have_a_limit_together() -> None:
    picture = Picture(data=bytes(PICTURE_BYTES // 2), media_type="image/png")
    found = read(to_html(Page(title="t", parts=[picture, picture, picture])))
    assert found.tags.count("img") == 1
    assert found.text.count("is not shown here") == 2


@pytest.mark.parametrize("kind", ["image/svg+xml", "text/html", "image/png;base64,x,"])
def test_a_document_is_no_picture(kind: str) -> None:
    found = read(to_html(Page(title="t", parts=[Picture(data=b"<svg onload=alert(1)>", media_type=kind)])))
    assert "img" not in found.tags
    assert "is not shown here" in found.text


def test_a_script_runs_in_a_frame_without_an_origin() -> None:
    html = to_html(Page(title="t", parts=[Scripted(document="<script>1</script>", label="figure")]))
    assert read(html).frames == ["<script>1</script>"]
    assert "<script" not in html


def test_nothing_clashes_between_cells_and_nothing_is_loaded() -> None:
    html = to_html(everywhere("text"))
    assert re.findall(r"\s(?:id|class|name|href|action)=|https?:|url\(", html) == []


def test_pages_fold_and_say_how_things_stand_without_colours_too() -> None:
    page = Page(
        title="a.t",
        facts=("done",),
        tone="good",
        parts=[Fold(page=Page(title="turn", parts=[Text(text="x")]))],
    )
    assert to_text(page) == "✓ a.t · done\n  turn\n    x"
    found = read(to_html(page))
    assert found.text == "✓ a.t · doneturnx"
    assert found.tags.count("details") == 1


def luminance(color: str) -> float:
    parts = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("ground", ["#ffffff", "#111111", "#1e1e1e"], ids=["light", "dark", "an editor's"])
@pytest.mark.parametrize("tone", ["good", "bad", "asking"])
def test_signal_colours_can_be_told_from_light_and_dark_grounds(tone: str, ground: str) -> None:
    dark, light = sorted((luminance(COLORS[tone]), luminance(ground)))
    assert (light + 0.05) / (dark + 0.05) >= 3


def test_columns_of_a_table_stand_below_each_other_in_text() -> None:
    table = Table(rows=[("a", "1"), ("long", "two\nlines")], head=("name", "value"), note="2 rows")
    assert to_text(Page(title="t", parts=[table])).splitlines() == [
        "t",
        "  name  value",
        "  a     1",
        "  long  two lines",
        "  2 rows",
    ]


def test_an_object_shows_one_page_in_both_ways() -> None:
    class Thing(Shown):
        def page(self) -> Page:
            return Page(title="thing", facts=("here",))

    assert str(Thing()) == "thing · here"
    assert read(Thing()._repr_html_()).text == "thing · here"
