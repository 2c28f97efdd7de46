"""Long conversations are sent in fewer words; what the model needs of them stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agex.agent.prompt.compaction import shortened
from agex.models.actions import python_action
from agex.models.base import Image, Message, Reply

RULES = (Message(role="system", content="rules"), Message(role="user", content="task"))


def turn(code: str, shown: str, *, called: bool = False, images: int = 0) -> list[Message]:
    reply = Reply(text="" if called else code, actions=(python_action(code),), raw=object())
    return [
        Message(role="assistant", content="(no text)" if called else code, reply=reply),
        Message(role="user", content=shown, images=(Image(data=b"png"),) * images),
    ]


def size(messages: list[Message]) -> int:
    return sum(len(message.content) for message in messages) // 3


def test_a_short_conversation_is_sent_as_it_is() -> None:
    messages = [*RULES, *turn("x = 1", "seen"), *turn("x = 2", "seen"), *turn("x = 3", "seen")]
    assert shortened(messages) == messages


def test_rules_task_and_the_last_two_turns_stay_whole() -> None:
    turns = [message for number in range(20) for message in turn(f"x = {number}", "y" * 9_000)]
    sent = shortened([*RULES, *turns], limit=20_000)
    assert sent[:2] == list(RULES)
    assert sent[-4:] == turns[-4:]
    assert all(len(message.content) < 500 for message in sent[2:-4])
    assert "print again what you need" in sent[3].content


def test_turns_in_short_keep_their_code_and_lose_their_pictures() -> None:
    old = turn("x = compute()", "z" * 3_000, called=True, images=2)
    sent = shortened([*RULES, *old, *turn("a", "b"), *turn("c", "d")], limit=1_000)
    assert "x = compute()" in sent[2].content
    assert (sent[2].reply, sent[3].images) == (None, ())


def test_very_many_turns_are_left_out_with_a_word_on_what_is_still_there() -> None:
    turns = [message for number in range(2_000) for message in turn(f"x = {number}", "seen " * 100)]
    sent = shortened([*RULES, *turns], limit=10_000)
    assert size(sent) <= 10_000
    assert "still there" in sent[3].content
    assert [message.role for message in sent[1:]] == ["user", "assistant"] * ((len(sent) - 2) // 2) + ["user"]


def test_between_two_shortenings_messages_are_only_appended() -> None:
    messages = list(RULES)
    rewritten = 0
    for number in range(200):
        messages += turn(f"x = {number}", "seen " * 200)
        sent = shortened(messages, limit=20_000)
        rewritten += sent != messages
        messages = sent
    assert 0 < rewritten < 20


@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)), max_size=40), st.integers(2_000, 9_000)
)
def test_no_conversation_grows_past_the_limit_but_for_its_last_turns(
    lengths: list[tuple[int, int]], limit: int
) -> None:
    messages = list(RULES)
    for code, shown in lengths:
        messages += turn("c" * code, "s" * shown)
        messages = shortened(messages, limit)
        assert size(messages[:-4]) <= limit
