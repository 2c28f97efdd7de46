"""Modules of the standard library that are guests' code themselves, and run for each session.

The loggers, handlers and levels of ``logging`` are the process's: the host's own code logs through them.
Those of a guest are in a module that is compiled as its programs are, and can do what these can and nothing
else. So are the collections of ``weakref``: whoever drops an item has the real ones called. The text of
``xml.etree`` is the interpreter's own (see `agex.sandbox.stdlib.xml_etree`).
"""

from __future__ import annotations

import itertools
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agex.sandbox.language.compiler import compile_module
from agex.sandbox.policy.module_grant import ModuleGrant, blank
from agex.sandbox.runtime.context import asking, frames_of
from agex.sandbox.stdlib import xml_etree as markup
from agex.sandbox.stdlib.traceback import handled
from agex.sandbox.stdlib.weakref import REFERENCES

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["WRITTEN", "WrittenGrant"]

WRITTEN = ("logging", "weakref", *markup.MODULES)
"""Modules of which guests get others of that name: two are written anew, in files beside this one."""


class WrittenGrant(ModuleGrant):
    """A module whose text is compiled as guests' programs are."""

    def __init__(self, name: str) -> None:
        super().__init__(name, recursive=False)
        self._shown = f"<{name}>"

    def copy(self) -> types.ModuleType:
        """Give nothing of the real one."""
        return blank(self.module_name)

    def run(self, guards: Guards) -> types.ModuleType:
        """Give the module of one session."""
        made = blank(self.module_name)
        name = self.module_name
        text = _TEXTS.get(name) or markup.text_of(name)
        guards.sources[self._shown] = text.splitlines()
        vars(made).update(
            __builtins__=guards.builtins,
            __name__=guards.classes.mark(name),
            __package__=name,
            **_HELPERS.get(name, {}),
        )
        code = compile_module(text, self._shown, guards.policy.text, echo=False, flat=True)
        exec(code, vars(made))  # noqa: S102 - rewritten code
        return made


# Read at once: a worker behind the walls of the kernel reads its installation and nothing else.
_HERE = Path(__file__).parent
_TEXTS = {name: (_HERE / f"source_{name}.txt").read_text("utf-8") for name in ("logging", "weakref")}


def handled_error() -> Exception | None:
    """Give the error that a guest's ``except Exception as error`` has caught."""
    error = handled()
    return error if isinstance(error, Exception) else None


def calling_place(level: int) -> tuple[str, int, str]:
    """Say where the guest's code is that called what calls this: file, line and function, some calls up."""
    guards = asking()
    frames = list(itertools.islice(frames_of(guards), _MOST)) if guards else []
    here = frames[0].f_code.co_filename if frames else ""
    outside = [frame for frame in frames if frame.f_code.co_filename != here][: max(int(level), 1)]
    if not outside:
        return "(unknown file)", 0, "(unknown function)"
    code = outside[-1].f_code
    return code.co_filename, outside[-1].f_lineno, code.co_name


_MOST = 1000
_HELPERS: dict[str, dict[str, Any]] = {
    "logging": {each.__name__: each for each in (calling_place, handled_error)},
    "weakref": REFERENCES,
    "xml.etree.ElementTree": markup.HELPERS,
}
for _helper in _HELPERS["logging"].values():
    _helper.__module__ = "logging"  # where kept code finds them again
