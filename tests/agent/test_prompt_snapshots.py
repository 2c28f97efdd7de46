"""The prompts word for word, so that each change of them is seen in review."""

from __future__ import annotations

import pytest
from prompt_scenarios import FOLDER, SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_prompt_is_word_for_word_the_one_in_its_file(name):
    """Write the files anew with `python tests/agent/prompt_scenarios.py --write`, and read the difference."""
    assert f"{SCENARIOS[name]()}\n" == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_file_belongs_to_a_prompt():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(SCENARIOS)
