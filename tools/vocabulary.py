"""Check the words of docstrings and comments against the style sheet in CONTRIBUTING.md.

Run from anywhere: ``python tools/vocabulary.py [FOLDER]``. Each finding is one line,
``file:line: reason: text``, and the exit code is then 1. Code and string literals are not read, and no
docstrings of tasks, which are prompts.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parents[1] / "src" / "agex"

# Rooms that do not follow the style sheet yet. The list only shrinks: a room without a finding must leave it.
EXEMPT = frozenset[str]()

# How a docstring or a comment may not begin.
OPENING = re.compile(r"(?:What|Whatever|Give|Tell|Have)\b")
# What may stand nowhere in one.
ANYWHERE = {
    re.compile(r"\bof the (?:guest|host)'s\b"): "a chain of genitives; write 'guest code' or 'host object'",
    re.compile(r"\b(?:guest|host)'s of\b"): "a chain of genitives; write 'guest code' or 'host object'",
    re.compile(r"\bwho(?:m)?ever\b", re.IGNORECASE): "'whoever'; name who acts",
    re.compile(r"\bwhatever (?:it|that|they)\b", re.IGNORECASE): "'whatever it'; name the thing",
}


class Text(NamedTuple):
    """A docstring or a block of comments, with the number of its first line."""

    line: int
    text: str


class Finding(NamedTuple):
    """A place that the style sheet refuses."""

    line: int
    reason: str
    text: str


def findings(source: str) -> list[Finding]:
    """Return the places of a module's docstrings and comments that the style sheet refuses, in order."""
    return sorted(found for text in [*_docstrings(source), *_comments(source)] for found in _refused(text))


def _refused(text: Text) -> Iterator[Finding]:
    lines = text.text.splitlines()
    opening = OPENING.match(text.text)
    if opening is not None:
        yield Finding(
            text.line, f"opens with {opening.group()!r}; begin with the subject or the verb", lines[0]
        )
    # A chain may go over the end of a line.
    flat = " ".join(text.text.split())
    for pattern, reason in ANYWHERE.items():
        for match in pattern.finditer(flat):
            index = _line_index(lines, match.start())
            yield Finding(text.line + index, reason, lines[index].strip())


def _line_index(lines: list[str], position: int) -> int:
    """Return the number of the line that holds a position of the lines joined with single spaces."""
    seen = 0
    for index, line in enumerate(lines):
        words = " ".join(line.split())
        seen += len(words) + 1 if words else 0
        if position < seen:
            return index
    return len(lines) - 1


def _docstrings(source: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or _is_task(node):
            continue
        # Beside the docstring of a module, a class or a function: a string behind a variable documents it.
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                value = statement.value.value
                if isinstance(value, str):
                    yield Text(statement.lineno, value)


def _is_task(node: ast.AST) -> bool:
    """Return whether a function is decorated with ``@agent.task`` or a call of it."""
    decorators = getattr(node, "decorator_list", ())
    called = [each.func if isinstance(each, ast.Call) else each for each in decorators]
    return any(isinstance(each, ast.Attribute) and each.attr == "task" for each in called)


def _comments(source: str) -> Iterator[Text]:
    """Return the comments; whole lines that follow each other are one."""
    start, last, parts = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        alone = not token.line[:column].strip()
        text = token.string.lstrip("#:").strip()
        if parts and alone and line == last + 1:
            parts.append(text)
        else:
            if parts:
                yield Text(start, "\n".join(parts))
            start, parts = line, [text]
        last = line if alone else 0
    if parts:
        yield Text(start, "\n".join(parts))


def room_of(path: Path, root: Path) -> str:
    """Return the first folder below the root, or the name of a module that stands in none."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def report(root: Path = SOURCES, exempt: frozenset[str] = EXEMPT) -> Iterator[str]:
    """Return the lines to print: findings, and exempt rooms that have none or do not exist."""
    unclean = set[str]()
    for path in sorted(root.rglob("*.py")):
        found = findings(path.read_text(encoding="utf-8"))
        room = room_of(path, root)
        if room in exempt:
            unclean |= {room} if found else set()
            continue
        for line, reason, text in found:
            yield f"{path.relative_to(root.parent)}:{line}: {reason}: {text}"
    for room in sorted(exempt - unclean):
        yield f"{room}: nothing is left to find here: take it out of EXEMPT in {Path(__file__).name}"


def main() -> int:
    """Print the report and return the exit code."""
    lines = list(report(Path(sys.argv[1]), frozenset()) if len(sys.argv) > 1 else report())
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
