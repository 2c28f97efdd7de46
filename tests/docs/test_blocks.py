"""Every Python block of the README and of the documentation runs, and prints what it says.

The blocks of one page share their names, from top to bottom. A comment above a block, opening
with ``<!-- reply``, holds what the model answers to it: each fenced block in the comment is one
turn. The block's own ``Agent(...)`` or ``TinyCodeAgent(...)`` is given a scripted model with these turns.
A line that starts with ``print(`` and ends in a comment promises that output.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agex.testing import ScriptedModel

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PIECE = re.compile(r"<!-- reply\n(?P<reply>.*?)-->|^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
TURN = re.compile(r"^```\w+\n.*?^```$", re.DOTALL | re.MULTILINE)
PROMISE = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One Python block of a page."""

    code: str
    turns: list[str]
    """What the model answers, turn by turn."""
    line: int
    """Where the code starts in the page."""


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    blocks: list[Block] = []
    turns: list[str] = []
    for piece in PIECE.finditer(text):
        if piece["reply"] is not None:
            turns = TURN.findall(piece["reply"])
            continue
        line = text.count("\n", 0, piece.start("code"))
        blocks.append(Block(code=piece["code"], turns=turns, line=line))
        turns = []
    return blocks


class _GiveModel(ast.NodeTransformer):
    """Write ``Agent(...)`` as ``Agent(..., model=scripted_model)`` where no model is given by ``model=``.

    A model that stands first, or each of a list, is the scripted one.
    """

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        is_agent = isinstance(node.func, ast.Name) and node.func.id in ("Agent", "TinyCodeAgent")
        if is_agent and node.args:
            first = node.args[0]
            scripted: ast.expr = ast.Name("scripted_model", ast.Load())
            if isinstance(first, ast.List):
                scripted = ast.List([scripted] * len(first.elts), ast.Load())
            node.args[0] = scripted
        elif is_agent and not any(keyword.arg == "model" for keyword in node.keywords):
            node.keywords.append(ast.keyword("model", ast.Name("scripted_model", ast.Load())))
        return node


def run(block: Block, page: Path, namespace: dict[str, Any]) -> None:
    """Run a block with its line numbers in the page; every scripted turn must be used."""
    model = namespace["scripted_model"] = ScriptedModel(list(block.turns))
    tree = ast.fix_missing_locations(_GiveModel().visit(ast.parse("\n" * block.line + block.code)))
    exec(compile(tree, str(page), "exec", dont_inherit=True), namespace)
    assert len(model.requests) == len(block.turns)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks_of(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_blocks_of_a_page_run_and_print_what_they_promise(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(page):
        run(block, page, namespace)
        assert capsys.readouterr().out.splitlines() == PROMISE.findall(block.code)


def test_the_readme_has_blocks_that_are_run() -> None:
    assert [bool(block.turns) for block in blocks_of(ROOT / "README.md")] == [True, False]
