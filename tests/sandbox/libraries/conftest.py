import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agex.sandbox import Limits, Policy, Sandbox


class Room:
    """A sandbox with some libraries, and a canary file that no guest may touch."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.policy = Policy.default()
        for name in names:
            reason = f"{name} is not installed: its policy cannot be tried"
            self.policy.module(pytest.importorskip(name, reason=reason))
        self.secret = folder / "secret.txt"
        self.secret.write_text("col\nthe-secret\n")
        self.target = folder / "canary"

    def run(self, source: str, **names: Any) -> Any:
        given = {"SECRET": str(self.secret), "TARGET": str(self.target), **names}
        sandbox = Sandbox(self.policy, limits=Limits(seconds=60))
        return sandbox.exec(textwrap.dedent(source), given)

    def printed(self, source: str, **names: Any) -> str:
        result = self.run(source, **names)
        assert result.traceback == ""
        return str(result.stdout)

    def refuses(self, source: str, **names: Any) -> bool:
        """Tell whether the program ends in an error and the canary stands."""
        result = self.run(source, **names)
        assert "the-secret" not in result.stdout
        return result.error is not None and not self.target.exists()


@pytest.fixture
def room(tmp_path: Path) -> Callable[..., Room]:
    return lambda *names: Room(tmp_path, *names)
