"""The terminal of a task whose code runs in a worker: the shell is there, the host's commands are here."""

from __future__ import annotations

from typing import Any

import pytest

from agex import Agent, Live, OutputEvent
from agex.files import connect_fs
from agex.isolation import executor_of
from agex.sandbox import Limits, Policy
from agex.shell import TerminalCommand
from agex.testing import ScriptedModel, python_action, terminal_action


@pytest.fixture(params=["none", "process", "kernel"])
def level(request) -> str:
    return request.param


def solving(level: str, *replies: Any, **settings: Any) -> tuple[Agent, Any]:
    model = ScriptedModel([[python_action(one)] if isinstance(one, str) else one for one in replies])
    agent = Agent(model=model, isolation=level, **settings)

    @agent.task
    def work() -> Any:
        """Work."""

    return agent, work


def shown(run: Any) -> list[str]:
    return [event.text for event in run.events if isinstance(event, OutputEvent)]


def after(level: str, script: str, **settings: Any) -> str:
    """Return what a script shows, in a terminal with the commands below."""
    agent, work = solving(level, [terminal_action(script)], "task_success(0)", **settings)
    with_commands(agent)
    return shown(work.run())[0]


def with_commands(agent: Agent) -> None:
    @agent.terminal
    def bundle(context):
        """Bundle files.

        More of it.
        """
        for path in context.args:
            context.stdout.write("bundled " + context.fs.read(path).decode())

    @agent.terminal
    def double(context):
        context.stdout.buffer.write(context.stdin.buffer.read() * 2)

    @agent.terminal
    def raw(context):
        context.stdout.buffer.write(b"\xff\x00\xfe")

    @agent.terminal
    def note(context):
        context.env["NOTED"] = context.env["HOME"] + "noted"

    @agent.terminal
    def broken(context):
        context.stdout.write("so far\n")
        raise ValueError("no luck")

    agent.terminal(lambda context: "42", name="answer", docstring="Tell it.")
    agent.terminal(lambda context: 3, name="three")
    agent.terminal(lambda context: context.fs.write("made", b"by the host"), name="make")


SCRIPTS = {
    "a pipeline": ("printf 'b\\na\\n' > f; sort f | head -n 1", "a"),
    "redirects": ("echo x > f; echo y >> f; cat < f", "x\ny"),
    "a working directory": ("mkdir -p d; cd d; pwd", "/d"),
    "the same for the host": ("mkdir -p d; echo x > d/f; cd d; bundle f", "bundled x"),
    "python code": ("python -c 'print(1 + 1)'", "2"),
    "python in a file": ("echo 'import sys; print(sys.argv)' > p.py; python p.py a b", "['p.py', 'a', 'b']"),
    "python from a pipe": ("echo 'print(3)' | python", "3"),
    "python that writes": ("python -c \"open('f', 'w').write('x')\"; cat f", "x"),
    "python in a pipeline": ("python -c 'print(\"b\"); print(\"a\")' | sort", "a\nb"),
    "modules of the workspace": ("echo 'X = 5' > m.py; python -c 'import m; print(m.X)'", "5"),
    "help": ("bundle --help", "Bundle files.\n\nMore of it."),
    "a command of the host": ("echo 'let x' > a.js; bundle a.js | tr a-z A-Z", "BUNDLED LET X"),
    "its text": ("answer", "42"),
    "its exit code": ("three || echo failed", "failed"),
    "bytes through it": ("raw | double | wc -c", "6"),
    "a variable that it sets": ("note; echo $NOTED", "/noted"),
    "a file that it writes": ("make; cat made", "by the host"),
    "its error, and what it wrote before": ("broken; echo after", "so far\nbroken: execution error: no luck\nafter"),
    "a failing line": ("cat missing; echo after", "cat: missing: No such file or directory\nafter"),
    "an unknown command": ("gcc a.c", "gcc: command not found"),
    "a wrong script": ("echo 'x", "syntax error"),
    "an error in a program": ("python -c '1/0'", "ZeroDivisionError: division by zero"),
    "ending the task": ("python -c 'task_success(1)'", "from a python_action, not from the terminal"),
    "the host's files": ("cat /etc/passwd; python -c 'open(\"/etc/machine-id\")'", "FileNotFoundError"),
    "an endless program": ("python -c 'while True: pass'", "ran longer than"),
}  # fmt: skip


@pytest.mark.parametrize(("script", "says"), SCRIPTS.values(), ids=SCRIPTS)
def test_the_terminal_does_what_it_does_in_process(level, script, says):
    seconds = 0.5 if says == "ran longer than" else 2.0
    found = after(level, script, timeout_seconds=seconds)
    assert says in found
    assert found == after("none", script, timeout_seconds=seconds)


def test_a_script_that_holds_the_interpreter_is_killed_and_the_task_goes_on():
    script = "echo " + "a" * 40 + "b > f; grep -E '(a+)+c' f"
    _, work = solving(
        "process", [terminal_action("cd /; echo x > kept")], [terminal_action(script)], [terminal_action("cat kept")],
        "task_success(1)", timeout_seconds=0.5,
    )  # fmt: skip
    found = shown(work.run())
    assert "did not stop" in found[1] or "ran longer" in found[1]
    assert found[2] == "x"


def test_what_a_program_of_the_terminal_keeps_is_kept(level):
    state = Live()
    _, work = solving(
        level, [terminal_action("python -c 'cache[\"k\"] = 2'")], "task_success(cache['k'])", state=state
    )
    assert (work(), state.cache) == (2, {"k": 2})


def test_the_host_prints_and_fails_for_itself_in_a_command(level, tmp_path, capfd):
    (tmp_path / "host.txt").write_text("of the host")
    agent, work = solving(level, [terminal_action("read")], "task_success(0)", timeout_seconds=0.5)

    def read(context):
        print("told the host's own terminal")
        return (tmp_path / "host.txt").read_text()

    agent.terminal(read)
    assert shown(work.run())[0] == "of the host"
    assert "told the host's own" in capfd.readouterr().out


async def test_scripts_run_in_async_tasks(level):
    agent = Agent(
        model=ScriptedModel([[terminal_action("echo x > f; cat f")], [python_action("task_success(1)")]]),
        isolation=level,
    )

    @agent.task
    async def work() -> int: ...

    assert shown(await work.arun())[0] == "x"


def test_a_session_without_files_has_no_terminal():
    session = executor_of("process").session(Policy.default(), Limits(seconds=5.0), {})
    with pytest.raises(Exception, match="no terminal without a workspace"):
        session.run_script("ls", {})
    session.close()


def test_a_script_may_not_take_more_from_the_host_than_its_bound():
    session = executor_of("process").session(
        Policy.default(), Limits(seconds=5.0), {}, files=connect_fs(max_size_mb=1)
    )
    given = TerminalCommand(name="size", handler=lambda context: str(len(context.stdin.read())))
    result = session.run_script("seq 1 300000 | size; seq 1 300000 > f", {"size": given})
    session.close()
    assert result.value.text.startswith("1988895\n")
    assert "size limit exceeded" in result.value.text
