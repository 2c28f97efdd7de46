"""The sides that are compared: the product in three forms, and the bare model in the same sandbox."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
from bench.tables.problem import HIDDEN_SEED, Problem

from agex import Agent, LLMFail, Run
from agex.agent.prompt.prompt import LEAST_PREVIEW, PREVIEW_CHARS
from agex.contract import preview
from agex.models import Message, Model, ModelError, PythonAction, Reply, Request
from agex.testing import ScriptedModel

__all__ = ["SIDES", "Settings", "bare_prompt", "solve"]

SIDES = ("bare", "product", "samples", "escalation")
SAMPLES = 3
ESCALATE_AFTER = 2
"""Failed turns, after which the stronger model is asked."""
SETUP = "import numpy as np\nimport pandas as pd"
"""Code that has been run for either side."""
SECONDS = 30.0
"""Of one action, on either side."""


class Settings:
    """How a side is run."""

    def __init__(self, side: str, model: Model, *, turns: int, strong: Model | None = None) -> None:
        self.side = side
        self.model = model
        self.turns = turns
        self.strong = strong


def solve(problem: Problem, settings: Settings) -> Run[Any]:
    """Return the run of one side on the data of the hidden seed.

    Raises:
        LLMFail: the model cannot be asked.
        TaskError: there is no value.
    """
    inputs = problem.make(HIDDEN_SEED)
    if settings.side == "bare":
        return _bare(problem, settings.model, inputs)
    model: Any = settings.model
    if settings.side == "escalation":
        model = [settings.model, settings.strong]
    agent = _agent(model, settings.turns)
    task = agent.task(checks=problem.checks, setup=SETUP)(problem.declaration())
    if settings.side == "samples":
        task = task.using(samples=SAMPLES)
    run: Run[Any] = task.run(**inputs)
    return run


def _agent(model: Any, turns: int) -> Agent:
    """Return an agent with the libraries of tables; both sides' code runs in its sandbox."""
    agent = Agent(
        name="tables",
        model=model,
        max_iterations=turns,
        timeout_seconds=SECONDS,
        escalate_after=ESCALATE_AFTER,
    )
    agent.module(pd, visibility="low")
    agent.module(np, visibility="low")
    return agent


# -- the bare model


def bare_prompt(problem: Problem, inputs: Mapping[str, Any]) -> str:
    """Return the only request: the function, and the same preview of its inputs that the product shows."""
    share = max(LEAST_PREVIEW, PREVIEW_CHARS // len(inputs))
    shown = "\n".join(
        f"{name}: {type(value).__name__} = {preview(value, share)}" for name, value in inputs.items()
    )
    return (
        "Complete this Python function. Answer with the whole function, and the imports that it needs, in "
        f"one ```python block.\n```python\nimport pandas as pd\n\n{problem.source}```\n"
        f"It is called with these values (abbreviated):\n{shown}\n"
    )


def _bare(problem: Problem, model: Model, inputs: Mapping[str, Any]) -> Run[Any]:
    """Ask once, and run the answer's function: no contract, no checks, no second turn."""
    try:
        reply = model.ask(Request(messages=(Message(role="user", content=bare_prompt(problem, inputs)),)))
    except ModelError as error:
        raise LLMFail(str(error), model.provider, model.name, 0) from error
    code = "\n".join(each.code for each in reply.actions if isinstance(each, PythonAction))
    arguments = ", ".join(f"{name}={name}" for name in inputs)
    action = PythonAction(code=f"{_definitions(code)}\ntask_success({problem.name}({arguments}))\n")
    agent = _agent(ScriptedModel([Reply(actions=(action,), usage=reply.usage)]), turns=1)
    run: Run[Any] = agent.task(setup=SETUP)(_untyped(tuple(inputs))).run(**inputs)
    return run


def _definitions(code: str) -> str:
    """Return imports, definitions and constants: calls that show it off are no part of the answer."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code
    kept = [
        each
        for each in tree.body
        if isinstance(each, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
        or (isinstance(each, ast.Assign | ast.AnnAssign) and not _calls(each))
    ]
    return "\n".join(map(ast.unparse, kept))


def _calls(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))


def _untyped(names: tuple[str, ...]) -> FunctionType:
    """Return an empty function of some parameters: what the bare model's function returns is not checked."""
    namespace: dict[str, Any] = {}
    exec(f"def answer({', '.join(names)}):\n    pass\n", namespace)  # noqa: S102 - names of ours
    made: FunctionType = namespace["answer"]
    return made
