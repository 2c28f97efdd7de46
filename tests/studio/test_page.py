"""The page in a real browser, over a state that real tasks made."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re

import pytest
from pages import chromium, needs_chromium, opened
from served import make_state

from agex import Agent, Disk, Versioned, connect_fs
from agex.studio.gate import page_files
from agex.testing import ScriptedModel, python_action

PAGE = {name: content.decode() for name, content in page_files().items()}


# -- its sources ---------------------------------------------------------------------------------


def test_the_pages_policy_names_the_style_of_frames_by_its_hash():
    source = re.search(r"FRAME_STYLE =\s*(.*?);\n\n", PAGE["looks.js"], re.DOTALL)[1]
    style = "".join(json.loads(part) for part in re.findall(r'"[^"\n]*"', source))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in PAGE["index.html"]


@pytest.mark.parametrize("name", [name for name in PAGE if name.endswith(".js")])
def test_no_script_of_the_page_parses_markup_or_code(name):
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function"
    assert not re.search(forbidden, PAGE[name])


@pytest.mark.parametrize("name", PAGE)
def test_nothing_of_the_page_is_loaded_from_elsewhere(name):
    found = re.findall(r"""(?:src|href|import|from|url\()\s*[=(]?\s*["']?(https?://[^"')\s]+)""", PAGE[name])
    assert found == []


# -- in a browser --------------------------------------------------------------------------------


@needs_chromium
async def test_a_state_is_shown_stepped_back_and_forked(serve, tmp_path):
    from playwright.async_api import expect

    state = make_state(tmp_path / "state")
    client = serve(state, "demo")
    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        page = shown.page
        await page.wait_for_selector("text=6 in all")
        assert client.token not in page.url  # it does not stay in the address, nor in the history
        await expect(page.locator(".commit")).to_have_count(3)
        await expect(page.locator("#activity .card")).to_have_count(3)
        await expect(page.locator("#messages .message")).to_have_count(2)
        said = await page.locator("#messages .message").all_inner_texts()
        assert [words.split() for words in said] == [
            "counter · count How many?".split(),
            "Answered 6 in all".split(),
        ]
        await page.wait_for_selector(".item[data-name=total]")
        await shown.shot("server-now")

        await page.focus(".commit[aria-selected=true]")
        await page.keyboard.press("ArrowLeft")  # by keyboard
        await page.keyboard.press("ArrowLeft")
        await page.wait_for_selector("#where.past")
        await expect(page.locator("#panel .item .name")).to_have_text(["rows"])
        await expect(page.locator("#activity .card")).to_have_count(1)
        await expect(page.locator("#activity .shown td")).to_have_text(["Ulm", "1", "Bern", "2"])

        await page.click("#forward")
        await page.click("#tab-files")
        await page.click(".item[data-name='out/report.csv'] summary")
        await page.wait_for_selector("#panel td >> text=Bern")
        async with page.expect_download() as download:
            await page.click("text=Download")
        assert (await (await download.value).path()).read_text() == "city,n\nUlm,1\nBern,2\n"
        await page.click("#tab-changes")
        await page.wait_for_selector("text=New files")
        await shown.shot("server-back")

        await page.click("#fork")
        await page.fill("#fork-name", "what if")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("text=On the new branch what if")
        await expect(page.locator("#branch")).to_have_value("what if")
        await expect(page.locator(".commit")).to_have_count(2)
        assert shown.errors == []
    assert state.branches()["what if"] == list(state.history())[1].hash


@needs_chromium
async def test_an_answer_about_the_branch_before_comes_too_late(serve, tmp_path):
    async def late(route):
        if "what" not in route.request.url:
            await asyncio.sleep(1.5)
        await route.continue_()

    client = serve(make_state(tmp_path / "state"))
    async with chromium() as browser:
        page = (await opened(browser, client.server.address)).page
        await page.wait_for_selector("text=6 in all")
        await page.route("**/timeline*", late)
        async with page.expect_request("**/timeline*"):
            writer = Versioned(Disk(tmp_path / "state", durable=False))
            writer["more"] = 1
            writer.commit()
            writer.close()
        async with page.expect_response(lambda response: "timeline?branch=main" in response.url):
            await page.click("#fork")
            await page.fill("#fork-name", "what if")
            await page.keyboard.press("Enter")
            await page.wait_for_selector("text=On the new branch what if")
        await page.wait_for_timeout(500)
        assert await page.input_value("#branch") == "what if"


@needs_chromium
async def test_what_another_process_does_appears_by_itself(serve, tmp_path):
    from playwright.async_api import expect

    client = serve(make_state(tmp_path / "state"))
    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        await shown.page.wait_for_selector("text=6 in all")
        writer = Versioned(Disk(tmp_path / "state", durable=False))
        agent = Agent(name="second", model=ScriptedModel([[python_action("task_success(total + 1)")]]))

        @agent.task
        def more() -> int: ...

        more(state=writer)
        writer.close()
        await shown.page.wait_for_selector(".message >> text=second · more")
        await shown.page.wait_for_selector(".card >> text=task_success(total + 1)")
        await expect(shown.page.locator(".commit")).to_have_count(4)


@needs_chromium
async def test_without_its_token_the_page_shows_nothing_but_what_to_do(client):
    async with chromium() as browser:
        shown = await opened(browser, f"http://{client.host}/")
        assert "agex studio" in await shown.page.inner_text("#alert")
        assert await shown.page.locator(".commit").count() == 0


# What each of these would do, if the page let it: write this into the title, or ask for an address.
SCRIPTS = [
    "<script>document.title = 'owned'; fetch('/api/owned')</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "<img src='/api/owned'>",
    "<svg onload=\"parent.document.title = 'owned'\"><script>top.document.title = 'owned'</script></svg>",
    "<iframe srcdoc=\"<script>top.document.title = 'owned'</script>\"></iframe>",
    "<a href=\"javascript:top.document.title = 'owned'\">click</a>",
    '<meta http-equiv=refresh content="0;url=/api/owned">',
    "<link rel=stylesheet href='/api/owned'>",
    "<style>@import '/api/owned'; body{background:url(/api/owned)}</style>",
    "<form action='/api/owned'><button autofocus>send</button></form>",
    "<object data='/api/owned'></object><embed src='/api/owned'><video src='/api/owned'></video>",
    "<base href='http://127.0.0.1:1/'></pre></textarea></title></style></script>",
]
HOSTILE = "\n".join(SCRIPTS)
DRAWING = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9' onload='top.alert(1)'>"
    "<script>top.document.title = 'owned'</script>"
    "<image href='/api/owned'/><rect width='9' height='9'/></svg>"
)


@needs_chromium
async def test_nothing_that_an_agent_made_runs_in_the_page(serve, tmp_path):
    from playwright.async_api import expect

    one_line = HOSTILE.replace("\n", "")
    names = one_line.replace("/", "∕")[:180]
    code = "\n".join(
        [
            f"hostile = {HOSTILE!r}",
            "print(hostile)",
            "rows = [{hostile: hostile, 'b': hostile}]",
            f"open({names + '.html'!r}, 'w').write(hostile)",
            "open('page.html', 'w').write(hostile)",
            f"open('drawing.svg', 'w').write({DRAWING!r})",
            "open('fake.csv', 'w').write('a,b\\n\"' + hostile.replace('\"', '') + '\",2\\n')",
            "task_success(hostile)",
        ]
    )
    state = Versioned(Disk(tmp_path / "state", durable=False))
    agent = Agent(name=one_line, model=ScriptedModel([[python_action(code)]]), fs=connect_fs())

    @agent.task
    def answer(question: str) -> str: ...

    answer(HOSTILE, state=state)
    state["later"] = HOSTILE
    state.commit(HOSTILE)
    state.tag(one_line)
    state.fork(one_line)
    client = serve(state, one_line)
    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        page = shown.page
        await page.click("#back")
        await page.wait_for_selector("#activity iframe.guest >> nth=1")
        for tab in ("variables", "files"):
            await page.click(f"#tab-{tab}")
            # Not before: a click on what is about to be replaced would be lost.
            await page.wait_for_selector("#panel[aria-busy=false] .item")
            for summary in await page.locator("#panel .item > summary").all():
                await summary.click()
            for body in await page.locator("#panel .body").all():
                await body.locator("> *").first.wait_for()
        await shown.shot("hostile")
        frames = await page.locator("iframe.guest").all()
        assert len(frames) >= 4
        for frame in frames:
            assert await frame.get_attribute("sandbox") == ""
            content = await (await frame.element_handle()).content_frame()
            await expect(content.locator("body")).to_have_count(1)
        await page.click("#tab-changes")
        await page.wait_for_selector("text=New variables")
        assert await page.title() != "owned"
        await page.locator("#branch").select_option(one_line)
        await page.wait_for_selector(".card")
        # Nothing was asked for but by the page's own scripts, and no element came of text.
        assert [target for target in client.targets if target.startswith("/api/owned")] == []
        assert all(
            url.startswith((f"http://{client.host}/", "data:", "about:", "blob:")) for url in shown.requests
        )
        for tag in (
            "script:not([src='studio.js'])",
            "object",
            "embed",
            "video",
            "base",
            "body a[href^=javascript]",
        ):
            assert await page.locator(tag).count() == 0
        handlers = "e => [...e.attributes].some(a => a.name.startsWith('on'))"
        assert await page.evaluate(f"[...document.querySelectorAll('*')].some({handlers})") is False
        assert [error for error in shown.errors if "dialog" in error] == []


@needs_chromium
@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 900), ("dark", 900)]
)
async def test_it_fits_and_is_legible_light_and_dark(serve, tmp_path, scheme, width):
    client = serve(make_state(tmp_path / "state"))
    async with chromium() as browser:
        shown = await opened(browser, client.server.address, width=width, scheme=scheme)
        page = shown.page
        await page.wait_for_selector(".item")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        for part in ("#chat", "#activity", "#inspector", "#timeline"):
            box = await page.locator(part).bounding_box()
            assert box["width"] >= 220
            assert box["x"] + box["width"] <= width
        contrasts = await page.evaluate(CONTRASTS)
        assert {name: ratio for name, ratio in contrasts.items() if ratio < 4.5} == {}  # WCAG 2.1, AA
        await shown.shot(f"server-{scheme}-{width}")


CONTRASTS = """() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$|transparent/.test(color)) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const ratios = {};
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility() || e.closest(":disabled, .later, option, .skip")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    const name = `${e.tagName}.${e.className}`;
    ratios[name] = Math.min(ratios[name] ?? 99, (a + 0.05) / (b + 0.05));
  }
  return ratios;
}"""


@needs_chromium
async def test_words_are_searched_and_a_run_tells_its_model_and_cost(client):
    from playwright.async_api import expect

    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        page = shown.page
        await page.wait_for_selector("text=6 in all")
        spent = page.locator("#spent")
        await expect(spent).to_contain_text("this run so far: testing:scripted · ")
        await expect(spent).to_contain_text("$0.0000")
        whole = await spent.inner_text()
        await page.keyboard.press("/")
        await page.keyboard.type("read 2")
        await page.keyboard.press("Enter")
        await expect(page.locator("#found-text")).to_have_text("1 found for “read 2”")
        await shown.shot("search")
        await page.click(".hit")
        await expect(page.locator("#where")).to_have_class("past")
        await expect(page.locator("#activity .card")).to_have_count(1)
        assert await spent.inner_text() != whole  # of the first turn alone
        await page.keyboard.press("Escape")
        assert await page.is_hidden("#found")
        await page.keyboard.type("<b>nowhere</b>")
        await page.keyboard.press("Enter")
        await expect(page.locator("#found-text")).to_contain_text("Nothing found for")
        assert shown.errors == []


@needs_chromium
async def test_everything_is_reached_by_keyboard(client):
    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        page = shown.page
        await page.wait_for_selector(".item")
        reached = set()
        for _ in range(60):
            await page.keyboard.press("Tab")
            reached.add(
                await page.evaluate(
                    "document.activeElement.id || document.activeElement.className.split(' ')[0]"
                    " || document.activeElement.tagName"
                )
            )
        assert reached >= {
            "skip",
            "branch",
            "words",
            "theme",
            "message",
            "back",
            "commit",
            "fork",
            "code",
            "chip",
            "panel",
            "SUMMARY",
            "tab-variables",
        }
        await page.focus("#tab-variables")
        await page.keyboard.press("ArrowRight")
        assert await page.get_attribute("#tab-files", "aria-selected") == "true"
        await page.focus("#fork")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Escape")
        assert await page.is_hidden("#fork-form")
        assert await page.evaluate("document.activeElement.id") == "fork"


@needs_chromium
async def test_a_figure_is_drawn_in_a_frame_that_reaches_nothing(serve, tmp_path):
    from playwright.async_api import expect

    plotly = pytest.importorskip("plotly.graph_objects", reason="figures are plotly's")
    text = f"{HOSTILE}<a href='javascript:top.document.title=1'>x</a>"
    figure = plotly.Figure(
        data=[plotly.Bar(x=["a", "b"], y=[1, 2], name=text, text=text, hovertemplate=text)],
        layout={"title": {"text": text}, "images": [{"source": "/api/owned", "x": 0, "y": 1}]},
    )
    state = Versioned(Disk(tmp_path / "state", durable=False))
    state["figure"] = figure
    state.commit("a figure")
    client = serve(state)
    async with chromium() as browser:
        shown = await opened(browser, client.server.address)
        page = shown.page
        element = await page.wait_for_selector("#activity iframe.figure-frame")
        assert await element.get_attribute("sandbox") == "allow-scripts"
        frame = await element.content_frame()
        await frame.wait_for_selector("g.bars path")
        await expect(frame.locator("g.bars path")).to_have_count(2)
        await shown.shot("figure")
        reached = await frame.evaluate(
            """async () => {
              const tried = {origin: () => self.origin,
                page: () => parent.document.title, token: () => sessionStorage.length,
                fetch: () => fetch("/api/heads").then((r) => r.status)};
              const found = {};
              for (const [name, go] of Object.entries(tried))
                try { found[name] = await go(); } catch (error) { found[name] = error.name; }
              return found;
            }"""
        )
        assert reached == {
            "origin": "null",
            "page": "SecurityError",
            "token": "SecurityError",
            "fetch": "TypeError",
        }
        assert [target for target in client.targets if target.startswith("/api/owned")] == []
        assert "agex studio" in await page.title()
