"""A byte that is not what it was is found, or it makes no difference: ``make flips`` tries every one.

Stopped by: state.disk, state.commits.
"""

from __future__ import annotations

import random

import flips
import pytest

SAMPLES = {"state.db": 40, "pack": 10, "last": 4, "state.db-wal": 40}
"""How many bytes of each file are altered."""


@pytest.fixture(params=[flips.SMALL_PAGES, flips.USUAL_PAGES])
def stores(request, tmp_path):
    flips.make_stores(tmp_path, request.param)
    return tmp_path


def altered(trial, name):
    size = len(trial.contents[name])
    positions = random.Random(size).sample(range(size), min(size, SAMPLES[name]))
    return [trial.flip(name, position, random.Random(position).choice(flips.MASKS)) for position in positions]


def test_an_altered_byte_of_a_closed_store_is_found_or_harmless(stores, tmp_path):
    trial = flips.DiskTrial(stores / "closed", tmp_path / "altered")
    assert "found" in altered(trial, "state.db")
    assert set(altered(trial, "pack")) == {"found"}
    assert set(altered(trial, "last")) == {"harmless"}


def test_an_altered_byte_of_the_log_of_a_store_that_was_not_closed_is_found_or_harmless(stores, tmp_path):
    trial = flips.DiskTrial(stores / "killed", tmp_path / "altered")
    assert "found" in altered(trial, "state.db-wal")


@pytest.fixture(scope="module")
def memory():
    return flips.MemoryTrial()


@pytest.mark.parametrize("change", ["altered", "cut short", "gone", "another's"])
def test_what_another_store_holds_is_found_altered_or_it_is_harmless(memory, change):
    contents = {key: value for key, value in memory.contents.items() if key.startswith("agex/o/")}
    values = list(contents.values())
    found = []
    for number, (key, value) in enumerate(contents.items()):
        position = random.Random(number).randrange(len(value))
        other = {
            "altered": value[:position] + bytes((value[position] ^ 1,)) + value[position + 1 :],
            "cut short": value[:position],
            "gone": None,
            "another's": values[number - 1],
        }[change]
        found.append(memory.judge(key, other))
    assert set(found) == {"found"}


def test_an_altered_name_of_a_commit_is_found_in_another_store(memory):
    names = [key for key in memory.contents if key.startswith(("agex/branch/", "agex/tag/"))]
    verdicts = [memory.flip(key, n, 1) for key in names for n in range(len(memory.contents[key]))]
    assert len(names) == 3
    assert set(verdicts) == {"found"}
