"""Calls that wait for a person's yes, and questions, are shown on the page, and decided there."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from pages import chromium, needs_chromium, opened

from agex import Agent, Disk, TaskClarify, TaskSuspended, Versioned, runs
from agex.testing import ScriptedModel, python_action

HOSTILE = "<b>1</b>"


@dataclass
class Account:
    """Of the bank's own program."""

    owner: str


def bank(made, replies, state, code="task_success(transfer(amount, to))"):
    agent = Agent(name="bank", model=ScriptedModel([[python_action(code)], *replies]), state=state)

    def transfer(amount: int, to: object) -> str:
        """Transfer money."""
        made.append((amount, to))
        return f"{amount} to {to}"

    agent.fn(transfer, external=True, approval=True)
    agent.cls(Account)

    @agent.task
    def settle(amount: int, to: object) -> str:
        """Settle."""

    return settle


def waiting_state(where, to="ann"):
    state = Versioned(Disk(where, durable=False))
    with pytest.raises(TaskSuspended) as stopped:
        bank([], [], state)(5, to)
    return state, stopped.value.run.run_id


def decide(client, *, status=200, **document):
    body = json.dumps(document).encode()
    response, content = client.send("POST", "/api/decide", headers=client.own, body=body)
    assert response.status == status, content
    return json.loads(content)


def test_the_page_is_told_what_waits_and_its_decision_is_kept(serve, tmp_path):
    state, run_id = waiting_state(tmp_path / "s")
    client = serve(state)
    (waiting,) = client.get("timeline")["waiting"]
    assert (waiting["run_id"], waiting["task"], waiting["text"]) == (run_id, "settle", "transfer(5, 'ann')")
    assert waiting["source"] == "task_success(transfer(amount, to))"
    question = {"branch": "main", "run": run_id, "call": waiting["call"]}
    assert "neither" in decide(client, **question, word="maybe", status=400)["error"]
    assert "another call" in decide(client, **{**question, "call": "x"}, word="approve", status=400)["error"]
    assert decide(client, **question, word="approve")["head"] == client.get("heads")["branches"]["main"]
    assert client.get("timeline")["waiting"] == []
    assert "settle: transfer is approved" in [each["message"] for each in client.get("timeline")["commits"]]
    assert "no approval any more" in decide(client, **question, word="reject", status=400)["error"]
    made = []
    later = Versioned(Disk(tmp_path / "s", durable=False))
    assert bank(made, [], later).resume(run_id=run_id).value == "5 to ann"
    assert made == [(5, "ann")]
    later.close()


def test_a_decision_is_sent_by_the_page_alone(serve, tmp_path):
    state, run_id = waiting_state(tmp_path / "s")
    client = serve(state)
    (waiting,) = client.get("timeline")["waiting"]
    question = {"branch": "main", "run": run_id, "call": waiting["call"]}
    body = json.dumps({**question, "word": "approve"}).encode()
    kept = {name: value for name, value in client.own.items() if name != "Origin"}
    for headers in (
        kept,
        {**kept, "Origin": "http://evil.example"},
        {**client.own, "Authorization": "Bearer x"},
    ):
        response, _ = client.send("POST", "/api/decide", headers=headers, body=body)
        assert response.status in (401, 403)
    response, _ = client.send("GET", "/api/decide?word=approve", headers=client.key)
    assert response.status == 405
    assert client.get("timeline")["waiting"] == [waiting]


def test_a_call_with_objects_of_the_programs_own_is_named_and_decided_by_the_program(serve, tmp_path):
    state, run_id = waiting_state(tmp_path / "s", Account("ann"))
    state.close()
    client = serve(Versioned(Disk(tmp_path / "s", durable=False)))
    (waiting,) = client.get("timeline")["waiting"]
    assert (waiting["run_id"], waiting["call"]) == (run_id, "")
    assert "Account, which is not a class that may be loaded" in waiting["text"]


@needs_chromium
async def test_two_buttons_decide(serve, tmp_path):
    from playwright.async_api import expect

    state, run_id = waiting_state(tmp_path / "s", HOSTILE)
    client = serve(state)
    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        page = shown.page
        await expect(page.locator(".waiting code").first).to_have_text(f"transfer(5, '{HOSTILE}')")
        assert await page.locator(".waiting b").count() == 0
        await shown.shot("server-waiting")
        await page.fill(".waiting input", "too much")
        await page.click(".waiting >> text=Reject")
        await page.wait_for_selector("text=Rejected: the run goes on when its task is resumed")
        await expect(page.locator(".waiting")).to_have_count(0)
        assert shown.errors == []
    later = Versioned(Disk(tmp_path / "s", durable=False))
    run = bank([], [], later, "task_success('gave up')").resume(run_id=run_id)
    assert any("transfer was not approved: too much" in getattr(event, "text", "") for event in run.events)
    assert run.value == "gave up"
    later.close()


ASKS = "task_clarify('Which <b>account</b>?')"


def asking(state, replies):
    agent = Agent(name="bank", model=ScriptedModel(replies), state=state, max_iterations=2)

    @agent.task
    def choose() -> str:
        """Choose."""

    return choose


def asking_state(where):
    state = Versioned(Disk(where, durable=False))
    choose = asking(state, [[python_action("x = 1")], [python_action(ASKS)]])
    with pytest.raises(TaskClarify) as stopped:
        choose()
    return state, stopped.value.run.run_id


def went_on(where, run_id):
    """Resume the run elsewhere; return its value and what its model was shown."""
    later = Versioned(Disk(where, durable=False))
    choose = asking(later, [[python_action("y = 2")], [python_action("task_success(f'done {x + y}')")]])
    run = choose.resume(run_id=run_id)
    shown = str(choose.agent.model.requests[0])
    later.close()
    return run.value, shown


def test_a_question_is_answered_over_the_state_that_another_process_wrote(serve, tmp_path):
    state, run_id = asking_state(tmp_path / "s")
    state.close()
    client = serve(Versioned(Disk(tmp_path / "s", durable=False)))
    (waiting,) = client.get("timeline")["waiting"]
    assert (waiting["run_id"], waiting["asks"]) == (run_id, True)
    assert waiting["text"] == "Which <b>account</b>?"
    question = {"branch": "main", "run": run_id, "call": waiting["call"], "word": "answer"}
    assert "empty" in decide(client, **question, reason="  ", status=400)["error"]
    assert "something else" in decide(client, **{**question, "call": "x"}, reason="A", status=400)["error"]
    assert "no approval" in decide(client, **{**question, "word": "approve"}, status=400)["error"]
    assert decide(client, **question, reason="A7 \ud800")["head"] == client.get("heads")["branches"]["main"]
    assert client.get("timeline")["waiting"] == []
    assert "asks nothing any more" in decide(client, **question, reason="B", status=400)["error"]
    value, shown = went_on(tmp_path / "s", run_id)
    assert value == "done 3"  # with all turns again, as after run.answer()
    assert "The caller answers your question: A7" in shown


def test_an_answer_is_sent_by_the_page_alone(serve, tmp_path):
    state, run_id = asking_state(tmp_path / "s")
    client = serve(state)
    (waiting,) = client.get("timeline")["waiting"]
    document = {"branch": "main", "run": run_id, "call": waiting["call"], "word": "answer", "reason": "A7"}
    kept = {name: value for name, value in client.own.items() if name != "Origin"}
    for headers in (kept, {**kept, "Origin": "http://evil.example"}):
        response, _ = client.send("POST", "/api/decide", headers=headers, body=json.dumps(document).encode())
        assert response.status in (401, 403)
    assert [one.status for one in runs(state)] == ["asking"]


def test_what_is_answered_is_on_the_page_with_the_conversation(serve, tmp_path):
    state, run_id = asking_state(tmp_path / "s")
    client = serve(state)
    (waiting,) = client.get("timeline")["waiting"]
    decide(client, branch="main", run=run_id, call=waiting["call"], word="answer", reason="A7")
    went_on(tmp_path / "s", run_id)
    said = [each for commit in client.get("timeline")["commits"] for each in commit["said"]]
    assert [(each["kind"], each["text"]) for each in said if each["kind"] == "answer"] == [("answer", "A7")]


@needs_chromium
async def test_a_field_answers_a_question(serve, tmp_path):
    from playwright.async_api import expect

    state, run_id = asking_state(tmp_path / "s")
    client = serve(state)
    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        page = shown.page
        await expect(page.locator(".waiting .question")).to_have_text("Which <b>account</b>?")
        assert await page.locator(".waiting b").count() == 0
        await shown.shot("server-asking")
        await page.click(".waiting >> text=Answer")  # an empty field is not sent
        await expect(page.locator(".waiting")).to_have_count(1)
        await page.fill(".waiting input", "A7")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("text=Answered: the run goes on when its task is resumed")
        await expect(page.locator(".waiting")).to_have_count(0)
        assert shown.errors == []
    assert went_on(tmp_path / "s", run_id)[0] == "done 3"
