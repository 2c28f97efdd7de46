"""Durable runs over many processes: workers that carry on what other processes left, and engines of others.

This room decides who carries a run on. It never decides what a run does next: that is `agent.durable`, and
the compare-and-swap of a branch is what refuses a second writer, whatever a lease says. In order: `leases`
(one branch, one worker), `enqueueing`, `workers`; `dbos` stands alone.
"""

from __future__ import annotations

from agex.durable.enqueueing import enqueue
from agex.durable.leases import leased
from agex.durable.workers import Report, Worker

__all__ = ["Report", "Worker", "enqueue", "leased"]
