"""The judgement on a value: whether it fits the annotation, the examples for these inputs, and the checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agex.agent.call.call import current_call
from agex.agent.call.host_errors import is_of_guest, message_of, tell_host
from agex.agent.call.terms import Check, Inputs, Terms, example_inputs
from agex.agent.rendering.output_text import cut_middle
from agex.contract import ContractError, Example, TaskSignature, describe_failure, got_instead, same_value
from agex.contract.real_types import numpy_number
from agex.errors import CheckError

__all__ = ["GOT_CHARS", "Acceptance"]

GOT_CHARS = 500
"""Characters of the value that a failed example shows."""

_ABOUT_THE_VALUE = (AssertionError, ValueError, TypeError)
"""Errors by which a check says that a value is wrong."""


class Acceptance:
    """Accepts the value of one call, or refuses it.

    Args:
        terms: the terms of the task.
        values: the inputs by name, as they are before any code runs: it may change them.
        inputs: the same, as checks get them.
    """

    def __init__(self, terms: Terms, values: Mapping[str, Any], inputs: Inputs) -> None:
        self._terms = terms
        self._inputs = inputs
        self._examples = [each for each in terms.examples if _is_of(each, terms.signature, values)]

    def accept(self, value: Any) -> Any:
        """Return *value* as the task's result, or raise what is wrong with it.

        Raises:
            ContractError: it does not fit the annotation.
            ValueError: it is not what an example has for these inputs, or does not pass a check.
            CheckError: a check failed itself.
        """
        checked = self._judged("the return annotation", lambda: self._terms.signature.check_result(value))
        for example in self._examples:
            got = got_instead(example, checked)
            if got is not None:
                failure = describe_failure(example, cut_middle(got, GOT_CHARS))
                hint = "\nThis call has no value; end the task with task_fail(message)."
                raise ValueError(f"{failure}{hint if example.error is not None else ''}")
        for check in self._terms.checks:
            self._pass(check, checked)
        return checked

    def _pass(self, check: Check, value: Any) -> None:
        name = getattr(check, "__name__", "check")
        verdict = self._judged(f"the check {name}", lambda: check(value, self._inputs))
        number = numpy_number(verdict)
        if verdict is not None and verdict is not True and number is not True:
            said = "not met" if verdict is False or number is False else verdict
            raise ValueError(f"the result does not pass {name}: {said}")

    def _judged(self, judge: str, verdict: Callable[[], Any]) -> Any:
        """Return a verdict on the value. A host judge that fails itself ends the run.

        An error of guest code that a check called goes to guest code.
        """
        try:
            return verdict()
        except (*_ABOUT_THE_VALUE, ContractError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            if is_of_guest(error):
                raise
            failed = CheckError(f"{judge} raised {type(error).__name__}: {message_of(error)}")
            failed.__cause__ = error
            tell_host(f"{judge} of a task", error)
        if (call := current_call()) is not None:
            call.note_fault(judge, failed)
        raise failed


def _is_of(example: Example, signature: TaskSignature, values: Mapping[str, Any]) -> bool:
    """Return whether an example is of a call with these very inputs."""
    inputs = example_inputs(example, signature)
    if inputs is None or inputs.keys() != values.keys():
        return False
    try:
        return all(same_value(values[name], inputs[name]) for name in inputs)
    except Exception:  # noqa: BLE001 - an object that cannot be compared is none that an example names
        return False
