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


async def opened(browser, address, *, width=1280, height=820, scheme="light", ready=15_000) -> Watched:
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
    )
    watched = Watched(await context.new_page())
    await watched.page.goto(address)
    await watched.page.wait_for_selector("html[data-ready]", timeout=ready)
    return watched
