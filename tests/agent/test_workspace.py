"""Tasks have files: what one writes, later ones find, with their state and its history."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import textwrap
import threading

import pytest

from agex import (
    Agent,
    DefinitionError,
    Disk,
    FileEvent,
    Live,
    OutputEvent,
    TaskTimeout,
    Versioned,
    connect_fs,
    event_from_json,
)
from agex.testing import ScriptedModel, edit_file, python_action, terminal_action, write_file

HELPER = '"""Text tools."""\n\n\ndef up(s: str) -> str:\n    """Make it loud."""\n    return s.upper()\n'


def shouting(*replies, **settings):
    """An agent with one task, and the model it asks."""
    model = ScriptedModel(list(replies))
    agent = Agent(model=model, **settings)

    @agent.task
    def shout(s: str) -> str:
        """Shout."""

    return agent, model, shout


def outputs(run):
    return [event.text for event in run.events if isinstance(event, OutputEvent)]


# -- files and states ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Live, Versioned], ids=["live", "versioned"])
def test_files_live_on_in_the_state(make):
    state = make()
    _, _, shout = shouting(
        "open('a.txt', 'w').write('x')\ntask_success(s)", "task_success(open('a.txt').read())", state=state
    )
    assert shout("1") == "1"
    assert shout("1") == "x"
    assert dict(state.files) == {"a.txt": b"x"}


def test_without_a_state_files_live_for_one_task():
    _, _, shout = shouting(
        [python_action("open('a.txt', 'w').write('x')")],
        "task_success(open('a.txt').read())",
        "import os\ntask_success(str(os.listdir('/')))",
    )
    assert shout("1") == "x"
    assert shout("1") == "[]"


def test_a_task_without_a_state_begins_with_the_files_of_its_workspace():
    fs = connect_fs()
    fs.write("data.txt", "given")
    _, _, shout = shouting(
        "open('data.txt', 'a').write('!')\ntask_success(open('data.txt').read())",
        "task_success(open('data.txt').read())",
        fs=fs,
    )
    assert shout("1") == "given!"
    assert shout("1") == "given"
    assert fs.read("data.txt") == b"given"


def test_an_isolated_workspace_is_a_directory_whatever_the_state(tmp_path):
    (tmp_path / "in.txt").write_text("given")
    fs = connect_fs(type="isolated", root=tmp_path)
    _, _, shout = shouting(
        "open('out.txt', 'w').write(open('in.txt').read())\ntask_success(s)", fs=fs, state=Live()
    )
    shout("1")
    assert (tmp_path / "out.txt").read_text() == "given"


def test_with_no_workspace_there_are_no_files():
    agent, model, shout = shouting([write_file("a", "1")], "open('a')", "task_success(s)", fs=None)
    run = shout.run("1")
    assert "write_file is not available here" in outputs(run)[0]
    assert "no file system" in outputs(run)[1]
    assert "workspace" not in str(model.requests[0])
    with pytest.raises(DefinitionError, match="fs=None"):
        agent.fs()


def test_the_host_reads_and_writes_the_files_of_a_state():
    state = Versioned()
    agent, _, shout = shouting("task_success(open('d/in.txt').read())", state=state)
    files = agent.fs(state)
    files.write("d/in.txt", "from the host")
    assert shout("1") == "from the host"
    assert (files.list("/"), files.read("/d/in.txt"), files.exists("no")) == (["d"], b"from the host", False)
    files.remove("d/in.txt")
    assert agent.fs().list("d") == []
    assert state.checkout(state.commit()).files.get("d/in.txt") is None


def test_without_a_state_the_host_is_told_that_there_are_no_files_to_look_at():
    with pytest.raises(DefinitionError, match="live for one task only"):
        Agent(model=ScriptedModel([])).fs()


def test_a_workspace_that_is_none_is_refused():
    with pytest.raises(DefinitionError, match="connect_fs"):
        Agent(model=ScriptedModel([]), fs="/tmp")


def test_tasks_that_share_a_state_share_its_files_while_they_run():
    state = Versioned()
    barrier = threading.Barrier(2, timeout=20)
    agent = Agent(
        model=ScriptedModel(
            [lambda messages: "open(s, 'w').write(s)\nmeet()\ntask_success(open(other).read())"] * 2
        ),
        state=state,
    )
    agent.fn(lambda: barrier.wait() and None, name="meet")

    @agent.task
    def swap(s: str, other: str) -> str:
        """Swap."""

    got = {}
    threads = [
        threading.Thread(target=lambda a=a, b=b: got.update({a: swap(a, b)}))
        for a, b in (("x", "y"), ("y", "x"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {"x": "y", "y": "x"}
    assert dict(state.checkout("main").files) == {"x": b"x", "y": b"y"}


def test_the_size_limit_of_a_workspace_holds_in_tasks():
    state = Versioned()
    _, _, shout = shouting(
        "open('kept', 'w').write('kept')\nopen('big', 'wb').write(bytes(3 << 20))",
        "task_success(open('kept').read())",
        state=state,
        fs=connect_fs(type="virtual", max_size_mb=2),
    )
    run = shout.run("1")
    assert f"OSError: [Errno {errno.ENOSPC}] VFS size limit exceeded" in outputs(run)[0]
    assert run.value == "kept"


# -- modules of the agent's own -------------------------------------------------------------------


def test_a_helper_written_in_one_task_is_imported_in_a_later_process(tmp_path):
    program = textwrap.dedent(
        """
        import json, sys
        from agex import Agent, Disk, FileEvent, Versioned
        from agex.testing import ScriptedModel, edit_file, python_action, write_file
        where, script = sys.argv[1], json.loads(sys.argv[2])
        state = Versioned(Disk(where))
        model = ScriptedModel([eval(reply) for reply in script])
        agent = Agent(model=model, state=state)

        @agent.task
        def shout(s: str) -> str:
            "Shout."

        print(json.dumps([shout("hi"), str(model.requests[0]), sorted(state.files)]))
        state.close()
        """
    )

    def process(*script: str) -> list:
        command = [sys.executable, "-c", program, str(tmp_path / "store"), json.dumps(script)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.stderr == ""
        return json.loads(done.stdout)

    write = f"[write_file('helpers/text.py', {HELPER!r})]"
    value, _, files = process(write, "'import helpers.text\\ntask_success(helpers.text.up(s))'")
    assert (value, files) == ("HI", ["helpers/text.py"])
    value, prompt, _ = process("'from helpers.text import up\\ntask_success(up(s + s))'")
    assert value == "HIHI"
    assert (
        "helpers.text  (helpers/text.py): Text tools.\\n    def up(s: str) -> str: Make it loud."
        in prompt.replace("\n", "\\n")
    )
    value, _, _ = process(
        "[edit_file('helpers/text.py', 'return s.upper()', 'return s.upper() + \"!\"')]",
        "'from helpers.text import up\\ntask_success(up(s))'",
    )
    assert value == "HI!"

    state = Versioned(Disk(tmp_path / "store"))
    versions = []
    for commit in state.history():
        found = state.checkout(commit).files.get("helpers/text.py")
        if found is not None and found not in versions:
            versions.append(found)
    assert versions == [HELPER.replace("upper()", 'upper() + "!"').encode(), HELPER.encode()]
    changes = [state.diff(commit.parent, commit).files for commit in state.history() if commit.parent]
    assert [change.changed for change in changes if change.changed] == [
        {
            "helpers/text.py": '@@ -4,3 +4,3 @@\n def up(s: str) -> str:\n     """Make it loud."""\n'
            '-    return s.upper()\n+    return s.upper() + "!"'
        }
    ]
    state.close()


def test_an_error_in_the_agents_own_module_shows_its_lines():
    _, _, shout = shouting(
        [
            write_file("mine.py", "def f():\n    raise ValueError('wrong')\n"),
            python_action("import mine\nmine.f()"),
        ],
        "task_success(s)",
    )
    text = outputs(shout.run("1"))[1]
    assert "File \"/mine.py\", line 2, in f\n    raise ValueError('wrong')\nValueError: wrong" in text


def test_a_registered_module_comes_before_a_file_and_says_so():
    _, _, shout = shouting(
        [write_file("json.py", "x = 1"), python_action("import json\njson.dumps(1)")], "task_success(s)"
    )
    assert (
        outputs(shout.run("1"))[1]
        == "note: import json gives the module of that name, not /json.py; rename the file\n'1'"
    )


def test_a_module_kept_as_a_variable_is_imported_again_in_a_later_task():
    state = Versioned()
    _, _, shout = shouting(
        [write_file("mine.py", HELPER), python_action("import mine\ntask_success(s)")],
        "task_success(mine.up(s))",
        state=state,
    )
    shout("a")
    assert shout("a") == "A"


# -- actions on files -----------------------------------------------------------------------------


def test_writing_and_editing_files_are_actions():
    _, _, shout = shouting(
        [
            write_file("a/b.txt", "one\ntwo\n"),
            edit_file("a/b.txt", "two", "2"),
            python_action("print(open('a/b.txt').read())"),
        ],
        "task_success(s)",
    )
    assert outputs(shout.run("1")) == [
        "Wrote a/b.txt (2 lines, 8 bytes).",
        "Edited a/b.txt (2 lines, 6 bytes).",
        "one\n2",
    ]


FAILURES = {
    "a missing file": (edit_file("no.txt", "a", "b"), "No such file or directory"),
    "a missing passage": (edit_file("a.txt", "alpha beta gama", "x"), "    2  alpha beta gamma"),
    "an ambiguous passage": (edit_file("a.txt", "x", "y"), "3 times, at lines 1, 3, 4"),
    "a directory": (write_file("d", "x"), "Is a directory"),
    "below a file": (write_file("a.txt/b", "x"), "Not a directory"),
    "no text": (edit_file("b.bin", "a", "b"), "is no text"),
    "a skill": (write_file("/skills/my-skill/SKILL.md", "x"), "Read-only file system"),
    "a null": (write_file("a\0b", "x"), "null"),
}


@pytest.mark.parametrize(("action", "says"), FAILURES.values(), ids=FAILURES)
def test_an_action_that_cannot_be_done_changes_nothing_and_says_why(action, says):
    state = Live()
    agent, _, shout = shouting([action, python_action("print('not run')")], "task_success(s)", state=state)
    agent.skill(b"---\nname: my-skill\ndescription: x\n---\nbody")
    files = agent.fs()
    files.write("a.txt", "x\nalpha beta gamma\nx\nx\n")
    files.write("b.bin", b"\xff\xfe")
    files.makedirs("d")
    before = dict(state.files)
    text = outputs(shout.run("1"))[0]
    assert says in text
    assert "not executed" in text
    assert dict(state.files) == before


def test_a_syntax_error_in_a_module_that_is_written_is_told():
    _, _, shout = shouting([write_file("m.py", "def f(:\n")], "task_success(s)")
    assert "It has a syntax error in line 1" in outputs(shout.run("1"))[0]


def test_each_action_tells_what_it_changed_and_the_commit_that_holds_it():
    state = Versioned()
    _, _, shout = shouting(
        [write_file("a", "1"), python_action("open('b', 'w').close()\nopen('a', 'w').write('2')")],
        [terminal_action("rm a; mv b c")],
        [python_action("print(open('c').read())")],
        "open('d', 'w').close()\ntask_success(s)",
        state=state,
    )
    run = shout.run("1")
    told = [event for event in run.events if isinstance(event, FileEvent)]
    assert [(event.added, event.modified, event.removed) for event in told] == [
        (("a",), (), ()),
        (("b",), ("a",), ()),
        (("c",), (), ("a", "b")),
        (("d",), (), ()),
    ]
    for event in told:
        assert sorted(state.diff(event.parent_hash, event.commit_hash).files) == sorted(
            [*event.added, *event.modified, *event.removed]
        )
        assert event_from_json(event.model_dump_json()).added == event.added


def test_what_the_setup_writes_is_told_as_well():
    agent = Agent(model=ScriptedModel(["task_success(open('a').read())"]))

    @agent.task(setup="open('a', 'w').write('x')")
    def read() -> str:
        """Read."""

    run = read.run()
    assert run.value == "x"
    assert [event.added for event in run.events if isinstance(event, FileEvent)] == [("a",)]


# -- what the model is told -----------------------------------------------------------------------


def test_the_prompt_only_grows_at_its_end_and_recaps_after_a_change():
    _, model, shout = shouting(
        [write_file("helpers/text.py", HELPER)], [python_action("print(1)")], "task_success(s)"
    )
    shout("1")
    first, second, third = ([m.content for m in request.messages] for request in model.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert "What is in the workspace now:\nYour modules:\nhelpers.text" in second[-1]
    assert "workspace" not in third[-1]
    assert "What is in the workspace" not in first[-1]


def test_the_model_is_offered_the_actions_that_there_are():
    _, model, shout = shouting("task_success(s)")
    shout("1")
    assert model.requests[0].actions == ("python_action", "write_file", "edit_file", "terminal_action")
    assert "The workspace is /" in str(model.requests[0])


def test_a_skill_is_one_line_in_the_prompt_and_read_on_demand():
    agent, model, shout = shouting(
        "print(open('/skills/my-skill/SKILL.md').read())",
        [terminal_action("ls /skills/my-skill; echo x > /skills/my-skill/new")],
        "import my_skill",
        "task_success(s)",
    )
    agent.skill(b"---\nname: my-skill\ndescription: How to do it.\n---\nThe body.\n")
    run = shout.run("1")
    assert "- my-skill: How to do it." in str(model.requests[0])
    assert "The body." not in str(model.requests[0])
    assert "The body." in outputs(run)[0]
    assert "Read-only file system" in outputs(run)[1]
    with pytest.raises(DefinitionError, match="already"):
        agent.skill(b"---\nname: my-skill\ndescription: Again.\n---\n")


# -- the terminal ---------------------------------------------------------------------------------


SCRIPTS = {
    "pipeline": ("printf 'b\\na\\n' > f; sort f | head -n 1", "a"),
    "redirects": ("echo x > f; echo y >> f; cat < f", "x\ny"),
    "working directory stays": ("mkdir -p d; cd d; pwd", "/d"),
    "python code": ("python -c 'print(1 + 1)'", "2"),
    "python file with arguments": ("echo 'import sys; print(sys.argv)' > p.py; python p.py a b", "['p.py', 'a', 'b']"),
    "python from a pipe": ("echo 'print(3)' | python", "3"),
    "python module": ("echo 'print(__name__)' > m.py; python -m m", "__main__"),
    "python writes files": ("python -c \"open('f', 'w').write('x')\"; cat f", "x"),
    "python in a pipeline": ("python -c 'print(\"b\"); print(\"a\")' | sort", "a\nb"),
    "python imports own modules": ("echo 'X = 5' > m.py; python -c 'import m; print(m.X)'", "5"),
    "python3": ("python3 -c 'print(1)'", "1"),
    "nothing": ("true", "(The commands ran without an error and printed nothing.)"),
    "help": ("esbuild --help", "Bundle JS.\n\nMore of it."),
    "custom command": ("echo 'let x' > a.js; esbuild a.js | tr a-z A-Z", "BUNDLED LET X"),
    "custom command's text": ("answer", "42"),
    "a failing line does not stop the next": ("cat missing; echo after", "cat: missing: No such file or directory\nafter"),
}  # fmt: skip


def with_commands(agent):
    @agent.terminal
    def esbuild(ctx):
        """Bundle JS.

        More of it.
        """
        for path in ctx.args:
            ctx.stdout.write("bundled " + ctx.fs.read(path).decode())

    agent.terminal(lambda ctx: "42", name="answer", visibility="low", docstring="Tell it.")
    return agent


@pytest.mark.parametrize(("script", "shown"), SCRIPTS.values(), ids=SCRIPTS)
def test_the_terminal_works_over_the_workspace(script, shown):
    agent, _, shout = shouting([terminal_action(script)], "task_success(s)")
    with_commands(agent)
    assert outputs(shout.run("1"))[0] == shown


REFUSED = {
    "ending the task": ("python -c 'task_success(1)'", "from a python_action, not from the terminal"),
    "failing the task": ("python -c 'task_fail(\"x\")'", "not from the terminal"),
    "a real process": ("python -c 'import os; os.system(\"true\")'", "SandboxAttributeError"),
    "a subprocess": ("python -c 'import subprocess'", "SandboxImportError"),
    "the host's files": ("cat /etc/passwd", "No such file"),
    "the host's files by python": ("python -c 'open(\"/etc/passwd\")'", "FileNotFoundError"),
    "leaving the root": ("cat ../../../../etc/passwd", "No such file"),
    "an unknown command": ("gcc a.c", "gcc: command not found"),
    "curl": ("curl http://127.0.0.1", "command not found"),
    "a host's variable": ("echo $PATH", "unbound variable"),
    "a wrong script": ("echo 'x", "syntax error"),
    "an error in a program": ("python -c '1/0'", "ZeroDivisionError: division by zero"),
    "a missing program": ("python no.py", "can't open file 'no.py'"),
    "an option": ("python -x", "unknown option -x"),
    "an endless program": ("python -c 'while True: pass'", "ran longer than"),
}  # fmt: skip


@pytest.mark.parametrize(("script", "says"), REFUSED.values(), ids=REFUSED)
def test_what_the_terminal_does_not_do_it_says(script, says):
    _, _, shout = shouting(
        [terminal_action(script), python_action("print('not run')")], "task_success(s)", timeout_seconds=1.0
    )
    run = shout.run("1")
    assert says in outputs(run)[0]
    assert "not run" not in "".join(outputs(run))
    assert run.value == "1"


def test_a_command_has_the_hosts_powers_and_its_errors_are_told(tmp_path):
    (tmp_path / "host.txt").write_text("of the host")
    agent, _, shout = shouting([terminal_action("read")], [terminal_action("broken")], "task_success(s)")
    agent.terminal(lambda ctx: (tmp_path / "host.txt").read_text(), name="read")

    def broken(ctx):
        raise ValueError("no luck")

    agent.terminal(broken)
    texts = outputs(shout.run("1"))
    assert texts[0] == "of the host"
    assert "broken: execution error: no luck" in texts[1]


def test_commands_are_listed_by_their_visibility():
    agent, model, shout = shouting("task_success(s)")
    with_commands(agent)
    agent.terminal(lambda ctx: 0, name="loud", visibility="high", docstring="First.\n\nSecond.")
    shout("1")
    prompt = str(model.requests[0])
    assert "- esbuild: Bundle JS.\n- loud: First.\n    Second." in prompt
    assert "- answer" not in prompt


@pytest.mark.parametrize(
    "settings", [{"name": "a b"}, {"name": "x/y"}, {"visibility": "unlisted"}, {"name": "esbuild"}]
)
def test_a_command_that_cannot_be_is_refused(settings):
    agent = with_commands(Agent(model=ScriptedModel([])))
    with pytest.raises(DefinitionError):
        agent.terminal(lambda ctx: 0, **{"name": "ok", **settings})


def test_the_terminals_output_is_bounded():
    _, _, shout = shouting([terminal_action("seq 1 100000")], "task_success(s)", max_output_chars=500)
    text = outputs(shout.run("1"))[0]
    assert "characters cut here" in text
    assert len(text) < 700


def test_a_task_is_not_ended_by_what_is_defined_in_the_terminal():
    _, _, shout = shouting([terminal_action("python -c 'def shout(s): return \"wrong\"'")], max_iterations=1)
    with pytest.raises(TaskTimeout):
        shout("1")


async def test_actions_on_files_work_in_async_tasks():
    agent = Agent(
        model=ScriptedModel(
            [
                [
                    write_file("a", "1"),
                    terminal_action("cat a"),
                    python_action("task_success(open('a').read())"),
                ]
            ]
        )
    )

    @agent.task
    async def read() -> str:
        """Read."""

    run = await read.arun()
    assert run.value == "1"
    assert outputs(run)[1] == "1"


def test_a_commit_runs_no_module_of_the_agents():
    state = Versioned()
    _, _, shout = shouting(
        [
            write_file("mine.py", "open('ran', 'w').close()\ndef f(): ...\n"),
            python_action("def f(): ...\nf.__module__ = 'mine'\nclass C: __module__ = 'mine'\nc = C()"),
        ],
        "task_success(s)",
        state=state,
    )
    shout("1")
    assert "ran" not in state.files
