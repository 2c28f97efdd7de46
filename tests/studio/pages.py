"""A real browser for tests of the page: Chromium, headless, driven by Playwright."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARTIFACTS = Path(__file__).parents[2] / "artifacts" / "studio"

MISSING = (
    "Playwright is not installed: pip install -c constraints.txt -e '.[browser]'"
    if importlib.util.find_spec("playwright") is None
    else "there is no chromium here: install the distribution's"
    if CHROMIUM is None
    else ""
)
NARROW = 390
"""Pixels of a telephone's page."""
UNREACHABLE = """
() => [...document.querySelectorAll("button, input, select, textarea, summary")]
  .filter((control) => control.checkVisibility({ visibilityProperty: true }))
  .filter((control) => control.getClientRects().length)
  .filter((control) => {
    control.scrollIntoView({ block: "center", inline: "center" });
    const { left, right, top, bottom } = control.getBoundingClientRect();
    const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return left < -1 || right > innerWidth + 1 || !hit || !(control.contains(hit) || hit.contains(control));
  })
  .map((control) => control.id || control.outerHTML)
"""
"""What cannot be clicked, also after scrolling to it."""
needs_chromium = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@asynccontextmanager
async def chromium() -> AsyncIterator:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        # Its own sandbox needs a user that is not root, and namespaces that a container may not have. What is
        # tested is the page's own walls; they are the browser's to keep either way.
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


class Watched:
    """A page, and what it complained of: errors of scripts and what its policy refused."""

    def __init__(self, page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._said)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.errors.append(f"a dialog opened: {dialog.message}"))

    def _said(self, message) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    async def shot(self, name: str) -> None:
        """Keep a picture, to be looked at."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=ARTIFACTS / f"{name}.png")

    async def shots(self, name: str) -> None:
        """Keep pictures of a wide and of a narrow page, in which every control can be reached."""
        wide = self.page.viewport_size
        await self.shot(f"{name}-{wide['width']}")
        await self.page.set_viewport_size({"width": NARROW, "height": 844})
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=ARTIFACTS / f"{name}-{NARROW}.png", full_page=True)
        assert await self.page.evaluate("document.documentElement.scrollWidth") <= NARROW
        assert await self.page.evaluate(UNREACHABLE) == []
        await self.page.set_viewport_size(wide)


async def opened(
    browser, address, *, width=1280, height=820, scheme="light", ready=15_000, context=None
) -> Watched:
    """Open a page, in a context of its own or beside others, and wait until it can be used."""
    context = context or await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
    )
    watched = Watched(await context.new_page())
    await watched.page.goto(address)
    await watched.page.wait_for_selector("html[data-ready]", timeout=ready)
    return watched


async def use(page, model):
    await page.fill("#model-url", f"{model.url}/v1")
    await page.fill("#model-name", "scripted")
    await page.fill("#model-key", "secret-key")
    await page.click("#model-form button")
    await page.wait_for_selector("summary >> text=Model: scripted")


async def ask(page, message):
    await page.fill("#message", message)
    await page.keyboard.press("Enter")


async def drop(page, name, content, kind="text/csv"):
    """Drop a file onto the page, as a file manager does."""
    given = await page.evaluate_handle(
        """([name, content, kind]) => {
          const data = new DataTransfer();
          data.items.add(new File([content], name, { type: kind }));
          return data;
        }""",
        [name, content, kind],
    )
    await page.dispatch_event("body", "dragenter", {"dataTransfer": given})
    assert await page.is_visible("#drop")
    await page.dispatch_event("body", "drop", {"dataTransfer": given})
    assert await page.is_hidden("#drop")
