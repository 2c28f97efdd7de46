"""Trees are built in one go: other threads that build some, and collections, do not disturb them."""

import ast
import gc
import os
import threading
import time
from collections.abc import Iterator

import pytest

from agex._interpreter import syntax_trees
from agex.errors import EvalError
from agex.sandbox import Limits, Sandbox

SOURCE = "\n".join(f"value_{i} = [{i}, (a + {i}) * b, f(x, y={i})]" for i in range(60))


@pytest.fixture
def eager_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)
    gc.collect()


@pytest.mark.usefixtures("eager_collector")
def test_a_finalizer_lets_another_thread_build_a_tree() -> None:
    class Garbage:
        """Has another thread build a tree when it is found, and waits for it."""

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            other = threading.Thread(target=ast.parse, args=(SOURCE,))
            other.start()
            other.join()

    for _ in range(40):
        Garbage()
        syntax_trees.parse(SOURCE)  # SystemError where it is found meanwhile: python/cpython#106905


def test_the_collector_is_left_as_it_was() -> None:
    assert syntax_trees.undisturbed(lambda: (syntax_trees.undisturbed(gc.isenabled), gc.isenabled())) == (
        False,
        False,
    )
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(SyntaxError):
            syntax_trees.parse("(")
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(SyntaxError):
        syntax_trees.parse_expression("x =")
    assert gc.isenabled()


# A limit may also strike in a finalizer or a weakref's callback, of garbage of whatever test ran before:
# the interpreter reports that one and goes on, and the next strike ends the run.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_time_limit_that_strikes_a_parse_leaves_the_collector_on() -> None:
    program = "while True:\n    try:\n        while True: eval('1 + 1')\n    except BaseException: pass"
    ends: list[tuple[object, bool]] = []

    def work() -> None:  # not the main thread: there a limit strikes by an exception from outside
        for _ in range(60):
            result = Sandbox(limits=Limits(seconds=0.01)).exec(program)
            ends.append((type(result.error), gc.isenabled()))
            syntax_trees.parse("x = 1")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    syntax_trees.parse("x = 1")
    assert ends == [(EvalError, True)] * 60


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_while_another_thread_parses_can_parse() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        syntax_trees.undisturbed(lambda: (held.set(), done.wait(30)))

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    child = os.fork()
    if child == 0:
        syntax_trees.parse("x = 1")
        os._exit(7 if gc.isenabled() else 8)
    done.set()
    thread.join()
    deadline = time.monotonic() + 30
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    if found[0] == 0:
        os.kill(child, 9)
        found = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(found[1]) == 7
