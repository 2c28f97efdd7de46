"""The shortest way from the inputs of a run to its value: the statements that the value depends on.

A slice backwards over the code of the turns: a statement belongs to it if it binds, or changes in place, a
name that a later statement of it reads. Statements are taken whole, and read as text: none is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agex._interpreter import syntax_trees
from agex.agent.call.events import ActionEvent, OutputEvent, SuccessEvent
from agex.agent.durable.past_runs import PastRun, past_run
from agex.agent.durable.run_journal import KnownCall
from agex.agent.execution.name_bindings import bindings_in
from agex.contract import preview
from agex.models.actions import PythonAction
from agex.state import Versioned

__all__ = ["why"]

VALUE_CHARS = 500
_ENDS = "task_success"


@dataclass(frozen=True, kw_only=True)
class _Statement:
    """One statement at the top of an action's code."""

    turn: int
    line: int
    last_line: int
    text: str
    reads: frozenset[str]
    writes: frozenset[str]
    ends: bool


@dataclass
class _Slice:
    """The statements that the value depends on."""

    statements: list[_Statement] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Names that nothing in it binds: inputs, variables from before, and what is registered."""


def why(state: Versioned, run_id: str) -> dict[str, Any]:
    """Describe how a run came to its value, as plain data.

    Raises:
        StateError: the state has no such run.
        StateCorrupt: its record is damaged.
    """
    past = past_run(state, run_id)
    statements = [*_statements(past)]
    found = _sliced(statements, past.record.task)
    turns = sorted({one.turn for one in found.statements})
    changed = _changed(state, past)
    has_all = "inputs" in found.names
    inputs = {name: value for name, value in past.inputs.items() if has_all or name in found.names}
    return {
        "run": run_id,
        "task": past.record.task,
        "status": past.record.status,
        "value": preview(past.value, VALUE_CHARS) if past.has_value else _told(past),
        "inputs": {name: preview(value, VALUE_CHARS) for name, value in inputs.items()},
        "turns": [
            {
                "turn": turn,
                "code": [
                    {"line": one.line, "text": one.text} for one in found.statements if one.turn == turn
                ],
                "calls": [_call(known) for known in _calls(past, turn, found)],
                "changed": sorted(changed.get(turn, set()) & _of_slice(found)),
            }
            for turn in turns
        ],
        "left_out": sorted({one.turn for one in statements} - set(turns)),
    }


def _of_slice(found: _Slice) -> set[str]:
    return {name for one in found.statements for name in one.writes}


def _told(past: PastRun) -> str:
    """Return the value as its event has it, or the reason why there is none."""
    for event in reversed(past.events):
        if isinstance(event, SuccessEvent):
            return preview(event.result, VALUE_CHARS)
    return past.record.message or past.record.question or past.record.status


def _statements(past: PastRun) -> Iterator[_Statement]:
    """Yield the statements of all code that ran, in order."""
    for event in past.events:
        if isinstance(event, ActionEvent) and not event.truncated:
            for action in event.actions:
                if isinstance(action, PythonAction):
                    yield from _of_code(action.code, event.turn, past.record.task)


def _of_code(code: str, turn: int, task: str) -> Iterator[_Statement]:
    try:
        tree = syntax_trees.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = code.splitlines()
    modules = {name for node in tree.body for name in _imported(node)}
    for node in tree.body:
        end = node.end_lineno or node.lineno
        bound = {one.name for one in bindings_in(node) if one.scope in ("module", "global")}
        functions = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
        called = {one.id for one in functions if isinstance(one, ast.Name)}
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == task
        yield _Statement(
            turn=turn,
            line=node.lineno,
            last_line=end,
            text="\n".join(lines[node.lineno - 1 : end]),
            reads=frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name)),
            writes=frozenset(bound | ({*_changed_by(node)} - modules)),
            ends=_ENDS in called or is_function,
        )


def _imported(node: ast.stmt) -> Iterator[str]:
    """Yield the names that an import binds: a call of a module's function changes no module."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((one.asname or one.name).partition(".")[0] for one in node.names)


def _changed_by(node: ast.AST) -> Iterator[str]:
    """Yield the names whose objects a statement may change in place: by a method, an item, an attribute."""
    for one in ast.walk(node):
        match one:
            case ast.Call(func=ast.Attribute() as read):
                yield from _root(read)
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                yield from _root(one)
            case _:
                pass


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _sliced(statements: list[_Statement], task: str) -> _Slice:
    found = _Slice()
    ends = [place for place, one in enumerate(statements) if one.ends]
    if not ends:
        return found
    needed: set[str] = set()
    for place in range(ends[-1], -1, -1):
        one = statements[place]
        if place != ends[-1] and not (one.writes & needed):
            continue
        found.statements.insert(0, one)
        needed -= {name for name in one.writes if name not in one.reads}
        needed |= one.reads - {_ENDS, task}
    found.names = needed
    return found


def _calls(past: PastRun, turn: int, found: _Slice) -> Iterator[KnownCall]:
    """Yield the calls to the world that statements of the slice made in a turn; all, without their lines."""
    spans = [(one.line, one.last_line) for one in found.statements if one.turn == turn]
    for _, known in sorted(past.calls.items()):
        line = known.record.line
        is_there = line is None or any(first <= line <= last for first, last in spans)
        if known.record.turn == turn and is_there:
            yield known


def _call(known: KnownCall) -> dict[str, Any]:
    record = known.record
    outcome = known.values.get("error", known.values.get("result"))
    return {
        "text": record.text,
        "line": record.line,
        "state": record.state,
        "outcome": preview(outcome, VALUE_CHARS),
    }


def _changed(state: Versioned, past: PastRun) -> dict[int, set[str]]:
    """Return the variables that the commits of each turn changed."""
    found: dict[int, set[str]] = {}
    for commit in past.commits:
        own = [event for event in commit.events if event.run_id == past.record.run_id]
        turn = max((one.turn for one in own if isinstance(one, ActionEvent | OutputEvent)), default=0)
        found.setdefault(turn, set()).update(state.diff(commit.parent, commit.hash, texts=False))
    return found
