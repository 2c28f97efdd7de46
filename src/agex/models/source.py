"""Python source as models write it: whether it parses, whether it does anything, and tidied up."""

from __future__ import annotations

import ast
import re
import textwrap
import threading
import warnings

from agex._interpreter import syntax_trees

__all__ = ["acts", "calls", "ipython_command", "parse", "tidy"]

_WARNINGS = threading.Lock()
_LANGUAGE_LINE = re.compile(r"\s*(?:python3?|py)[ \t]*\n", re.IGNORECASE)
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: |$)")
_IPYTHON_PROMPT = re.compile(r"[ \t]*(?:In \[[\d ]{1,6}\]:|\.{3,}:)(?: |$)")
_UNSEEN = re.compile(
    r"(?P<string>\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<blank>[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000])"
    r"|[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]",
    re.DOTALL,
)
_TIMED = re.compile(r"^([ \t]*)%(?:time|timeit|prun)[ \t]+(?=[^\s-])", re.MULTILINE)
_IDLE_MAGIC = re.compile(
    r"^([ \t]*)((?:%%?(?:matplotlib|pylab|config|load_ext|reload_ext|autoreload|pip|conda|time|timeit|capture"
    r"|precision|pprint)\b|!pip3? )[^\n]*)$",
    re.MULTILINE,
)
_COMMAND = re.compile(r"^([ \t]*)(?:%%?[a-z]\w*|![a-z.~/]\S*|\?\w+|[\w.]+\?$)[^\n]*", re.MULTILINE)


def parse(code: str) -> ast.Module | None:
    """Parse Python source, or return None where it is not Python."""
    # A stray "\d" in guest code would warn in the host's name, or fail the parse where warnings are
    # errors. The lock is there because catch_warnings swaps process-wide state.
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return syntax_trees.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def acts(code: str) -> bool:
    """Return whether *code* is Python that does something: not prose, a bare name or a constant."""
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


def calls(code: str) -> bool:
    """Return whether *code* is Python that calls something."""
    module = parse(code) if "(" in code else None
    return module is not None and any(isinstance(node, ast.Call) for node in ast.walk(module))


def tidy(code: str) -> str:
    """Remove text that often stands around code; code that parses comes back unchanged.

    In this order, until it parses: a first line that only says ``python``, characters that cannot be seen,
    a common indent, the prompts of a session (whose output lines are dropped), IPython's commands that do
    nothing to the result.
    """
    is_plain = not _LANGUAGE_LINE.match(code) and not _IPYTHON_PROMPT.match(code)
    if is_plain and parse(code) is not None:  # "In [1]: x" is an annotation to Python
        return code
    bare = _LANGUAGE_LINE.sub("", code, count=1) if _LANGUAGE_LINE.match(code) else code
    visible = _without_invisible(bare)
    session = _without_prompts(visible)
    plain = (bare, visible, textwrap.dedent(visible)) if session is visible else ()
    candidates = dict.fromkeys((*plain, session, _without_magics(textwrap.dedent(session))))
    return next((one for one in candidates if parse(one) is not None), code)


def ipython_command(code: str) -> str | None:
    """Return the line of *code* that asks IPython for something, where Python could read all others."""
    match = _COMMAND.search(code)
    if match is None or parse(code) is not None or parse(_COMMAND.sub(r"\1pass", code)) is None:
        return None
    return match[0].strip()


def _without_invisible(code: str) -> str:
    """Make spaces of characters that look like one, and drop those that look like nothing; not in strings."""
    if code.isascii():
        return code
    return _UNSEEN.sub(lambda match: match["string"] or (" " if match["blank"] else ""), code)


def _without_prompts(code: str) -> str:
    start = code.lstrip()
    prompt = _PROMPT if start.startswith(">>>") else _IPYTHON_PROMPT if start.startswith("In [") else None
    if prompt is None:
        return code
    lines = code.split("\n")
    return "\n".join(line[match.end() :] for line in lines if (match := prompt.match(line)))


def _without_magics(code: str) -> str:
    return _IDLE_MAGIC.sub(r"\1# \2", _TIMED.sub(r"\1", code))
