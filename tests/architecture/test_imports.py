"""The layer law, and what a bare import may load."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
HEAVY = "mcp numpy openai opentelemetry pandas pydantic pydantic_ai rich typer xllamacpp".split()


def printed_by(code: str) -> str:
    """Run code in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def loaded_by_agex() -> list[str]:
    """Name every module that a bare `import agex` leaves loaded."""
    names: list[str] = json.loads(printed_by("import agex, json, sys; print(json.dumps(list(sys.modules)))"))
    return names


@pytest.fixture
def _loggers() -> Iterator[None]:
    """Put back what the linter's configuration of logging disables: every logger that there is."""
    loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    before = [each.disabled for each in loggers]
    yield
    for logger, was in zip(loggers, before, strict=True):
        logger.disabled = was


@pytest.mark.usefixtures("_loggers")
def test_imports_go_from_outer_rooms_to_inner_ones(capsys: pytest.CaptureFixture[str]) -> None:
    broken = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert not broken, capsys.readouterr().out


def test_a_bare_import_loads_no_provider_and_no_heavy_library() -> None:
    loaded = printed_by(
        f"import agex, json, sys; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    )
    assert json.loads(loaded) == []


def test_a_bare_import_loads_none_of_the_rooms() -> None:
    loaded = printed_by(
        "import agex, json, sys; print(json.dumps([m for m in sys.modules if m[:5] == 'agex.']))"
    )
    assert json.loads(loaded) == []


def test_the_sandbox_brings_nothing_that_takes_longer_than_it_does() -> None:
    loaded = printed_by("import agex.sandbox, json, sys; print(json.dumps(list(sys.modules)))")
    assert not {"asyncio", "doctest", "inspect", "logging", "multiprocessing", "ssl", "subprocess"} & set(
        json.loads(loaded)
    )


def test_a_bare_import_loads_nothing_but_what_typing_needs() -> None:
    loaded = printed_by(
        "import typing, importlib, sys; before = set(sys.modules); import agex; "
        "print(*(set(sys.modules) - before))"
    )
    assert set(loaded.split()) <= {"__future__", "agex", "warnings"}
