"""Whole runs are recorded, and replayed without models, functions and live objects."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agex import Agent, DefinitionError, OutputEvent, ReplayMismatch, TapeError, TaskFail
from agex.errors import TaskError
from agex.testing import MASK, ScriptedModel, python_action, record, replay


def say(*codes: str) -> ScriptedModel:
    """Return a model that runs each code in a turn of its own."""
    return ScriptedModel([[python_action(code)] for code in codes])


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "run.tape"


def loans() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE loans (book TEXT, reader TEXT, days INTEGER)")
    db.execute("INSERT INTO loans VALUES ('Emma', 'Ada', 14), ('Walden', 'Ben', 7)")
    return db


def librarian(db: sqlite3.Connection, *codes: str, **settings: Any) -> Any:
    """Return a task over a live connection."""
    agent = Agent(name="librarian", model=say(*codes) if codes else None, **settings)
    agent.module(db, name="db")

    @agent.task
    def ask(question: str, days: int = 10) -> list[str]:
        """Answer with SQL over the loans."""

    return ask


QUERY = (
    'rows = db.execute("SELECT reader FROM loans WHERE days > ?", (days,))\n'
    "names = [name for (name,) in rows]\n"
    "task_success(names)"
)


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_run_over_a_database_is_replayed_without_it(tape: Path, isolation: str) -> None:
    db = loans()
    with record(tape):
        found = librarian(db, "print(db.total_changes)", QUERY, isolation=isolation)("Who?")
    db.close()
    with replay(tape):
        assert librarian(db, isolation=isolation)("Who?") == found == ["Ada"]


def test_another_argument_of_a_call_is_the_first_difference(tape: Path) -> None:
    with record(tape):
        librarian(loans(), QUERY)("Who?", 10)
    with replay(tape), pytest.raises(ReplayMismatch) as caught:
        librarian(loans())("Who?", 5)
    assert (caught.value.turn, caught.value.line) == (1, 1)
    assert "(10,)" in caught.value.expected
    assert "(5,)" in caught.value.got
    assert "expected: db.execute(" in str(caught.value)
    assert "turn 1, line 1" in str(caught.value)


def test_a_difference_that_no_call_shows_is_told_at_the_end(tape: Path) -> None:
    with record(tape):
        librarian(loans(), "task_success(['Ada'])")("Who?")
    with replay(tape), pytest.raises(ReplayMismatch) as caught:
        librarian(loans())("Which?")
    assert (caught.value.expected, caught.value.got) == ("question='Who?'", "question='Which?'")


def shop(
    *codes: str, do: Callable[..., Any], returns: Any = object, model: Any = None, **settings: Any
) -> Any:
    """Return a task over one function."""
    agent = Agent(name="shop", model=say(*codes) if codes else model, **settings)
    agent.fn(do, name="do")

    def work(x: int = 1):
        """Work."""

    work.__annotations__["return"] = returns
    return agent.task(work)


def never(*args: Any, **kwargs: Any) -> Any:
    """Do."""
    raise AssertionError("the function was called in a replay")


def test_results_of_any_kind_come_back(tape: Path) -> None:
    import datetime as dt
    from decimal import Decimal

    found = [
        {"a": [1, None, True, 2.5]},
        (1, "two"),
        {1: dt.date(2026, 1, 2)},
        Decimal("1.10"),
        b"\x00\xff",
        float("inf"),
        2**70,
        "\ud800",
        {"<masked>": 1},
    ]

    def do(n: int) -> object:
        return found[n]

    code = f"task_success([do(n) for n in range({len(found)})])"
    with record(tape):
        first = shop(code, do=do, returns=list)()

    def unused(n: int) -> object:
        return never()

    with replay(tape):
        again = shop(do=unused, returns=list)()
    assert first == again == found
    assert [type(each) for each in again] == [type(each) for each in found]


def test_errors_come_back_with_their_class_and_text(tape: Path) -> None:
    class OutOfStock(LookupError):
        """Not builtin, and not registered."""

    def do(n: int) -> object:
        raise ValueError("no", n) if n else OutOfStock("gone")

    code = (
        "told = []\nfor n in range(2):\n    try:\n        do(n)\n"
        "    except (ValueError, LookupError) as error:\n"
        "        told.append((type(error).__name__, error.args))\ntask_success(told)"
    )

    def unused(n: int) -> object:
        return never()

    with record(tape):
        first = shop(code, do=do, returns=list)()
    with replay(tape):
        assert shop(do=unused, returns=list)() == first
    assert first == [("OutOfStock", ("gone",)), ("ValueError", ("no", 1))]


def test_output_of_a_function_is_shown_again(tape: Path) -> None:
    def do() -> int:
        print("hello from the host")
        return 1

    def unused() -> int:
        return never()

    with record(tape):
        run = shop("do()", "task_success(do())", do=do, returns=int).run()
    with replay(tape):
        again = shop(do=unused, returns=int).run()
    texts = [[event.text for event in each.events if isinstance(event, OutputEvent)] for each in (run, again)]
    assert texts[0] == texts[1]
    assert "hello from the host" in texts[0][0]


def test_clocks_and_chance_are_on_the_tape(tape: Path) -> None:
    code = (
        "import time, datetime, random, secrets, uuid\n"
        "now = datetime.datetime.now\n"
        "task_success([time.time(), time.time_ns(), time.monotonic(), time.strftime('%F %T'), time.ctime(),\n"
        "    str(now()), str(now(datetime.timezone.utc)), str(datetime.datetime.today()),\n"
        "    str(datetime.date.today()), random.random(), random.sample(range(99), 5), secrets.token_hex(),\n"
        "    secrets.choice(range(1000)), str(uuid.uuid4())])"
    )
    with record(tape):
        first = shop(code, do=never, returns=list)()
    with replay(tape):
        assert shop(do=never, returns=list)() == first
    with record(tape):
        assert shop(code, do=never, returns=list)() != first


PAID: list[str] = []


class Account:
    """A class that is no data."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.balance = 0
        PAID.append(owner)

    def pay(self, amount: int) -> int:
        """Pay in."""
        self.balance += amount
        return self.balance

    def __len__(self) -> int:
        return self.balance


@dataclass
class Point:
    """Data."""

    x: int

    def doubled(self) -> Point:
        """Return another."""
        return Point(self.x * 2)


def bank(*codes: str) -> Any:
    agent = Agent(name="bank", model=say(*codes) if codes else None)
    agent.cls(Account)
    agent.cls(Point)

    @agent.task
    def work(point: Point) -> list[int]:
        """Work."""

    return work


def test_methods_of_a_class_are_not_called_in_a_replay(tape: Path) -> None:
    code = (
        "one = Account('Ada')\none.pay(5)\none.pay(amount=2)\none.balance += 1\n"
        "task_success([one.balance, len(one), point.doubled().x, len(one.owner)])"
    )
    with record(tape):
        first = bank(code)(Point(4))
    PAID.clear()
    with replay(tape):
        assert bank()(Point(4)) == first == [8, 8, 8, 3]
    assert PAID == []


def test_live_inputs_are_replaced_too(tape: Path) -> None:
    def task(*codes: str) -> Any:
        agent = Agent(name="inputs", model=say(*codes) if codes else None)

        @agent.task
        def count(db: sqlite3.Connection) -> int:
            """Count the loans."""

        return count

    with record(tape):
        first = task("task_success(db.execute('SELECT count(*) FROM loans').fetchone()[0])")(loans())
    with replay(tape):
        assert task()(sqlite3.connect(":memory:")) == first == 2


async def test_async_tasks_and_functions_are_replayed_in_whatever_order(tape: Path) -> None:
    def task(model: Any, do: Any) -> Any:
        agent = Agent(name="async", model=model)
        agent.fn(do, name="do")

        @agent.task
        async def work(n: int) -> list[int]:
            """Work."""

        return work

    async def do(n: int, wait: int) -> int:
        for _ in range(wait):
            await asyncio.sleep(0)
        return n * 10

    async def unused(n: int, wait: int) -> int:
        return never()

    code = (
        "import asyncio\nasync def both(a, wait):\n    one = await do(a, wait)\n    return await do(one, 0)\n"
        "task_success(await asyncio.gather(both(n, 9), both(n + 1, 1)))"
    )
    with record(tape):
        task_ = task(ScriptedModel(lambda _: [python_action(code)]), do)
        first = await asyncio.gather(*(task_(n) for n in range(3)))
    with replay(tape):
        task_ = task(None, unused)
        assert await asyncio.gather(*(task_(n) for n in reversed(range(3)))) == first[::-1]
    assert first[1] == [100, 200]


def team(outer: Any, inner: Any, do: Callable[..., Any]) -> Any:
    helper, boss = Agent(name="helper", model=inner), Agent(name="boss", model=outer)
    helper.fn(do, name="do")

    @boss.fn
    @helper.task
    def part(n: int) -> int:
        """Do a part."""

    @boss.task
    def whole() -> int:
        """Do it all."""

    return whole


def test_tasks_of_other_agents_are_runs_of_their_own(tape: Path) -> None:
    with record(tape):
        first = team(
            say("task_success(part(1) + part(2))"),
            ScriptedModel(lambda _: [python_action("task_success(do(n))")]),
            lambda n: n * 100,
        )()
    with replay(tape):
        assert team(None, None, lambda n: never())() == first == 300


def test_a_task_in_a_function_is_a_part_of_its_call(tape: Path) -> None:
    inner = Agent(name="inner", model=say("task_success(7)"))

    @inner.task
    def seven() -> int:
        """Return 7."""

    def do() -> int:
        return seven()

    def unused() -> int:
        return never()

    with record(tape):
        assert shop("task_success(do())", do=do, returns=int)() == 7
    with replay(tape):
        assert shop(do=unused, returns=int)() == 7


def test_a_failure_is_replayed_as_one(tape: Path) -> None:
    with record(tape), pytest.raises(TaskFail, match="too little"):
        shop("task_fail('too little')", do=never)()
    with replay(tape), pytest.raises(TaskFail, match="too little"):
        shop(do=never)()


def test_an_error_of_the_model_is_replayed_without_its_pause(tape: Path) -> None:
    from agex.models.base import ModelError

    error = ModelError("busy", retryable=True, retry_after=0.0)
    model = ScriptedModel([error, [python_action("task_success(1)")]])
    with record(tape):
        shop(do=never, returns=int, model=model)()
    with replay(tape):
        run = shop(do=never, returns=int).run()
    assert run.value == 1


# -- differences -------------------------------------------------------------------------------------


def counting(*codes: str) -> Any:
    return shop(*codes, do=lambda n: n, returns=int)


@pytest.mark.parametrize(
    ("old", "new", "expected", "got"),
    [
        ("do(1)\\ntask_success(do(2))", "do(1)\\ntask_success(do(3))", "do(2)", "do(3)"),
        ("do(1)\\ntask_success(do(2))", "do(1)\\ntask_success(5)", "do(2)", "the end: done, 5"),
        ("do(1)\\ntask_success(do(2))", "do(1)\\ndo(1)\\ntask_success(do(2))", "do(2)", "do(1)"),
        ("task_success(5)", "task_success(6)", "the end: done, 5", "the end: done, 6"),
        ("task_success(5)", "task_success(do(1))", "the end: done, 5", "do(1)"),
    ],
    ids=["argument", "fewer", "more", "value", "another"],
)
def test_a_changed_tape_names_what_was_expected_and_what_came(
    tape: Path, old: str, new: str, expected: str, got: str
) -> None:
    with record(tape):
        counting(old.replace("\\n", "\n"))()
    text = tape.read_text("utf-8")
    assert old in text
    tape.write_text(text.replace(old, new), "utf-8")  # as if the agent's code were another one
    with replay(tape), pytest.raises(ReplayMismatch) as caught:
        counting()()
    assert (caught.value.expected, caught.value.got) == (expected, got)


def test_guest_code_cannot_catch_a_difference(tape: Path) -> None:
    code = "try:\n    do(x)\nexcept BaseException:\n    pass\ntask_success(1)"
    with record(tape):
        counting(code)(1)
    with replay(tape), pytest.raises(ReplayMismatch):
        counting()(2)


def test_a_run_that_is_not_on_the_tape_is_refused(tape: Path) -> None:
    with record(tape):
        counting("task_success(1)")()
    with replay(tape):
        counting()()
        with pytest.raises(ReplayMismatch, match=r"no further run of shop\.work"):
            counting()()


def test_a_run_that_was_not_replayed_is_told(tape: Path) -> None:
    with record(tape):
        counting("task_success(1)")()
    with pytest.raises(ReplayMismatch, match=r"not replayed: shop\.work"), replay(tape):
        pass


def test_one_tape_at_a_time(tape: Path) -> None:
    with record(tape), pytest.raises(DefinitionError, match="A tape is on already"), record(tape):
        pass


# -- what cannot be kept -----------------------------------------------------------------------------


def test_a_function_of_the_agent_as_an_argument_is_an_error_that_names_the_call(tape: Path) -> None:
    with pytest.raises(TapeError, match=r"argument 0 of do\(\) cannot be kept"), record(tape):
        shop("do(lambda: 1)", do=lambda *args: 1)()
    assert not tape.exists()


def test_an_argument_that_is_changed_in_place_is_an_error_that_names_the_call(tape: Path) -> None:
    def do(items: list[int]) -> None:
        items.append(1)

    with pytest.raises(TapeError, match=r"do\(\[\]\) in turn 1 changed an argument"), record(tape):
        shop("do([])", do=do)()


def test_an_error_that_the_caller_caught_still_leaves_no_tape(tape: Path) -> None:
    with pytest.raises(TapeError, match="No tape was written"), record(tape), pytest.raises(TapeError):
        shop("do(lambda: 1)", do=lambda *args: 1)()
    assert not tape.exists()


def test_a_module_with_permissions_is_refused(tape: Path) -> None:
    import json

    agent = Agent(model=say("task_success(1)"))
    agent.module(json, network_access=True)

    @agent.task
    def work() -> int:
        """Work."""

    with pytest.raises(TapeError, match="module json is registered with permissions"), record(tape):
        work()


def test_a_file_that_is_no_tape_is_not_overwritten(tape: Path) -> None:
    tape.write_text("precious")
    with pytest.raises(TapeError, match="is no tape"), record(tape):
        pass
    assert tape.read_text() == "precious"


# -- secrets -----------------------------------------------------------------------------------------


def signing_in(*codes: str, do: Callable[..., Any]) -> Any:
    agent = Agent(name="client", model=say(*codes) if codes else None)
    agent.fn(do, name="fetch")

    @agent.task
    def load(url: str, api_key: str) -> str:
        """Load."""

    return load


def fetch(url: str, token: str, headers: dict[str, str] | None = None) -> dict[str, str]:
    """Fetch."""
    return {"page": f"for {token}", "session_token": "sess-7777"}


SIGN_IN = (
    "found = fetch(url, api_key, headers={'Authorization': 'Bearer b-4444'})\n"
    "print(found, api_key)\ntask_success(found['page'])"
)


def test_secrets_do_not_stand_on_the_tape(tape: Path) -> None:
    with record(tape):
        signing_in("print(inputs)", SIGN_IN, do=fetch)("http://x", "sk-it's\\mine")
    text = tape.read_text("utf-8")
    for secret in ("sk-it", "mine", "sess-7777", "b-4444"):
        assert secret not in text
    assert MASK in text
    with replay(tape):
        assert signing_in(do=fetch)("http://x", "another") == f"for {MASK}"


def test_a_hook_masks_further_arguments_and_results(tape: Path) -> None:
    def redact(name: str, value: Any) -> Any:
        return {"url": None, "fetch()": {"page": "hidden"}}.get(name, value)

    with record(tape, redact=redact):
        signing_in("task_success(fetch(url, 't')['page'])", do=fetch)("http://secret.host", "kkkk")
    assert "secret.host" not in tape.read_text("utf-8")


def test_a_secret_in_a_value_that_is_no_text_is_not_written(tape: Path) -> None:
    def do(url: str, token: str) -> tuple[str, ...]:
        return (token, "x")

    with pytest.raises(TapeError, match="holds a secret"), record(tape):
        signing_in("fetch(url, token='t-55555')\ntask_success('')", do=do)("u", "kkkk")
    assert not tape.exists()


# -- tapes from strangers ----------------------------------------------------------------------------


def recorded(tape: Path) -> str:
    with record(tape):
        counting("do(1)\ntask_success(do(2))")()
    return tape.read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version":1', '"version":2'),
        ('"kind":"tape"', '"kind":"film"'),
        ('{"plain":1}', '{"stream":"AAAA"}'),
        ('{"plain":1}', '{"stream":"gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAJpZJSFlFKULg=="}'),
        ('"result":{"plain":1}', '"result":{"plain":1},"more":1'),
        ('"result":{"plain":1}', ""),
        ('"run":1', '"run":9'),
        ('"seed":', '"seed":"x","s":'),
        ('"models":[', '"models":[],"old":['),
    ],
    ids=["version", "kind", "stream", "pickle", "field", "outcome", "run", "seed", "models"],
)
def test_a_forged_tape_is_refused(tape: Path, old: str, new: str) -> None:
    text = recorded(tape)
    assert old in text
    tape.write_text(text.replace(old, new, 1 if '"run"' in old else -1).replace(",,", ","), "utf-8")
    with pytest.raises((TapeError, ReplayMismatch)), replay(tape):
        counting()()


def test_a_tape_that_was_cut_is_refused(tape: Path) -> None:
    text = recorded(tape)
    tape.write_text(text[:-9], "utf-8")
    with pytest.raises(TapeError, match="was cut"), replay(tape):
        pass
    tape.write_text("\n".join(text.split("\n")[:-3]) + "\n", "utf-8")
    with pytest.raises(ReplayMismatch, match="the record of the run ends here"), replay(tape):
        counting()()


def test_a_tape_of_other_functions_is_refused_by_name(tape: Path) -> None:
    recorded(tape)
    with pytest.raises(TapeError, match=r"do was 'function\(n\)' and is 'function\(m\)'"), replay(tape):
        shop(do=lambda m: m, returns=int)()


def test_a_tape_of_another_task_is_refused(tape: Path) -> None:
    recorded(tape)
    with pytest.raises(ReplayMismatch, match=r"no further run of librarian\.ask"), replay(tape):
        librarian(loans())("Who?")


def test_a_link_is_not_followed(tape: Path, tmp_path: Path) -> None:
    recorded(tmp_path / "other.tape")
    tape.symlink_to(tmp_path / "other.tape")
    with pytest.raises(OSError, match="links are not followed"), replay(tape):
        pass
    with pytest.raises(OSError, match="links are not followed"), record(tape):
        pass


def test_an_oversize_tape_is_refused_unread(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tape)
    monkeypatch.setattr("agex.agent.tape.tape_file.MOST_BYTES", 100)
    with pytest.raises(OSError, match="more than 100 bytes"), replay(tape):
        pass


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"name":"Connection"', '"name":"a b"'),
        ('"kind":"object"', '"kind":"thing"'),
        ('"operators":[', '"operators":["__init__",'),
        ('"methods":{', '"methods":{"__class__":{"doc":"","sig":null},'),
    ],
    ids=["name", "kind", "operator", "method"],
)
def test_a_forged_object_is_refused(tape: Path, old: str, new: str) -> None:
    with record(tape):
        librarian(loans(), QUERY)("Who?")
    text = tape.read_text("utf-8")
    assert old in text
    tape.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(TapeError, match="describes an object wrongly"), replay(tape):
        librarian(loans())("Who?")


def test_a_task_error_is_no_reason_for_a_stack_of_tapes(tape: Path) -> None:
    with pytest.raises(TaskError), record(tape):
        shop("task_fail('no')", do=never)()
    assert tape.exists()
    with replay(tape), pytest.raises(TaskError):
        shop(do=never)()
