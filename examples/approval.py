r"""A web service whose agent pays money back, once a person has said yes on a page.

Run it with ``python examples/approval.py [--model MODEL] [--port PORT] [--state DIRECTORY]``, then::

    curl -d '{"order": "A7", "text": "It came broken."}' -H 'content-type: application/json' \
        http://127.0.0.1:8000/complaints

and open http://127.0.0.1:8000: each refund over 50 waits there with two buttons. A run that waits is in the
directory and costs no process: stop the service, start it again, and the page still has it.

It needs the extra `examples` (``pip install ".[examples]"`` in a checkout); see ``funcy.py`` for the model.
The page has no login: put one before it, as before any page that pays.
"""

import argparse
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from agex import (
    Agent,
    Budget,
    DefinitionError,
    Disk,
    HostCall,
    Run,
    StateConflict,
    TaskError,
    TaskSuspended,
    Versioned,
    runs,
)

PRICES = {"A7": 80, "B2": 20}

app = FastAPI(title="Complaints")
agent = Agent(name="desk", state=Versioned(), budget=Budget(calls=6, seconds=120))
paid: list[str] = []


def is_large(call: HostCall) -> bool:
    """Return whether a person has to say yes."""
    amount: int = call.kwargs["amount"] if "amount" in call.kwargs else call.args[1]
    return amount > 50


@agent.fn
def price(order: str) -> int:
    """Return the price of an order."""
    return PRICES[order]


@agent.fn(external=True, approval=is_large)
def refund(order: str, amount: int) -> str:
    """Pay money back. It acts on the world: it is journalled, and never made twice."""
    paid.append(f"{amount} for {order}")
    return paid[-1]


@agent.task
def settle(order: str, text: str) -> str:
    """Settle a complaint: refund the whole price if the order came broken.

    Return what the customer is told.
    """
    raise NotImplementedError


class Complaint(BaseModel):
    """What a customer writes."""

    order: str
    text: str


class Decision(BaseModel):
    """The word of a person."""

    call: str
    """The id of the call that the person saw: another one is refused."""
    amount: int | None = None
    """Another amount than the agent wants to pay."""
    reason: str = ""


@app.post("/complaints")
def post_complaint(complaint: Complaint) -> dict[str, Any]:
    """Settle a complaint, or say that it waits."""
    try:
        return told(settle.run(complaint.order, complaint.text))
    except TaskSuspended as stopped:
        return told(stopped.run)
    except TaskError as error:
        raise HTTPException(502, f"{type(error).__name__}: {error.message}") from error


@app.post("/runs/{run_id}/approve")
def approve(run_id: str, decision: Decision) -> dict[str, Any]:
    """Let the call be made."""
    changed = None if decision.amount is None else {"amount": decision.amount}
    return decided(run_id, lambda run: run.approve(changed, call=decision.call))


@app.post("/runs/{run_id}/reject")
def reject(run_id: str, decision: Decision) -> dict[str, Any]:
    """Let the call not be made: the agent's code is told why, and goes on."""
    return decided(run_id, lambda run: run.reject(decision.reason, call=decision.call))


def decided(run_id: str, decide: Callable[[Run[str]], Run[str]]) -> dict[str, Any]:
    """Go on with a run that waits."""
    if run_id not in {one.run_id for one in runs(agent.state) if one.status == "suspended"}:
        raise HTTPException(409, "no call of this run waits")
    try:
        return told(decide(settle.resume(run_id=run_id)))
    except TaskSuspended as stopped:  # its next call waits, too
        return told(stopped.run)
    except (DefinitionError, RuntimeError, StateConflict) as error:  # another call, or somebody was first
        raise HTTPException(409, str(error)) from error
    except TaskError as error:
        raise HTTPException(502, f"{type(error).__name__}: {error.message}") from error


def told(run: Run[str] | None) -> dict[str, Any]:
    """Say how a run stands."""
    assert run is not None
    waits = None if run.call is None else {"id": run.call.id, "text": str(run.call)}
    return {"run": run.run_id, "answer": run.value, "waits": waits}


PAGE = """<!doctype html><meta charset="utf-8"><title>Refunds</title>
<style>body {{ font: 16px sans-serif; margin: 3em }} button {{ margin-left: 1em }}</style>
<h1>Refunds that wait</h1><ul>{items}</ul>
<script>
document.querySelectorAll("button").forEach(button => button.onclick = async () => {{
  const item = button.parentElement, reason = button.name == "reject" ? prompt("Why not?") : "";
  if (reason === null) return;
  const body = JSON.stringify({{call: item.dataset.call, reason}});
  const headers = {{"content-type": "application/json"}};
  const answer = await fetch(`/runs/${{item.id}}/${{button.name}}`, {{method: "POST", headers, body}});
  if (!answer.ok) alert((await answer.json()).detail);
  location.reload();
}});
</script>"""
ITEM = """<li id="{run}" data-call="{call}">{text}
<button name="approve">Approve</button><button name="reject">Reject</button></li>"""


@app.get("/", response_class=HTMLResponse)
def page() -> str:
    """Show the calls that wait, each with two buttons. Texts of the agent are escaped."""
    waiting = [one for one in runs(agent.state) if one.call is not None]
    items = [
        ITEM.format(run=escape(one.run_id), call=escape(one.call.id), text=escape(str(one.call)))
        for one in waiting
        if one.call is not None
    ]
    return PAGE.format(items="".join(items) or "<li>None.</li>")


def main(model: object = None, port: int = 8000, directory: Path = Path("complaints")) -> None:
    """Serve on loopback."""
    agent.model = model
    agent.resolved_model()  # without a model, say so now and not to the first customer
    agent.state = Versioned(Disk(directory))
    uvicorn.run(app, host="127.0.0.1", port=port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--state", type=Path, default=Path("complaints"), help="where runs are kept")
    arguments = parser.parse_args()
    main(arguments.model, arguments.port, arguments.state)
