"""``agex doctor``: what a bug report needs; models and isolation levels of this machine, found by trying."""

from __future__ import annotations

import threading
from typing import Any

from rich.console import Console
from rich.table import Table

from agex.cli.installation import extras_installed, keys_present, versions
from agex.cli.isolation_attempts import try_level
from agex.errors import ModelNotConfigured
from agex.isolation import Level
from agex.models import resolve_model
from agex.sandbox import Limits, Result, Sandbox

__all__ = ["examine", "show"]

_ATTEMPTS = {
    "read a file of the host": "open('/etc/hostname').read()",
    "import os": "import os",
    "reach the interpreter's classes": "().__class__.__base__.__subclasses__()",
    "run past its time limit": "while True: pass",
}
_SECONDS = 0.2
_LATE = {
    "wait past its time, in a thread": "import time\ntime.sleep(2)",
    "run in C past its time, in a thread": "sum(range(10 ** 8))",
    "match a pattern past its time, in a thread": "import re\nre.match('(a+)+$', 'a' * 24 + 'b')",
}
"""See docs/security.md for what ends when."""


def examine() -> dict[str, Any]:
    """Try the default model and what each isolation level stops; nothing is sent to a model."""
    return {
        "versions": versions(),
        "extras": extras_installed(),
        "keys": keys_present(),
        "model": _model(),
        "isolation": {"none": _attempts()},
        "in_time": {what: _is_in_time(source) for what, source in _LATE.items()},
        "levels": {level: try_level(level) for level in _WORKERS},
    }


_WORKERS: tuple[Level, ...] = ("process", "kernel", "container")


def _model() -> dict[str, Any]:
    try:
        model = resolve_model(None)
    except ModelNotConfigured as error:
        return {"usable": False, "why": str(error)}
    return {"usable": True, "provider": model.provider, "name": model.name}


def _attempts() -> dict[str, bool]:
    """Return for each attempt whether it was stopped."""
    sandbox = Sandbox(limits=Limits(seconds=_SECONDS))
    return {what: sandbox.exec(source).error is not None for what, source in _ATTEMPTS.items()}


def _is_in_time(source: str) -> bool:
    """Return whether code ends at its limit outside the main thread."""
    results: list[Result] = []
    sandbox = Sandbox(limits=Limits(seconds=_SECONDS))
    thread = threading.Thread(target=lambda: results.append(sandbox.exec(source)))
    thread.start()
    thread.join()
    return results[0].duration < 2 * _SECONDS


def show(report: dict[str, Any]) -> None:
    """Print a report as tables."""
    console = Console()
    model = report["model"]
    for name, version in report["versions"].items():
        _tell(console, name, version or "not installed")
    _tell(
        console, "extras installed", f"agex-py[{','.join(report['extras'])}]" if report["extras"] else "none"
    )
    _tell(console, "variables set", ", ".join(report["keys"]) or "none")
    _tell(
        console,
        "model",
        f"{model['provider']}:{model['name']}" if model["usable"] else f"none. {model['why']}",
    )
    table = Table("level", "attempt", "stopped", title="Isolation, by trying")
    for level, attempts in report["isolation"].items():
        for what, stopped in attempts.items():
            table.add_row(level, what, _said(stopped))
    for what, in_time in report["in_time"].items():
        table.add_row("none", what, _said(in_time))
    for level, found in report["levels"].items():
        for what, stopped in found.get("stopped", {}).items():
            table.add_row(level, what, _said(stopped))
    console.print(table)
    for level, found in report["levels"].items():
        _tell(console, level, _held(found))
    console.print('"none" is a guard rail for cooperative code, not a boundary; see docs/security.md.')


def _tell(console: Console, name: str, text: str) -> None:
    """Print a fact in a line that can be copied: `[local]` is no markup, and nothing is broken."""
    console.print(f"{name}: {text}", markup=False, highlight=False, soft_wrap=True)


def _held(found: dict[str, Any]) -> str:
    if not found["available"]:
        return f"not here: {found['why']}"
    start = found["start_ms"]
    says = f"a worker starts in {start['later']:g} ms, the first in {start['first']:g}"
    return f"{found['python']} Python; {says}; {', '.join(found['walls'])}"


def _said(stopped: bool | str) -> str:
    return stopped if isinstance(stopped, str) else "yes" if stopped else "NO"
