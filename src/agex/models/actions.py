"""The four actions that a model can ask for in a turn.

An action is data: the loop and the executor decide what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "TOOLS",
    "Action",
    "EditFileAction",
    "PythonAction",
    "TerminalAction",
    "WriteFileAction",
    "edit_file",
    "parameters_of",
    "python_action",
    "terminal_action",
    "write_file",
]


class _Action(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PythonAction(_Action):
    """Run Python code in the task's namespace."""

    kind: Literal["python_action"] = "python_action"
    code: str


class TerminalAction(_Action):
    """Run shell commands over the workspace."""

    kind: Literal["terminal_action"] = "terminal_action"
    commands: str


class WriteFileAction(_Action):
    """Write a file of the workspace, whole."""

    kind: Literal["write_file"] = "write_file"
    path: str
    content: str


class EditFileAction(_Action):
    """Replace one passage of a file of the workspace."""

    kind: Literal["edit_file"] = "edit_file"
    path: str
    search: str
    replace: str


Action: TypeAlias = Annotated[
    PythonAction | TerminalAction | WriteFileAction | EditFileAction, Field(discriminator="kind")
]
"""Any of them."""


def python_action(code: str) -> PythonAction:
    """Make an action that runs *code*."""
    return PythonAction(code=code)


def terminal_action(commands: str) -> TerminalAction:
    """Make an action that runs shell *commands*."""
    return TerminalAction(commands=commands)


def write_file(path: str, content: str) -> WriteFileAction:
    """Make an action that writes *content* to *path*."""
    return WriteFileAction(path=path, content=content)


def edit_file(path: str, search: str, replace: str) -> EditFileAction:
    """Make an action that replaces *search* by *replace* in *path*."""
    return EditFileAction(path=path, search=search, replace=replace)


TOOLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "python_action": (
        "Run Python code. Names persist from call to call; the task is finished from here.",
        {"code": "The code, as plain Python without fences."},
    ),
    "terminal_action": (
        "Run shell commands over the files of the workspace.",
        {"commands": "The commands, one a line."},
    ),
    "write_file": (
        "Write a file of the workspace, whole.",
        {"path": "Where, relative to the workspace.", "content": "All of the file."},
    ),
    "edit_file": (
        "Replace one passage of a file of the workspace.",
        {
            "path": "Which file, relative to the workspace.",
            "search": "The passage as it stands there, exactly.",
            "replace": "What to put in its place.",
        },
    ),
}
"""The purpose of each action and of its parameters, for providers that have tool calls."""


def parameters_of(action: str) -> dict[str, Any]:
    """Return the JSON schema of an action's parameters."""
    fields = TOOLS[action][1]
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }
