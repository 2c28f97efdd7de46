"""The example programs, each with a script in the model's place.

What a model says stands in ``examples/replies``: a page with one answer below each heading, or a module with
a function ``reply`` of the messages. All else is real: databases, servers, processes, the kernel.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import itertools
import json
import re
import runpy
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import openai_server
import pytest
import servers

from agex import (
    ActionEvent,
    Disk,
    IsolationUnavailable,
    ModelNotConfigured,
    OutputEvent,
    SuccessEvent,
    Versioned,
    event_from_json,
)
from agex.isolation import executor_of, levels
from agex.testing import ScriptedModel

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
REPLIES = {path.stem: path for path in (EXAMPLES / "replies").glob("*.*")}

FUNCY = """\
101
[3, 7, 14, 24]
"""
DB = """\
3
['Ada']
[('Walden', 7), ('Emma', 14), ('Dracula', 30)]
"""
DATA = """\
7 rows, 6 of them clean
{'east': 250, 'north': 190}
1 turns, NUMBER tokens, NUMBER s
"""
VIZ = """\
bar [190, 152, 170, 114]
Rain in Bergen
"""
MULTI = """\
scatter [0, 1, 2, 3, 4, 5] [0, 1, 4, 9, 16, 25]
['orchestrator', 'analyst', 'plotter']
"""
EVALUATOR_OPTIMIZER = """\
1. Our folding bicycle takes you anywhere, folds in seconds, and fits below every desk.
   14 words are too many; name the price
2. The folding bicycle that fits below your desk: 490 euros.
   approved
"""
DOGFOOD = """\
<agex task solver.solve(equation: str) -> str>
x = 2
x = 7
"""
MEMORY = """\
now: ['Ada lives in London', 'Ada plays chess']
then: {'Ada': ['Ada lives in London']}
on the fork: ['Ada lives in London', 'Ada plays chess', 'Ada has a parrot']
on main: ['Ada lives in London', 'Ada plays chess']
~ people: 'Ada': ['Ada lives in London', 'Ada plays chess'] -> ['Ada lives in London', 'Ada plays chess', 'Ada has a par...
merged: ['Ada lives in London', 'Ada plays chess', 'Ada has a parrot']
"""  # noqa: E501 - as it is printed
LIBRARY = r"""Parse '7h 45m' into minutes: 465 ['helpers/durations.py']
Parse '1h 05m' into minutes, and add the 465 of yesterday: 530 ['helpers/durations.py']
import re


def minutes(text: str) -> int:
    '''Minutes of a duration such as '7h 45m'.'''
    hours, rest = re.search(r"(\d+)h (\d+)m", text).groups()
    return 60 * int(hours) + int(rest)

""".replace("'''", '"""')
SKILLS = """\
2031-0042-5
2 turns
"""
TERMINAL = """\
['broken.json']
{
  "a": [
    2,
    3
  ],
  "b": 1
}
"""
ISOLATION = """\
stopped: FileNotFoundError: [Errno 2] No such file or directory: '/etc/passwd'
14.25 [6.0, 8.25]
"""
TINYAGENT_LOCAL = """\
13.5
1 steps, NUMBER tokens, NUMBER s
"""
TINYAGENT_ISOLATED = "8\n"

PRINTED = {
    "funcy": FUNCY,
    "db": DB,
    "data": DATA,
    "viz": VIZ,
    "multi": MULTI,
    "evaluator_optimizer": EVALUATOR_OPTIMIZER,
    "dogfood": DOGFOOD,
    "memory": MEMORY,
    "library": LIBRARY,
    "skills": SKILLS,
    "terminal": TERMINAL,
    "isolation": ISOLATION,
    "tinyagent_local": TINYAGENT_LOCAL,
    "tinyagent_isolated": TINYAGENT_ISOLATED,
}
"""What an example prints; its figures of time and tokens are NUMBER."""

WITH_SERVERS = {"approval", "cluster", "service", "tinyagent_sandboxed"}
"""These have a test of their own, the last one in ``tests/tinyagent/test_container.py``."""

Load = Callable[[str], ModuleType]

_numbers = itertools.count()


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Import an example, anew for each test; processes that it starts can import it too."""
    monkeypatch.syspath_prepend(str(ROOT))
    yield lambda name: importlib.import_module(f"examples.{name}")
    for name in [name for name in sys.modules if name == "examples" or name.startswith("examples.")]:
        del sys.modules[name]


def turns(name: str) -> list[str]:
    page = REPLIES[name].read_text(encoding="utf-8")
    return re.split(r"^## .*\n", page, flags=re.MULTILINE)[1:]


def test_every_example_is_tested_and_every_script_has_an_example() -> None:
    assert sorted(PRINTED.keys() | WITH_SERVERS) == NAMES
    assert sorted(REPLIES) == NAMES
    listed = re.findall(r"\[(\w+)\.py\]", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_script_says_that_it_is_one(name: str) -> None:
    first = REPLIES[name].read_text(encoding="utf-8").splitlines()[0]
    assert "A script for the tests, written by hand" in first


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_found(
    name: str, load: Load, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "isolation":
        require("kernel")
    example = load(name)
    scripted = REPLIES[name].suffix == ".py"
    model = ScriptedModel(load(f"replies.{name}").reply if scripted else turns(name))
    example.main(model)
    printed = re.sub(r"\d+(\.\d)?(?= (tokens|s)\b)", "NUMBER", capsys.readouterr().out)
    assert printed == PRINTED[name]
    assert scripted or len(model.requests) == len(turns(name))


def require(level: Any) -> None:
    try:
        executor_of(level)
    except IsolationUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_the_one_that_the_command_names(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--model", "nobody"])
    try:
        with pytest.raises(ModelNotConfigured, match="'nobody' is not a model"):
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    except pytest.fail.Exception:
        assert name in {"isolation", "tinyagent_isolated", "tinyagent_sandboxed"}
        assert capsys.readouterr().out.startswith("not run: ")


@pytest.mark.parametrize("name", ["isolation", "tinyagent_sandboxed"])
def test_an_example_whose_level_does_not_hold_says_so_and_asks_no_model(
    name: str, load: Load, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking() -> None:
        raise IsolationUnavailable("this machine lacks it")

    for level in ("kernel", "container"):
        monkeypatch.setitem(levels._MAKERS, level, lacking)
        monkeypatch.delitem(levels._made, level, raising=False)
    model = ScriptedModel([])
    load(name).main(model)
    out = capsys.readouterr().out
    assert out.startswith("not run: ")
    assert "this machine lacks it" in out
    assert model.requests == []


# -- what is left in directories ----------------------------------------------------------------------


def test_the_memory_of_a_directory_goes_on_in_the_next_run(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load("memory").main(ScriptedModel(turns("memory")), tmp_path)
    capsys.readouterr()
    state = Versioned(Disk(tmp_path))
    assert state["people"] == {"Ada": ["Ada lives in London", "Ada plays chess", "Ada has a parrot"]}
    assert sorted(state.branches()) == ["main", "rumour"]
    assert state.fsck() == []
    state.close()


def test_the_figure_is_written_by_the_host(load: Load, tmp_path: Path) -> None:
    load("viz").main(ScriptedModel(turns("viz")), tmp_path / "rain.html")
    assert "Rain in Bergen" in (tmp_path / "rain.html").read_text(encoding="utf-8")


# -- the service --------------------------------------------------------------------------------------


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Serve an application with uvicorn, on loopback; give its address."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra `examples` has uvicorn")
    running: list[tuple[Any, threading.Thread]] = []

    def start(app: Any) -> str:
        ready = threading.Event()

        class Server(uvicorn.Server):  # type: ignore[name-defined,misc]
            async def startup(self, sockets: Any = None) -> None:
                await super().startup(sockets)
                ready.set()

        server = Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        assert ready.wait(30)
        port = server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join()


def post(address: str, **ticket: Any) -> bytes:
    request = urllib.request.Request(
        address, json.dumps(ticket).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())


def test_the_service_answers_with_verdicts(load: Load, serve: Callable[[Any], str]) -> None:
    service = load("service")
    [answer] = turns("service")
    service.agent.model = ScriptedModel(lambda messages: answer)
    address = serve(service.app)
    charged = post(f"{address}/tickets", text="I was charged twice!", customer=7)
    assert json.loads(charged) == {"topic": "billing", "urgent": True}
    assert json.loads(post(f"{address}/tickets", text="It crashes.", customer=8)) == {
        "topic": "bug",
        "urgent": False,
    }
    assert json.loads(post(f"{address}/tickets", text="Lovely.", customer=7)) == {
        "topic": "praise",
        "urgent": False,
    }


def test_the_service_has_many_requests_under_way_at_once(load: Load, serve: Callable[[Any], str]) -> None:
    service = load("service")
    [answer] = turns("service")
    both = asyncio.Barrier(2)

    async def model(messages: object) -> str:
        async with asyncio.timeout(30):
            await both.wait()  # nobody is answered before two have asked
        return answer

    service.agent.model = model
    address = serve(service.app)
    verdicts: dict[int, Any] = {}

    def ask(customer: int) -> None:
        verdicts[customer] = json.loads(post(f"{address}/tickets", text="An error!", customer=customer))

    threads = [threading.Thread(target=ask, args=[customer]) for customer in (7, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == {7: {"topic": "bug", "urgent": True}, 8: {"topic": "bug", "urgent": False}}


def test_the_service_tells_what_happens_line_by_line(load: Load, serve: Callable[[Any], str]) -> None:
    service = load("service")
    service.agent.model = ScriptedModel(turns("service"))
    lines = post(f"{serve(service.app)}/tickets/events", text="It crashes.", customer=7).splitlines()
    events = [event_from_json(line.decode()) for line in lines]
    kinds = [type(event) for event in events if isinstance(event, ActionEvent | SuccessEvent)]
    assert kinds == [ActionEvent, SuccessEvent]


def test_a_task_that_fails_is_an_error_of_the_service_and_not_its_end(
    load: Load, serve: Callable[[Any], str]
) -> None:
    service = load("service")
    [answer] = turns("service")
    service.agent.model = ScriptedModel(["```python\ntask_fail('no idea')\n```", answer])
    address = serve(service.app)
    with pytest.raises(urllib.error.HTTPError) as raised:
        post(f"{address}/tickets", text="?", customer=7)
    with raised.value as response:
        assert (response.code, json.loads(response.read())) == (502, {"detail": "TaskFail: no idea"})
    assert json.loads(post(f"{address}/tickets", text="It crashes.", customer=7))["topic"] == "bug"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[openai_server.Provider]:
    """Run a provider that commands ask with ``--model openai-chat:any``."""
    pytest.importorskip("openai", reason="needs `pip install pydantic-ai-slim[openai]`")
    with openai_server.running() as running:
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def test_the_service_is_a_command(provider: openai_server.Provider) -> None:
    provider.answers.append(openai_server.completion(turns("service")[0]))
    port = servers.free_port()
    options = ["--model", "openai-chat:any", "--port", str(port)]
    command = [sys.executable, str(EXAMPLES / "service.py"), *options]
    with servers.running(command, lambda: servers.connects(port)):
        verdict = post(f"http://127.0.0.1:{port}/tickets", text="I was charged twice!", customer=7)
    assert json.loads(verdict) == {"topic": "billing", "urgent": True}


# -- approval -----------------------------------------------------------------------------------------


@pytest.fixture
def complaints(load: Load, serve: Callable[[Any], str]) -> tuple[ModuleType, str]:
    approval = load("approval")
    [answer] = turns("approval")
    approval.agent.model = ScriptedModel(lambda messages: answer)
    return approval, serve(approval.app)


def complain(address: str, order: str) -> Any:
    return json.loads(post(f"{address}/complaints", order=order, text="It came broken."))


def test_a_small_refund_is_paid_at_once_and_a_large_one_waits_on_the_page(
    complaints: tuple[ModuleType, str],
) -> None:
    approval, address = complaints
    assert complain(address, "B2")["answer"] == "You get back: 20 for B2."
    waiting = complain(address, "A7")
    assert (waiting["answer"], waiting["waits"]["text"]) == (None, "refund('A7', 80)")
    assert approval.paid == ["20 for B2"]
    with urllib.request.urlopen(address, timeout=30) as response:
        page = response.read().decode()
    assert waiting["run"] in page
    assert "refund(&#x27;A7&#x27;, 80)" in page
    where = f"{address}/runs/{waiting['run']}"
    done = json.loads(post(f"{where}/approve", call=waiting["waits"]["id"], amount=60))
    assert done["answer"] == "You get back: 60 for A7."
    assert approval.paid == ["20 for B2", "60 for A7"]
    with pytest.raises(urllib.error.HTTPError, match="409") as raised:
        post(f"{where}/approve", call=waiting["waits"]["id"])
    raised.value.close()
    assert approval.paid == ["20 for B2", "60 for A7"]


def test_a_refund_that_is_rejected_is_not_paid_and_one_that_nobody_saw_neither(
    complaints: tuple[ModuleType, str],
) -> None:
    approval, address = complaints
    waiting = complain(address, "A7")
    where = f"{address}/runs/{waiting['run']}"
    with pytest.raises(urllib.error.HTTPError, match="409") as raised:
        post(f"{where}/approve", call="another")
    raised.value.close()
    done = json.loads(post(f"{where}/reject", call=waiting["waits"]["id"], reason="it was not ours"))
    assert done["answer"] == "You get back: nothing, for refund was not approved: it was not ours."
    assert approval.paid == []


# -- the cluster --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with servers.postgres_server() as address:
        yield address


@pytest.fixture
def dsn(postgres: str) -> str:
    """Make a database that nobody has used."""
    import psycopg

    name = f"cluster{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.replace("dbname=postgres", f"dbname={name}")


@pytest.mark.slow
def test_the_cluster_does_all_regions_over_one_database(
    load: Load, dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="the extra `examples` has distributed")
    from agex.state.postgres import PostgresStore

    # Each worker has a copy of the script, which begins anew with each call that it is sent.
    load("cluster").main(ScriptedModel(turns("cluster") * 3), dsn)
    sums = {"north": 160.0, "south": 150.0, "east": 105.0}
    assert capsys.readouterr().out.splitlines() == [
        str(sums),
        *[f"{region}: 'in_euros: done' after 'the rates of today'" for region in sums],
    ]
    state = Versioned(PostgresStore(dsn))
    assert state["sums"] == sums
    assert "total" not in state
    assert [state.checkout(f"main-{number}")["total"] for number in (2, 3, 4)] == list(sums.values())
    outputs = [event for event in state.checkout("main-3").events if isinstance(event, OutputEvent)]
    assert not any(event.error for event in outputs)
    assert state.fsck() == []
    state.close()


@pytest.mark.slow
def test_the_cluster_is_a_command_and_a_region_that_fails_is_told(
    dsn: str, provider: openai_server.Provider
) -> None:
    pytest.importorskip("distributed", reason="the extra `examples` has distributed")
    answers = [*turns("cluster") * 2, "```python\ntask_fail('no rate')\n```"]
    provider.answers.extend(openai_server.completion(answer) for answer in answers)
    # The program is __main__ here: the workers cannot import it, they are sent all of it.
    command = [sys.executable, str(EXAMPLES / "cluster.py"), "--model", "openai-chat:any", "--dsn", dsn]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    sums = ast.literal_eval(done.stdout.splitlines()[0])
    [failed] = [region for region, value in sums.items() if value == "no sum: no rate"]
    right = {"north": 160.0, "south": 150.0, "east": 105.0}
    assert sums == right | {failed: "no sum: no rate"}
    assert provider.answers == []
