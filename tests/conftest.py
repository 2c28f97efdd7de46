"""What holds for every test: an environment without settings or keys, and properties without deadlines."""

from __future__ import annotations

import builtins
import gc
import importlib
import io
import linecache
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

import agex

SETTING = re.compile(r"AGEX_\w+|\w+_API_KEY")

# A machine that is busy with other things must not fail a property. Examples that fail are told as they are:
# to explain them is to trace every line in Python, for more minutes than a test has.
settings.register_profile("agex", deadline=None, phases=[each for each in Phase if each is not Phase.explain])
settings.load_profile("agex")


def pytest_collection_finish() -> None:
    """Keep the thousands of tests, and what they import, out of every later collection."""
    gc.collect()
    gc.freeze()
    # A strike that meets a finalizer is dropped, and pytest makes a text of it with its source: while a guest
    # runs, when no file can be read.
    for path in Path(agex.__file__).parent.rglob("*.py"):
        linecache.getlines(str(path))


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the developer's own shell says: no model is configured unless a test does it."""
    for name in [name for name in os.environ if SETTING.fullmatch(name)]:
        monkeypatch.delenv(name)


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keep the collector off, which would call finalizers of other tests' garbage at the end of the stack.

    They fail there, and so may what pytest notes that with; then it has a thousand errors to write down.
    """
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def originals_back() -> Iterator[None]:
    """Take away what monkeyfs puts in the place of the host's functions for good, once the test is over."""
    owners = (builtins, io, os, os.path, Path)
    before = [dict(vars(owner)) for owner in owners]
    yield
    for owner, was in zip(owners, before, strict=True):
        for name, value in was.items():
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
    importlib.import_module("monkeyfs.patching.install")._installed = False
