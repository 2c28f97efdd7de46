"""The local model: what it says without weights, and one real engine when they are there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agex.errors import ModelNotConfigured, WeightsCorrupt
from agex.models import Message, ModelError, Request
from agex.models.local import LocalModel, LocalSettings, is_installed
from agex.models.weights import can_find

PRIME = Request(
    messages=(
        Message(
            role="user",
            content="Complete this function. Reply with one Python block.\n\n"
            "```python\ndef is_even(n: int) -> bool:\n```",
        ),
    )
)
SHORT = LocalSettings(context=1024, max_tokens=6)

installed = pytest.mark.skipif(not is_installed(), reason="the runtime (extra `local`) is not installed")


@pytest.fixture
def model() -> LocalModel:
    if not is_installed():
        pytest.skip("the runtime (extra `local`) is not installed")
    if not can_find({}):
        pytest.skip("no weights (extra `local-weights`) are installed")
    return LocalModel(environ={}, settings=LocalSettings(context=1024, max_tokens=120))


@pytest.fixture
def short(model: LocalModel) -> LocalModel:
    assert model.profile.style == "completion"
    return LocalModel(environ={}, settings=SHORT)


def test_making_one_needs_neither_runtime_nor_weights() -> None:
    model = LocalModel("/no/such/file.gguf", environ={})
    assert (model.provider, model.name, model.profile.tools) == ("local", "file", False)


@installed
def test_without_weights_the_ways_to_get_them_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotConfigured, match="no such file"):
        LocalModel(tmp_path / "none.gguf", environ={}).ask(PRIME)


@installed
def test_a_gguf_that_cannot_be_loaded_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(WeightsCorrupt, match=r"cannot load .*cut\.gguf"):
        LocalModel(path, environ={}).ask(PRIME)


@pytest.mark.local_model
@pytest.mark.slow
def test_it_completes_a_function_and_streams_it(model: LocalModel) -> None:
    pieces: list[str] = []
    reply = model.ask(PRIME, pieces.append)
    assert "".join(pieces) == reply.text
    assert len(pieces) > 5
    assert not reply.truncated
    (action,) = reply.actions
    assert action.kind == "python_action"
    namespace: dict[str, object] = {}
    exec(action.code, namespace)
    assert callable(namespace["is_even"])
    assert (reply.usage.requests, reply.usage.cost) == (1, 0.0)
    assert reply.usage.input_tokens > 10
    assert reply.usage.output_tokens >= len(pieces) - 1


@pytest.mark.local_model
@pytest.mark.slow
def test_it_goes_on_from_a_prefill(model: LocalModel) -> None:
    prefill = "```python\ndef is_even(n: int) -> bool:\n"
    reply = model.ask(Request(messages=PRIME.messages, prefill=prefill))
    assert reply.text.startswith(prefill)
    assert reply.actions[0].kind == "python_action"


@pytest.mark.local_model
def test_a_model_that_does_not_stop_is_cut_and_nothing_of_it_is_an_action(short: LocalModel) -> None:
    reply = short.ask(PRIME)
    assert (reply.truncated, reply.actions, reply.usage.output_tokens) == (True, (), 6)


@pytest.mark.local_model
def test_the_same_request_gets_the_same_answer_from_any_thread(short: LocalModel) -> None:
    second = Request(messages=PRIME.messages, attempt=2)
    answers: list[tuple[int, str]] = []

    def ask(request: Request) -> None:
        answers.append((request.attempt, LocalModel(environ={}, settings=SHORT).ask(request).text))

    threads = [threading.Thread(target=ask, args=(request,)) for request in (PRIME, second) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert len(set(answers)) == 2


@pytest.mark.local_model
def test_a_conversation_longer_than_the_context_is_a_clear_error(short: LocalModel) -> None:
    with pytest.raises(ModelError, match=r"reads 1024\. Shorten") as raised:
        short.ask(Request(messages=(Message(role="user", content="word " * 3000),)))
    assert not raised.value.retryable


@pytest.mark.local_model
def test_an_error_of_the_listener_ends_the_answer_and_is_the_callers(model: LocalModel) -> None:
    pieces: list[str] = []

    def listen(piece: str) -> None:
        pieces.append(piece)
        raise KeyError("listener")

    with pytest.raises(KeyError, match="listener"):
        model.ask(PRIME, listen)
    assert len(pieces) == 1


@pytest.mark.local_model
async def test_cancelling_stops_the_engine_at_the_next_token(model: LocalModel) -> None:
    begun = asyncio.Event()
    pieces: list[str] = []
    loop = asyncio.get_running_loop()

    def listen(piece: str) -> None:
        pieces.append(piece)
        loop.call_soon_threadsafe(begun.set)

    task = asyncio.create_task(model.aask(PRIME, listen))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(LocalModel(environ={}, settings=SHORT).ask, PRIME)


@pytest.mark.local_model
@pytest.mark.slow
def test_a_process_that_used_it_ends_at_once_and_without_noise(short: LocalModel) -> None:
    code = (
        "from agex.models import Message, Request\n"
        "from agex.models.local import LocalModel, LocalSettings\n"
        "model = LocalModel(environ={}, settings=LocalSettings(context=512, max_tokens=2))\n"
        "model.ask(Request(messages=(Message(role='user', content='Hi'),)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.local_model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_loads_its_own_engine(short: LocalModel) -> None:
    expected = short.ask(PRIME).text
    child = os.fork()
    if child == 0:
        os._exit(0 if short.ask(PRIME).text == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
