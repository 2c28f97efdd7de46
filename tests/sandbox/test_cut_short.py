"""What a guest cuts short in the midst of a check, by an error of its own or by one that strikes: it fails closed."""

from __future__ import annotations

import contextlib
import contextvars
import sys

import pytest

from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.limits import TimeLimit

_APART = contextvars.Context()  # of no guest, whose wall would be asked


class Vault:
    def __init__(self):
        self.hidden = "HIDDEN"
        self._secret = "SECRET"


class Cut:
    """Raises at the n-th place in the library where a signal may strike: a call begins, or C code returns."""

    def __init__(self, at=0, error=TimeLimit):
        self.at, self.error, self.count, self.place = at, error, 0, None

    def __enter__(self):
        _APART.run(sys.setprofile, self._look)
        return self

    def __exit__(self, *error):
        _APART.run(sys.setprofile, None)

    def _look(self, frame, event, arg):
        name = str(frame.f_globals.get("__name__"))
        if event in {"call", "c_return"} and name.startswith(("agex.", "monkeyfs")):
            self.count += 1
            if self.count == self.at:
                self.place = name, frame.f_code.co_name, frame.f_lineno, event
                _APART.run(sys.setprofile, None)
                raise self.error


def cuts(work):
    """Do some work over and over, each time cut short at another place."""
    for at in range(1, 5_000):
        cut = Cut(at)
        work(cut)
        if cut.place is None:
            return
        yield cut.place


def value_of(source, **names):
    policy = Policy.default()
    policy.cls(Vault, exclude=["hidden", "_*"])
    result = Sandbox(policy, limits=Limits(seconds=20.0)).exec(source, {"v": Vault(), **names})
    assert result.error is None, result.traceback
    return result.namespace["x"]


def test_what_was_allowed_before_a_registration_is_forgotten_wherever_that_is_cut_short():
    class Late:
        gone = "HIDDEN"

    policy = Policy.default(strict=True)
    policy.cls(Late)
    session = Sandbox(policy).session()
    session.add({"late": Late()})
    assert session.run("late.gone").value == "HIDDEN"
    policy.cls(Late, exclude=["gone"])

    checked = session._guards._verdicts

    def work(cut):
        policy.cls(Late, exclude=["gone"])
        checked._read[Late] = {"gone"}
        checked._stored[Late] = {"gone"}
        with contextlib.suppress(TimeLimit), cut:
            checked.may_read(policy.text, late, "gone")
        assert not checked.may_read(policy.text, late, "gone")
        assert not checked.may_store(policy.text, late, "gone")

    late = Late()
    assert len(list(cuts(work))) > 2
    assert "gone" in str(session.run("late.gone").error)
