"""Workers carry on what was enqueued, approved or left, and nothing that another process is at."""

from __future__ import annotations

import threading

import pytest
from queued import PAY, World, paying

from agex import Agent, DefinitionError, Memory, TaskSuspended, Versioned, runs
from agex.agent.durable.decisions import decide
from agex.agent.durable.saved_runs import open_runs
from agex.durable import Report, Worker, enqueue, leases
from agex.errors import LLMFail, StateError
from agex.models.base import ModelError
from agex.testing import ScriptedModel


def on(store: Memory, branch: str) -> Versioned:
    return Versioned(store, branch=branch, create=True)


def worked(store: Memory, *tasks: object, lease: float = 0.3) -> list[Report]:
    """Let a worker go on with all there is; return its reports."""
    reports: list[Report] = []
    Worker(tasks, store, lease=lease, poll=0.02, on_report=reports.append).run(once=True)
    return reports


def told(reports: list[Report]) -> list[tuple[str, str]]:
    return sorted((one.what, one.branch) for one in reports)


def test_an_enqueued_run_is_begun_by_a_worker() -> None:
    world, store = World(), Memory()
    pay = paying(world)
    run_id = enqueue(pay.using(state=on(store, "seven")), 7)
    assert world.made == []
    assert pay.agent.model.requests == []
    assert [one.status for one in runs(on(store, "seven"))] == ["open"]
    assert told(worked(store, pay)) == [("done", "seven")]
    assert world.made == ["7 a", "7 b"]
    assert pay.resume(state=on(store, "seven"), run_id=run_id).value == ["a is paid", "b is paid"]


def test_runs_of_one_branch_are_carried_out_one_after_another() -> None:
    world, store = World(), Memory()
    pay = paying(world)
    for number in (1, 2, 3):
        enqueue(pay.using(state=on(store, "main")), number)
    assert told(worked(store, pay)) == [("done", "main")] * 3
    assert world.made == ["1 a", "1 b", "2 a", "2 b", "3 a", "3 b"]


def test_workers_share_the_runs_of_a_store() -> None:
    world, store = World(), Memory()
    pay = paying(world)
    for number in range(6):
        enqueue(pay.using(state=on(store, f"run-{number}")), number)
    threads = [threading.Thread(target=worked, args=(store, paying(world))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(world.made) == sorted(f"{number} {name}" for number in range(6) for name in "ab")


def test_an_async_task_is_carried_on_too() -> None:
    store = Memory()
    agent = Agent(model=ScriptedModel(["```python\ntask_success(n + 1)\n```"]), fs=None)

    @agent.task
    async def count(n: int) -> int:
        """Count."""

    enqueue(count.using(state=on(store, "main")), 1)
    assert told(worked(store, count)) == [("done", "main")]


def test_a_run_of_another_program_is_left_alone_and_told_once() -> None:
    world, store = World(), Memory()
    pay = paying(world)
    enqueue(pay.using(state=on(store, "main")), 1)
    other = Agent(model=ScriptedModel([]), fs=None)

    @other.task
    def rest() -> int:
        """Rest."""

    reports: list[Report] = []
    worker = Worker([rest], store, lease=0.3, poll=0.02, on_report=reports.append)
    worker.run(once=True)
    worker.run(once=True)
    assert told(reports) == [("left", "main")]
    assert "not defined here" in reports[0].text
    assert world.made == []


def test_a_run_that_a_program_begins_itself_is_not_taken_from_it() -> None:
    world, store = World(), Memory()
    pay, reports = paying(world), []
    worker = Worker([paying(world)], store, lease=60.0, on_report=reports.append)

    def during(name: str) -> None:
        worker._look_around(once=False)  # it has not seen the branch stand still for as long as a lease

    world.during = during
    assert pay(3, state=on(store, "main")) == ["a is paid", "b is paid"]
    assert reports == []
    assert world.made == ["3 a", "3 b"]


def test_a_run_that_a_program_left_is_taken_when_its_branch_stands_still() -> None:
    world, store, crashed = World(), Memory(), Memory()
    world.during = lambda name: crashed.set_many(dict(store.items())) if name == "b" else None
    paying(world)(3, state=on(store, "main"))
    world.during, world.made = lambda name: None, []
    after = paying(world, ["```python\ntask_fail('b is in doubt')\n```"])
    reports = worked(crashed, after)  # over the store as it was when its program had begun the call b
    assert told(reports) == [("failed", "main")]
    assert "CallInDoubt" in str(after.agent.model.requests[0])
    assert world.made == []


def test_an_approved_run_goes_on_at_once() -> None:
    store = Memory()
    agent = Agent(model=ScriptedModel(["```python\ntask_success(refund(5))\n```"]), fs=None)

    @agent.fn(external=True, approval=True)
    def refund(amount: int) -> str:
        """Refund."""
        return f"{amount} back"

    @agent.task
    def complain() -> str:
        """Complain."""

    with pytest.raises(TaskSuspended) as stopped:
        complain(state=on(store, "main"))
    assert told(worked(store, complain, lease=60.0)) == []
    state = on(store, "main")
    decide(state, stopped.value.run.run_id, stopped.value.call.id)
    assert told(worked(store, complain, lease=60.0)) == [("done", "main")]


def test_a_run_that_waits_is_told_and_left() -> None:
    store = Memory()
    agent = Agent(model=ScriptedModel(["```python\ntask_clarify('which?')\n```"]), fs=None)

    @agent.task
    def ask() -> str:
        """Ask."""

    enqueue(ask.using(state=on(store, "main")))
    assert told(worked(store, ask)) == [("waits", "main")]
    assert [one.status for one in runs(on(store, "main"))] == ["asking"]


def test_a_fork_does_not_make_its_calls_again() -> None:
    world, store = World(), Memory()
    pay = paying(world)
    state = on(store, "main")
    enqueue(pay.using(state=state), 1)
    state.fork("experiment")
    assert told(worked(store, pay)) == [("done", "main")]
    assert world.made == ["1 a", "1 b"]


def test_a_model_that_does_not_answer_leaves_the_run_for_later() -> None:
    world, store = World(), Memory()
    answers = [ModelError("busy", retryable=False), PAY]
    pay = paying(world, answers)
    enqueue(pay.using(state=on(store, "main")), 1)
    (report,) = worked(store, pay)
    assert report.what == "open"
    assert LLMFail.__name__ in report.text
    assert told(worked(store, pay, lease=60.0)) == [("done", "main")]


def test_a_run_that_is_lost_at_one_place_has_failed_and_what_it_did_is_kept() -> None:
    world = World()
    agent = Agent(model=ScriptedModel(lambda _: "```python\ncharge()\nleave()\ntask_success()\n```"), fs=None)
    before: list[Memory] = [Memory()]

    @agent.fn(external=True)
    def charge() -> None:
        world.made.append("charge")

    @agent.fn
    def leave() -> None:  # its process ends here: the next one finds the store as it is now
        before.append(Memory())
        before[-1].set_many(dict(before[-2].items()))

    @agent.task
    def work() -> None:
        """Work."""

    run_id = enqueue(work.using(state=on(before[0], "main")))
    counted: list[int] = []
    for _ in range(3):
        Worker([work], before[-1], lease=0.2, poll=0.01, attempts=2).run(once=True)
        counted += [record.attempts for record in open_runs(on(before[-1], "main"))[0]]
    assert counted == [0, 1, 2]  # the call was something new
    reports: list[Report] = []
    Worker([work], before[-1], lease=0.2, poll=0.01, attempts=2, on_report=reports.append).run(once=True)
    assert told(reports) == [("failed", "main")]
    (failed,) = runs(on(before[-1], "main"))
    assert (failed.run_id, failed.status, failed.message) == (run_id, "failed", reports[0].text)
    assert "lost 2 times at the same place" in failed.message
    assert told(worked(before[-1], work)) == []
    assert world.made == ["charge"]
    with pytest.raises(StateError, match="has failed, and does not go on: Its process was lost"):
        work.resume(state=on(before[-1], "main"), run_id=run_id)


def test_attempts_that_end_without_a_loss_do_not_count() -> None:
    world, store = World(), Memory()
    pay = paying(world, [*[ModelError("busy", retryable=False)] * 4, PAY])
    enqueue(pay.using(state=on(store, "main")), 1)
    for _ in range(4):
        assert told(worked(store, pay)) == [("open", "main")]
    assert told(worked(store, pay)) == [("done", "main")]


@pytest.mark.parametrize("attempts", [0, -1, True, 2.0])
def test_a_number_of_attempts_that_is_none_is_refused(attempts: int) -> None:
    with pytest.raises(DefinitionError, match="attempts="):
        Worker([paying(World())], Memory(), attempts=attempts)


def test_a_failed_run_is_told_and_does_not_end_the_worker() -> None:
    world, store = World(), Memory()
    pay = paying(world, ["```python\ntask_fail('no')\n```", PAY])
    enqueue(pay.using(state=on(store, "main")), 1)
    enqueue(pay.using(state=on(store, "main")), 2)
    assert told(worked(store, pay)) == [("done", "main"), ("failed", "main")]
    assert world.made == ["2 a", "2 b"]


def test_a_worker_that_stops_makes_no_further_call_and_leaves_the_run_to_the_next_at_once() -> None:
    world, store = World(), Memory()
    pay, reports = paying(world), []
    worker = Worker([pay], store, lease=60.0, on_report=reports.append)
    world.during = lambda name: worker.stop()
    enqueue(pay.using(state=on(store, "main")), 1)
    worker.run()
    assert told(reports) == [("released", "main")]
    assert world.made == ["1 a"]
    assert told(worked(store, pay, lease=60.0)) == [("done", "main")]
    assert world.made == ["1 a", "1 b"]


def test_a_worker_that_stops_gives_up_a_request_to_a_model() -> None:
    world, store, asked, answer = World(), Memory(), threading.Event(), threading.Event()

    def slow(messages: object) -> str:
        asked.set()
        answer.wait(20)
        return PAY

    pay, reports = paying(world, slow), []
    enqueue(pay.using(state=on(store, "main")), 1)
    worker = Worker([pay], store, lease=60.0, on_report=reports.append)
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert asked.wait(20)
    worker.stop()
    thread.join(20)
    assert not thread.is_alive()
    answer.set()
    assert told(reports) == [("released", "main")]
    assert told(worked(store, paying(world), lease=60.0)) == [("done", "main")]


def test_a_worker_that_lost_its_lease_makes_no_further_call_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, store = World(), Memory()
    pay, reports = paying(world), []
    behind = [0.0]
    real = leases.now
    monkeypatch.setattr(leases, "now", lambda: real() + behind[0])

    def during(name: str) -> None:
        behind[0] = 1000.0  # the machine slept in the call

    world.during = during
    enqueue(pay.using(state=on(store, "main")), 1)
    worker = Worker([pay], store, lease=60.0, on_report=reports.append)
    worker._look_around(once=True)
    assert told(reports) == [("lost", "main")]
    assert "is lost" in reports[0].text
    assert world.made == ["1 a"]
    world.during = lambda name: None
    assert told(worked(store, pay)) == [("done", "main")]
    assert world.made == ["1 a", "1 b"]  # the result of the call that was made is known


def test_a_worker_whose_branch_was_moved_makes_no_further_call() -> None:
    world, store = World(), Memory()
    pay, reports = paying(world), []

    def during(name: str) -> None:
        if name == "a" and not world.made:
            state = on(store, "main")
            state["x"] = 1
            state.commit()

    world.during = during
    enqueue(pay.using(state=on(store, "main")), 1)
    Worker([pay], store, lease=60.0, on_report=reports.append)._look_around(once=True)
    assert told(reports) == [("lost", "main")]
    assert world.made == ["1 a"]


def test_a_run_with_other_registrations_is_left_alone_and_told_once() -> None:
    world, store = World(), Memory()
    pay = paying(world)
    enqueue(pay.using(state=on(store, "main")), 1)
    other = Agent(model=ScriptedModel([]), name="payer", fs=None)

    @other.task
    def pay(number: int) -> list[str]:
        """Pay twice."""

    reports = worked(store, pay)
    assert told(reports) == [("left", "main")]
    assert "charge" in reports[0].text


def test_enqueueing_without_a_store_samples_or_a_task_is_refused() -> None:
    pay = paying(World())
    with pytest.raises(DefinitionError, match="needs a state in a store"):
        enqueue(pay, 1)
    with pytest.raises(DefinitionError, match="not a task"):
        enqueue(len, [])
    plain = Agent(model=ScriptedModel([]), fs=None)

    @plain.task
    def show(connection: object) -> int:
        """Show."""

    with pytest.raises(DefinitionError, match="samples"):
        enqueue(show.using(state=Versioned(), samples=2), 1)
    with pytest.raises(DefinitionError, match=r"No worker could be given .* connection"):
        enqueue(show.using(state=Versioned()), threading.Lock())


def test_a_worker_without_tasks_or_with_two_of_one_name_is_refused() -> None:
    with pytest.raises(DefinitionError, match="needs a task"):
        Worker([], Memory())
    with pytest.raises(DefinitionError, match=r"payer\.pay"):
        Worker([paying(World()), paying(World())], Memory())


def test_a_store_that_cannot_be_reached_is_tried_again_but_not_with_once() -> None:
    class Down(Memory):
        is_down = False

        def items(self, prefix: str = ""):
            if self.is_down:
                raise StateError("the server cannot be reached")
            return super().items(prefix)

    store, reports = Down(), []
    worker = Worker(
        [paying(World())],
        store,
        lease=60.0,
        poll=0.01,
        on_report=lambda one: (reports.append(one), worker.stop()),
    )
    store.is_down = True
    worker.run()
    assert told(reports) == [("left", "")]
    with pytest.raises(StateError, match="cannot be reached"):
        Worker([paying(World())], store).run(once=True)
