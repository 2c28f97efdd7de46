"""The command line from outside: what it prints, and its exit codes (0 done, 1 failed, 2 not possible)."""

from __future__ import annotations

import io
import json
import platform
import signal
import subprocess
import sys
from email.message import Message
from importlib import metadata

import pytest
from rich.console import Console
from typer.testing import CliRunner

from agex import ActionEvent, ModelNotConfigured, Token
from agex.cli import doctor, installation
from agex.cli.app import app
from agex.cli.progress import Progress
from agex.testing import python_action

TASKS = '''
from agex import Agent
from agex.testing import ScriptedModel, python_action

def scripted(*codes):
    return Agent(model=ScriptedModel([[python_action(code)] for code in codes]))

@scripted("def double(n: int) -> int:\\n    return n * 2").task
def double(n: int) -> int:
    """Double it."""

@scripted("task_success(text)").task
def echo(text: str) -> str: ...

@scripted("task_fail('too hard')").task
def fails(n: int) -> int: ...

HOSTILE = """
class Text:
    def __str__(self): raise SystemExit("str")
    __repr__ = __str__
class Items(list):
    def __iter__(self): raise SystemExit("items")
    __len__ = __iter__
loop = [1]
loop.append(loop)
task_success({"text": Text(), "items": Items([1]), "loop": loop, 3: (1, None)})
"""

@scripted(HOSTILE).task
def anything() -> object: ...

def waits():
    open("waiting", "w").close()
    while True:  # a call that waits would wait on, where the signal comes right before it
        pass

waiting = scripted("x = 1", "waits()")
waiting.fn(waits, host_fs_access=True)

@waiting.task
def waits_long(n: int) -> int: ...

plain = 3
'''


@pytest.fixture
def command(tmp_path, monkeypatch):
    (tmp_path / "shell_tasks.py").write_text(TASKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shell_tasks", raising=False)
    for name in ("AGEX_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AGEX_LOCAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    yield lambda *args: CliRunner().invoke(app, list(args))
    sys.modules.pop("shell_tasks", None)


def test_run_calls_a_task_with_json_arguments_and_shows_its_turns(command):
    result = command("run", "shell_tasks:double", "--arg", "n=21")
    assert result.exit_code == 0
    assert "return n * 2" in result.output
    assert result.output.rstrip().endswith("42")


def test_run_prints_one_json_document(command):
    document = json.loads(command("run", "shell_tasks:double", "--arg", "n=21", "--json").stdout)
    assert (document["value"], document["turns"]) == (42, 1)


def test_a_value_is_printed_as_json_without_a_call_of_its_methods(command):
    result = command("run", "shell_tasks:anything", "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)["value"]
    assert (value["text"], value["items"]) == ("<Text object>", "Items([1])")
    assert value["3"] == [1, None]
    assert value["loop"][0] == value["loop"][1][0] == 1


def test_run_keeps_every_step_in_a_directory(command):
    arguments = ("run", "shell_tasks:double", "--arg", "n=21", "--state", "kept", "--json")
    document = json.loads(command(*arguments).stdout)
    (entry,) = json.loads(command("log", "kept", "--json").stdout)
    assert entry["hash"] == document["commit"]
    assert entry["changed"]["+"] == ["double"]


def test_an_argument_that_is_no_json_is_text(command):
    document = json.loads(command("run", "shell_tasks:echo", "--arg", "text=two words", "--json").stdout)
    assert document["value"] == "two words"


def test_a_task_that_fails_exits_with_1(command):
    result = command("run", "shell_tasks:fails", "--arg", "n=1", "--json")
    assert result.exit_code == 1
    assert "TaskFail: too hard" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shell_tasks"], "names no task"),
        (["shell_tasks:plain"], "is not a task"),
        (["shell_tasks:missing"], "is not a task"),
        (["no_such_module:task"], "no module 'no_such_module'"),
        (["shell_tasks:double", "--arg", "n"], "not name=value"),
        (["shell_tasks:double", "--arg", "n=true"], "expected int"),
        (["shell_tasks:double"], "missing a required argument"),
        (["shell_tasks:double", "--arg", "n=1", "--model", "no-such-provider:x"], "no-such-provider"),
    ],
)
def test_what_cannot_be_done_exits_with_2_and_says_why(command, arguments, message):
    result = command("run", *arguments, "--json")
    assert result.exit_code == 2
    assert message in result.stderr


def test_doctor_tries_what_the_sandbox_stops(command):
    report = json.loads(command("doctor", "--json").stdout)
    assert report["isolation"]["none"]
    assert all(report["isolation"]["none"].values())
    assert report["in_time"] == {
        "wait past its time, in a thread": True,
        "run in C past its time, in a thread": False,
        "match a pattern past its time, in a thread": False,
    }


def test_doctor_tries_the_levels_and_says_why_one_is_not_here(command):
    levels = json.loads(command("doctor", "--json").stdout)["levels"]
    assert list(levels) == ["process", "kernel", "container"]
    for level, found in levels.items():
        assert found["walls"] if found["available"] else f"{level}" in found["why"]
    if levels["process"]["available"]:
        assert levels["process"]["stopped"]["run in C past its time"]
        assert levels["process"]["python"] == "guarded"
        assert all(levels["process"]["start_ms"][which] > 0 for which in ("first", "later"))
    if levels["kernel"]["available"]:
        assert all(levels["kernel"]["stopped"].values())


def test_doctor_tells_what_a_bug_report_needs_and_keys_by_name_only(command, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
    monkeypatch.setenv("AGEX_MODEL", "nobody:secret-model")
    monkeypatch.setattr(doctor, "try_level", lambda level: {"available": False, "why": "not tried"})
    report = json.loads(command("doctor", "--json").stdout)
    assert report["versions"]["agex"] == metadata.version("agex-py")
    assert report["versions"]["pydantic-ai-slim"] == metadata.version("pydantic-ai-slim")
    assert report["versions"]["python"].startswith(platform.python_version())
    assert platform.release() in report["versions"]["kernel"]
    assert report["keys"] == ["AGEX_MODEL", "GROQ_API_KEY"]
    assert "secret-model" not in json.dumps([report["keys"], report["versions"], report["extras"]])
    shown = command("doctor").output
    assert "gsk-secret" not in shown
    assert "variables set: AGEX_MODEL, GROQ_API_KEY" in shown


def test_doctor_prints_extras_as_they_are_written(command, monkeypatch):
    def lacking(spec):
        raise ModelNotConfigured('pip install "agex-py[local,local-weights]"')

    monkeypatch.setattr(doctor, "resolve_model", lacking)
    monkeypatch.setattr(
        doctor, "try_level", lambda level: {"available": False, "why": "pip install 'x[local]'"}
    )
    monkeypatch.setattr(doctor, "extras_installed", lambda: ["local", "red"])
    shown = command("doctor").output
    assert "extras installed: agex-py[local,red]" in shown
    assert "kernel: not here: pip install 'x[local]'" in shown
    assert 'pip install "agex-py[local,local-weights]"' in shown


def test_an_extra_is_installed_when_all_that_it_needs_is(monkeypatch):
    here = {"agex-py": "1", "dask": "1", "psycopg": "3"}
    needs = ["dask; extra == 'dask'", "psycopg[binary]>=3.1; extra == 'postgres'", "ray>=2; extra == 'ray'"]
    needs += ["agex-py[dask,ray]; extra == 'all'", "pydantic>=2"]
    monkeypatch.setattr(installation, "_version", here.get)
    monkeypatch.setattr(
        metadata,
        "requires",
        {"agex-py": needs, "psycopg": ["c-library; extra == 'binary'"]}.get,
    )
    told = Message()
    for extra in ("dask", "postgres", "ray", "all"):
        told["Provides-Extra"] = extra
    monkeypatch.setattr(metadata, "metadata", lambda name: told)
    assert installation.extras_installed() == ["dask"]
    here["c-library"] = "1"
    here["ray"] = "2"
    assert installation.extras_installed() == ["dask", "postgres", "ray", "all"]


def test_doctor_prints_tables(command):
    result = command("doctor")
    assert result.exit_code == 0
    assert "import os" in result.output
    assert "kernel" in result.output


def test_a_demo_without_a_model_exits_with_2(command, monkeypatch):
    monkeypatch.setenv("AGEX_LOCAL_MODEL", "missing.gguf")
    result = command("demo", "--model", "local")
    assert result.exit_code == 2
    assert "ModelNotConfigured" in result.stderr


def test_no_command_shows_help(command):
    assert "demo" in command().output


def test_ctrl_c_cancels_and_keeps_what_was_committed(command, tmp_path):
    # A shell without job control has what it runs in the background ignore the interrupt.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from agex.cli.app import main; main()"
    )
    arguments = ["run", "shell_tasks:waits_long", "--arg", "n=1", "--state", "kept"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        while not (tmp_path / "waiting").exists():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (1, "Cancelled. What was committed is kept.\n")
    assert "cancelled" in out
    entries = json.loads(command("log", "kept", "--json").stdout)
    assert [entry["message"] for entry in entries] == ["waits_long: KeyboardInterrupt", "waits_long: turn 1"]


def test_in_a_terminal_a_run_shows_what_is_being_done():
    console = Console(force_terminal=True, file=io.StringIO(), width=80)
    progress = Progress(console)
    progress.token(_token("x = 1\ny = 2", turn=2))
    console.print(progress)
    progress.event(ActionEvent(agent="a", task="t", run_id="r", turn=2, actions=(python_action("x = 1"),)))
    console.print(progress)
    shown = console.file.getvalue()
    assert "y = 2" in shown
    assert "turn 2 · writing" in shown
    assert "turn 2 · running its code" in shown


def _token(text, turn):
    return Token(text, agent="a", task="t", turn=turn)


def test_the_version_is_printed():
    from agex import __version__

    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"agex {__version__}\n")


def test_an_argument_that_the_task_does_not_take_is_named(command):
    result = command("run", "shell_tasks:double", "--arg", "m=2")
    assert result.exit_code == 2
    assert "takes no m=" in result.stderr + result.stdout
