from __future__ import annotations

import asyncio

import pytest

from agex.testing import ScriptedModel
from agex.tinyagent import PythonExecutor, Signal, SignalType, TinyCodeAgent, commit, explore, tool, uncertain


def test_the_signals_of_the_documentation():
    code = """
uncertain("Data format is unclear")
explore("Testing CSV parsing assumptions")
commit("Final answer: 42")
went_on = True
"""
    result = PythonExecutor().run(code)
    assert [str(signal) for signal in result.signals] == [
        "[UNCERTAIN] Data format is unclear",
        "[EXPLORE] Testing CSV parsing assumptions",
        "[COMMIT] Final answer: 42",
    ]
    assert (result.is_final, result.namespace["went_on"]) == (False, True)


def test_a_signal_outside_of_a_run_is_made_and_collected_by_nobody():
    signal = explore("something")
    assert signal == Signal(SignalType.EXPLORE, "something")
    assert (signal.step, str(signal)) == (0, "[EXPLORE] something")
    assert (uncertain("x").signal_type, commit("x").signal_type) == (SignalType.UNCERTAIN, SignalType.COMMIT)


def test_a_tool_can_signal_for_the_run_that_calls_it():
    @tool
    def look() -> None:
        """Look."""
        uncertain("from the host")

    result = PythonExecutor(tools=[look]).run("look()")
    assert [signal.message for signal in result.signals] == ["from the host"]


async def test_runs_at_the_same_time_have_their_own_signals():
    def answer(messages):
        return f"```python\nuncertain('{messages[1].content}')\nfinal_answer(1)\n```"

    one = TinyCodeAgent(model=ScriptedModel(answer))
    results = await asyncio.gather(*(one.run(f"task {n}", return_result=True) for n in range(10)))
    assert [[s.message for s in result.signals] for result in results] == [[f"task {n}"] for n in range(10)]


def test_each_signal_has_its_step_and_time():
    one = TinyCodeAgent(
        model=ScriptedModel(
            ["```python\nexplore('a')\n```", "```python\nexplore('b')\nexplore('c')\nfinal_answer(1)\n```"]
        )
    )
    signals = one.run_sync("a", return_result=True).signals
    assert [(signal.message, signal.step) for signal in signals] == [("a", 1), ("b", 2), ("c", 2)]
    assert sorted(signals, key=lambda signal: signal.timestamp) == list(signals)


@pytest.mark.parametrize("call", ["uncertain(1)", "explore(None)", "commit(['x'])"])
def test_a_signal_is_a_text(call):
    result = PythonExecutor().run(call)
    assert "takes a text, not" in result.error
    assert result.signals == ()


def test_a_signal_of_a_kind_of_text_of_the_guests_is_a_plain_one():
    result = PythonExecutor().run(
        "class Odd(str):\n    def __getitem__(self, i): return self\nuncertain(Odd('x'))"
    )
    assert [type(signal.message) for signal in result.signals] == [str]


def test_signals_are_bounded_in_length_and_number():
    result = PythonExecutor().run("uncertain('x' * 100_000)\nfor i in range(10_000): explore('y')")
    assert len(result.signals) == 1_000
    assert len(result.signals[0].message) == 2_000
    assert result.error == "RuntimeError: 1000 signals were given already; go on without them"


def test_signals_of_a_failing_step_are_kept():
    assert [s.message for s in PythonExecutor().run("explore('a')\n1 / 0").signals] == ["a"]
