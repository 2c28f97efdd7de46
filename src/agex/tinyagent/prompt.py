"""The system prompt. Its texts are joined, never formatted, so that braces are harmless."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agex.agent.prompt.listing import listing, signature_text
from agex.agent.registration import Registration
from agex.errors import DefinitionError
from agex.models.base import Profile
from agex.tinyagent.python_executor import PythonExecutor
from agex.tinyagent.tools import Tool

__all__ = ["Instructions"]

HELPERS = "{helpers}"
"""Stands in a prompt of the caller's where the names in the agent's code are to be listed."""

_ANSWERS = {
    True: "Call python_action with the code, or reply with the code in one ```python block.",
    False: "Reply with the code in one block that opens with ```python and closes with ```.",
}

_NAMES = """\
Names in your code
- final_answer(value) ends the task at once; the value may be of any type. Say how you checked it:
  final_answer(value, verified_by="recomputed it another way").
- uncertain(message), explore(message), commit(message) tell the user what is unclear, what you are trying
  and what is settled. They do not end the task.
- store(name, value), recall(name, default=None), observe(text), fail(text) are your working memory, also
  memory.store(...) and so on. It is shown at every step and stays for later tasks.
- help(x) explains x; dir() lists names, dir(x) attributes."""

_FILES = """\
- open(path) reads a file of the working directory, and so do the readers of the libraries below. There is
  no other access to files, and none to the network or to processes, except by the tools."""

_NO_FILES = "- There are no files, no network and no other processes, except by the tools."

_SMALL = """\
Write one short Python program for the task, in one ```python block.
It must end by calling final_answer(result) with the result."""


@dataclass(frozen=True, kw_only=True)
class Instructions:
    """The instructions of an agent's model, beside the task.

    Args:
        own: the caller's own prompt in place of the rules; None for the rules.
        suffix: what the caller adds at the end.
    """

    own: str | None = None
    suffix: str | None = None

    @classmethod
    def read(cls, file: str | Path | None, suffix: str | None) -> Instructions:
        """Read the caller's prompt from a file, UTF-8.

        Raises:
            FileNotFoundError: there is none. It is never replaced by the default.
            DefinitionError: it is empty.
        """
        own = None if file is None else Path(file).read_text(encoding="utf-8")
        if own is not None and not own.strip():
            raise DefinitionError(
                f"prompt_file={str(file)!r} is empty; leave it out to use the default prompt."
            )
        return cls(own=own, suffix=suffix)

    def text(self, executor: PythonExecutor, steps: int, profile: Profile) -> str:
        """Return the system prompt of a run."""
        is_small = profile.style == "completion"
        names = _in_short(executor) if is_small else _in_full(executor)
        if self.own is not None:
            rules = self.own.replace(HELPERS, names)
            parts = [rules] if HELPERS in self.own else [rules, names]
        else:
            parts = [_SMALL if is_small else _rules(executor, steps, profile), names]
        parts.append(self.suffix or "")
        return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _rules(executor: PythonExecutor, steps: int, profile: Profile) -> str:
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    seconds, shown = f"{executor.limits.timeout_seconds:g}", f"{executor.limits.max_output_bytes:,}"
    return f"""\
You solve a task by writing Python {python}, step by step. Your code runs in a persistent, guarded session.

Each step
- {_ANSWERS[profile.tools]}
- Imports and names are checked before anything runs: if one is refused, nothing of that code runs.
- An error stops the code there; what ran before it stays done. Names persist from step to step.
- You get back what was printed, the value of the last expression and the traceback of an error.
- A step may run {seconds} seconds and show {shown} bytes; of more, the middle is cut out. Without await.
- You have {steps} steps; take as few as the task needs. Look at the data before you rely on it."""


def _in_full(executor: PythonExecutor) -> str:
    files = _FILES if executor.files is not None else _NO_FILES
    imports = ", ".join([*executor.extra_imports, *_standard(executor)])
    listed = textwrap.fill(
        f"- Modules you can import: {imports}.",
        110,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n\n".join([f"{_NAMES}\n{files}\n{listed}", *_listed(executor.tools)])


def _standard(executor: PythonExecutor) -> list[str]:
    extra = set(executor.extra_imports)
    return sorted(name for name in executor.policy.modules if name not in extra and not name.startswith("_"))


def _listed(tools: Iterable[Tool]) -> list[str]:
    records = [Registration(kind="function", name=one.name, target=one.fn) for one in tools]
    return [f"Tools, to be called by name\n\n{listing(records)}"] if records else []


def _in_short(executor: PythonExecutor) -> str:
    """Return the names for a small model, which is helped by little text."""
    lines = []
    if executor.files is not None:
        lines.append("Files are in the working directory: open them by name.")
    if executor.extra_imports:
        lines.append(f"Import what you use: {', '.join(executor.extra_imports)}.")
    if executor.tools:
        lines.append("Already defined, call them:")
    for one in executor.tools:
        about = one.doc.split("\n", 1)[0]
        lines.append(f"{one.name}{signature_text(one.fn)}  # {about}" if about else one.name)
    return "\n".join(lines)
