from __future__ import annotations

from agex.agent import ActionEvent, OutputEvent, Token, pprint_events, pprint_tokens
from agex.models.actions import python_action
from agex.models.base import Usage

WHERE = {"agent": "a", "task": "t", "run_id": "r", "turn": 2}


def test_events_are_printed_as_plain_text_when_there_is_no_terminal(capsys):
    pprint_events(
        ActionEvent(
            **WHERE, actions=(python_action("x = [1]  # [bold]"),), usage=Usage(input_tokens=3), seconds=1
        )
    )
    pprint_events(OutputEvent(**WHERE, text="[red]not markup[/red]", error=True))
    shown = capsys.readouterr().out
    assert [line.rstrip() for line in shown.splitlines()] == [
        "a.t · action · turn 2 · 3+0 tokens · 1.0 s",
        "x = [1]  # [bold]",
        "a.t · output · turn 2 · 0.00 s",
        "[red]not markup[/red]",
    ]


def test_long_output_is_cut_in_print(capsys):
    pprint_events(OutputEvent(**WHERE, text="x" * 10**6))
    assert len(capsys.readouterr().out) < 3_000


def test_tokens_are_printed_as_they_come(capsys):
    for text in ("a", "b\n"):
        pprint_tokens(Token(text, agent="a", task="t", turn=1))
    assert capsys.readouterr().out == "ab\n"
