"""Reasoning that comes as text is never executed, and an answer that talks about its markers is not eaten."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agex import Agent
from agex.models.actions import python_action, write_file
from agex.models.local import _holds_a_whole_block  # pyright: ignore[reportPrivateUsage]
from agex.models.parser import parse_text
from agex.models.reasoning import spoken
from agex.tinyagent import TinyCodeAgent

DRAFT = "```python\ntask_success(n + 2)\n```"
ANSWER = "```python\ntask_success(n * 2)\n```"
RIGHT = (python_action("task_success(n * 2)"),)

PAIRS = {
    "think": ("<think>", "</think>"),
    "thinking": ("<thinking>", "</thinking>"),
    "reasoning": ("<reasoning>", "</reasoning>"),
    "thought": ("<thought>", "</thought>"),
    "reflection": ("<reflection>", "</reflection>"),
    "scratchpad": ("<scratchpad>", "</scratchpad>"),
    "analysis": ("<analysis>", "</analysis>"),
    "capitals": ("<Think>", "</Think>"),
    "escaped": ("&lt;think&gt;", "&lt;/think&gt;"),
    "attributes": ('<think effort="high">', "</think>"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "Seed": ("<seed:think>", "</seed:think>"),
    "Claude in text": ("<thinking>", "</thinking>"),
    "LongCat": ("<longcat_think>", "</longcat_think>"),
    "Command": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "Sky-T1": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "Gemma": ("<|channel>thought\n", "<channel|>"),
    "MedGemma": ("<unused94>thought\n", "<unused95>"),
    "Solar": ("<|think|>", "<|end|>"),
    "gpt-oss": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "Granite": ("Here is my thought process:", "Here is my response:"),
    "Granite, short": ("Here's my thought process:", "Here's my response:"),
    "gpt-oss without its special tokens": ("analysis", "assistantfinal"),
    "Open WebUI": ('<details type="reasoning" done="true">', "</details>"),
    "ERNIE": ("<think>", "</think>\n<response>"),
    "Hunyuan": ("<think>", "</think>\n<answer>"),
}


@pytest.mark.parametrize(("opening", "closing"), PAIRS.values(), ids=PAIRS.keys())
def test_what_stands_between_the_markers_of_a_family_is_not_run(opening: str, closing: str) -> None:
    assert parse_text(f"{opening}First:\n{DRAFT}\nNo.\n{closing}\n{ANSWER}").actions == RIGHT


ALONE = [
    name for name in PAIRS if name not in {"Solar", "gpt-oss", "Granite", "Granite, short", "Open WebUI"}
]


@pytest.mark.parametrize("name", [name for name in ALONE if "special tokens" not in name])
def test_a_closing_marker_whose_opening_was_in_the_prompt_ends_reasoning(name: str) -> None:
    assert parse_text(f"First:\n{DRAFT}\nNo.\n{PAIRS[name][1]}\n{ANSWER}").actions == RIGHT


@pytest.mark.parametrize("name", [name for name in PAIRS if "Granite" not in name and "special" not in name])
def test_behind_an_opening_that_is_never_closed_nothing_is_run(name: str) -> None:
    assert parse_text(f"Well.\n{PAIRS[name][0]}First:\n{DRAFT}\n").actions == ()


T, E = "<think>", "</think>"
SHAPES = {
    "two blocks of it": f"{T}a\n{DRAFT}\n{E}\n{T}b\n{DRAFT}\n{E}\n{ANSWER}",
    "two blocks, one closing": f"{T}a\n{DRAFT}\n{T}b\n{DRAFT}\n{E}\n{ANSWER}",
    "nested": f"{T}a {T}b{E}\n{DRAFT}\n{E}\n{ANSWER}",
    "two closings": f"a\n{DRAFT}\n{E}\nb\n{DRAFT}\n{E}\n{ANSWER}",
    "behind words": f"Sure.\n{T}\n{DRAFT}\n{E}\n{ANSWER}",
    "behind words on their line": f"Sure. {T}\n{DRAFT}\n{E} Done: {ANSWER}",
    "closed by another's marker": f"<thinking>\n{DRAFT}\n{E}\n{ANSWER}",
    "behind the answer": f"{ANSWER}\n{T}Or:\n{DRAFT}\n{E}",
    "behind the answer, unclosed": f"{ANSWER}\n{T}Or:\n{DRAFT}",
    "a draft left open": f"{T}\n```python\ntask_success(n + 2)\n{E}\n{ANSWER}",
    "a draft left open, without an opening": f"```python\ntask_success(n + 2)\n{E}\n{ANSWER}",
    "a closing on the draft's line": f"```python\ntask_success(n + 2){E}\n{ANSWER}",
    "a terminal's draft left open": f"```bash\nrm -r .\n{E}\n{ANSWER}",
    "quoted in reasoning": f"{T}I split at `{E}` then\n{DRAFT}\n{E}\n{ANSWER}",
    "in a string in reasoning": f'{T}\n```python\nx.split("{E}")\ntask_success(1)\n```\nNo{E}\n{ANSWER}',
    "windows line ends": f"{T}\n{DRAFT}\n{E}\n{ANSWER}".replace("\n", "\r\n"),
    "an answer without a fence": f"{T}\n{DRAFT}\n{E}\ntask_success(n * 2)",
    "an answer as a tool call": f"{T}\n{DRAFT}\n{E}\n"
    '<tool_call>{"name": "python_action", "arguments": {"code": "task_success(n * 2)"}}</tool_call>',
    "a tool call in reasoning": f'{T}<tool_call>{{"name": "python_action", "arguments": {{"code": "f()"}}}}'
    f"</tool_call>{E}\n{ANSWER}",
    "gpt-oss with a preamble": "<|channel|>analysis<|message|>a\n"
    + DRAFT
    + "<|end|><|start|>assistant<|channel|>"
    f"commentary<|message|>I do it.<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>",
    "gpt-oss, twice": "<|channel|>analysis<|message|>"
    + DRAFT
    + "<|end|><|start|>assistant<|channel|>analysis"
    f"<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
    "gpt-oss, a plain answer": "<|channel|>analysis<|message|>"
    + DRAFT
    + "<|end|><|start|>assistant<|channel|>final<|message|>task_success(n * 2)<|return|>",
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_reasoning_is_not_run_wherever_it_stands(text: str) -> None:
    assert parse_text(text).actions == RIGHT


def test_blocks_before_reasoning_are_the_answers() -> None:
    text = f"```python\nm = n\n```\n{T}\n{DRAFT}\n{E}\n{ANSWER}"
    assert parse_text(text).actions == (python_action("m = n"), *RIGHT)


ANSWERS = {
    "a string": 'task_success(text.split("</think>")[-1])',
    "both markers in a pattern": 're.sub("<think>.*?</think>", "", text)',
    "a comment": "f()  # drops <think>",
    "a docstring": 'def f(t):\n    """Drop it.\n\n    <think>\n    </think>\n    """\n    return t',
    "a long string with a marker on its own line": "t = '''\n</think>\n'''\nf(t)",
    "another family's": 'f("[THINK]", "<|channel|>analysis<|message|>", "<|im_end|>")',
    "an end marker": "f('<|im_end|>')",
    "a name in a comparison": "f(a <think> b)".replace("<think>", "< think >"),
}


@pytest.mark.parametrize("code", ANSWERS.values(), ids=ANSWERS.keys())
@pytest.mark.parametrize(
    "text", ["```python\n{}\n```", "I use `</think>`:\n```python\n{}\n```\nDone.", "{}", "```python\n{}"]
)
def test_an_answer_that_is_about_the_markers_stays_whole(text: str, code: str) -> None:
    assert parse_text(text.replace("{}", code)).actions == (python_action(code),)


def test_broken_code_that_quotes_a_marker_is_shown_as_it_is() -> None:
    code = 'x = text.split("</think>"\nf(x)'
    assert parse_text(f"```python\n{code}\n```").actions == (python_action(code),)


def test_a_written_file_keeps_its_markers() -> None:
    text = "```write_file path=prompt.md\nSay\n<think>\nwhat you think\n</think>\n```\n"
    assert parse_text(text).actions == (write_file("prompt.md", "Say\n<think>\nwhat you think\n</think>\n"),)


def test_granites_phrase_alone_is_prose() -> None:
    assert parse_text(f"Here is my thought process: I double it.\n{ANSWER}").actions == RIGHT


ENDS = [
    "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end|>", "</s>", "<end_of_turn>", "<|eom_id|>",
    "<|return|>",
    "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "[/INST]", "<eos>", "<turn|>",
]  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "text", ["```python\ntask_success(n * 2)\n{}", "```python\ntask_success(n * 2){}", ANSWER + "{}"]
)
def test_a_templates_end_marker_is_no_code(text: str, end: str) -> None:
    assert parse_text(text.replace("{}", end)).actions == RIGHT


@pytest.mark.parametrize(
    "end", ["<|im_end|>\n<|im_start|>user\n", "<end_of_turn>\n<start_of_turn>user\n", "<|user|>"]
)
def test_a_turn_that_the_model_plays_for_the_user_is_not_run(end: str) -> None:
    assert parse_text(f"{ANSWER}{end}Thanks:\n{DRAFT}").actions == RIGHT


@pytest.mark.parametrize(
    "start", ["<|im_start|>assistant\n", "<start_of_turn>model\n", "<|assistant|>", "<｜Assistant｜>"]
)  # fmt: skip
def test_a_templates_opening_is_no_end(start: str) -> None:
    assert parse_text(f"{start}{ANSWER}").actions == RIGHT


PIECES = [
    "<think>",
    "</think>",
    "<|end|>",
    "```python\n",
    "```\n",
    "f()\n",
    "'",
    "`",
    '"""',
    "> ",
    "<|channel|>",
]


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_what_is_spoken_was_said_in_that_order(pieces: list[str]) -> None:
    text = "".join(pieces)
    said = iter(text)
    assert all(sign in said for sign in spoken(text).replace("\n", ""))


@given(before=st.lists(st.sampled_from([DRAFT, E, "words", "`x`", "don't", "```python\nx = ("]), max_size=6))
def test_nothing_before_a_closing_marker_without_an_opening_is_run(before: list[str]) -> None:
    assert parse_text("\n".join([*before, E, ANSWER])).actions == RIGHT


def test_a_local_model_is_not_stopped_at_a_draft_in_its_reasoning() -> None:
    assert not _holds_a_whole_block(f"{T}\n{DRAFT}")
    assert _holds_a_whole_block(f"{T}\n{DRAFT}\n{E}\n{ANSWER}")


TEXT = f"First:\n{DRAFT}\nNo.\n{E}\n{ANSWER}"


def test_a_tasks_reasoning_is_not_run() -> None:
    agent = Agent(model=lambda messages: TEXT)

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    assert double(21) == 42


def test_a_tiny_agents_reasoning_is_not_run() -> None:
    text = TEXT.replace("task_success", "final_answer").replace("n ", "21 ")
    assert TinyCodeAgent(model=lambda messages: text).run_sync("Double 21.") == "42"


def test_an_answer_of_reasoning_alone_is_refused_with_what_to_change() -> None:
    seen: list[Any] = []

    def answer(messages: list[Any]) -> str:
        seen.append(messages[-1].content)
        return f"{T}\n{DRAFT}" if len(seen) == 1 else ANSWER

    agent = Agent(model=answer)

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    assert double(21) == 42
    assert "only reasoning" in seen[1]
