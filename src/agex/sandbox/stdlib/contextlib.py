"""``contextlib`` for guest code: its decorators, and the redirection of output.

The decorators wrap guest functions only. A redirection ends with its run, even if the ``with`` statement was
never left.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.runtime.output import CAPTURE
from agex.sandbox.stdlib.decorators import bare
from agex.sandbox.stdlib.sys_streams import Redirected

__all__ = ["CONTEXTLIB"]


def contextmanager(func: Any) -> Any:
    """Do what ``contextlib.contextmanager`` does."""
    return contextlib.contextmanager(bare(func))


def asynccontextmanager(func: Any) -> Any:
    """Do what ``contextlib.asynccontextmanager`` does."""
    return contextlib.asynccontextmanager(bare(func))


class redirect_stdout:  # noqa: N801 - its name in contextlib
    """``contextlib.redirect_stdout`` for a run."""

    def __init__(self, new_target: Any) -> None:
        self._new_target = new_target

    def __enter__(self) -> Any:
        target = self._new_target
        if type(target) is not io.StringIO:  # host code prints there as well, and would call its write()
            raise SandboxTypeError(
                "output is redirected to an io.StringIO(); print(..., file=...) takes others"
            )
        CAPTURE.set(Redirected(_stream_of(self), target, CAPTURE.get()))
        return target

    def __exit__(self, *error: object) -> None:
        output: Any = CAPTURE.get()
        while type(output) is Redirected:  # there is none once the run that entered is over
            if output.target is self._new_target and output.stream == _stream_of(self):
                CAPTURE.set(output.below)
                return
            output = output.below


class redirect_stderr(redirect_stdout):  # noqa: N801 - its name in contextlib
    """``contextlib.redirect_stderr`` for a run."""


def _stream_of(redirecting: redirect_stdout) -> str:
    return "stderr" if issubclass(type(redirecting), redirect_stderr) else "stdout"


CONTEXTLIB = {
    "asynccontextmanager": asynccontextmanager,
    "contextmanager": contextmanager,
    "redirect_stderr": redirect_stderr,
    "redirect_stdout": redirect_stdout,
}
"""The members of ``contextlib`` that are guarded."""
