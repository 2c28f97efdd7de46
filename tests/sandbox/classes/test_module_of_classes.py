"""Libraries that look for the module of a class by its name: a guest's modules are in no table of the host's.

Stopped by: sandbox.classes.class_registry.
"""

from __future__ import annotations

import subprocess
import sys
import typing
from pathlib import Path

import pytest

from agex.files import connect_fs
from agex.sandbox import Policy, Sandbox

FUTURE = "from __future__ import annotations\n"

MODULES = {
    "dataclass": FUTURE
    + """
from dataclasses import dataclass, field, fields, KW_ONLY, InitVar, asdict, replace
import dataclasses, typing
from typing import ClassVar
@dataclass
class P:
    x: int
    s: "it's" = 1
    n: P | None = None
    c: ClassVar[int] = 3
    i: InitVar[int] = 4
    _: KW_ONLY
    y: dataclasses.InitVar[int] = 5
    z: typing.ClassVar[int] = 6
    w: list[int] = field(default_factory=list)
    def __post_init__(self, i, y): self.t = i + y
found = [
    P.__doc__, [(f.name, f.type, f.kw_only) for f in fields(P)], P.__annotations__, P.__init__.__annotations__,
    P.__match_args__, P.__module__, P(1), P(1).t, asdict(P(2)), replace(P(2), x=3, i=0, y=0),
]
""",
    "dataclass_slots": FUTURE
    + """
from dataclasses import dataclass, fields
@dataclass(slots=True, frozen=True, order=True)
class P:
    x: int
    n: "P | None" = None
found = [P(1) < P(2), P.__slots__, [f.type for f in fields(P)], P.__doc__, hash(P(1)) == hash(P(1))]
""",
    "dataclass_quoted": """
from dataclasses import dataclass, fields, field
@dataclass
class P:
    "said"
    x: 'int'
    n: 'P | None' = field(default=None, repr=False)
@dataclass
class Q(P):
    y: 'int' = 2
found = [P(1), Q(1), [f.type for f in fields(Q)], P.__doc__, Q.__doc__]
""",
    "made": """
from dataclasses import make_dataclass, fields
P = make_dataclass('P', [('x', 'int'), ('y', int, 3)])
found = [P(1), [f.type for f in fields(P)]]
""",
    "named_tuple": FUTURE
    + """
from typing import NamedTuple
from collections import namedtuple
class P(NamedTuple):
    x: int
    y: int = 2
Q = namedtuple('Q', 'a b')
found = [P(1), Q(1, 2), P.__module__, P._field_defaults]
""",
    "enumerated": FUTURE
    + """
import enum
class P(enum.Enum):
    A: int = 1
class F(enum.Flag):
    A = enum.auto()
    B = enum.auto()
G = enum.Enum('G', 'a b')
found = [P.A, F.A | F.B, G.a, G['b'], P.__module__]
""",
    "hints": """
from typing import get_type_hints, Optional
class P:
    x: int
    y: Optional[int]
def f(a: int) -> str: ...
found = [get_type_hints(P), get_type_hints(f)]
""",
    "typed_dict": FUTURE
    + """
from typing import TypedDict, Protocol, runtime_checkable, Generic, TypeVar
T = TypeVar('T')
class D(TypedDict):
    x: int
@runtime_checkable
class P(Protocol):
    x: int
class G(Generic[T]):
    v: T
class I: x = 1
found = [D(x=1), isinstance(I(), P), G[int].__origin__ is G, D.__total__]
""",
    "copied": """
import copy
from dataclasses import dataclass
@dataclass
class P:
    x: list
p = P([1])
q = copy.deepcopy(p)
found = [q == p, q.x is p.x, type(q) is P, copy.replace(p, x=2).x if hasattr(copy, 'replace') else 2]
""",
    "abstract": FUTURE
    + """
import abc, functools
from dataclasses import dataclass
class B(abc.ABC):
    x: int
    @abc.abstractmethod
    def f(self) -> int: ...
@functools.total_ordering
@dataclass(eq=True)
class C(B):
    x: int = 1
    def f(self) -> int: return self.x
    def __lt__(self, other: C) -> bool: return self.x < other.x
found = [C(1) <= C(2), C().f()]
""",
}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What CPython says of each, where they are files beside a program."""
    home = tmp_path_factory.mktemp("modules")
    for name, text in MODULES.items():
        (home / f"{name}.py").write_text(text)
    program = f"for name in {list(MODULES)!r}: print(__import__(name).found)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=home, capture_output=True, text=True, check=True
    )
    return dict(zip(MODULES, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_workspace_is_the_module_of_its_classes(name: str, real: dict[str, str]) -> None:
    fs = connect_fs()
    fs.write(f"{name}.py", MODULES[name].encode())
    before = dict(sys.modules)
    result = Sandbox(Policy.default(), fs=fs).exec(f"import {name}\nprint({name}.found)")
    assert result.error is None
    assert result.stdout.rstrip("\n") == real[name]
    assert {each for each in sys.modules.keys() - before.keys() if each in MODULES} == set()
    assert all(sys.modules[each] is module for each, module in before.items() if each in sys.modules)


def test_the_module_of_the_host_that_is_called_the_same_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Kind", typing.ClassVar, raising=False)
    program = (
        f"{FUTURE}from dataclasses import dataclass, fields\n"
        "@dataclass\nclass P:\n    x: Kind[int] = 1\n    y: __main__.Kind = 2\n"
        "print([f.name for f in fields(P)])"
    )
    fs = connect_fs()
    fs.write("own.py", program.encode())
    sandbox = Sandbox(Policy.default(), fs=fs)
    assert sandbox.exec(program).stdout == "['x', 'y']\n"
    assert sandbox.exec("import own").stdout == "['x', 'y']\n"


def test_a_text_that_is_looked_up_is_found_among_the_names_of_the_guest() -> None:
    program = (
        f"{FUTURE}import typing as t\nfrom typing import ClassVar as CV\nfrom dataclasses import dataclass, fields\n"
        "@dataclass\nclass P:\n    a: CV[int] = 1\n    b: t.ClassVar = 2\n    c: int = 3\n"
        "print([f.name for f in fields(P)])"
    )
    assert Sandbox(Policy.default()).exec(program).stdout == "['c']\n"


def test_a_program_is_the_module_of_its_classes_too(tmp_path: Path) -> None:
    program = MODULES["dataclass"] + "print(found)\n"
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Sandbox(Policy.default()).exec(program).stdout == done.stdout
