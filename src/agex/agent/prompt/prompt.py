"""The prompt of a large model: the rules once, the task once, then the effect of each turn.

The system prompt and the first message never change within a task, and later messages are
only appended, so that a provider can cache the prefix; a conversation grown too long is shortened once
in a while, see ``compaction``.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

from agex import escaping as printable
from agex.agent.call.terms import Terms
from agex.agent.loop.loop import Observation
from agex.agent.prompt.compaction import shortened
from agex.agent.prompt.library_names import missing_modules
from agex.agent.prompt.listing import listing
from agex.agent.registration import Registration
from agex.agent.rendering.images import pictures_of
from agex.agent.rendering.output_text import quoted
from agex.contract import definitions, preview, short_repr
from agex.contract.real_types import class_name
from agex.escaping import line
from agex.host_texts import HostTexts
from agex.models.base import Message, Profile, Reply, Request

__all__ = ["Brief", "FullConversation", "system_prompt", "task_prompt"]

PREVIEW_CHARS = 6_000
"""For the previews of all inputs, and again of all variables, together."""
LEAST_PREVIEW = 80
MOST_VARIABLES = 60
"""Variables of the state listed by name; the rest are counted."""

_RULES = """\
You complete a typed task by writing Python, turn by turn. Your code runs in a persistent{guarded} session.

Each turn
- {answer}
- Imports and names are checked before anything runs: if one is refused, nothing of that code runs.
- An error stops the code there; what ran before it stays done. Names persist from turn to turn.
- You get back what was printed, the value of the last expression, the traceback of an error, and the
  number of the turn. You have {turns}; take as few as the task needs.
- Look at the data before you rely on it. Long output is cut in the middle.

Finish from your code, in one of these ways
- task_success(value): the value is checked against the return type; a mismatch raises, and you go on.
- Define a function with the task's exact name. After your code it is tested on the examples and called
  with the inputs, and the task is over. To try it first, give it another name.
- task_fail(reason): the task cannot be done. task_clarify(question): you need an answer from the caller.

Names
- Inputs are variables, also inputs.<name>. They are the caller's own objects: change them only if the task
  says so.
- cache: a dict that is kept for later tasks where the caller keeps state.
- help() lists what you were given, help(x) explains it; dir(x) lists attributes.
{environment}"""

_LOOKING = """\
- view_image(x): look at a picture, a matplotlib or plotly figure or an array of 8-bit pixels, after this
  piece of code."""
_ENVIRONMENTS = {
    "guarded": "- Python {version} and its standard library, without {missing}.",
    "full": "- Python {version}, all of it, with every installed package. Threads run. What is refused, as "
    "processes and the network may be, raises an error that says so.",
}
_REFUSALS = """\
- No access to {access} beyond what is listed below. What is
  refused raises an error that says what to write instead."""
_ACCESS = {False: "files, network or processes", True: "the host's files, network or processes"}

_GUARDED_FILES = """\
- The workspace is /, the working directory. open, os, pathlib, shutil, tempfile, csv, zipfile and the
  libraries below work on it. It is kept where the caller keeps state."""
_FULL_FILES = """\
- The workspace is the working directory: name its files by relative paths, as in open('a.csv'). It is
  kept where the caller keeps state; /tmp is not."""
_WORKSPACES = {"guarded": _GUARDED_FILES, "full": _FULL_FILES}
_FILES = """\
Files
{workspace}
- Write what is worth keeping as a module, e.g. helpers/text.py, and import it: import helpers.text. A
  changed module runs again when it is imported again.
"""

_FILE_ACTIONS = {
    True: "- write_file, edit_file and terminal_action (a shell over the workspace, with python) act on it,\n"
    "  too. Only python_action can finish the task.",
    False: "- Other blocks: ```write_file path=a/b.py (the whole file), ```terminal (shell commands, also\n"
    "  python FILE), and ```edit_file path=a/b.py with the lines <<<<<<< SEARCH, old text, =======,\n"
    "  new text, >>>>>>> REPLACE. Only ```python can finish the task.",
}
"""By whether actions are calls of tools."""

_ANSWERS = {
    True: "Call python_action with the code. Several calls run in order, up to the first error.",
    False: "Reply with code in a block that opens with ```python and closes with ```. Several blocks run in\n"
    "  order, up to the first error.",
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
    cached: tuple[Any, ...] = ()
    """The keys of ``cache`` when the task begins."""
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
    profile = profile or Profile()
    tools = profile.tools
    has_files = "write_file" in actions
    rules = _RULES.format(
        guarded=", guarded" if python == "guarded" else "",
        answer=_ANSWERS[tools],
        turns=f"{turns} turn{'s' * (turns != 1)}",
        environment=_environment(python, has_files=has_files),
    )
    if profile.images:
        rules = f"{rules}\n{_LOOKING}"
    listed = listing(registrations)
    parts = [
        rules,
        f"{_FILES.format(workspace=_WORKSPACES[python])}{_FILE_ACTIONS[tools]}" if has_files else "",
        extras,
        f"What you may use\n\n{listed}" if listed else "",
        (primer or "").strip(),
    ]
    return "\n\n".join(part for part in parts if part)


def _environment(python: str, *, has_files: bool) -> str:
    """Return what code finds, and what it does not."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    text = _ENVIRONMENTS[python].format(version=version, missing=missing_modules(has_files=has_files))
    found = textwrap.fill(text, 106, subsequent_indent="  ", break_on_hyphens=False)
    return f"{found}\n{_REFUSALS.format(access=_ACCESS[has_files])}" if python == "guarded" else found


def task_prompt(brief: Brief) -> str:
    """Return the first message: the task, its inputs in short, and what is there already."""
    signature = brief.terms.signature
    given = [one for one in brief.terms.examples if not one.is_doctest]
    texts = HostTexts()
    parts = [
        f"The task:\n{printable.block(signature.render(doc=True), 'python')}",
        (brief.task_primer or "").strip(),
        _types(brief),
        _checks(brief),
        _named("Its inputs, already bound as variables (abbreviated)", brief.inputs, texts),
        "\n".join(["Examples that must hold:", *(f"{one.source} == {one.expected_text}" for one in given)])
        if given
        else "",
        _kept(brief, texts),
        f"What is in the workspace:\n{brief.recap}" if brief.recap else "",
        _setup(brief),
        brief.handover,
        _async_note(brief),
    ]
    return "\n\n".join(part for part in parts if part)


def _types(brief: Brief) -> str:
    """Return the definitions of the types that the signature names, except those in the listing."""
    listed = {one.target for one in brief.registrations if one.kind == "class" and one.visibility != "low"}
    text = definitions(brief.terms.signature, without=listed, checks=brief.terms.checks)
    return (
        f"Its types, bound under these names ({_TAKEN}):\n{printable.block(text, 'python')}" if text else ""
    )


_TAKEN = "a dict is taken for a model, dataclass or NamedTuple"


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


def _checks(brief: Brief) -> str:
    """Return the checks that the value must pass, by their names, which say what they ask for."""
    named = [str(getattr(each, "__name__", "")) for each in brief.terms.checks]
    told = [line(name) for name in named if name and name != "<lambda>"]
    return f"The value must pass: {'; '.join(told)}" if told else ""


def _kept(brief: Brief, texts: HostTexts) -> str:
    """Return what earlier tasks left: signatures of functions and classes, data, keys of the cache."""
    shown = {name: value for name, value in brief.variables.items() if not _is_trifle(name, value)}
    code = {name: value for name, value in shown.items() if _is_code(value)}
    heads = [_heading(name, value) for name, value in list(code.items())[:MOST_VARIABLES]]
    data = {name: value for name, value in shown.items() if name not in code}
    listed = _named("", data, texts).removeprefix(":\n")
    lines = [*heads, *([listed] if listed else [])]
    cached = [short_repr(key, 60) for key in brief.cached[:MOST_VARIABLES]]
    parts = [
        "\n".join(["Variables kept from earlier tasks (abbreviated):", *lines]) if lines else "",
        f"Keys of cache: {', '.join(cached)}" if cached else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _is_code(value: Any) -> bool:
    return type(value) is FunctionType or issubclass(type(value), type)


def _heading(name: str, value: Any) -> str:
    """Return how a function or class begins. It may be guest code: only what is plain of it is read."""
    from agex.sandbox.runtime.provenance import source_of  # with the sandbox: not when agex is imported

    if type(value) is not FunctionType:
        return f"class {line(name)}"
    code = value.__code__
    if source_of(code) is None:  # of a worker's function only the name is here
        return f"def {line(name)}(...)"
    count = code.co_argcount + code.co_kwonlyargcount
    names = [line(each) for each in code.co_varnames[:count]]
    doc = value.__doc__
    about = line(doc.strip().partition("\n")[0]) if type(doc) is str else ""
    more = ", ..." if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) else ""
    return f"def {line(name)}({', '.join(names)}{more})" + (f"  # {about[:100]}" if about else "")


_COUNTERS = frozenset({"i", "j", "k"})


def _is_trifle(name: str, value: Any) -> bool:
    """Return whether a variable is what a loop leaves behind, a counter, or a private name."""
    return name.startswith("_") or (name in _COUNTERS and type(value) is int)


def _async_note(brief: Brief) -> str:
    names = [one.name for one in brief.registrations if one.is_async and one.visibility != "low"]
    if not names:
        return ""
    told = ", ".join(names)
    if brief.terms.signature.is_async:
        return (
            f"Await {told} inside async functions, in asyncio.gather, and wherever your code has an await\n"
            "at its top level. In code without one, a plain call gives the result."
        )
    return f"Not available in this task, because they are async: {told}."


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
        self._turn = self._turns = 0
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
        self._turn, self._turns = turn, turn + turns_left
        messages = self._messages = shortened(self._messages)
        if turns_left == 0 and turn > 1:
            messages = [*messages[:-1], _with_text(messages[-1], _LAST_TURN)]
        return Request(messages=tuple(messages), actions=self._actions, attempt=turn - 1)

    def add(self, reply: Reply, seen: Observation) -> None:
        """Append an answer and what came of it."""
        self._messages.append(Message(role="assistant", content=reply.text or "(no text)", reply=reply))
        tail = f"What is in the workspace now:\n{seen.recap}" if seen.recap else ""
        left = self._turn < self._turns
        message = Message(
            role="user",
            content=quoted(seen.text),
            images=seen.images,
            results=tuple(map(quoted, seen.results)),
            note=f"[turn {self._turn + 1} of {self._turns}]" if left else "",
        )
        self._messages.append(_with_text(message, tail))

    def answered(self, text: str) -> None:
        """Add the caller's answer to what is shown of the turn that asked."""
        self._messages[-1] = _with_text(
            self._messages[-1], f"The caller answers your question: {printable.hanging(text)}"
        )


def _with_text(message: Message, text: str) -> Message:
    """Return a message with more text, which stands in the last result, too, where there are several."""
    results = message.results
    if results and text:
        results = (*results[:-1], f"{results[-1]}\n\n{text}".strip())
    return replace(message, content=f"{message.content}\n\n{text}".strip(), results=results)
