"""Tool calls that a model writes as text, in the markup of its own family.

Servers turn these into tool calls where they know the model; where they do not, they come as text. A call
is a tag with JSON, with parameters, with a call in Python, with a fenced block or with plain code in it.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agex.models.fences import kind_of
from agex.models.source import acts, parse, tidy

__all__ = ["Call", "Tagged", "Tags", "calls_of", "json_calls", "loads", "python_calls", "unescaped"]

Call: TypeAlias = tuple[str, str | Mapping[str, Any]]
"""A tool's name and its arguments."""

_SPACE = r"(?:[a-z]{1,12}:|｜DSML｜)?"
_TAG = re.compile(
    rf"(?P<call><(?P<name>{_SPACE}(?:tool_calls?|function_calls?|TOOLCALL))>)"
    r"|(?P<token><\|(?:tool_call|tool_call_start|START_ACTION|tools_prefix|tool_call_begin)\|>|\[TOOL_CALLS\])"
    rf"|(?P<function><{_SPACE}(?:function=|invoke\s+name=)[^<>\n]{{1,80}}>)"
    r"|(?P<channel>\bto=(?:functions\.)?(?P<recipient>\w{1,64})[^\n{]{0,80}<\|message\|>)"
    r"|(?P<code>^[ \t]*(?:<(?P<wrapper>code|python|py|pre|execute|execute_ipython|execute_bash|tool_code|bash"
    r"|python_action|terminal_action|answer|response|solution|final_answer|final)(?:\s[^<>\n]{0,80})?>"
    r"|\[(?P<bracket>PYTHON)\]|<\|python_tag\|>))",
    re.MULTILINE | re.IGNORECASE,
)
_NEVER = "\0"
"""Closes what goes on to the end."""
_TOKEN_ENDS = {
    "<|tool_call|>": _NEVER,
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|start_action|>": "<|END_ACTION|>",
    "<|tools_prefix|>": "<|tools_suffix|>",
    "<|tool_call_begin|>": "<|tool_call_end|>",
    "[tool_calls]": _NEVER,
}
_SHELL = ("execute_bash", "bash", "terminal_action")
_FUNCTION = re.compile(
    rf"<{_SPACE}(?:function=|invoke\s+name=)[\"']?(?P<name>[\w.-]+)[\"']?\s*>(?P<body>.*?)"
    rf"(?:</{_SPACE}(?:function|invoke)>|\Z)",
    re.DOTALL,
)
_PARAMETER = re.compile(
    rf"<{_SPACE}parameter(?:=|\s+name=)[\"']?(?P<name>\w+)[\"']?[^<>\n]{{0,40}}>\n?(?P<value>.*?)"
    rf"(?P<end>\n?</{_SPACE}parameter>(?=\s*(?:<|\Z))|\Z)",
    re.DOTALL,
)
_KEYED = re.compile(r"\s*(?P<name>[\w.]+)\s*(?=<arg_key>)")
_PAIR = re.compile(r"<arg_key>\s*(\w+)\s*</arg_key>\s*<arg_value>\n?(.*?)(?:\n?</arg_value>|\Z)", re.DOTALL)
_NAMED = re.compile(r"\s*(?:functions\.)?(?P<name>[\w.]+)(?::\d+)?\s*(?:\[ARGS\]|<\|[a-z_]+\|>)?\s*(?=\{)")
_NAME_KEYS = ("name", "tool_name", "tool", "action", "function", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "action_input", "tool_input", "kwargs")


@dataclass(frozen=True, kw_only=True)
class Tagged:
    """A passage of the text that a tag marks as an action."""

    start: int
    end: int
    body: str
    is_call: bool
    """Whether it is a tool call; otherwise code, whose tag may also stand in prose."""
    name: str = ""
    """The action that the tag itself names."""


class Tags:
    """The tagged passages of a text, found from any place in it. One that is left open goes on to the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._missing: set[str] = set()

    def first(self, position: int) -> Tagged | None:
        """Return the first passage that begins at *position* or later."""
        match = _TAG.search(self._text, position)
        if match is None:
            return None
        closed, name = _closing_of(match)
        end, after = self._end(closed, match.end())
        begin = match.start() if match["function"] else match.end()
        return Tagged(
            start=match.start(),
            end=max(after, match.end()),
            body=self._text[begin : after if match["function"] else end],
            is_call=match["code"] is None,
            name=name,
        )

    def _end(self, closed: str, start: int) -> tuple[int, int]:
        found = -1 if closed in self._missing else self._text.find(closed, start)
        if found < 0:
            self._missing.add(closed)
            return len(self._text), len(self._text)
        return found, found + len(closed)


def _closing_of(match: re.Match[str]) -> tuple[str, str]:
    """Return what closes a tag, and the action that it names."""
    if match["call"]:
        return f"</{match['name']}>", ""
    if match["token"]:
        return _TOKEN_ENDS[match["token"].lower()], ""
    if match["function"]:
        name = re.split(r"[=\s]", match["function"][1:], maxsplit=1)[0]
        return f"</{name}>", ""
    if match["channel"]:
        return "<|call|>", match["recipient"]
    wrapper = (match["wrapper"] or "").lower()
    closed = f"</{match['wrapper']}>" if wrapper else "[/PYTHON]" if match["bracket"] else _NEVER
    return closed, "terminal_action" if wrapper in _SHELL else "python_action"


def calls_of(body: str) -> list[Call]:
    """Return the tool calls that are written in a tag; none where it is no call."""
    return _with_parameters(body) or json_calls(body) or _named(body) or python_calls(body)


def _with_parameters(body: str) -> list[Call]:
    keyed = _KEYED.match(body)
    if keyed is not None:
        return [(_plain(keyed["name"]), dict(_PAIR.findall(body)))]
    found: list[Call] = []
    for function in _FUNCTION.finditer(body):
        given = {one["name"]: one["value"] for one in _PARAMETER.finditer(function["body"])}
        found.append((_plain(function["name"]), given or function["body"]))
    return found


def _named(body: str) -> list[Call]:
    match = _NAMED.match(body)
    if match is None:
        return []
    data = loads(body[match.end() :].strip().partition("<|")[0])
    return [(_plain(match["name"]), data)] if isinstance(data, dict) else []


def python_calls(body: str) -> list[Call]:
    """Return the tool calls that are written in Python, as in ``[python_action(code="...")]``."""
    module = parse(body.strip())
    if module is None or len(module.body) != 1 or not isinstance(module.body[0], ast.Expr):
        return []
    value = module.body[0].value
    nodes = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    found = [call for node in nodes if (call := _python_call(node)) is not None]
    known = isinstance(value, ast.List) or all(kind_of(name) is not None for name, _ in found)
    return found if len(found) == len(nodes) and known else []


def _python_call(node: ast.expr) -> Call | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.Constant):
        only = node.args[0].value
        return (node.func.id, only) if isinstance(only, str) else None
    if node.args:
        return None
    given = {
        str(one.arg): one.value.value
        for one in node.keywords
        if isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
    }
    return (node.func.id, given) if given and len(given) == len(node.keywords) else None


def _plain(name: str) -> str:
    return name.rpartition(".")[2]


def json_calls(text: str) -> list[Call]:
    """Return the tool calls that are written as JSON: an object, or a list of them."""
    data = loads(text.strip()) if text.lstrip().startswith(("{", "[")) else None
    if isinstance(data, dict) and isinstance(data.get("tool_calls"), list):
        data = data["tool_calls"]
    items = data if isinstance(data, list) else [data]
    return [call for item in items if (call := _json_call(item))]


def _json_call(item: object) -> Call | None:
    if not isinstance(item, dict):
        return None
    call: dict[str, Any] = item["function"] if isinstance(item.get("function"), dict) else item
    name = next((call[key] for key in _NAME_KEYS if isinstance(call.get(key), str)), None)
    given = next((call[key] for key in _ARGUMENT_KEYS if isinstance(call.get(key), str | dict)), None)
    if name is not None and given is not None:
        return _plain(name), given
    code = item.get("code", item.get("python_code"))
    if isinstance(code, str) and ("```" in code or acts(tidy(code))):
        return "python_action", {"code": code}
    if len(call) == 1:  # {"python_action": {"code": ...}}
        ((name, given),) = call.items()
        return (name, given) if isinstance(given, dict) else None
    return None


def loads(text: str) -> Any:
    """Read JSON, or a dict written in Python; None where it is neither."""
    try:
        return json.loads(text, strict=False)  # weak models put raw line ends into strings
    except (ValueError, RecursionError):
        pass
    module = parse(text) if text.startswith("{") else None
    if module is None or not module.body or not isinstance(module.body[0], ast.Expr):
        return None
    try:
        return ast.literal_eval(module.body[0].value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def unescaped(code: str) -> str:
    """Return code that stood in a tag without HTML's entities, where it parses only so."""
    plain = html.unescape(code)
    return plain if plain != code and parse(tidy(code)) is None and parse(tidy(plain)) is not None else code
