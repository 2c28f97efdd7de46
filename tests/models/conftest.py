"""The provider on loopback, shared by the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai_server
import pytest


@pytest.fixture(scope="session")
def openai() -> Any:
    """The module of answers."""
    return openai_server


@pytest.fixture
def server(openai: Any) -> Iterator[Any]:
    """A running provider without answers."""
    with openai.running() as provider:
        yield provider
