"""What ``agex log``, ``show`` and ``diff`` say of files."""

from __future__ import annotations

import io

from rich.console import Console

from agex.cli import history
from agex.state import Memory, Versioned


def state_with_two_versions() -> Versioned:
    state = Versioned(Memory())
    state.files["notes.txt"] = b"one\n"
    state["x"] = 1
    state.commit("first")
    state.files["notes.txt"] = b"two\n"
    state.commit("second")
    return state


def test_the_log_names_the_files_of_each_commit():
    entries = history.log(state_with_two_versions(), 10)
    assert [entry["files"] for entry in entries] == [
        {"+": [], "-": [], "~": ["notes.txt"]},
        {"+": ["notes.txt"], "-": [], "~": []},
    ]
    console = Console(file=io.StringIO(), width=200)
    history.print_log(entries, console)
    assert "~notes.txt" in console.file.getvalue()


def test_a_commit_shows_what_it_did_to_files():
    entry = history.show(state_with_two_versions(), "main")
    assert entry["file_changes"] == "~ notes.txt:\n    @@ -1 +1 @@\n    -one\n    +two"
    console = Console(file=io.StringIO(), width=200)
    history.print_commit(entry, console)
    assert "-one" in console.file.getvalue()


def test_a_difference_of_two_commits_shows_files_beside_variables():
    state = state_with_two_versions()
    first = next(commit.hash for commit in state.history() if commit.message == "first")
    found = history.compare(state, first, "main")
    assert found["files"]["changed"] == {"notes.txt": "@@ -1 +1 @@\n-one\n+two"}
    assert found["changed"] == {}
