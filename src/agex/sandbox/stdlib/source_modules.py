"""Modules of the standard library that are compiled as guest code, and run for each session.

The loggers, handlers and levels of ``logging`` belong to the process, and the host logs through them. The
guest's ``logging`` is compiled like its programs, and can do no more than these. The same holds for the
collections of ``weakref``: dropping an item would call the real ones. The source of ``xml.etree`` is the
interpreter's own, see `agex.sandbox.stdlib.sources.xml_etree`.
"""

from __future__ import annotations

import itertools
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agex.sandbox.language.compiler import compile_module
from agex.sandbox.policy.module_grant import ModuleGrant, blank
from agex.sandbox.runtime.context import asking, frames_of
from agex.sandbox.stdlib import guest_facts, texts
from agex.sandbox.stdlib.sources import own_sources, xml_etree
from agex.sandbox.stdlib.traceback import handled
from agex.sandbox.stdlib.weakref import REFERENCES

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["WRITTEN", "WrittenGrant"]

# Read at import: a worker that the kernel confines can open nothing but its installation later.
_FOLDER = Path(__file__).parent / "sources"
_OURS = tuple(
    """
    atexit concurrent.futures contextvars doctest filecmp fileinput gc getpass importlib inspect
    linecache locale logging mimetypes multiprocessing platform pytest sched threading timeit unittest
    unittest.mock weakref
""".split()
)
"""Modules whose source is a file in the folder ``sources``."""
_TEXTS = {name: (_FOLDER / f"{name.replace('.', '_')}.txt").read_text("utf-8") for name in _OURS}

WRITTEN = (*_OURS, *own_sources.MODULES, *xml_etree.MODULES)
"""Modules with a source of their own."""


class WrittenGrant(ModuleGrant):
    """A module whose source is compiled as guest programs are."""

    is_for_each_session = True

    def __init__(self, name: str) -> None:
        super().__init__(name, recursive=False)
        self._shown = f"<{name}>"

    def copy(self) -> types.ModuleType:
        """Return an empty module: nothing of the real one is granted."""
        return blank(self.module_name)

    def run(self, guards: Membrane) -> types.ModuleType:
        """Run the source for one session, and return its module."""
        made = blank(self.module_name)
        name = self.module_name
        text = _TEXTS.get(name) or own_sources.text_of(name) or xml_etree.text_of(name)
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


def handled_error() -> Exception | None:
    """Return the error that guest code has caught by ``except Exception as error``."""
    error = handled()
    return error if isinstance(error, Exception) else None


def calling_place(level: int) -> tuple[str, int, str]:
    """Return file, line and function of the guest code that is *level* callers above the calling module."""
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
    "atexit": {"at_exit": guest_facts.at_exit},
    "contextvars": guest_facts.CONTEXTS,
    "doctest": guest_facts.TESTING,
    "inspect": guest_facts.INSPECTION,
    "mimetypes": {"tables": texts.mime_tables},
    "pytest": {"parameters_of": guest_facts.parameters_of},
    "unittest": guest_facts.TESTING,
    "unittest.mock": guest_facts.TESTING,
    "weakref": REFERENCES,
    "xml.etree.ElementTree": xml_etree.HELPERS,
}
for _helper in _HELPERS["logging"].values():
    _helper.__module__ = "logging"  # stored code finds them under this name
