"""Every level runs code as this process does."""

from __future__ import annotations

from typing import Any

import pytest

from agex.errors import DefinitionError
from agex.isolation import GuestSession, InProcessExecutor, ProcessExecutor
from agex.sandbox import Result
from agex.testing import check_executor


def test_this_process_is_a_level():
    check_executor(InProcessExecutor)


def test_a_process_is_a_level():
    check_executor(ProcessExecutor)


def test_full_python_in_a_process_is_a_level():
    check_executor(ProcessExecutor, python="full")


def test_full_python_in_this_process_is_refused():
    with pytest.raises(DefinitionError, match="has no guards"):
        check_executor(InProcessExecutor, python="full")


class Mute(InProcessExecutor):
    """Loses what is printed."""

    def session(self, *args: Any, **kwargs: Any) -> GuestSession:
        session = super().session(*args, **kwargs)
        run = session.run

        def muted(source: str, **options: Any) -> Result:
            result = run(source, **options)
            result.stdout = ""
            return result

        session.run = muted  # type: ignore[method-assign]
        return session


def test_a_level_that_differs_is_told_by_program():
    with pytest.raises(AssertionError, match=r"'printing': the output of\nfor i in range\(3\)"):
        check_executor(Mute)
