"""``%%agex``: a cell in words is a task over the notebook's variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from agex import Agent, DefinitionError, TaskError
from agex.notebook import Cell, read_line
from agex.testing import ScriptedModel, python_action


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    InteractiveShell.clear_instance()
    made: Any = InteractiveShell.instance()
    made.run_line_magic("load_ext", "agex")
    made.shown = []
    monkeypatch.setattr("agex.notebook._show", made.shown.append)
    yield made
    InteractiveShell.clear_instance()


def analyst(*codes: str) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(name="analyst", model=model), model


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ("", Cell()),
        ("analyst", Cell(agent="analyst")),
        ("-> total", Cell(name="total")),
        ("-> total: int", Cell(name="total", annotation="int")),
        (
            " analyst ->total :dict[str, int] ",
            Cell(agent="analyst", name="total", annotation="dict[str, int]"),
        ),
    ],
)
def test_the_first_line_names_the_agent_the_result_and_its_type(line: str, cell: Cell) -> None:
    assert read_line(line) == cell


@pytest.mark.parametrize("line", ["-> 1x", "a b", "-> class", "-> x int", "=> x"])
def test_another_first_line_is_answered_with_the_form(line: str) -> None:
    with pytest.raises(DefinitionError, match=r"%%agex \[AGENT\]"):
        read_line(line)


def test_the_variables_that_the_text_names_are_inputs_and_the_result_is_a_variable(shell: Any) -> None:
    agent, model = analyst("task_success(sales.groupby('city')['n'].sum().to_dict())")
    agent.module(pd)
    sales = pd.DataFrame({"city": ["Ulm", "Bern", "Ulm"], "n": [1, 2, 3]})
    shell.user_ns.update(analyst=agent, sales=sales, secret="not named", pd=pd)
    shell.run_cell_magic("agex", "analyst -> totals: dict[str, int]", "Sum n of sales by city.\n")
    assert shell.user_ns["totals"] == {"Ulm": 4, "Bern": 2}
    assert shell.user_ns["sales"] is sales
    asked = str(model.requests[0])
    assert "Sum n of sales by city." in asked
    assert "not named" not in asked
    assert [run.value for run in shell.shown] == [{"Ulm": 4, "Bern": 2}]


def test_without_a_name_the_run_is_the_cells_value(shell: Any) -> None:
    agent, _ = analyst("task_success(max(words, key=len))")
    shell.user_ns.update(analyst=agent, words=["to", "be", "continued"])
    assert shell.run_cell_magic("agex", "analyst", "Find the longest of the words.").value == "continued"
    assert shell.shown == []


def test_the_code_is_put_into_a_cell_below_when_it_is_asked_for(shell: Any) -> None:
    agent, _ = analyst("def cell(n):\n    return n + 1")
    shell.user_ns.update(analyst=agent, n=4)
    with pytest.raises(DefinitionError, match="no %%agex cell"):
        shell.run_line_magic("agex_code", "")
    shell.run_cell_magic("agex", "analyst -> m: int", "Add one to n.")
    shell.run_line_magic("agex_code", "")
    assert (shell.user_ns["m"], shell.rl_next_input) == (5, "def cell(n):\n    return n + 1\n\nm = cell(n)")


def test_the_code_binds_the_variable_in_the_place_of_ending_a_task_and_has_no_turns_that_failed(
    shell: Any,
) -> None:
    last = "if half:\n    task_success(\n        {'ä': half},\n    )  # so"
    agent, _ = analyst("half = n / 0", "half = n // 2  # of four", last)
    shell.user_ns.update(analyst=agent, n=4)
    shell.run_cell_magic("agex", "analyst -> m", "Halve n.")
    shell.run_line_magic("agex_code", "")
    expected = "half = n // 2  # of four\n\nif half:\n    m = {'ä': half}  # so"
    assert shell.rl_next_input == expected
    del shell.user_ns["m"]
    shell.run_cell(expected)
    assert shell.user_ns["m"] == {"ä": 2}


def test_a_value_of_another_type_is_an_error_and_the_variable_stays_as_it_was(shell: Any) -> None:
    agent, _ = analyst("task_success('five')", "task_success('five')")
    agent.max_iterations = 2
    shell.user_ns.update(analyst=agent, n=4, m="before")
    with pytest.raises(TaskError):
        shell.run_cell_magic("agex", "analyst -> m: int", "Add one to n.")
    assert shell.user_ns["m"] == "before"


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        ("nobody -> x", "Do it.", "'nobody' is no Agent"),
        ("analyst -> x: Nope", "Do it.", "'Nope' of the result cannot be read: NameError"),
        ("analyst -> x", " \n", "no text"),
    ],
)
def test_what_cannot_be_asked_is_said_before_a_model_is(shell: Any, line: str, text: str, said: str) -> None:
    agent, model = analyst("1")
    shell.user_ns["analyst"] = agent
    with pytest.raises(DefinitionError, match=said):
        shell.run_cell_magic("agex", line, text)
    assert model.requests == []


def test_the_notebooks_own_agent_may_use_the_libraries_that_the_notebook_has_imported(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel([[python_action("task_success(int(pd.Series(numbers).sum()))")]] * 2)
    monkeypatch.setattr("agex.models.resolve.resolve_model", lambda spec: model)
    shell.user_ns.update(pd=pd, numbers=[1, 2])
    for _ in range(2):  # a module is registered once
        shell.run_cell_magic("agex", "-> total: int", "Sum the numbers.")
    assert shell.user_ns["total"] == 3
