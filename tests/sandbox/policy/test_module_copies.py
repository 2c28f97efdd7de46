"""Copies of modules for guest code are whole, and one for all threads."""

from __future__ import annotations

import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest

from agex._interpreter.threads import CAN_START
from agex.sandbox.policy import library_grant
from agex.sandbox.policy.library import Library, only
from agex.sandbox.policy.module_grant import ModuleGrant


def slow_module(on_second: Callable[[], None]) -> types.ModuleType:
    """Return a module that makes its second member when it is asked for."""
    module = types.ModuleType("halfway")

    def made(name: str) -> int:
        if name != "second":
            raise AttributeError(name)
        on_second()
        return 2

    vars(module).update(first=1, __all__=["first", "second"], __getattr__=made)
    return module


@pytest.mark.skipif(not CAN_START, reason="a browser tab has one thread")
def test_a_thread_sees_no_copy_that_another_is_still_making() -> None:
    begun, go_on = Event(), Event()

    def on_second() -> None:
        begun.set()
        assert go_on.wait(30)

    grant = ModuleGrant(slow_module(on_second))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: (grant.copy(), sorted(vars(grant.copy()))))
        assert begun.wait(30)
        second = pool.submit(lambda: (grant.copy(), sorted(vars(grant.copy()))))
        wait([second], timeout=0.3)  # it must not get there
        go_on.set()
        (one, names), (other, others) = first.result(), second.result()
    assert one is other
    assert names == others
    assert {"first", "second"} <= set(names)


@pytest.mark.skipif(not CAN_START, reason="a browser tab has one thread")
def test_a_library_that_another_thread_prepares_is_waited_for() -> None:
    begun, go_on, is_prepared = Event(), Event(), Event()

    def prepare_once() -> None:
        if begun.is_set():
            return  # as where stand-ins are in place already
        begun.set()
        assert go_on.wait(30)
        is_prepared.set()

    library = Library(name="json", modules={"": only("loads")}, prepare=prepare_once)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(library_grant.prepare, library)
        assert begun.wait(30)
        second = pool.submit(lambda: (library_grant.prepare(library), is_prepared.is_set()))
        wait([second], timeout=0.3)  # it must not get there
        go_on.set()
        first.result()
        assert second.result() == (None, True)


def test_a_copy_that_failed_halfway_is_made_anew() -> None:
    errors = [RuntimeError("not yet")]

    def on_second() -> None:
        if errors:
            raise errors.pop()

    grant = ModuleGrant(slow_module(on_second))
    with pytest.raises(RuntimeError, match="not yet"):
        grant.copy()
    assert vars(grant.copy())["second"] == 2


def test_modules_that_lead_to_each_other_are_copied() -> None:
    import json  # json.decoder and json.scanner know each other

    grant = ModuleGrant(json, exclude=())
    assert grant.submodule("decoder") is vars(grant.copy())["decoder"]
