"""What the page of a tab does when something is missing, taken, stopped, asked back or looked back at."""

from __future__ import annotations

import time

import pytest
from pages import ask, chromium, drop, needs_chromium, opened, use
from sites import needs_pyodide

pytestmark = [needs_chromium, needs_pyodide]

READY = 90_000
"""Milliseconds for Python to start on a machine that does much else."""
STOPPED = 2.0
"""Seconds from the click on Stop to a page that takes the next message."""


async def test_sending_without_a_model_points_at_the_pages_own_form_and_keeps_the_text(site, model):
    from playwright.async_api import expect

    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await page.click("#model summary")  # closed, so that the page has to open it
        await ask(page, "What is 6 times 7?")
        await expect(page.locator("#alert")).to_contain_text("under Model, below your message")
        await expect(page.locator("#model-url")).to_be_focused()
        assert await page.input_value("#message") == "What is 6 times 7?"
        assert "pip" not in await page.inner_text("#alert")
        await expect(page.locator(".commit")).to_have_count(0)
        await shown.shots("tab-no-model")

        model.server.programs = ["task_success(6 * 7)"]
        await use(page, model)
        await expect(page.locator("#message")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".message.result >> text=42")
        assert await page.is_hidden("#alert")


async def test_a_second_tab_says_in_one_line_that_the_first_has_the_session(site, model):
    from playwright.async_api import expect

    async with chromium() as browser:
        first = await opened(browser, site, ready=READY)
        second = await opened(browser, site, context=first.page.context)
        alert = second.page.locator("#alert")
        await expect(alert).to_have_text(
            '"studio" is open in another tab: go on there, or close it and reload this page.'
        )
        assert await second.page.locator("button:visible, textarea:visible").count() == 1  # the colours
        assert not any("pyodide" in url for url in second.requests)  # it is said before anything is loaded
        await second.shots("tab-second")

        await first.page.close()
        await second.page.reload()
        await second.page.wait_for_selector("#status >> text=Ready", timeout=READY)
        assert await alert.is_hidden()


async def test_two_tabs_that_open_at_once_are_told_apart_without_a_traceback(site):
    async with chromium() as browser:
        context = await browser.new_context()
        pages = [await context.new_page(), await context.new_page()]
        for page in pages:
            await page.goto(site, wait_until="commit")
        for page in pages:
            await page.wait_for_selector("html[data-ready]", timeout=READY)
        told = [await page.inner_text("#alert") for page in pages if await page.is_visible("#alert")]
        assert len(told) == 1
        assert "open in another tab" in told[0]
        assert "\n" not in told[0]
        assert "Traceback" not in told[0]


ENDLESS = {
    "loop": "while True:\n    pass",
    "loop-that-catches": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
}


@pytest.mark.timed
@pytest.mark.parametrize("name", ENDLESS)
async def test_stop_ends_a_loop_within_two_seconds(site, model, name):
    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await use(page, model)
        model.server.programs = [ENDLESS[name]]
        await ask(page, "Never end.")
        await page.wait_for_selector("#activity .live .step-code >> text=while True")
        if name == "loop":
            await shown.shots("tab-working")
        begun = time.monotonic()
        await page.click("#stop")
        await page.wait_for_selector("#status >> text=Stopped")
        took = time.monotonic() - begun
        print(f"\nstopped after {took:.2f} s")
        assert took < STOPPED
        assert await page.is_enabled("#send")
        await shown.shots(f"tab-stopped-{name}")
        model.server.programs = ["task_success('still here')"]
        await ask(page, "And now?")
        await page.wait_for_selector(".message.result >> text=still here")
        assert await page.is_hidden("#alert")


@pytest.mark.timed
async def test_stop_ends_a_call_into_c_with_its_python_and_what_was_committed_stays(site, model):
    from playwright.async_api import expect

    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await use(page, model)
        model.server.programs = ["kept = 41\ntask_success(kept)"]
        await ask(page, "Keep something.")
        await page.wait_for_selector("#status >> text=Done in")
        model.server.programs = ["import itertools\nany(itertools.repeat(0))"]
        await ask(page, "Never end.")
        await page.wait_for_selector("#activity .live .step-code >> text=itertools")
        begun = time.monotonic()
        await page.click("#stop")
        await page.wait_for_selector("#status >> text=Stopped")
        assert time.monotonic() - begun < STOPPED
        await page.wait_for_selector("#status >> text=Python was started again", timeout=READY)
        assert await page.input_value("#message") == "Never end."
        assert await page.is_hidden("#alert")
        await expect(page.locator(".commit")).to_have_count(1)
        model.server.programs = ["task_success(kept + 1)"]
        await ask(page, "And now?")
        await page.wait_for_selector(".message.result >> text=42")


async def test_the_answer_to_a_question_stands_in_the_conversation(site, model):
    from playwright.async_api import expect

    said = ["Draw it.", "Which colour?", "Blue, please.", "done"]
    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await use(page, model)
        model.server.programs = ["task_clarify('Which colour?')", "task_success('done')"]
        await ask(page, "Draw it.")
        await page.wait_for_selector("#status >> text=answer below")
        assert await page.get_attribute("#message", "placeholder") == "Answer the agent's question."
        await shown.shots("tab-question")
        await ask(page, "Blue, please.")
        await page.wait_for_selector("#status >> text=Done in")
        messages = page.locator("#messages .prose")
        await expect(messages).to_have_text(said)
        await shown.shots("tab-answered")

        await page.reload()
        await page.wait_for_selector("#status >> text=Ready", timeout=READY)
        await expect(messages).to_have_text(said)
        model.server.programs = [
            "task_success(len([line for line in earlier if 'Blue' in line or 'colour' in line]))"
        ]
        await ask(page, "What did I answer?")
        await page.wait_for_selector("#status >> text=Done in")
        await expect(messages).to_have_text([*said, "What did I answer?", "2"])


async def two_answers(page, model):
    await use(page, model)
    for number in (1, 2):
        model.server.programs = [f"x = {number}\ntask_success(f'x is {{x}}')"]
        await ask(page, f"Make x {number}.")
        await page.wait_for_selector(f".message.result >> text=x is {number}")
        await page.wait_for_selector("#status >> text=Done in")


async def test_sending_while_looking_back_asks_and_forks_from_there(site, model):
    from playwright.async_api import expect

    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await two_answers(page, model)
        await page.click("#back")
        await ask(page, "What is x?")
        await expect(page.locator("#behind-text")).to_have_text(
            "You look at 1 of 2, not at the newest. Where does this go?"
        )
        await expect(page.locator("#behind-fork")).to_be_focused()
        assert await page.input_value("#message") == "What is x?"
        assert len(model.server.requests) == 2
        await shown.shots("tab-looking-back")

        await page.keyboard.press("Escape")
        await expect(page.locator("#behind")).to_be_hidden()
        assert len(model.server.requests) == 2

        await page.keyboard.press("Enter")
        model.server.programs = ["task_success(f'it is {x}')"]
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".message.result >> text=it is 1")
        await page.wait_for_selector("#status >> text=Done in")
        assert await page.input_value("#branch") != "main"
        await expect(page.locator(".commit")).to_have_count(2)
        await shown.shots("tab-forked")
        await page.select_option("#branch", "main")
        await page.wait_for_selector(".message.result >> text=x is 2")
        await expect(page.locator(".commit")).to_have_count(2)


async def test_sending_while_looking_back_goes_to_the_newest_where_that_is_chosen(site, model):
    from playwright.async_api import expect

    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await two_answers(page, model)
        await page.click("#back")
        await ask(page, "What is x?")
        await page.click("#forward")  # at the newest there is nothing to ask
        await expect(page.locator("#behind")).to_be_hidden()
        await page.click("#back")
        model.server.programs = ["task_success(f'it is {x}')"]
        await page.click("#send")
        await page.click("#behind-head")
        await page.wait_for_selector(".message.result >> text=it is 2")
        assert await page.input_value("#branch") == "main"


async def test_a_file_that_is_dropped_while_looking_back_asks_as_well(site, model):
    from playwright.async_api import expect

    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await two_answers(page, model)
        await page.click("#back")
        await drop(page, "sales.csv", "a,b\n1,2\n")
        await expect(page.locator("#behind")).to_be_visible()
        await expect(page.locator(".commit")).to_have_count(2)
        await page.click("#behind-fork")
        await page.wait_for_selector("#status >> text=Added sales.csv")
        assert await page.input_value("#branch") != "main"


SENT_WHEN_READY = """
() => {
  const status = document.getElementById("status");
  const composer = document.getElementById("composer");
  const send = () => status.textContent === "Ready" && composer.requestSubmit();
  new MutationObserver(send).observe(status, { childList: true });
}
"""


async def test_a_message_that_is_sent_as_soon_as_the_page_is_ready_is_answered(site, model):
    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await use(page, model)
        await page.reload(wait_until="commit")
        await page.wait_for_selector("#composer", timeout=READY)
        await page.fill("#message", "What is 6 times 7?")
        model.server.programs = ["task_success(6 * 7)"]
        await page.evaluate(SENT_WHEN_READY)
        await page.wait_for_selector(".message.result >> text=42", timeout=READY)
        assert await page.is_hidden("#alert")


async def test_imports_remain_over_the_messages_that_follow_and_a_reload(site, model):
    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await use(page, model)
        uses = "task_success([json.dumps(%d), re.sub('a', 'b', 'a'), dt.date(2026, 1, 2).isoformat()])"
        for number in range(4):
            imports = "import json, re\nimport datetime as dt\n" if number == 0 else ""
            model.server.programs = [imports + uses % number]
            await ask(page, f"Message {number}")
            await page.wait_for_selector(f".message.result >> text=['{number}', 'b', '2026-01-02']")
            await page.wait_for_selector("#status >> text=Done in")
            if number == 2:
                await page.reload()
                await page.wait_for_selector("#status >> text=Ready", timeout=READY)
        assert await page.locator("#panel .item").count() == 0


async def test_a_model_that_is_not_there_is_said_and_the_conversation_goes_on(site, model):
    async with chromium() as browser:
        shown = await opened(browser, site, ready=READY)
        page = shown.page
        await page.fill("#model-url", "http://127.0.0.1:9/v1")
        await page.fill("#model-name", "nobody")
        await page.click("#model-form button")
        await ask(page, "Hello?")
        await page.wait_for_selector("#alert:not([hidden])", timeout=60_000)
        assert "no such server" in await page.inner_text("#alert")
        await shown.shots("tab-no-server")
