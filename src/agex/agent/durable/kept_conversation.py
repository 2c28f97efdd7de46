"""A conversation whose turns are noted in the journal of the run, so that it can be had again."""

from __future__ import annotations

from agex.agent.durable.run_journal import RunJournal
from agex.agent.loop.loop import Conversation, Observation
from agex.models.base import Reply, Request

__all__ = ["KeptConversation"]


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
