"""The terminal by itself: scripts over any file system."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from termish import CommandResult

from agex.files import MemorySpace, VirtualFiles
from agex.shell import Terminal, TerminalCommand, Transcript


@pytest.fixture
def files():
    return VirtualFiles(MemorySpace())


def test_a_script_gives_its_transcript(files):
    assert Terminal(files).run("echo x > a; cat a") == Transcript(text="x\n")


def test_a_failure_keeps_what_was_printed_before_and_its_exit_code(files):
    transcript = Terminal(files).run("echo before; ls missing")
    assert transcript.failed
    assert transcript.exit_code != 0
    assert transcript.text.startswith("before\nls: ")


def test_a_silent_failure_says_its_exit_code(files):
    assert Terminal(files).run("false") == Transcript(text="(exit code 1)", failed=True, exit_code=1)


def test_a_wrong_script_is_a_syntax_error(files):
    transcript = Terminal(files).run("echo 'x")
    assert (transcript.failed, transcript.exit_code) == (True, 2)
    assert transcript.text.startswith("syntax error: ")


def test_the_directory_stays_from_script_to_script(files):
    terminal = Terminal(files)
    terminal.run("mkdir d && cd d")
    assert terminal.run("pwd").text == "/d\n"


ANSWERS = {
    "nothing": (None, Transcript(text="")),
    "a text": ("said", Transcript(text="said\n")),
    "an exit code": (3, Transcript(text="(exit code 3)", failed=True, exit_code=3)),
    "a result": (
        CommandResult(exit_code=2, stderr="wrong"),
        Transcript(text="wrong", failed=True, exit_code=2),
    ),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_a_command_may_answer_in_several_ways(answer, expected, files):
    command = TerminalCommand(name="one", handler=lambda context: answer)
    assert Terminal(files, {"one": lambda context: command.run(context, nullcontext)}).run("one") == expected


def test_help_is_the_docstring_and_does_not_call_the_command(files):
    def handler(context):
        raise AssertionError("called")

    command = TerminalCommand(name="one", handler=handler, docstring="What it does.\n\nHow.")
    terminal = Terminal(files, {"one": lambda context: command.run(context, nullcontext)})
    assert terminal.run("one --help").text == "What it does.\n\nHow.\n"
    assert TerminalCommand(name="two", handler=handler).doc == ""
