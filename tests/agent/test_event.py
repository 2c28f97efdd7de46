from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agex.agent.call import events as room
from agex.agent.call.events import (
    ActionEvent,
    ErrorEvent,
    FileEvent,
    OutputEvent,
    SuccessEvent,
    TaskStartEvent,
    event_from_json,
)
from agex.models.actions import edit_file, python_action, terminal_action, write_file
from agex.models.base import Image, Usage

WHERE = {"agent": "a", "task": "t", "run_id": "r", "turn": 2}


def there_and_back(event):
    return event_from_json(event.model_dump_json())


@pytest.mark.parametrize(
    "event",
    [
        ActionEvent(
            **WHERE,
            actions=(
                python_action("x = '''<&'''"),
                terminal_action("ls"),
                write_file("a", "b"),
                edit_file("a", "b", "c"),
            ),
            text="hm",
            truncated=True,
            usage=Usage(requests=1, input_tokens=2, output_tokens=3, cost=None),
            seconds=1.5,
        ),
        OutputEvent(**WHERE, text="\x00\u2028", images=(Image(data=b"\xff\x00png"),), error=True),
        SuccessEvent(**WHERE, result={"a": [1, 2.5, None, True, "x"]}),
        TaskStartEvent(**WHERE, inputs={"x": [1, {"y": 2}]}),
        ErrorEvent(**WHERE, message="m", error="LLMFail", recoverable=True, commit_hash="c", parent_hash="p"),
        FileEvent(**WHERE, added=("a",), modified=("b",), removed=("c",)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_comes_back_from_json_equal(event):
    assert there_and_back(event) == event


def test_every_kind_of_event_has_a_type_of_its_own():
    kinds = [getattr(room, name) for name in room.__all__ if name.endswith("Event") and name != "Event"]
    assert len({kind.model_fields["type"].default for kind in kinds}) == len(kinds) == 10


def test_a_value_that_is_not_json_is_described_and_stays_itself_in_memory():
    value = object()
    event = SuccessEvent(**WHERE, result=value)
    assert event.result is value
    assert "object" in there_and_back(event).result


def test_a_large_value_is_described_in_bounded_text():
    event = TaskStartEvent(**WHERE, inputs={"rows": list(range(10**6)), "text": "x" * 10**6})
    assert len(event.model_dump_json()) < 4_000


def test_a_value_that_contains_itself_is_described():
    loop: list[object] = []
    loop.append(loop)
    assert len(SuccessEvent(**WHERE, result=loop).model_dump_json()) < 2_000


def test_text_that_utf8_cannot_hold_still_goes_to_json():
    event = ActionEvent(**WHERE, text="\ud800", actions=(python_action("'\udfff'"),))
    assert there_and_back(event).text == "\\ud800"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
        max_leaves=20,
    )
)
def test_what_came_back_from_json_goes_there_again_unchanged(value):
    once = there_and_back(SuccessEvent(**WHERE, result=value))
    assert there_and_back(once) == once
    json.loads(once.model_dump_json())


def test_the_html_of_an_event_escapes_everything():
    markup = "<script>alert(1)</script>"
    event = ActionEvent(agent=markup, task=markup, run_id="r", text=markup, actions=(python_action(markup),))
    shown = event._repr_html_() + OutputEvent(**WHERE, text=markup)._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


def test_text_that_is_no_event_is_refused():
    with pytest.raises(ValidationError):
        event_from_json('{"type": "nonsense"}')
