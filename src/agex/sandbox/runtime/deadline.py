"""The deadline of a run: an alarm signal, a watchdog thread, or stop checks that look at the clock.

A deadline stops a run by setting its sticky flag (see :mod:`agex.sandbox.language.transformer`) and
by raising in the thread that runs it:

* on the main thread through ``setitimer``, which also ends ``time.sleep``, a lock, a
  regular expression or a power of large integers: every C call that looks for signals;
* elsewhere, or where the host uses ``SIGALRM`` itself, from a watchdog thread through an
  asynchronous exception, which reaches Python code only;
* where there are no threads either (a browser tab), by the flag itself, which looks at the
  clock when a stop check reads it.

None of them ends a C call that never looks (``sum(range(10**12))``, a sort, a long numpy
call). It is reported when it returns. Only a worker process can be killed.
"""

from __future__ import annotations

import contextlib
import contextvars
import heapq
import importlib
import itertools
import operator
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from agex._interpreter import threads
from agex.sandbox.runtime.limits import TimeLimit

__all__ = ["RUNNING", "Deadline"]


class Deadline:
    """Calls *expire* once and raises `Stop` in the present thread when time is up.

    ``pause`` and ``resume`` nest: the clock stands still while the host works for guest code.

    With *host_works*, which returns whether a host function is at work in a thread, the clock is looked at
    now and then. The time since the last look is not counted if one is. See `agex.sandbox.runtime.host_time`.
    Of a look that comes late, because other threads or programs had the processor, the time is counted in
    which the thread itself was at work.

    With *raises* false it only calls *expire*: where an event loop takes turns with the
    run, an exception could strike the loop.
    """

    _pauses = 0
    due = 0.0
    active = False
    striking = False
    """Whether the watchdog may be about to raise in the thread."""
    struck = False
    """Whether it has, at least once."""
    fired = False
    over = False
    _looked = 0.0
    _worked = 0.0

    def __init__(
        self,
        seconds: float | None,
        expire: Callable[[], None],
        *,
        raises: bool = True,
        host_works: Callable[[int], bool] | None = None,
    ) -> None:
        self._left = seconds
        self._every = min(max((seconds or 1.0) / _LOOKS, _LEAST), _MOST)
        self._expire = expire
        self._ident = threading.get_ident()
        self._host_works = host_works
        self._work = _clock_of(self._ident) if host_works is not None else None
        self.thread = threading.get_ident() if raises else None
        self.by_signal = raises and _may_use_alarm()
        self._clock: _Alarm | _Watchdog | _Asked = _alarm if self.by_signal else _background
        if seconds is not None and not self.by_signal:
            _background.ready(strikes=raises)  # here, where no limit of memory is in force yet

    def start(self) -> None:
        """Begin to count."""
        if self._left is None:
            return
        self._looked = time.monotonic()
        self._worked = self._work_clock(self._looked)
        self.due = self._looked + self._left
        self.active = True
        self._clock.add(self)

    def cancel(self) -> None:
        """Stop counting for good; may be called again."""
        self.over = True
        self._stop()

    def _stop(self) -> None:
        self.active = False
        if self._left is not None:
            self._clock.remove(self)

    def pause(self) -> None:
        """Let the clock stand still. That of an alarm goes on while another thread than its own pauses it."""
        if not self._is_mine():
            return
        self._pauses += 1
        if self._pauses == 1 and self.active:
            now = time.monotonic()
            if self._host_works is not None and now > self._looked + _LATE * self._every:
                now = self.look()
            # Next to nothing where it is due: guest code that calls the host over and over would gain time.
            self._left = max(self.due - now, 1e-6)
            self._stop()

    def resume(self) -> None:
        """Go on counting from where `pause` stopped, unless the run has ended meanwhile.

        It may have: work of the host goes on in another thread for a moment after the run gave it up.
        """
        if not self._is_mine():
            return
        self._pauses -= 1
        if self._pauses == 0 and self._left is not None and not self.fired and not self.over:
            self.start()

    def _is_mine(self) -> bool:
        return not self.by_signal or self.thread == threading.get_ident()

    @property
    def left(self) -> float | None:
        """The seconds that are left of a paused clock; None without a limit."""
        return self._left

    def charge(self, seconds: float) -> None:
        """Count *seconds* as passed while the clock stands still."""
        if self._left is not None and self._pauses:
            self._left = max(self._left - seconds, 1e-6)

    def next_look(self) -> float:
        """Return the time of the next look: when it is due, or before that."""
        return self.due if self._host_works is None else min(self.due, self._looked + self._every)

    def look(self) -> float:
        """Leave out the time since the last look if the host is at work; return the time of this look.

        It is due if it was due then: other threads may have the interpreter before anybody asks.
        """
        now = time.monotonic()
        if self._host_works is None or self.fired:
            return now
        passed = now - self._looked
        work = self._work_clock(now)
        counted = max(work - self._worked, _LATE * self._every)
        if self._host_works(self._ident):
            counted = 0.0
        due = self.due + max(passed - counted, 0.0)
        # No call between these: a second alarm would look at half of it.
        self._looked, self._worked, self.due = now, work, due
        return now

    def _work_clock(self, now: float) -> float:
        """Return the seconds in which the thread was at work; those that passed where nobody knows."""
        if self._work is None:
            return now
        try:
            return time.clock_gettime(self._work)
        except OSError:  # the thread is over, that of an event loop say
            return self._worked + now - self._looked

    def fire(self) -> None:
        """Set the flag, which stays set; the caller raises."""
        self.fired = True
        self._expire()


_LOOKS = 50
"""Looks at a run in its time, so that little of it is counted wrongly."""
_LEAST, _MOST = 0.01, 0.5
_LATE = 2
"""A look is late after that many times the usual."""


def _clock_of(thread: int) -> int | None:
    """Return the clock of the time that a thread is at work; None where there is none."""
    asked = getattr(time, "pthread_getcpuclockid", None)  # not on macOS and Windows
    try:
        return None if asked is None else int(asked(thread))
    except OSError:  # in a browser there is the function, and no clock
        return None


# Signals repeat until guest code ends: code between two stop checks may swallow one.
_REPEAT = 0.05
# Sooner where the first had no effect because guest code has used up the stack.
_AGAIN = 0.002
# Not in the middle of the first: there may be many functions to end (see agex.sandbox.runtime.kill_switch).
_PEACE = 0.25


_NEXT = operator.methodcaller("next_look")


class _Alarm:
    """The deadlines of the main thread, behind one interval timer."""

    def __init__(self) -> None:
        self._deadlines: list[Deadline] = []
        self._previous: object = None
        self._has_rung = False

    def add(self, deadline: Deadline) -> None:
        if not self._deadlines:
            self._has_rung = False
            self._previous = _signal.signal(_signal.SIGALRM, self._ring)
            self._deadlines.append(deadline)
            self._arm()
        else:
            self._deadlines.append(deadline)
            self._arm_again()

    def remove(self, deadline: Deadline) -> None:
        if deadline not in self._deadlines:
            return
        self._deadlines.remove(deadline)
        if self._deadlines:
            self._arm_again()
        elif _signal.setitimer(_signal.ITIMER_REAL, 0)[0] > _AGAIN and not self._has_rung:
            _signal.signal(_signal.SIGALRM, self._previous)
        else:
            # Ignored first, which drops one that another thread is still to take: it would end the process.
            _signal.signal(_signal.SIGALRM, _signal.SIG_IGN)
            _signal.signal(_signal.SIGALRM, self._previous)

    def owns(self) -> bool:
        return bool(self._deadlines)

    def _arm_again(self) -> None:
        if self._arm() <= _AGAIN:
            self._has_rung = True

    def _arm(self) -> float:
        """Set the timer, for one deadline or more; return what it had left.

        That is more than `_AGAIN` only if it has not rung.
        """
        due = min(map(_NEXT, self._deadlines))
        left: float = _signal.setitimer(_signal.ITIMER_REAL, max(due - time.monotonic(), 1e-6), _AGAIN)[0]
        return left

    def _ring(self, signum: int, frame: object) -> None:
        self._has_rung = True
        if not self._deadlines:
            return  # it rang while the last one was being removed
        looks = [(each, each.look()) for each in self._deadlines]
        late = [each for each, now in looks if each.active and each.due <= now]
        if not late:
            self._arm()
        else:
            _signal.setitimer(_signal.ITIMER_REAL, _PEACE, _AGAIN)
            try:
                for deadline in late:
                    deadline.fire()
            except RecursionError:
                _signal.setitimer(_signal.ITIMER_REAL, _AGAIN, _AGAIN)
                raise
            _signal.setitimer(_signal.ITIMER_REAL, _REPEAT, _REPEAT)
            raise TimeLimit


class _Watchdog:
    """The deadlines of all other threads, behind one daemon thread."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Entered as a lock, not as a condition: the exception that this class sends may strike in
        # Condition.__enter__, a Python function, after the lock is taken and before it will be released.
        # Reentrant: a collection with the lock held may call close() of a guest file, which is a run.
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)
        self._heap: list[tuple[float, int, Deadline]] = []
        self._count = itertools.count()
        self._thread: threading.Thread | None = None

    def ready(self, *, strikes: bool) -> None:
        """Start the thread, and load what it needs: later guest code may have taken the memory.

        Raises:
            RuntimeError: no thread can be started.
        """
        if strikes and _raise_in is _not_bound:
            contextvars.Context().run(_bind)  # outside of any run, whose audit hook would be asked about it
        if not self._is_on():
            with self._lock:
                self._begin()

    def _is_on(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _begin(self) -> None:
        if not self._is_on():
            thread = threading.Thread(target=self._watch, name="agex-watchdog", daemon=True)
            contextvars.Context().run(thread.start)  # outside of any run, which the thread would belong to
            self._thread = thread  # not before: one that could not be started is tried again

    def add(self, deadline: Deadline) -> None:
        with self._lock:
            if deadline.over:
                return  # its run has just ended: it would strike the thread that comes next
            heapq.heappush(self._heap, (deadline.next_look(), next(self._count), deadline))
            self._begin()
            if self._heap[0][2] is deadline:
                self._condition.notify()

    def remove(self, deadline: Deadline) -> None:
        # It is not active any more, so this thread is struck once at most from here on. That must be over
        # before the lock is taken: an exception between a lock and its `with` block leaves it locked.
        while deadline.striking:
            time.sleep(0)
        if deadline.struck:
            _take_pending()
        with self._lock:
            # At once, not when it would be due: it holds the session, with all objects of guest code.
            left = [entry for entry in self._heap if entry[2] is not deadline]
            heapq.heapify(left)
            self._heap = left

    def _watch(self) -> None:
        while True:
            try:
                with self._lock:
                    self._turn()
            except MemoryError:  # guest code has taken it; other runs need this thread, so it tries again
                time.sleep(_REPEAT)

    def _turn(self) -> None:
        wait = self._heap[0][0] - time.monotonic() if self._heap else None
        if wait is None or wait > 0:
            self._condition.wait(wait)
        else:
            self._fire_first()

    def _fire_first(self) -> None:
        deadline = self._heap[0][2]  # stays there until it is done: a failure is tried again
        deadline.striking = True
        try:
            if not deadline.active:
                heapq.heappop(self._heap)
                return  # its run has ended and waits to remove it
            if not deadline.fired:
                now = deadline.look()
                if deadline.next_look() > now:
                    heapq.heapreplace(self._heap, (deadline.next_look(), next(self._count), deadline))
                    return
            deadline.fire()
            # Not one that has seen the flag since: it is on its way out.
            if deadline.thread is not None and deadline.active:
                _raise_in(deadline.thread, TimeLimit)
                deadline.struck = True
        finally:
            deadline.striking = False
        deadline.due = time.monotonic() + _REPEAT
        heapq.heapreplace(self._heap, (deadline.due, next(self._count), deadline))


_EVERY = 200
"""Stop checks between two looks at the clock: some ten microseconds of a loop that does nothing."""


class _Asked:
    """The deadlines where there are no threads: a stop flag that looks at the clock when it is read."""

    def __init__(self) -> None:
        self._deadlines: list[Deadline] = []
        self._left = _EVERY

    def __bool__(self) -> bool:
        """Return False to a stop check: a run that is to end has another flag from then on."""
        self._left -= 1
        if self._left <= 0:
            self._left = 1  # firing fails where guest code has used up the stack: the next check tries again
            self._look()
            self._left = _EVERY
        return False

    def ready(self, *, strikes: bool) -> None:
        """Do nothing: stop checks read it, so it needs no thread."""

    def _look(self) -> None:
        now = time.monotonic()
        for deadline in [one for one in self._deadlines if one.due <= now]:
            deadline.fire()
            self.remove(deadline)

    def add(self, deadline: Deadline) -> None:
        self._deadlines.append(deadline)

    def remove(self, deadline: Deadline) -> None:
        if deadline in self._deadlines:
            self._deadlines.remove(deadline)


def _not_bound(thread: int, exception: type[BaseException]) -> Any:
    raise RuntimeError("the watchdog strikes before it is ready")


_raise_in: Callable[[int, type[BaseException]], Any] = _not_bound
"""Makes a thread raise at its next bytecode, in place of an exception that was pending there."""


def _bind() -> None:
    """Load the function by which the watchdog strikes. It takes long, and a host may need no watchdog."""
    global _raise_in  # noqa: PLW0603 - bound late
    import ctypes

    # Not the attribute, which all callers share: this one has argument types of its own.
    function = ctypes.pythonapi["PyThreadState_SetAsyncExc"]
    function.argtypes = (ctypes.c_ulong, ctypes.py_object)
    _raise_in = function


def _take_pending() -> None:
    """Raise and catch the exception that the watchdog left pending in this thread, if any.

    Taking it back with NULL instead would leave the interpreter's "something is pending" flag set for good
    before Python 3.13: every loop of the process would stop to look, and a traced function would never start.
    """
    try:
        # Without memory it fails, and then what is pending is raised below all the same.
        with contextlib.suppress(MemoryError):
            _raise_in(threading.get_ident(), TimeLimit)
        for _ in range(1_000):  # it strikes at the first turn, unless a finalizer meets it first and drops it
            pass
    except TimeLimit:
        return


def _may_use_alarm() -> bool:
    """Return whether this is the main thread of a host that leaves SIGALRM alone."""
    if not _HAS_TIMER or threading.get_ident() != _Main.thread:
        return False
    if _alarm.owns():
        return True
    free = _signal.getsignal(_signal.SIGALRM) in (_signal.SIG_DFL, _signal.SIG_IGN)
    return free and _signal.getitimer(_signal.ITIMER_REAL)[0] == 0


# The module below `signal`, which turns every handler into an enum member, at 6 us a run.
_signal = importlib.import_module("_signal")

# Where no thread can start, a browser tab, the timer is there and never rings while Python runs.
_HAS_TIMER = threads.CAN_START and hasattr(_signal, "setitimer")


class _Main:
    """The main thread, noted once: looking it up takes two calls for each run."""

    thread = threading.main_thread().ident

    @classmethod
    def renew(cls) -> None:
        cls.thread = threading.main_thread().ident


_alarm = _Alarm()
_watchdog = _Watchdog()
_asked = _Asked()
_background: _Watchdog | _Asked = _watchdog if threads.CAN_START else _asked

RUNNING: object = False if threads.CAN_START else _asked
"""The value of the stop flag while a run goes on; True ends the run."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watchdog.reset)  # threads do not survive a fork
    os.register_at_fork(after_in_child=_Main.renew)  # but for the one that forked, which is the main one then
