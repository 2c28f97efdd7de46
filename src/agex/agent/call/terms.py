"""The terms of a task: its signature, the examples and checks for its value, and the inputs of one call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, NoReturn, TypeAlias

from agex.agent.registration import Registration, is_async
from agex.contract import ContractError, Example, TaskSignature, preview, same_value
from agex.errors import DefinitionError, InputError

__all__ = [
    "Check",
    "Choose",
    "Definition",
    "Inputs",
    "Terms",
    "example_inputs",
    "is_meant",
    "require_samples",
]

Check: TypeAlias = Callable[[Any, Any], Any]
"""``check(value, inputs)``: returns None or True, or raises or returns a message."""


Choose: TypeAlias = Literal["first", "agree"] | Callable[[list[Any]], Any]
"""How one of several values is chosen: ``"first"``, ``"agree"``, or a function of them that returns one."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms that a task's value must satisfy."""

    signature: TaskSignature
    checks: tuple[Check, ...] = ()
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Definition:
    """The declaration of a task."""

    terms: Terms
    primer: str | None = None
    """Instructions beside the docstring."""
    setup: str | None = None
    """Code run before the first turn, in the same place."""
    reuse: bool = False
    """Keep the code that solved the task and try it first next time."""
    samples: int = 1
    """Runs side by side, of which one is chosen."""
    choose: Choose = "first"
    """How it is chosen."""
    solution: str | None = None
    """A function of the host that is tried first, as ``package.module:function``."""
    fallback: bool = True
    """Whether the model is asked where that does not solve a call."""


class Inputs(SimpleNamespace):
    """The inputs as attributes: ``inputs.x`` or ``inputs["x"]`` is the argument for ``x``. Read-only."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"inputs is read-only; bind a variable instead: {name} = ...")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("inputs is read-only")

    def __getitem__(self, name: str) -> Any:
        """Return the input *name*, as ``inputs.name`` does."""
        try:
            return vars(self)[name]
        except KeyError:
            raise KeyError(f"no input is named {name!r}; there are: {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(vars(self))

    def __repr__(self) -> str:
        return f"inputs({', '.join(f'{name}={preview(value, 80)}' for name, value in vars(self).items())})"


def require_samples(samples: object, choose: object) -> None:
    """Refuse a number of samples, or a choice among them, that there is not.

    Raises:
        DefinitionError: with the right form.
    """
    if type(samples) is not int or samples < 1:
        raise DefinitionError(f"samples={samples!r}: give a number of runs, 1 or more.")
    if isinstance(choose, str) and choose not in ("first", "agree"):
        raise DefinitionError(
            f"choose={choose!r}: give 'first', 'agree' or a function of the list of values."
        )
    if not isinstance(choose, str) and (not callable(choose) or is_async(choose)):
        raise DefinitionError(
            f"choose={choose!r}: give 'first', 'agree' or a function (def, not async) of the list of values."
        )


def example_inputs(example: Example, signature: TaskSignature) -> dict[str, Any] | None:
    """Return the inputs that an example calls the task with; None for a doctest of what the task refuses.

    Raises:
        DefinitionError: its arguments cannot be evaluated, or it was given to ``examples=`` and does not fit.
    """
    try:
        args, kwargs = example.arguments()
    except Exception as error:  # the docstring's own expressions may raise anything
        raise DefinitionError(
            f"the arguments of the example {example.source} raise {type(error).__name__}: {error}; "
            "correct it, or mark it # doctest: +SKIP"
        ) from error
    try:
        return signature.bind(args, kwargs)
    except InputError as error:
        if example.is_doctest:  # it may show what the task refuses
            return None
        raise DefinitionError(f"the example {example.source} does not fit the task: {error}") from error


def tried_examples(terms: Terms, registrations: Iterable[Registration]) -> tuple[Example, ...]:
    """Return the examples that a function for the task is called with before its value counts.

    Who writes a sentence does not ask for a call that acts on the world. So one that is stated in words is
    tried only where nothing but libraries is registered. It still binds a value for its inputs.
    """
    if all(map(_is_library, registrations)):
        return terms.examples
    return tuple(each for each in terms.examples if not each.is_stated)


def _is_library(registration: Registration) -> bool:
    from agex.sandbox.policy import catalog  # with the sandbox: not when agex is imported

    if registration.kind != "module" or registration.permissions:
        return False
    return catalog.find(registration.name.partition(".")[0]) is not None


def is_meant(example: Example, signature: TaskSignature) -> bool:
    """Return whether an example can be one of this task: what is stated in words fits its types, or is prose.

    Raises:
        Unresolved: an annotation cannot be resolved yet.
    """
    if not example.is_stated:
        return True
    outcome = ast.literal_eval(example.expected_text)
    try:
        return example_inputs(example, signature) is not None and same_value(
            signature.check_result(outcome), outcome
        )
    except ContractError:
        return False
