"""What weak and strong models really send: one row a form, and what is read of it."""

from __future__ import annotations

import json

import pytest

from agex.models.actions import Action, python_action, terminal_action, write_file
from agex.models.parser import parse_text

F = "```"
CODE = "x = n * 2\ntask_success(x)"
LINE = "task_success(n * 2)"
JSON = json.dumps({"code": CODE})
CALL = json.dumps({"name": "python_action", "arguments": {"code": CODE}})


def invoke(prefix: str, attributes: str = "") -> str:
    """Write a call with parameters, as several families do with prefixes of their own."""
    return (
        f'<{prefix}function_calls>\n<{prefix}invoke name="python_action">\n'
        f'<{prefix}parameter name="code"{attributes}>{CODE}</{prefix}parameter>\n'
        f"</{prefix}invoke>\n</{prefix}function_calls>"
    )


FORMS = {
    # Tags around code.
    "a code tag": f"<code>\n{CODE}\n</code>",
    "a code tag on one line with its code": f"<code>{CODE}</code>",
    "a code tag of html": f'<pre><code class="language-python">{CODE}</code></pre>',
    "a python tag": f"I run it.\n<python>\n{CODE}\n</python>",
    "an execute tag": f"<execute>\n{CODE}\n</execute>",
    "an execute_ipython tag": f"<execute_ipython>\n{CODE}\n</execute_ipython>",
    "a tool_code tag": f"<tool_code>\n{CODE}\n</tool_code>",
    "a tool_code fence": f"{F}tool_code\n{CODE}\n{F}",
    "a bracketed tag": f"[PYTHON]\n{CODE}\n[/PYTHON]",
    "Llama's python tag": f"<|python_tag|>{CODE}<|eom_id|>",
    "an answer tag": f"<answer>\n{CODE}\n</answer>",
    "an answer tag around a fence": f"<answer>\nHere:\n{F}python\n{CODE}\n{F}\n</answer>",
    "a response tag left open": f"<response>\n{F}python\n{CODE}\n{F}",
    "a code tag around a fence": f"<code>\n{F}python\n{CODE}\n{F}\n</code>",
    # Tool calls as text.
    "a tool_call tag around a fence": f"<tool_call>\n{F}python\n{CODE}\n{F}\n</tool_call>",
    "a tool_call tag around plain code": f"<tool_call>\n{CODE}\n</tool_call>",
    "a tool_call tag around a json fence": f"<tool_call>\n{F}json\n{CALL}\n{F}\n</tool_call>",
    "a function_call tag": f"<function_call>{CALL}</function_call>",
    "tool_calls with a list": f"<tool_calls>[{CALL}]</tool_calls>",
    "Nemotron's": f"<TOOLCALL>[{CALL}]</TOOLCALL>",
    "Qwen coder's": "<tool_call>\n<function=python_action>\n<parameter=code>\n"
    f"{CODE}\n</parameter>\n</function>\n</tool_call>",
    "Qwen coder's without the outer tag": "<function=python_action>\n<parameter=code>\n"
    f"{CODE}\n</parameter>\n</function>",
    "Qwen coder's left open": f"<function=python_action>\n<parameter=code>\n{CODE}",
    "Llama's function tag": f"<function=python_action>{JSON}</function>",
    "Seed's": "<seed:tool_call><function=python_action><parameter=code>"
    f"{CODE}</parameter></function></seed:tool_call>",
    "an invoke": invoke(""),
    "an invoke of Claude's": invoke("antml:"),
    "an invoke of DeepSeek's": invoke("｜DSML｜", ' string="true"'),
    "an invoke of MiniMax's": invoke("").replace("function_calls", "minimax:tool_call"),
    "an invoke without the outer tag": invoke("").partition("\n")[2].rpartition("\n")[0],
    "GLM's": "<tool_call>python_action\n<arg_key>code</arg_key>\n"
    f"<arg_value>{CODE}</arg_value>\n</tool_call>",
    "Mistral's": f'[TOOL_CALLS][{{"name": "python_action", "arguments": {JSON}}}]',
    "Mistral's newer": f"[TOOL_CALLS]python_action[ARGS]{JSON}",
    "Kimi's": "<|tool_calls_section_begin|><|tool_call_begin|>functions.python_action:0"
    f"<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>",
    "Command's": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "python_action", '
    f'"parameters": {JSON}}}]<|END_ACTION|>',
    "Granite's": f"<|tool_call|>[{CALL}]",
    "gpt-oss's": "<|channel|>commentary to=functions.python_action <|constrain|>json<|message|>"
    f"{JSON}<|call|>",
    "a call written in Python": f"<|tool_call_start|>[python_action(code={CODE!r})]<|tool_call_end|>",
    "a call in Python and nothing else": f"[python_action(code={CODE!r})]",
    # JSON.
    "json with a code field": JSON,
    "json with thoughts and code": json.dumps({"thought": "double it", "code": CODE}),
    "json with code in a fence": f"{F}json\n{JSON}\n{F}",
    "json with fenced code": json.dumps({"code": f"{F}python\n{CODE}\n{F}"}),
    "json of an action and its input": json.dumps({"action": "python_action", "action_input": CODE}),
    "json of a tool and its arguments": json.dumps({"tool": "python", "args": {"code": CODE}}),
    "json of tool_calls": json.dumps({"tool_calls": [{"function": {"name": "python", "arguments": JSON}}]}),
    "json named by its action": json.dumps({"python_action": {"code": CODE}}),
    "json behind words": f"I call it:\n{CALL}",
    "ReAct": f"Thought: double it\nAction: python_action\nAction Input:\n{F}python\n{CODE}\n{F}",
    "ReAct's json": f"Action:\n{F}json\n"
    f"{json.dumps({'action': 'python', 'action_input': {'code': CODE}})}\n{F}",
    # Fences.
    "a fence behind a number": f"1. {F}python\n{CODE}\n{F}",
    "a fence behind a number, code indented": f"1. {F}python\n   x = n * 2\n   task_success(x)\n   {F}",
    "a fence behind words": f"Here it is: {F}python\n{CODE}\n{F}",
    "a fence behind bold words": f"**Code:** {F}py\n{CODE}\n{F}\nDone.",
    "a bare fence behind words": f"Here it is: {F}\n{CODE}\n{F}",
    "a closing on the code's line": f"{F}python\n{CODE}{F}",
    "a closing on the code's line, and words": f"{F}python\n{CODE}{F} That is all.",
    "words behind the closing": f"{F}python\n{CODE}\n{F} That is all.",
    "a closing behind a comment": f"{F}python\n{CODE}  # done{F}".replace("  # done", ""),
    "a version": f"{F}python3.11\n{CODE}\n{F}",
    "a version with a dash": f"{F}python-3.12\n{CODE}\n{F}",
    "another interpreter": f"{F}ipython3\n{CODE}\n{F}",
    "a label in braces": f"{F}{{.python .numberLines}}\n{CODE}\n{F}",
    "a label with a file": f"{F}python:main.py\n{CODE}\n{F}",
    "a label with an option": f"{F}python,editable\n{CODE}\n{F}",
    "a label behind a space": f"{F} python\n{CODE}\n{F}",
    "a quotation": f"> {F}python\n> x = n * 2\n> task_success(x)\n> {F}",
    "a quotation without spaces": f">{F}python\n>x = n * 2\n>task_success(x)\n>{F}",
    "a quotation in a quotation": f">> {F}python\n>> x = n * 2\n>> task_success(x)\n>> {F}",
    "an end marker behind an open fence": f"{F}python\n{CODE}<|im_end|>",
    # Characters.
    "a byte order mark": f"\ufeff{F}python\n{CODE}\n{F}",
    "a byte order mark in the code": f"{F}python\n\ufeff{CODE}\n{F}",
    "zero-width spaces before the marks": f"\u200b{F}python\n{CODE}\n\u200b{F}",
    "zero-width spaces in the code": f"{F}python\nx\u200b = n * 2\ntask_success(x)\u200b\n{F}",
    "no-break spaces": f"{F}python\n{CODE}\n{F}".replace(" ", "\xa0"),
    "narrow and wide spaces": f"{F}python\nx\u202f=\u2009n\u3000* 2\ntask_success(x)\n{F}",
    "a soft hyphen": f"{F}python\nx = n * 2\ntask_suc\xadcess(x)\n{F}",
    "old line ends": f"Hello.\n{F}python\n{CODE}\n{F}\n".replace("\n", "\r"),
    "mixed line ends": f"Hello.\r\n{F}python\r{CODE}\n{F}\r",
    # Notebooks.
    "prompts of IPython": f"{F}python\nIn [1]: x = n * 2\nIn [2]: task_success(x)\nOut[2]: 42\n{F}",
    "no fence, prompts of IPython": "In [1]: x = n * 2\nIn [2]: task_success(x)",
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_a_form_is_understood(text: str) -> None:
    parsed = parse_text(text)
    assert (parsed.actions, parsed.notes) == ((python_action(CODE),), ())


ONE_LINE = {
    "all on one line": f"{F}python {LINE}{F}",
    "all on one line behind words": f"So: {F}python {LINE}{F}",
    "all on one line, bare": f"{F}{LINE}{F}",
    "code behind the label": f"{F}python {LINE}\n{F}",
}


@pytest.mark.parametrize("text", ONE_LINE.values(), ids=ONE_LINE.keys())
def test_a_block_of_one_line_is_understood(text: str) -> None:
    assert parse_text(text).actions[0].model_dump()["code"].strip() == LINE


def test_escaped_code_in_a_tag_is_understood() -> None:
    text = "<code>\nif n &lt; 9 &amp;&amp; m: f()\n</code>".replace("&amp;&amp;", "and")
    assert parse_text(text).actions == (python_action("if n < 9 and m: f()"),)


MAGICS = {
    "a line magic": ("%matplotlib inline\nf(x)", "# %matplotlib inline\nf(x)"),
    "a cell magic": ("%%time\nf(x)", "# %%time\nf(x)"),
    "an installation": ("!pip install pandas -q\nf(x)", "# !pip install pandas -q\nf(x)"),
    "a timed statement": ("%time y = f(x)", "y = f(x)"),
    "a prompt before it": ("In [3]: %matplotlib inline\n   ...: f(x)", "# %matplotlib inline\nf(x)"),
}


@pytest.mark.parametrize(("code", "read"), MAGICS.values(), ids=MAGICS.keys())
def test_a_command_of_ipython_that_changes_no_value_is_left_out(code: str, read: str) -> None:
    assert parse_text(f"{F}python\n{code}\n{F}").actions == (python_action(read),)


@pytest.mark.parametrize(
    "line", ["!ls -l", "%run other.py", "%%bash", "!cat a.txt", "%env X=1", "?len", "len?"]
)
def test_any_other_command_of_ipython_is_refused_with_what_to_change(line: str) -> None:
    parsed = parse_text(f"{F}python\n{line}\nf(1)\n{F}")
    assert parsed.actions == ()
    assert line in parsed.notes[0]
    assert "not Python" in parsed.notes[0]


OTHERS: dict[str, tuple[str, Action]] = {
    "a bash tag": ("<execute_bash>\nls\n</execute_bash>", terminal_action("ls")),
    "a shell's fence on one line": (f"{F}bash\nls{F}", terminal_action("ls")),
    "a quoted shell": (f"> {F}sh\n> ls\n> {F}", terminal_action("ls")),
    "a file in parameters": (
        "<function=write_file><parameter=path>\na.md\n</parameter><parameter=content>\n<b>\n</parameter></function>",
        write_file("a.md", "<b>"),
    ),
}


@pytest.mark.parametrize(("text", "action"), OTHERS.values(), ids=OTHERS.keys())
def test_other_actions_come_in_such_forms_too(text: str, action: Action) -> None:
    assert parse_text(text).actions == (action,)


def test_what_follows_words_behind_a_closing_is_read() -> None:
    text = f"{F}python\nx = 1\n{F} Then:\n{F}python\n{LINE}\n{F}"
    assert parse_text(text).actions == (python_action("x = 1"), python_action(LINE))


def test_a_call_behind_an_output_is_read() -> None:
    text = f"{F}\nTotal: 5 apples\n{F}\n<tool_call>{CALL}</tool_call>"
    assert parse_text(text).actions == (python_action(CODE),)


COMMENTED = "# For example:\n# ```python\n# f()\n# ```\nx = '```'  # or ``` here\nf(x)"


def test_marks_in_comments_and_strings_do_not_end_a_block() -> None:
    assert parse_text(f"{F}python\n{COMMENTED}\n{F}\nDone.").actions == (python_action(COMMENTED),)


# What is no code.


OUTPUTS = {
    "behind it": f"{F}python\n{LINE}\n{F}\nOutput:\n{F}\nn = 99\n{F}",
    "before it": f"Input:\n{F}\nn = 99\n{F}\n{F}python\n{LINE}\n{F}",
    "labelled as text": f"{F}python\n{LINE}\n{F}\n{F}text\nn = 99\n{F}",
    "labelled as output": f"{F}output\nn = 99\n{F}\n{F}python\n{LINE}\n{F}",
    "a call": f"{F}python\n{LINE}\n{F}\nwhich is the same as\n{F}\ntask_success(99)\n{F}",
    "two, both bare": f"Output:\n{F}\nn = 99\n{F}\nso\n{F}\n{LINE}\n{F}",
    "in a code tag": f"First <code>n = 99</code>.\n<code>n = 99</code> it was.\n{F}python\n{LINE}\n{F}",
    "as json data": f'{F}json\n{{"code": "n = 99"}}\n{F}\n{F}python\n{LINE}\n{F}',
}


@pytest.mark.parametrize("text", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_what_is_no_code_is_not_run(text: str) -> None:
    assert parse_text(text).actions == (python_action(LINE),)


def test_a_bare_block_that_looks_like_code_is_not_dropped_in_silence() -> None:
    (note,) = parse_text(OUTPUTS["behind it"]).notes
    assert "without a label was not run" in note


def test_bare_blocks_alone_are_code() -> None:
    text = f"{F}\nx = n\n{F}\nthen\n{F}\ntask_success(x)\n{F}"
    assert parse_text(text).actions == (python_action("x = n"), python_action("task_success(x)"))


def test_data_with_a_code_field_is_no_action() -> None:
    assert parse_text(json.dumps({"code": "E42", "message": "x"})).actions == ()
