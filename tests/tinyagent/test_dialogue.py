"""The conversation by hand, and as a provider with tool calls is sent it."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from agex.agent.loop.loop import Observation
from agex.models.base import Profile, Reply
from agex.tinyagent import AgentMemory, MemoryManager, TinyCodeAgent, prune_old_observations
from agex.tinyagent.dialogue import Dialogue


def dialogue(**settings):
    given = {
        "manager": MemoryManager(),
        "system": "rules",
        "task": "the task",
        "memory": AgentMemory(),
        "taken": list,
        "prune": None,
        "profile": Profile(),
    }
    return Dialogue(**{**given, **settings})


def contents(request):
    return [(message.role, message.content) for message in request.messages]


def test_it_begins_with_the_instructions_and_the_task():
    assert contents(dialogue().request(1, 9)) == [("system", "rules"), ("user", "the task")]


def test_answers_and_observations_follow():
    one = dialogue()
    one.add(Reply(text="```python\nx\n```"), Observation(text="seen"))
    one.add(Reply(), Observation(text="not so", failed=True, brief="not so"))
    assert contents(one.request(3, 7))[2:-1] == [
        ("assistant", "```python\nx\n```"),
        ("user", "Observation: seen"),
        ("assistant", "(no text)"),
    ]
    assert contents(one.request(3, 7))[-1][1].startswith("not so\n\n## Working Memory")


def test_what_the_caller_says_besides_is_a_further_task():
    one = dialogue()
    one.answered("in metres")
    assert contents(one.request(2, 8))[-1] == ("user", "in metres")


def test_notes_stand_in_a_message_of_their_own_where_the_model_spoke_last():
    one = dialogue(prune=lambda steps: steps[:1], memory=AgentMemory(observations=["o"]))
    one.add(Reply(text="a"), Observation(text="b"))
    assert contents(one.request(2, 8)) == [
        ("system", "rules"),
        ("user", "## Working Memory\n\n### Observations\n- o"),
    ]


def test_another_strategy_of_pruning_can_be_used():
    one = dialogue(prune=prune_old_observations(keep_last_n=1, max_length=3))
    for _ in range(2):
        one.add(Reply(text="a"), Observation(text="seen"))
    assert [content for role, content in contents(one.request(3, 7)) if role == "user"][1:] == [
        "Observation: see... (1 characters cut)",
        "Observation: seen",
    ]


def test_a_provider_with_tool_calls_is_sent_its_own_calls_and_their_results():
    requests = []

    def respond(messages, info):
        requests.append(messages)
        if len(requests) == 1:
            return ModelResponse(parts=[ToolCallPart("python_action", {"code": "x = 6 * 7\nx"}, "call-1")])
        return ModelResponse(parts=[TextPart("```python\nfinal_answer(x)\n```")])

    one = TinyCodeAgent(model=FunctionModel(respond))
    assert one.run_sync("What is six times seven?") == "42"
    _, call, result = requests[1]
    assert [type(part) for part in call.parts] == [ToolCallPart]
    assert [(type(part), part.tool_call_id, part.content) for part in result.parts] == [
        (ToolReturnPart, "call-1", "Observation: 42")
    ]
