"""One worker carries on a branch at a time, and a lost one's lease ends by itself."""

from __future__ import annotations

import threading

import pytest

from agex import DefinitionError, Memory, StateConflict, Versioned
from agex.agent.durable.carriers import LeaseLost
from agex.durable import leased, leases
from agex.durable.leases import Lease, Leases
from agex.errors import StateError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(leases, "now", clock)
    return clock


class Clock:
    """The clock of both workers, put forward by the test."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class Failing(Memory):
    """A store whose answers to cas are lost while it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        if self.is_down:
            raise StateError("the store is down")
        return super().cas(key, value, expected)


def taken(found: Lease | None) -> Lease:
    assert found is not None
    return found


def test_two_workers_do_not_hold_one_branch(clock: Clock) -> None:
    store = Memory()
    one, other = Leases(store, 10.0), Leases(store, 10.0)
    assert taken(one.take("main")).is_held
    assert other.take("main") is None
    assert taken(other.take("another branch")).is_held


def test_a_lease_is_taken_over_once_it_was_seen_unchanged_for_its_duration(clock: Clock) -> None:
    store = Memory()
    lost, other = Leases(store, 10.0), Leases(store, 300.0)
    lease = taken(lost.take("main"))
    clock.time += 1000.0  # however long ago it was taken: the other looks for the first time now
    assert other.take("main") is None
    clock.time += 9.9
    assert other.take("main") is None
    clock.time += 0.2  # the lease's own duration counts, not that of who looks
    assert taken(other.take("main")).is_held
    assert not lease.is_held


def test_a_renewed_lease_is_not_taken_over(clock: Clock) -> None:
    store = Memory()
    one, other = Leases(store, 10.0), Leases(store, 10.0)
    lease = taken(one.take("main"))
    for _ in range(5):
        assert other.take("main") is None
        clock.time += 6.0
        assert lease.renew()
    assert other.look("main").is_alive


def test_a_holder_stops_before_another_one_may_begin(clock: Clock) -> None:
    store = Failing()
    one, other = Leases(store, 10.0), Leases(store, 10.0)
    lease = taken(one.take("main"))
    assert other.take("main") is None
    clock.time += 6.0
    store.is_down = True
    assert lease.renew()  # it is held until its end
    clock.time += 4.0
    with pytest.raises(LeaseLost, match="not renewed in time"):
        lease.require()
    store.is_down = False
    assert not lease.renew()
    assert taken(other.take("main")).is_held


def test_a_lease_that_was_lost_is_not_given_back_by_its_old_holder(clock: Clock) -> None:
    store = Memory()
    one, other = Leases(store, 10.0), Leases(store, 10.0)
    old = taken(one.take("main"))
    other.take("main")
    clock.time += 11.0
    new = taken(other.take("main"))
    old.release()
    assert Leases(store, 10.0).take("main") is None
    assert new.renew()


def test_a_lease_given_back_can_be_taken_at_once(clock: Clock) -> None:
    store = Memory()
    taken(Leases(store, 10.0).take("main")).release()
    assert taken(Leases(store, 10.0).take("main")).is_held


def test_an_answer_that_is_lost_is_found_out(clock: Clock) -> None:
    class Late(Memory):
        is_lost = False

        def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
            done = super().cas(key, value, expected)
            if self.is_lost:
                raise StateError("the connection was lost before the answer")
            return done

    store = Late()
    lease = taken(Leases(store, 10.0).take("main"))
    store.is_lost = True
    clock.time += 6.0
    assert lease.renew()
    clock.time += 6.0
    assert lease.renew()


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b'["x", 1, 1e999]', b'["x", "1", 5]', b"[[[[", b'["x", 1, 1e12]', b"\xff"]
)
def test_a_damaged_lease_is_held_by_somebody_for_as_long_as_ones_own_lasts(clock: Clock, raw: bytes) -> None:
    store = Memory()
    store.set("agex/lease/main", raw)
    other = Leases(store, 10.0)
    assert other.take("main") is None
    clock.time += 10.0
    assert taken(other.take("main")).is_held


def test_of_many_that_take_over_one_gets_it(clock: Clock) -> None:
    store = Memory()
    taken(Leases(store, 10.0).take("main"))
    others = [Leases(store, 10.0) for _ in range(8)]
    assert [one.take("main") for one in others] == [None] * 8
    clock.time += 10.0
    found: list[Lease | None] = []
    threads = [threading.Thread(target=lambda one=one: found.append(one.take("main"))) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in found if one is not None]) == 1


def test_a_program_keeps_workers_from_its_branch() -> None:
    state = Versioned()
    with leased(state, seconds=5.0):
        assert Leases(state.store, 5.0).take("main") is None
        with pytest.raises(StateConflict, match="is carried on by"), leased(state):
            pass
    assert Leases(state.store, 5.0).take("main") is not None


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "30", 100_000.0])
def test_a_lease_that_is_no_length_of_time_is_refused(seconds: object) -> None:
    with pytest.raises(DefinitionError, match="lease="):
        Leases(Memory(), seconds)  # type: ignore[arg-type]
