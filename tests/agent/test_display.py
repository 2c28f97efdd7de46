from __future__ import annotations

from agex.agent import ActionEvent, OutputEvent, Token, pprint_events, pprint_tokens
from agex.models.actions import python_action, terminal_action
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
        "✗ a.t · output · turn 2 · 0.00 s",
        "[red]not markup[/red]",
    ]


def test_long_output_is_cut_in_print(capsys):
    pprint_events(OutputEvent(**WHERE, text="x" * 10**6))
    assert len(capsys.readouterr().out) < 3_000


def test_tokens_are_printed_as_they_come(capsys):
    for text in ("a", "b\n"):
        pprint_tokens(Token(text, agent="a", task="t", turn=1))
    assert capsys.readouterr().out == "ab\n"


def test_what_a_model_writes_cannot_give_orders_to_the_terminal(capsys):
    order = (
        "\x1b]52;c;cm0gLXJmIC8=\x07\x9b2J\u202e"  # write the clipboard, clear the screen, turn text around
    )
    pprint_events(ActionEvent(**WHERE, text=order, actions=(python_action(order), terminal_action(order))))
    pprint_events(OutputEvent(**WHERE, text=order))
    pprint_tokens(Token(order, agent="a", task="t", turn=1))
    shown = capsys.readouterr().out
    assert not set("\x1b\x07\x9b\u202e") & set(shown)
    assert shown.count("x1b]52") == 5
