"""The settings of an agent, checked once."""

from __future__ import annotations

import difflib
from enum import Enum
from typing import Any, Literal, TypeAlias, get_args

from agex.agent.call.budget import Budget
from agex.display import Shown
from agex.errors import DefinitionError
from agex.state import State

__all__ = ["VIRTUAL_FS", "AgentSettings", "Isolation", "Python", "require_isolation"]

Isolation: TypeAlias = Literal["none", "process", "kernel", "container"]
"""Where an agent's code runs."""

Python: TypeAlias = Literal["guarded", "full"]
"""Whether an agent's code is guarded, or is CPython's own with every installed package."""


class _Default(Enum):
    """A sentinel that is the same in every process."""

    VIRTUAL_FS = 0

    def __repr__(self) -> str:
        return "VIRTUAL_FS"


VIRTUAL_FS: Any = _Default.VIRTUAL_FS
"""The default ``fs``: a virtual workspace without a limit."""


class AgentSettings(Shown):
    """The settings that `Agent` documents, as attributes."""

    def __init__(
        self,
        *,
        name: str | None,
        primer: str | None,
        model: object,
        state: State | None,
        fs: Any,
        isolation: Isolation,
        python: Python | None,
        max_iterations: int,
        timeout_seconds: float,
        max_memory_mb: int | None,
        max_open_files: int | None,
        max_output_chars: int,
        max_actions: int,
        budget: Budget | None,
        llm_retries: int,
        llm_timeout: float,
        escalate_after: int,
    ) -> None:
        require_isolation(isolation)
        numbers = {
            "max_iterations": max_iterations,
            "timeout_seconds": timeout_seconds,
            "max_memory_mb": max_memory_mb,
            "max_open_files": max_open_files,
            "max_output_chars": max_output_chars,
            "max_actions": max_actions,
            "llm_retries": llm_retries,
            "llm_timeout": llm_timeout,
            "escalate_after": escalate_after,
        }
        for setting, value in numbers.items():
            may_be_none = setting in {"max_memory_mb", "max_open_files"}
            _require(
                _is_number(value) or (value is None and may_be_none), f"{setting}={value!r}: give a number."
            )
        _require(
            fs is VIRTUAL_FS or fs is None or hasattr(fs, "over"),
            f"fs={fs!r}: give connect_fs(type='virtual'), connect_fs(type='isolated', root=...) or None.",
        )
        _require(
            state is None or isinstance(state, State),
            f"state={state!r}: give Live(), Versioned(...) or None.",
        )
        _require(budget is None or isinstance(budget, Budget), f"budget={budget!r}: give Budget(tokens=...).")
        _require(max_iterations >= 1, f"max_iterations={max_iterations}: a task needs at least 1 turn.")
        _require(timeout_seconds > 0, f"timeout_seconds={timeout_seconds}: give more than 0 seconds.")
        _require(max_output_chars >= 200, f"max_output_chars={max_output_chars}: give at least 200.")
        _require(max_actions >= 1, f"max_actions={max_actions}: an answer has at least 1 action.")
        _require(llm_retries >= 0, f"llm_retries={llm_retries}: give 0 or more.")
        _require(llm_timeout > 0, f"llm_timeout={llm_timeout}: give more than 0 seconds.")
        _require(escalate_after >= 1, f"escalate_after={escalate_after}: give at least 1 turn.")
        _require(
            not isinstance(model, list | tuple) or (len(model) > 0 and None not in model),
            f"model={model!r}: a list names at least one model, the cheapest first.",
        )
        self.name = name or "agent"
        self.primer = primer
        self.model = tuple(model) if isinstance(model, list) else model
        self.state = state
        self.isolation: Isolation = isolation
        self.python: Python = _resolved(python, isolation, max_memory_mb)
        self.max_iterations = max_iterations
        self.timeout_seconds = timeout_seconds
        self.max_memory_mb = max_memory_mb
        self.max_open_files = max_open_files
        self.max_output_chars = max_output_chars
        self.max_actions = max_actions
        self.budget = budget
        self.llm_retries = llm_retries
        self.llm_timeout = llm_timeout
        self.escalate_after = escalate_after
        self._fs = fs


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise DefinitionError(message)


def require_isolation(isolation: Isolation) -> None:
    """Refuse a level that there is not, or that does not hold here.

    Raises:
        DefinitionError: it is no level.
        IsolationUnavailable: it does not hold here.
    """
    levels = get_args(Isolation)
    if isolation not in levels:
        close = difflib.get_close_matches(str(isolation), levels, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        raise DefinitionError(f"isolation={isolation!r} is none of: {', '.join(levels)}{meant}")
    if isolation != "none":
        from agex.isolation import executor_of

        executor_of(isolation)


def _resolved(python: Python | None, isolation: Isolation, memory_mb: int | None) -> Python:
    """Return the interpreter of an agent's code.

    Raises:
        DefinitionError: it is none, or one that the level or the limit of memory cannot have.
    """
    if python is None and isolation == "none":
        return "guarded"  # without the import of a room that such an agent does not use
    from agex.isolation import resolve_python

    return resolve_python(python, isolation, memory_mb)
