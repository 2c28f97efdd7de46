"""Writes the pictures of the documentation, docs/pictures/*.svg: ``make pictures``.

Each is text and lines, drawn by hand here, with colours for light and for dark. Two are made by the library
itself: the four forms of a line of code, and the recording of a terminal.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.segment import Segment

__all__ = ["pictures"]

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
STYLE = """\
.page{fill:#fff;stroke:#d0d7de}.box{fill:#f6f8fa;stroke:#8c959f}.wall{fill:none;stroke:#1a7f37;stroke-width:3}
.soft{fill:none;stroke:#9a6700;stroke-dasharray:6 4}text{fill:#1f2328;font:14px system-ui,sans-serif}
.head{font-weight:600}.small{font-size:12px;fill:#57606a}
.code{font:13px ui-monospace,monospace;white-space:pre}
.line{fill:none;stroke:#57606a;stroke-width:1.5}.dot{fill:#0969da}.fork{fill:#8250df}.tip{fill:#57606a}
.good{fill:#1a7f37}.bad{fill:#cf222e}.magenta{fill:#8250df}.cyan{fill:#0a6b7c}.dim{fill:#6e7781}
@media(prefers-color-scheme:dark){.page{fill:#0d1117;stroke:#30363d}.box{fill:#161b22;stroke:#6e7681}
.wall{stroke:#3fb950}.soft{stroke:#d29922}text{fill:#e6edf3}.small{fill:#9198a1}.line{stroke:#9198a1}
.dot{fill:#58a6ff}.fork{fill:#bc8cff}.tip{fill:#9198a1}.good{fill:#3fb950}.bad{fill:#ff7b72}.magenta{fill:#d2a8ff}
.cyan{fill:#56d4dd}.dim{fill:#9198a1}}
"""
"""Text and ground come together, so that a picture can be read on any page."""

TIP = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"'


class Picture:
    """An SVG in the making; lengths are in pixels."""

    def __init__(self, width: int, height: int, title: str, *, style: str = "") -> None:
        space = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {space} role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}{style}</style>",
            f'<defs><marker id="tip" {TIP}><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>',
        ]
        self.box(1, 1, width - 2, height - 2, kind="page")

    def box(self, x: int, y: int, width: int, height: int, *lines: str, kind: str = "box") -> None:
        """Draw a box with lines of text, the first of which is its head."""
        self._parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
        for number, line in enumerate(lines):
            self.text(x + 12, y + 23 + 19 * number, line, kind="small" if number else "head")

    def text(self, x: int, y: int, text: str, *, kind: str = "", anchor: str = "start") -> None:
        """Write one line."""
        classes = f' class="{kind}"' if kind else ""
        self._parts.append(f'<text{classes} x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>')

    def arrow(self, x1: int, y1: int, x2: int, y2: int, label: str = "") -> None:
        """Draw an arrow with a label above its middle."""
        self.line(x1, y1, x2, y2, end=' marker-end="url(#tip)"')
        if label:
            self.text((x1 + x2) // 2, min(y1, y2) - 7, label, kind="small", anchor="middle")

    def line(self, x1: int, y1: int, x2: int, y2: int, *, end: str = "") -> None:
        """Draw a line."""
        self._parts.append(f'<path class="line" d="M{x1} {y1}L{x2} {y2}"{end}/>')

    def dot(self, x: int, y: int, *, kind: str = "dot") -> None:
        """Draw a commit."""
        self._parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="8"/>')

    def raw(self, part: str) -> None:
        """Add an element as it is."""
        self._parts.append(part)

    def svg(self) -> str:
        """Return the file."""
        return "\n".join([*self._parts, "</svg>\n"])


def one_turn() -> str:
    """Draw a turn of a task."""
    made = Picture(780, 250, "One turn: the model writes, agex runs and checks, what went wrong goes back")
    made.box(20, 60, 150, 90, "your call", "total(prices)", "typed inputs,", "by reference")
    made.box(
        225, 60, 150, 90, "the model writes", "Python for the body,", "over names that", "you registered"
    )
    made.box(
        430, 60, 150, 90, "agex runs it", "guarded, with limits", "on time and output,", "where you chose"
    )
    made.box(635, 60, 125, 90, "the contract", "-> float,", "examples,", "checks")
    made.arrow(170, 105, 223, 105)
    made.arrow(375, 105, 428, 105, "code")
    made.arrow(580, 105, 633, 105, "value")
    for x in (505, 697):
        made.line(x, 150, x, 190)
    made.line(697, 190, 300, 190)
    made.arrow(300, 190, 300, 152)
    made.text(500, 208, "output, traceback, what does not fit: the next turn", kind="small", anchor="middle")
    made.line(697, 60, 697, 30)
    made.line(697, 30, 95, 30)
    made.arrow(95, 30, 95, 58)
    made.text(
        396, 24, "a value that fits; events, usage and commit in the run", kind="small", anchor="middle"
    )
    made.text(20, 236, "Each turn is an event that you can watch, and a commit that you can go back to.")
    return made.svg()


def where_code_runs() -> str:
    """Draw the four levels of isolation."""
    made = Picture(780, 290, "Where code runs: four levels of isolation")
    levels = (
        ("none", "your process", ("guards in the code", "no boundary"), "soft"),
        ("process", "a worker", ("can be killed", "no boundary"), "soft"),
        ("kernel", "a worker", ("no network, no host files", "a boundary"), "wall"),
        ("container", "a container", ("an image of its own", "a boundary"), "wall"),
    )
    for number, (level, place, lines, kind) in enumerate(levels):
        x = 20 + 190 * number
        made.text(x, 32, f'isolation="{level}"', kind="code")
        made.box(x, 45, 170, 85, "your process", "your objects,", "functions, secrets")
        y = 93 if level == "none" else 165
        if level == "none":
            made.box(x, 145, 170, 80, "the agent's code", *lines)
            made.box(x - 6, 39, 182, 194, kind=kind)
        else:
            made.box(x, y, 170, 80, "the agent's code", *lines)
            made.box(x - 6, y - 6, 182, 92, kind=kind)
            made.arrow(x + 55, 130, x + 55, 157)
            made.arrow(x + 115, 157, x + 115, 132)
        made.text(x, 268, place, kind="small")
    return made.svg()


def what_crosses() -> str:
    """Draw the border between the host and a worker."""
    made = Picture(780, 260, "What crosses between your process and a worker")
    made.box(20, 30, 270, 200, "your process", "the model's answers, keys, secrets")
    made.box(490, 30, 270, 200, "a worker", "the agent's code and its variables")
    for number, line in enumerate(
        ("state, files, registered objects", "each call is judged here", "values are checked here")
    ):
        made.text(32, 110 + 45 * number, line, kind="small")
    for number, line in enumerate(("runs the code", "proxies of your functions", "task_success(value)")):
        made.text(502, 110 + 45 * number, line, kind="small")
    made.arrow(292, 80, 488, 80, "code, inputs as plain values")
    made.arrow(488, 140, 292, 140, "calls by name, plain arguments")
    made.arrow(292, 170, 488, 170, "their results")
    made.arrow(488, 220, 292, 220, "the value; never unpickled")
    return made.svg()


def commits_and_forks() -> str:
    """Draw a history with a fork and a merge."""
    made = Picture(780, 220, "Commits and forks of a Versioned state")
    steps = ("start", "turn 1", "turn 2", "turn 3", "merge")
    for number, step in enumerate(steps):
        x = 100 + 140 * number
        if number:
            made.line(x - 132, 70, x - 8, 70)
        made.dot(x, 70)
        made.text(x, 48, step, kind="small", anchor="middle")
    made.line(246, 76, 374, 144)
    made.line(388, 150, 512, 150)
    made.line(526, 144, 654, 76)
    for number, step in enumerate(("turn 1", "turn 2")):
        made.dot(380 + 140 * number, 150, kind="fork")
        made.text(380 + 140 * number, 176, step, kind="small", anchor="middle")
    made.text(20, 75, "main", kind="head")
    made.text(230, 155, "state.fork()", kind="code")
    made.text(690, 75, "head", kind="head")
    made.text(
        20,
        206,
        "One commit for each action: variables, workspace, cache, events. checkout(ref), diff(a, b)",
        kind="small",
    )
    return made.svg()


LINE = "shop.note = best(rows)"


def forms() -> list[tuple[str, str]]:
    """Return a line of code in its four forms, as the library makes them."""
    from agex.sandbox import Policy
    from agex.sandbox.language.compiler import compile_module
    from agex.sandbox.language.transformer import rewrite

    rules = Policy.default().text
    tree = ast.parse(LINE)
    parts = ast.dump(tree.body[0]).replace("ctx=Load()", "").replace("ctx=Store()", "").replace(", )", ")")
    parts = parts.replace(", keywords=[]", "")  # which newer versions leave out
    rewrite(tree, rules, echo=False, flat=True)
    code = compile_module(LINE, "<turn 1>", rules, echo=False, flat=True)
    return [
        ("1. as the model writes it", LINE),
        ("2. as a tree: every kind of node has a verdict, the others are refused", parts),
        ("3. rewritten: a guard where the answer depends on the object", ast.unparse(tree.body[-1])),
        (
            "4. as CPython's own bytecode, whose names are looked over once more",
            f"names: {', '.join(code.co_names)}",
        ),
    ]


def four_forms() -> str:
    """Draw a line of code in its four forms."""
    made = Picture(780, 350, "One line of code in its four forms")
    for number, (label, form) in enumerate(forms()):
        y = 20 + 82 * number
        made.box(20, y, 740, 62, label)
        for row, start in enumerate(range(0, len(form), 88)):
            made.text(32, y + 42 + 14 * row, form[start : start + 88], kind="code")
        if number:
            made.arrow(390, y - 20, 390, y - 2)
    return made.svg()


# -- the recording -----------------------------------------------------------------------------

CODE = (
    "task_success(sum(float(each) for each in readings) / len(readings))",
    """\
found = [float(each) for each in readings if each.replace('.', '').isdigit()]
task_success(round(sum(found) / len(found), 2))""",
)
"""The code of two turns."""
COLUMNS = 84
PAUSE = 0.18
"""Seconds between two lines."""
MOVES = """\
@keyframes row{from{opacity:0}}
@media(prefers-reduced-motion:no-preference){.row{animation:row 0s both}}
"""
CLASSES = {"green": "good", "red": "bad", "magenta": "magenta", "cyan": "cyan"}


def terminal() -> str:
    """Draw a run with a correction, as a terminal shows it, line by line."""
    lines = list(recorded())
    made = Picture(780, 50 + 18 * len(lines), "A terminal: a run whose first turn fails", style=MOVES)
    made.text(20, 28, "$ agex run readings:average", kind="code")
    for number, segments in enumerate(lines):
        spans = "".join(f'<tspan class="{_class(each)}">{escape(each.text)}</tspan>' for each in segments)
        made.raw(
            f'<text class="code row" style="animation-delay:{PAUSE * number:.2f}s" xml:space="preserve" '
            f'x="20" y="{50 + 18 * number}">{spans}</text>'
        )
    return made.svg()


def recorded() -> Iterator[Sequence[Segment]]:
    """Yield the lines of a run on a terminal, with times that are always the same."""
    from agex import Agent
    from agex.agent import pprint_events
    from agex.testing import ScriptedModel

    console = Console(
        file=io.StringIO(), width=COLUMNS, force_terminal=True, color_system="standard", legacy_windows=False,
        highlight=False, record=True,
    )  # fmt: skip
    agent = Agent(name="lab", model=ScriptedModel([f"```python\n{each}\n```" for each in CODE]))

    @agent.task
    def average(readings: list[str]) -> float:
        """Average the readings that are numbers."""
        raise NotImplementedError

    def show(event: Any) -> None:
        pprint_events(event, console)

    average.using(on_event=show)(["21.5", "22.0", "n/a", "19.5"])
    segments = console._record_buffer  # pyright: ignore[reportPrivateUsage] - `export_svg` draws one palette
    steady = [each._replace(text=VARIES.sub(_steady, each.text)) for each in segments]
    for line in Segment.split_lines(each for each in steady if not each.control):
        yield [each for each in line if each.text]


VARIES = re.compile(r" · \d+\+\d+ tokens|\d+\.\d+ s\b")
"""Counts of tokens and times, which change with the prompt and with the machine."""


def _steady(found: re.Match[str]) -> str:
    return "0.1 s" if found[0].endswith("s") and found[0][0].isdigit() else ""


def _class(segment: Segment) -> str:
    style = segment.style
    color = None if style is None or style.color is None else style.color.name
    names = [CLASSES.get(color or "", ""), "dim" if style is not None and style.dim else ""]
    return " ".join(name for name in (*names, "head" if style is not None and style.bold else "") if name)


def pictures() -> dict[str, str]:
    """Return the pictures by the name of their files."""
    return {
        "one-turn.svg": one_turn(),
        "where-code-runs.svg": where_code_runs(),
        "what-crosses.svg": what_crosses(),
        "commits-and-forks.svg": commits_and_forks(),
        "four-forms.svg": four_forms(),
        "terminal.svg": terminal(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn, encoding="utf-8")
