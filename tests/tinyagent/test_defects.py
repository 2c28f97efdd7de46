"""What was broken in the system that this room takes after: each is a test of how it is now."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agex.testing import ScriptedModel
from agex.tinyagent import (
    ExecutionLimits,
    ExecutionTimeout,
    MemoryManager,
    PythonExecutor,
    SignalType,
    StepLimitReached,
    TaskStep,
    TinyCodeAgent,
    keep_last_n_steps,
    tool,
)

SECRET = "the-secret"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def block(code):
    return f"```python\n{code}\n```"


def agent(*codes, **settings):
    model = ScriptedModel([block(code) for code in codes])
    return TinyCodeAgent(model=model, **settings), model


# 1. The interpreter's class tree.


def test_it_denies_the_walk_to_all_classes():
    result = PythonExecutor().run("leak = ().__class__.__base__.__subclasses__()")
    assert (result.success, result.namespace) == (False, {})
    assert "SandboxSyntaxError" in result.error


# 2. The globals of a tool.


@pytest.mark.parametrize(
    "code",
    [
        "leak = add.__globals__['SECRET']",
        "leak = getattr(add, '__glo' + 'bals__')",
        "leak = '{0.__globals__}'.format(add)",
        "leak = add.__closure__[0].cell_contents.fn",
        "leak = add.__wrapped__",
        "leak = add.fn",
        "import operator\nleak = operator.attrgetter('__globals__')(add)",
        "match add:\n    case object(__globals__=leak): pass",
    ],
)
def test_it_denies_what_lies_behind_a_tool(code):
    result = PythonExecutor(tools=[add]).run(code)
    assert not result.success
    assert SECRET not in str(result.namespace) + result.output
    assert "leak" not in result.namespace


# 3. The guest edits its own policy.


@pytest.mark.parametrize(
    "name", ["final_answer", "store", "memory.store", "uncertain", "help", "open", "print"]
)
def test_it_denies_the_owner_of_a_helper(name):
    executor = PythonExecutor()
    result = executor.run(f"leak = {name}.__self__")
    assert "leak" not in result.namespace
    assert not result.success
    again = executor.run("import os")
    assert again.error.startswith("SandboxImportError")


# 4. A stale answer.


def test_a_second_run_gives_its_own_answer():
    one, _ = agent("final_answer('first')", "x = 1", "final_answer('second')")
    assert one.run_sync("a") == "first"
    assert one.run_sync("b") == "second"


def test_the_step_ends_where_the_answer_is_given():
    one, _ = agent("final_answer(1)\n1 / 0")
    assert one.run_sync("a", return_result=True).final_answer.value == 1


def test_an_answer_is_not_kept_from_a_step_that_ended_before_it():
    one, model = agent("1 / 0\nfinal_answer(1)", "x = 2", "final_answer(x)")
    assert one.run_sync("a") == "2"
    assert len(model.requests) == 3


# 5. A timeout that the code swallows, that only works on the main thread, that blocks the event loop.

SWALLOWS = {
    "bare except": "while True:\n    try:\n        while True: pass\n    except: pass",
    "BaseException": "try:\n    while True: pass\nexcept BaseException: pass\nfinal_answer('went on')",
    "finally": "def f():\n    try:\n        while True: pass\n    finally:\n        return 1\nf()\n"
    "final_answer('went on')",
    "exit": "class C:\n    def __enter__(self): pass\n    def __exit__(self, *a): return True\n"
    "with C():\n    while True: pass\nfinal_answer('went on')",
}


@pytest.mark.parametrize("where", ["main thread", "other thread"])
@pytest.mark.parametrize("way", SWALLOWS)
def test_a_timeout_cannot_be_swallowed(way, where):
    results = []

    def work():
        results.append(PythonExecutor(limits=ExecutionLimits(timeout_seconds=0.2)).run(SWALLOWS[way]))

    if where == "main thread":
        work()
    else:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    (result,) = results
    assert (result.timeout, result.is_final, type(result.exception)) == (True, False, ExecutionTimeout)
    assert result.exception.timeout_seconds == 0.2


async def test_the_event_loop_goes_on_while_code_runs():
    release = threading.Event()

    @tool
    def wait_for_the_loop() -> bool:
        """Wait until the event loop has done something."""
        return release.wait(30)

    async def elsewhere():
        release.set()

    one, _ = agent("final_answer(wait_for_the_loop())", tools=[wait_for_the_loop])
    answer, _ = await asyncio.gather(one.run("a"), elsewhere())
    assert answer == "True"


def test_the_model_is_told_that_time_was_up():
    limits = ExecutionLimits(timeout_seconds=0.2)
    one, model = agent("print('so far')\nwhile True: pass", "final_answer(1)", limits=limits)
    result = one.run_sync("a", return_result=True)
    seen = model.requests[1].messages[-1].content
    assert "so far" in seen
    assert "ExecutionTimeout: the code ran longer than 0.2 s" in seen
    assert 'File "<step 1>", line 2' in result.steps[0].error


# 6. The variables of one run in the next.


def test_variables_live_from_step_to_step_and_not_from_run_to_run():
    one, model = agent("x = 41", "final_answer(x + 1)", "final_answer(x)", "final_answer('no x')")
    assert one.run_sync("a") == "42"
    assert one.run_sync("b") == "no x"
    assert "NameError" in model.requests[-1].messages[-1].content


# 7. Output without bounds, and output that is lost.


def test_output_is_bounded_while_it_is_produced():
    limits = ExecutionLimits(max_output_bytes=1_000)
    result = PythonExecutor(limits=limits).run("for i in range(200_000): print('x' * 50)")
    assert result.success
    assert len(result.output.encode()) <= 1_000
    assert "[OUTPUT TRUNCATED]" in result.output


def test_what_was_printed_before_an_error_is_kept():
    one, model = agent("print('so far')\n[][0]", "final_answer(1)")
    result = one.run_sync("a", return_result=True)
    seen = model.requests[1].messages[-1].content
    assert "so far\nTraceback" in seen
    assert "    [][0]" in seen
    assert "IndexError: list index out of range" in seen
    assert (result.steps[0].output, "IndexError" in result.steps[0].error) == ("so far", True)


# 8. Braces in a prompt.


@pytest.mark.parametrize("braces", ['{"a": {}}', "{", "}", "{0}", "{name!r:>10}", "{{x}}"])
def test_braces_are_harmless_in_a_prompt_a_suffix_a_task_and_a_docstring(braces, tmp_path):
    def braced() -> str: ...

    braced.__doc__ = f"Give {braces}."
    prompt = tmp_path / "prompt.md"
    prompt.write_text(f"Answer like {braces} here.", encoding="utf-8")
    one, model = agent(
        "final_answer(1)", tools=[tool(braced)], prompt_file=prompt, system_suffix=f"And {braces} too."
    )
    one.run_sync(f"Do {braces} now.")
    sent = str(model.requests[0])
    for text in ("Answer like", "Give", "And", "Do"):
        assert f"{text} {braces}" in sent


# 9. Signals that vanish.


def test_signals_are_in_the_result_and_the_model_is_told_of_them():
    one, model = agent("uncertain('is it CSV?')", "commit('it is')\nfinal_answer(1)")
    result = one.run_sync("a", return_result=True)
    assert [(s.signal_type, s.message, s.step) for s in result.signals] == [
        (SignalType.UNCERTAIN, "is it CSV?", 1),
        (SignalType.COMMIT, "it is", 2),
    ]
    assert "uncertain(message), explore(message), commit(message)" in model.requests[0].messages[0].content
    assert "[UNCERTAIN] is it CSV?" in model.requests[1].messages[-1].content


# 10. Step numbers that begin anew after pruning.


def test_step_numbers_are_not_given_twice_after_pruning():
    manager = MemoryManager()
    for n in range(6):
        manager.add(TaskStep(task=str(n)) if n < 2 else TinyStep())
    manager.prune(keep_last_n_steps(1))
    manager.add(TinyStep())
    assert [step.step_number for step in manager.steps] == [0, 1, 5, 6]


def TinyStep():  # noqa: N802 - it reads as what it makes
    from agex.tinyagent import ActionStep

    return ActionStep(observation="seen")


# And those beside the numbered ones.


def test_an_agent_needs_no_tools():
    one, _ = agent("final_answer(sum(range(5)))", tools=[])
    assert one.run_sync("Add 0 to 4") == "10"


def test_the_answer_keeps_its_value_and_how_it_was_checked():
    one, _ = agent("final_answer({'mean': 2.5}, verified_by='by hand')")
    answer = one.run_sync("a", return_result=True).final_answer
    assert (answer.value, answer.text, answer.verified_by) == ({"mean": 2.5}, "{'mean': 2.5}", "by hand")
    assert answer.metadata == {"verified_by": "by hand"}


def test_running_out_of_steps_is_an_error_or_a_record_of_one():
    one, _ = agent("x = 1", "x = 2")
    with pytest.raises(StepLimitReached, match="No answer after 2 steps") as raised:
        one.run_sync("a", max_steps=2)
    assert (raised.value.steps_taken, raised.value.final_attempt_made) == (2, False)
    one, _ = agent("x = 1")
    result = one.run_sync("a", 1, return_result=True)
    assert (result.state, result.output, result.steps_taken) == ("step_limit_reached", "", 1)


def test_ordinary_python_works():
    code = """
class Shape:
    def area(self): raise NotImplementedError
class Square(Shape):
    def __init__(self, side): self.side = side
    @property
    def name(self): return f"{type(self).__name__} {self.side:.1f}"
    def area(self): return self.side ** 2
try:
    Shape().area()
except NotImplementedError as error:
    caught = type(error).__name__
letters = {k: v for k, v in zip("ab", [1, 2])}
final_answer((caught, Square(3).name, Square(3).area(), hex(255), bytes([1]), letters))
"""
    result = PythonExecutor().run(code)
    assert result.final_value == ("NotImplementedError", "Square 3.0", 9, "0xff", b"\x01", {"a": 1, "b": 2})


@pytest.mark.parametrize("fence", ["python", "py", "python3", ""])
def test_code_is_found_behind_any_usual_fence(fence):
    one = TinyCodeAgent(
        model=ScriptedModel([f"So:\n```{fence}\nx = '''\n```json\n'''\nfinal_answer(7)\n```"])
    )
    assert one.run_sync("a") == "7"


def test_several_blocks_are_run_in_order():
    one = TinyCodeAgent(model=ScriptedModel([f"{block('x = 1')}\nthen\n{block('final_answer(x + 1)')}"]))
    assert one.run_sync("a") == "2"
