"""The adapter to pydantic-ai: against its own doubles, and a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as PydanticTestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from agex.models import Image, Message, ModelError, Reply, Request, python_action, write_file
from agex.models.provider import PydanticAIModel

HELLO = Request(messages=(Message(role="system", content="Be brief."), Message(role="user", content="Hello")))
CODE = json.dumps({"code": "x = 1\nprint(x)"})
Respond = Callable[[list[ModelMessage], AgentInfo], ModelResponse]


def function(respond: Respond, profile: ModelProfile | None = None) -> PydanticAIModel:
    return PydanticAIModel(FunctionModel(respond, profile=profile))


def saying(*parts: Any, **fields: Any) -> PydanticAIModel:
    return function(lambda _messages, _info: ModelResponse(parts=list(parts), **fields))


def openai_model(server: Any, **settings: Any) -> PydanticAIModel:
    return PydanticAIModel(chat_model(server), **settings)


def chat_model(server: Any) -> OpenAIChatModel:
    provider = OpenAIProvider(base_url=server.url, api_key="k")
    return OpenAIChatModel("tiny-model", provider=provider)


# What is sent.


def conversation(request: Request) -> list[ModelMessage]:
    seen: list[ModelMessage] = []

    def respond(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        seen.extend(messages)
        return ModelResponse(parts=[TextPart("ok")])

    function(respond).ask(request)
    return seen


def test_system_and_user_messages_become_one_request() -> None:
    (request,) = conversation(HELLO)
    assert isinstance(request, ModelRequest)
    kinds = [(type(part), part.content) for part in request.parts if not isinstance(part, ToolReturnPart)]  # type: ignore[union-attr]
    assert kinds == [(SystemPromptPart, "Be brief."), (UserPromptPart, "Hello")]


def test_the_offered_actions_are_tools() -> None:
    tools: list[str] = []

    def respond(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        tools.extend(tool.name for tool in info.function_tools)
        return ModelResponse(parts=[TextPart("ok")])

    function(respond).ask(Request(messages=HELLO.messages, actions=("python_action", "edit_file")))
    assert tools == ["python_action", "edit_file"]


def test_a_model_without_tools_is_offered_none_and_its_fences_are_read() -> None:
    def respond(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert info.function_tools == []
        return ModelResponse(parts=[TextPart("```python\nf()\n```")])

    model = function(respond, profile=ModelProfile(supports_tools=False))
    assert not model.profile.tools
    assert model.ask(HELLO).actions == (python_action("f()"),)


def test_a_reply_goes_back_unchanged_and_each_of_its_calls_is_answered() -> None:
    calls = [
        ToolCallPart("python_action", {"code": "a()"}, "1"),
        ToolCallPart("python_action", {"code": "b()"}, "2"),
    ]
    reply = saying(TextPart("I run it."), *calls).ask(HELLO)
    picture = Image(data=b"png")
    messages = conversation(
        Request(
            messages=(
                *HELLO.messages,
                Message(role="assistant", content=reply.text, reply=reply),
                Message(role="user", content="3\n4", images=(picture,)),
            )
        )
    )
    assert messages[1] is reply.raw
    returns = [p for p in messages[2].parts if isinstance(p, ToolReturnPart)]
    assert [(p.tool_call_id, p.content) for p in returns] == [("1", "3\n4"), ("2", "See the first result.")]
    (last,) = [p for p in messages[2].parts if isinstance(p, UserPromptPart)]
    assert last.content == [BinaryContent(data=b"png", media_type="image/png")]


def test_a_cut_reply_goes_back_as_text_without_its_broken_call() -> None:
    reply = saying(
        TextPart("I"), ToolCallPart("python_action", '{"code": "x', "1"), finish_reason="length"
    ).ask(HELLO)
    messages = conversation(
        Request(
            messages=(
                *HELLO.messages,
                Message(role="assistant", content="I", reply=reply),
                Message(role="user", content="Cut."),
            )
        )
    )
    assert [p.content for p in messages[1].parts if isinstance(p, TextPart)] == ["I"]
    assert [p.content for p in messages[2].parts if isinstance(p, UserPromptPart)] == ["Cut."]


def test_an_empty_answer_is_sent_back_as_words() -> None:
    empty = Reply()
    messages = conversation(
        Request(messages=(*HELLO.messages, Message(role="assistant", content="", reply=empty)))
    )
    assert [p.content for p in messages[1].parts if isinstance(p, TextPart)] == ["(no answer)"]


# What comes back.


def test_tool_calls_become_actions_in_order() -> None:
    reply = saying(
        TextPart("Two steps."),
        ToolCallPart("write_file", {"path": "a", "content": "b"}),
        ToolCallPart("python_action", CODE),
    ).ask(Request(messages=HELLO.messages, actions=("python_action", "write_file")))
    assert reply.actions == (write_file("a", "b"), python_action("x = 1\nprint(x)"))
    assert (reply.text, reply.truncated, reply.notes) == ("Two steps.", False, ())


def test_a_truncated_tool_call_is_never_executed() -> None:
    reply = saying(
        ToolCallPart("python_action", CODE),
        ToolCallPart("python_action", '{"code": "import'),
        finish_reason="length",
    ).ask(HELLO)
    assert (reply.actions, reply.truncated) == ((), True)


def test_a_malformed_tool_call_is_a_note() -> None:
    reply = saying(ToolCallPart("python_action", '{"code": "import')).ask(HELLO)
    assert reply.actions == ()
    assert "cut or not JSON" in reply.notes[0]


def test_an_answer_the_content_filter_withheld_is_not_retried() -> None:
    with pytest.raises(ModelError, match="content filter") as raised:
        saying(finish_reason="content_filter").ask(HELLO)
    assert not raised.value.retryable


def test_the_price_of_a_known_model_is_counted_and_of_an_unknown_one_is_none() -> None:
    assert PydanticAIModel(PydanticTestModel()).ask(HELLO).usage.cost is None

    from pydantic_ai.usage import RequestUsage

    reply = saying(
        TextPart("x"), usage=RequestUsage(input_tokens=10**6), model_name="gpt-4o", provider_name="openai"
    )
    usage = reply.ask(HELLO).usage
    assert (usage.requests, usage.input_tokens) == (1, 10**6)


# A real server.


def test_a_server_is_asked_and_its_usage_read(openai: Any, server: Any) -> None:
    server.answers = [openai.completion("hi", [("python_action", CODE)])]
    reply = openai_model(server).ask(HELLO)
    assert reply.actions == (python_action("x = 1\nprint(x)"),)
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost) == (11, 7, None)
    assert [m["role"] for m in server.requests[0]["messages"]] == ["system", "user"]


def test_words_and_code_are_streamed_as_they_come(openai: Any, server: Any) -> None:
    server.answers = [openai.completion("I look.", [("python_action", CODE)])]
    pieces: list[str] = []
    reply = openai_model(server).ask(HELLO, pieces.append)
    assert "".join(pieces) == "I look.x = 1\nprint(x)"
    assert len(pieces) > 4
    assert reply.actions == (python_action("x = 1\nprint(x)"),)


def test_a_stream_cut_inside_a_tool_call_executes_nothing(openai: Any, server: Any) -> None:
    server.answers = [openai.stream(openai.chunks(None, [("python_action", CODE[:-4])], "length"))]
    reply = openai_model(server).ask(HELLO, lambda _: None)
    assert (reply.actions, reply.truncated) == ((), True)


def test_a_stream_that_breaks_off_executes_nothing(openai: Any, server: Any) -> None:
    server.answers = [openai.stream(openai.chunks("```python\nrm()", None, None))]
    with pytest.raises(ModelError) as raised:
        openai_model(server).ask(HELLO, lambda _: None)
    assert raised.value.retryable


@pytest.mark.parametrize(
    ("status", "retryable", "words"),
    [
        (429, True, "429"),
        (500, True, "500"),
        (503, True, "503"),
        (400, False, "will not help"),
        (401, False, "API key"),
        (403, False, "API key"),
        (404, False, "model's name"),
    ],
)
def test_a_refusal_says_whether_trying_again_helps(
    openai: Any, server: Any, status: int, retryable: bool, words: str
) -> None:
    server.answers = [openai.failure(status)]
    with pytest.raises(ModelError, match=words) as raised:
        openai_model(server).ask(HELLO)
    assert (raised.value.retryable, len(server.requests)) == (retryable, 1)


_HEAD = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "answer",
    [
        {**_HEAD, "choices": []},
        {**_HEAD, "choices": "none"},
        {**_HEAD, "choices": [None]},
        {**_HEAD, "choices": [{"index": 0, "message": None, "delta": None, "finish_reason": "stop"}]},
        {
            **_HEAD,
            "created": "now",
            "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}],
        },
        {"message": {"role": "assistant", "content": "of another kind"}, "done": True},
        ["a list"],
        "words",
        None,
    ],
    ids=str,
)
def test_an_answer_of_another_form_is_a_models_error(
    openai: Any, server: Any, answer: object, streamed: bool
) -> None:
    server.answers = [openai.raw(answer, streamed=streamed)]
    with pytest.raises(ModelError) as raised:
        openai_model(server).ask(HELLO, (lambda _: None) if streamed else None)
    assert raised.value.retryable


@pytest.mark.parametrize("kind", [AttributeError, IndexError, KeyError, TypeError, ValueError])
def test_an_error_of_the_callers_model_is_the_callers(kind: type[Exception]) -> None:
    def respond(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        raise kind("of the function")

    with pytest.raises(kind, match="of the function"):
        function(respond).ask(HELLO)


def test_the_wait_a_provider_asks_for_is_passed_on(openai: Any, server: Any) -> None:
    server.answers = [openai.failure(429, headers={"Retry-After": "7"})]
    with pytest.raises(ModelError) as raised:
        openai_model(server).ask(HELLO)
    assert raised.value.retry_after == 7.0


def test_a_provider_that_is_not_there_may_be_there_later() -> None:
    provider = OpenAIProvider(base_url="http://127.0.0.1:9/v1", api_key="k")
    with pytest.raises(ModelError) as raised:
        PydanticAIModel(OpenAIChatModel("m", provider=provider)).ask(HELLO)
    assert raised.value.retryable


@pytest.mark.parametrize("on_text", [None, lambda _: None], ids=["whole", "streamed"])
def test_a_provider_that_never_answers_is_given_up(openai: Any, server: Any, on_text: Any) -> None:
    # The first request makes the client and its certificates, which may take longer than the limit below.
    server.answers = [openai.completion("ready"), openai.hang(server)]
    model = chat_model(server)
    assert PydanticAIModel(model).ask(HELLO).text == "ready"
    with pytest.raises(ModelError) as raised:
        PydanticAIModel(model, seconds=1.0).ask(HELLO, on_text)
    assert raised.value.retryable
    assert server.dropped.wait(10)


# Threads, loops and forks.


async def test_a_sync_call_works_inside_a_running_loop() -> None:
    assert saying(TextPart("ok")).ask(HELLO).text == "ok"


async def test_many_coroutines_get_their_own_answers(openai: Any, server: Any) -> None:
    server.answers = [
        lambda handler, body: openai.completion(body["messages"][-1]["content"])(handler, body)
    ] * 20
    model = openai_model(server)
    requests = [Request(messages=(Message(role="user", content=f"number {n}"),)) for n in range(20)]
    replies = await asyncio.gather(*(model.aask(request) for request in requests))
    assert [reply.text for reply in replies] == [f"number {n}" for n in range(20)]


def test_many_threads_get_their_own_answers(openai: Any, server: Any) -> None:
    server.answers = [
        lambda handler, body: openai.completion(body["messages"][-1]["content"])(handler, body)
    ] * 8
    model = openai_model(server)
    answers: dict[int, str] = {}

    def ask(n: int) -> None:
        answers[n] = model.ask(Request(messages=(Message(role="user", content=f"number {n}"),))).text

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: f"number {n}" for n in range(8)}


def test_one_model_serves_one_event_loop_after_another(openai: Any, server: Any) -> None:
    server.answers = [openai.completion("one"), openai.completion("two"), openai.completion("three")]
    model = openai_model(server)
    texts = [asyncio.run(model.aask(HELLO)).text, asyncio.run(model.aask(HELLO)).text, model.ask(HELLO).text]
    assert texts == ["one", "two", "three"]


async def test_cancelling_a_call_ends_its_request(openai: Any, server: Any) -> None:
    server.answers = [openai.hang(server)]
    task = asyncio.create_task(openai_model(server).aask(HELLO))
    assert await asyncio.to_thread(server.asked.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.dropped.wait, 10)


async def test_pieces_arrive_in_the_callers_own_loop(openai: Any, server: Any) -> None:
    server.answers = [openai.completion("some words")]
    threads: set[int] = set()
    await openai_model(server).aask(HELLO, lambda _: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


def test_an_error_of_the_listener_is_the_callers(openai: Any, server: Any) -> None:
    server.answers = [openai.completion("some words")]

    def listen(_piece: str) -> None:
        raise KeyError("listener")

    with pytest.raises(KeyError, match="listener"):
        openai_model(server).ask(HELLO, listen)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_ask_too() -> None:
    model = saying(TextPart("ok"))
    assert model.ask(HELLO).text == "ok"
    child = os.fork()
    if child == 0:
        os._exit(0 if model.ask(HELLO).text == "ok" else 1)
    assert os.waitpid(child, 0)[1] == 0


def failing() -> FunctionModel:
    async def fail(messages: list[Any], info: AgentInfo) -> Any:
        raise ModelAPIError("first", "is not there")

    return FunctionModel(fail, model_name="first")


FALLBACKS: dict[str, Callable[..., Any]] = {
    "one": lambda answering: FallbackModel(failing(), answering),
    "in a wrapper": lambda answering: WrapperModel(FallbackModel(failing(), answering)),
    "in another": lambda answering: FallbackModel(failing(), FallbackModel(failing(), answering)),
}


@pytest.mark.parametrize("make", FALLBACKS.values(), ids=FALLBACKS)
def test_a_fallback_model_is_asked_like_any_other(make: Callable[..., Any]) -> None:
    reply = ModelResponse(parts=[TextPart("```python\n1\n```")])
    model = PydanticAIModel(make(FunctionModel(lambda messages, info: reply, model_name="second")))
    assert model.provider == "fallback"
    assert "second" in model.name
    assert [action.code for action in model.ask(HELLO).actions] == ["1"]


def test_a_fallback_model_offers_tools_only_where_each_of_its_models_takes_them() -> None:
    without = PydanticTestModel(profile=ModelProfile(supports_tools=False))
    assert PydanticAIModel(FallbackModel(PydanticTestModel(), without)).profile.tools is False
    assert PydanticAIModel(FallbackModel(PydanticTestModel(), PydanticTestModel())).profile.tools is True


def test_each_call_is_answered_with_its_own_result_where_it_is_known() -> None:
    calls = [ToolCallPart("python_action", {"code": f"{name}()"}, name) for name in "ab"]
    reply = saying(*calls).ask(HELLO)
    answer = Message(
        role="user", content="[action 1]\n3\n[action 2]\n4", results=("3", "4"), note="[turn 2 of 9]"
    )
    asked = (*HELLO.messages, Message(role="assistant", content="", reply=reply), answer)
    messages = conversation(Request(messages=asked))
    returns = [p for p in messages[2].parts if isinstance(p, ToolReturnPart)]
    assert [p.content for p in returns] == ["3", "4\n\n[turn 2 of 9]"]
