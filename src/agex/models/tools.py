"""The actions as tools for a provider that has tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["TOOLS", "parameters_of"]

TOOLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "python_action": (
        "Run Python code in the task's namespace.",
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
"""What each action is for, and what its parameters are."""


def parameters_of(action: str) -> dict[str, Any]:
    """Return the JSON schema of an action's parameters."""
    fields = TOOLS[action][1]
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }
