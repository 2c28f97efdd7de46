"""Docstrings and comments keep to the words of the style sheet in CONTRIBUTING.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from vocabulary import EXEMPT, SOURCES, findings, report


def refused(source: str) -> list[tuple[int, str]]:
    return [(found.line, found.text) for found in findings(source)]


def test_the_sources_keep_to_the_style_sheet() -> None:
    assert list(report()) == []


def test_every_exempt_room_exists() -> None:
    assert [room for room in EXEMPT if not (SOURCES / room).is_dir()] == []


@pytest.mark.parametrize("opening", ["What", "Whatever", "Give", "Tell", "Have"])
def test_a_docstring_does_not_open_with_a_word_that_hides_the_subject(opening: str) -> None:
    assert refused(f'def f():\n    """{opening} a thing."""\n') == [(2, f"{opening} a thing.")]


def test_the_docstring_of_a_module_a_class_a_field_and_a_constant_is_read() -> None:
    fields = '"""What 1."""\nclass C:\n    """What 3."""\n    x: int\n    """What 5."""\n'
    constant = 'X = 1\n"""What 7."""\n'
    assert [line for line, _ in refused(fields + constant)] == [1, 3, 5, 7]


def test_a_comment_is_read_alone_and_behind_code() -> None:
    source = "# What is above.\nx = 1  # what is beside, whoever reads it\n"
    assert [line for line, _ in refused(source)] == [1, 2]


def test_comments_on_lines_that_follow_each_other_are_one_text() -> None:
    assert refused("# A line that ends before\n# What opens no sentence here.\n") == []


@pytest.mark.parametrize(
    "phrase",
    ["a class of the guest's", "code of the host's", "the guest's of it", "whoever asks", "whatever it is"],
)
def test_a_chain_of_genitives_and_the_indefinite_pronouns_are_found_anywhere(phrase: str) -> None:
    assert refused(f'"""Return {phrase}."""\n') == [(1, f"Return {phrase}.")]


def test_a_chain_over_the_end_of_a_line_is_found_at_its_beginning() -> None:
    assert refused('"""One.\n\nThe class of\n    the guest\'s own."""\n') == [(3, "The class of")]
    assert refused("# The class of\n# the guest's own.\n") == [(1, "The class of")]


@pytest.mark.parametrize(
    "text", ["Return whether it is so.", "Return the guest's name.", "Giving up ends it.", "Whatsoever."]
)
def test_plain_sentences_pass(text: str) -> None:
    assert refused(f'"""{text}"""\n# {text}\n') == []


def test_code_and_other_strings_are_not_read() -> None:
    assert refused('x = "What is it, of the guest\'s?"\nWhat = 1\nf(whoever=2)\n') == []


@pytest.mark.parametrize("decorator", ["@agent.task", "@agent.task(primer='p')"])
def test_the_docstring_of_a_task_is_a_prompt_and_is_not_read(decorator: str) -> None:
    assert refused(f'{decorator}\ndef f():\n    """Give the mean."""\n') == []


def room(root: Path, name: str, source: str) -> None:
    (root / name).mkdir()
    (root / name / "module.py").write_text(source, encoding="utf-8")


def test_a_finding_names_file_line_and_reason(tmp_path: Path) -> None:
    room(tmp_path, "state", "x = 1\n# Tell all.\n")
    [line] = report(tmp_path, frozenset())
    assert line.startswith(f"{tmp_path.name}/state/module.py:2: opens with 'Tell'")


def test_an_exempt_room_is_let_pass_while_it_has_findings(tmp_path: Path) -> None:
    room(tmp_path, "state", "# Tell all.\n")
    assert list(report(tmp_path, frozenset({"state"}))) == []


def test_an_exempt_room_without_findings_has_to_leave_the_list(tmp_path: Path) -> None:
    room(tmp_path, "state", "# Tells all.\n")
    [line] = report(tmp_path, frozenset({"state"}))
    assert line.startswith("state: nothing is left to find here")
