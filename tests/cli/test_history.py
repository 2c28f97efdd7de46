"""``agex log|show|diff|fork|fsck|gc`` on a real directory."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from agex import Agent, Disk, Versioned
from agex.cli.app import app
from agex.errors import StateConflict
from agex.testing import ScriptedModel, python_action

RUNNER = CliRunner()


@pytest.fixture
def directory(tmp_path):
    where = tmp_path / "state"
    state = Versioned(Disk(where))
    codes = ["n = 1\nprint('hello')", "n = 2\nrows = [1]", "task_success(n)"]
    agent = Agent(model=ScriptedModel([[python_action(code)] for code in codes]))

    @agent.task
    def count() -> int: ...

    count(state=state)
    state.close()
    return where


def call(*args, code=0):
    result = RUNNER.invoke(app, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


def call_json(*args, code=0):
    return json.loads(call(*args, "--json", code=code))


def test_log_lists_commits_with_task_turn_and_changes(directory):
    newest, second, first = call_json("log", directory)
    assert (first["message"], first["task"], first["turn"]) == ("count: turn 1", "count", 1)
    assert second["changed"] == {"+": ["rows"], "-": [], "~": ["n"]}
    assert newest["names"] == ["main"]
    assert len(call_json("log", directory, "-n", "1")) == 1
    assert "count: turn 2" in call("log", directory)


def test_show_gives_the_code_the_output_and_the_variables(directory):
    first = call_json("log", directory)[-1]["hash"]
    entry = call_json("show", directory, first)
    assert [step["kind"] for step in entry["steps"]] == ["code", "output"]
    assert entry["variables"] == {"n": "1"}
    shown = call("show", directory, first)
    assert "print('hello')" in shown
    assert "n = 1" in shown


def test_diff_names_and_shows_what_changed(directory):
    first = call_json("log", directory)[-1]["hash"]
    found = call_json("diff", directory, first)
    assert (found["changed"], found["added"]) == ({"n": "1 -> 2"}, {"rows": "[1]"})
    assert "~ n: 1 -> 2" in call("diff", directory, first)


def test_fork_fsck_and_gc(directory):
    first = call_json("log", directory)[-1]["hash"]
    assert call_json("fork", directory, "side", "--at", first) == {"branch": "side", "head": first}
    assert call_json("fsck", directory) == {"ok": True, "problems": []}
    assert "Nothing is damaged" in call("fsck", directory)
    assert call_json("gc", directory)["commits"] == 0


def test_a_damaged_store_is_said_to_be_one(directory):
    database = directory / "state.db"
    data = bytearray(database.read_bytes())
    where = data.rindex(b"hello")
    data[where] ^= 1
    database.write_bytes(data)
    assert not call_json("fsck", directory, code=1)["ok"]


def test_a_directory_without_a_state_is_refused_and_not_made(tmp_path):
    assert "holds no state" in call("log", tmp_path / "typo", code=2)
    assert not (tmp_path / "typo").exists()
    assert call("show", tmp_path, code=2)


# -- branches ------------------------------------------------------------------------------------


def test_branches_are_listed_and_deleted(directory):
    first = call_json("log", directory)[-1]["hash"]
    call("fork", directory, "side", "--at", first)
    entries = call_json("branch", directory)
    assert [(entry["branch"], entry["conflict"]) for entry in entries] == [("main", False), ("side", False)]
    assert first[:10] in call("branch", directory)
    assert call_json("branch", directory, "--delete", "side") == {"branch": "side", "head": first}
    assert [entry["branch"] for entry in call_json("branch", directory)] == ["main"]
    assert "the last one" in call("branch", directory, "--delete", "main", code=2)
    assert "no branch 'mian'" in call("branch", directory, "--delete", "mian", code=2)


def test_the_branch_called_main_may_be_deleted_where_there_is_another(directory):
    call("fork", directory, "side")
    assert "Branch main is deleted" in call("branch", directory, "--delete", "main")
    assert [entry["branch"] for entry in call_json("branch", directory)] == ["side"]
    for command in ("fsck", "gc", "branch"):
        call(command, directory)
    assert "no branch 'main'" in call("log", directory, code=2)
    assert call_json("log", directory, "--branch", "side")
    assert call_json("show", directory, "side")["message"]


def test_a_branch_that_is_not_there_is_not_begun_by_looking_at_it(directory):
    assert "there is 'main'" in call("log", directory, "--branch", "typo", code=2)
    assert [entry["branch"] for entry in call_json("branch", directory)] == ["main"]


def test_branches_of_conflicts_are_shown_as_such_and_collected_by_their_age(directory):
    store = Disk(directory)
    first, second = Versioned(store), Versioned(store)
    first["n"] = 5
    first.commit()
    second["n"] = 6
    with pytest.raises(StateConflict):
        second.commit()
    store.close()
    assert [entry["conflict"] for entry in call_json("branch", directory)] == [False, True]
    assert "of a conflict" in call("branch", directory)
    assert call_json("gc", directory)["branches"] == 0
    assert call_json("gc", directory, "--conflicts-older-than", "30d")["branches"] == 0
    assert "no length of time" in call("gc", directory, "--conflicts-older-than", "soon", code=2)
    assert call_json("gc", directory, "--conflicts-older-than", "0")["branches"] == 1
    assert len(call_json("branch", directory)) == 1


def test_a_store_is_backed_up_and_the_copy_is_opened(directory, tmp_path):
    made = call_json("backup", directory, tmp_path / "copy")
    assert made["backup"] == str(tmp_path / "copy")
    assert [entry["hash"] for entry in call_json("log", tmp_path / "copy")] == [
        entry["hash"] for entry in call_json("log", directory)
    ]
    assert call_json("fsck", tmp_path / "copy") == {"ok": True, "problems": []}
    assert "already" in call("backup", directory, tmp_path / "copy", code=2)
    assert "holds a copy" in call("backup", directory, tmp_path / "another")
    assert "holds no state" in call("backup", tmp_path / "typo", tmp_path / "third", code=2)


def test_diff_compares_the_head_with_its_parent_where_no_commit_is_named(directory):
    with_parent = call_json("diff", directory, call_json("log", directory)[0]["parent"])
    assert call_json("diff", directory) == with_parent


def test_log_says_which_agent_and_that_times_are_of_utc(directory):
    assert call_json("log", directory)[0]["agent"] == "agent"
    first, *_ = call("log", directory).splitlines()
    assert " UTC agent " in first
