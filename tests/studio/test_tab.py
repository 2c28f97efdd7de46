"""What the worker of a tab calls, in CPython and over a store in memory."""

from __future__ import annotations

import json

from agex.browser import Tab
from agex.state import Memory
from agex.studio.tab import TabPage
from agex.testing import ScriptedModel, python_action


async def call(page, method, **given):
    return json.loads(await page.call(method, json.dumps(given)))


async def test_a_page_asks_and_looks_through_one_door():
    heard = []
    tab = Tab(Memory())
    page = TabPage(tab, "notes", heard.append, lambda _: None)
    tab.ask_model(ScriptedModel([[python_action("answer = 42\nprint('hm')\ntask_success(answer)")]]))
    assert (await call(page, "ask", message="How many?"))["ok"]
    timeline = await call(page, "look", what="timeline", query={})
    assert (timeline["name"], timeline["branch"]) == ("notes", "main")
    assert [said["kind"] for said in timeline["commits"][0]["said"]] == ["task", "result"]
    (line,) = await call(page, "look", what="variables", query={"ref": timeline["head"]})
    assert (line["name"], line["text"]) == ("answer", "42")
    steps = [step for text in heard for step in json.loads(text)]
    assert [step["kind"] for step in steps] == ["task", "code", "output", "result"]


async def test_what_cannot_be_looked_at_is_said():
    page = TabPage(Tab(Memory()), "notes", print, print)
    found = await call(page, "look", what="commit", query={"ref": "nowhere"})
    assert found["error"]["kind"] == "NotHere"
    assert (await call(page, "look", what="secrets", query={}))["error"]["kind"] == "NotHere"
    assert (await call(page, "no_such_method"))["error"]["message"]
