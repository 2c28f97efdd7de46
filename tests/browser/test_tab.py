"""What a page calls, in any interpreter: JSON in, JSON out, over a store in memory."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from agex import Memory
from agex.browser import Tab
from agex.browser.mirror import MirroredStore
from agex.browser.shown import Showing
from agex.errors import StateError
from agex.models.base import Message
from agex.testing import ScriptedModel


def python(code: str) -> str:
    return f"```python\n{code}\n```"


def talking(*replies: Any, store: Any = None) -> Tab:
    tab = Tab(store or Memory())
    tab.ask_model(ScriptedModel(list(replies)))
    return tab


async def called(tab: Tab, method: str, **arguments: Any) -> Any:
    return json.loads(await tab.call(method, json.dumps(arguments)))


async def test_a_message_is_answered_and_its_events_are_told_as_json() -> None:
    tab = talking(python("x = [{'a': 1}, {'a': 2}]\ntask_success(x)"))
    told: list[dict[str, Any]] = []
    tab.on_event = lambda text: told.append(json.loads(text))

    answer = await called(tab, "ask", message="go")

    assert answer["ok"]
    assert (answer["value"]["kind"], answer["value"]["columns"], answer["value"]["rows"]) == (
        "table",
        ["a"],
        [[1], [2]],
    )
    assert [event["type"] for event in told] == ["task_start", "action", "success"]
    kept = await called(tab, "events")
    assert [event["type"] for event in kept] == ["task_start", "action", "success"]
    assert {event["commit_hash"] for event in kept} == {answer["commit"]}


async def test_a_question_is_answered_and_a_failure_is_told() -> None:
    tab = talking(python("task_clarify('which?')"), python("task_success(3)"), python("task_fail('no')"))

    asked = await called(tab, "ask", message="go")
    answered = await called(tab, "answer", message="that one")
    failed = await called(tab, "ask", message="again")

    assert (asked["ok"], asked["question"], asked["error"]["message"]) == (False, True, "which?")
    assert answered["value"]["json"] == 3
    assert (failed["ok"], failed["question"], failed["error"]) == (
        False,
        False,
        {"kind": "TaskFail", "message": "no"},
    )
    assert (await called(tab, "answer", message="x"))["error"]["kind"] == "DefinitionError"


async def test_what_was_said_before_is_shown_to_the_agent_on_its_own_branch() -> None:
    tab = talking(
        python("task_success('one')"), python("task_success(earlier)"), python("task_success(earlier)")
    )
    start = (await called(tab, "add_file", path="a.txt", data=""))["commit"]
    await called(tab, "ask", message="first")

    assert (await called(tab, "ask", message="second"))["value"]["json"] == ["person: first", "you: 'one'"]
    await called(tab, "fork", at=start)
    assert (await called(tab, "ask", message="second"))["value"]["json"] == []


async def test_files_variables_and_branches_are_seen_as_they_were() -> None:
    tab = talking(
        python("x = len(open('d/s.csv').read())\nopen('out.bin', 'wb').write(b'\\xff')\ntask_success(x)")
    )
    dropped = await called(tab, "add_file", path="d/s.csv", data=base64.b64encode(b"a,b\n1,2\n").decode())
    answer = await called(tab, "ask", message="read it")

    now, then = await called(tab, "snapshot"), await called(tab, "snapshot", commit=dropped["commit"])
    assert [(each["name"], each["type"], each["value"]["json"]) for each in now["variables"]] == [
        ("x", "int", 8)
    ]
    assert then["variables"] == []
    assert then["files"] == [{"path": "d/s.csv", "size": 8}]
    assert (await called(tab, "file", path="out.bin"))["base64"] == "/w=="
    assert (await called(tab, "file", path="out.bin", commit=dropped["commit"]))["error"][
        "kind"
    ] == "FileNotFoundError"
    assert (await called(tab, "variable", name="x"))["value"]["json"] == 8
    newest = (await called(tab, "timeline"))[0]
    assert (newest["hash"], newest["names"]) == (answer["commit"], ["main"])
    assert (await called(tab, "diff", old=dropped["commit"], new=answer["commit"]))["added"] == {"x": "8"}

    forked = await called(tab, "fork", name="other", at=dropped["commit"])
    assert forked["current"] == "other"
    assert (await called(tab, "snapshot"))["variables"] == []
    assert (await called(tab, "switch", branch="main"))["current"] == "main"
    assert (await called(tab, "switch", branch="none"))["error"]["kind"] == "StateError"
    assert (await called(tab, "remove_file", path="out.bin"))["commit"]
    assert [each["path"] for each in (await called(tab, "snapshot"))["files"]] == ["d/s.csv"]


async def test_a_tab_that_is_opened_again_goes_on_where_it_was() -> None:
    store = Memory()
    tab = talking(python("x = 1\ntask_success(x)"), store=store)
    await called(tab, "ask", message="go")
    await called(tab, "fork", name="other")

    again = Tab(store)

    assert (await called(again, "branches"))["current"] == "other"
    assert [each["name"] for each in (await called(again, "snapshot"))["variables"]] == ["x"]
    assert [event["type"] for event in await called(again, "events")][-1] == "success"


async def test_what_a_message_imported_is_there_in_all_that_follow_and_is_no_variable() -> None:
    store = Memory()
    asked = python(
        "task_success([json.dumps(1), c.Sized.__name__, xml.etree.ElementTree.fromstring('<a/>').tag])"
    )
    imports = "import json, random, collections.abc as c, xml.etree.ElementTree"
    tab = talking(python(f"{imports}\ntask_success(random.choice([1]))"), asked, asked, store=store)
    answers = [await called(tab, "ask", message="go") for _ in range(3)]
    again = talking(asked, store=store)
    answers.append(await called(again, "ask", message="go"))

    assert [answer["value"]["text"] for answer in answers] == ["1", *["['1', 'Sized', 'a']"] * 3]
    assert (await called(again, "snapshot"))["variables"] == []


async def test_one_task_runs_at_a_time_and_can_be_cancelled() -> None:
    asked = asyncio.Event()

    async def never(_messages: list[Message]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    tab = Tab(Memory())
    tab.ask_model(never)
    running = asyncio.ensure_future(called(tab, "ask", message="go"))
    await asked.wait()

    assert (await called(tab, "ask", message="two"))["error"]["kind"] == "DefinitionError"
    assert (await called(tab, "add_file", path="a", data=""))["error"]["kind"] == "DefinitionError"
    assert await called(tab, "cancel") is True
    assert (await running)["error"]["kind"] == "TaskCancelled"
    assert await called(tab, "cancel") is False


async def test_a_wrong_call_is_an_error_and_not_an_exception() -> None:
    tab = talking()

    for method, arguments in [
        ("_state", "{}"),
        ("__init__", "{}"),
        ("ask", "[]"),
        ("ask", "no"),
        ("ask", "{}"),
        ("file", '{"path": "x"}'),
    ]:
        assert "error" in json.loads(await tab.call(method, arguments)), method


@pytest.mark.parametrize("name", ["js", "pyodide", "pyodide.ffi", "pyodide_js", "micropip", "_pyodide_core"])
async def test_packages_that_lead_to_the_page_are_not_granted(name: str) -> None:
    assert "page" in (await called(talking(), "add_module", name=name))["error"]["message"]


HOSTILE = {
    "repr": "class V:\n  def __repr__(self): raise SystemExit",
    "html": "class V:\n  def _repr_html_(self):\n    while True: pass",
    "getattribute": "class V:\n  def __getattribute__(self, n): raise SystemExit",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_value_of_the_guest_is_shown_within_limits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agex.browser.shown._SECONDS", 0.2)
    tab = talking(python(f"{HOSTILE[name]}\ntask_success(V())"))

    answer = await called(tab, "ask", message="go")

    assert answer["ok"]
    assert answer["value"]["kind"] == "text"
    assert "V" in answer["value"]["text"]


def test_values_are_shown_by_their_kind() -> None:
    show = Showing(rows=2).shown

    assert show("a\ud800") == {"kind": "text", "text": "a\\ud800"}
    assert show({"a": [1, None]}) == {"kind": "json", "json": {"a": [1, None]}, "text": "{'a': [1, None]}"}
    assert show([{"a": 1}, {"a": 2}, {"a": 3}])["total"] == 3
    assert len(show([{"a": 1}, {"a": 2}, {"a": 3}])["rows"]) == 2
    assert show(b"\x89PNG\r\n\x1a\nrest")["kind"] == "image"
    assert show(b"plain")["kind"] == "text"
    assert show(object())["kind"] == "text"


# --- the store ----------------------------------------------------------------------------------


class Slow:
    """Keeps what it is given when it is told to."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.waiting: list[tuple[asyncio.Future[None], Callable[[], None]]] = []
        self.closed = False

    def write(self, items: Mapping[str, bytes], removed: Iterable[str]) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        gone = list(removed)

        def keep() -> None:
            self.kept.update(items)
            for key in gone:
                del self.kept[key]
            done.set_result(None)

        self.waiting.append((done, keep))
        return done

    def go_on(self) -> None:
        for _, keep in self.waiting:
            keep()
        self.waiting.clear()

    def close(self) -> None:
        self.closed = True


async def test_a_mirrored_store_is_a_store_and_keeps_everything() -> None:
    slow = Slow()
    store = MirroredStore(slow, {})

    check_kvstore_here(store)
    store.set_many({"a": b"1", "b": b"2"})
    store.remove("a")

    assert store.unsaved > 0
    slow.go_on()
    await store.flush()
    assert store.unsaved == 0
    assert slow.kept == dict(store.items()) == {"b": b"2"}


def check_kvstore_here(store: MirroredStore) -> None:
    from agex.testing import kvstore

    for check in (kvstore._single, kvstore._many, kvstore._prefixes, kvstore._removal, kvstore._cas):
        check(store)
        store.remove_many(list(store.keys()))


async def test_after_a_write_that_failed_nothing_more_is_written() -> None:
    slow = Slow()
    store = MirroredStore(slow, {"old": b"0"})
    store.set("a", b"1")
    slow.waiting[0][0].set_exception(OSError("QuotaExceededError: the disk is full"))

    with pytest.raises(StateError, match="the disk is full"):
        await store.flush()
    for write in (
        lambda: store.set("b", b"2"),
        lambda: store.cas("old", b"1", b"0"),
        lambda: store.remove("old"),
    ):
        with pytest.raises(StateError, match="Make room"):
            write()
    assert dict(store.items()) == {"old": b"0", "a": b"1"}


async def test_a_closed_store_takes_no_writes() -> None:
    slow = Slow()
    store = MirroredStore(slow, {})
    store.close()
    store.close()

    with pytest.raises(StateError, match="closed"):
        store.set("a", b"1")
    assert slow.closed


async def test_a_tab_is_closed_once_everything_is_kept() -> None:
    slow = Slow()
    tab = Tab(MirroredStore(slow, {}))
    await called(tab, "add_file", path="a.txt", data="YQ==")
    assert (await called(tab, "status"))["unsaved"] > 0

    closing = asyncio.ensure_future(tab.close())
    await asyncio.sleep(0)
    assert not slow.closed
    slow.go_on()
    await closing

    assert slow.closed
    assert opened_from(slow.kept).branches() == tab.branches()


def opened_from(kept: dict[str, bytes]) -> Tab:
    store = Memory()
    store.set_many(kept)
    return Tab(store)
