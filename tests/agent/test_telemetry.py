"""Spans of tasks, actions and requests, as an exporter of the SDK gets them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel

from agex.agent import Agent
from agex.errors import TaskFail
from agex.state import Versioned
from agex.testing import ScriptedModel, python_action

Spans = Callable[[], Sequence[ReadableSpan]]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """Set up tracing, as ``set_tracer_provider`` does once a process; give the finished spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter.get_finished_spans


def scripted(*codes: str, **settings: Any) -> Agent:
    return Agent(model=ScriptedModel([[python_action(code)] for code in codes]), **settings)


def calling(*codes: str) -> FunctionModel:
    """Give a pydantic-ai model that calls the tool with these pieces of code in turn."""
    left = list(codes)

    def respond(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart("python_action", {"code": left.pop(0)})])

    return FunctionModel(respond, model_name="parrot")


def double(agent: Agent) -> Any:
    @agent.task
    def f(x: int) -> int:
        """Double it."""

    return f


def tree(spans: Sequence[ReadableSpan]) -> list[str]:
    """Write each span's name under its parent's, in the order they began."""
    names = {span.context.span_id: span for span in spans}

    def path(span: ReadableSpan) -> str:
        above = names.get(span.parent.span_id) if span.parent is not None else None
        return f"{path(above)} > {span.name}" if above is not None else span.name

    return [path(span) for span in sorted(spans, key=lambda span: span.start_time or 0)]


def test_a_task_is_a_span_over_its_requests_and_actions(spans: Spans) -> None:
    agent = Agent(model=calling("x", "task_success(x * 2)"), name="doubler")
    assert double(agent)(4) == 8
    assert tree(spans()) == [
        "invoke_agent doubler",
        "invoke_agent doubler > chat parrot",
        "invoke_agent doubler > execute_tool python_action",
        "invoke_agent doubler > chat parrot",
        "invoke_agent doubler > execute_tool python_action",
    ]


async def test_an_async_task_is_traced_the_same_way(spans: Spans) -> None:
    agent = Agent(model=calling("task_success(x * 2)"), name="doubler")

    @agent.task
    async def f(x: int) -> int:
        """Double it."""

    assert await f(4) == 8
    assert tree(spans()) == [
        "invoke_agent doubler",
        "invoke_agent doubler > chat parrot",
        "invoke_agent doubler > execute_tool python_action",
    ]


def test_a_called_task_is_a_span_under_the_action_that_called_it(spans: Spans) -> None:
    inner, outer = (
        scripted("task_success(1)", name="inner"),
        scripted("task_success(work())", name="outer"),
    )

    @outer.fn
    @inner.task
    def work() -> int: ...

    @outer.task
    def top() -> int: ...

    assert top() == 1
    action = "invoke_agent outer > execute_tool python_action"
    assert tree(spans()) == [
        "invoke_agent outer",
        action,
        f"{action} > invoke_agent inner",
        f"{action} > invoke_agent inner > execute_tool python_action",
    ]


async def test_an_async_task_called_from_code_is_a_span_under_its_action(spans: Spans) -> None:
    inner, outer = (
        scripted("task_success(1)", name="inner"),
        scripted("task_success(work())", name="outer"),
    )

    @outer.fn
    @inner.task
    async def work() -> int: ...

    @outer.task
    async def top() -> int: ...

    assert await top() == 1
    assert tree(spans())[2] == "invoke_agent outer > execute_tool python_action > invoke_agent inner"


async def test_runs_side_by_side_do_not_mix_their_spans(spans: Spans) -> None:
    agent = Agent(model=ScriptedModel(lambda messages: "```python\ntask_success(x)\n```"), name="one")

    @agent.task
    async def f(x: int) -> int: ...

    assert await asyncio.gather(*(f(n) for n in range(8))) == list(range(8))
    by_run: dict[Any, set[int]] = {}
    for span in spans():
        by_run.setdefault((span.attributes or {})["agex.run.id"], set()).add(span.context.trace_id)
    assert sorted(len(traces) for traces in by_run.values()) == [1] * 8


def test_spans_carry_the_names_of_the_conventions(spans: Spans) -> None:
    agent = scripted("task_success(x)", name="doubler", state=Versioned())
    run = double(agent).run(4)
    action, task = (dict(span.attributes or {}) for span in spans())
    assert action == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "python_action",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "doubler",
        "agex.run.id": run.run_id,
        "agex.turn": 1,
        "agex.action.failed": False,
    }
    assert task == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "doubler",
        "gen_ai.provider.name": "testing",
        "gen_ai.request.model": "scripted",
        "agex.task.name": "f",
        "agex.run.id": run.run_id,
        "gen_ai.aggregated_usage.input_tokens": run.usage.input_tokens,
        "gen_ai.aggregated_usage.output_tokens": run.usage.output_tokens,
        "agex.requests": 1,
        "operation.cost": 0.0,
        "agex.commit": run.commit,
    }


def test_an_action_that_fails_and_a_task_that_fails_say_so(spans: Spans) -> None:
    with pytest.raises(TaskFail):
        double(scripted("1 / 0", "task_fail('no')"))(4)
    told = [
        (span.name, (span.attributes or {}).get("error.type"), span.status.status_code) for span in spans()
    ]
    assert told == [
        ("execute_tool python_action", "_OTHER", trace.StatusCode.ERROR),
        ("execute_tool python_action", None, trace.StatusCode.UNSET),
        ("invoke_agent agent", "TaskFail", trace.StatusCode.ERROR),
    ]


async def test_a_cancelled_task_says_so(spans: Spans) -> None:
    begun = asyncio.Event()
    agent = scripted("wait()")

    @agent.fn
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    @agent.task
    async def f() -> int: ...

    running = asyncio.ensure_future(f())
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [(span.attributes or {})["error.type"] for span in spans()] == ["cancelled", "cancelled"]


def test_no_span_carries_what_was_asked_written_or_computed(spans: Spans) -> None:
    agent = Agent(
        model=calling("secret = 'sesame'\nprint(secret)", "raise KeyError('sesame')", "task_fail('sesame')"),
        primer="The password is sesame.",
    )
    with pytest.raises(TaskFail):
        double(agent)(4)
    assert [span.name for span in spans() if "sesame" in span.to_json()] == []


def test_a_model_that_was_told_to_record_contents_does(spans: Spans) -> None:
    settings = InstrumentationSettings(tracer_provider=trace.get_tracer_provider())
    agent = Agent(model=InstrumentedModel(calling("task_success(len('sesame'))"), settings))
    assert double(agent)(4) == 6
    assert [span.name for span in spans() if "sesame" in span.to_json()] == ["chat parrot"]


def printed_by(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


RUN = """
from agex.agent import Agent
from agex.testing import ScriptedModel
agent = Agent(model=ScriptedModel(["```python\\ntask_success(1)\\n```"]))
@agent.task
def f() -> int: ...
assert f() == 1
"""


def test_where_nothing_is_set_up_nothing_is_imported() -> None:
    loaded = "import sys; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    assert printed_by(RUN + loaded) == "[]\n"


def test_the_processs_own_provider_is_found() -> None:
    setup = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
"""
    assert printed_by(setup + RUN + "print([span.name for span in exporter.get_finished_spans()])") == (
        "['execute_tool python_action', 'invoke_agent agent']\n"
    )


def test_an_api_that_is_loaded_and_not_set_up_makes_no_spans() -> None:
    told = "from agex.models.instrumentation import tracer_provider; print(tracer_provider())"
    assert printed_by("import opentelemetry.trace\n" + RUN + told) == "None\n"
