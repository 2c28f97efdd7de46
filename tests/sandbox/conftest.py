import contextlib
import io
import textwrap
from collections.abc import Callable
from typing import Any

import pytest


def _native(source: str, **names: Any) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(textwrap.dedent(source), "<native>", "exec"), {"__name__": "__main__", **names})
    return out.getvalue()


@pytest.fixture
def native() -> Callable[..., str]:
    """What a program prints under plain CPython."""
    return _native
