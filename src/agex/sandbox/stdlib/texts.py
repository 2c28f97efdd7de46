"""``ast``, ``tokenize`` and ``email`` for guest code: programs and messages as data.

Nothing here runs a program. Messages of ``email`` are the library's own, in plain Python; its registries of
character sets belong to the process and are left out.
"""

from __future__ import annotations

import ast
import tokenize
import types
from collections.abc import Callable, Iterator
from typing import Any

from agex.sandbox.patches.stdlib_caches import exact

__all__ = ["AST", "EMAIL", "TOKENIZE", "ast_members", "mime_tables", "tokenize_members"]

_NODES = tuple(
    name for name, value in vars(ast).items() if isinstance(value, type) and issubclass(value, ast.AST)
)
AST = (
    *_NODES,
    "NodeVisitor",
    "dump",
    "get_docstring",
    "iter_child_nodes",
    "iter_fields",
    "parse",
    "unparse",
    "walk",
)
"""The members of ``ast``, beside ``literal_eval``."""
TOKENIZE = (
    "COMMENT", "DEDENT", "ENDMARKER", "INDENT", "NAME", "NEWLINE", "NL", "NUMBER", "OP", "STRING",
    "TokenError", "TokenInfo", "generate_tokens", "tok_name",
)  # fmt: skip
"""The members of ``tokenize``."""
EMAIL: dict[str, tuple[str, ...]] = {
    "email": ("message_from_bytes", "message_from_string"),
    "email.encoders": ("encode_base64", "encode_quopri"),
    "email.header": ("Header", "decode_header", "make_header"),
    "email.message": ("EmailMessage", "Message"),
    "email.mime.application": ("MIMEApplication",),
    "email.mime.audio": ("MIMEAudio",),
    "email.mime.base": ("MIMEBase",),
    "email.mime.image": ("MIMEImage",),
    "email.mime.multipart": ("MIMEMultipart",),
    "email.mime.text": ("MIMEText",),
    "email.parser": ("BytesParser", "Parser"),
    "email.policy": ("EmailPolicy", "SMTP", "SMTPUTF8", "compat32", "default", "strict"),
}
"""The modules of ``email`` and their members, beside ``email.utils``."""


def _parse(source: Any, filename: Any = "<unknown>", mode: Any = "exec", **others: Any) -> ast.AST:
    """Return the syntax tree of a text, as ``ast.parse`` does."""
    text = exact(source)
    if type(text) not in {str, bytes}:
        raise TypeError(f"ast.parse() takes text, not {type(text).__name__}")
    if mode not in {"exec", "eval", "single"}:
        raise ValueError("ast.parse() mode must be 'exec', 'eval' or 'single'")
    tree: ast.AST = ast.parse(text, "<unknown>", mode)
    return tree


def ast_members() -> dict[str, Any]:
    """Return the guarded members of ``ast``."""
    return {"parse": _parse}


def _generate_tokens(readline: Callable[[], str]) -> Iterator[tokenize.TokenInfo]:
    """Return the tokens of lines; all are read first, for compiled code would call in its midst."""
    lines: list[str] = []
    while line := exact(readline()):
        if type(line) is not str:
            raise TypeError(f"readline() returns text, not {type(line).__name__}")
        lines.append(line)
    return iter(list(tokenize.generate_tokens(iter([*lines, ""]).__next__)))


def tokenize_members() -> dict[str, Any]:
    """Return the guarded members of ``tokenize``."""
    return {"generate_tokens": _generate_tokens}


def mime_tables() -> tuple[dict[str, str], ...]:
    """Return the interpreter's tables of file types: by ending, uncommon ones, encodings, short endings."""
    import mimetypes

    names = ("_types_map_default", "_common_types_default", "_encodings_map_default", "_suffix_map_default")
    return tuple(dict(getattr(mimetypes, name)) for name in names)


for _function, _name, _home in ((_parse, "parse", "ast"), (_generate_tokens, "generate_tokens", "tokenize")):
    assert isinstance(_function, types.FunctionType), "it is named as guest code knows it"
    _function.__name__ = _function.__qualname__ = _name
    _function.__module__ = _home
