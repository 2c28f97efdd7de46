"""What a guest cuts short in the midst of a check, by an error of its own or by one that strikes: it fails closed."""

from __future__ import annotations

import collections
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


def test_classes_are_sorted_anew_wherever_that_is_cut_short():
    policy = Policy.default()
    session = Sandbox(policy).session()
    session.run("import collections\nclass M(collections.UserDict): pass")
    made, known = session.look_up("M"), session._guards.classes
    policy.cls(collections.UserDict, exclude=["data"])

    def work(cut):
        known._pure[id(made)] = made
        known._mixed.clear()
        known.own.add(made)
        known.trusted.add(made)
        session._guards._registered = None
        with contextlib.suppress(TimeLimit), cut:
            session._guards.renew()
        session._guards.renew()
        assert known.is_mixed(made)
        assert not known.is_pure(made)
        assert made not in known.own
        assert made not in known.trusted

    assert len(list(cuts(work))) > 4


KEPT = """
seen = []
class Keeps:
    def __set_name__(self, owner, name):
        seen.append(owner)
        raise ValueError
try:
    {}
except Exception:
    pass
is_asked = False
x = seen[0]()
is_asked = True
try: copy.copy(x)
except Exception: pass
is_asked = False
"""
MEMBERS = """
        {}
        kept = Keeps()
        def __new__(cls): return function if is_asked else super().__new__(cls)
        def __getstate__(self): return None, {{'__defaults__': ('changed',)}}
        def __repr__(self):
            while True: pass
"""


@pytest.mark.parametrize("module", ["pass", "__module__ = 'elsewhere'"], ids=["its own", "another"])
@pytest.mark.parametrize("bases", ["", "(list)", "(abc.ABC)", "(typing.Generic[T])"])
def test_a_class_that_is_kept_and_whose_making_fails_is_the_guests(bases, module):
    def function(said="as it was"):
        return said

    session = Sandbox(limits=Limits(seconds=0.3)).session()
    session.add({"function": function})
    statement = f"class C{bases}:" + MEMBERS.format(module)
    source = "import abc, copy, typing\nT = typing.TypeVar('T')\n" + KEPT.format(statement)
    result = session.run(source)

    assert result.error is None, result.traceback
    assert function() == "as it was"
    with pytest.raises(Exception, match=r"longer than 0\.3 s"):
        repr(session.look_up("x"))


def test_a_metaclass_that_is_kept_and_whose_making_fails_is_the_guests():
    statement = "class C(type):\n        __module__ = 'elsewhere'\n        kept = Keeps()"
    session = Sandbox().session()
    assert session.run(KEPT.format(statement).partition("is_asked")[0]).error is None

    assert session._guards.classes.made()[-1] is session.look_up("seen")[0]
