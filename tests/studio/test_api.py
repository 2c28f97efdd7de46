"""What the page is told of a state that real tasks made."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from served import PNG, make_state
from servers import postgres_server
from typer.testing import CliRunner

from agex import Agent, Disk, Versioned
from agex.cli.app import app
from agex.studio import Api, NotHere, Refused
from agex.testing import ScriptedModel, python_action

HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>\"'`&"


def commits(client):
    return client.get("timeline")["commits"]


def test_the_timeline_lists_commits_as_the_log_does(client, tmp_path):
    timeline = client.get("timeline")
    assert (timeline["branch"], timeline["head"]) == ("main", timeline["commits"][0]["hash"])
    log = json.loads(CliRunner().invoke(app, ["log", str(tmp_path / "state"), "--json"]).output)
    assert [{key: entry[key] for key in log[0]} for entry in timeline["commits"]] == log
    assert [entry["turn"] for entry in timeline["commits"]] == [3, 2, 1]
    assert {entry["run"] for entry in timeline["commits"]} == {timeline["commits"][0]["run"]}


def test_the_conversation_is_what_was_asked_and_returned(client):
    newest, _, first = commits(client)
    assert first["said"] == [{"kind": "task", "text": "counter · count", "inputs": {"question": "How many?"}}]
    assert newest["said"] == [{"kind": "result", "text": "6 in all"}]


def test_a_commit_has_its_code_output_and_files(client):
    newest, second, first = (client.get(f"commit?ref={entry['hash']}") for entry in commits(client))
    assert [(step["kind"], step["text"]) for step in first["steps"][1:3]] == [
        ("code", "rows = [{'city': 'Ulm', 'n': 1}, {'city': 'Bern', 'n': 2}]\nprint('read', len(rows))"),
        ("output", "read 2"),
    ]
    written = next(step for step in second["steps"] if step["kind"] == "write")
    assert (written["path"], written["text"][:7]) == ("out/report.csv", "city,n\n")
    assert second["files"]["+"] == ["out/report.csv"]
    assert newest["steps"][-1]["text"] == "6 in all"


def test_variables_are_those_of_the_commit(client):
    newest, _, first = commits(client)
    then = client.get(f"variables?ref={first['hash']}")
    assert [(each["name"], each["type"], each["kind"]) for each in then] == [("rows", "list", "table")]
    now = {each["name"]: each for each in client.get(f"variables?ref={newest['hash']}")}
    assert (now["total"]["text"], now["double"]["kind"]) == ("3", "source")


def test_a_list_of_records_is_a_table(client):
    seen = client.get("variable?ref=main&name=rows")
    assert (seen["columns"], seen["rows"], seen["total"]) == (
        ["city", "n"],
        [["Ulm", "1"], ["Bern", "2"]],
        2,
    )


def test_a_function_of_the_agent_is_shown_as_source(client):
    seen = client.get("variable?ref=main&name=double")
    assert seen["text"] == "def double(n):\n    return n * 2"


def test_files_are_those_of_the_commit(client):
    first = commits(client)[-1]["hash"]
    assert client.get(f"files?ref={first}") == []
    (entry,) = client.get("files?ref=main")
    assert (entry["path"], entry["size"]) == ("out/report.csv", 20)
    seen = client.get("file?ref=main&path=out/report.csv")
    assert (seen["kind"], seen["columns"], seen["total"]) == ("table", ["city", "n"], 2)
    assert base64.b64decode(client.get("bytes?ref=main&path=out/report.csv")["data"])[:4] == b"city"


def test_a_difference_is_that_of_the_two_commits(client):
    newest, second, first = (entry["hash"] for entry in commits(client))
    found = client.get(f"diff?old={first}&new={second}")
    assert found["added"] == {}
    assert client.get(f"diff?old={second}&new={newest}")["added"]["total"] == "3"
    assert found["files"]["added"].keys() == {"out/report.csv"}
    assert client.get(f"diff?new={first}")["added"].keys() == {"rows"}


def test_a_fork_is_a_branch_at_that_commit_and_writes_nothing_else(client):
    newest, second, _ = (entry["hash"] for entry in commits(client))
    assert client.fork(name="what if", at=second) == {"branch": "what if", "head": second}
    assert client.fork(name="", at=second)["branch"] == "main-2"
    assert client.get("heads")["branches"] == {"main": newest, "main-2": second, "what if": second}
    there = client.get("timeline?branch=what+if")
    assert [entry["turn"] for entry in there["commits"]] == [2, 1]


def test_what_another_process_commits_is_seen(client, tmp_path):
    writer = Versioned(Disk(tmp_path / "state", durable=False))
    writer["late"] = 1
    head = writer.commit("by another")
    writer.close()
    assert client.get("heads")["branches"]["main"] == head
    assert commits(client)[0]["message"] == "by another"


def test_a_variable_that_is_not_there_is_not_found(client):
    first = commits(client)[-1]["hash"]
    assert "total" in client.get(f"variable?ref={first}&name=total", status=404)["error"]
    assert client.get("variable?ref=main&name=cache", status=404)
    assert client.get("variable?ref=main", status=400)
    assert "timeline" in client.get("nothing", status=404)["error"]


def test_an_empty_state_has_an_empty_timeline(serve, tmp_path):
    client = serve(Versioned(Disk(tmp_path / "new")))
    timeline = client.get("timeline")
    assert (timeline["head"], timeline["commits"], timeline["branches"]) == (None, [], {})


# -- what an agent wrote is hostile --------------------------------------------------------------


def test_no_method_of_an_agents_class_runs_to_show_it(serve, tmp_path):
    code = """
class Bomb:
    def boom(self, *args):
        raise SystemError("ran")
    __repr__ = __str__ = __len__ = __iter__ = __eq__ = __hash__ = __bool__ = __format__ = boom
    def __getattr__(self, name):
        raise SystemError("ran")
    def _repr_html_(self):
        raise SystemError("ran")

class Rows(list):
    def __iter__(self): raise SystemError("ran")
    def __len__(self): raise SystemError("ran")

class Text(str):
    def __str__(self): raise SystemError("ran")
    def __len__(self): raise SystemError("ran")

bomb, rows, text = Bomb(), Rows([1, 2]), Text("quiet")
nested = [{"a": Bomb()}, {"a": Text("quiet")}]
task_success("done")
"""
    client = serve(make_state(tmp_path / "s", [[python_action(code)]]))
    lines = {each["name"]: each for each in client.get("variables?ref=main")}
    assert lines.keys() >= {"bomb", "rows", "text", "nested"}
    assert "ran" not in str(lines)
    for name in lines:
        assert "ran" not in str(client.get(f"variable?ref=main&name={name}")["text"]).replace('"ran"', "")


def test_a_class_of_the_agents_own_is_no_table_by_its_name(serve, tmp_path):
    code = """
class DataFrame:
    __module__ = "pandas"
    shape = (1, 1)
    @property
    def iloc(self): raise SystemError("ran")
    def to_json(self): raise SystemError("ran")
class Figure(DataFrame):
    __module__ = "plotly.graph_objs._figure"
frame, figure = DataFrame(), Figure()
task_success("done")
"""
    client = serve(make_state(tmp_path / "s", [[python_action(code)]]))
    lines = {each["name"]: each for each in client.get("variables?ref=main")}
    assert [lines[name]["kind"] for name in ("frame", "figure")] == ["text", "text"]


def test_markup_anywhere_is_told_as_the_text_that_it_is(serve, tmp_path):
    path = HOSTILE.replace("/", "|")
    code = f"print({HOSTILE!r})\nhtml = {HOSTILE!r}\nrows = [{{{HOSTILE!r}: {HOSTILE!r}}}]\n"
    code += f"open({path + '.html'!r}, 'w').write({HOSTILE!r})\ntask_success(html)"
    state = make_state(tmp_path / "s", [[python_action(code)]], HOSTILE)
    state.fork(HOSTILE)
    client = serve(state, HOSTILE)
    response, content = client.send("GET", "/api/timeline", headers=client.key)
    assert response.headers["Content-Type"] == "application/json"
    timeline = json.loads(content)
    assert (timeline["name"], HOSTILE in timeline["branches"]) == (HOSTILE, True)
    commit = client.get("commit?ref=main")
    assert {step["text"] for step in commit["steps"]} >= {code, HOSTILE}
    assert client.get("variable?ref=main&name=rows")["columns"] == [HOSTILE]
    (entry,) = client.get("files?ref=main")
    assert entry["path"] == path + ".html"
    # Only the page's own files are ever sent as something that a browser would open.
    for target in ("/", "/studio.js"):
        assert b"onerror=alert" not in client.send("GET", target)[1]


def test_text_that_is_no_unicode_still_is_json(serve, tmp_path):
    code = "bad = '\\ud800 lone'\nprint(bad)\ntask_success('x')"
    client = serve(make_state(tmp_path / "s", [[python_action(code)]]))
    assert "lone" in client.get("variable?ref=main&name=bad")["text"]
    assert client.get("commit?ref=main")


def test_a_large_variable_is_named_but_not_read_for_the_list(serve, tmp_path, monkeypatch):
    from agex.studio import api

    state = Versioned(Disk(tmp_path / "s"))
    state["big"], state["small"] = b"x" * 10_000, 1
    state.commit("both")
    monkeypatch.setattr(api, "LARGE", 5_000)
    client = serve(state)
    lines = {each["name"]: each for each in client.get("variables?ref=main")}
    assert (lines["big"]["kind"], lines["small"]["kind"]) == ("large", "text")
    assert client.get("variable?ref=main&name=big")["kind"] == "text"
    monkeypatch.setattr(api, "LARGEST", 5_000)
    assert "too much" in client.get("variable?ref=main&name=big", status=400)["error"]


def test_what_cannot_be_read_says_so_in_its_place(serve, tmp_path):
    code = "import threading\nok = 1\nlock = (n for n in range(3))\ntask_success('x')"
    steps = [[python_action(code.replace("import threading\n", ""))]]
    client = serve(make_state(tmp_path / "s", steps))
    lines = {each["name"]: each for each in client.get("variables?ref=main")}
    assert (lines["lock"]["kind"], lines["ok"]["kind"]) == ("lost", "text")
    assert "generator" in client.get("variable?ref=main&name=lock")["text"]


# -- the same without a server: what a tab's worker asks ------------------------------------------


def test_the_api_answers_without_a_server():
    state = Versioned()
    state["picture"] = PNG
    head = state.commit("one")
    api = Api(state, "tab")
    seen = api.ask("variable", {"ref": head, "name": "picture"})
    assert (seen["kind"], seen["media_type"]) == ("picture", "image/png")
    assert api.tell("fork", {"at": head, "name": "b"})["branch"] == "b"
    with pytest.raises(NotHere, match="no_such"):
        api.ask("no_such", {})
    with pytest.raises(NotHere):
        api.ask("fork", {"at": head})
    with pytest.raises(Refused):
        api.tell("fork", {"name": "c"})


def test_the_command_tells_an_address_with_a_token(tmp_path, monkeypatch):
    from agex.studio.server import StudioServer

    make_state(tmp_path / "s").close()

    def interrupted(self, poll_interval=0.5):
        raise KeyboardInterrupt

    monkeypatch.setattr(StudioServer, "serve_forever", interrupted)
    result = CliRunner().invoke(app, ["studio", str(tmp_path / "s"), "--json"])
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", json.loads(result.output)["address"])


def test_the_command_refuses_a_directory_without_a_state_and_a_taken_port(tmp_path, client):
    missing = CliRunner().invoke(app, ["studio", str(tmp_path / "typo")])
    assert (missing.exit_code, "holds no state" in missing.output) == (2, True)
    taken = CliRunner().invoke(app, ["studio", str(tmp_path / "state"), "--port", str(client.port)])
    assert (taken.exit_code, "another --port" in taken.output) == (2, True)


def test_a_commit_tells_which_model_answered_and_what_it_cost(client):
    first = client.get("timeline")["commits"][-1]
    assert (first["models"], first["cost"]) == (["testing:scripted"], 0.0)
    assert first["seconds"] >= 0
    assert first["tokens"] > 0


def test_the_price_of_a_run_is_unknown_as_soon_as_one_answer_s_is(serve, tmp_path):
    class Priceless(ScriptedModel):
        def ask(self, request, on_text=None):
            reply = super().ask(request, on_text)
            return replace(reply, usage=replace(reply.usage, cost=None))

    state = Versioned(Disk(tmp_path / "state", durable=False))
    agent = Agent(model=Priceless(["```python\ntask_success(1)\n```"]))

    @agent.task
    def one() -> int: ...

    one.using(state=state)()
    assert serve(state).get("timeline")["commits"][0]["cost"] is None


FOUND = {
    "double(n)": ("code", "def double(n):"),
    "read 2": ("output", "read 2"),
    "6 in all": ("result", "6 in all"),
    "report.csv": ("write", "out/report.csv"),
    "total": ("code", "total = sum"),
}


@pytest.mark.parametrize("words", FOUND)
def test_words_are_found_in_what_was_done_and_kept(client, words):
    kind, text = FOUND[words]
    hits = client.get(f"search?{urlencode({'words': words})}")
    assert any(hit["kind"] == kind and text in hit["text"] for hit in hits)
    known = {commit["hash"] for commit in client.get("timeline")["commits"]}
    assert {hit["hash"] for hit in hits} <= known


def test_what_was_asked_and_names_of_variables_and_files_are_found_in_any_case(client):
    asked = client.get("search?words=HOW%20MANY")
    assert [hit["kind"] for hit in asked] == ["task"]
    kinds = {hit["kind"] for words in ("ROWS", "Report") for hit in client.get(f"search?words={words}")}
    assert {"variable", "file", "code"} <= kinds


def test_a_search_is_bounded_and_needs_words(serve, tmp_path):
    state = Versioned(Disk(tmp_path / "state", durable=False))
    for number in range(60):
        state["x"] = number
        state.commit(f"needle {'.' * 500} {number}")
    client = serve(state)
    hits = client.get("search?words=needle")
    assert len(hits) == 50
    assert max(len(hit["text"]) for hit in hits) < 150
    assert client.get("search?words=nowhere") == []
    assert "words" in client.get("search?words=", status=400)["error"]


def test_the_command_serves_a_state_in_postgresql_without_its_password(monkeypatch):
    from agex.state.postgres import PostgresStore
    from agex.studio.server import StudioServer

    served = []

    def looked_at(self, poll_interval=0.5):
        served.append(self.gate._api.ask("timeline", {}))

    monkeypatch.setattr(StudioServer, "serve_forever", looked_at)
    with postgres_server() as dsn:
        host, port, user, database = (part.partition("=")[2] for part in dsn.split())
        address = f"postgresql://{user}:secret@{host}:{port}/{database}"
        empty = CliRunner().invoke(app, ["studio", address])
        assert (empty.exit_code, "holds no state" in empty.output) == (2, True)
        state = Versioned(PostgresStore(address))
        agent = Agent(model=ScriptedModel(["```python\nx = 1\ntask_success(x)\n```"]))

        @agent.task
        def one() -> int: ...

        one.using(state=state)()
        state.fork("what-if")
        shown = CliRunner().invoke(app, ["studio", address, "--json"])
        assert shown.exit_code == 0, shown.output
        wrong = CliRunner().invoke(app, ["studio", address, "--branch", "mian"])
        assert (wrong.exit_code, "there are: main, what-if" in wrong.output) == (2, True)
        state.store.close()
    (timeline,) = served
    assert (timeline["name"], timeline["branch"]) == (f"{host}:{port}/{database}", "main")
    assert [commit["message"] for commit in timeline["commits"]][-1].startswith("one")
    assert "secret" not in json.dumps(served) + shown.output


def test_the_command_refuses_an_address_of_a_kind_that_it_does_not_know():
    result = CliRunner().invoke(app, ["studio", "mysql://there/state"])
    assert (result.exit_code, "mysql:// is no address of a state" in result.output) == (2, True)
