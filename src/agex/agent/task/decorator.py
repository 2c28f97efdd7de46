"""Making a task of a function with an empty body."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from agex.agent.call.terms import Check, Choose, Definition, Terms, example_inputs, is_meant, require_samples
from agex.agent.registration import is_async
from agex.agent.task.host_solutions import require_address
from agex.agent.task.task import AnyTask, AsyncTask, Task
from agex.contract import (
    SchemaCheck,
    TaskSignature,
    Unresolved,
    doc_examples,
    given_examples,
    is_schema,
)
from agex.errors import DefinitionError

if TYPE_CHECKING:
    from agex.agent.base import AgentBase

__all__ = ["TASK_SETTINGS", "TaskDecorator", "locals_of_caller"]

P = ParamSpec("P")
R = TypeVar("R")


class TaskDecorator:
    """Makes tasks of functions, with the settings given."""

    def __init__(
        self,
        agent: AgentBase,
        *,
        primer: str | None = None,
        setup: str | None = None,
        checks: Iterable[Check] = (),
        examples: Iterable[object] = (),
        reuse: bool = False,
        samples: int = 1,
        choose: Choose = "first",
        solution: str | None = None,
        fallback: bool = True,
    ) -> None:
        require_samples(samples, choose)
        self._agent = agent
        self._primer = primer
        self._setup = setup
        self._checks = tuple(SchemaCheck(schema=each) if is_schema(each) else each for each in checks)
        self._examples = tuple(examples)
        self._reuse = reuse
        self._samples = samples
        self._choose: Choose = choose
        require_address(solution, fallback=fallback)
        self._solution = solution
        self._fallback = fallback

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...

    def __call__(self, function: Any, /) -> Any:
        return self.define(function, locals_of_caller(inspect.currentframe()))

    def define(self, function: object, localns: Mapping[str, Any]) -> AnyTask[Any, Any]:
        """Make a task of *function*, whose annotations may use the names in *localns*."""
        plain = _require_plain_function(function)
        signature = TaskSignature.of(plain, localns=localns)
        for check in self._checks:
            _require_check(check)
        examples = doc_examples(signature.doc, signature.name) + given_examples(
            self._examples, signature.name
        )
        with contextlib.suppress(Unresolved):  # then the first call tells
            for example in examples:
                example_inputs(example, signature)
            examples = tuple(each for each in examples if is_meant(each, signature))
        terms = Terms(
            signature=signature,
            checks=self._checks,
            examples=examples,
        )
        definition = Definition(
            terms=terms,
            primer=self._primer,
            setup=self._setup,
            reuse=self._reuse,
            samples=self._samples,
            choose=self._choose,
            solution=self._solution,
            fallback=self._fallback,
        )
        kind = AsyncTask if signature.is_async else Task
        task: AnyTask[Any, Any] = kind(self._agent, plain, definition)
        return task


TASK_SETTINGS = tuple(inspect.signature(TaskDecorator).parameters)[1:]
"""Keywords of ``agent.task``."""


def locals_of_caller(frame: FrameType | None) -> Mapping[str, Any]:
    """Return the locals of the frame that called *frame*: annotations may name what is defined there."""
    return frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}


def _require_plain_function(function: object) -> FunctionType:
    if isinstance(function, AnyTask):
        raise DefinitionError(f"{function.__name__!r} is a task already; one function is one agent's task.")
    if not isinstance(function, FunctionType):
        raise DefinitionError(f"agent.task takes a function with an empty body, not {function!r}.")
    owner = function.__qualname__.rpartition(".")[0]
    if owner and not owner.endswith("<locals>"):
        raise DefinitionError(
            f"{function.__qualname__!r} is a method; a task is a plain function. Define it at the top level "
            "of the module and pass the object as an argument."
        )
    return function


def _require_check(check: object) -> None:
    if not callable(check):
        raise DefinitionError(f"checks takes functions f(value, inputs), not {check!r}.")
    if is_async(check):
        name = getattr(check, "__name__", type(check).__name__)
        raise DefinitionError(f"The check {name!r} is async; write it with def.")
    try:
        inspect.signature(check).bind(None, None)
    except TypeError as error:
        name = getattr(check, "__name__", type(check).__name__)
        raise DefinitionError(f"The check {name!r} is called as {name}(value, inputs): {error}.") from error
    except ValueError:  # a builtin need not say what it takes
        return
