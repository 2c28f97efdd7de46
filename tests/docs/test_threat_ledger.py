"""The threat ledger: each hostile test says which modules stop its attacks, and the page has them all."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ledger() -> ModuleType:
    spec = importlib.util.spec_from_file_location("threat_ledger", ROOT / "tools/threat_ledger.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one module and no test yet."""
    (tmp_path / "src/agex/rooms").mkdir(parents=True)
    (tmp_path / "src/agex/rooms/lock.py").write_text("")
    (tmp_path / "tests/sandbox").mkdir(parents=True)
    return tmp_path


def write_test(project: Path, docstring: str, body: str = "def test_it_stays_shut():\n    pass\n") -> None:
    (project / "tests/sandbox/test_lock.py").write_text(f'"""{docstring}"""\n{body}')


def test_the_page_is_up_to_date(ledger: ModuleType) -> None:
    page = (ROOT / "docs/design/threat-ledger.md").read_text(encoding="utf-8")
    assert page == ledger.page(), "run `make ledger`"


def test_a_hostile_test_that_names_no_module_is_refused(ledger: ModuleType, project: Path) -> None:
    write_test(project, "Attacks on the lock.")
    with pytest.raises(ledger.LedgerError, match=r"test_lock\.py says in its docstring no 'Stopped by"):
        ledger.page(project, {})


def test_a_module_that_does_not_exist_is_refused(ledger: ModuleType, project: Path) -> None:
    write_test(project, "Attacks on the lock.\n\nStopped by: rooms.lock, rooms.gone.\n")
    with pytest.raises(ledger.LedgerError, match=r"names agex\.rooms\.gone, which is no module"):
        ledger.page(project, {})


def test_a_reason_for_a_test_module_that_is_gone_is_refused(ledger: ModuleType, project: Path) -> None:
    with pytest.raises(ledger.LedgerError, match=r"test_gone\.py"):
        ledger.page(project, {"tests/sandbox/test_gone.py": "gone"})


def test_an_attack_is_listed_by_its_id_with_the_modules_that_stop_it(
    ledger: ModuleType, project: Path
) -> None:
    body = '''import pytest

BASE = {"by key": "x"}
ATTACKS = {**BASE, "by file": "y"}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_it_stays_shut(attack):
    """Stopped by: rooms."""


@pytest.mark.parametrize("name", ["\\x00", pytest.param("long", id="axe")])
def test_nothing_breaks(name):
    pass
'''
    write_test(project, "Attacks on the lock.\n\nStopped by: rooms.lock,\nrooms.\n", body)
    (project / "src/agex/rooms/__init__.py").write_text("")
    lines = ledger.page(project, {}).splitlines()
    assert "- it stays shut: `by key`; `by file`. Stopped by `rooms`." in lines
    assert r"- nothing breaks: `\x00`; `axe`." in lines
    assert "Stopped by `rooms.lock`, `rooms`." in lines
    assert "| `rooms` | sandbox/test_lock 2 |" in lines
    assert "| `rooms.lock` | sandbox/test_lock 1 |" in lines


def test_a_program_that_works_is_no_attack(ledger: ModuleType, project: Path) -> None:
    body = """import pytest

EVERYDAY = {"opens": "x"}


@pytest.mark.parametrize("name", EVERYDAY)
def test_the_key_opens(name):
    pass
"""
    write_test(project, "Attacks on the lock.\n\nStopped by: rooms.lock.\n", body)
    assert "the key opens" not in ledger.page(project, {})
