"""The one parser of actions: tool calls and fenced text, read with tolerance.

Pure functions, in time proportional to the text. Reasoning is dropped first (:mod:`~agex.models.reasoning`).
The rest is read as fenced blocks (:mod:`~agex.models.fences`) and tagged passages
(:mod:`~agex.models.markup`) in their order; where there is neither, as a tool call written as JSON, or the
whole of it as Python.

==================================  =========================================================
Fence                               Action
==================================  =========================================================
``python py python3.11`` ...        ``python_action``; a bare fence too when it holds Python,
                                    unless another block is labelled: then it shows an output
``terminal bash sh shell console``  ``terminal_action``
``write_file path=a/b.py``          ``write_file``: the body and a line end; longer marks
                                    (four backticks) for a file that itself has fences
``edit_file path=a/b.py``           one ``edit_file`` for each passage of the body between
                                    ``<<<<<<< SEARCH``, ``=======`` and ``>>>>>>> REPLACE``
==================================  =========================================================

An action that cannot be read or is not offered is never dropped in silence and never done in
part: it becomes a note for the model, and no action after an unreadable one is done.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agex.models.actions import Action, EditFileAction, PythonAction, TerminalAction, WriteFileAction
from agex.models.fences import Fence, Fences, fenced, find_fences, kind_of, words_of
from agex.models.markup import Call, Tagged, Tags, calls_of, json_calls, loads, python_calls, unescaped
from agex.models.reasoning import spoken
from agex.models.source import acts, calls, ipython_command, tidy

__all__ = [
    "ACTIONS",
    "MOST_ACTIONS",
    "ParseProblem",
    "Parsed",
    "parse_calls",
    "parse_text",
    "parse_tool_call",
    "render",
]

ACTIONS = ("python_action", "terminal_action", "write_file", "edit_file")
"""The names of all actions."""
MOST_ACTIONS = 32
"""Of one reply, by default: a degenerate one repeats itself without end."""

_MOST_DEPTH = 4
"""Of tags in tags: an answer in a response, a fence in a call."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "python_action": ("code",),
    "terminal_action": ("commands",),
    "write_file": ("path", "content"),
    "edit_file": ("path", "search", "replace"),
}
_WRITTEN_JSON = re.compile(
    r"[ \t]*[\[{](?=.*[\"'](?:name|code|tool|tool_name|action|function)[\"'])", re.DOTALL
)
_OUTPUT = re.compile(
    r"^\W*(?:(?:the|this|expected|sample|example|program|console|actual) )*(?:outputs?|stdout|prints)"
    r"(?: is| was| would be| will be)?\W*:\W*$",
    re.IGNORECASE,
)
_PASSAGE_MARK = re.compile(
    r"^(?:(?P<search><{5,9} ?SEARCH)|(?P<middle>={5,9})|(?P<replace>>{5,9} ?REPLACE[ \t]*))(?:\n|\Z)",
    re.MULTILINE,
)


class ParseProblem(Exception):
    """An action was asked for that cannot be read or is not offered; the message is for the model."""


class NotOffered(ParseProblem):
    """The action is readable or not, but not available here."""


_Reader: TypeAlias = Callable[[], list[Action]]


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """The actions and notes found in a reply."""

    actions: tuple[Action, ...] = ()
    """The actions to carry out, in order."""
    notes: tuple[str, ...] = ()
    """Requests that will not be carried out, in words for the model."""


def parse_text(
    text: str, *, offered: Iterable[str] = ACTIONS, truncated: bool = False, most: int = MOST_ACTIONS
) -> Parsed:
    """Read the actions of a text.

    Args:
        text: all the model wrote.
        offered: names of the actions that may be taken.
        truncated: whether the output limit cut it. A cut text gives no action at all.
        most: how many actions are taken.
    """
    if truncated:
        return Parsed()
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _collect(_readers(spoken(text), tuple(offered)), most)


def parse_calls(
    calls: Iterable[tuple[str, str | Mapping[str, Any]]],
    *,
    offered: Iterable[str] = ACTIONS,
    most: int = MOST_ACTIONS,
) -> Parsed:
    """Read several tool calls in order, each a name and its arguments."""
    return _collect((_call_reader(call, tuple(offered)) for call in calls), most)


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
    kind = kind_of(name)
    if kind is None or kind not in offered:
        raise NotOffered(f"{name!r} is not available here. Available: {', '.join(offered)}.")
    return _build(kind, _fields(kind, arguments))


def render(actions: Iterable[Action]) -> str:
    """Write actions as fenced text that :func:`parse_text` reads back as the same actions.

    A written file always ends with a line end there.
    """
    return "\n\n".join(_render(action) for action in actions)


# Collecting: one reader an action, none after the first that cannot be read.


def _collect(readers: Iterable[_Reader], most: int) -> Parsed:
    actions: list[Action] = []
    notes: list[str] = []
    for read in readers:
        if len(actions) >= most:
            notes.append(_too_many(most))
            break
        try:
            actions.extend(read())
        except NotOffered as problem:
            notes.append(str(problem))
        except ParseProblem as problem:
            notes.append(f"{problem} It was not executed, nor was anything after it.")
            break
    if len(actions) > most:  # one block may hold several
        notes.append(_too_many(most))
    return Parsed(actions=tuple(actions[:most]), notes=tuple(notes))


def _too_many(most: int) -> str:
    return f"Your answer holds more than {most} actions; what follows the first {most} was not executed."


def _offer(actions: list[Action], offered: tuple[str, ...]) -> list[Action]:
    for action in actions:
        if action.kind not in offered:
            raise NotOffered(f"{action.kind!r} is not available here. Available: {', '.join(offered)}.")
    return actions


# Blocks and tags.


def _readers(text: str, offered: tuple[str, ...], depth: int = 0) -> Iterator[_Reader]:
    whole = json_calls(text)
    if whole:
        yield from (_call_reader(call, offered) for call in whole)
        return
    passages = list(_passages(text))
    if not passages:
        yield from _bare_readers(text, offered)
        return
    fences = [one for one in passages if isinstance(one, Fence)]
    is_labelled = any(fence.kind in ("python_action", "terminal_action") for fence in fences)
    for passage in passages:
        if isinstance(passage, Tagged):
            if passage.is_call or not is_labelled:
                yield from _tag_readers(passage, offered, depth)
        elif passage.info or not passage.body.strip():
            yield _reader(_labelled(passage, is_labelled=is_labelled), offered)
        elif is_labelled:
            yield _refused(passage, "because another block of the answer has a label")
        elif _OUTPUT.match(_line_before(text, passage.start)):
            yield _refused(passage, "because it is introduced as an output")
        else:
            yield _reader(_bare(passage), offered)


def _passages(text: str) -> Iterator[Fence | Tagged]:
    """Yield blocks and tagged passages in order; what is inside of one is its own."""
    fences, tags = Fences(text), Tags(text)
    fence, tag = fences.first(0), tags.first(0)
    while fence is not None or tag is not None:
        if tag is None or (fence is not None and fence.start <= tag.start):
            assert fence is not None
            found: Fence | Tagged = fence
        else:
            found = tag
        yield found
        if fence is not None and fence.start < found.end:
            fence = fences.first(found.end)
        if tag is not None and tag.start < found.end:
            tag = tags.first(found.end)


def _line_before(text: str, position: int) -> str:
    lines = text[max(0, position - 200) : position].rstrip().rsplit("\n", 1)
    return lines[-1]


def _reader(found: Iterator[Action], offered: tuple[str, ...]) -> _Reader:
    return lambda: _offer(list(found), offered)


def _refused(fence: Fence, reason: str) -> _Reader:
    def read() -> list[Action]:
        if acts(tidy(fence.body)):
            raise NotOffered(f"The block without a label was not run, {reason}. Write ```python over code.")
        return []

    return read


def _bare(fence: Fence) -> Iterator[Action]:
    if acts(tidy(fence.body)):
        yield from _python_actions(fence.body)
    else:
        yield from (parse_tool_call(*call) for call in json_calls(fence.body))


def _labelled(fence: Fence, *, is_labelled: bool) -> Iterator[Action]:
    kind, body = fence.kind, fence.body
    if kind in ("write_file", "edit_file"):
        yield from _file_actions(kind, _path(words_of(fence.info)), body)
        return
    rest = fence.info.partition(" ")[2]
    if kind == "python_action" and calls(rest):  # the first line of the code stands behind the label
        body = f"{rest}\n{body}"
    if kind == "terminal_action" and body.strip():
        yield TerminalAction(commands=body)
    elif kind == "python_action" and body.strip():
        yield from _python_actions(body)
    elif kind is None and not is_labelled:
        yield from (parse_tool_call(*call) for call in json_calls(body))


def _python_actions(code: str) -> Iterator[Action]:
    """Read code; where it only calls our own tools by name, these calls."""
    written = python_calls(code) if any(name in code for name in ACTIONS) else []
    if written and all(name in ACTIONS for name, _ in written):
        yield from (parse_tool_call(*call) for call in written)
    else:
        yield _python(code)


def _python(code: str) -> PythonAction:
    code = tidy(code)
    command = ipython_command(code)
    if command is not None:
        raise ParseProblem(
            f"{_excerpt(command)} is a command of IPython, not Python. Leave it out, or write Python for it."
        )
    return PythonAction(code=code)


def _path(words: list[str]) -> str:
    return next((word.removeprefix("path=") for word in words[1:]), "")


def _file_actions(kind: str, path: str, body: str) -> Iterator[Action]:
    if not path:
        raise ParseProblem(f"The block names no path. Wrong: ```{kind}. Right: ```{kind} path=notes.txt.")
    if kind == "write_file":
        yield WriteFileAction(path=path, content=f"{body}\n" if body else "")
        return
    passages = list(_edits(body))
    if not passages:
        raise ParseProblem(
            f"The edit_file block for {path} holds no passage. Write <<<<<<< SEARCH, the old lines, =======, "
            "the new lines, >>>>>>> REPLACE, each mark on its own line."
        )
    for search, replace in passages:
        yield EditFileAction(path=path, search=search, replace=replace)


def _edits(body: str) -> Iterator[tuple[str, str]]:
    """Yield the old and the new lines of each passage."""
    search: re.Match[str] | None = None
    middle: re.Match[str] | None = None
    for mark in _PASSAGE_MARK.finditer(body):
        if search is None:
            search = mark if mark["search"] else None
        elif middle is None:
            middle = mark if mark["middle"] else None
        elif mark["replace"]:
            old, new = body[search.end() : middle.start()], body[middle.end() : mark.start()]
            yield old.removesuffix("\n"), new.removesuffix("\n")
            search = middle = None


# Tool calls, real ones and those written as text.


def _call_reader(call: Call, offered: tuple[str, ...]) -> _Reader:
    return lambda: [parse_tool_call(*call, offered=offered)]


def _tag_readers(tag: Tagged, offered: tuple[str, ...], depth: int) -> Iterator[_Reader]:
    """Read a tag's calls, what is fenced or tagged in it, or its code."""
    calls = calls_of(tag.body) if tag.is_call and not tag.name else []
    if tag.is_call and tag.name:
        calls = [(tag.name, tag.body)]
    if calls:
        yield from (_call_reader(call, offered) for call in calls)
        return
    if next(_passages(tag.body), None) is not None:
        if depth == _MOST_DEPTH:
            yield lambda: _raise(f"Tags are nested too deep: {_excerpt(tag.body.strip())}.")
            return
        yield from _readers(tag.body, offered, depth + 1)
    elif tag.name == "terminal_action" and tag.body.strip():
        yield lambda: _offer([TerminalAction(commands=tag.body.strip())], offered)
    elif acts(tidy(unescaped(tag.body.strip("\n")))):
        yield _reader(_python_actions(unescaped(tag.body.strip("\n"))), offered)
    elif tag.is_call:
        yield lambda: _raise(f"A tool call is cut or not JSON: {_excerpt(tag.body.strip())}.")


def _raise(message: str) -> list[Action]:
    raise ParseProblem(message)


def _bare_readers(text: str, offered: tuple[str, ...]) -> Iterator[_Reader]:
    """Read a text without blocks: a tool call as JSON, or Python."""
    code = tidy(text.strip("\n"))
    if acts(code):
        yield _reader(_python_actions(code), offered)
        return
    written = re.search(r"^[ \t]*[\[{]", text, re.MULTILINE)
    if written is None or _WRITTEN_JSON.match(text, written.start()) is None:
        return
    calls = json_calls(text[written.start() :])
    if calls:
        yield from (_call_reader(call, offered) for call in calls)
    elif not text[: written.start()].strip():
        yield lambda: _raise(f"A tool call is cut or not JSON: {_excerpt(text.strip())}.")


def _fields(kind: str, arguments: str | Mapping[str, Any]) -> dict[str, str]:
    wanted = _FIELDS[kind]
    given = loads(arguments.strip()) if isinstance(arguments, str) else arguments
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
        return _python(_unfenced(fields["code"]))
    if kind == "terminal_action":
        return TerminalAction(commands=_unfenced(fields["commands"]))
    if kind == "write_file":
        return WriteFileAction(path=fields["path"], content=fields["content"])
    return EditFileAction(path=fields["path"], search=fields["search"], replace=fields["replace"])


def _unfenced(body: str) -> str:
    if not body.lstrip().startswith(("```", "~~~")):
        return body
    fences = list(find_fences(body.strip().replace("\r\n", "\n")))
    return fences[0].body if len(fences) == 1 else body


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
