"""The one parser of what models ask for: tool calls and fenced text, read with tolerance.

Pure functions. A text is read as, in this order: ``<tool_call>`` tags, fenced blocks, a tool
call written as JSON, and, where there is no block at all, the whole of it as Python.

==================================  =========================================================
Fence                               Action
==================================  =========================================================
``python py python3`` ...           ``python_action``; a bare fence too when it holds Python
``terminal bash sh shell console``  ``terminal_action``
``write_file path=a/b.py``          ``write_file``: the body and a line end; longer marks
                                    (four backticks) for a file that itself has fences
``edit_file path=a/b.py``           one ``edit_file`` for each passage of the body between
                                    ``<<<<<<< SEARCH``, ``=======`` and ``>>>>>>> REPLACE``
==================================  =========================================================

What is asked for but cannot be read or is not offered is never dropped in silence and never
done in part: it becomes a note for the model, and nothing after an unreadable action is done.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agex.models.actions import Action, EditFileAction, PythonAction, TerminalAction, WriteFileAction
from agex.models.fences import Fence, fenced, find_fences
from agex.models.source import acts, parse, tidy

__all__ = ["ACTIONS", "ParseProblem", "Parsed", "parse_calls", "parse_text", "parse_tool_call", "render"]

ACTIONS = ("python_action", "terminal_action", "write_file", "edit_file")
"""The names of all actions."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "python_action": ("code",),
    "terminal_action": ("commands",),
    "write_file": ("path", "content"),
    "edit_file": ("path", "search", "replace"),
}
_PYTHON = ("python", "py", "python3", "py3", "ipython", "ipython3", "pycon", "tool_code", "python_action")
_TERMINAL = ("terminal", "bash", "sh", "shell", "console", "zsh", "terminal_action")
_KINDS: dict[str, str] = {
    **dict.fromkeys(_PYTHON, "python_action"),
    **dict.fromkeys(_TERMINAL, "terminal_action"),
    "write_file": "write_file",
    "edit_file": "edit_file",
}
_THINKING = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_TAG = re.compile(r"^[ \t]*<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL | re.MULTILINE)
_JSON_CALL = re.compile(r"""\s*[\[{](?=.*["']name["'])(?=.*["'](?:arguments|parameters)["'])""", re.DOTALL)
_PASSAGE = re.compile(
    r"^<{5,9} ?SEARCH\n(?P<search>.*?)^={5,9}\n(?P<replace>.*?)^>{5,9} ?REPLACE[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)


class ParseProblem(Exception):
    """An action was asked for that cannot be read or is not offered; the message is for the model."""


class NotOffered(ParseProblem):
    """The action is readable or not, but not available here."""


_Call: TypeAlias = tuple[str, str | Mapping[str, Any]]
_Reader: TypeAlias = Callable[[], list[Action]]


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What was found in a reply."""

    actions: tuple[Action, ...] = ()
    """To be done, in order."""
    notes: tuple[str, ...] = ()
    """What was asked for and will not be done, in words for the model."""


def parse_text(text: str, *, offered: Iterable[str] = ACTIONS, truncated: bool = False) -> Parsed:
    """Read the actions of a text.

    Args:
        text: all the model wrote.
        offered: names of the actions that may be taken.
        truncated: whether the output limit cut it. A cut text gives no action at all.
    """
    if truncated:
        return Parsed()
    offered = tuple(offered)
    text = _THINKING.sub("", text.replace("\r\n", "\n"), count=1)
    fences = list(find_fences(text, _may_hold_python))
    written = _written_calls(text, fences)
    if written:
        return _collect(_written_reader(call, offered) for call in written)
    if fences:
        return _collect(_fence_reader(fence, offered) for fence in fences)
    code = tidy(text.strip("\n"))
    return _collect([lambda: _offer([PythonAction(code=code)], offered)] if acts(code) else [])


def parse_calls(
    calls: Iterable[tuple[str, str | Mapping[str, Any]]], *, offered: Iterable[str] = ACTIONS
) -> Parsed:
    """Read several tool calls in order, each a name and its arguments."""
    return _collect(_call_reader(call, tuple(offered)) for call in calls)


def parse_tool_call(
    name: str, arguments: str | Mapping[str, Any], *, offered: Iterable[str] = ACTIONS
) -> Action:
    """Read one tool call.

    Args:
        name: of the tool, e.g. ``"python_action"``; ``"python"`` and ``"bash"`` are understood too.
        arguments: a mapping, the same as JSON, or for one-field actions the bare code.
        offered: names of the actions that may be taken.

    Raises:
        ParseProblem: unknown or not offered, or the arguments are malformed or cut.
    """
    kind = _KINDS.get(name.strip().lower())
    if kind is None or kind not in offered:
        raise NotOffered(f"{name!r} is not available here. Available: {', '.join(offered)}.")
    return _build(kind, _fields(kind, arguments))


def render(actions: Iterable[Action]) -> str:
    """Write actions as fenced text that :func:`parse_text` reads back as the same actions.

    A written file always ends with a line end there.
    """
    return "\n\n".join(_render(action) for action in actions)


# Collecting: one reader an action, none after the first that cannot be read.


def _collect(readers: Iterable[_Reader]) -> Parsed:
    actions: list[Action] = []
    notes: list[str] = []
    for read in readers:
        try:
            actions.extend(read())
        except NotOffered as problem:
            notes.append(str(problem))
        except ParseProblem as problem:
            notes.append(f"{problem} It was not executed, nor was anything after it.")
            break
    return Parsed(actions=tuple(actions), notes=tuple(notes))


def _offer(actions: list[Action], offered: tuple[str, ...]) -> list[Action]:
    for action in actions:
        if action.kind not in offered:
            raise NotOffered(f"{action.kind!r} is not available here. Available: {', '.join(offered)}.")
    return actions


# Fences.


def _may_hold_python(info: str) -> bool:
    words = _words(info)
    if not words or _kind(info) == "python_action":
        return True
    return words[0] == "write_file" and _path(words).endswith((".py", ".pyi"))


def _kind(info: str) -> str | None:
    words = _words(info)
    return _KINDS.get(words[0].strip("{}.").lower()) if words else None


def _words(info: str) -> list[str]:
    try:
        return shlex.split(info)
    except ValueError:  # an unclosed quote
        return info.split()


def _path(words: list[str]) -> str:
    return next((word.removeprefix("path=") for word in words[1:]), "")


def _fence_reader(fence: Fence, offered: tuple[str, ...]) -> _Reader:
    return lambda: _offer(list(_fence_actions(fence)), offered)


def _fence_actions(fence: Fence) -> Iterator[Action]:
    kind, body = _kind(fence.info), fence.body
    if kind in ("write_file", "edit_file"):
        yield from _file_actions(kind, _path(_words(fence.info)), body)
    elif kind == "terminal_action" and body.strip():
        yield TerminalAction(commands=body)
    elif (kind == "python_action" and body.strip()) or (not fence.info and acts(tidy(body))):
        yield PythonAction(code=tidy(body))
    elif kind is None:
        yield from (parse_tool_call(*call) for call in _json_calls(body))


def _file_actions(kind: str, path: str, body: str) -> Iterator[Action]:
    if not path:
        raise ParseProblem(f"The block names no path. Wrong: ```{kind}. Right: ```{kind} path=notes.txt.")
    if kind == "write_file":
        yield WriteFileAction(path=path, content=f"{body}\n" if body else "")
        return
    passages = list(_PASSAGE.finditer(body))
    if not passages:
        raise ParseProblem(
            f"The edit_file block for {path} holds no passage. Write <<<<<<< SEARCH, the old lines, =======, "
            "the new lines, >>>>>>> REPLACE, each mark on its own line."
        )
    for passage in passages:
        search, replace = (part.removesuffix("\n") for part in passage.groups())
        yield EditFileAction(path=path, search=search, replace=replace)


# Tool calls, real ones and those written as text.


def _call_reader(call: _Call, offered: tuple[str, ...]) -> _Reader:
    return lambda: [parse_tool_call(*call, offered=offered)]


def _written_calls(text: str, fences: list[Fence]) -> list[str]:
    # Each is the JSON of a call. Whatever comes first, tag or fence, decides how the text is read.
    first = _TAG.search(text)
    if first and not (fences and text.count("\n", 0, first.start()) > fences[0].line):
        return [tag[1] for tag in _TAG.finditer(text)]
    return [text] if not fences and _JSON_CALL.match(text) else []


def _written_reader(written: str, offered: tuple[str, ...]) -> _Reader:
    def read() -> list[Action]:
        calls = _json_calls(written)
        if not calls:
            raise ParseProblem(f"A tool call is cut or not JSON: {_excerpt(written.strip())}.")
        return [parse_tool_call(*call, offered=offered) for call in calls]

    return read


def _json_calls(text: str) -> list[_Call]:
    data = _loads(text.strip()) if text.lstrip().startswith(("{", "[")) else None
    items = data if isinstance(data, list) else [data]
    return [call for item in items if (call := _written_call(item))]


def _written_call(item: object) -> _Call | None:
    if not isinstance(item, dict):
        return None
    call: dict[str, Any] = item["function"] if isinstance(item.get("function"), dict) else item
    name, arguments = call.get("name"), call.get("arguments", call.get("parameters"))
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        return None
    return name, arguments


def _fields(kind: str, arguments: str | Mapping[str, Any]) -> dict[str, str]:
    wanted = _FIELDS[kind]
    given = _loads(arguments.strip()) if isinstance(arguments, str) else arguments
    if given is None and len(wanted) == 1 and not _looks_like_json(arguments):
        given = arguments
    if isinstance(given, str):
        given = {wanted[0]: given}
    if not isinstance(given, Mapping):
        raise ParseProblem(
            f"The arguments of {kind} are cut or not JSON: {_excerpt(arguments)}. "
            f"Send one JSON object with {_names(wanted)}."
        )
    if len(wanted) == 1 and wanted[0] not in given and len(given) == 1:
        given = {wanted[0]: next(iter(given.values()))}
    return _checked(kind, wanted, given)


def _checked(kind: str, wanted: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, str]:
    wrong = [name for name in wanted if not isinstance(given.get(name), str)]
    if wrong:
        raise ParseProblem(f"{kind} needs {_names(wanted)}, each a string; not so: {_names(wrong)}.")
    fields = {name: str(given[name]) for name in wanted}
    if len(wanted) == 1 and not fields[wanted[0]].strip():
        raise ParseProblem(f"{kind} came with empty {wanted[0]}.")
    return fields


def _build(kind: str, fields: dict[str, str]) -> Action:
    if kind == "python_action":
        return PythonAction(code=tidy(_unfenced(fields["code"])))
    if kind == "terminal_action":
        return TerminalAction(commands=_unfenced(fields["commands"]))
    if kind == "write_file":
        return WriteFileAction(path=fields["path"], content=fields["content"])
    return EditFileAction(path=fields["path"], search=fields["search"], replace=fields["replace"])


def _unfenced(body: str) -> str:
    if not body.lstrip().startswith(("```", "~~~")):
        return body
    fences = list(find_fences(body.strip().replace("\r\n", "\n"), _may_hold_python))
    return fences[0].body if len(fences) == 1 else body


def _loads(text: str) -> Any:
    try:
        return json.loads(text, strict=False)  # weak models put raw line ends into strings
    except (ValueError, RecursionError):
        pass
    return _python_dict(text)


def _python_dict(text: str) -> Any:
    # A dict with single quotes is Python, not JSON.
    module = parse(text) if text.startswith("{") else None
    if module is None or not isinstance(module.body[0], ast.Expr):
        return None
    try:
        return ast.literal_eval(module.body[0].value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _looks_like_json(arguments: object) -> bool:
    return not isinstance(arguments, str) or not arguments.strip() or arguments.lstrip()[0] in '{["'


def _excerpt(arguments: object) -> str:
    text = str(arguments)
    return repr(text if len(text) <= 80 else f"{text[:40]} ... {text[-30:]}")


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


# Writing.


def _render(action: Action) -> str:
    if isinstance(action, PythonAction):
        return fenced("python", action.code)
    if isinstance(action, TerminalAction):
        return fenced("terminal", action.commands)
    header = f"{action.kind} path={shlex.quote(action.path)}"
    if isinstance(action, WriteFileAction):
        return fenced(header, action.content.removesuffix("\n"))
    passage = f"<<<<<<< SEARCH\n{action.search}\n=======\n{action.replace}\n>>>>>>> REPLACE"
    return fenced(header, passage)
