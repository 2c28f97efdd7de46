from __future__ import annotations

import pytest

from agex.errors import DefinitionError
from agex.testing import ScriptedModel
from agex.tinyagent import ExecutionLimits, TinyCodeAgent, tool

ANSWER = "```python\nfinal_answer(1)\n```"


@tool
def calculate(x: int, y: int = 2) -> int:
    """Add two numbers.

    Both are whole.
    """
    return x + y


def system(model=None, **settings):
    model = model or ScriptedModel([ANSWER])
    TinyCodeAgent(model=model, **settings).run_sync("the task")
    return model.requests[0].messages[0].content


def test_the_prompt_shows_tools_with_signature_and_docstring():
    text = system(tools=[calculate])
    assert (
        'def calculate(x: int, y: int = 2) -> int:\n    """Add two numbers.\n\n    Both are whole."""' in text
    )


@pytest.mark.parametrize(
    "text",
    [
        "final_answer(value)",
        "verified_by=",
        "uncertain(message), explore(message), commit(message)",
        "store(name, value), recall(name, default=None), observe(text), fail(text)",
        "one block that opens with ```python",
        "A step may run 12.5 seconds and show 4,000 bytes",
        "You have 4 steps",
        "Modules you can import: pandas, numpy, abc, argparse",
        "open(path) reads a file of the working directory",
    ],
)
def test_the_prompt_tells_the_rules_the_helpers_the_imports_and_the_limits(text):
    pytest.importorskip("pandas", reason="the extra `test` has pandas")
    limits = ExecutionLimits(timeout_seconds=12.5, max_output_bytes=4_000, max_steps=4)
    told = system(limits=limits, extra_imports=["pandas", "numpy"])
    assert text in told
    assert "Tools, to be called by name" not in told


def test_every_name_that_the_prompt_tells_of_is_there():
    code = """
functions = [final_answer, uncertain, explore, commit, store, recall, observe, fail, help, dir, open]
methods = [memory.store, memory.recall, memory.observe, memory.fail]
final_answer("all" if all(map(callable, functions + methods)) else "not all")
"""
    assert TinyCodeAgent(model=ScriptedModel([f"```python\n{code}\n```"])).run_sync("a") == "all"


def test_without_a_working_directory_there_are_no_files():
    model = ScriptedModel(["```python\nopen('x')\n```", ANSWER])
    assert "There are no files" in system(model, working_directory=None)
    assert "this sandbox has no file system" in model.requests[1].messages[-1].content


def test_a_model_with_tool_calls_is_told_of_both_ways_to_answer():
    told = system(ScriptedModel([ANSWER], tools=True))
    assert "Call python_action with the code, or reply with the code in one ```python block." in told


def test_the_suffix_stands_at_the_end():
    assert system(system_suffix="Speak like a {pirate}.").endswith("\n\nSpeak like a {pirate}.")


def test_a_prompt_file_takes_the_place_of_the_rules(tmp_path):
    file = tmp_path / "own.prompt"
    file.write_text("My rules.\n\n{helpers}\n\nMy end, {helper} and {}.\n", encoding="utf-8")
    told = system(prompt_file=file, tools=[calculate], system_suffix="And more.")
    assert told.startswith("My rules.\n\nNames in your code\n- final_answer(value)")
    assert told.endswith("My end, {helper} and {}.\n\nAnd more.")
    assert "def calculate" in told
    assert "You solve a task" not in told


def test_a_prompt_file_without_the_place_has_the_names_behind_it(tmp_path):
    file = tmp_path / "own.txt"
    file.write_text("My rules.", encoding="utf-8")
    assert system(prompt_file=str(file)).startswith("My rules.\n\nNames in your code")


def test_a_missing_prompt_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.md"):
        TinyCodeAgent(prompt_file=tmp_path / "nowhere.md")


def test_an_empty_prompt_file_is_an_error(tmp_path):
    (tmp_path / "empty.md").write_text(" \n", encoding="utf-8")
    with pytest.raises(DefinitionError, match="is empty"):
        TinyCodeAgent(prompt_file=tmp_path / "empty.md")


def test_a_small_model_is_told_little_and_shown_its_last_step_only():
    model = ScriptedModel(["1 / 0", "x = [1][3]", "final_answer(1)"], style="completion")
    one = TinyCodeAgent(model=model, tools=[calculate], extra_imports=["math"])
    assert one.run_sync("Add 1 and 2") == "1"
    first, _, last = model.requests
    assert len(str(first)) < 600
    assert "calculate(x: int, y: int = 2) -> int  # Add two numbers." in str(first)
    assert first.prefill == "```python\n"
    assert [message.role for message in last.messages] == ["system", "user", "assistant", "user"]
    assert "IndexError" in str(last)
    assert "ZeroDivisionError" not in str(last)
