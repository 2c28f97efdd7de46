"""What the tests of this room share: one executor of each level, and sessions of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agex.isolation import ProcessExecutor
from agex.isolation.worker.host_session import RemoteSession
from agex.sandbox import Limits, Policy


@pytest.fixture(scope="module")
def executor() -> Iterator[ProcessExecutor]:
    made = ProcessExecutor()
    yield made
    made.close()


@pytest.fixture
def session(executor: ProcessExecutor) -> Iterator[RemoteSession]:
    made = executor.session(Policy.default(), Limits(seconds=5.0), {"rows": [1]})
    yield made
    made.close()
