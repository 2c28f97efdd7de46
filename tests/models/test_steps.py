"""The reader of replies takes steps in proportion to the text. Steps are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from agex._interpreter import syntax_trees
from agex.models.actions import python_action
from agex.models.parser import MOST_ACTIONS, parse_calls, parse_text

HOSTILE: dict[str, str] = {
    "strings left open": "```python\nx = '''\n",
    "strings of two kinds left open": "```python\nx = ''' \"\"\"\n```\n",
    "blocks that do not parse": "```python\nx = = 1\n```\n",
    "blocks in blocks": "```bash\n```a\n```a\n```\n",
    "opening markers": "<think>",
    "closing markers": "</think> ```python\nf()\n```\n",
    "quoted markers": "`</think>` ",
    "markers in open blocks": "```python\nx = (\n</think>\n",
    "end markers": "<|end|> \n",
    "channels": "<|channel|>analysis<|message|>",
    "phrases": "Here is my thought process\n",
    "tool calls left open": "<tool_call>{\n",
    "parameters left open": "<function=a><parameter=b>",
    "keys left open": "<tool_call>a<arg_key>a</arg_key><arg_value>",
    "tags in tags": "<answer>\n",
    "passages left open": "```edit_file path=a\n<<<<<<< SEARCH\n",
    "passages half open": "<<<<<<< SEARCH\n=======\n",
    "marks in a line": "``` ",
    "marks in comments": "```python\n# a ``` ",
    "quotations": "> ```python\n> f()\n",
    "bare blocks": "```\nf()\n```\n",
    "magics": "```python\n%a\n",
    "json left open": '{"name": ',
    "blank lines": "\n\n\n",
}


def steps(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the calls that some work makes, of C functions too, and the characters that are parsed."""
    count = 0
    whole = syntax_trees.parse

    def counting(source: Any) -> Any:
        nonlocal count
        count += len(source)
        return whole(source)

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    monkeypatch.setattr(syntax_trees, "parse", counting)
    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
        monkeypatch.undo()
    return count


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("head", ["", "```python\n", "```edit_file path=a\n", "<tool_call>"])
def test_a_text_of_twice_the_length_takes_about_twice_the_steps(
    head: str, piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, twice = (
        steps(lambda text=head + piece * count: parse_text(text), monkeypatch) for count in (150, 300)
    )
    assert twice <= 2.5 * once + 2_000


def test_a_reply_has_so_many_actions_and_the_model_is_told() -> None:
    parsed = parse_text("```python\nf()\n```\n" * 200)
    assert parsed.actions == (python_action("f()"),) * MOST_ACTIONS
    assert parsed.notes == (
        "Your answer holds more than 32 actions; what follows the first 32 was not executed.",
    )


def test_a_reply_of_tool_calls_has_so_many_too() -> None:
    parsed = parse_calls([("python_action", {"code": "f()"})] * 5, most=3)
    assert (len(parsed.actions), len(parsed.notes)) == (3, 1)
