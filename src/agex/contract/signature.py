"""A task's signature: its inputs and its result."""

from __future__ import annotations

import contextlib
import copy
import difflib
import inspect
import textwrap
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from types import FunctionType
from typing import Any

from agex.contract.annotations import Scope, Unresolved, describe
from agex.contract.body import require_empty_body
from agex.contract.checker import Checker
from agex.contract.mismatch import Mismatch, Tally
from agex.contract.preview import short_repr
from agex.errors import DefinitionError, InputError

__all__ = ["TaskSignature"]

RESERVED = (
    *("state", "on_event", "on_token", "budget"),
    *("inputs", "cache", "task_success", "task_fail", "task_clarify"),
)
"""Parameter names a task cannot have: call-time keywords, and names that the agent's code never binds."""

_CONTAINERS = (list, dict, set, tuple, bytearray, deque)

_EMPTY = inspect.Parameter.empty
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_PLACED = (_POSITIONAL, _EITHER)
_ARGS = inspect.Parameter.VAR_POSITIONAL
_KWARGS = inspect.Parameter.VAR_KEYWORD


@dataclass(frozen=True, eq=False)
class TaskSignature:
    """The declaration of a task's function. Make one with :meth:`of`; safe to share."""

    function: FunctionType
    """The declared function; its body is empty."""
    signature: inspect.Signature
    """Its parameters, annotations as written."""
    scope: Scope = field(repr=False)
    """The names its annotations may use."""
    _checkers: dict[str, Checker] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, function: object, localns: Mapping[str, Any] | None = None) -> TaskSignature:
        """Read the signature of a task's function.

        Args:
            function: a plain function with an empty body.
            localns: the caller's frame locals, for classes defined inside a function.

        Raises:
            DefinitionError: the body is not empty, a parameter's name is taken, or an
                annotation is not valid. One that names something not defined yet is
                tried again at the first call, and raises there.
        """
        plain = require_empty_body(function)
        made = cls(plain, _signature(plain), Scope.of_function(plain, localns))
        made._require_free_names()
        for name in (*made.parameters, "return"):
            with contextlib.suppress(Unresolved):
                made.checker(name)
        return made

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def doc(self) -> str:
        """The docstring without its indentation; empty if there is none."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def is_async(self) -> bool:
        """Whether the task is declared with ``async def``."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters by name, in order."""
        return self.signature.parameters

    @property
    def has_return(self) -> bool:
        """Whether there is a return annotation (``-> None`` is one)."""
        return self.signature.return_annotation is not _EMPTY

    @property
    def return_annotation(self) -> Any:
        """The resolved return annotation; ``Any`` if there is none.

        Raises:
            DefinitionError: it cannot be resolved.
        """
        return self.checker("return").annotation

    def checker(self, name: str) -> Checker:
        """Return the checker of a parameter, or of the result for ``"return"``.

        Raises:
            DefinitionError: the annotation cannot be resolved.
        """
        if name not in self._checkers:
            self._checkers[name] = self._make_checker(name)
        return self._checkers[name]

    def _make_checker(self, name: str) -> Checker:
        written = self.signature.return_annotation if name == "return" else self.parameters[name].annotation
        try:
            return Checker(Any if written is _EMPTY else written, scope=self.scope)
        except DefinitionError as error:
            owner = "the return value" if name == "return" else f"parameter {name!r}"
            raise type(error)(f"task {self.name!r}, {owner}: {error}") from error

    def _require_free_names(self) -> None:
        if self.name in RESERVED:
            raise DefinitionError(f"a task cannot be named {self.name!r}, which agex uses itself; rename it.")
        for name in self.parameters:
            if name in RESERVED:
                raise DefinitionError(
                    f"task {self.name!r} cannot have a parameter named {name!r}: agex uses "
                    f"{', '.join(RESERVED)} itself. Rename it, e.g. `{name}_value`."
                )

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of a call by parameter name, defaults applied.

        Values are the caller's own objects; only a dict given for a model is built into it.
        A default that is a container, a record, an array or a table is handed out as a fresh copy.

        Raises:
            InputError: arguments are missing, unknown, or do not fit their annotations.
            DefinitionError: an annotation cannot be resolved.
        """
        try:
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            told = self._misspelt(kwargs) or error
            raise InputError(f"{self.name}(): {told}; it is declared as\n    {self.render()}") from None
        tally = Tally()
        inputs = {
            name: self._checked(name, given[name], tally) if name in given else self._default(name)
            for name in self.parameters
        }
        if tally.count:
            raise InputError(f"{self.name}(): {Mismatch(tally.problems, tally.count).text('')}")
        return inputs

    def _misspelt(self, kwargs: Mapping[str, Any]) -> str | None:
        """Return which keyword is no parameter, and which one was meant; None where all are parameters."""
        takes_any = any(each.kind is _KWARGS for each in self.parameters.values())
        unknown = next((name for name in kwargs if name not in self.parameters), None)
        if takes_any or unknown is None:
            return None
        close = difflib.get_close_matches(unknown, self.parameters, n=1)
        return f"takes no {unknown}={f', did you mean {close[0]}=' if close else ''}"

    def _checked(self, name: str, value: Any, tally: Tally) -> Any:
        checker, kind = self.checker(name), self.parameters[name].kind
        if kind is _ARGS:
            return tuple(_accept(checker, each, f"{name}[{i}]", tally) for i, each in enumerate(value))
        if kind is _KWARGS:
            return {key: _accept(checker, each, f"{name}[{key!r}]", tally) for key, each in value.items()}
        return _accept(checker, value, name, tally)

    def _default(self, name: str) -> Any:
        parameter = self.parameters[name]
        if parameter.kind is _ARGS:
            return ()
        if parameter.kind is _KWARGS:
            return {}
        return copy.deepcopy(parameter.default) if _is_mutable(parameter.default) else parameter.default

    def arguments(self, inputs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the inputs as ``(args, kwargs)`` for a function that this task accepts.

        Arguments are passed by name where possible, so that the order of parameters does not matter.
        """
        by_position = any(p.kind is _ARGS and inputs[n] for n, p in self.parameters.items())
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if parameter.kind is _ARGS:
                args.extend(inputs[name])
            elif parameter.kind is _KWARGS:
                kwargs.update(inputs[name])
            elif parameter.kind is _POSITIONAL or (by_position and parameter.kind is _EITHER):
                args.append(inputs[name])
            else:
                kwargs[name] = inputs[name]
        return tuple(args), kwargs

    def accepts(self, function: object) -> bool:
        """Return whether *function* can be called with this task's inputs, by names and kinds.

        It must have the parameters under their own names; more of its own need defaults.
        """
        if not callable(function):
            return False
        try:
            theirs = inspect.signature(function, follow_wrapped=False)
        except (TypeError, ValueError):
            return False
        return all(self._fits(theirs, inputs) for inputs in self._extremes())

    def _extremes(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return stand-ins for inputs: with and without something in ``*args`` and ``**kwargs``."""
        full: dict[Any, Any] = {_ARGS: (None,), _KWARGS: {"any_other_name": None}}
        empty: dict[Any, Any] = {_ARGS: (), _KWARGS: {}}
        kinds = [(name, p.kind) for name, p in self.parameters.items()]
        return {n: full.get(kind) for n, kind in kinds}, {n: empty.get(kind) for n, kind in kinds}

    def _fits(self, theirs: inspect.Signature, inputs: Mapping[str, Any]) -> bool:
        args, kwargs = self.arguments(inputs)
        try:
            theirs.bind(*args, **kwargs)
        except TypeError:
            return False
        # A named parameter that is passed by position must stand in the same place there.
        named = [n if p.kind is _EITHER else None for n, p in self.parameters.items() if p.kind in _PLACED]
        placed = [n for n, p in theirs.parameters.items() if p.kind in _PLACED]
        pairs = zip(named[: len(args)], placed, strict=False)
        return all(ours is None or ours == other for ours, other in pairs)

    def check_result(self, value: Any) -> Any:
        """Return *value* as the task's result: itself, or what had to be built from it.

        Raises:
            ContractError: it does not fit the return annotation.
            DefinitionError: the annotation cannot be resolved.
        """
        return self.checker("return").check(value)

    def render(self, *, doc: bool = False) -> str:
        """Write the signature as Python, e.g. ``def f(x: int = 3) -> list[str]:``.

        Args:
            doc: add the docstring below, indented.
        """
        parameters = [
            p.replace(
                annotation=_EMPTY if p.annotation is _EMPTY else _Text(describe(self._shown(p.annotation))),
                default=_EMPTY if p.default is _EMPTY else _Text(_default_text(p.default)),
            )
            for p in self.parameters.values()
        ]
        returned = f" -> {describe(self._shown(self.signature.return_annotation))}" if self.has_return else ""
        shown = str(inspect.Signature(parameters))
        line = f"{'async ' if self.is_async else ''}def {self.name}{shown}{returned}:"
        if not doc or not self.doc:
            return line
        return f"{line}\n{textwrap.indent(_docstring(self.doc), '    ')}"

    def _shown(self, annotation: Any) -> Any:
        try:
            return self.scope.resolve(annotation)
        except DefinitionError:
            return annotation


class _Text(str):
    """Text whose repr is itself, so that ``inspect`` writes it unquoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(function: FunctionType) -> inspect.Signature:
    try:
        return inspect.signature(function, follow_wrapped=False)
    except NameError as error:  # Python 3.14 evaluates annotations only when they are read.
        raise DefinitionError(f"task {function.__name__!r}: {error}") from error


def _accept(checker: Checker, value: Any, path: str, tally: Tally) -> Any:
    try:
        return checker.accept(value)
    except Mismatch as mismatch:
        tally.add(mismatch, path)
        return value


def _is_mutable(default: object) -> bool:
    """Return whether a default is data, copied for each call; a live object is shared, as in any function."""
    kind = type(default)
    return isinstance(default, _CONTAINERS) or is_dataclass(kind) or hasattr(kind, "__deepcopy__")


def _default_text(default: object) -> str:
    if isinstance(default, FunctionType | type):
        return default.__qualname__.rpartition("<locals>.")[2]
    text = short_repr(default, 60)
    return "..." if text.startswith("<") else text


def _docstring(doc: str) -> str:
    quoted = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    end = "\n" if "\n" in doc or doc.endswith('"') else ""
    return f'"""{quoted}{end}"""'
