"""The page in a browser tab, with no server behind it: Pyodide, an agent, a model on loopback."""

from __future__ import annotations

import os
import time

import pytest
from pages import ask, chromium, drop, needs_chromium, opened, use
from sites import FIGURES, needs_pyodide, served_site

pytestmark = [needs_chromium, needs_pyodide]

SALES = "region,revenue\nNorth,3\nSouth,4\n"
PROGRAMS = [
    "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nprint('rows:', len(rows))",
    """
total = sum(int(row['revenue']) for row in rows)
open('note.txt', 'w').write(f'total {total}')
task_success(f'The total is {total}.')
""",
]
AIMS = "8 s, 10 s, 1 s"
"""Until the page is ready, until its first answer, and of that after the model's."""


@pytest.mark.timed
@pytest.mark.parametrize("load", range(1, 6))
async def test_the_first_task_is_done_soon(site, model, load):
    model.server.programs = ["answer = 6 * 7\ntask_success(answer)"]
    async with chromium() as browser:
        begun = time.monotonic()
        shown = await opened(browser, site, ready=90_000)
        page = shown.page
        loaded = time.monotonic() - begun
        await use(page, model)
        await ask(page, "What is 6 times 7?")
        await page.wait_for_selector(".message.result >> text=42")
        ended = time.monotonic()
        after = ended - model.server.requests[-1]["answered"]
        machine = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        figures = f"ready {loaded:.1f} s, first answer {ended - begun:.1f} s, {after:.1f} s after the model's"
        print(f"\nload {load}: {figures}; aims: {AIMS}; {machine}")


async def test_a_reload_keeps_the_session_and_nothing_goes_anywhere_but_to_the_model(site, model):
    from playwright.async_api import expect

    model.server.programs = ["answer = 6 * 7\ntask_success(answer)"]
    async with chromium() as browser:
        shown = await opened(browser, site, ready=90_000)
        page = shown.page
        await use(page, model)
        await ask(page, "What is 6 times 7?")
        await page.wait_for_selector(".message.result >> text=42")
        await page.wait_for_selector("#status >> text=Done in")

        await page.reload()
        await page.wait_for_selector("html[data-ready]", timeout=90_000)
        await expect(page.locator("#messages .prose")).to_have_text(["What is 6 times 7?", "42"])
        await expect(page.locator(".commit")).to_have_count(1)
        assert await page.input_value("#model-key") == "secret-key"  # in this tab, as the model's address is
        model.server.programs = ["task_success(answer + 1)"]
        await ask(page, "One more?")
        await page.wait_for_selector(".message.result >> text=43")
        await shown.shots("tab-reloaded")

        # What was said went to the model's endpoint, with the key, and nothing went anywhere else.
        assert {each["headers"]["authorization"] for each in model.server.requests} == {"Bearer secret-key"}
        assert all(url.startswith((site, model.url, "data:", "blob:")) for url in shown.requests)
        assert "secret-key" not in await page.evaluate("JSON.stringify([{...localStorage}, document.cookie])")
        assert [error for error in shown.errors if "Content Security Policy" in error] == []


async def test_a_file_is_dropped_and_worked_on_and_its_past_stepped_back_to_and_forked(site, model):
    from playwright.async_api import expect

    model.server.programs = [*PROGRAMS]
    async with chromium() as browser:
        shown = await opened(browser, site, ready=90_000)
        page = shown.page
        await shown.shots("tab-empty")
        await use(page, model)
        await drop(page, "sales.csv", SALES)
        await page.wait_for_selector(".card td >> text=North")
        await ask(page, "What is the total?")
        await page.wait_for_selector("#status >> text=Done in")
        await page.wait_for_selector(".message.result >> text=The total is 7.")
        await page.wait_for_selector(".item[data-name=total]")
        await expect(page.locator(".commit")).to_have_count(3)
        await expect(page.locator("#activity .step-output pre")).to_have_text("rows: 2")
        await shown.shots("tab-done")

        await page.focus(".commit[aria-selected=true]")
        await page.keyboard.press("Home")
        await page.click("#tab-files")
        await page.wait_for_selector(".item[data-name='sales.csv']")
        await expect(page.locator("#panel .item .name")).to_have_text(["sales.csv"])
        await page.click("#forward")
        await page.click("#tab-variables")
        await page.wait_for_selector(".item[data-name=rows]")
        await expect(page.locator("#panel .item .name")).to_have_text(["rows"])
        await shown.shots("tab-back")

        model.server.programs = ["task_success(len(rows))"]
        await page.click("#fork")
        await page.fill("#fork-name", "another way")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#status >> text=On the new branch another way")
        await ask(page, "How many rows?")
        await page.wait_for_selector(".message.result >> text=2")
        await expect(page.locator(".commit")).to_have_count(3)
        await page.wait_for_selector("#status >> text=Done in")
        await page.select_option("#branch", "main")
        await page.wait_for_selector(".message.result >> text=The total is 7.")
        assert [error for error in shown.errors if "Content Security Policy" in error] == []


async def test_a_figure_of_the_tab_is_drawn_in_a_frame_of_its_own(tmp_path, model):
    from playwright.async_api import expect

    pytest.importorskip("plotly", reason="the page has the script of the plotly that is installed")
    model.server.programs = [
        """
import plotly.graph_objects as go
figure = go.Figure(go.Bar(x=['North', 'South'], y=[3, 4]))
task_success(figure)
""",
    ]
    with served_site(tmp_path, more=FIGURES, modules=["plotly"]) as site:
        async with chromium() as browser:
            shown = await opened(browser, site, ready=90_000)
            page = shown.page
            await use(page, model)
            await ask(page, "Draw it.")
            element = await page.wait_for_selector("#activity iframe.figure-frame", timeout=60_000)
            assert await element.get_attribute("sandbox") == "allow-scripts"
            frame = await element.content_frame()
            await frame.wait_for_selector("g.bars path")
            await expect(frame.locator("g.bars path")).to_have_count(2)
            await shown.shots("tab-figure")
            assert [error for error in shown.errors if "Content Security Policy" in error] == []
