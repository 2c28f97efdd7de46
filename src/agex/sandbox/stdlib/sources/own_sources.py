"""Modules of the standard library that are plain Python, compiled as guest programs are.

The source is the interpreter's own, less a few lines. It does what guest code may do, and nothing else.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

from agex.errors import SandboxImportError
from agex.sandbox.runtime import audit_hook

__all__ = ["MODULES", "text_of"]

_REPLACED: dict[str, tuple[tuple[str, str], ...]] = {
    "_markupbase": (),
    "argparse": (
        (
            "from gettext import gettext as _, ngettext",
            "def _(text): return text\ndef ngettext(one, many, n): return one if n == 1 else many",
        ),
        ("import os as _os", "import sys as _sys"),
        ("_os.path.basename(", "str("),
        ("_os.fspath(", "str("),
        ("import shutil\n", "pass\n"),
        ("shutil.get_terminal_size().columns", "80"),
    ),
    # Where there is no workspace there is no `os`; text and dicts are read without.
    "configparser": (("import os\n", "try: import os\nexcept ImportError: os = None\n"),),
    "html.parser": (),
}
"""By module: texts, and what stands in their place."""

MODULES = tuple(_REPLACED)


@functools.cache
def text_of(name: str) -> str | None:
    """Return the source of one of the modules; None for any other."""
    if name not in _REPLACED:
        return None
    text: str = audit_hook.call_as_host(_source, name)
    for old, new in _REPLACED[name]:
        text = text.replace(old, new)
    return text


def _source(name: str) -> str:
    spec = importlib.util.find_spec(name)
    loader: Any = None if spec is None else spec.loader
    text: str | None = None if loader is None else loader.get_source(name)
    if text is None:
        raise SandboxImportError(f"'{name}' is not installed as Python that could be read")
    return text
