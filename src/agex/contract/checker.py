"""Annotations turned into checks: the table of typing forms."""

from __future__ import annotations

from typing import Any

from agex.contract.annotations import Scope
from agex.contract.forms import Forms
from agex.contract.mismatch import ContractError, Mismatch
from agex.contract.walk import Walk

__all__ = ["Checker"]


class Checker:
    """Checks values against one annotation, at full depth. Safe to share between threads.

    A value that fits comes back as the same object. Built anew is only what must be: a dict
    given for a model, a numpy number where a Python one is due, and the containers around.

    Args:
        annotation: any typing form, also as a string.
        scope: the names that strings and forward references in it may use.

    Raises:
        DefinitionError: the annotation cannot be resolved or checked.
    """

    def __init__(self, annotation: Any, *, scope: Scope | None = None) -> None:
        scope = scope or Scope()
        self.annotation = scope.resolve(annotation)
        self._check = Forms(scope).check_for(self.annotation)

    def check(self, value: Any, *, path: str = "result") -> Any:
        """Return *value*, or what had to be built from it.

        Raises:
            ContractError: it does not fit; the message has a line for each of the first
                five places, with path, expected type and what was found.
        """
        try:
            return self._run(value, Walk(keep_numbers=False))
        except Mismatch as mismatch:
            raise ContractError(mismatch.text(path)) from None

    def accept(self, value: Any) -> Any:
        """Like :meth:`check` for an input: numpy numbers stay as they are.

        Raises:
            Mismatch: it does not fit.
        """
        return self._run(value, Walk(keep_numbers=True))

    def _run(self, value: Any, walk: Walk) -> Any:
        try:
            return self._check(value, walk)
        except RecursionError:
            raise Mismatch.of("expected less nesting: too deep to be checked") from None
