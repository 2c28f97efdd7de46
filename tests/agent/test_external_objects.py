"""Methods of live objects act on the world: journalled, approved, made once, however code gets at them.

Stopped by: agent.durable.external_members.
"""

from __future__ import annotations

from typing import Any, Self

import pytest
from tampered_entries import changed

from agex import Agent, DefinitionError, Disk, MemberSpec, ReplayMismatch, TaskFail, TaskSuspended, Versioned
from agex.testing import ScriptedModel, python_action, record, replay

EXTERNAL = MemberSpec(external=True)


class Store:
    """A store of the shop."""

    name: str = "attic"

    def __init__(self, made: list[Any]) -> None:
        self._made = made
        self.name = "cellar"
        self.sender = self.send

    def send(self, item: str, count: int = 1) -> str:
        """Send something."""
        self._made.append((item, count))
        return f"{count} {item} sent"

    def write(self, text: str) -> int:
        self._made.append(text)
        return len(text)

    def close(self) -> None:
        self._made.append("close")

    def stock(self) -> list[str]:
        """What there is."""
        return ["pen", "cup"]

    def same(self) -> Store:
        return self

    def holder(self) -> Holder:
        return Holder(self)

    def sending(self) -> Any:
        return self.send

    def is_this(self, other: object) -> bool:
        return other is self


class Holder:
    def __init__(self, store: Store) -> None:
        self.store = store


MARKED = {"send": EXTERNAL, "write": EXTERNAL, "close": EXTERNAL}


def shop(made: list[Any], codes: list[str], state: Any = None, *, target: Any = None, **settings: Any) -> Any:
    agent = Agent(model=ScriptedModel([[python_action(code)] for code in codes]), name="shop", state=state)
    registered = settings or {"configure": MARKED}
    agent.module(Store(made) if target is None else target, name="store", **registered)

    @agent.fn
    def twice(f: Any) -> list[Any]:
        return [f("pen"), f("cup")]

    @agent.fn
    def sees(it: Any) -> bool:
        return type(it) is Store

    @agent.task
    def settle() -> str:
        """Settle."""

    return settle


def calls_of(state: Versioned) -> list[str]:
    found = [commit.message.partition(", ")[2] for commit in reversed(list(state.history()))]
    return [text.removesuffix(" begins") for text in found if text.endswith(" begins")]


WAYS = [
    "store.send('pen')",
    "send = store.send\nsend('pen')",
    "getattr(store, 'send')('pen')",
    "type(store).send(store, 'pen')",
    "store.__class__.send(store, 'pen')",
    "list(map(store.send, ['pen']))",
    "from functools import partial\npartial(store.send, 'pen')()",
    "from operator import methodcaller\nmethodcaller('send', 'pen')(store)",
    "from operator import attrgetter\nattrgetter('send')(store)('pen')",
    "store.same().send('pen')",
    "store.same().same().send('pen')",
    "store.sender('pen')",
    "store.sending()('pen')",
    "match store:\n    case object(send=f): f('pen')",
    "twice(store.send)",
    "print('pen', file=store, end='')",
    "import csv\ncsv.writer(store).writerow(['pen'])",
    "from contextlib import closing\nwith closing(store): pass",
    "import pprint\npprint.pprint('pen', stream=store)",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_call_is_journalled_however_the_code_gets_at_the_method(way):
    made: list[Any] = []
    state = Versioned()
    shop(made, [f"{way}\ntask_success('done')"], state)()
    assert len(made) > 0
    assert len(calls_of(state)) == len(made)


def test_a_call_is_journalled_in_threads_that_libraries_start():
    made: list[Any] = []
    state = Versioned()
    code = (
        "import asyncio\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool: pool.submit(store.send, 'pen').result()\n"
        "asyncio.run(asyncio.to_thread(store.send, 'cup'))\ntask_success('done')"
    )
    shop(made, [code], state)()
    assert made == [("pen", 1), ("cup", 1)]
    assert calls_of(state) == ["store.send", "store.send"]


REFUSED = [
    "store.holder().store.send('pen')",
    "getattr(store.holder().store, 'send')('pen')",
    "type(store.holder().store).send(store.holder().store, 'pen')",
    "store.send.__self__.send('pen')",
    "store.send.__func__(store, 'pen')",
    "store.send.__wrapped__('pen')",
    "store.send.__closure__[0].cell_contents",
    "vars(type(store))['send']('pen')",
    "type(store).name.fget.__closure__",
    "store.send = print",
    "type(store).send = print",
    "store._made.append(1)",
]


@pytest.mark.parametrize("way", REFUSED)
def test_no_way_leads_past_the_journal(way):
    """Stopped by: agent.durable.external_members, sandbox.guards.attribute_doors."""
    made: list[Any] = []
    state = Versioned()
    caught = "except Exception as e: task_success(type(e).__name__)"
    code = f"try:\n    {way}\n{caught}\ntask_success('a way round')"
    found = shop(made, [code, "task_success('refused')"], state)()
    assert found != "a way round"
    assert made == []


def test_the_rest_of_the_object_is_there_and_costs_no_commit():
    made: list[Any] = []
    state = Versioned()
    code = (
        "store.name = 'loft'\nshown = [store.name, *store.stock(), store.is_this(store), sees(store), "
        "store is store.same(), '_made' in dir(store)]\ntask_success(str(shown))"
    )
    assert shop(made, [code], state)() == "['loft', 'pen', 'cup', True, True, True, False]"
    assert [commit.message for commit in state.history()] == ["settle: done", "settle: turn 0"]


def test_a_whole_object_is_marked_but_for_what_is_configured():
    made: list[Any] = []
    state = Versioned()
    code = "store.stock()\nstore.send('pen', count=2)\ntask_success('done')"
    reads = {"stock": MemberSpec(external=False)}
    shop(made, [code], state, external=True, configure=reads)()
    assert calls_of(state) == ["store.send"]


def test_a_resumed_run_gives_the_results_back_and_is_in_doubt_of_the_last():
    made: list[Any] = []
    state = Versioned()
    killed: list[Versioned] = []

    class Lost(Store):
        def send(self, item: str, count: int = 1) -> str:
            if count == 2:
                killed.append(state.fork())
            return super().send(item, count)

    code = (
        "first = store.send('pen')\ntry: store.send('cup', count=2)\n"
        "except RuntimeError as e: first += ' ' + type(e).__name__\ntask_success(first)"
    )
    assert shop(made, [code], state, target=Lost(made))() == "1 pen sent"
    later: list[Any] = []
    run = shop(later, [], killed[0], target=Lost(later)).resume()
    assert run.value == "1 pen sent CallInDoubt"
    assert later == []


def test_an_object_among_the_arguments_is_known_by_its_name(tmp_path):
    made: list[Any] = []
    state = Versioned(Disk(tmp_path / "s"))
    approved = {"send": MemberSpec(external=True, approval=True), "is_this": EXTERNAL}
    code = "same = store.is_this(store)\ntask_success(str(same) + store.send('pen'))"
    with pytest.raises(TaskSuspended) as stopped:
        shop(made, [code], state, configure=approved)()
    assert str(stopped.value.call) == "store.send('pen')"
    state.close()
    later = Versioned(Disk(tmp_path / "s"))
    run = shop(made, [], later, configure=approved).resume()
    assert run.approve({"item": "cup", "count": 4}).value == "True4 cup sent"
    assert made == [("cup", 4)]
    later.close()


def test_approval_can_be_a_predicate_and_a_rejection_is_an_error():
    made: list[Any] = []
    spec = MemberSpec(external=True, approval=lambda call: call.kwargs.get("count", 1) > 5)
    code = (
        "store.send('pen', count=2)\ntry: store.send('pen', count=9)\n"
        "except Exception as e: task_success(str(e))"
    )
    task = shop(made, [code], Versioned(), configure={"send": spec}).using(on_approval=lambda call: False)
    assert task() == "store.send was not approved"
    assert made == [("pen", 2)]


@pytest.mark.parametrize(
    ("settings", "differs"),
    [
        ({"configure": {"write": EXTERNAL}}, "store was"),
        ({"configure": {"send": MemberSpec(external=True)}}, "store was"),
        ({"external": True, "approval": True}, "store was"),
        ({"target": Holder(Store([])), "exclude": ["_*", "store"]}, "store was"),
    ],
)
def test_a_resume_with_other_marks_is_refused_by_name(settings, differs):
    state = Versioned()
    approved = {"send": MemberSpec(external=True, approval=True)}
    with pytest.raises(TaskSuspended):
        shop([], ["store.send('pen')"], state, configure=approved)()
    with pytest.raises(DefinitionError, match=differs):
        shop([], [], state, **settings).resume().approve()


def test_a_tampered_entry_is_another_call():
    made: list[Any] = []
    state = Versioned()
    approved = {"send": MemberSpec(external=True, approval=True), "write": EXTERNAL}
    code = "store.send('pen')\ntask_success('sent')"
    with pytest.raises(TaskSuspended) as stopped:
        shop(made, [code], state, configure=approved)()
    (key,) = [key for key in state.entry_keys() if "/call/" in key]
    assert key.endswith(stopped.value.call.id.rpartition("/")[2])
    forged = changed(state, key, name="store.write")
    with pytest.raises(ReplayMismatch):
        shop(made, [], forged, configure=approved).resume().approve()
    assert made == []


def test_a_tape_has_the_calls_too_and_they_are_journalled(tmp_path):
    made: list[Any] = []
    state = Versioned()
    code = "task_success(store.send('pen') + store.name)"
    with record(tmp_path / "tape.jsonl"):
        assert shop(made, [code], state)() == "1 pen sentcellar"
    assert made == [("pen", 1)]
    assert calls_of(state) == ["store.send"]
    with replay(tmp_path / "tape.jsonl"):
        assert shop(made, [code], Versioned())() == "1 pen sentcellar"
    assert made == [("pen", 1)]


def test_an_external_function_gets_the_object_and_its_call_is_known_by_the_name():
    state = Versioned()
    seen: list[Any] = []
    killed: list[Versioned] = []
    store = Store([])

    def made(where: Versioned, codes: list[str], it: Any) -> Any:
        agent = Agent(model=ScriptedModel([[python_action(c)] for c in codes]), name="a", state=where)
        agent.module(it, name="store", configure=MARKED)

        @agent.fn(external=True)
        def ship(store: Any, to: str) -> str:
            seen.append((store, to))
            return f"{to} got it"

        @agent.fn(external="idempotent")
        def note() -> None:
            killed.append(where.fork())

        @agent.task
        def work() -> str: ...

        return work

    code = "said = ship(store, to='ann')\nnote()\ntask_success(said)"
    assert made(state, [code], store)() == "ann got it"
    assert made(killed[0], [], Store([])).resume().value == "ann got it"
    assert seen == [(store, "ann")]


class Fluent(Store):
    def send(self, item: str, count: int = 1) -> Self:  # type: ignore[override]
        super().send(item, count)
        return self


def test_a_method_that_returns_its_object_is_journalled_again_on_the_result():
    made: list[Any] = []
    state = Versioned()
    killed: list[Versioned] = []

    class Lost(Fluent):
        def write(self, text: str) -> int:
            killed.append(state.fork())
            return super().write(text)

    code = "same = store.send('a').send('b')\nsame.write('c')\ntask_success(str(same is store))"
    configure = {"send": EXTERNAL, "write": MemberSpec(external="idempotent")}
    assert shop(made, [code], state, target=Lost(made), configure=configure)() == "True"
    assert calls_of(state) == ["store.send", "store.send", "store.write"]
    later: list[Any] = []
    run = shop(later, [], killed[0], target=Lost(later), configure=configure).resume()
    assert (run.value, later) == ("True", ["c"])


class Operated(Store):
    def __setitem__(self, name: str, value: str) -> None:
        self._made.append((name, value))

    def __len__(self) -> int:
        return 7

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._made.append("left")


def test_operators_that_are_not_marked_work_and_give_the_same_object():
    made: list[Any] = []
    code = "with store as s:\n    s['a'] = 'b'\n    same = s is store\ntask_success(f'{len(store)} {same}')"
    state = Versioned()
    assert shop(made, [code], state, target=Operated(made), configure=MARKED)() == "7 True"
    assert made == [("a", "b"), "left"]
    assert calls_of(state) == []


class Slow(Store):
    async def send(self, item: str, count: int = 1) -> str:  # type: ignore[override]
        return item


class Dynamic:
    def __getattr__(self, name: str) -> Any:
        return print


@pytest.mark.parametrize(
    ("target", "settings", "said"),
    [
        (Operated([]), {"external": True}, r"__enter__, __exit__, __len__, __setitem__.*configure="),
        (Operated([]), {"configure": {"__setitem__": EXTERNAL}}, "a function"),
        (Store([]), {"configure": {"name": EXTERNAL}}, "name of .* is not a method"),
        (Store([]), {"configure": {"post": EXTERNAL}}, "post.* is not a method"),
        (Store([]), {"configure": {"stock": MemberSpec(approval=True)}}, "external=True"),
        (Store([]), {"configure": {"send": MemberSpec(external="yes")}}, "'yes'"),  # type: ignore[arg-type]
        (Store([]), {"configure": {"send": MemberSpec(external=True, approval="yes")}}, "'yes'"),
        (Slow([]), {"configure": MARKED}, r"agent\.fn\(store\.send, external=True\)"),
        (Dynamic(), {"configure": MARKED}, "any name"),
        ([], {"configure": {"append": EXTERNAL}}, "built"),
    ],
)
def test_marks_that_could_not_hold_are_refused_when_registered(target, settings, said):
    agent = Agent()
    with pytest.raises(DefinitionError, match=said):
        agent.module(target, name="store", **settings)


def test_a_policy_alone_refuses_marks_that_it_could_not_keep():
    from agex.sandbox import Policy

    with pytest.raises(DefinitionError, match="an agent"):
        Policy().module(Store([]), name="store", configure=MARKED)
    with pytest.raises(DefinitionError, match="an agent"):
        Policy().cls(Store, configure=MARKED)


def test_a_class_is_refused_with_what_to_register_instead():
    with pytest.raises(DefinitionError, match=r"cannot be kept for a class; register functions that use it"):
        Agent().cls(Store, configure=MARKED)


def test_an_object_of_the_same_class_that_code_makes_does_not_act():
    made: list[Any] = []
    agent = Agent(
        model=ScriptedModel([[python_action("Store([]).send('pen')")], [python_action("task_fail('')")]])
    )
    agent.cls(Store)
    agent.module(Store(made), name="store", configure=MARKED)

    @agent.task
    def settle() -> str: ...

    with pytest.raises(TaskFail):
        settle()
    assert "'send' of 'Store' object is not accessible" in str(agent.model.requests[1])


def test_several_samples_are_refused():
    with pytest.raises(DefinitionError, match="store"):
        shop([], ["pass"]).using(samples=2)()
