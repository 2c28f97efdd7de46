"""The one parser: what weak models write, and what must never be executed."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agex.models.actions import Action, edit_file, python_action, terminal_action, write_file
from agex.models.parser import ACTIONS, ParseProblem, parse_calls, parse_text, parse_tool_call, render

CODE = "x = 1\nprint(x)"
CALL = json.dumps({"name": "python_action", "arguments": {"code": CODE}})
DOCSTRING = 'def f():\n    """Use it.\n\n    ```python\n    f()\n    ```\n    """\n    return 1'

WRITTEN = {
    "a python fence": f"Here it is:\n```python\n{CODE}\n```\nDone.",
    "a py fence": f"```py\n{CODE}\n```",
    "a python3 fence": f"```python3\n{CODE}\n```",
    "a capital fence": f"```Python\n{CODE}\n```",
    "a fence with attributes": f'```python title="a.py"\n{CODE}\n```',
    "a braced fence": f"```{{python}}\n{CODE}\n```",
    "a bare fence": f"```\n{CODE}\n```",
    "a tilde fence": f"~~~python\n{CODE}\n~~~",
    "a longer fence": f"````python\n{CODE}\n````",
    "windows line ends": f"```python\n{CODE}\n```\n".replace("\n", "\r\n"),
    "an indented fence": "1. First\n\n   ```python\n   x = 1\n   print(x)\n   ```\n",
    "code indented inside a fence": "```python\n    x = 1\n    print(x)\n```",
    "no closing fence": f"```python\n{CODE}",
    "prompts of a session": "```python\n>>> x = 1\n>>> print(x)\n1\n```",
    "a language line in a bare fence": f"```\npython\n{CODE}\n```",
    "a language line and no fence": f"python\n{CODE}",
    "no fence at all": CODE,
    "a thought first": f"<think>maybe\n```python\nbad()\n```\n</think>\n```python\n{CODE}\n```",
    "a tool call as text": CALL,
    "a tool call in a json fence": f"```json\n{CALL}\n```",
    "a tagged tool call": f"<tool_call>\n{CALL}\n</tool_call>",
    "a tagged tool call on one line": f"I run it.\n<tool_call>{CALL}</tool_call>",
    "a tagged tool call left open": f"<tool_call>\n{CALL}",
    "a function object as text": json.dumps({"function": {"name": "python", "arguments": {"code": CODE}}}),
    "raw line ends in the json": '{"name": "python_action", "arguments": {"code": "x = 1\nprint(x)"}}',
    "a python dict for json": "{'name': 'python_action', 'parameters': {'code': 'x = 1\\nprint(x)'}}",
    "a fence inside the arguments": json.dumps(
        {"name": "python_action", "arguments": {"code": f"```python\n{CODE}\n```"}}
    ),
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN.keys())
def test_code_is_found_however_it_is_wrapped(text: str) -> None:
    parsed = parse_text(text)
    assert (parsed.actions, parsed.notes) == ((python_action(CODE),), ())


NOTHING = {
    "empty": "",
    "prose": "I would compute the sum first.",
    "one word": "Done",
    "one word with a stop": "Done.",
    "a labelled word": "Note: this",
    "a constant": "42",
    "a name": "result",
    "an output in a bare fence": "The output is:\n```\nTotal: 5 apples\n```",
    "a name in a bare fence": "```\nresult\n```",
    "data in a json fence": '```json\n{"a": 1}\n```',
    "another language": "```javascript\nconsole.log(1)\n```",
    "an empty fence": "```python\n\n```",
    "only a thought": "<think>```python\nbad()\n```",
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING.keys())
def test_what_is_not_an_action_is_none(text: str) -> None:
    parsed = parse_text(text)
    assert (parsed.actions, parsed.notes) == ((), ())


def test_blocks_of_one_reply_stay_separate_and_in_order() -> None:
    text = "```python\na = 1\n```\nthen\n```bash\nls\n```\nand\n```python\nb = 2\n```"
    assert parse_text(text).actions == (python_action("a = 1"), terminal_action("ls"), python_action("b = 2"))


def test_a_forgotten_close_does_not_swallow_the_next_block() -> None:
    assert parse_text("```python\na = 1\n```python\nb = 2\n```").actions == (
        python_action("a = 1"),
        python_action("b = 2"),
    )


def test_a_fence_inside_a_docstring_does_not_end_the_block() -> None:
    text = f"```python\n{DOCSTRING}\n```\nThat is all.\n```python\nf()\n```"
    assert parse_text(text).actions == (python_action(DOCSTRING), python_action("f()"))


def test_code_that_does_not_parse_is_still_an_action_so_that_its_error_is_shown() -> None:
    code = "def f(:\n    >>> f()\n    return"
    assert parse_text(f"```python\n{code}\n```\nSorry.").actions == (python_action(code),)


def test_a_docstring_with_prompts_does_not_make_broken_code_a_session() -> None:
    code = 'def f(:\n    """\n    >>> f()\n    1\n    """'
    assert parse_text(f"```python\n{code}\n```").actions == (python_action(code),)


def test_form_feeds_and_unicode_line_ends_stay_in_the_code() -> None:
    code = "s = 'a\x0cb\u2028c\x85d'"
    assert parse_text(f"```python\n{code}\n```").actions == (python_action(code),)


def test_a_bad_escape_in_guest_code_warns_nobody() -> None:
    assert parse_text("```python\nprint('\\d')\n```").actions == (python_action("print('\\d')"),)


@pytest.mark.parametrize("code", ["x = '\x00'", "x = '\udc80'", "(" * 500 + ")" * 500])
def test_code_that_breaks_the_parser_of_python_is_still_only_code(code: str) -> None:
    assert parse_text(f"```python\n{code}\n```").actions == (python_action(code),)


def test_a_write_file_fence_holds_the_whole_file() -> None:
    text = '```write_file path="notes/a b.txt"\none\ntwo\n```'
    assert parse_text(text).actions == (write_file("notes/a b.txt", "one\ntwo\n"),)


def test_a_written_file_may_hold_fences() -> None:
    text = "````write_file README.md\n# T\n```python\nx\n```\n````\n```python\nf()\n```"
    assert parse_text(text).actions == (
        write_file("README.md", "# T\n```python\nx\n```\n"),
        python_action("f()"),
    )


def test_a_written_module_may_hold_fences_in_docstrings_without_longer_marks() -> None:
    text = f"```write_file path=helpers/x.py\n{DOCSTRING}\n```\nok"
    assert parse_text(text).actions == (write_file("helpers/x.py", DOCSTRING + "\n"),)


def test_an_edit_file_fence_holds_passages() -> None:
    text = (
        "```edit_file path=a.py\n<<<<<<< SEARCH\nold\n=======\nnew\nmore\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\ngone\n=======\n>>>>>>> REPLACE\n```"
    )
    assert parse_text(text).actions == (edit_file("a.py", "old", "new\nmore"), edit_file("a.py", "gone", ""))


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("```write_file\nx\n```", "names no path"),
        ("```edit_file path=a.py\nold -> new\n```", "holds no passage"),
        ('{"name": "python_action", "arguments": {"code": "x = 1', "cut or not JSON"),
        ('<tool_call>{"name": "python_action", "arg', "cut or not JSON"),
        ('<tool_call>{"name": "python_action", "arguments": {}}</tool_call>', "'code'"),
        ('{"name": "web_search", "arguments": {"query": "x"}}', "'web_search' is not available here"),
    ],
)
def test_what_cannot_be_read_becomes_a_note(text: str, note: str) -> None:
    parsed = parse_text(text)
    assert parsed.actions == ()
    assert note in parsed.notes[0]


def test_nothing_after_an_unreadable_action_is_done() -> None:
    text = "```python\na = 1\n```\n```edit_file path=a.py\n?\n```\n```python\nimport a\n```"
    parsed = parse_text(text)
    assert parsed.actions == (python_action("a = 1"),)
    assert "nor was anything after it" in parsed.notes[0]


def test_an_action_that_is_not_offered_is_a_note_and_the_others_stay() -> None:
    parsed = parse_text("```bash\nls\n```\n```python\nf()\n```", offered=("python_action",))
    assert parsed.actions == (python_action("f()"),)
    assert parsed.notes == ("'terminal_action' is not available here. Available: python_action.",)


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN.keys())
def test_a_truncated_text_never_gives_an_action(text: str) -> None:
    for end in range(len(text) + 1):
        assert parse_text(text[:end], truncated=True).actions == ()


CALLS: dict[str, tuple[str, Any]] = {
    "a mapping": ("python_action", {"code": CODE}),
    "json": ("python_action", json.dumps({"code": CODE})),
    "more fields than asked for": ("python_action", {"code": CODE, "title": "t", "thinking": "h"}),
    "another field's name": ("python_action", {"source": CODE}),
    "another tool's name": ("Python", {"code": CODE}),
    "bare code": ("python_action", CODE),
    "a json string": ("python_action", json.dumps(CODE)),
    "fenced code": ("python_action", {"code": f"```python\n{CODE}\n```"}),
    "fenced bare code": ("python_action", f"```python\n{CODE}\n```"),
}


@pytest.mark.parametrize(("name", "arguments"), CALLS.values(), ids=CALLS.keys())
def test_a_tool_call_is_read_however_its_arguments_come(name: str, arguments: Any) -> None:
    assert parse_tool_call(name, arguments) == python_action(CODE)


def test_a_file_tool_call_keeps_its_fields_as_they_are() -> None:
    assert parse_tool_call("write_file", {"path": "a.md", "content": "```\nx\n```"}) == write_file(
        "a.md", "```\nx\n```"
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("python_action", '{"code": "import os\\nos.rem'),
        ("python_action", '{"code": "x = 1"'),
        ("python_action", '"x = 1'),
        ("python_action", ""),
        ("python_action", {}),
        ("python_action", {"code": 1}),
        ("python_action", {"code": "  "}),
        ("python_action", "[1, 2]"),
        ("write_file", '{"path": "a.txt", "content": "half'),
        ("write_file", {"path": "a.txt"}),
        ("write_file", "just text"),
        ("no_such_tool", {"code": "x = 1"}),
    ],
)
def test_a_malformed_or_cut_tool_call_is_a_problem_and_no_action(name: str, arguments: Any) -> None:
    with pytest.raises(ParseProblem):
        parse_tool_call(name, arguments)


@given(code=st.text(min_size=1), end=st.integers(min_value=0))
def test_no_prefix_of_a_tool_call_is_executed(code: str, end: int) -> None:
    whole = json.dumps({"code": code})
    with pytest.raises(ParseProblem):
        parse_tool_call("python_action", whole[: end % len(whole)])


def test_calls_after_an_unreadable_one_are_not_done() -> None:
    calls = [("python_action", {"code": "a()"}), ("write_file", "{"), ("python_action", {"code": "b()"})]
    parsed = parse_calls(calls)
    assert parsed.actions == (python_action("a()"),)
    assert len(parsed.notes) == 1


PYTHON = st.sampled_from(
    [
        "x = 1",
        "def f(a):\n    return a\n",
        DOCSTRING,
        "s = '''\n```\n'''",
        "# comment\nf()",
        "s = '''\n~~~\n```py\n'''",
    ]
)


@given(parts=st.lists(PYTHON, min_size=1, max_size=4), word=st.sampled_from(["python", "py", "Python3"]))
def test_any_python_put_in_a_fence_comes_back_equal(parts: list[str], word: str) -> None:
    code = "\n".join(parts)
    assert parse_text(f"Text.\n```{word}\n{code}\n```\nMore text.").actions == (python_action(code),)


@given(value=st.text(alphabet=st.characters(exclude_characters="\r", exclude_categories=["Cs"])))
def test_any_string_in_fenced_code_comes_back_equal(value: str) -> None:
    code = f"s = {value!r}\nt = '''{value.replace(chr(92), '').replace(chr(39), '')}'''"
    assume(_is_python(code))
    assert parse_text(f"```python\n{code}\n```").actions == (python_action(code),)


@given(text=st.text(alphabet="`~ \n\r>py{}\"'<ab(=)", max_size=200))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    parsed = parse_text(text)
    assert all(action.kind in ACTIONS for action in parsed.actions)


CONTENT = st.text(alphabet="`~ab\n#'\"=<>", max_size=40)
WHOLE: st.SearchStrategy[Action] = st.one_of(
    PYTHON.map(python_action),
    CONTENT.filter(str.strip).map(terminal_action),
    CONTENT.filter(bool).map(lambda content: write_file("notes/a b.txt", content + "\n")),
)


@given(actions=st.lists(WHOLE, max_size=4))
@example(actions=[terminal_action("```<"), python_action("s = '''\n```\n'''")])
@example(actions=[terminal_action("~~~a"), python_action("s = '''\n```\n'''")])
def test_rendered_actions_read_back_as_the_same_actions(actions: list[Action]) -> None:
    assert parse_text(render(actions)).actions == tuple(actions)


def test_a_rendered_edit_reads_back() -> None:
    edit = edit_file("a.py", "old\n  line", "new")
    assert parse_text(render([edit])).actions == (edit,)


def test_a_reply_that_repeats_itself_for_ever_is_read_in_bounded_time() -> None:
    actions = parse_text("```python\nx = '''\n" * 400).actions
    assert len(actions) <= 400


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True
