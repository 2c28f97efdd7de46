"""The provider on loopback, shared by the tests of this room."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _load() -> ModuleType:
    # Tests are imported by path (--import-mode=importlib), so a neighbour has no package to come from.
    path = Path(__file__).with_name("openai_server.py")
    spec = importlib.util.spec_from_file_location("agex_tests_openai_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def openai() -> Any:
    """The module of answers."""
    return _load()


@pytest.fixture
def server(openai: Any) -> Iterator[Any]:
    """A running provider without answers."""
    with openai.running() as provider:
        yield provider
