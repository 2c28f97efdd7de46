"""Mismatches: the path, the expected type and the value found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from agex._interpreter.type_slots import name_of
from agex.contract.preview import short_repr

__all__ = ["ContractError", "Mismatch", "Problem", "Tally", "attribute", "item"]

SHOWN = 5
"""Problems told in one message: enough to see the pattern, short enough to read."""

_MISSING: Any = object()


class ContractError(TypeError):
    """A result does not fit the task's return annotation. This is what guest code sees."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One place that does not fit."""

    what: str
    """The problem, e.g. ``expected int``."""
    value: Any = _MISSING
    """The value found there; shown only when the message is written."""
    path: str = ""
    """From the checked value to the place, e.g. ``['a'][3].x``."""

    def text(self, root: str) -> str:
        """Write the problem as one line."""
        got = "" if self.value is _MISSING else f", got {_got(self.value)}"
        return f"{root}{self.path}: {self.what}{got}{self._advice()}"

    def _advice(self) -> str:
        """Name the conversion, where there is one way that everybody means."""
        for kind, conversions in _CONVERSIONS.items():
            if self.what.startswith(f"expected {kind}"):
                way = conversions.get(getattr(type(self.value), "__name__", ""))
                return f"; convert it with {way}" if way else ""
        return ""


_LISTED = ("dict_keys", "dict_values", "dict_items", "map", "filter", "zip", "range", "generator", "reversed")
_CONVERSIONS: dict[str, dict[str, str]] = {
    "datetime": {},
    "date": {"datetime": ".date()", "Timestamp": ".date()"},
    "dict": {"Series": ".to_dict()", "DataFrame": ".to_dict()"},
    "list": {
        "Series": ".tolist()",
        "Index": ".tolist()",
        "ndarray": ".tolist()",
        "DataFrame": '.to_dict("records")',
        **dict.fromkeys(_LISTED, "list()"),
    },
}
"""By the beginning of what is expected, longer ones first: type names and the call that makes it of them."""


def _got(value: object) -> str:
    if value is None:
        return "None"
    if type(value) is type:
        return f"the class {value.__name__}"
    text = short_repr(value)
    name = name_of(type(value))
    return text if text.startswith((f"{name}(", f"{name}.", "<", "np.")) else f"{name} {text}"


class Mismatch(Exception):
    """The problems of one value: the first few, and how many there are."""

    def __init__(self, problems: Iterable[Problem], count: int | None = None) -> None:
        self.problems = tuple(problems)[:SHOWN]
        self.count = len(self.problems) if count is None else count
        super().__init__()

    @classmethod
    def of(cls, what: str, value: Any = _MISSING, path: str = "") -> Mismatch:
        """Make a mismatch of one problem."""
        return cls((Problem(what=what, value=value, path=path),))

    def is_about(self, value: object) -> bool:
        """Return whether the value as a whole does not fit, rather than a part of it."""
        return all(problem.path == "" and problem.value is value for problem in self.problems)

    def text(self, root: str) -> str:
        """Write the message, one line a problem, paths starting at *root*."""
        lines = [problem.text(root) for problem in self.problems]
        if self.count > len(lines):
            lines.append(f"... and {self.count - len(lines)} more of {self.count} mismatches")
        return "\n".join(lines)


class Tally:
    """Gathers the mismatches of the parts of one value."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted."""
        return len(self.problems) >= SHOWN

    def add(self, mismatch: Mismatch, step: str = "") -> None:
        """Note the mismatch of the part at *step*."""
        self.count += mismatch.count
        if self.is_full:
            return
        for problem in mismatch.problems[: SHOWN - len(self.problems)]:
            self.problems.append(replace(problem, path=step + problem.path))

    def note(self, what: str, value: Any = _MISSING, path: str = "") -> None:
        """Note one problem."""
        self.add(Mismatch.of(what, value, path))

    def settle(self) -> None:
        """Raise the gathered problems, if there are any."""
        if self.count:
            raise Mismatch(self.problems, self.count)


def item(key: object) -> str:
    """Write the path step of an index or a key."""
    return f"[{short_repr(key, 40)}]"


def attribute(name: str) -> str:
    """Write the path step of an attribute."""
    return f".{name}"
