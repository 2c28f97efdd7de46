"""Cases: inputs and their expected values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from agex.errors import DefinitionError
from agex.regular_files import read_regular

__all__ = ["NOTHING", "Case", "CaseLike", "as_cases", "read_cases"]


class Nothing(Enum):
    """A sentinel that is the same in every process."""

    NOTHING = 0

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Any = Nothing.NOTHING
"""Nothing is said to be expected; None is something else."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One thing to try. A mapping with these keys stands for one wherever cases are taken."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments by parameter name. Every trial is given these same objects."""
    expected: Any = NOTHING
    """The value that judges may compare with; not given by default."""
    name: str | None = None
    """How it is called in the report; its position, from ``"1"``, by default."""


CaseLike: TypeAlias = Case | Mapping[str, Any]
"""A case, or a mapping with the fields of one."""

_KEYS = [each.name for each in fields(Case)]


def as_cases(cases: Iterable[CaseLike]) -> tuple[Case, ...]:
    """Return cases, each with a name of its own.

    Raises:
        DefinitionError: there is none, one is not a case, or two have one name.
    """
    found = [_as_case(each, f"case {position}") for position, each in enumerate(cases, start=1)]
    if not found:
        raise DefinitionError("There are no cases to try; give at least one, e.g. Case(inputs={'n': 2}).")
    named = [
        case if case.name is not None else replace(case, name=str(position))
        for position, case in enumerate(found, start=1)
    ]
    names = [case.name for case in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DefinitionError(f"Two cases are called {twice!r}; give each a name of its own.")
    return tuple(named)


def read_cases(path: str | Path) -> tuple[Case, ...]:
    """Read cases from a file: a JSON array of objects, or one object a line.

    The objects have the keys ``inputs``, ``expected`` and ``name``; none is required.

    Raises:
        DefinitionError: it is not that.
        OSError: it cannot be read, or is no regular file: links are not followed.
    """
    text = read_regular(path).decode("utf-8")
    if text.lstrip().startswith("["):
        rows: list[tuple[str, Any]] = [
            (f"{path}, item {number}", row) for number, row in enumerate(_parsed(text, str(path)), start=1)
        ]
    else:
        lines = [(f"{path}, line {number}", line) for number, line in enumerate(text.splitlines(), start=1)]
        rows = [(where, _parsed(line, where)) for where, line in lines if line.strip()]
    return tuple(_as_case(row, where) for where, row in rows)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{where}: no JSON: {error}") from None


def _as_case(row: object, where: str) -> Case:
    if isinstance(row, Case):
        case = row
    elif not isinstance(row, Mapping):
        raise DefinitionError(f"{where}: {row!r} is no case; give Case(inputs={{...}}) or such a mapping.")
    elif unknown := sorted(map(str, row.keys() - set(_KEYS))):
        raise DefinitionError(f"{where}: a case has no {', '.join(unknown)}; it has {', '.join(_KEYS)}.")
    else:
        case = Case(**row)
    inputs: Any = case.inputs
    if not isinstance(inputs, Mapping) or not all(isinstance(name, str) for name in inputs):
        raise DefinitionError(f"{where}: inputs={inputs!r}: give arguments by name, e.g. {{'n': 2}}.")
    if not isinstance(case.name, str | None):
        raise DefinitionError(f"{where}: name={case.name!r}: give a text.")
    return case
