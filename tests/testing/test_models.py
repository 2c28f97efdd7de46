"""The public doubles: a script, a recording, a replay."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from agex.models import Image, Message, Model, ModelError, Reply, Request, Usage
from agex.testing import (
    RecordingModel,
    ReplayMiss,
    ReplayModel,
    ScriptedModel,
    ScriptExhausted,
    edit_file,
    python_action,
    terminal_action,
    write_file,
)


def say(text: str, *, attempt: int = 0, actions: tuple[str, ...] = ("python_action",)) -> Request:
    return Request(messages=(Message(role="user", content=text),), attempt=attempt, actions=actions)


ALL = ("python_action", "terminal_action", "write_file", "edit_file")


def test_texts_are_read_by_the_same_parser_as_a_real_models() -> None:
    model = ScriptedModel(["```python\nf()\n```", "Hm.", "```bash\nls\n```"])
    replies = [model.ask(say("go")) for _ in range(3)]
    assert [reply.actions for reply in replies] == [(python_action("f()"),), (), ()]
    assert "not available here" in replies[2].notes[0]


def test_actions_are_given_as_they_are() -> None:
    actions = [python_action("f()"), terminal_action("ls"), write_file("a", "b\n"), edit_file("a", "b", "c")]
    reply = ScriptedModel([actions]).ask(say("go", actions=ALL))
    assert reply.actions == tuple(actions)
    assert ScriptedModel([reply.text]).ask(say("go", actions=ALL)).actions == tuple(actions)


@pytest.mark.parametrize("error", [ModelError("busy", retryable=True), RuntimeError("boom")])
def test_an_exception_is_raised_as_it_is(error: Exception) -> None:
    model = ScriptedModel([error, "ok"])
    with pytest.raises(type(error)) as raised:
        model.ask(say("go"))
    assert raised.value is error
    assert model.ask(say("go")).text == "ok"


def test_a_function_sees_the_messages_and_answers() -> None:
    model = ScriptedModel([lambda messages: messages[-1].content.upper(), lambda _: [python_action("f()")]])
    assert model.ask(say("go")).text == "GO"
    assert model.ask(say("go")).actions == (python_action("f()"),)


def test_one_function_answers_every_request() -> None:
    model = ScriptedModel(lambda messages: f"{len(messages)} {messages[0].content}")
    assert [model.ask(say(text)).text for text in ("a", "b")] == ["1 a", "1 b"]


def test_a_reply_brings_its_own_usage_and_truncation() -> None:
    usage = Usage(requests=1, input_tokens=5, output_tokens=6, cost=None)
    cut = Reply(text="```python\nf()\n```", truncated=True, usage=usage)
    assert ScriptedModel([cut]).ask(say("go")) == cut
    whole = ScriptedModel([Reply(text="```python\nf()\n```", usage=usage)]).ask(say("go"))
    assert (whole.actions, whole.usage) == ((python_action("f()"),), usage)


def test_usage_is_estimated() -> None:
    reply = ScriptedModel(["x" * 40]).ask(say("y" * 80))
    assert (reply.usage.requests, reply.usage.output_tokens, reply.usage.cost) == (1, 10, 0.0)
    assert reply.usage.input_tokens >= 20


def test_running_out_is_an_assertion_that_shows_the_request() -> None:
    model = ScriptedModel(["one"])
    model.ask(say("first"))
    with pytest.raises(ScriptExhausted, match=r"has 1 replies; request 2 came[\s\S]*second") as raised:
        model.ask(say("second"))
    assert isinstance(raised.value, AssertionError)


def test_requests_are_recorded_whole() -> None:
    model = ScriptedModel(["one"])
    request = Request(messages=(Message(role="system", content="rules"), Message(role="user", content="go")))
    model.ask(request)
    assert model.requests == [request]
    assert str(model.requests[0]) == "[system]\nrules\n\n[user]\ngo"


def test_text_is_streamed_in_pieces() -> None:
    pieces: list[str] = []
    ScriptedModel(["one\ntwo\nthree"]).ask(say("go"), pieces.append)
    assert pieces == ["one\n", "two\n", "three"]


def test_a_profile_can_be_posed() -> None:
    profile = ScriptedModel([], style="completion", tools=True, images=True).profile
    assert (profile.style, profile.tools, profile.images) == ("completion", True, True)


def test_a_bare_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match="Right: ScriptedModel"):
        ScriptedModel("one")


def test_a_bare_action_instead_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Right: \[PythonAction"):
        ScriptedModel([python_action("f()")]).ask(say("go"))  # type: ignore[list-item]


def test_threads_share_one_script() -> None:
    model = ScriptedModel([str(n) for n in range(64)])
    said: list[str] = []

    def ask() -> None:
        said.extend(model.ask(say("go")).text for _ in range(8))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said, key=int) == [str(n) for n in range(64)]


async def test_coroutines_share_one_script() -> None:
    model = ScriptedModel([str(n) for n in range(50)])
    replies = await asyncio.gather(*(model.aask(say("go")) for _ in range(50)))
    assert sorted((reply.text for reply in replies), key=int) == [str(n) for n in range(50)]


# Recording and replaying.


def record(path: Path, model: Model, *requests: Request) -> list[Reply]:
    recording = RecordingModel(model, path)
    return [recording.ask(request) for request in requests]


def test_a_recording_replays_the_same_replies_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    usage = Usage(requests=1, input_tokens=1, output_tokens=2, cost=None)
    model = ScriptedModel(["```python\nf()\n```", Reply(text="cut", truncated=True, usage=usage)], tools=True)
    first, second = record(path, model, say("a"), say("b"))
    replay = ReplayModel(path)
    assert [replay.ask(say("b")), replay.ask(say("a"))] == [second, first]
    assert (replay.name, replay.provider, replay.profile) == ("scripted", "testing", model.profile)


def test_a_request_recorded_twice_gives_its_answers_in_sequence(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    record(path, ScriptedModel(["one", "two"]), say("a"), say("a"))
    replay = ReplayModel(path)
    assert [replay.ask(say("a")).text, replay.ask(say("a")).text] == ["one", "two"]
    with pytest.raises(ReplayMiss, match="given already"):
        replay.ask(say("a"))


def test_a_recording_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    record(path, ScriptedModel(["one"]), say("a"))
    record(path, ScriptedModel(["two"]), say("b"))
    assert ReplayModel(path).ask(say("b")).text == "two"
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 2


def test_many_threads_record_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    recording = RecordingModel(ScriptedModel(lambda messages: messages[0].content * 1000), path)
    threads = [threading.Thread(target=recording.ask, args=(say(str(n)),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    replay = ReplayModel(path)
    assert [replay.ask(say(str(n))).text for n in range(8)] == [str(n) * 1000 for n in range(8)]


def test_a_failed_request_is_recorded_and_fails_again(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    recording = RecordingModel(ScriptedModel([ModelError("busy", retryable=True, retry_after=3.0)]), path)
    with pytest.raises(ModelError):
        recording.ask(say("a"))
    with pytest.raises(ModelError, match="busy") as raised:
        ReplayModel(path).ask(say("a"))
    assert (raised.value.retryable, raised.value.retry_after) == (True, 3.0)


def test_a_miss_shows_the_difference_to_the_nearest_request(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    record(path, ScriptedModel(["one", "two"]), say("alpha\nbeta\ngamma"), say("something else"))
    with pytest.raises(ReplayMiss, match=r"not recorded[\s\S]*-beta\n\+delta"):
        ReplayModel(path).ask(say("alpha\ndelta\ngamma"))


def test_the_same_text_with_another_image_or_attempt_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    record(path, ScriptedModel(["one"]), say("a"))
    picture = Request(messages=(Message(role="user", content="a", images=(Image(data=b"png"),)),))
    for request in (picture, say("a", attempt=1), say("a", actions=ALL)):
        with pytest.raises(ReplayMiss, match="other images, actions or another attempt"):
            ReplayModel(path).ask(request)


def test_an_empty_recording_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    path.touch()
    with pytest.raises(ReplayMiss, match="no recorded request"):
        ReplayModel(path)


async def test_recording_and_replaying_work_without_blocking_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    reply = await RecordingModel(ScriptedModel(["one"]), path).aask(say("a"))
    assert await ReplayModel(path).aask(say("a")) == reply
