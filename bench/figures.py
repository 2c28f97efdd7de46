"""The figures of the documentation: ``python -m bench.figures`` writes them from ``bench/results``.

It writes tables into ``docs/benchmarks.md``, between marks that name a file of results, and pictures of some.
A test compares the page and the pictures with what the files say.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agex.cli import benchmark

__all__ = ["FILES", "drawn", "main", "page_with_figures", "pictures"]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "pictures"

Document = Mapping[str, Any]


class Bar(NamedTuple):
    """One bar of a picture."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    shown: str = ""


def main() -> None:
    """Write the page and the pictures."""
    PAGE.write_text(page_with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (PICTURES / name).write_text(picture, encoding="utf-8")


def page_with_figures(text: str) -> str:
    """Return the page with the tables that the files in ``bench/results`` give.

    Raises:
        FileNotFoundError: the page names a file that is not there.
    """
    return re.sub(r"(<!-- figures: ([\w.-]+) -->\n).*?(<!-- end -->)", _figures, text, flags=re.DOTALL)


def _figures(mark: re.Match[str]) -> str:
    document = _read(mark[2])
    lines = [*_provenance(document), "", *FILES[mark[2]].tables(document)]
    return mark[1] + "\n".join(lines) + "\n" + mark[3]


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _provenance(document: Document) -> Iterator[str]:
    model = f"{document['model']}, " if "model" in document else ""
    strong = f"then {document['strong']}, " if document.get("strong") else ""
    machine = f"{document['machine']}, CPython {document['python']}"
    yield f"{model}{strong}commit {document['commit']}, {document['date']}, {machine}."


def pictures() -> dict[str, str]:
    """Return each picture by its name."""
    return {
        f"{name}.svg": drawn(each.title, list(each.bars(_read(name))), most=each.most)
        for name, each in FILES.items()
        if each.bars is not None and (RESULTS / f"{name}.json").exists()
    }


# -- tables and bars


def _of_sides(document: Document) -> Iterator[str]:
    yield from benchmark.table(document).splitlines()
    if "bare" in document["sides"]:
        yield ""
        yield from benchmark.comparison_table(benchmark.differences(document)).splitlines()
    families = {side: found["families"] for side, found in document["sides"].items() if "families" in found}
    if families:
        yield ""
        yield f"| kind of task | {' | '.join(families)} |"
        yield "| --- |" + " --- |" * len(families)
        for family in next(iter(families.values())):
            found = [f"{each[family][0]}/{each[family][1]}" for each in families.values()]
            yield f"| {family} | {' | '.join(found)} |"


def _side_bars(document: Document) -> Iterator[Bar]:
    for side, found in document["sides"].items():
        low, high = found["interval"]
        shown = f"{found['passed']} of {found['problems']}"
        yield Bar(side, 100 * found["pass_rate"], 100 * low, 100 * high, shown)


def _of_sandbox(document: Document) -> Iterator[str]:
    sides = list(document["geometric_means"])
    cells = {(cell["side"], cell["workload"]): cell for cell in document["cells"]}
    yield "| program, as a multiple of plain `exec` | " + " | ".join(sides) + " |"
    yield "| --- |" + " --- |" * len(sides)
    for workload in dict.fromkeys(cell["workload"] for cell in document["cells"]):
        row = [_ratio(cells.get((side, workload))) for side in sides]
        yield f"| {workload.replace('_', ' ')} | {' | '.join(row)} |"
    means = [
        "-" if mean is None else f"**{mean:.2f}** ({sum(_ran(cells, side))} of {len(_ran(cells, side))})"
        for side, mean in document["geometric_means"].items()
    ]
    yield f"| geometric mean, of those that ran | {' | '.join(means)} |"


def _ran(cells: Mapping[tuple[str, str], Document], side: str) -> list[bool]:
    return [cell["status"] == "ok" for (of, _), cell in cells.items() if of == side]


def _ratio(cell: Document | None) -> str:
    if cell is None:
        return ""
    if cell["ratio"] is None:
        return "cannot run" if cell["status"] == "cannot" else str(cell["status"])
    return f"{cell['ratio']:.2f}"


def _sandbox_bars(document: Document) -> Iterator[Bar]:
    for side, mean in document["geometric_means"].items():
        if mean is not None:
            yield Bar(side, mean, shown=f"{mean:.2f}")


def _of_numbers(document: Document) -> Iterator[str]:
    yield "| what | |"
    yield "| --- | --- |"
    for name, value in document["figures"].items():
        yield f"| {name} | {value:,.3f} |"


def _of_levels(document: Document) -> Iterator[str]:
    levels = {name: found for name, found in document["figures"].items() if name != "floor"}
    yield f"| what | {' | '.join(levels)} |"
    yield "| --- |" + " --- |" * len(levels)
    for name in dict.fromkeys(name for found in levels.values() for name in found):
        values = [found.get(name) for found in levels.values()]
        yield f"| {name} | {' | '.join(_number(value) for value in values)} |"


def _of_state(document: Document) -> Iterator[str]:
    found = document["figures"]
    yield "| a turn | ms | of the floor | bytes stored |"
    yield "| --- | --- | --- | --- |"
    for name, row in found["turns"].items():
        yield f"| {name} | {row['ms']:.2f} | {row['ratio']:.2f} | {row['bytes stored']:,.0f} |"
    yield ""
    yield "| one of N keys changed | N | ms | of the floor |"
    yield "| --- | --- | --- | --- |"
    for row in found["commits"]:
        level = {"disk": ", durable" if row["durable"] else ", without waiting for the disk"}
        name = f"{row['store']}{level.get(row['store'], '')}"
        yield f"| {name} | {row['keys']:,} | {row['milliseconds']:.3f} | {row['ratio']:.2f} |"
    yield ""
    yield "| what | |"
    yield "| --- | --- |"
    for name, value in {**found["history"], **found["open"]}.items():
        yield f"| {name} | {value:,.2f} |"


def _number(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:,.2f}"


class File(NamedTuple):
    """How a file of results is shown."""

    title: str
    tables: Callable[[Document], Iterator[str]]
    bars: Callable[[Document], Iterator[Bar]] | None = None
    most: float | None = None
    """Where the scale ends; None at the largest bar."""


FILES: Mapping[str, File] = {
    "humaneval-0.5b": File("HumanEval, problems passed (%), Qwen2.5-Coder-0.5B", _of_sides, _side_bars, 100),
    "tables-0.5b": File("Work on tables, tasks passed (%), Qwen2.5-Coder-0.5B", _of_sides, _side_bars, 100),
    "sandbox": File("Time as a multiple of plain exec (lower is better)", _of_sandbox, _sandbox_bars),
    "state": File("The versioned state", _of_state),
    "isolation": File("The isolation levels", _of_levels),
    "agent": File("A turn, beside the model", _of_numbers),
}


# -- pictures

_WIDTH, _ROW, _LEFT, _TOP = 640, 30, 150, 44
_STYLE = (
    "text{font:14px system-ui,sans-serif;fill:#1f2328}"
    ".bar{fill:#3b6ea8}.line{stroke:#1f2328;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#6ea3dc}.line{stroke:#e6edf3}}"
)


def drawn(title: str, bars: Sequence[Bar], *, most: float | None = None) -> str:
    """Return bars as SVG, with their intervals; it is readable on a light and on a dark page."""
    scale = (_WIDTH - _LEFT - 110) / (most or max(bar.high or bar.value for bar in bars))
    height = _TOP + _ROW * len(bars) + 8
    described = ", ".join(f"{bar.label} {bar.shown}" for bar in bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{html.escape(title)}: {html.escape(described)}</title>",
        f"<style>{_STYLE}</style>",
        f'<text x="8" y="24" font-weight="600">{html.escape(title)}</text>',
    ]
    for number, bar in enumerate(bars):
        end = _LEFT + bar.value * scale
        lines += [
            f'<g transform="translate(0 {_TOP + number * _ROW})">',
            f'<text x="{_LEFT - 10}" y="15" text-anchor="end">{html.escape(bar.label)}</text>',
            f'<rect class="bar" x="{_LEFT}" width="{end - _LEFT:.1f}" height="20" rx="2"/>',
        ]
        if bar.low is not None and bar.high is not None:
            low, high = f"{_LEFT + bar.low * scale:.1f}", f"{_LEFT + bar.high * scale:.1f}"
            lines.append(f'<path class="line" d="M{low} 10H{high}M{low} 5v10M{high} 5v10"/>')
            end = max(end, float(high))
        lines += [f'<text x="{end + 8:.1f}" y="15">{html.escape(bar.shown)}</text>', "</g>"]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
