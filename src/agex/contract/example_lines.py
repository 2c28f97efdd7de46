"""Examples that a docstring states in a line, without the prompt of an interpreter.

Three forms are read::

    f(2, y=3) == 5          or  ->  =>  ==>  =  returns  should return  # returns  ...
    For x = 2, y = 3, the output should be 5.
    Input: x = 2, y = 3
    Output: 5

Arguments and outcome are literals, and nothing but a remark follows. What reads otherwise is prose.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from agex._interpreter import syntax_trees

__all__ = ["StatedExample", "stated_examples"]


@dataclass(frozen=True)
class StatedExample:
    """A call and its outcome, in literals."""

    arguments: str
    """The source between the parentheses of the call: ``2, y=3``."""
    outcome: str


def stated_examples(doc: str, name: str) -> tuple[StatedExample, ...]:
    """Read the examples of the task *name* that *doc* states, in the order of the text.

    Where the same arguments have two outcomes, neither is an example: one of them is a formula, or a mistake.
    """
    doc += "\n"
    lines = list(re.finditer(_LINE % re.escape(name), doc, re.MULTILINE))
    if not lines:
        return ()
    with warnings.catch_warnings(action="ignore"):  # of texts like "\\d", as the docstring has them
        read = [_stated(at, doc[at.end() : at.end() + _LONGEST]) for at in lines]
    found = dict.fromkeys(each for each in read if each)
    outcomes: dict[str, set[str]] = {}
    for each in found:
        outcomes.setdefault(each.arguments, set()).add(each.outcome)
    return tuple(each for each in found if len(outcomes[each.arguments]) == 1)


_LINE = (
    r"^[ \t]*(?:(?:[-*•]|\d+[.)]|>>>|for|assert)[ \t]+)*`*"
    r"(?:(?P<call>%s\()|(?i:(?:for|given|if|when)[ \t]+(?=\w+[ \t]*=(?!=))|input[ \t]*:\s*))"
)
"""How a line begins that may state an example; what follows is read by `_stated`."""
_MARK = re.compile(
    r"`*[ \t]*#?[ \t]*(?:[=-]*=+>|-+>|===?|=|→|➞|⇒"
    r"|(?:should |must |will )?(?:return|give|yield|equal|be)s?:?(?=[ \t]))[ \t]*`*"
)
"""The mark between a call and its outcome."""
_LEAD = re.compile(
    r"(?i:(?:,[ \t]*[a-z][^=\n]*?)?[ \t]*[,;.]?\s*\b(?:the[ \t]+)?(?:expected[ \t]+)?"
    r"(?:output|result|answer|return value)[ \t]*(?:(?:should|must|will) be|is|:|=)[ \t]*)"
)
"""The words between the last argument of a sentence and the outcome."""
_NEXT = re.compile(r"[ \t]*(?:[,;]|and\b)\s*")
_KEY = re.compile(r"(\w+)[ \t]*=(?!=)[ \t]*")
_END = re.compile(r"(?!.*doctest:.*\+SKIP)`*[ \t]*[.,;]?`*[ \t]*(?:\n|\(|#)")
"""The end of an outcome: that of the line, or a remark."""
_LITERAL_ENDS = re.compile(r"[\w\])}'\".](?![\w]|\.\d)")
_WORDS = re.compile(r"(?:true|false|none|null)\b")
_LONGEST = 1000
"""Characters of one example; what is longer is cut, and so is none."""


def _stated(line: re.Match[str], text: str) -> StatedExample | None:
    return _called(text) if line["call"] else _told(text)


def _called(text: str) -> StatedExample | None:
    """Read ``2, y=3) == 5``."""
    for end in re.finditer(r"\)", text):
        if (arguments := _arguments(text[: end.start()])) is not None:
            mark = _MARK.match(text, end.end())
            outcome = mark and _outcome(text[mark.end() :])
            return StatedExample(arguments, outcome) if outcome else None
    return None


def _told(text: str) -> StatedExample | None:
    """Read ``x = 2, y = 3, the output should be 5``."""
    said: list[str] = []
    while True:
        key = _KEY.match(text)
        text = text[key.end() :] if key else text
        for literal, rest in _literals(text):
            lead, following = _LEAD.match(rest), _NEXT.match(rest)
            if lead or following:
                said.append(f"{key[1]}={literal}" if key else literal)
                break
        else:
            return None
        if lead:
            arguments, outcome = _arguments(", ".join(said)), _outcome(rest[lead.end() :])
            return StatedExample(arguments, outcome) if arguments and outcome else None
        assert following is not None
        text = rest[following.end() :]


def _arguments(source: str) -> str | None:
    """Return the arguments of a call, normalised; None where they are no literals."""
    call = _parsed(f"_({source})")
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    named = {each.arg: each.value for each in call.keywords}
    if (
        len(named) < len(call.keywords)
        or None in named
        or not all(map(_is_literal, [*call.args, *named.values()]))
    ):
        return None
    return ast.unparse(call)[2:-1]


def _parsed(source: str) -> ast.expr | None:
    try:
        return syntax_trees.parse_expression(source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return not any(isinstance(each, ast.Constant) and each.value is ... for each in ast.walk(node))


def _outcome(text: str) -> str | None:
    """Return the literal that *text* begins with, where nothing but a remark follows."""
    if word := _WORDS.match(text):  # as JSON and other languages write them
        text = {"null": "None"}.get(word[0], word[0].capitalize()) + text[word.end() :]
    return next((literal for literal, rest in _literals(text) if _END.match(rest)), None)


def _literals(text: str) -> Iterator[tuple[str, str]]:
    """Yield each literal that *text* may begin with, shortest first, and what follows it.

    One value in parentheses is none: it may be meant as a tuple.
    """
    for end in _LITERAL_ENDS.finditer(text):
        source = text[: end.end()]
        node = _parsed(source)
        if (
            node is not None and _is_literal(node) and ast.get_source_segment(source, node) == source
        ):  # and no remark behind it
            yield source, text[end.end() :]
