"""What a small model is told: a function to complete, and at most one mistake to correct.

A model of half a billion parameters is good at one thing, completing a function it sees. So
it gets the function, the inputs in short and nothing of the machinery around; on a later
turn also its last code and what was wrong with it. No request is longer than the limit.
"""

from __future__ import annotations

from agex.agent.listing import CHARS_PER_TOKEN, signature_text
from agex.agent.loop import Observation
from agex.agent.observation import cut_middle
from agex.agent.prompt import Brief
from agex.contract import preview
from agex.models.actions import PythonAction
from agex.models.base import Message, Reply, Request

__all__ = ["CompletionConversation"]

LIMIT_TOKENS = 400
"""Of a whole request."""
LIMIT_CHARS = int(LIMIT_TOKENS * CHARS_PER_TOKEN)
PROBLEM_LINES = 5
PROBLEM_CHARS = 320
PREVIEW_CHARS = 160
"""Of each input."""
NAMES_CHARS = 200
"""Of the list of registered functions."""

_ASK = "Complete this Python function. Answer with the whole function in one ```python block."
_CORRECT = "Write the corrected function."


class CompletionConversation:
    """The function to complete, and the last attempt at it."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._code = ""
        self._problem = ""

    def request(self, turn: int, turns_left: int) -> Request:
        """Return the request of this turn, never longer than the limit."""
        return Request(messages=self._messages(), actions=self._brief.actions, attempt=turn - 1)

    def add(self, reply: Reply, seen: Observation) -> None:
        """Remember the last code and what was wrong with it; forget those before."""
        self._code = "\n\n".join(one.code for one in reply.actions if isinstance(one, PythonAction)).strip()
        lines = (seen.brief or seen.text).strip().splitlines()[-PROBLEM_LINES:]
        self._problem = cut_middle("\n".join(lines), PROBLEM_CHARS)

    def _messages(self) -> tuple[Message, ...]:
        task = self._task(LIMIT_CHARS)
        if not self._problem:
            return (_user(task),)
        wrong = f"{self._problem}\n{_CORRECT}"
        said = f"```python\n{self._code}\n```"
        if self._code and len(task) + len(said) + len(wrong) <= LIMIT_CHARS:
            return (_user(task), Message(role="assistant", content=said), _user(wrong))
        room = LIMIT_CHARS - len(wrong) - 40
        return (_user(f"{self._task(room)}\n\nAn earlier answer was wrong:\n{wrong}"),)

    def _task(self, limit: int) -> str:
        """Return the task in at most *limit* characters; the docstring's middle goes first."""
        primer = (self._brief.task_primer or "").strip()
        extras = [part for part in (primer, self._inputs(), self._examples(), self._names()) if part]
        while True:
            fixed = "\n".join([_ASK, "```python", "```", *extras])
            room = limit - len(fixed) - 2
            function = self._brief.terms.signature.render(doc=True)
            if len(function) <= room or not extras:
                return "\n".join([_ASK, "```python", _cut(function, room), "```", *extras])[:limit]
            extras.pop()

    def _inputs(self) -> str:
        shown = [
            f"# {name} = {_one_line(preview(value, PREVIEW_CHARS))}"
            for name, value in self._brief.inputs.items()
        ]
        return "\n".join(["It will be called with:", *shown]) if shown else ""

    def _examples(self) -> str:
        given = [one for one in self._brief.terms.examples if not one.is_doctest]
        return "\n".join(f"{one.source} == {one.expected_text}" for one in given[:4])

    def _names(self) -> str:
        functions = [one for one in self._brief.registrations if one.visibility != "low"]
        calls = [
            one.name + (signature_text(one.target) if one.kind == "function" else "") for one in functions
        ]
        return f"You may use: {'; '.join(calls)}"[:NAMES_CHARS] if calls else ""


def _user(content: str) -> Message:
    return Message(role="user", content=content)


def _one_line(text: str) -> str:
    return text.replace("\n", "\n#   ")


def _cut(function: str, room: int) -> str:
    """Return the function with the middle of its docstring left out."""
    if len(function) <= room:
        return function
    mark = "\n    ...\n"
    head = max(0, room - len(mark)) * 2 // 3
    tail = max(0, room - len(mark) - head)
    return function[:head] + mark + function[len(function) - tail :]
