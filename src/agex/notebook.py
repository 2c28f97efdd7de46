"""``%%agex``: a cell of a notebook in words, solved over the notebook's own variables.

The cell becomes a task. Its inputs are the variables that the text names, its result is checked against the
annotation in the first line, and its code is shown.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from agex.agent import Agent, Run
from agex.agent.task.run import code_blocks, own_function
from agex.errors import DefinitionError
from agex.sandbox.policy import catalog

__all__ = ["AgexMagics", "Cell", "code_of", "read_line", "task_of"]

USAGE = "%%agex [AGENT] [-> NAME[: TYPE]], e.g. %%agex -> totals: dict[str, int]"
_LINE = re.compile(r"(?P<agent>[^\W\d]\w*)?\s*(->\s*(?P<name>[^\W\d]\w*)\s*(:\s*(?P<annotation>.+))?)?")
_WORD = re.compile(r"[^\W\d]\w*")
_SHELLS = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})
"""Names that IPython itself puts into a notebook."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The first line of a cell, read."""

    agent: str = ""
    """The variable that holds the agent; empty for the notebook's own."""
    name: str = ""
    """The variable for the result; empty where the cell shows it only."""
    annotation: str = ""
    """Its type; empty for any."""


def read_line(line: str) -> Cell:
    """Read what stands behind ``%%agex``.

    Raises:
        DefinitionError: it is not of the form.
    """
    found = _LINE.fullmatch(line.strip())
    name = (found["name"] or "") if found else ""
    if found is None or keyword.iskeyword(name):
        raise DefinitionError(f"{line.strip()!r} is not understood: {USAGE}")
    return Cell(agent=found["agent"] or "", name=name, annotation=(found["annotation"] or "").strip())


def task_of(agent: Agent, cell: Cell, text: str, variables: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the task of a cell, and its arguments: the variables that the text names.

    Raises:
        DefinitionError: there is no text, or the type of the result cannot be read.
    """
    if not text.strip():
        raise DefinitionError(f"the cell has no text below its first line: {USAGE}")
    inputs = {name: variables[name] for name in _named(text, variables)}
    namespace: dict[str, Any] = {}
    exec(f"def cell({', '.join(inputs)}):\n    {text.strip()!r}", namespace)  # noqa: S102 - names and a literal
    function = namespace["cell"]
    annotations = {name: _type_of(value) for name, value in inputs.items()}
    function.__annotations__ = {**annotations, "return": _result(cell.annotation, variables)}
    return agent.task(function), inputs


def _named(text: str, variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the variables of the notebook that a text names, in its order."""
    for name in dict.fromkeys(_WORD.findall(text)):
        is_own = name in variables and name not in _SHELLS and not name.startswith("_")
        if is_own and not keyword.iskeyword(name) and not isinstance(variables[name], ModuleType | Agent):
            yield name


def _type_of(value: object) -> Any:
    """Return the annotation of an input: its class, where instances of it can be told."""
    return Any if callable(value) or value is None else type(value)


def _result(annotation: str, variables: Mapping[str, Any]) -> Any:
    if not annotation:
        return Any
    try:
        return eval(annotation, dict(variables))  # noqa: S307 - the notebook's own text
    except Exception as error:
        raise DefinitionError(
            f"the type {annotation!r} of the result cannot be read: {type(error).__name__}: {error}"
        ) from error


def code_of(run: Run[Any], name: str, inputs: Iterable[str]) -> str:
    """Return the code that solved a cell, as a cell of its own: it binds *name* instead of ending a task."""
    own = own_function(run)
    if own is not None:
        return f"{own}\n\n{name} = cell({', '.join(inputs)})"
    return "\n\n".join(_bound(block, name) for block in code_blocks(run))


def _bound(source: str, name: str) -> str:
    """Return a block with each ``task_success(x)`` as ``name = x``."""
    found = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "task_success"
    ]
    lines = [line.encode() for line in source.splitlines()]
    for node in sorted(found, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        value = ast.get_source_segment(source, node.args[0]) if node.args else "None"
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        lines[first : last + 1] = [before + f"{name} = {value}".encode() + after]
    return b"\n".join(lines).decode()


class AgexMagics:
    """The commands of one notebook.

    Args:
        shell: IPython's, with the notebook's variables as ``user_ns``.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._own: Agent | None = None
        self._code = ""

    def register(self) -> None:
        """Let the notebook know ``%%agex`` and ``%agex_code``."""
        self._shell.register_magic_function(self.agex, "cell", "agex")
        self._shell.register_magic_function(self.agex_code, "line", "agex_code")

    def agex(self, line: str, text: str) -> Run[Any] | None:
        """Solve a cell that says in words what is wanted.

        ``%%agex -> totals: dict[str, int]`` binds the result to ``totals``; without ``->`` it is shown only.
        ``%%agex analyst -> totals`` asks the agent in the variable ``analyst``; else it is one of the
        notebook's own, which may use the libraries that the notebook has imported and agex knows, and the
        modules that the text names. ``%agex_code`` puts the code into a cell below.

        Raises:
            DefinitionError: the first line, or a type, cannot be read.
            TaskError: there is no value that passes.
        """
        cell, variables = read_line(line), self._shell.user_ns
        agent = self._agent(cell.agent, text)
        task, inputs = task_of(agent, cell, text, variables)
        run: Run[Any] = task.run(**inputs)
        self._code = code_of(run, cell.name or "result", inputs)
        if not cell.name:
            return run
        variables[cell.name] = run.value
        _show(run)
        return None

    def agex_code(self, line: str) -> None:
        """Put the code that solved the last ``%%agex`` into a cell below.

        Raises:
            DefinitionError: there is none yet.
        """
        if not self._code:
            raise DefinitionError("no %%agex cell has been solved by code yet")
        self._shell.set_next_input(self._code, replace=False)

    def _agent(self, name: str, text: str) -> Agent:
        variables = self._shell.user_ns
        if name:
            found = variables.get(name)
            if not isinstance(found, Agent):
                raise DefinitionError(f"the variable {name!r} is no Agent: {USAGE}")
            return found
        if self._own is None:
            self._own = Agent(name="notebook")
        words = set(_WORD.findall(text))
        known = {one.target for one in self._own.registrations if one.kind == "module"}
        for alias, module in list(variables.items()):
            is_module = isinstance(module, ModuleType) and module not in known and not alias.startswith("_")
            if is_module and (catalog.has_policy(module.__name__.partition(".")[0]) or alias in words):
                self._own.module(module)
                known.add(module)
        return self._own


def _show(run: Run[Any]) -> None:
    from IPython import display

    shown: Any = display.display  # it has no types
    shown(run)
