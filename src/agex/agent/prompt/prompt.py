"""The prompt of a large model: the rules once, the task once, then the effect of each turn.

The system prompt and the first message never change within a task, and later messages are
only appended, so that a provider can cache the prefix; a conversation grown too long is shortened once
in a while, see ``compaction``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from agex import escaping as printable
from agex.agent.call.terms import Terms
from agex.agent.loop.loop import Observation
from agex.agent.prompt.compaction import shortened
from agex.agent.prompt.listing import listing
from agex.agent.registration import Registration
from agex.agent.rendering.images import pictures_of
from agex.agent.rendering.output_text import quoted
from agex.contract import preview
from agex.contract.real_types import class_name
from agex.host_texts import HostTexts
from agex.models.base import Message, Profile, Reply, Request

__all__ = ["Brief", "FullConversation", "system_prompt", "task_prompt"]

PREVIEW_CHARS = 6_000
"""For the previews of all inputs, and again of all variables, together."""
LEAST_PREVIEW = 80
MOST_VARIABLES = 60
"""Variables of the state listed by name; the rest are counted."""

_RULES = """\
You carry out a typed task by writing Python. Your code is run for you, turn by turn.

A turn
- {answer}
- The code is ordinary Python {python}, run at once. Variables, imports and functions stay from turn to
  turn of this task.
- You then see what it printed, the value of its last expression and, if it raised, the traceback.
  An error ends that piece of code; what it did before stays. Correct it and go on.
- Long output is cut in the middle, so print what you need to see rather than whole objects.
- You have {turns} turns. Take as few as the task needs; look at the data before you rely on it.

Ending the task: do one of these, from your code
- task_success(value): the task is done. The value must fit the task's return annotation; if it does
  not, the call raises an error that says where, and the turn goes on.
- Define a function with the task's own name and parameters. After your code has run, the examples of
  the task are tried on it, then it is called with the inputs, and what it returns is the value.
- task_fail(message): the task cannot be done; say why.
- task_clarify(message): you cannot go on without an answer from the caller; ask.

Names in your code
- Each input is a variable under its own name, and inputs.<name>. Inputs are the caller's own objects:
  do not change them unless the task says so.
- cache: a dict; it is kept for later tasks where the caller keeps state.
- help() lists what you were given, help(x) says how to use it; dir() lists names, dir(x) attributes.
- {libraries}"""

_LOOKING = """\
- view_image(x): look at a picture, a matplotlib or plotly figure or an array of 8-bit pixels, after this
  piece of code."""
_LIBRARIES = {
    "guarded": "Common standard library modules can be imported. There is no access to {access}\n"
    "  beyond what is listed below; what is refused raises an error that says so.",
    "full": "This is all of CPython: the whole standard library and every installed package can be\n"
    "  imported, and threads run. What is refused here, as processes and the network may be, raises an\n"
    "  error that says so.",
}
"""By the interpreter of the code."""
_ACCESS = {False: "files, network or processes", True: "the host's files, network or processes"}

_FILES = """\
Files
- You have a workspace, whose root and working directory is /. open, os, pathlib, glob, shutil, json, csv,
  zipfile and the libraries that you may use work on it. It is kept where the caller keeps state.
- Write what is worth keeping as a module, e.g. helpers/text.py, and import it: import helpers.text. A
  module that you changed is run anew when it is imported again.
"""

_FILE_ACTIONS = {
    True: "- There are also write_file, edit_file and terminal_action: a shell over the workspace, with\n"
    "  python. The task is finished from python_action only.",
    False: "- Other blocks are ```write_file path=a/b.py with the whole file, ```edit_file path=a/b.py with\n"
    "  <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE, and ```terminal with shell\n"
    "  commands over the workspace, python among them. The task is finished from ```python only.",
}
"""By whether actions are calls of tools."""

_ANSWERS = {
    True: "Answer by calling python_action with the code; several calls are run in order, until one fails.",
    False: "Answer with the code in a block that opens with ```python and closes with ```. Several blocks\n"
    "  are run in order, until one fails.",
}

_LAST_TURN = "This is your last turn: end the task now, with task_success, task_fail or task_clarify."


@dataclass(frozen=True, kw_only=True)
class Brief:
    """All that a conversation starts from."""

    terms: Terms
    inputs: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the state, by name."""
    registrations: tuple[Registration, ...] = ()
    agent_primer: str | None = None
    task_primer: str | None = None
    setup: str | None = None
    """Code that was run before the first turn."""
    setup_shown: str = ""
    """The output of that code."""
    turns: int = 10
    actions: tuple[str, ...] = ("python_action",)
    extras: str = ""
    """Skills and commands of the workspace, as they are listed."""
    python: str = "guarded"
    """The interpreter of its code, see `Agent`."""
    recap: str = ""
    """The content of the workspace when the task begins."""
    handover: str = ""
    """The turns of another model before this one."""


def system_prompt(
    registrations: tuple[Registration, ...],
    primer: str | None,
    turns: int,
    profile: Profile | None = None,
    *,
    actions: tuple[str, ...] = ("python_action",),
    extras: str = "",
    python: str = "guarded",
) -> str:
    """Return the rules, what the agent may use, and the agent's own primer."""
    import sys

    profile = profile or Profile()
    tools = profile.tools
    has_files = "write_file" in actions
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    libraries = _LIBRARIES[python].format(access=_ACCESS[has_files])
    rules = _RULES.format(answer=_ANSWERS[tools], turns=turns, python=version, libraries=libraries)
    if profile.images:
        rules = f"{rules}\n{_LOOKING}"
    listed = listing(registrations)
    parts = [
        rules,
        f"{_FILES}{_FILE_ACTIONS[tools]}" if has_files else "",
        extras,
        f"What you may use\n\n{listed}" if listed else "",
        (primer or "").strip(),
    ]
    return "\n\n".join(part for part in parts if part)


def task_prompt(brief: Brief) -> str:
    """Return the first message: the task, its inputs in short, and what is there already."""
    signature = brief.terms.signature
    given = [one for one in brief.terms.examples if not one.is_doctest]
    texts = HostTexts()
    parts = [
        (brief.task_primer or "").strip(),
        f"The task:\n{printable.block(signature.render(doc=True), 'python')}",
        _named("Its inputs, already bound as variables (shown in short)", brief.inputs, texts),
        "\n".join(["Examples that must hold:", *(f"{one.source} == {one.expected_text}" for one in given)])
        if given
        else "",
        _named("Variables kept from earlier tasks (shown in short)", brief.variables, texts),
        f"What is in the workspace:\n{brief.recap}" if brief.recap else "",
        _setup(brief),
        brief.handover,
        _async_note(brief),
    ]
    return "\n\n".join(part for part in parts if part)


def _named(heading: str, values: Mapping[str, Any], texts: HostTexts) -> str:
    if not values:
        return ""
    names = list(values)[:MOST_VARIABLES]
    share = max(LEAST_PREVIEW, PREVIEW_CHARS // len(names))
    lines = [_shown(name, values[name], share, texts) for name in names]
    if len(values) > len(names):
        lines.append(f"... and {len(values) - len(names)} more; dir() lists them")
    return "\n".join([f"{heading}:", *lines])


def _shown(name: str, value: Any, share: int, texts: HostTexts) -> str:
    """Return a value by name; the further lines of a table are indented, and so begin no section."""
    shown = printable.hanging(preview(value, share, texts))
    return f"{printable.line(name)}: {printable.line(class_name(type(value)))} = {shown}"


def _setup(brief: Brief) -> str:
    if not brief.setup:
        return ""
    shown = f"\nIt showed:\n{quoted(brief.setup_shown)}" if brief.setup_shown else ""
    return f"This code has been run already:\n{printable.block(brief.setup.strip(), 'python')}{shown}"


def _async_note(brief: Brief) -> str:
    names = [one.name for one in brief.registrations if one.is_async and one.visibility != "low"]
    if not names:
        return ""
    if brief.terms.signature.is_async:
        return f"Call {', '.join(names)} like ordinary functions, without await."
    return f"Not available in this task, because they are async: {', '.join(names)}."


class FullConversation:
    """The whole conversation so far; it only grows at its end."""

    def __init__(self, brief: Brief, profile: Profile) -> None:
        self._actions = brief.actions
        system = system_prompt(
            brief.registrations,
            brief.agent_primer,
            brief.turns,
            profile,
            actions=brief.actions,
            extras=brief.extras,
            python=brief.python,
        )
        names, images = pictures_of(brief.inputs, nullcontext) if profile.images else ([], ())
        shown = f"\n\nShown here: {', '.join(names)}, in this order." if names else ""
        self._messages = [
            Message(role="system", content=system),
            Message(role="user", content=f"{task_prompt(brief)}{shown}", images=images),
        ]

    @property
    def opening(self) -> tuple[Message, ...]:
        """The messages that it began with."""
        return tuple(self._messages[:2])

    def reopen(self, opening: tuple[Message, ...]) -> None:
        """Begin with these messages, of a run that goes on."""
        self._messages[:2] = opening

    def request(self, turn: int, turns_left: int) -> Request:
        """Return the request of this turn; the last one asks for an end."""
        messages = self._messages = shortened(self._messages)
        if turns_left == 0 and turn > 1:
            messages = [*messages[:-1], _with_text(messages[-1], _LAST_TURN)]
        return Request(messages=tuple(messages), actions=self._actions, attempt=turn - 1)

    def add(self, reply: Reply, seen: Observation) -> None:
        """Append an answer and what came of it."""
        self._messages.append(Message(role="assistant", content=reply.text or "(no text)", reply=reply))
        text = "\n\n".join(
            [quoted(seen.text), *([f"What is in the workspace now:\n{seen.recap}"] if seen.recap else [])]
        )
        self._messages.append(Message(role="user", content=text, images=seen.images))

    def answered(self, text: str) -> None:
        """Add the caller's answer to what is shown of the turn that asked."""
        self._messages[-1] = _with_text(
            self._messages[-1], f"The caller answers your question: {printable.hanging(text)}"
        )


def _with_text(message: Message, text: str) -> Message:
    return replace(message, content=f"{message.content}\n\n{text}".strip())
