from __future__ import annotations

import threading
from types import FunctionType

import pytest

from agex.errors import DefinitionError, StepLimitReached, TaskCancelled
from agex.tinyagent import AgentMemory, ExecutionLimits, ExecutionTimeout, PythonExecutor, TrustLevel, tool


def run(code, **settings):
    return PythonExecutor(**settings).run(code)


def test_it_gives_what_was_printed_and_the_last_value():
    result = run("print('hello')\n1 + 1")
    assert (result.output, result.success, result.error, result.is_final) == ("hello\n2", True, None, False)


def test_variables_live_from_piece_to_piece():
    executor = PythonExecutor()
    executor.run("x = 1\ndef f(): return x + 1")
    assert executor.run("final_answer(f())").final_value == 2
    assert executor.run("y = x").namespace["y"] == 1


def test_two_executors_share_nothing():
    PythonExecutor().run("x = 1")
    assert "NameError" in run("x").error


def test_an_error_has_its_type_its_text_and_the_lines_it_came_from():
    result = run("def f():\n    raise ValueError('no\\nway')\nf()")
    assert result.error == "ValueError: no\nway"
    assert '  File "<step 1>", line 2, in f\n' in result.traceback
    assert type(result.exception) is ValueError


def test_an_error_in_the_syntax_has_its_line():
    result = run("x = 1\ny = = 2")
    assert result.error == "SyntaxError: invalid syntax"
    assert "y = = 2" in result.traceback
    assert "x" not in result.namespace


def test_what_the_code_calls_by_name_are_plain_functions_with_a_docstring():
    executor = PythonExecutor(tools=[tool(name="lookup")(_lookup)])
    names = "final_answer uncertain explore commit store recall observe fail help lookup".split()
    given = [executor.opened().builtins[name] for name in names]
    assert [type(each) for each in given] == [FunctionType] * len(names)
    assert [each.__name__.lstrip("_") for each in given] == names
    assert all(each.__doc__ for each in given)


def _lookup(name: str) -> str:
    """Look it up."""
    return name


def test_code_does_not_await():
    assert run("import asyncio\nawait asyncio.sleep(0)").error == "SyntaxError: 'await' outside function"


def test_the_extra_imports_are_allowed_and_no_others():
    assert run("import csv, math, json, collections, datetime").success
    assert run("import os").error.startswith("SandboxImportError: import of 'os' is not allowed")
    assert run("import xml.dom", extra_imports=["xml.dom"]).success


@pytest.mark.parametrize(
    ("names", "problem"),
    [(["no_such_module_x"], "cannot be imported: No module named"), (["not a name"], "cannot be imported"),
     ("pandas", r"Right: \['pandas'\]")],
)  # fmt: skip
def test_an_extra_import_that_cannot_be_is_said(names, problem):
    with pytest.raises(DefinitionError, match=problem):
        PythonExecutor(names).run("x = 1")


@pytest.mark.parametrize("level", [TrustLevel.LOCAL, "local"])
def test_the_trust_level_may_be_given_by_its_name(level):
    executor = PythonExecutor(trust_level=level)
    assert executor.trust_level is TrustLevel.LOCAL
    assert executor.run("x = 1").enforcement.isolation == "none"


def test_another_trust_level_is_refused():
    with pytest.raises(DefinitionError, match="'foo' is not a trust level; give one of 'local', 'isolated'"):
        PythonExecutor(trust_level="foo")


# -- limits


def test_the_limits_are_those_of_the_documentation():
    limits = ExecutionLimits()
    assert (limits.timeout_seconds, limits.max_output_bytes, limits.max_steps) == (30.0, 10_000, 100)


@pytest.mark.parametrize("name", ["timeout_seconds", "max_output_bytes", "max_steps", "max_memory_mb"])
def test_a_limit_leaves_something(name):
    with pytest.raises(DefinitionError, match=f"{name}=0"):
        ExecutionLimits(**{name: 0})


@pytest.mark.parametrize("size", [1, 20, 21, 25, 100])
@pytest.mark.parametrize("text", ["x" * 500, "ä" * 250, "\N{GRINNING FACE}" * 125, "\udc80" * 100])
def test_truncated_output_is_within_the_limit_in_bytes(size, text):
    cut, was_cut = ExecutionLimits(max_output_bytes=size).truncate_output(text)
    assert was_cut
    assert len(cut.encode()) <= size
    assert ("[OUTPUT TRUNCATED]" in cut) == (size > 20)


def test_short_output_is_left_alone():
    assert ExecutionLimits(max_output_bytes=3).truncate_output("abc") == ("abc", False)


def test_output_in_other_alphabets_is_bounded_in_bytes():
    result = run("print('ä' * 10_000)", limits=ExecutionLimits(max_output_bytes=1_000))
    assert len(result.output.encode()) <= 1_000
    assert "[OUTPUT TRUNCATED]" in result.output


def test_a_timeout_is_an_error_of_the_piece_of_code():
    result = run("print('so far')\nwhile True: pass", limits=ExecutionLimits(timeout_seconds=0.2))
    assert (result.timeout, result.success, result.output) == (True, False, "so far")
    assert result.error == "ExecutionTimeout: the code ran longer than 0.2 s; do less in one step"
    assert isinstance(result.exception, ExecutionTimeout)
    assert isinstance(result.exception, TimeoutError)


def test_an_error_that_the_code_makes_look_like_a_timeout_is_none():
    result = run("raise TimeoutError('the code ran longer than 1 s')")
    assert (result.timeout, result.error) == (False, "TimeoutError: the code ran longer than 1 s")


def test_it_runs_no_more_pieces_than_it_may():
    executor = PythonExecutor(limits=ExecutionLimits(max_steps=2))
    executor.run("x = 1")
    executor.run("1 / 0")
    with pytest.raises(StepLimitReached) as raised:
        executor.run("x = 3")
    assert raised.value.steps_taken == 2
    executor.reset()
    assert executor.run("x = 3").success


def test_memory_can_be_limited():
    result = run("b = bytearray(200_000_000)", limits=ExecutionLimits(max_memory_mb=50))
    assert result.error.startswith("EvalError: MemoryError")
    assert result.enforcement.memory


# -- inject, reset, kill


def test_what_was_injected_is_there_after_a_reset_and_variables_are_not():
    executor = PythonExecutor()
    executor.inject("data", [1, 2])
    assert executor.run("x = 1\nfinal_answer(data)").final_value == [1, 2]
    executor.reset()
    assert executor.run("final_answer(data)").final_value == [1, 2]
    assert "NameError" in executor.run("x").error


def test_what_is_injected_into_a_running_namespace_is_seen_by_its_functions():
    executor = PythonExecutor()
    executor.run("def f(): return data")
    executor.inject("data", 7)
    assert executor.run("final_answer(f())").final_value == 7


def test_an_answer_is_of_its_own_piece_of_code():
    executor = PythonExecutor()
    assert executor.run("final_answer(1)").is_final
    after = executor.run("x = 2")
    assert (after.is_final, after.final_value) == (False, None)


def test_kill_ends_the_code_that_runs_from_another_thread():
    running = threading.Event()

    @tool
    def started() -> None:
        """Say that the code runs."""
        running.set()

    executor = PythonExecutor(tools=[started])
    results = []
    thread = threading.Thread(target=lambda: results.append(executor.run("started()\nwhile True: pass")))
    thread.start()
    assert running.wait(30)
    executor.kill()
    thread.join(30)
    (result,) = results
    assert (result.error, result.timeout) == ("Killed: the code was ended by kill()", False)
    assert type(result.exception) is TaskCancelled
    assert executor.run("x = 1").success


def test_kill_without_running_code_does_nothing():
    executor = PythonExecutor()
    executor.kill()
    executor.run("x = 1")
    executor.kill()
    assert executor.run("final_answer(x)").final_value == 1


# -- answers


@pytest.mark.parametrize("code", ["[1, {'a': (2, 3)}]", "None", "lambda: 1", "object()", "range(3)"])
def test_an_answer_may_be_of_any_type(code):
    result = run(f"x = {code}\nfinal_answer(x)")
    assert result.is_final
    assert result.final_value is result.namespace["x"]
    assert result.answer.text == str(result.final_value)


def test_nothing_catches_the_end_that_an_answer_makes():
    code = (
        "try:\n    final_answer(1)\nexcept BaseException:\n    final_answer(2)\nfinally:\n    final_answer(3)"
    )
    assert run(code).final_value == 1


def test_an_answer_from_within_a_function_ends_the_piece_of_code():
    assert run("def f(x):\n    final_answer(x)\nfor i in range(5):\n    f(i)\n").final_value == 0


BAD_TEXTS = {
    "raises": ("raise ValueError('no text')", "ValueError: no text"),
    "is no text": ("return 3", "TypeError: __str__ returned non-string (type int)"),
    "does not end": ("while True: pass", "EvalError: TimeoutError: the code ran longer than 0.2 s"),
    "answers again": ("final_answer(2)", ""),
    "ends the program": ("raise SystemExit", "SandboxError: SystemExit is not available"),
}


@pytest.mark.parametrize("way", BAD_TEXTS)
def test_an_answer_whose_text_cannot_be_made_says_so(way):
    body, why = BAD_TEXTS[way]
    code = f"class Odd:\n    def __str__(self):\n        {body}\nfinal_answer(Odd())"
    result = run(code, limits=ExecutionLimits(timeout_seconds=0.2))
    assert result.is_final
    assert result.answer.text.startswith(f"<Odd whose text could not be made{': ' if why else ''}{why}")


def test_the_text_of_an_answer_is_a_plain_text():
    code = "class Loud(str):\n    def __add__(self, other): return 1 / 0\nfinal_answer(Loud('x'))"
    text = run(code).answer.text
    assert (type(text), text) == (str, "x")


def test_a_function_of_an_earlier_run_answers_for_the_run_that_calls_it():
    memory = AgentMemory()
    run("def done(x): final_answer(x)\nstore('done', done)", memory=memory)
    later = run("recall('done')(5)\nafter = 1", memory=memory)
    assert (later.final_value, "after" in later.namespace) == (5, False)


def test_an_answer_outside_of_a_run_is_an_error():
    function = run("def f(): final_answer(1)\nx = 1").namespace["f"]
    with pytest.raises(RuntimeError, match="none is going on"):
        function()
