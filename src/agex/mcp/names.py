"""A stranger's texts as Python names, and as lines that close nothing of ours."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

__all__ = ["distinct", "identifier", "one_line"]

NAME_CHARS = 64


def identifier(text: str, fallback: str) -> str:
    """Return *text* as a public Python name."""
    name = re.sub(r"[^0-9A-Za-z_]+", "_", text)[:NAME_CHARS].strip("_")
    if not name or name[0].isdigit():
        name = f"{fallback}_{name}".rstrip("_")
    return f"{name}_" if keyword.iskeyword(name) else name


def distinct(names: Iterable[str], fallback: str) -> list[str]:
    """Return identifiers for *names*, each but once."""
    taken: dict[str, None] = {}
    numbers: dict[str, int] = {}
    """The last one of each name: counted anew for each of many equal names, they would cost the square."""
    for name in names:
        base = made = identifier(name, fallback)
        while made in taken:
            numbers[base] = numbers.get(base, 1) + 1
            made = f"{base}_{numbers[base]}"
        taken[made] = None
    return list(taken)


def one_line(text: str | None, limit: int) -> str:
    """Return a stranger's text as one line of printable characters that closes no quotation of ours."""
    line = "".join(char for char in " ".join((text or "").split()) if char.isprintable())
    line = line.replace('"""', "'''").replace("```", "'''").rstrip('\\"')
    return line if len(line) <= limit else f"{line[:limit].rstrip()} ..."
