"""The execution of a task's actions: one session, the names in it, and the ways to end the task.

The steps of an action and the meaning of their results are written once, as a generator. A driver
carries the steps out in this thread or in another.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from agex._interpreter import threads
from agex.agent.call.acceptance import GOT_CHARS, Acceptance
from agex.agent.call.call import Call
from agex.agent.call.host_errors import HostFault
from agex.agent.call.terms import Inputs, Terms, example_inputs, tried_examples
from agex.agent.execution.block_checks import BlockChecks, hides_ending
from agex.agent.execution.guest_callable import assigns, plain_function, under_name
from agex.agent.execution.name_bindings import (
    RESERVED,
    UNBIND,
    InputNotes,
    awaits,
    definitions,
    may_bind_unsaid,
    refused_binding,
)
from agex.agent.execution.task_bridge import bridged
from agex.agent.execution.worker_threads import in_thread, or_cancelled, turn_of
from agex.agent.loop.loop import Clarification, Ending, Failure, Observation, Success
from agex.agent.prompt.listing import documentation, overview
from agex.agent.registration import Registration
from agex.agent.rendering.images import MOST_PICTURES, encoded
from agex.agent.rendering.output_text import cut_middle, encodable, exact, last_lines, result_text
from agex.contract import Example, describe_failure, outcome_matches, same_value, shown_repr
from agex.errors import CheckError, EvalError, TaskCancelled
from agex.isolation.wire.error_codec import WorkerLost
from agex.models.actions import Action, EditFileAction, PythonAction, TerminalAction, WriteFileAction
from agex.models.base import Image

if TYPE_CHECKING:
    from agex.agent.execution.task_workspace import TaskFiles
    from agex.isolation import GuestSession
    from agex.sandbox import Policy, Result

__all__ = ["Execution"]


@dataclass(frozen=True)
class RunCode:
    """Run source in the session."""

    source: str
    filename: str


@dataclass(frozen=True)
class CallGuest:
    """Call a function under the session's limits."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class RunScript:
    """Run shell commands over the session's files."""

    script: str


Step: TypeAlias = RunCode | CallGuest | RunScript
Steps: TypeAlias = "Generator[Step, Result, Observation]"


_TRIES = 3
"""How often code is run whose process somebody else kills."""


class _End(BaseException):
    """Ends the agent's code: the task has its ending."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


class _PlaceLost(Exception):
    """The process in which code ran was ended by somebody else; no code of it sees this."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.error)
        self.result = result


class Execution:
    """Where the code of one task call runs.

    Args:
        session: the sandbox session; it has the inputs and the state's variables by name.
        terms: what the value must satisfy.
        values: the inputs by name.
        call: the task call.
        registrations: what the agent's code may use.
        output_chars: bound of an observation's text.
        sees: whether the model can look at pictures.
        files: the workspace, if there is one.
        policy: the grants that its programs are checked against before they run; None for none.
        received: returns a value of guest code as the host gets it, where that is another one.

    Attributes:
        solution: the code that solved the task, once its own function did.
        is_built: whether the contract built the value out of another that this function returned.
    """

    def __init__(
        self,
        *,
        session: GuestSession,
        terms: Terms,
        values: Mapping[str, Any],
        call: Call,
        registrations: tuple[Registration, ...] = (),
        output_chars: int = 20_000,
        sees: bool = False,
        files: TaskFiles | None = None,
        policy: Policy | None = None,
        received: Callable[[Any], Any] | None = None,
    ) -> None:
        self.session = session
        self._received = received
        self.terms = terms
        self.call = call
        self.solution: str | None = None
        self.is_built = False
        self._worked: list[str] = []
        self._values = dict(values)
        self._inputs = Inputs(values)
        self._acceptance = Acceptance(terms, values, self._inputs)
        self._registrations = registrations
        self._output_chars = output_chars
        self._sees = sees
        self._images: list[Image] = []
        self._files = files
        self._notes = InputNotes(self._values, session.namespace)
        self._imports = session.modules
        self._known = self._variables()
        self._cache: Any = {}
        self._ran: dict[int, int] = {}
        self._lost = ""
        self._checks = BlockChecks.of(registrations, policy, None if files is None else files.has_module)
        self._ends_in_calls = False
        self._bind()

    @property
    def names(self) -> list[str]:
        """Variables, functions and classes that code has made."""
        return [name for name in self._variables() if name not in self._values]

    def run(self, action: Action, turn: int) -> Observation:
        """Carry out an action in this thread."""
        return self._with_files(self._perform(self._act(action, turn)))

    async def arun(self, action: Action, turn: int) -> Observation:
        """Carry out an action in a worker thread; on this event loop if it awaits."""
        return self._with_files(await self._aperform(self._act(action, turn)))

    def _with_files(self, observation: Observation) -> Observation:
        """Add what the action did to files."""
        changes = self._files.take_changes() if self._files is not None else None
        if self._files is None or not changes:
            return observation
        recap = self._files.recap() if observation.ending is None else ""
        return replace(observation, files=vars(changes), recap=recap)

    # -- names -----------------------------------------------------------------------------

    def _bind(self) -> None:
        view = self.call.view
        if view is not None:
            self._cache = view.packed_cache() if self.session.packs else view.cache
        names: dict[str, Any] = {
            "inputs": self._inputs,
            "cache": self._cache,
            "help": under_name("help", self._help),
            "view_image": under_name("view_image", self._view_image),
        }
        for end in (self._task_success, self._task_fail, self._task_clarify):
            name = end.__name__.removeprefix("_")
            names[name] = under_name(name, end, ends=True)
        for one in self._registrations:
            if one.kind == "task" or one.is_async:
                names[one.name] = bridged(one, self.session, self.call)
        for name, value in names.items():
            self.session.bind(name, value)

    def _task_success(self, value: Any = None) -> None:
        """End the task with its value."""
        self._require_ending("task_success")
        ending: BaseException
        try:
            ending = _End(Success(self._accept(value)))
        except CheckError as error:
            ending = HostFault(error)
        self.session.stop(ending)

    def _accept(self, value: Any) -> Any:
        return self._acceptance.accept(value if self._received is None else self._received(value))

    def _task_fail(self, message: str) -> None:
        """End the task: it cannot be done, for the reason given."""
        self._require_ending("task_fail")
        self.session.stop(_End(Failure(encodable(exact(str(message))))))

    def _task_clarify(self, message: str) -> None:
        """End the task: an answer is needed first."""
        self._require_ending("task_clarify")
        self.session.stop(_End(Clarification(encodable(exact(str(message))))))

    def _require_ending(self, name: str) -> None:
        if self._files is not None:
            self._files.require_not_in_terminal(name)

    def _help(self, thing: Any = None) -> None:
        """Print how to use a thing, or without one, the names of all that is registered."""
        names = self.session.builtins
        for one in self._registrations:
            if one.kind in ("function", "object") and names.get(one.name) is thing:
                thing = one.target  # for which something stands in that notes its errors, or journals calls
        about = overview(self._registrations) if thing is None else documentation(thing, self._registrations)
        sys.stdout.write(f"{about}\n")  # captured, while the agent's code runs

    def _view_image(self, picture: Any) -> None:
        """Look at a picture, a figure or an array of pixels: it is shown after this piece of code."""
        if not self._sees:
            raise RuntimeError(
                "The model that writes this code cannot look at pictures; compute or print what you need."
            )
        if len(self._images) == MOST_PICTURES:
            raise RuntimeError(f"At most {MOST_PICTURES} pictures are shown after one piece of code.")
        self._images.append(encoded(picture, self.session.paused))

    # -- what an action does ---------------------------------------------------------------

    def _act(self, action: Action, turn: int) -> Steps:
        if self.call.view is not None:
            self.call.view.act(self._known, self._cache)
        if not isinstance(action, PythonAction):
            return (yield from self._act_on_files(action))
        filename = self._filename(turn)
        refusal = refused_binding(action.code, filename) or self._refusal(action.code) or self._lost or None
        if refusal is not None:
            return Observation(text=refusal, failed=True, brief=refusal)
        imports = self._checks.missing_imports(action.code, self._bound)
        if imports:
            yield RunCode(imports, "<agex>")
        self._ends_in_calls = self._ends_in_calls or hides_ending(action.code)
        observation = yield from self._run_code(action, turn, filename)
        if observation.ending is not None:
            return observation
        rebound = self._notes.after(action.code, self._names)
        notes = [note for note in (rebound, (yield from self._unbind_reserved(action.code))) if note]
        return replace(observation, text="\n".join([observation.text, *notes])) if notes else observation

    def _refusal(self, code: str) -> str | None:
        self._lost = ""
        given = self.session.builtins
        return self._checks.refusal(code, self._bound, given.keys(), ends=self._ends_in_calls)

    def _bound(self) -> set[str]:
        """Return the names of the code's variables and of what it has imported."""
        try:
            return {*self._names(), *self._imports, *self.session.modules}
        except EvalError as lost:  # since the last action: what is not kept in a state is gone
            told = f"Nothing of this code was run.\nEvalError: {lost}"
            self._lost = told if self.call.view is None else ""
            raise

    def _unbind_reserved(self, code: str) -> Generator[Step, Result, str]:
        """Restore the reserved names, where the text of *code* does not show what it binds."""
        if not may_bind_unsaid(code):
            return ""
        result = yield RunCode(UNBIND, "<agex>")
        names = ", ".join(name for name in RESERVED if repr(name) in (result.echo or ""))
        return f"Note: {names} cannot be bound; what agex has under the name is there again." if names else ""

    def _names(self) -> Mapping[str, Any]:
        return self.session.namespace

    def _run_code(self, action: PythonAction, turn: int, filename: str) -> Steps:
        """Run the code of an action; again, where somebody killed its process after it made calls.

        The setup code is run again in any case: there is no model yet that could be told.
        """
        tries = 0
        while True:
            tries += 1
            self._images.clear()
            result = yield RunCode(action.code, filename)
            gone = self._gone(result)
            if tries == _TRIES or not was_killed(gone) or not self._may_run_again(turn):
                break
        if gone is not None:
            return self._seen(result, *self._made_calls(), failed=True)
        if result.stopped is not None:
            return self._stopped(result)
        if result.error is not None:
            return self._seen(result, failed=True)
        if turn:
            self._worked.append(action.code)
        return (yield from self._finished(action, turn, result))

    def _may_run_again(self, turn: int, after: int = 0) -> bool:
        """Return whether what was lost is run again; then its calls *after* the first ones are given back."""
        journal = self.call.journal
        return journal is not None and (journal.rewind(after) or (turn == 0 and not journal.made))

    def _finished(self, action: PythonAction, turn: int, result: Result) -> Steps:
        """Try to finish with the task's own function, if the code has defined it."""
        made = 0 if self.call.journal is None else self.call.journal.made
        tries = 0
        while True:
            tries += 1
            try:
                observation = yield from self._finish_once(action, result)
            except _PlaceLost as lost:
                if tries == _TRIES or not self._may_run_again(turn, made):
                    return self._seen(lost.result, *self._made_calls(), failed=True)
                continue
            if isinstance(observation.ending, Success):
                earlier = self._worked[:-1] if turn else self._worked
                self.solution = "\n".join([*map(definitions, earlier), action.code])
            return observation

    def _finish_once(self, action: PythonAction, result: Result) -> Steps:
        shown = copy.copy(result)
        try:
            function = self._own_function(action.code)
        except WorkerLost as lost:
            shown.error, shown.traceback = lost, f"EvalError: {lost}"
            raise _PlaceLost(shown) from lost
        if function is None:
            return self._seen(result)
        observation = yield from self._finish(function, result)
        gone = self._gone(shown)
        if was_killed(gone):
            raise _PlaceLost(shown)
        return observation if gone is None else self._seen(shown, *self._made_calls(), failed=True)

    def _made_calls(self) -> list[str]:
        """Return a note on the calls that were made by code whose process is gone."""
        made = [] if self.call.journal is None else self.call.journal.made_calls()
        return [f"Calls that were made before, and are not undone: {'; '.join(made)}."] if made else []

    def _own_function(self, code: str) -> Any:
        """Return the function of the task's own name that code has defined; None for none."""
        name = self.terms.signature.name
        function = self.session.look_up(name) if name in self.session.defined else None
        if function is None and assigns(code, name):
            assigned = self.session.look_up(name)
            function = assigned if callable(assigned) else None
        return function

    def _act_on_files(self, action: TerminalAction | WriteFileAction | EditFileAction) -> Steps:
        if self._files is None:
            raise TypeError(f"{action.kind} was not offered to the model and cannot be carried out")
        if isinstance(action, TerminalAction):
            result = yield RunScript(action.commands)
            try:
                self._write_back()
            except EvalError as lost:
                result.error, result.traceback = lost, f"EvalError: {lost}"
            if result.stopped is not None:
                return self._stopped(result)
            return self._files.shown(result, self._output_chars)
        return self._files.observed(action)

    def _filename(self, turn: int) -> str:
        """Return a name for the next action's source, which tracebacks show; each but once."""
        number = self._ran[turn] = self._ran.get(turn, 0) + 1
        again = f", action {number}" if number > 1 else ""
        return f"<turn {turn}{again}>" if turn else f"<before turn 1{again}>"

    def _stopped(self, result: Result) -> Observation:
        if isinstance(result.stopped, _End):
            shown = cut_middle(result.stdout.rstrip("\n"), self._output_chars)
            return Observation(text=shown, ending=result.stopped.ending, seconds=result.duration)
        assert result.stopped is not None
        raise _unwrapped(result.stopped)

    def _seen(self, result: Result, *notes: str, failed: bool = False) -> Observation:
        advice = self._checks.advice(result.traceback) if failed else ""
        text = result_text(result, self._output_chars, notes)
        text = f"{text}\n{advice}" if advice else text
        brief = "\n".join([*notes, *last_lines(result.traceback)]) if failed or notes else ""
        return Observation(
            text=text, images=tuple(self._images), failed=failed, brief=brief, seconds=result.duration
        )

    def _variables(self) -> dict[str, Any]:
        """Return the variables that are the code's own: no imports, no names of agex."""
        left_out = self._imports.keys() | RESERVED.keys()
        return {name: value for name, value in self._names().items() if name not in left_out}

    def _gone(self, result: Result) -> Exception | None:
        """Write variables back; return an error where the place is gone, and with it what the action did."""
        cause = None if result.error is None else result.error.__cause__
        lost = cause if isinstance(cause, WorkerLost) else None
        try:
            self._write_back()
        except EvalError as gone:
            result.error, result.traceback = gone, f"EvalError: {gone}"
            return lost or gone
        return lost

    def _write_back(self) -> None:
        view = self.call.view
        if view is not None:
            before, self._imports = self._imports, self.session.modules
            now = self._variables()
            view.write_back(self._known, now)
            view.write_imports(before, self._imports)
            self._known = now
            cache = self.session.kept.get("cache", self._cache)
            if cache is not self._cache:
                view.write_cache(cache)
                self._cache = cache

    # -- ending the task by its own function -----------------------------------------------

    def _finish(self, function: Any, result: Result) -> Steps:
        """Call the function that the agent wrote for the task, once the examples hold."""
        problem = self._unfit(function)
        if problem is not None:
            return self._seen(result, problem)
        for example in tried_examples(self.terms, self._registrations):
            failure = yield from self._try_example(function, example)
            if failure is not None:
                return self._seen(result, failure, failed=True)
        args, kwargs = self.terms.signature.arguments(self._values)
        outcome = require_place((yield CallGuest(function, args, kwargs)))
        if outcome.stopped is not None:
            return self._stopped(outcome)
        if outcome.error is not None:
            note = f"{self.terms.signature.name} was called with the inputs and raised:"
            return self._seen(outcome, note, failed=True)
        verdict = require_place((yield CallGuest(self._accept, (outcome.value,), {})))
        if verdict.stopped is not None:
            return self._stopped(verdict)
        if isinstance(verdict.error, CheckError):
            raise verdict.error
        if verdict.error is not None:
            return self._seen(verdict, f"{self.terms.signature.name} returned a wrong value:", failed=True)
        if verdict.value is not outcome.value:
            same = yield CallGuest(same_value, (outcome.value, verdict.value), {})
            self.is_built = same.value is not True
        printed = cut_middle(result.stdout + outcome.stdout, self._output_chars)
        return Observation(text=printed.rstrip("\n"), ending=Success(verdict.value), seconds=result.duration)

    def _unfit(self, function: Any) -> str | None:
        signature = self.terms.signature
        plain = plain_function(function)
        if plain is None:
            return (
                f"{signature.name} is not a plain function, so the task goes on. "
                f"To finish with it, define it with def, or call it: task_success({signature.name}(...))"
            )
        if not signature.accepts(function if type(function) is partial else plain):
            return (
                f"Your {signature.name} does not take the inputs of the task, so the task goes on. "
                f"To finish with it, define:\n{signature.render()}"
            )
        if inspect.iscoroutinefunction(plain) and not signature.is_async:
            return f"{signature.name} must be a plain function: write def instead of async def."
        return None

    def _try_example(self, function: Any, example: Example) -> Generator[Step, Result, str | None]:
        """Return how *function* fails the example, or None."""
        inputs = example_inputs(example, self.terms.signature)
        if inputs is None:
            return None
        args, kwargs = self.terms.signature.arguments(inputs)
        outcome = require_place((yield CallGuest(function, args, kwargs)))
        if isinstance(outcome.stopped, _End):
            return describe_failure(example, "no value: the call ended the task instead of returning")
        if outcome.stopped is not None:
            raise _unwrapped(outcome.stopped)
        if example.is_stated and isinstance(outcome.error, OSError):
            return None  # words may name a file that is not there
        if outcome.error is None:
            built = yield CallGuest(self.terms.signature.check_result, (outcome.value,), {})
            if built.error is None:
                outcome.value = built.value
            outcome = yield CallGuest(example.seen, (outcome.value,), {})
        shown = yield from self._repr(outcome)
        verdict = yield CallGuest(_matches, (example, outcome, shown), {})
        if verdict.value is True:
            return None
        where = "\n".join(last_lines(outcome.traceback)[:-1])
        return f"{describe_failure(example, cut_middle(shown, GOT_CHARS))}\n{where}".rstrip()

    def _repr(self, outcome: Result) -> Generator[Step, Result, str]:
        if outcome.error is not None:
            return "".join(last_lines(outcome.traceback, 1))
        shown = yield CallGuest(shown_repr, (outcome.value,), {})
        if not isinstance(shown.value, str):
            return f"<{type(outcome.value).__name__} without a repr>"
        return exact(shown.value)

    # -- carrying out steps ----------------------------------------------------------------

    def _perform(self, steps: Steps) -> Observation:
        try:
            step = next(steps)
            while True:
                step = steps.send(self._do(step))
        except StopIteration as stop:
            observation: Observation = stop.value
            return observation

    async def _aperform(self, steps: Steps) -> Observation:
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._ado(step))
        except StopIteration as stop:
            observation: Observation = stop.value
            return observation

    def _do(self, step: Step) -> Result:
        self.call.check()  # it may have been cancelled while it waited for its turn
        if isinstance(step, RunCode):
            return self.session.run(step.source, filename=step.filename)
        if isinstance(step, RunScript):
            assert self._files is not None
            return self._files.run_terminal(step.script)
        return self.session.call(step.function, *step.args, **step.kwargs)

    async def _ado(self, step: Step) -> Result:
        try:
            return await self._awaited(step)
        except KeyboardInterrupt as interrupt:
            if threads.CAN_START:
                raise
            # The page's interrupt: it ends this task, and not the event loop that the page lives on.
            raise TaskCancelled("The action was interrupted.") from interrupt

    async def _awaited(self, step: Step) -> Result:
        if isinstance(step, RunCode) and awaits(step.source):
            return await self.session.arun(step.source, filename=step.filename)
        if isinstance(step, CallGuest) and inspect.iscoroutinefunction(step.function):
            return await self.session.acall(step.function, *step.args, **step.kwargs)
        async with turn_of(self.call.depth):
            return await or_cancelled(in_thread(lambda: self._do(step)), self.call.cancel)


def _matches(example: Example, outcome: Result, shown: str) -> bool:
    return outcome_matches(example, value=outcome.value, error=outcome.error, value_repr=shown)


def was_killed(error: BaseException | None) -> bool:
    """Return whether an error says that somebody else ended the process of guest code."""
    found = (error, None if error is None else error.__cause__)
    return any(isinstance(each, WorkerLost) and each.was_killed for each in found)


def require_place(result: Result) -> Result:
    """Return a result of a call of guest code.

    Raises:
        _PlaceLost: its process was killed in the call.
    """
    if was_killed(result.error):
        raise _PlaceLost(result)
    return result


def _unwrapped(stopped: BaseException) -> BaseException:
    return stopped.error if isinstance(stopped, HostFault) else stopped
