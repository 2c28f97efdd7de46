"""The store of a tab, in a real browser: headless Chromium, with what ``make browser-node`` has installed."""

from __future__ import annotations

import ast
import functools
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

INSTALLED = Path(__file__).parents[2] / ".browser"
CHROMIUM = shutil.which("chromium")
TEST_TOOLS = ("hypothesis", "pytest")

BOOT = """async (wheels) => {
  const { loadPyodide } = await import("/node_modules/pyodide/pyodide.mjs");
  window.python = await loadPyodide();
  for (const name of wheels) {
    const wheel = await (await fetch("/wheels/" + name)).arrayBuffer();
    python.unpackArchive(wheel, "wheel", { extractDir: "/lib/python3.14/site-packages" });
  }
}"""
RUN = "async (code) => await python.runPythonAsync(code)"
PRELUDE = """
import asyncio
from agex.browser import IndexedDBStore, Tab
from agex.errors import StateConflict
from agex.testing import ScriptedModel, check_kvstore

async def when_free(kind, name):  # the browser lets go of a lock a moment after its tab has ended
    while True:
        try:
            return await kind.open(name)
        except StateConflict:
            await asyncio.sleep(0)

"""

Open = Callable[[], "Page"]


class Page:
    """One tab with Python in it."""

    def __init__(self, page: Any, address: str) -> None:
        self.tab = page
        self._address = address
        self.load()

    def load(self) -> None:
        self.tab.goto(self._address)
        names = sorted(path.name for path in (INSTALLED / "wheels").iterdir())
        self.tab.evaluate(BOOT, [name for name in names if not name.startswith(TEST_TOOLS)])
        self.run(PRELUDE + "None")

    def run(self, code: str) -> Any:
        """Run a program, and give the value of its last expression, made of literals."""
        *before, last = ast.parse(code).body
        assert isinstance(last, ast.Expr)
        text = "\n".join([*map(ast.unparse, before), f"repr({ast.unparse(last)})"])
        return ast.literal_eval(self.tab.evaluate(RUN, text))

    def refused(self, code: str) -> tuple[str, str]:
        """Run a program that raises; give the error's class and text."""
        tried = f"try:\n    {code}\n    r = ('', '')\nexcept Exception as e:\n    r = (type(e).__name__, str(e))\nr"
        found: tuple[str, str] = self.run(tried)
        return found


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture
def open_tab(tmp_path: Path) -> Iterator[Open]:
    """Give what opens tabs of one browser, which has nothing stored yet."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None or not list((INSTALLED / "wheels").glob("agex_py-*.whl")):
        pytest.skip("needs chromium, and Pyodide with the wheel: make browser-node")
    for name in ("node_modules", "wheels"):
        (tmp_path / name).symlink_to(INSTALLED / name)
    (tmp_path / "index.html").write_text("<!doctype html><title>A tab</title>")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with playwright.sync_playwright() as control:
            browser = control.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            context = browser.new_context()
            yield lambda: Page(context.new_page(), f"http://127.0.0.1:{server.server_port}/")
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_it_is_a_store_whose_content_outlives_the_tab(open_tab: Open) -> None:
    tab = open_tab()

    assert tab.run(
        "s = await IndexedDBStore.open('k')\ncheck_kvstore(s)\nn = s.unsaved\nawait s.flush()\n(n > 0, s.unsaved)"
    ) == (True, 0)
    tab.run(
        "s.set('a\\0b/ü', b'\\0\\xff')\ns.set('x', b'')\ns.set('gone', b'1')\ns.remove('gone')\nawait s.flush()"
    )
    tab.load()

    assert tab.run("s = await when_free(IndexedDBStore, 'k')\nsorted(s.items())") == [
        ("a\0b/ü", b"\0\xff"),
        ("x", b""),
    ]


def test_one_tab_has_it_at_a_time(open_tab: Open) -> None:
    one, two = open_tab(), open_tab()
    one.run("s = await IndexedDBStore.open('k')\nNone")

    assert one.refused("await IndexedDBStore.open('k')")[0] == "StateConflict"
    assert two.refused("await IndexedDBStore.open('k')")[0] == "StateConflict"
    # What was begun when it is closed is still kept, before another has it.
    one.run("s.set('late', b'2')\ns.close()\nNone")
    opened = "s = await when_free(IndexedDBStore, 'k')\nsorted(s.items())"
    assert two.run(opened) == [("late", b"2")]


def test_a_conversation_goes_on_after_the_tab_has_died(open_tab: Open) -> None:
    dying, other = open_tab(), open_tab()
    reply = "```python\nx = [1, 2]\ntask_success(x)\n```"
    dying.run(
        f"t = await Tab.open('session')\nt.ask_model(ScriptedModel([{reply!r}]))\n"
        "await t.call('ask', '{\"message\": \"go\"}')\nawait t.flush()\nNone"
    )
    dying.tab.close()

    found = "t = await when_free(Tab, 'session')\n([v['name'] for v in t.snapshot()['variables']], t._state.fsck())"
    assert other.run(found) == (["x"], [])


def test_a_database_that_is_gone_takes_no_writes_and_leads_to_nothing_of_the_page(open_tab: Open) -> None:
    tab = open_tab()
    tab.run(
        "s = await IndexedDBStore.open('k')\ns.set('a', b'1')\nawait s.flush()\ns._kept._database.close()\nNone"
    )

    kind, text = tab.refused("s.set('b', b'2')")

    assert kind == "StateError"
    assert "InvalidStateError" in text
    assert tab.refused("await s.flush()")[0] == "StateError"
    assert tab.run("sorted(s.items())") == [("a", b"1")]
