"""Programs of the shape that the project's founding texts show: the same calls, arguments and keywords.

What a text shows as a whole program is one here; the model's answers are scripted.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable  # noqa: UP035 - as users write it

import pandas as pd
import pytest

import agex
from agex import ActionEvent, Agent, Versioned, events
from agex.testing import ScriptedModel, python_action, terminal_action, write_file


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedModel]:
    """Let agents that name no model, as in the texts, be answered with these pieces of code in turn."""

    def script(*codes: str) -> ScriptedModel:
        model = ScriptedModel([[python_action(code)] for code in codes])
        monkeypatch.setattr("agex.models.resolve._default", lambda environ: model)
        return model

    return script


# -- a typed function is the contract -----------------------------------------------------------------


def test_a_frame_goes_in_and_a_typed_dict_comes_out(answers: Callable[..., ScriptedModel]) -> None:
    model = answers("rivers[columns].mean().to_dict()", "task_success(rivers[columns].mean().to_dict())")
    agent = Agent()
    agent.module(pd)

    @agent.task
    def means(rivers: pd.DataFrame, columns: list[str]) -> dict[str, float]:
        """Average the named columns."""
        pass  # noqa: PIE790 - as users write it

    found = means(pd.DataFrame({"length": [2.0, 4.0], "depth": [1.0, 3.0]}), ["length", "depth"])
    assert found == {"length": 3.0, "depth": 2.0}
    assert model.requests[1].messages[-1].content == "{'length': 3.0, 'depth': 2.0}"


def test_a_wrong_value_is_an_error_that_the_agent_sees_before_it_tries_again(
    answers: Callable[..., ScriptedModel],
) -> None:
    model = answers("task_success({'length': 'long'})", "task_success({'length': 3.0})")
    agent = Agent()

    @agent.task
    def means(columns: list[str]) -> dict[str, float]:
        """Average the named columns."""
        pass  # noqa: PIE790 - as users write it

    assert means(["length"]) == {"length": 3.0}
    assert "result['length']: expected float, got str 'long'" in model.requests[1].messages[-1].content


def test_a_large_frame_is_worked_on_without_its_contents_in_the_conversation(
    answers: Callable[..., ScriptedModel],
) -> None:
    model = answers("task_success(big.sort_values('n').head(1))")
    agent = Agent()
    agent.module(pd)

    @agent.task
    def smallest(big: pd.DataFrame) -> pd.DataFrame:
        """Return the row with the smallest n."""
        pass  # noqa: PIE790 - as users write it

    row = smallest(pd.DataFrame({"n": range(1_000_000, 0, -1)}))
    assert row["n"].tolist() == [1]
    assert row.to_csv() == ",n\n999999,1\n"
    assert len(str(model.requests[0])) < 20_000


# -- a library, not a service -------------------------------------------------------------------------


@pytest.fixture
def harvest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a package of the user's own on the path: orchard.harvest."""
    package = tmp_path / "orchard"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "harvest.py").write_text(
        '"""Figures of the harvest."""\n\n\n'
        'def weight(trees: int) -> int:\n    """Kilograms."""\n    return trees * 40\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("orchard", "orchard.harvest"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("harvest")
def test_a_module_of_the_users_own_is_the_toolset(answers: Callable[..., ScriptedModel]) -> None:
    answers("from orchard import harvest\ntask_success(f'{harvest.weight(3)} kg')")
    from orchard import harvest  # type: ignore[import-not-found]

    agent = agex.Agent()
    agent.module(harvest)

    @agent.task
    def tell(question: str) -> str:
        """Answer with the harvest module."""
        pass  # noqa: PIE790 - as users write it

    assert tell("How much do three trees give?") == "120 kg"


@pytest.mark.usefixtures("harvest")
def test_a_module_of_a_package_is_imported_by_its_full_name_too(
    answers: Callable[..., ScriptedModel],
) -> None:
    answers("import orchard.harvest\ntask_success(str(orchard.harvest.weight(1)))")
    from orchard import harvest

    agent = agex.Agent()
    agent.module(harvest)

    @agent.task
    def tell(question: str) -> str:
        """Answer with the harvest module."""
        pass  # noqa: PIE790 - as users write it

    assert tell("And one?") == "40"


def test_the_place_where_code_runs_is_named(answers: Callable[..., ScriptedModel]) -> None:
    answers("task_success(1)")
    agent = Agent(
        isolation="none",
    )

    @agent.task
    def one() -> int:
        """Return one."""
        pass  # noqa: PIE790 - as users write it

    assert one() == 1


# -- several agents, ordinary Python ------------------------------------------------------------------


def test_a_task_of_one_agent_is_a_function_of_another(answers: Callable[..., ScriptedModel]) -> None:
    answers(
        "task_success(sorted_herd(['cow', 'ant'])['names'])",
        "task_success({'names': sorted(animals)})",
    )
    herder = Agent(name="herder")
    sorter = Agent(name="sorter")

    @herder.fn
    @sorter.task
    def sorted_herd(animals: list) -> dict:  # type: ignore[type-arg]
        """Sort the animals."""
        pass  # noqa: PIE790 - as users write it

    @herder.task
    def arrange() -> list[str]:
        """Arrange the herd."""
        pass  # noqa: PIE790 - as users write it

    assert arrange() == ["ant", "cow"]


@dataclass
class Verdict:
    approved: bool
    feedback: str


def test_peers_work_together_in_an_ordinary_loop(answers: Callable[..., ScriptedModel]) -> None:
    answers(
        "task_success('draft on ' + topic)",
        "task_success(Verdict(approved=len(poem) > 15, feedback='longer'))",
        "task_success(poem + ', ' + feedback)",
        "task_success(Verdict(approved=len(poem) > 15, feedback=''))",
    )
    poet, judge = Agent(), Agent()

    @poet.task
    def compose(topic: str) -> str:
        """Write a poem."""

    @poet.task
    def revise(feedback: str, poem: str) -> str:
        """Write it again."""

    @judge.task
    def judged(poem: str) -> Verdict:
        """Judge a poem."""

    poem = compose("rain")
    while not (verdict := judged(poem)).approved:
        poem = revise(verdict.feedback, poem)
    assert poem == "draft on rain, longer"


# -- looking back -------------------------------------------------------------------------------------


def test_the_workspace_of_an_earlier_action_is_pulled_up(answers: Callable[..., ScriptedModel]) -> None:
    answers("step = 1", "step = 2\ntask_success(step)")
    state = Versioned()
    agent = Agent(state=state)

    @agent.task
    def count() -> int:
        """Count."""

    assert count() == 2
    action = next(e for e in events(state) if isinstance(e, ActionEvent))
    historical = state.checkout(action.commit_hash)
    assert (historical["step"], state["step"]) == (1, 2)


# -- functions as values ------------------------------------------------------------------------------

NEXT_SQUARE = """\
import math

def next_square(n):
    root = math.isqrt(n) + 1
    return root * root

task_success(next_square)"""


def test_a_made_function_is_called_and_sorts_right_away(
    answers: Callable[..., ScriptedModel], capsys: pytest.CaptureFixture[str]
) -> None:
    answers(NEXT_SQUARE)
    agent = Agent()
    agent.module(math)

    @agent.task
    def write_function(description: str) -> Callable:  # type: ignore[type-arg]
        """Write a function that does what the description says."""
        pass  # noqa: PIE790 - as users write it

    next_square = write_function("find the next square number after a given one")

    print(next_square(50))
    numbers = [10, 3, 99]
    numbers.sort(key=next_square)
    assert capsys.readouterr().out == "64\n"
    assert numbers == [3, 10, 99]


# -- live objects -------------------------------------------------------------------------------------


def test_a_database_connection_is_worked_with_as_it_is(answers: Callable[..., ScriptedModel]) -> None:
    import sqlite3

    answers(
        "db.execute('create table birds (name text)')\n"
        "db.executemany('insert into birds values (?)', [('owl',), ('tit',)])\n"
        "db.commit()\n"
        "db.execute('select name from birds order by name').fetchall()",
        "task_success([name for (name,) in db.execute('select name from birds').fetchall()])",
    )
    db = sqlite3.connect(":memory:")
    try:
        agent = Agent()
        agent.module(db, name="db")

        @agent.task
        def birds(prompt: str) -> list[str]:
            """Keep birds in the database."""
            pass  # noqa: PIE790 - as users write it

        found: Any = birds("an owl and a tit")
        assert found == ["owl", "tit"]
        assert db.execute("select count(*) from birds").fetchone() == (2,)
    finally:
        db.close()


# -- beyond modules and functions ---------------------------------------------------------------------


def test_a_command_of_the_hosts_is_run_from_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel(
        [
            [write_file("notes.txt", "one\ntwo\n")],
            [terminal_action("tally notes.txt | sort")],
            [python_action("task_success(None)")],
        ]
    )
    monkeypatch.setattr("agex.models.resolve._default", lambda environ: model)
    agent = Agent()

    @agent.terminal
    def tally(ctx: Any) -> None:
        """Count the lines of a file."""
        ctx.stdout.write(f"{len(ctx.fs.read(ctx.args[0]).splitlines())} lines\n")

    @agent.task
    def work() -> None:
        """Use the terminal."""

    work()
    assert "2 lines" in model.requests[-1].messages[-1].content


def test_a_skill_is_listed_and_read_on_demand(answers: Callable[..., ScriptedModel], tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: rounding\ndescription: How we round.\n---\nTo even.\n")
    model = answers("print(open('/skills/rounding/SKILL.md').read())", "task_success(None)")
    agent = Agent()
    agent.skill(str(tmp_path))

    @agent.task
    def work() -> None:
        """Read the skill."""

    work()
    assert "rounding" in str(model.requests[0])
    assert "To even." not in str(model.requests[0])
    assert "To even." in model.requests[1].messages[-1].content


def test_an_agent_makes_a_specialist_whose_task_the_host_calls(answers: Callable[..., ScriptedModel]) -> None:
    answers(
        "helper = Agent(name='speller')\n"
        "@helper.task\n"
        "def spell(word: str) -> str:\n"
        "    'Spell a word.'\n"
        "    pass\n"
        "task_success(spell)",
        "task_success('-'.join(word))",
    )
    maker = Agent(name="maker", primer="You make agents.")
    maker.cls(Agent)

    @maker.task
    def make_specialist(prompt: str) -> Callable:  # type: ignore[type-arg]  # as users write it
        """Make an agent and give back its task."""
        pass  # noqa: PIE790 - as users write it

    spell = make_specialist("spell words")
    assert spell("map") == "m-a-p"
