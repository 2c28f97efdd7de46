"""One program, run twice: by CPython alone and in the sandbox, with what came of it in a comparable form."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

from agex.errors import SandboxError
from agex.sandbox import Limits, Policy, Sandbox

FILENAME = "<agent>"
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
SANDBOX = Sandbox(Policy.default(), limits=Limits(seconds=60, output_chars=1_000_000))


@dataclass(frozen=True)
class Outcome:
    """What a program did: what it printed, and the kind and text of the exception that escaped it."""

    stdout: str
    error: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.stdout}{self.error}{': ' if self.error else ''}{self.message}"


def run_native(source: str) -> Outcome:
    """Run a program as CPython does, in a namespace of its own."""
    out = io.StringIO()
    names: dict[str, Any] = {"__name__": "__main__", "__doc__": None}
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, FILENAME, "exec", dont_inherit=True), names)
        except BaseException as error:  # noqa: BLE001 - whatever escapes is the outcome
            return Outcome(_plain(out.getvalue()), type(error).__qualname__, _text(error))
    return Outcome(_plain(out.getvalue()))


def run_guest(source: str, sandbox: Sandbox | None = None) -> tuple[Outcome, Refusal | None]:
    """Run a program in the sandbox; tell a refusal apart from an error of the language."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = (sandbox or SANDBOX).session().run(source, FILENAME)
    error = result.error
    if error is None:
        return Outcome(_plain(result.stdout)), None
    outcome = Outcome(_plain(result.stdout), type(error).__qualname__, _text(error))
    return outcome, Refusal(str(error), result.traceback) if isinstance(error, SandboxError) else None


@dataclass(frozen=True)
class Refusal:
    """A program that the sandbox does not run, or not to its end."""

    message: str
    traceback: str

    @property
    def names_a_line(self) -> bool:
        """Whether the author of the program can see where."""
        return re.search(r"\bline \d+", self.traceback) is not None

    @property
    def says_what_to_do(self) -> bool:
        """Whether there is advice behind what is wrong."""
        return "; " in self.message


def _plain(text: str) -> str:
    return ADDRESS.sub(" at 0x", text)


def _text(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and not isinstance(error, SandboxError):
        return f"{error.msg} (line {error.lineno}, column {error.offset})"
    try:
        return _plain(str(error))
    except Exception as broken:  # noqa: BLE001 - an error whose text cannot be made: that is its text
        return f"(no text: {type(broken).__qualname__})"
