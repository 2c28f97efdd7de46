"""Attacks on what this room adds to the sandbox: its helpers, its tools, its memory, its answers.

Stopped by: tinyagent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agex.errors import TaskFail
from agex.testing import ScriptedModel
from agex.tinyagent import AgentMemory, ExecutionLimits, PythonExecutor, TinyCodeAgent, tool

SECRET = "the-secret"


class Vault:
    """An object of the host with a private attribute."""

    def __init__(self) -> None:
        self._secret = SECRET


@tool
def vault() -> Any:
    """Give the vault."""
    return Vault()


@tool
def apply(f: Callable[..., Any], *args: Any) -> Any:
    """Call a function."""
    return f(*args)


@tool
def break_it() -> None:
    """Fail with a secret among the locals."""
    hidden = SECRET
    raise ValueError(len(hidden))


@tool
def break_task() -> None:
    """Fail as a task does."""
    error = TaskFail("no")
    error.run = SECRET
    raise error


ATTACKS = {
    "private attribute": "leak = vault()._secret",
    "private attribute by name": "leak = getattr(vault(), '_sec' + 'ret')",
    "private attribute by format": "leak = '{0._secret}'.format(vault())",
    "private attribute by a tool": "leak = apply(getattr, vault(), '_secret')",
    "private attribute by a sorting key": "leak = sorted([vault()], key=lambda v: v._secret)",
    "namespace of an object": "leak = vars(vault())",
    "globals of a tool": "leak = vault.__globals__",
    "globals of a helper": "leak = final_answer.__globals__",
    "globals of a method": "leak = memory.store.__func__.__globals__",
    "defaults of a helper": "leak = final_answer.__kwdefaults__",
    "closure of a tool": "leak = vault.__closure__",
    "signature of a tool": "leak = vault.__signature__",
    "module of a helper": "import sys\nleak = sys.modules[final_answer.__module__]",
    "frame of an error": "try: break_it()\nexcept ValueError as e: leak = e.__traceback__.tb_frame",
    "frame of an error by name": "try: break_it()\nexcept ValueError as e: t = e.__traceback__\n"
    "leak = getattr(t, 'tb_' + 'frame')",
    "the session by an answer in the way": "final_answer = 1\nleak = help.__globals__",
    "builtins": "leak = __builtins__",
    "a class by a tool": "leak = apply(type, 'X', (), {'__del__': print})",
    "a class by a tool and a metaclass": "class M(type): pass\nleak = apply(M, 'X', (), {'__del__': print})",
    "a class by a tool, by type.__call__": "leak = apply(type.__call__, type, 'X', (), {'__del__': print})",
    "a class by a tool over one of the host": "seen = []\n"
    "hook = {'__setattr__': lambda *said: seen.append(said)}\n"
    "try: apply(type, 'X', (type(vault()),), hook)()\nfinally: leak = seen or 0",
    "an enumeration by a tool": "import enum\nleak = apply(enum.Enum, 'E', {'A': 1, '__del__': print})",
    "import in a callback": "def f():\n    import os\n    return os\nleak = apply(f)",
    "import by a callback": "leak = apply(__import__, 'os')",
    "eval in a callback": "leak = apply(eval, 'vault()._secret')",
    "class over the memory": "class M(type(memory)):\n    def f(self): return self.variables\nleak = M().f()",
    "memory of the host": "leak = memory.variables",
    "memory, changed": "memory.store = lambda *a: None",
    "class of the memory, changed": "type(memory).store = lambda *a: None",
    "class of a signal, changed": "type(uncertain('x')).message = 1",
    "a signal, changed": "s = uncertain('x')\ns.message = 'y'",
    "the run of a task that failed": "try: break_task()\n"
    "except Exception as e: leak = e.__context__ or e.run or 0\nraise ValueError",
    "catching the end": "try: final_answer(1)\nexcept BaseException as e: leak = e",
}


@pytest.mark.parametrize("way", ATTACKS)
def test_it_denies_what_an_attacker_tries(way):
    memory = AgentMemory(variables={"note": SECRET})
    executor = PythonExecutor(tools=[vault, apply, break_it, break_task], memory=memory)
    result = executor.run(f"leak = 0\n{ATTACKS[way]}")
    assert not result.success or result.is_final
    assert result.namespace.get("leak", 0) == 0
    assert SECRET not in f"{result.output}{result.traceback}{result.error}"
    again = PythonExecutor(memory=memory).run("store('x', 1)\nfinal_answer(str(explore('y')))")
    assert (again.final_value, memory.variables["x"]) == ("[EXPLORE] y", 1)


HOSTILE_ANSWERS = {
    "class": "class Odd:\n    @property\n    def __class__(self): raise SystemExit\nfinal_answer(Odd())",
    "metaclass": "class M(type):\n    @property\n    def __name__(cls): raise SystemExit\n"
    "class Odd(metaclass=M):\n    def __str__(self): return 1 / 0\nfinal_answer(Odd())",
    "equality": "class Odd:\n    def __eq__(self, o): raise SystemExit\n    __hash__ = __ne__ = __eq__\n"
    "final_answer(Odd())",
    "repr": "class Odd:\n    def __repr__(self): raise SystemExit\nfinal_answer(Odd())",
    "truth": "class Odd:\n    def __bool__(self): raise SystemExit\nfinal_answer(Odd(), verified_by=Odd())",
    "error": "class Odd(ValueError):\n    def __str__(self): raise SystemExit\nraise Odd()",
    "signal": "class Odd(str):\n    def __str__(self): raise SystemExit\n"
    "uncertain(Odd('x'))\nfinal_answer(1)",
    "memory": "class Odd:\n    def __repr__(self): raise SystemExit\n    __len__ = __iter__ = __repr__\n"
    "store('odd', Odd())",
    "deep": "x = []\nfor i in range(100_000): x = [x]\nfinal_answer(x)",
    "endless text": "class Odd:\n    def __str__(self):\n        while True: pass\nfinal_answer(Odd())",
}


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("way", HOSTILE_ANSWERS)
def test_what_the_code_leaves_behind_does_nothing_to_the_host(way, verbose):
    replies = [f"```python\n{HOSTILE_ANSWERS[way]}\n```", "```python\nfinal_answer('second')\n```"]
    limits = ExecutionLimits(timeout_seconds=0.5)
    one = TinyCodeAgent(model=ScriptedModel(replies), limits=limits)
    result = one.run_sync("a", verbose=verbose, return_result=True)
    assert result.state == "completed"
    assert type(result.output) is str


def test_what_a_tool_calls_for_the_code_works_as_its_own():
    program = """
import dataclasses, enum, operator
class Point:
    x: int = 1
made = apply(type, "Named", (), {"x": 2})
final_answer([apply(dataclasses.dataclass, Point)().x, made.x, apply(operator.attrgetter("x"), made()),
              apply(enum.Enum, "Colour", "RED BLUE").RED.value])
"""
    assert PythonExecutor(tools=[apply]).run(program).final_value == [1, 2, 2, 1]
