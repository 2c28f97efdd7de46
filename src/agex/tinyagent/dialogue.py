"""A run as a conversation: its steps in the memory, and the request made from them for each turn."""

from __future__ import annotations

from collections.abc import Callable

from agex.agent.loop.loop import Observation
from agex.models.actions import PythonAction
from agex.models.base import Message, Profile, Reply, Request
from agex.models.parser import render
from agex.tinyagent.python_executor import ExecutionResult
from agex.tinyagent.scratchpad import AgentMemory
from agex.tinyagent.step_memory import MemoryManager, PruneStrategy
from agex.tinyagent.steps import ActionStep, Step, SystemPromptStep, TaskStep

__all__ = ["Dialogue"]

_LAST_STEP = "This is your last step: call final_answer now."
_BLOCK = "```python\n"

Taken = Callable[[], list[ExecutionResult]]


class Dialogue:
    """The conversation with the model, turn by turn; an `agex.agent.loop.loop.Conversation`.

    Args:
        manager: holds the steps; it is cleared first.
        system: the instructions.
        task: what the user wants.
        memory: shown with the last message of each request, so that what was sent before never changes.
        taken: gives the results of what was executed since it was last asked.
        prune: applied after every step; None for no pruning.
        profile: how the model wants to be talked to. A small one is shown its last step only.
    """

    def __init__(
        self,
        *,
        manager: MemoryManager,
        system: str,
        task: str,
        memory: AgentMemory,
        taken: Taken,
        prune: PruneStrategy | None,
        profile: Profile,
    ) -> None:
        self.steps: list[ActionStep] = []
        self._manager = manager
        self._memory = memory
        self._taken = taken
        self._prune = prune
        self._is_small = profile.style == "completion"
        self._failed: list[str] = []
        manager.clear()
        manager.add(SystemPromptStep(content=system))
        manager.add(TaskStep(task=task))

    def request(self, turn: int, turns_left: int) -> Request:
        """Return the request of this turn."""
        messages = [message for step in self._shown() for message in _messages(step)]
        notes = [] if self._is_small else [self._memory.to_context(self._failed)]
        if turns_left == 0 and turn > 1:
            notes.append(_LAST_STEP)
        return Request(
            messages=tuple(_with_notes(messages, notes)),
            attempt=turn - 1,
            prefill=_BLOCK if self._is_small else "",
        )

    def _shown(self) -> list[Step]:
        steps = self._manager.steps
        if not self._is_small:
            return steps
        last = {id(step) for step in self._manager.get_steps_by_type(ActionStep)[-1:]}
        return [step for step in steps if not isinstance(step, ActionStep) or id(step) in last]

    def add(self, reply: Reply, seen: Observation) -> None:
        """Record an answer and its results."""
        results = self._taken()
        step = ActionStep(
            thought="" if not reply.actions or "```" in reply.text else reply.text.strip(),
            code="\n\n".join(each.code for each in reply.actions if isinstance(each, PythonAction)),
            output="\n".join(each.output for each in results if each.output),
            observation="" if seen.failed else seen.text,
            error=seen.text if seen.failed else "",
            is_final=any(each.is_final for each in results),
            duration_seconds=sum(each.duration_ms for each in results) / 1000,
            raw_llm_response=reply.text or render(reply.actions),
            reply=reply,
        )
        self._manager.add(step)
        self.steps.append(step)
        if seen.failed:
            self._failed.append(f"Step {len(self.steps)}: {seen.brief.strip()}")
        if self._prune is not None:
            self._manager.prune(self._prune)

    def answered(self, text: str) -> None:
        """Record a further message of the caller, as a task."""
        self._manager.add(TaskStep(task=text))


def _messages(step: Step) -> list[Message]:
    reply = step.reply if isinstance(step, ActionStep) else None
    return [
        Message(
            role=message["role"],  # type: ignore[arg-type]  # what a step says is one of the three
            content=message["content"],
            reply=reply if message["role"] == "assistant" else None,
        )
        for message in step.to_messages()
    ]


def _with_notes(messages: list[Message], notes: list[str]) -> list[Message]:
    text = "\n\n".join(note for note in notes if note)
    if not text:
        return messages
    if messages and messages[-1].role == "user":
        last = messages.pop()
        text = f"{last.content}\n\n{text}"
    return [*messages, Message(role="user", content=text)]
