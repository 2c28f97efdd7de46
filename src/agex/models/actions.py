"""The four things a model can ask for in a turn.

An action is data: what it does is decided by the loop and the place it runs in.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Action",
    "EditFileAction",
    "PythonAction",
    "TerminalAction",
    "WriteFileAction",
    "edit_file",
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
