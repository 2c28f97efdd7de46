"""A journal from a stranger: its commits are whole, and what they hold is what he liked."""

from __future__ import annotations

import json
import pickle
import time

import pytest

from agex import Agent, StateCorrupt, TaskSuspended, Versioned, runs, values
from agex.errors import AgexError
from agex.state.commits.journal import Draft
from agex.testing import ScriptedModel

MADE: list[object] = []


class Bomb:
    def __reduce__(self):
        return MADE.append, ("code of the journal was run",)


def suspended() -> tuple[Versioned, str, object]:
    MADE.clear()
    state = Versioned()
    agent = Agent(model=ScriptedModel(["```python\ntask_success(pay(n))\n```"]), state=state, name="bank")

    @agent.fn(external=True, approval=True)
    def pay(n: int) -> str:
        """Pay."""
        MADE.append(n)
        return f"{n} paid"

    @agent.task
    def settle(n: int) -> str:
        """Settle."""

    with pytest.raises(TaskSuspended) as raised:
        settle(5)
    return state, raised.value.run.run_id, settle


def forged(state: Versioned, key: str, payload: bytes) -> Versioned:
    """Return the state with one entry replaced, in a commit whose hashes are right."""
    journal = state.store.journal()
    head = journal.branches()["main"]
    draft = Draft(parents=(head,), changes={f"r/{key}": payload}, time=time.time(), message="forged")
    journal.commit(draft, branch="main", expect=head)
    return Versioned(state.store)


def entry(value: object) -> bytes:
    (group,) = values.encode({"entry": value}, allow=values.Allow())
    return values.cut(group, lambda chunk: b"").payload


def call_key(state: Versioned) -> str:
    (key,) = [key for key in state.entry_keys() if "/call/" in key]
    return key


@pytest.mark.parametrize("part", ["", "/call/0001.01.0001", "/inputs", "/turn", "/opening", "/means"])
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00",
        b"no recipe at all",
        entry(["a list"]),
        entry({"record": 3}),
        entry({"record": "no json"}),
        entry({"record": "{}"}),
        entry({"record": json.dumps({"run_id": "other", "extra": 1})}),
        entry({1: 2}),
    ],
    ids=["empty", "zero", "noise", "list", "number", "text", "nothing", "extra", "keys"],
)
def test_an_entry_that_is_none_is_corrupt_and_nothing_is_called(part, payload):
    state, run_id, settle = suspended()
    other = forged(state, run_id + part, payload)
    with pytest.raises(StateCorrupt):
        settle.resume(state=other, run_id=run_id)
    assert MADE == []


def test_a_pickle_that_calls_is_not_loaded():
    state, run_id, settle = suspended()
    stream = pickle.dumps({"entry": {"record": "{}", "result": Bomb()}}, protocol=5)
    group = values.Group(names=("entry",), stream=stream, buffers=())
    payload = values.cut(group, lambda chunk: b"").payload
    for key in (run_id, call_key(state), f"{run_id}/inputs"):
        with pytest.raises(AgexError):
            settle.resume(state=forged(state, key, payload), run_id=run_id)
    assert MADE == []


def test_a_call_recorded_for_another_place_is_corrupt():
    state, run_id, settle = suspended()
    found = state.entry(call_key(state))
    moved = f"{run_id}/call/0001.01.0002"
    with pytest.raises(StateCorrupt, match="says that it is of call"):
        settle.resume(state=forged(state, moved, entry(found)), run_id=run_id)


def test_a_run_under_the_name_of_another_is_corrupt():
    state, run_id, _ = suspended()
    other = forged(state, "f" * 32, entry(state.entry(run_id)))
    with pytest.raises(StateCorrupt, match="says that it is of run"):
        runs(other)


def test_a_result_without_a_call_in_the_code_is_a_mismatch():
    state, run_id, settle = suspended()
    found = dict(state.entry(call_key(state)))
    record = json.loads(found["record"]) | {"name": "refund", "state": "returned"}
    other = forged(state, call_key(state), entry({**found, "record": json.dumps(record), "result": "x"}))
    run = settle.resume(state=other, run_id=run_id)
    with pytest.raises(AgexError):
        run.approve()
    assert MADE == []


def test_damaged_bytes_are_found_before_a_call_is_made():
    state, run_id, settle = suspended()
    other = forged(state, f"{run_id}/turn", entry(state.entry(f"{run_id}/turn"))[:-3])
    with pytest.raises(StateCorrupt):
        settle.resume(state=other, run_id=run_id)
    assert MADE == []
