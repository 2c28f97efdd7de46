"""``typing.get_type_hints`` of annotations that are text: as CPython has it, and evaluated as guest code.

Stopped by: sandbox.stdlib.typing, sandbox.patches.typing.
"""

from __future__ import annotations

import subprocess
import sys
import typing
from typing import Any

import pytest
from fuzz import attack

from agex.errors import SandboxError, SandboxTypeError
from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox

FUTURE = "from __future__ import annotations\n"
HINTS = "import typing\nfrom typing import *\n"
TRIED = """
def tried(*args, **kwargs):
    try:
        return get_type_hints(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
"""

SAME = {
    "a_class": f"{FUTURE}{HINTS}class P:\n  x: int\n  n: P | None\n  l: list[P]\n  t: typing.List[P]\nfound = get_type_hints(P)",
    "a_quoted_class": f"{HINTS}class P:\n  x: 'int'\n  n: 'P | None'\nfound = get_type_hints(P)",
    "inside_of_aliases": f"{HINTS}class P:\n  a: list['P']\n  b: Optional['P']\n  c: dict[str, list['P']]\n"
    "  e: Callable[['P'], 'int']\n  f: tuple['P', ...]\n  g: list['P'] | None\n"
    "  h: Type['P']\n  i: Literal['P']\n  j: Union[int, list['P']]\nfound = get_type_hints(P)",
    "nothing_is_nothings_type": f"{HINTS}class P:\n  a: None\n  b: 'None'\ndef f(a: None) -> 'None': ...\nfound = get_type_hints(P), get_type_hints(f)",
    "a_function": f"{FUTURE}{HINTS}class P: ...\ndef f(a: int, b: P = 1, *c: list[P], **d: Optional[P]) -> P: ...\nfound = get_type_hints(f)",
    "a_method": f"{FUTURE}{HINTS}class P:\n  def f(self, a: P) -> int: ...\n  @classmethod\n  def c(cls, a: P): ...\n"
    "  @staticmethod\n  def s(a: P): ...\nfound = [get_type_hints(m) for m in (P.f, P().f, P.c, P.s, vars(P)['s'])]",
    "a_lambda_has_none": f"{HINTS}found = get_type_hints(lambda x: x)",
    "a_nested_function": f"{FUTURE}{HINTS}def outer():\n  class Q: ...\n  def f(a: Q): ...\n  return f\n{TRIED}\nfound = tried(outer()), tried(outer(), None, {{'Q': int}})",
    "wrapped": f"{FUTURE}{HINTS}import functools\nclass P: ...\ndef deco(g):\n  @functools.wraps(g)\n  def w(*a): ...\n  return w\n"
    "@deco\n@deco\ndef f(a: P): ...\n@functools.lru_cache\ndef g(a: P): ...\nfound = get_type_hints(f), get_type_hints(g)",
    "inherited": f"{FUTURE}{HINTS}class A:\n  x: int\n  y: A\nclass B(A):\n  y: B\n  z: str\nfound = get_type_hints(B)",
    "a_name_of_the_class": f"{HINTS}class P:\n  class Q: ...\n  x: 'Q'\n  y: 'Optional[Q]'\nfound = get_type_hints(P)",
    "a_name_of_the_module_comes_first": f"{HINTS}Q = int\nclass P:\n  Q = str\n  x: 'Q'\nfound = get_type_hints(P)",
    "given_names": f"{HINTS}Q = int\nclass P:\n  R = bytes\n  x: 'Q'\ndef f(x: 'Q'): ...\n"
    "found = [get_type_hints(o, *a) for o in (P, f) for a in ((dict(Q=str),), (None, dict(Q=str)), (dict(Q=float), dict(Q=str)), (dict(Q=str), {}))]",
    "given_names_after_those_of_the_class": f"{HINTS}class P:\n  R = bytes\n  x: 'R'\n{TRIED}\n"
    "found = [tried(P, dict(R=str)), tried(P, {}), tried(P, None, {}), tried(P, {}, {}), tried(P, localns=dict(R=str))]",
    "given_globals": f"{FUTURE}{HINTS}def f(x: Q): ...\nQ = int\nfound = get_type_hints(f, globals()), get_type_hints(f, globals(), locals()), get_type_hints(f, dict(globals()))",
    "an_unknown_name": f"{FUTURE}{HINTS}class P:\n  x: Missing\ndef f(x: list[Missing]): ...\n{TRIED}\nfound = tried(P), tried(f)",
    "a_name_that_comes_later": f"{FUTURE}{HINTS}def f(x: Later): ...\n{TRIED}\nfirst = tried(f)\nclass Later: ...\nfound = first, tried(f)",
    "an_attribute": f"{FUTURE}{HINTS}import datetime as dt\nclass O:\n  class I: ...\ndef f(a: dt.date, b: O.I): ...\nfound = get_type_hints(f)",
    "text_in_text": f"{HINTS}class P:\n  x: '\"P\"'\n  y: 'list[\"P\"]'\n  z: 'Optional[\"list[P]\"]'\nfound = get_type_hints(P)",
    "text_of_itself": f"{HINTS}X = 'X'\nY = list['Y']\ndef f(a: 'X', b: 'Y'): ...\nfound = get_type_hints(f)",
    "no_expression": f"{HINTS}def f(a: 'x y'): ...\n{TRIED}\nfound = tried(f)",
    "no_type": f"{HINTS}def f(a: '1, 2'): ...\ndef g(a: 'ClassVar[int]'): ...\ndef h(a: 'Final'): ...\n{TRIED}\nfound = tried(f), tried(g), tried(h)",
    "special_forms": f"{FUTURE}{HINTS}class P:\n  a: ClassVar[int] = 1\n  b: Final[P] = 1\n  c: Final = 1\n  d: Any\n  e: ClassVar = 2\n  f: Self\nfound = get_type_hints(P)",
    "annotated": f"{FUTURE}{HINTS}class P:\n  a: Annotated[P, 'doc']\n  b: list[Annotated[int, 1]]\n  c: Optional[Annotated[P, 2]]\n"
    "found = get_type_hints(P), get_type_hints(P, include_extras=True)",
    "added_afterwards": f"{HINTS}class P:\n  x: int\nP.__annotations__['y'] = 'list[P]'\ndef f(): ...\nf.__annotations__['a'] = 'P'\nfound = get_type_hints(P), get_type_hints(f)",
    "replaced_annotations": f"{HINTS}class P: ...\nP.__annotations__ = {{'y': 'P'}}\ndef f(): ...\nf.__annotations__ = {{'y': 'P'}}\nfound = get_type_hints(P), get_type_hints(f)",
    "a_dataclass": f"{FUTURE}{HINTS}from dataclasses import dataclass, field\n@dataclass\nclass P:\n  x: int\n  n: P | None = None\n  w: list[P] = field(default_factory=list)\n"
    "@dataclass(slots=True)\nclass S(P):\n  y: S = None\n  x: int = 1\nfound = get_type_hints(P), get_type_hints(S), get_type_hints(P.__init__)['n'], get_type_hints(S.__init__)['y'], get_type_hints(S().__init__)",
    "a_named_tuple": f"{FUTURE}{HINTS}class P(NamedTuple):\n  x: int\n  n: Optional[P] = None\nfound = get_type_hints(P)",
    "a_functional_named_tuple": f"{HINTS}P = NamedTuple('P', [('x', 'int'), ('n', 'Optional[P]')])\nfound = get_type_hints(P)",
    "a_typed_dict": f"{FUTURE}{HINTS}class D(TypedDict):\n  x: int\n  n: NotRequired[D]\nclass E(D, total=False):\n  y: Required[E]\n"
    "found = get_type_hints(D), get_type_hints(E), get_type_hints(E, include_extras=True)",
    "a_made_dataclass": f"{HINTS}from dataclasses import make_dataclass\nP = make_dataclass('P', [('x', 'int'), ('y', 'list[int]')], namespace={{'__module__': __name__}})\nfound = get_type_hints(P)",
    "a_made_class": f"{HINTS}P = type('P', (), {{'__annotations__': {{'x': 'P'}}, '__module__': __name__}})\nfound = get_type_hints(P)",
    "a_protocol_and_a_generic": f"{FUTURE}{HINTS}T = TypeVar('T')\nclass P(Protocol):\n  x: P\nclass G(Generic[T]):\n  x: T\n  y: G[int]\n  z: 'list[G[\"P\"]]'\nfound = get_type_hints(P), get_type_hints(G)",
    "an_enumeration": f"{FUTURE}{HINTS}import enum\nclass C(enum.Enum):\n  x: int\n  A = 1\nfound = get_type_hints(C)",
    "unpacked": f"{FUTURE}{HINTS}Ts = TypeVarTuple('Ts')\ndef f(*a: *Ts): ...\ndef g(*a: *tuple[int, str]): ...\nfound = get_type_hints(f), get_type_hints(g)",
    "no_type_check_at_all": f"{HINTS}@no_type_check\ndef f(a: 'x y'): ...\n@no_type_check\nclass P:\n  x: 'nothing here'\n  def m(self, a: '!'): ...\nfound = get_type_hints(f), get_type_hints(P), get_type_hints(P.m)",
    "an_expression": f"{HINTS}class P: ...\nkinds = {{'a': P}}\ndef f(a: 'kinds[\"a\"]', b: 'int if kinds else str', c: 'type(1)', d: '[k for k in (int, str)][1]'): ...\nfound = get_type_hints(f)",
    "dispatch_on_text": f"{FUTURE}import functools\nfrom typing import *\nclass P: ...\n@functools.singledispatch\ndef f(x): return 'any'\n@f.register\ndef _(x: int): return 'int'\n"
    "@f.register\ndef _(x: P): return 'P'\n@f.register\ndef _(x: list | tuple): return 'sequence'\nfound = f(1), f(P()), f([]), f('')",
    "a_method_that_dispatches_on_text": f"{FUTURE}import functools\nclass P:\n  @functools.singledispatchmethod\n  def f(self, x): return 'any'\n  @f.register\n  def _(self, x: int): return 'int'\n"
    "  @f.register\n  @classmethod\n  def _(cls, x: str): return 'str'\nfound = P().f(1), P().f(''), P().f([])",
    "dispatch_on_no_class": f"{FUTURE}import functools\n@functools.singledispatch\ndef f(x): ...\nfound = []\nfor text in ('list[int]', 'int | list[int]', '1', 'Missing'):\n  def g(x): ...\n"
    "  g.__annotations__['x'] = text\n  try: f.register(g)\n  except Exception as e: found.append((type(e).__name__, str(e)))",
    "a_class_run_apart": f"{HINTS}names = {{}}\nexec('class P:\\n  x: \"list[Q]\"\\ndef f(x: \"Q\"): ...', names)\nnames['Q'] = int\nfound = get_type_hints(names['f'])",
    "what_has_no_annotations": f"{HINTS}{TRIED}\nclass P: ...\nfound = tried(1), tried(P), tried(P())[0], tried(len), tried(int), tried(typing)",
}  # fmt: skip

PARAMETERS = {
    "a_class": f"{HINTS}class P[T]:\n  x: 'T'\n  y: 'list[P[T]]'\nfound = get_type_hints(P)",
    "a_class_that_has_a_name_like_it": f"{HINTS}T = int\nclass P[T]:\n  x: 'T'\nclass Q[T]:\n  T = str\n  x: 'T'\nfound = get_type_hints(P), get_type_hints(Q)",
    "a_function": f"{HINTS}T = int\ndef f[T, *Ts, **P](a: 'T', *b: 'Unpack[Ts]') -> 'Callable[P, T]': ...\nfound = get_type_hints(f)",
    "given_names": f"{HINTS}def f[T](a: 'T', b: 'U'): ...\nfound = get_type_hints(f, dict(U=int, T=str)), get_type_hints(f, None, dict(U=int))",
}  # fmt: skip
HAS_PARAMETERS = sys.version_info >= (3, 12, 4)
ALL = SAME | ({f"parameters_of_{name}": text for name, text in PARAMETERS.items()} if HAS_PARAMETERS else {})


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What CPython says of each, where they are files beside a program."""
    home = tmp_path_factory.mktemp("hints")
    for name, text in ALL.items():
        (home / f"{name}.py").write_text(text)
    program = f"for name in {list(ALL)!r}: print(__import__(name).found)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=home, capture_output=True, text=True, check=True
    )
    return dict(zip(ALL, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", ALL)
def test_hints_in_a_module_of_the_workspace_are_as_cpython_has_them(name: str, real: dict[str, str]) -> None:
    fs = connect_fs()
    fs.write(f"{name}.py", ALL[name].encode())
    result = Sandbox(Policy.default(), fs=fs).exec(f"import {name}\nprint({name}.found)")
    assert (result.error, result.stdout.rstrip("\n")) == (None, real[name])


@pytest.mark.parametrize("name", ALL)
def test_hints_in_a_program_are_as_cpython_has_them(name: str, real: dict[str, str]) -> None:
    result = Sandbox(Policy.default()).exec(f"{ALL[name]}\nprint(found)")
    assert (result.error, result.stdout.rstrip("\n")) == (None, real[name].replace(f"{name}.", "__main__."))


class Said:
    """A host class whose annotations are text, as those of all classes in this file."""

    x: Said
    y: subprocess.Popen  # type: ignore[type-arg]


class Unsaid:
    pass


def said(x: Said) -> subprocess.Popen:  # type: ignore[type-arg]
    raise AssertionError(x)


def policy() -> Policy:
    made = Policy.default()
    made.cls(Said)
    made.cls(Unsaid)
    made.fn(said)
    return made


ATTACKS = [
    "__import__('os')",
    "().__class__.__base__.__subclasses__()",
    "int.__subclasses__()",
    "open('/etc/passwd').read()",
    "exec('import os')",
    "eval('__import__(\"os\")')",
    "getattr(int, '__subclasses__')()",
    "getattr(vault, '_secret')",
    "vault._secret",
    "f'{vault._secret}'",
    "'{0._secret}'.format(vault)",
    "(lambda: 0).__globals__",
    "(lambda: 0).__code__",
    "(lambda: 0).__builtins__",
    "(i for i in ()).gi_frame.f_back",
    "globals()['__builtins__']",
    "vars()['check!']",
    "guards",
    "scope",
    "self",
    "compiled",
    "sys",
    "check",
    "__builtins__",
    "__loader__",
    "(x := vault)._secret",
    "[c.__subclasses__() for c in ().__class__.__mro__]",
]
TELLERS = {
    "a function": "def f(x): ...\nf.__annotations__['x'] = TEXT\nhints = get_type_hints(f)",
    "a class": "class P: ...\nP.__annotations__ = {'x': TEXT}\nhints = get_type_hints(P)",
    "inside": "class P: ...\nP.__annotations__ = {'x': list[TEXT]}\nhints = get_type_hints(P)",
    "a reference": "class P: ...\nP.__annotations__ = {'x': Optional[TEXT]}\nhints = get_type_hints(P)",
    "text in text": "class P: ...\nP.__annotations__ = {'x': repr(TEXT)}\nhints = get_type_hints(P)",
    "names that are given": "class P: ...\nP.__annotations__ = {'x': TEXT}\nhints = get_type_hints(P, {'vault': vault}, {'check!': lambda o, n: o})",
    "a str of its own": "class S(str):\n  def __str__(self): return 'int'\n  def startswith(self, x): return True\n  def __hash__(self): return hash('int')\n"
    "  def __eq__(self, o): return True\ndef f(x): ...\nf.__annotations__['x'] = S(TEXT)\nhints = get_type_hints(f)",
    "a parameter that is a helper": "def f(x): ...\nf.__annotations__['x'] = TEXT\nf.__type_params__ = (TypeVar('check!'), TypeVar('own!'))\nhints = get_type_hints(f)",
    "dispatch": "import functools\n@functools.singledispatch\ndef f(x): ...\ndef g(x): ...\ng.__annotations__['x'] = TEXT\nf.register(g)\nhints = list(f.registry)[1:]",
}  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
@pytest.mark.parametrize("teller", TELLERS.values(), ids=TELLERS)
def test_text_in_an_annotation_comes_by_nothing(teller: str, text: str) -> None:
    done = attack.Attack(f"from typing import *\nTEXT = {text!r}\n{teller}\nleak = hints")
    assert done.findings == []
    assert done.result is not None
    assert done.result.error is not None
    assert done.result.namespace.get("leak") is None


@pytest.mark.parametrize(
    "source", ["class O(Said): ...", "class O(Said):\n  z: 'int'", "O = Said", "O = said"]
)
@pytest.mark.parametrize("names", ["", ", globals()", ", {}, {}", ", dict(Said=int, subprocess=vars())"])
def test_text_of_the_host_is_not_evaluated(source: str, names: str) -> None:
    result = Sandbox(policy()).exec(f"from typing import *\n{source}\nfound = get_type_hints(O{names})")
    assert isinstance(result.error, SandboxTypeError)
    assert "does not evaluate text of the host" in str(result.error)


def test_a_class_over_a_host_class_has_the_hints_that_it_says_itself() -> None:
    source = "from typing import *\nclass O(Unsaid):\n  class I: ...\n  x: 'list[O]'\n  y: 'I'\nfound = str(get_type_hints(O))"
    result = Sandbox(policy()).exec(source)
    assert result.error is None
    assert result.namespace["found"] == "{'x': list[__main__.O], 'y': <class '__main__.O.I'>}"


@pytest.mark.parametrize(
    "source",
    [
        "import logging\ndef O(x): ...\nO.__wrapped__ = logging.getLogger",
        "import logging\nO = logging.getLogger",
        "import logging\nO = logging.Handler",
        "import weakref\nO = weakref.WeakSet.add",
        "import xml.etree.ElementTree as e\nO = e.fromstring",
    ],
)
def test_text_is_not_looked_up_in_a_module_that_is_run_for_the_guest(source: str) -> None:
    text = "O.__annotations__ = {'x': 'list(globals())'}"
    result = Sandbox(Policy.default()).exec(
        f"from typing import *\n{source}\n{text}\nleak = get_type_hints(O)"
    )
    assert isinstance(result.error, SandboxError)
    assert "leak" not in result.namespace


MADE = "class P:\n  x: 'P'\ndef f(x: 'P'): ...\nclass G:\n  def m(self, x: 'P'): ..."


@pytest.mark.parametrize("name", ["P", "f", "m"])
def test_text_of_another_session_is_the_hosts(name: str) -> None:
    other = Sandbox(Policy.default()).session()
    assert other.run(MADE + "\nm = G().m").error is None
    given: Any = other.namespace[name]
    session = Sandbox(Policy.default()).session({"given": given})
    result = session.run("from typing import *\nP = 1\nfound = get_type_hints(given, globals())")
    assert isinstance(result.error, SandboxTypeError)


ENDLESS = {
    "a loop": "def f(x: '[0 for _ in iter(int, 1)]'): ...\nget_type_hints(f)",
    "a function": "def g():\n  while True: pass\ndef f(x: 'g()'): ...\nget_type_hints(f)",
    "texts without end": "def g(n=[0]):\n  n[0] += 1\n  return f'g() or {n[0]}'\ndef f(x: 'g()'): ...\nwhile True:\n  try: get_type_hints(f)\n  except RecursionError: pass",
    "hints of hints": "class P:\n  x: 'get_type_hints(P)'\nwhile True:\n  try: get_type_hints(P)\n  except RecursionError: pass",
    "wrapped in a circle": "def f(x: 'int'): ...\nf.__wrapped__ = f\nassert get_type_hints(f) == {'x': int}\nwhile True: pass",
    "wrapped in ever more": "class W:\n  __annotations__ = {'x': 'Missing'}\nW.__wrapped__ = property(lambda self: W())\nwhile True:\n  try: get_type_hints(W())\n  except NameError: pass",
}  # fmt: skip


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_text_is_within_the_limits(source: str) -> None:
    result = Sandbox(Policy.default(), limits=Limits(seconds=0.3)).exec(f"from typing import *\n{source}")
    assert "the code ran longer than" in str(result.error)


def test_text_without_end_goes_as_deep_as_calls_do() -> None:
    source = "from typing import *\nclass P:\n  x: 'get_type_hints(P)'\nget_type_hints(P)"
    assert isinstance(Sandbox(Policy.default()).exec(source).error, RecursionError)


@pytest.mark.parametrize(
    "source",
    [
        "D = type('D', (), {'__module__': 'subprocess', '__annotations__': {'x': 'Popen'}})",
        "class D:\n  x: 'Popen'\nD.__module__ = 'subprocess'",
        "D = TypedDict('D', {'x': 'Popen'})\nD.__module__ = 'subprocess'",
        "class D(TypedDict):\n  x: 'Popen'\nD.__module__ = 'subprocess'",
        "class D(NamedTuple):\n  x: 'Popen'\nD.__module__ = 'subprocess'",
        "def D(x: 'Popen'): ...\nD.__module__ = 'subprocess'",
    ],
)
def test_a_module_that_the_host_has_is_not_the_one_of_a_guests_text(source: str) -> None:
    result = Sandbox(Policy.default()).exec(f"from typing import *\n{source}\nget_type_hints(D)")
    assert (type(result.error), str(result.error)) == (NameError, "name 'Popen' is not defined")


def test_text_of_an_imported_module_is_looked_up_there() -> None:
    fs = connect_fs()
    fs.write(
        "a.py",
        f"{FUTURE}from typing import *\nclass P:\n  x: Q\nclass Q: ...\nclass D(TypedDict):\n  x: Q\n".encode(),
    )
    fs.write(
        "b.py",
        f"{FUTURE}import a\nclass R(a.P):\n  y: R\nclass E(a.D):\n  y: R\ndef f(x: R): ...\nz: R\n".encode(),
    )
    source = (
        "from typing import get_type_hints\nimport a, b\nQ = R = int\nS = type('S', (b.R,), {})\n"
        "found = [str(get_type_hints(o)) for o in (a.P, b.R, b.E, b.f, b, S)]"
    )
    result = Sandbox(Policy.default(), fs=fs).exec(source)
    assert result.error is None
    q, r = "'x': <class 'workspace.a.Q'>", "'y': <class 'workspace.b.R'>"
    assert result.namespace["found"] == [
        f"{{{q}}}", f"{{{q}, {r}}}", f"{{{q}, {r}}}", "{'x': <class 'workspace.b.R'>}",
        "{'z': <class 'workspace.b.R'>}", f"{{{q}, {r}}}",
    ]  # fmt: skip


def test_text_of_kept_code_is_looked_up_among_its_names_and_those_of_the_program() -> None:
    session = Sandbox(Policy.default()).session()
    names: dict[str, Any] = {"R": int}
    assert (
        session.define("class P:\n  x: 'P | Q'\n  y: 'R'\ndef f(x: 'Q'): ...", "<kept 1>", names).error
        is None
    )
    session.globals.update(P=names["P"], f=names["f"])
    source = (
        "from typing import *\nclass Q: ...\nR = str\nfound = str(get_type_hints(P)), str(get_type_hints(f))"
    )
    assert session.run(source).namespace["found"] == (
        "{'x': __main__.P | __main__.Q, 'y': <class 'int'>}",
        "{'x': <class '__main__.Q'>}",
    )


def test_a_callable_with_text_is_written_with_its_parameters() -> None:
    source = "from typing import *\nimport collections.abc as c\nclass P: x: c.Callable[['P'], 'int']\nfound = get_type_hints(P)['x'] == c.Callable[[P], int]"
    assert Sandbox(Policy.default()).exec(source).namespace["found"] is True


def test_a_function_in_text_finds_what_its_module_defines_later() -> None:
    source = f"{FUTURE}from typing import *\ndef f(x: Annotated[int, lambda: later]): ...\nh = get_type_hints(f, include_extras=True)\nlater = 3\nfound = h['x'].__metadata__[0]()"
    assert Sandbox(Policy.default()).exec(source).namespace["found"] == 3


def test_an_alias_without_annotated_is_called_with_care() -> None:
    source = (
        "from typing import *\nclass G:\n  __class_getitem__ = classmethod(type(list[int]))\n  def __new__(cls): return held\n"
        "class P: x: 'G[Annotated[int, 1]]'\nget_type_hints(P)['x']()"
    )
    held = Unsaid()
    result = Sandbox(policy()).session({"held": held}).run(source)
    assert (result.error, vars(held)) == (None, {})


def test_a_reference_that_typing_shares_among_sessions_keeps_no_value() -> None:
    shared: Any = typing.Optional
    mine = shared["Shared"]  # the cache of typing gives guest code this very one
    source = "from typing import *\nclass Shared: ...\nclass P: x: Optional['Shared']\nfound = get_type_hints(P) == {'x': Optional[Shared]}"
    result = Sandbox(Policy.default()).exec(source)
    assert result.namespace["found"] is True
    assert not getattr(typing.get_args(mine)[0], "__forward_evaluated__", False)
