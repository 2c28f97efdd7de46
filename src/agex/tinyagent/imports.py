"""The imports that an agent's code is granted, and the files that their readers find."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agex.errors import DefinitionError

if TYPE_CHECKING:
    from agex.sandbox import Policy
    from agex.tinyagent.readonly_directory import Directory

__all__ = ["grant", "require_import_names"]

READERS: dict[str, dict[str, str]] = {
    "pandas": {
        "read_csv": "filepath_or_buffer",
        "read_table": "filepath_or_buffer",
        "read_fwf": "filepath_or_buffer",
        "read_json": "path_or_buf",
    },
    "numpy": {"loadtxt": "fname", "genfromtxt": "fname"},
}
"""Functions that take a path or a stream first, and the name of that parameter."""


def require_import_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return import names, if they are some.

    Raises:
        DefinitionError: one is not.
    """
    if isinstance(names, str):
        raise DefinitionError(f"extra_imports is a list. Wrong: {names!r}. Right: [{names!r}].")
    known = tuple(dict.fromkeys(names))
    for name in known:
        if not all(part.isidentifier() for part in name.split(".")):
            raise DefinitionError(f"extra_imports names {name!r}, which cannot be imported.")
    return known


def grant(policy: Policy, names: Iterable[str], files: Directory | None) -> None:
    """Let code under *policy* import the modules named; their readers find the files of a directory.

    Raises:
        DefinitionError: a module is not installed, or fails to load.
    """
    for name in names:
        policy.module(_imported(name), name=name)
        copy = policy.modules[name].copy()
        for reader, parameter in READERS.get(name, {}).items() if files is not None else ():
            vars(copy)[reader] = _reading(vars(copy)[reader], parameter, files)


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DefinitionError(f"extra_imports names {name!r}, which cannot be imported: {error}") from error


def _reading(reader: Callable[..., Any], parameter: str, files: Any) -> Callable[..., Any]:
    """Return *reader*, given the content of a file where it is given a path."""
    import io

    def read(*args: Any, **kwargs: Any) -> Any:
        source = args[0] if args else kwargs.get(parameter)
        if type(source) is not str:
            return reader(*args, **kwargs)
        content = io.BytesIO(files.read(source))
        return reader(content, *args[1:], **{k: v for k, v in kwargs.items() if k != parameter})

    read.__name__ = read.__qualname__ = reader.__name__
    read.__doc__ = reader.__doc__
    return read
