r"""A web service whose handlers await tasks: many requests at a time, in one event loop.

Run it with ``python examples/service.py [--model MODEL] [--port PORT]``, then::

    curl -d '{"text": "I was charged twice!", "customer": 7}' -H 'content-type: application/json' \
        http://127.0.0.1:8000/tickets

It needs the extra `examples` (``pip install "agex-py[examples]"``); see ``funcy.py`` for the model.
"""

import argparse
from collections.abc import AsyncIterator
from typing import Literal

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from agex import Agent, Budget, TaskError

CONTRACTS = {7: "gold", 8: "free"}

app = FastAPI(title="Tickets")
agent = Agent(name="desk", budget=Budget(calls=6, seconds=120))


class Ticket(BaseModel):
    """What a customer writes."""

    text: str
    customer: int


class Verdict(BaseModel):
    """Where a ticket goes."""

    topic: Literal["billing", "bug", "praise"]
    urgent: bool


@agent.fn
async def contract(customer: int) -> str:
    """Return the kind of contract that a customer has: 'gold' or 'free'."""
    # An async function of yours: the agent's code calls it as contract(7), and the event loop goes on.
    return CONTRACTS.get(customer, "free")


@agent.task
async def triage(text: str, customer: int) -> Verdict:
    """Find the topic of a ticket. It is urgent if the contract is gold and the topic not praise."""
    raise NotImplementedError


@app.post("/tickets")
async def post_ticket(ticket: Ticket) -> Verdict:
    """Answer with the verdict: the task's return type is the response's."""
    try:
        return await triage(ticket.text, ticket.customer)
    except TaskError as error:  # ordinary exceptions: no handler is torn down by an agent
        raise HTTPException(502, f"{type(error).__name__}: {error.message}") from error


@app.post("/tickets/events")
async def watch_ticket(ticket: Ticket) -> StreamingResponse:
    """Tell what happens while it happens, one JSON document a line."""

    async def lines() -> AsyncIterator[str]:
        run = triage.start(ticket.text, ticket.customer)
        try:
            async for event in run:
                yield event.model_dump_json() + "\n"
        finally:
            run.cancel()  # for a client that is gone; without effect on a run that is over

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def main(model: object = None, port: int = 8000) -> None:
    """Serve on loopback."""
    agent.model = model
    agent.resolved_model()  # without a model, say so now and not to the first customer
    uvicorn.run(app, host="127.0.0.1", port=port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    main(arguments.model, arguments.port)
