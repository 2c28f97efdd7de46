"""Language models: one request in, one reply out, the same for every provider.

The seam is :class:`~agex.models.base.Model`. Behind it stand the adapter to pydantic-ai
(:mod:`~agex.models.provider`), a model on this machine's own CPU (:mod:`~agex.models.local`)
and the doubles of :mod:`agex.testing`. A model's text becomes actions in one place,
:mod:`~agex.models.parser`.

This room never executes an action, never retries, never picks a stand-in for a model that
is not configured, and loads no provider before the first request.

Reading order: ``base`` (the seam), ``actions``, ``resolve`` (the choice of a model); ``parser`` over
``fences``, ``markup``, ``reasoning`` and ``source``; ``provider`` with ``conversation``, ``background``,
``instrumentation`` and ``surrogates``; ``local`` with ``weights``; ``function``.
"""

from __future__ import annotations

from agex.models.actions import (
    Action,
    EditFileAction,
    PythonAction,
    TerminalAction,
    WriteFileAction,
    edit_file,
    python_action,
    terminal_action,
    write_file,
)
from agex.models.base import Image, Message, Model, ModelError, OnText, Profile, Reply, Request, Usage
from agex.models.parser import Parsed, ParseProblem, parse_calls, parse_text, parse_tool_call
from agex.models.resolve import resolve_model

__all__ = [
    "Action",
    "EditFileAction",
    "Image",
    "Message",
    "Model",
    "ModelError",
    "OnText",
    "ParseProblem",
    "Parsed",
    "Profile",
    "PythonAction",
    "Reply",
    "Request",
    "TerminalAction",
    "Usage",
    "WriteFileAction",
    "edit_file",
    "parse_calls",
    "parse_text",
    "parse_tool_call",
    "python_action",
    "resolve_model",
    "terminal_action",
    "write_file",
]
