"""What a guest cuts short in the midst of a check, by an error of its own or by one that strikes: it fails closed.

Stopped by: sandbox.classes.class_registry, sandbox.policy.policy.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import sys

import pytest

from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.runtime.limits import TimeLimit

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


def cuts(work, error=TimeLimit):
    """Do some work over and over, each time cut short at another place."""
    for at in range(1, 5_000):
        cut = Cut(at, error)
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
    """Stopped by: sandbox.policy.policy."""

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


READ = "import abc, dataclasses\nx = []\ndef tell(c):\n  try: x.append(c.__repr__(v))\n  except TypeError: pass\n"
FIELDS = ":\n  hidden: str\n  _secret: str\n"
GENERATED = {
    "it fails at a later method": f"""
class C{FIELDS}  def __lt__(self, other): return True
try: dataclasses.dataclass(order=True)(C)
except TypeError: pass
tell(C)
""",
    "the class without slots": f"""
class C{FIELDS}
dataclasses.dataclass(slots=True)(C)
tell(C)
""",
    "a member that is told its name": f"""
class Tells:
  def __set_name__(self, owner, name): seen.append(owner); [tell(c) for c in seen]
seen = []
class C{FIELDS}  tells = Tells()
dataclasses.dataclass(slots=True)(C)
""",
    "a member that keeps the class and fails": f"""
class Tells:
  def __set_name__(self, owner, name):
    seen.append(owner)
    if len(seen) > 1: raise ValueError
seen = []
class C{FIELDS}  tells = Tells()
try: dataclasses.dataclass(slots=True)(C)
except (ValueError, RuntimeError): pass
[tell(c) for c in seen]
""",
    "an abstract member that is read": f"""
class Tells:
  def __get__(self, instance, owner): tell(owner)
class B(abc.ABC):
  @abc.abstractmethod
  def member(self): pass
class C(B){FIELDS}  member = Tells()
dataclasses.dataclass(C)
tell(C)
""",
    "a stack that is used up": f"""
def deepest(n=0):
  try: return deepest(n + 1)
  except RecursionError: return n
def at(n): return at(n - 1) if n else dataclasses.dataclass(C)
most = deepest()
for n in range(most - 70, most):
  class C{FIELDS.replace("  ", "    ")}
  try: at(n)
  except RecursionError: pass
  tell(C)
""",
}


@pytest.mark.parametrize("source", GENERATED.values(), ids=GENERATED)
def test_a_generated_method_reads_no_fields_of_another_class(source):
    """Stopped by: sandbox.stdlib.dataclasses."""
    said = value_of(READ + source)

    assert [text for text in said if "SECRET" in text or "HIDDEN" in text] == []


def test_a_dataclass_over_an_abstract_class_is_what_it_is():
    """Stopped by: sandbox.stdlib.dataclass_fields."""
    made = """
import abc, dataclasses
class Said:
  def __init__(self, is_abstract): self.__isabstractmethod__ = is_abstract
  def __get__(self, instance, owner): return self
class B(abc.ABC):
  @property
  @abc.abstractmethod
  def member(self): pass
  @abc.abstractmethod
  def field(self): pass
x = []
for is_abstract in (True, False):
  @dataclasses.dataclass(frozen=True)
  class C(B):
    field: tuple = dataclasses.field(default=())
    member = Said(is_abstract)
  x.append([sorted(C.__abstractmethods__), type(C.__dict__["member"]).__name__])
x.append(C().field)
"""
    assert value_of(made) == [[["member"], "Said"], [[], "Said"], ()]


def test_a_stack_that_is_used_up_as_a_class_is_made_is_told_as_that():
    made = """
def deepest(n=0):
  try: return deepest(n + 1)
  except RecursionError: return n
def make():
  class C: pass
def at(n): return at(n - 1) if n else make()
most, x = deepest(), set()
for n in range(most - 70, most):
  try: at(n)
  except Exception as error: x.add(type(error).__name__)
"""
    assert value_of(made) == {"RecursionError"}


def test_a_module_of_the_workspace_is_whole_wherever_its_import_was_cut_short():
    """Stopped by: sandbox.guards.workspace_modules."""
    session = Sandbox(fs=connect_fs(), limits=Limits(seconds=20.0)).session()
    session.run("open('own.py', 'w').write('def f(): return 1')\nopen('around.py', 'w').write('import own')")

    def work(cut):
        session._guards.imports._loaded.clear()
        session.add({"cut": cut})
        session.run("with cut: import around")
        if cut.place is not None:
            assert session.run("import around\naround.own.f()").value == 1, cut.place
            assert session._guards.imports._running == []

    assert len(list(cuts(work, MemoryError))) > 50
