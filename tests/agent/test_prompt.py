"""What models are told, in both styles, through whole tasks."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agex.agent import Agent, view
from agex.agent.call.terms import Terms
from agex.agent.loop.loop import Observation
from agex.agent.prompt.completion import (
    LIMIT_CHARS,
    LIMIT_TOKENS,
    TEMPLATE_TOKENS,
    CompletionConversation,
    tokens_at_most,
)
from agex.agent.prompt.listing import tokens
from agex.agent.prompt.prompt import Brief, FullConversation, task_prompt
from agex.contract import TaskSignature, doc_examples, given_examples
from agex.models.actions import python_action
from agex.models.base import Profile, Reply
from agex.state import Live
from agex.testing import ScriptedModel


def example(x: int, words: list[str]) -> dict[str, int]:
    """Count the words.

    >>> example(2, ["a"])
    {'a': 1}
    """


def brief(function=example, examples=(), **fields):
    signature = TaskSignature.of(function)
    found = doc_examples(signature.doc, signature.name) + given_examples(examples)
    return Brief(terms=Terms(signature=signature, examples=found), **fields)


def spoken(text, **fields):
    return Reply(text=text, **fields)


def test_the_prefix_never_changes_and_messages_are_only_appended():
    conversation = FullConversation(brief(inputs={"x": 1, "words": []}), Profile())
    sent = []
    for turn in range(1, 5):
        sent.append(conversation.request(turn, 5 - turn).messages)
        conversation.add(spoken(f"answer {turn}"), Observation(text=f"seen {turn}"))
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier
    assert [message.role for message in sent[-1]] == ["system", "user", *["assistant", "user"] * 3]


def test_the_last_turn_asks_for_an_end():
    conversation = FullConversation(brief(), Profile())
    conversation.add(spoken("a"), Observation(text="seen"))
    assert conversation.request(2, 1).messages[-1].content == "seen"
    assert conversation.request(2, 0).messages[-1].content.startswith("seen\n\nThis is your last turn")


def test_a_reply_goes_back_with_its_own_words():
    reply = spoken("mine", raw=object())
    conversation = FullConversation(brief(), Profile())
    conversation.add(reply, Observation(text="seen"))
    assert conversation.request(2, 3).messages[2].reply is reply


def test_inputs_are_shown_in_short_whatever_their_size():
    shown = task_prompt(brief(inputs={"x": 1, "words": ["word"] * 10**6}))
    assert "x: int = 1" in shown
    assert len(shown) < 8_000


def test_many_variables_of_a_state_are_bounded():
    shown = task_prompt(brief(variables={f"v{n}": "x" * 10**4 for n in range(10_000)}))
    assert len(shown) < 12_000
    assert "and 9940 more" in shown


def test_the_system_prompt_says_how_to_answer_for_the_model_at_hand():
    agent = Agent(primer="Mind the gap.")
    assert "Call python_action" in view(agent, profile=Profile(tools=True))
    assert "```python" in view(agent, profile=Profile(tools=False))
    assert view(agent).endswith("Mind the gap.")


def test_the_system_prompt_is_short_and_lists_what_is_registered():
    agent = Agent()
    assert len(view(agent).splitlines()) <= 60
    agent.module(math)
    assert "import math" in view(agent)


# -- completion ------------------------------------------------------------------------------


def size(request):
    return sum(len(message.content) for message in request.messages) + len(request.prefill)


def test_a_small_model_gets_the_function_to_complete_and_nothing_of_the_machinery():
    request = CompletionConversation(brief(inputs={"x": 1, "words": ["a"]})).request(1, 3)
    (message,) = request.messages
    assert "def example(x: int, words: list[str]) -> dict[str, int]:" in message.content
    assert ">>> example(2, ['a'])" in message.content or '>>> example(2, ["a"])' in message.content
    assert "task_success" not in message.content


def test_inputs_are_shown_where_no_example_shows_what_they_look_like():
    def f(x: int) -> int: ...

    assert "# x = 1" in str(CompletionConversation(brief(f, inputs={"x": 1})).request(1, 3))
    assert "# x = 1" not in str(CompletionConversation(brief(inputs={"x": 1})).request(1, 3))


def test_on_the_second_turn_a_small_model_sees_its_last_code_and_the_problem():
    conversation = CompletionConversation(brief())
    conversation.add(Reply(actions=(python_action("def old(): 1"),)), Observation(brief="ValueError: 1"))
    conversation.add(
        Reply(actions=(python_action('def example():\n    """Doc."""\n    return 1'),)),
        Observation(text="long text", brief="ValueError: no"),
    )
    _, code, problem = conversation.request(2, 1).messages
    assert code.content == "```python\ndef example():\n    return 1\n```"
    assert problem.content == "ValueError: no\nWrite the corrected function."
    assert "def old" not in str(conversation.request(2, 1))


def first_and(turn):
    """Give the first request of a conversation, and that of a later turn behind a failure."""
    conversation = CompletionConversation(brief())
    first = conversation.request(1, 3)
    conversation.add(Reply(actions=(python_action("1"),)), Observation(brief="example failed", failed=True))
    return first, conversation.request(turn, 1)


def test_on_the_third_turn_a_small_model_is_asked_for_the_function_and_no_more():
    first, third = first_and(turn=3)
    assert (third.messages, third.prefill, third.attempt) == (first.messages, "", 0)


def test_from_the_fourth_turn_on_a_small_model_begins_again():
    first, fourth = first_and(turn=4)
    assert (fourth.messages, fourth.prefill) == (first.messages, first.prefill)


def test_a_new_beginning_is_told_what_no_example_says():
    def f(x: int) -> int: ...

    conversation = CompletionConversation(brief(f))
    conversation.add(Reply(actions=(python_action("1"),)), Observation(brief="expected int", failed=True))
    (message,) = conversation.request(3, 1).messages
    assert message.content.endswith(
        "An earlier answer was wrong:\nexpected int\nWrite the corrected function."
    )


def test_the_answer_of_a_small_model_is_begun_for_it():
    conversation = CompletionConversation(brief())
    begun = conversation.request(1, 2).prefill
    assert begun.startswith("```python\ndef example(")
    assert begun.endswith('"""\n')
    conversation.add(Reply(actions=(python_action("1"),)), Observation(text="no", failed=True))
    again = conversation.request(2, 1).prefill
    assert again == "```python\ndef example(x: int, words: list[str]) -> dict[str, int]:\n"


def test_an_attempt_number_lets_a_sampling_model_vary():
    conversation = CompletionConversation(brief())
    assert [conversation.request(turn, 1).attempt for turn in (1, 2, 3, 4, 5)] == [0, 1, 0, 2, 3]


@given(
    doc=st.text(max_size=3_000),
    code=st.text(max_size=3_000),
    problem=st.text(max_size=3_000),
    value=st.text(max_size=3_000),
)
def test_no_request_to_a_small_model_passes_the_limit(doc, code, problem, value):
    def f(x: str) -> str: ...

    f.__doc__ = doc
    conversation = CompletionConversation(brief(f, inputs={"x": value}, task_primer=doc))
    assert size(conversation.request(1, 2)) <= LIMIT_CHARS
    conversation.add(
        Reply(actions=(python_action(code),)), Observation(text=problem, brief=problem, failed=True)
    )
    assert size(conversation.request(2, 1)) <= LIMIT_CHARS
    assert size(conversation.request(3, 1)) <= LIMIT_CHARS
    assert tokens("x" * LIMIT_CHARS) <= 401


@pytest.mark.parametrize("doc", ["1.25, " * 400, "o| .| (" * 300, "an ordinary sentence of words " * 80])
def test_text_of_many_tokens_gets_less_room(doc):
    def f(x: str) -> str: ...

    f.__doc__ = doc
    request = CompletionConversation(brief(f)).request(1, 2)
    text = "".join(message.content for message in request.messages) + request.prefill
    assert 200 < tokens_at_most(text) <= LIMIT_TOKENS - TEMPLATE_TOKENS


def test_a_small_model_solves_a_task_over_two_turns():
    answers = ["```python\ndef f(x):\n    return x + 1\n```", "```python\ndef f(x):\n    return x * 2\n```"]
    model = ScriptedModel(answers, style="completion")
    agent = Agent(model=model)

    @agent.task
    def f(x: int) -> int:
        """Double it.

        >>> f(2)
        4
        """

    assert f(21) == 42
    first, second = model.requests
    assert len(first.messages) == 1
    problem = second.messages[-1].content
    assert "f(2)" in problem
    assert len(problem.splitlines()) <= 6


@pytest.mark.parametrize("style", ["full", "completion"])
def test_both_styles_get_the_tasks_primer(style):
    model = ScriptedModel(["```python\ntask_success(1)\n```"], style=style)
    agent = Agent(model=model)

    @agent.task("Mind the sign.")
    def f(x: int) -> int: ...

    f(1)
    assert "Mind the sign." in str(model.requests[0])


def test_each_action_of_an_answer_has_its_own_result():
    actions = [python_action(code) for code in ("print(1)", "1 / 0", "3")]
    model = ScriptedModel([actions, [python_action("task_success(1)")]], tools=True)

    @Agent(model=model).task
    def f(x: int) -> int: ...

    f(1)
    message = model.requests[1].messages[-1]
    first, second, third = message.results
    assert (first, third) == ("1", "Not executed.")
    assert "ZeroDivisionError" in second
    assert message.note == "[turn 2 of 10]"


def test_the_checks_and_the_keys_of_the_cache_are_told():
    def short(value, inputs): ...

    def f(x: int) -> int: ...

    told = task_prompt(Brief(terms=Terms(signature=TaskSignature.of(f), checks=(short,)), cached=("seen", 3)))
    assert "The value must pass: short" in told
    assert "Keys of cache: 'seen', 3" in told


def test_kept_code_is_told_by_its_head_and_what_loops_leave_is_not_told():
    made = (
        'def clean(text, *, deep=False):\n    """Clean it."""\nclass Row: pass\n'
        "for i in range(3): pass\n_x, total, y = 1, 7, 2\ntask_success(1)"
    )
    model = ScriptedModel([f"```python\n{code}\n```" for code in (made, "task_success(1)")])
    agent = Agent(model=model, state=Live())

    @agent.task
    def f() -> int: ...

    f()
    f()
    told = str(model.requests[1])
    assert "def clean(text, deep)  # Clean it." in told
    assert "class Row" in told
    assert "total: int = 7\ny: int = 2" in told
    assert "i: int" not in told
    assert "_x" not in told
