"""Which tests are not run in Pyodide, and why: a plugin for pytest."""

from __future__ import annotations

import inspect
import re

import pytest

_NEEDS: dict[str, str] = {
    r"threading\.|ThreadPool|to_thread\(|asyncio\.run\(|run_coroutine_threadsafe": "starts threads or an event loop",
    r"subprocess\.|multiprocessing|os\.fork|ProcessPool|sys\.executable": "starts processes",
    r"signal\.|setitimer|SIGALRM": "uses signals",
    r"socket\.|HTTPServer": "opens sockets",
}
"""What a test itself does that a browser tab cannot, by its source."""

_TESTS: dict[str, str] = {
    "tests/sandbox/test_limits.py::test_a_c_call_that_looks_for_signals": "there are no signals to look for",
}
"""Tests and files, by the start of their ids."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = _reason(item)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"not in a browser tab: {reason}"))


def _reason(item: pytest.Item) -> str | None:
    for start, reason in _TESTS.items():
        if item.nodeid.startswith(start):
            return reason
    source = inspect.getsource(item.function) if isinstance(item, pytest.Function) else ""
    return next((reason for what, reason in _NEEDS.items() if re.search(what, source)), None)
