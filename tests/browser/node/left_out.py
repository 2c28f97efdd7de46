"""Which tests are not run in Pyodide, and why: a plugin for pytest."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

_NEEDS: dict[str, str] = {
    r"threading\.|ThreadPool|to_thread\(|_threadsafe|max_workers": "the test starts threads",
    r"asyncio\.run\(": "the test starts an event loop of its own",
    r"subprocess\.|multiprocessing|os\.fork|ProcessPool|sys\.executable": "the test starts processes",
    r"isolation=|ProcessExecutor\(": "the test starts workers",
    r"signal\.|setitimer|SIGALRM": "the test uses signals",
    r"socket\.|HTTPServer|_server\b": "the test opens sockets",
    r"\bDisk\(|state\.disk": "a state on disk is not for a tab: its files are gone with it",
    r"memory_mb=\d": "there is no limit on memory to be had",
    r"rlimit\(": "there are no limits of a process's resources",
    r"link_to\(|os\.link\(": "the file system of the tab has no hard links",
}
"""What a test itself does that a browser tab cannot, by its source and that of the fixtures it takes."""

_AWAITED = "an async function is awaited there: no thread can wait for it (tests/browser/test_no_threads.py)"
_WAITS = "the test waits for a task without an event loop"

_NO_WATCH = (
    "no thread looks at the clock: what a registered function takes is the agent's time (docs/security.md)"
)
_SLOW = "WebAssembly takes ten times as long as make test, which runs it"
_NO_ZONES = "there are no time zones until a page loads tzdata"

_TESTS: dict[str, str] = {
    "tests/agent/test_architect.py::test_an_async_task_of_a_built_agent": _AWAITED,
    "tests/agent/test_async.py::test_an_async_function_is_called_like_a_sync_one": _AWAITED,
    "tests/agent/test_async.py::test_an_error_of_an_async_function": _AWAITED,
    "tests/agent/test_async.py::test_cancelling_reaches_a_waiting_async_function": _AWAITED,
    "tests/agent/test_async.py::test_an_async_sub_task": _AWAITED,
    "tests/agent/test_external_functions.py::test_async_functions_are_journalled_too": _AWAITED,
    "tests/agent/test_async.py::test_more_tasks_than_a_pool": _AWAITED,
    "tests/agent/test_concurrency.py::test_more_actions_than_places": _AWAITED,
    "tests/agent/test_nesting.py::test_tasks_that_are_nested_too_deep": _AWAITED,
    "tests/agent/test_pages.py::test_a_run_that_goes_on": _WAITS,
    "tests/agent/test_registration.py::test_an_async_function_reaches_files": _AWAITED,
    "tests/agent/test_run.py::test_a_started_run_gives": _WAITS,
    "tests/agent/test_run.py::test_a_run_of_a_sync_task_can_be_awaited": _WAITS,
    "tests/agent/test_run.py::test_a_result_that_is_not_there": _WAITS,
    "tests/agent/test_run.py::test_what_ended_a_started_task": _WAITS,
    "tests/agent/test_run.py::test_an_error_of_a_handler": _WAITS,
    "tests/agent/test_run.py::test_cancelling_gives_a_request_up": _WAITS,
    "tests/agent/test_task.py::test_map_raises_the_first_failure": _WAITS,
    "tests/models/test_function.py::test_an_async_function_serves_sync_callers": _WAITS,
    "tests/agent/test_listing.py::test_a_large_package": "pandas has no wheel for Pyodide in the registry",
    "tests/sandbox/attacks/test_hostile_host.py::"
    "test_where_host_and_guest_meet_there_is_no_way_to_the_host[recursion": (
        "recursion through C uses up JavaScript's stack, and ends the interpreter (docs/browser.md)"
    ),
    "tests/sandbox/attacks/test_reentrancy.py::test_the_process_goes_on": "the test starts processes",
    "tests/sandbox/attacks/test_hostile_classes.py::test_a_maker_of_classes": "the test starts threads",
    "tests/sandbox/runtime/test_limits.py::test_a_c_call_that_looks_for_signals": (
        "there are no signals to look for"
    ),
    "tests/sandbox/attacks/test_limits_ways_round.py::test_what_the_standard_library_suppresses": (
        "the test starts processes"
    ),
    "tests/sandbox/attacks/test_limits_ways_round.py::test_the_class_of_what_ended": (
        "the test starts processes"
    ),
    "tests/sandbox/attacks/test_library_holes.py::test_time_zones_are_listed": _NO_ZONES,
    "tests/sandbox/patches/test_stdlib_caches.py::test_a_key_that_lies_finds_what_it_says": _NO_ZONES,
    "tests/sandbox/patches/test_stdlib_caches.py::test_the_host_finds_in_no_cache_what_a_guest_put_there_under_a_key_that_lies"
    "[a time zone": _NO_ZONES,
    "tests/sandbox/patches/test_stdlib_caches.py::test_the_host_finds_in_no_cache_what_a_guest_put_there_under_a_key_that_lies"
    "[an own time zone": _NO_ZONES,
    "tests/sandbox/attacks/test_ways_round.py::test_private_state_of_the_host_is_not_read"
    "[a time zone of made up data, by a zone": _NO_ZONES,
    "tests/sandbox/runtime/test_host_time.py::test_a_function_of_the_host_is_not_interrupted": _NO_WATCH,
    "tests/sandbox/runtime/test_host_time.py::test_what_a_function_with_a_limit_of_its_own_calls_back": (
        "the test starts threads"
    ),
    "tests/sandbox/runtime/test_host_time.py::test_a_function_with_a_limit_of_its_own_that_calls_back": (
        "the test starts threads"
    ),
    "tests/sandbox/policy/test_registrations.py::test_joblib_is_registered": (
        "joblib is not among the wheels for Pyodide"
    ),
    "tests/sandbox/runtime/test_host_time.py::test_guest_code_ends_at_its_limit_also_in_a_callback": (
        _NO_WATCH
    ),
    "tests/sandbox/runtime/test_deadline.py::test_a_limit_leaves_no_door_open": _SLOW,
    "tests/sandbox/test_differential.py::test_no_session_outlives_its_program": _SLOW,
    "tests/agent/test_pages.py::test_thousands_of_commits": _SLOW,
    "tests/agent/test_shortening.py::test_very_many_turns": _SLOW,
    "tests/values/test_sketch.py::test_an_enumeration_of_many_members": _SLOW,
    "tests/files/test_escapes.py::test_a_root_that_is_replaced": "a directory is not held open there",
}
"""Tests and files, by the start of their ids."""

_FILES: dict[str, str] = {
    "tests/sandbox/language/test_humaneval_reference.py": "the data set is not installed there",
    "tests/sandbox/test_fuzz.py": "as long as all the rest; make fuzz and make test run it",
    "tests/sandbox/test_cpython_suite.py": "Pyodide comes without the tests of the interpreter",
    "tests/sandbox/test_everyday.py": "each snippet is compared with an interpreter of its own, a process",
    "tests/sandbox/libraries": "its libraries have no wheels for Pyodide in the package registry",
    "tests/state/test_crash_kill.py": "processes are killed in it",
    "tests/state/test_crash_power.py": "processes are traced in it",
    "tests/state/test_disk.py": "a state on disk is not for a tab",
    "tests/state/test_tamper.py": "a state on disk is not for a tab",
    "tests/values/test_budget.py": _SLOW,
    "tests/state/test_store_readonly.py": "a state on disk is not for a tab",
    "tests/files/test_given_by_others.py": "a tab has no pipes, sockets and devices among its files",
    "tests/agent/test_slow_texts.py": "no thread can wait for an object there, and give it up",
    "tests/contract/test_host_repr.py": "no thread can wait for an object there, and give it up",
    "tests/agent/test_overlap.py": "tasks overlap in threads there; test_overlap_machine.py runs",
    "tests/state/test_redis.py": "a server is started in it",
    "tests/state/test_postgres.py": "a server is started in it",
    "tests/browser/test_model.py": "a server is started in it; node/session.mjs asks one",
    "tests/models/test_local.py": "models that run in the interpreter are not for a tab",
    "tests/agent/test_elsewhere.py": "processes and clusters are started in it",
    "tests/models/test_weights.py": "models that run in the interpreter are not for a tab",
}
"""Files that are not even imported."""

_ELSEWHERE = frozenset({"process", "kernel", "container"})
"""Values of a test's parameters that ask for workers."""

_LOADABLE = frozenset({"agex", "pytest", "hypothesis"})

_left_out: dict[str, str] = {}


def pytest_configure(config: pytest.Config) -> None:
    # Python 3.14 says it of programs that tests have written for all versions.
    config.addinivalue_line("filterwarnings", "ignore:'\\w+' in a 'finally' block:SyntaxWarning")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file that imports what cannot be loaded, and say so at the end."""
    name = collection_path.relative_to(config.rootpath).as_posix()
    reason = _FILES.get(name)
    if reason is None and collection_path.suffix == ".py" and collection_path.name.startswith("test_"):
        reason = _missing(collection_path)
    if reason is None:
        return None
    _left_out[name] = reason
    return True


def _missing(path: Path) -> str | None:
    beside = [path.parent, path.parent.parent, path.parent.parent / "sandbox", path.parent.parent / "state"]
    for name in _imported(path):
        module = next((folder / f"{name}.py" for folder in beside if (folder / f"{name}.py").exists()), None)
        if module is not None and (reason := _missing(module)) is not None:
            return reason
        is_ours = module is not None or any((folder / name).exists() for folder in beside)
        if name not in _LOADABLE and not is_ours and importlib.util.find_spec(name) is None:
            return f"{name} has no wheel for Pyodide in the package registry, or is not for a tab"
    return None


def _imported(path: Path) -> list[str]:
    """Return the top names of the modules that the file imports as it is loaded."""
    names = list[str]()
    for statement in ast.parse(path.read_bytes()).body:
        if isinstance(statement, ast.Import):
            names += [alias.name.split(".")[0] for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module is not None:
            names.append(statement.module.split(".")[0])
    return names


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = _reason(item)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"not in a browser tab: {reason}"))


def _reason(item: pytest.Item) -> str | None:
    for start, reason in _TESTS.items():
        if item.nodeid.startswith(start):
            return reason
    if item.nodeid.startswith("tests/browser/"):
        return None  # these are about what is not there
    if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        given = item.callspec.params.values()
        if any(type(each) is str and each in _ELSEWHERE for each in given):
            return "the test starts workers"
    source = _source(item) if isinstance(item, pytest.Function) else ""
    return next((reason for what, reason in _NEEDS.items() if re.search(what, source)), None)


def _source(item: pytest.Function) -> str:
    parts = [inspect.getsource(item.function)]
    for name in item.fixturenames:
        for fixture in item._fixtureinfo.name2fixturedefs.get(name, ()):
            if "/tests/" in inspect.getsourcefile(fixture.func) and "_no_settings" not in name:
                parts += [inspect.getsource(fixture.func)]
    return "\n".join(parts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _left_out:
        terminalreporter.section("files left out in a browser tab")
        for name, reason in sorted(_left_out.items()):
            terminalreporter.line(f"{name}: {reason}")
