"""What holds for every test: an environment without settings or keys, and properties without deadlines."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import settings

SETTING = re.compile(r"AGEX_\w+|\w+_API_KEY")

# A machine that is busy with other things must not fail a property.
settings.register_profile("agex", deadline=None)
settings.load_profile("agex")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the developer's own shell says: no model is configured unless a test does it."""
    for name in [name for name in os.environ if SETTING.fullmatch(name)]:
        monkeypatch.delenv(name)
