"""Python source as models write it: whether it parses, whether it does anything, and tidied up."""

from __future__ import annotations

import ast
import re
import textwrap
import threading
import warnings

from agex import parsing

__all__ = ["acts", "parse", "tidy"]

_WARNINGS = threading.Lock()
_LANGUAGE_LINE = re.compile(r"\s*(?:python3?|py)[ \t]*\n", re.IGNORECASE)
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: |$)")


def parse(code: str) -> ast.Module | None:
    """Parse Python source, or return None where it is not Python."""
    # A stray "\d" in guest code would warn in the host's name, or fail the parse where warnings are
    # errors. The lock is there because catch_warnings swaps process-wide state.
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return parsing.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def acts(code: str) -> bool:
    """Tell whether *code* is Python that does something: not prose, a bare name or a constant."""
    module = parse(code)
    return module is not None and any(map(_acts, module.body))


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return False
    if not isinstance(statement, ast.Expr):
        return not _is_bare_annotation(statement)
    return any(isinstance(node, ast.Call | ast.Await | ast.NamedExpr) for node in ast.walk(statement))


def _is_bare_annotation(statement: ast.stmt) -> bool:
    # "Note: this" is an annotation to Python and prose to everyone else.
    return isinstance(statement, ast.AnnAssign) and statement.value is None


def tidy(code: str) -> str:
    """Take off what is not code but often stands around it; code that parses comes back as it is.

    Tried in this order, the first that parses wins: a first line that only says ``python``,
    a common indent, the ``>>>`` prompts of a session (whose output lines are dropped).
    """
    if parse(code) is not None and not _LANGUAGE_LINE.match(code):
        return code
    bare = _LANGUAGE_LINE.sub("", code, count=1) if _LANGUAGE_LINE.match(code) else code
    candidates = (bare, textwrap.dedent(bare), _without_prompts(bare))
    return next((candidate for candidate in candidates if parse(candidate) is not None), code)


def _without_prompts(code: str) -> str:
    if not code.lstrip().startswith(">>>"):
        return code
    lines = code.split("\n")
    return "\n".join(line[match.end() :] for line in lines if (match := _PROMPT.match(line)))
