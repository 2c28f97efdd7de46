"""``agex shell``: people at the files of a state."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from agex import Disk, Versioned
from agex.cli.app import app


@pytest.fixture
def directory(tmp_path):
    state = Versioned(Disk(tmp_path / "state"))
    state.files["notes.txt"] = b"one\n"
    state.commit("first")
    state.close()
    return tmp_path / "state"


def shell(directory, *args, stdin=None):
    return CliRunner().invoke(app, ["shell", str(directory), *args], input=stdin)


def test_a_script_reads_the_files(directory):
    done = shell(directory, "-c", "cat notes.txt | wc -l; python -c 'print(open(\"notes.txt\").read())'")
    assert (done.exit_code, done.output.split()) == (0, ["1", "one"])


def test_what_it_changes_is_a_commit(directory):
    assert shell(directory, "-c", "echo two >> notes.txt").exit_code == 0
    state = Versioned(Disk(directory))
    newest, oldest = state.history()
    assert newest.message == "shell: echo two >> notes.txt"
    assert state.diff(oldest, newest).files.changed == {"notes.txt": "@@ -1 +1,2 @@\n one\n+two"}
    state.close()


def test_what_it_only_reads_is_no_commit(directory):
    result = json.loads(shell(directory, "--json", "-c", "ls").output)
    assert result == {"text": "notes.txt\n", "failed": False, "exit_code": 0, "commit": None}


def test_a_script_may_be_piped_in(directory):
    assert shell(directory, stdin="mkdir d\nls\n").output.split() == ["d", "notes.txt"]


def test_a_failure_is_the_exit_code(directory):
    assert shell(directory, "-c", "cat missing").exit_code == 1


def test_a_directory_without_a_state_is_a_mistake_in_the_call(tmp_path):
    assert shell(tmp_path, "-c", "ls").exit_code == 2


def test_a_piped_script_ends_where_it_says_exit(directory):
    result = shell(directory, stdin="echo one\nexit\necho two\n")
    assert (result.exit_code, result.stdout.strip()) == (0, "one")
