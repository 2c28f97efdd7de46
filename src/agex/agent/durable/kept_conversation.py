"""A conversation whose turns are noted in the journal of the run, so that it can be had again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agex.agent.durable.records import ExchangeRecord
from agex.agent.durable.run_journal import RunJournal
from agex.agent.loop.loop import Conversation, Observation, Plan, Talk, Tried
from agex.models.base import Reply, Request

__all__ = ["KeptConversation", "noted", "replay"]


class KeptConversation:
    """A conversation with a record of its turns.

    Args:
        conversation: what the model is told.
        journal: of the run.
    """

    def __init__(self, conversation: Conversation, journal: RunJournal) -> None:
        self._conversation = conversation
        self._journal = journal

    def request(self, turn: int, turns_left: int) -> Request:
        """Return the request of a turn."""
        return self._conversation.request(turn, turns_left)

    def add(self, reply: Reply, seen: Observation) -> None:
        """Take in an answer and what the model is shown of its effect."""
        self._conversation.add(reply, seen)
        self._journal.exchanged(reply, seen)

    def answered(self, text: str) -> None:
        """Take in what the caller answers to its question."""
        self._conversation.answered(text)


def noted(talk: Talk, journal: RunJournal) -> Talk:
    """Return a talk of which the journal takes note, also after a further model took over."""
    successor = talk.successor

    def begin(model: int, tried: Sequence[Tried]) -> Conversation:
        assert successor is not None
        return KeptConversation(successor(model, tried), journal)

    return replace(
        talk,
        conversation=KeptConversation(talk.conversation, journal),
        successor=None if successor is None else begin,
    )


def replay(talk: Talk, plan: Plan, exchanges: Iterable[ExchangeRecord]) -> None:
    """Lead a talk through the turns of a run that are over, as the loop did."""
    for one in exchanges:
        reply, shown = one.reply.reply(), one.shown.observation()
        talk.conversation.add(reply, shown)
        if one.answer is not None:
            talk.conversation.answered(one.answer)
        talk.tried.append((reply, shown))
        talk.failed += shown.failed
        if talk.failed >= plan.escalate_after and talk.successor and talk.model + 1 < len(plan.models):
            talk.model, talk.failed = talk.model + 1, 0
            talk.conversation = talk.successor(talk.model, talk.tried)
