"""Solved work becomes a module with tests, which a person reads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import frozen_tasks
import pytest
from tampered_entries import changed

from agex import Agent, DefinitionError, SystemNoteEvent, Versioned
from agex.testing import ScriptedModel, python_action


def solved(name: str, state: Versioned | None = None):
    """Return a task that the model has solved, with its calls made."""
    model = ScriptedModel([[python_action(code)] for code in frozen_tasks.CODES[name]])
    task = getattr(frozen_tasks, name)
    frozen_tasks.agent.model = model
    task = task.using(state=Versioned() if state is None else state)
    for args in frozen_tasks.CALLS[name]:
        run = task.run(*args)
    assert run.ok
    assert len(model.requests) == len(frozen_tasks.CODES[name])
    return task


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the five tasks frozen."""
    folder = tmp_path_factory.mktemp("frozen")
    for name in frozen_tasks.CODES:  # that of an async task is in asyncio.run()
        path = solved(name).freeze(folder / f"{name}_solution.py")
        assert path == folder / f"{name}_solution.py"
    return folder


def run(*command: str, cwd: Path) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(frozen_tasks.__file__).parent), "PATH": ""},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_written_tests_pass(frozen):
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", cwd=frozen)


def test_the_written_files_pass_ruff_and_mypy(frozen):
    run(sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", ".", cwd=frozen)
    run(sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--check", ".", cwd=frozen)
    names = [path.name for path in frozen.glob("*.py")]
    # What they import is looked at elsewhere: of agex it would take a minute.
    config = ("--config-file=", "--follow-imports=skip", "--ignore-missing-imports", "--cache-dir=/dev/null")
    run(sys.executable, "-m", "mypy", *config, *names, cwd=frozen)


def test_the_module_says_where_it_comes_from_and_keeps_what_is_needed(frozen):
    text = (frozen / "slug_solution.py").read_text()
    assert text.startswith('"""Turn a title into a piece of a web address.\n\nWritten by testing:scripted as')
    assert ", commit\n" in text or ", commit " in text
    assert '@agent.task(solution="slug_solution:slug")' in text
    assert 'def slug(title: str, separator: Literal["-", "_"] = "-") -> str:' in text
    assert "# commas go first" in text
    assert "DROPPED: dict[Any, Any] = {}" in text
    for dropped in ("print", "unused", "TABLE"):
        assert dropped not in text


def test_names_of_the_program_are_imported_from_it(frozen):
    text = (frozen / "total_solution.py").read_text()
    assert "import math as maths\n" in text
    assert "from frozen_tasks import Item, Kind, rates, tax\n" in text
    assert "def net(item):\n" in text


def test_the_tests_name_what_they_leave_out(frozen):
    text = (frozen / "test_total_solution.py").read_text()
    assert "# Left out: check 2: it cannot be imported from a module.\n" in text
    assert "assert is_not_negative(value, inputs) in (None, True)" in text


def test_the_frozen_module_is_a_solution_and_a_breaking_input_asks_the_model(frozen, monkeypatch):
    monkeypatch.syspath_prepend(str(frozen))
    agent = Agent(model=ScriptedModel([[python_action("task_success('none')")]]))

    @agent.task(solution="slug_solution:slug")
    def slug(title: str, separator: Literal["-", "_"] = "-") -> str:
        """Turn a title into a piece of a web address."""

    assert slug("One More") == "one-more"
    run = slug.run("?")
    assert run.value == "none"
    (note,) = [event.message for event in run.events if isinstance(event, SystemNoteEvent)]
    assert note.startswith("slug_solution:slug did not solve this call; the model is asked.\nValueError")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(x):\n    return inputs.x", "uses inputs, which only an agent's code has"),
        ("rate = 2\ndef f(x):\n    cache['x'] = x\n    return x * rate", "uses cache, which only an agent's"),
        ("def f(x):\n    return charge(x)", "calls charge, which acts on the world"),
        ("def f(x):\n    return local(x)", "uses local, which is at the top level of no module"),
        ("def f(x):\n    return x * factor", "uses factor, which is a variable beside the code"),
        ("import own\ndef f(x):\n    return own.twice(x)", "imports 'own', which no other program"),
        ("from functools import partial\nf = partial(lambda x, y: x, y=1)", "does not define f with def"),
    ],
    ids=["inputs", "cache", "external", "local", "variable", "workspace", "partial"],
)
def test_code_that_does_not_stand_on_its_own_is_refused(code, said, tmp_path):
    state = Versioned()
    state["factor"] = 3
    state.files["own.py"] = b"def twice(x):\n    return 2 * x\n"
    agent = Agent(model=ScriptedModel([[python_action(code)]]), state=state)
    agent.fn(lambda x: x, name="local")
    agent.fn(frozen_tasks.tax, name="charge", external=True)

    @agent.task(reuse=True)
    def f(x: int) -> float:
        """Do it."""

    f(4)
    with pytest.raises(DefinitionError, match=re.escape(said)):
        f.freeze(tmp_path)
    assert list(tmp_path.iterdir()) == []


def task_of(*codes: str):
    agent = Agent(model=ScriptedModel([[python_action(code)] for code in codes]))

    @agent.task(reuse=True)
    def f(x: int) -> int:
        """Do it."""

    return f


def test_nothing_to_freeze_says_what_to_do(tmp_path):
    task = task_of("task_success(1)")
    for _ in range(2):
        with pytest.raises(
            DefinitionError, match="no solution that could be frozen: declare it with reuse=True"
        ):
            task.freeze(tmp_path)
        task.using()
    task(1)
    with pytest.raises(DefinitionError, match="until the agent ends it by defining f"):
        task.freeze(tmp_path)


def test_code_whose_value_the_contract_builds_is_refused(tmp_path):
    agent = Agent(
        model=ScriptedModel([[python_action("def best(x):\n    return [{'name': 'pen', 'price': x}]")]])
    )

    @agent.task(reuse=True)
    def best(x: float) -> list[frozen_tasks.Item]:
        """Do it."""

    assert best(1.5) == [frozen_tasks.Item("pen", 1.5)]
    with pytest.raises(DefinitionError, match="the contract builds the value"):
        best.freeze(tmp_path)


def test_a_solution_for_other_terms_is_not_frozen(tmp_path):
    task = task_of("def f(x):\n    return x")
    task(1)
    task.agent.fn(len, name="size")
    with pytest.raises(DefinitionError, match="for other terms: registered size is new"):
        task.freeze(tmp_path)


def test_files_that_are_there_are_not_overwritten_unasked(tmp_path):
    task = task_of("def f(x):\n    return x")
    task(1)
    (tmp_path / "test_f.py").write_text("# by hand")
    with pytest.raises(DefinitionError, match=r"test_f\.py would be overwritten"):
        task.freeze(tmp_path)
    assert task.freeze(tmp_path, overwrite=True) == tmp_path / "f.py"
    assert "def test_recorded_call_1" in (tmp_path / "test_f.py").read_text()


@pytest.mark.parametrize("name", ["f.txt", "no-name.py", "missing/f.py"])
def test_a_path_that_is_no_module_is_refused(name, tmp_path):
    task = task_of("def f(x):\n    return x")
    task(1)
    with pytest.raises(DefinitionError, match=r"is no module|there is no folder"):
        task.freeze(tmp_path / name)


def test_a_module_in_a_package_is_imported_by_its_whole_name(tmp_path):
    folder = tmp_path / "shop" / "rules"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        (each / "__init__.py").touch()
    task = task_of("def f(x):\n    return x")
    task(1)
    task.freeze(folder)
    assert "from shop.rules.f import f\n" in (folder / "test_f.py").read_text()


def test_texts_of_a_strangers_record_stay_in_the_docstring(tmp_path):
    state = Versioned()
    agent = Agent(model=ScriptedModel([[python_action("def f(x):\n    return x")]]), state=state)

    @agent.task(reuse=True)
    def f(x: int) -> int:
        """Do it."""

    f(1)
    (key,) = [key for key in state.entry_keys() if key.startswith("solution/") and not key.endswith("/calls")]
    evil = '"""\nimport os\nos.abort()\n"""\\'
    f.using(state=changed(state, key, model=evil, run_id=evil, version=evil)).freeze(tmp_path)
    names = [type(one).__name__ for one in ast.parse((tmp_path / "f.py").read_text()).body]
    assert names == ["Expr", "ImportFrom", "FunctionDef"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.py", "test_f.py"]
