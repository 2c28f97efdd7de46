"""Attacks where host and guest meet: calls back, exceptions, the end of a run; what is come by is in ``leak``.

Stopped by: sandbox.session, sandbox.classes.hook_guards, sandbox.classes.host_calls, sandbox.runtime.limits.
"""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import typing
import weakref
from typing import Any

import pydantic
import pytest
from fuzz import attack

from agex.errors import SandboxError
from agex.sandbox import Limits, Policy, Sandbox


def cases(attacks: dict[str, str], still_open: frozenset[str]) -> list[Any]:
    """Give the attacks as parameters; those that work today are marked, and the mark fails when they do not."""
    hole = pytest.mark.xfail(strict=True, reason="a read-only view tells what it views; see docs/security.md")
    return [pytest.param(s, id=n, marks=hole if n in still_open else ()) for n, s in attacks.items()]


ENDLESS = "while True: pass"

ATTACKS = {
    # the host calls the guest
    "callback that reads by name": "leak = host_apply(getattr, vault, '_secret')",
    "callback that formats": "leak = host_apply('{0._secret}'.format, vault)",
    "callback that formats by the type": "leak = host_apply(str.format, '{0._secret}', vault)",
    "callback that maps": "leak = host_apply(str.format_map, '{v._secret}', {'v': vault})",
    "callback that imports": "def f():\n  import os\n  return os\nleak = host_apply(f)",
    "callback that is a generator": "def f():\n  yield vault\nleak = getattr(host_apply(f), 'gi_' + 'frame')",
    "callback that raises the host's error": "def f(): raise lookup\ntry: host_lookup('nope')\nexcept AttributeError as e: lookup = e\n"
    "try: host_apply(f)\nexcept AttributeError as e: leak = e.obj",
    "callback in a callback": "leak = host_apply(host_apply, host_apply, getattr, vault, '_secret')",
    "callback made a class": "class X(metaclass=host_apply): pass\nleak = X",
    "callback by sorting": "leak = host_sort([vault, vault], key=lambda v: v._secret)",
    "callback that vars": "leak = host_apply(vars, vault)",
    "callback that dirs": "leak = [n for n in host_apply(dir, vault) if n == '_secret'] or None",
    "callback that sets": "host_apply(setattr, vault, 'describe', 1)",
    "callback that deletes": "host_apply(delattr, vault, '_secret')",
    "callback that makes a type": "box = []\nhost_apply(type, 'S', (Vault,), {'__setattr__': lambda *a: box.append(a)})()",
    "generator of the host": "g = host_generator()\nnext(g)\nleak = getattr(g, 'gi_' + 'frame')",
    "generator of the host thrown into": "g = host_generator()\nnext(g)\ntry: g.throw(ValueError('x'))\nexcept ValueError as e: leak = e.__context__",
    "generator of the host, its frame by a pattern": "g = host_generator()\nmatch g:\n  case object(gi_running=False): leak = g.gi_code",
    "coroutine of the host by a pattern": "c = host_coroutine()\nc.close()\nmatch c:\n  case object(cr_running=r): leak = getattr(c, 'cr_code')",
    # exceptions
    "traceback in exit": "class C:\n  def __enter__(self): return self\n  def __exit__(self, t, e, tb): self.l = tb.tb_frame; return True\nwith C() as c: host_fail()\nleak = c.l",
    "traceback in exit by getattr": "class C:\n  def __enter__(self): return self\n  def __exit__(self, t, e, tb): box.append(getattr(tb, 'tb_' + 'frame')); return True\nbox = []\nwith C(): host_fail()\nleak = box[0]",
    "traceback in exit by a format": "class C:\n  def __enter__(self): return self\n  def __exit__(self, t, e, tb): box.append('{0.tb_frame.f_locals}'.format(tb)); return True\nbox = []\nwith C(): host_fail()\nleak = box[0]",
    "traceback in exit by attrgetter": "import operator\nclass C:\n  def __enter__(self): return self\n  def __exit__(self, t, e, tb): box.append(operator.attrgetter('tb_frame')(tb)); return True\n"
    "box = []\nwith C(): host_fail()\nleak = box[0]",
    "traceback in exit by a pattern": "class C:\n  def __enter__(self): return self\n  def __exit__(self, t, e, tb):\n    match tb:\n      case object(tb_frame=f): box.append(f)\n    return True\nbox = []\nwith C(): host_fail()\nleak = box[0]",
    "traceback in exit by match_args": "class M(type):\n  def __instancecheck__(c, o): return True\nclass P(metaclass=M): __match_args__ = ('tb_' + 'frame',)\n"
    "class C:\n  def __enter__(self): return self\n  def __exit__(self, t, e, tb):\n    match tb:\n      case P(f): box.append(f)\n    return True\nbox = []\nwith C(): host_fail()\nleak = box[0]",
    "traceback moved to another error": "class C:\n  def __enter__(self): return self\n  def __exit__(self, t, e, tb): box.append(ValueError().with_traceback(tb)); return True\nbox = []\nwith C(): host_fail()\nleak = box[0].__traceback__",
    "split with a callable": "box = []\ntry: raise ExceptionGroup('g', [ValueError(1)])\nexcept ExceptionGroup as g: g.split(lambda e: box.append(e) or True)\nleak = box[0].__traceback__",
    "derive gives a host object": "class G(ExceptionGroup):\n  def derive(self, es): return vault\nleak = G('g', [ValueError(1), TypeError(2)]).split(ValueError)",
    "except star over the host's error": "try:\n  try: host_lookup('nope')\n  except AttributeError as e: raise ExceptionGroup('g', [e])\nexcept* AttributeError as g: leak = g.exceptions[0].obj",
    "object of a failed lookup by a pattern": "try: host_lookup('nope')\nexcept AttributeError as e:\n  match e:\n    case AttributeError(obj=o): leak = o",
    "object of a failed lookup by match_args": "class M(type):\n  def __instancecheck__(c, o): return True\nclass P(metaclass=M): __match_args__ = ('obj',)\n"
    "try: host_lookup('nope')\nexcept AttributeError as e:\n  match e:\n    case P(o): leak = o",
    "object of a failed lookup in its group": "try: host_lookup('nope')\nexcept AttributeError as e: leak = '{0.exceptions[0].obj}'.format(ExceptionGroup('g', [e]))",
    "notes of the host's error": "try: host_fail()\nexcept ValueError as e:\n  e.add_note('x')\n  leak = e.__notes__ is vars(e)",
    "context of a failing handler": "try:\n  try: host_fail()\n  finally: 1 / 0\nexcept ZeroDivisionError as e: leak = e.__context__.__traceback__",
    "cause set to the host": "try: raise ValueError from vault\nexcept TypeError: pass",
    "syntax error of eval": "try: eval('1 +')\nexcept SyntaxError as e: leak = e.__traceback__",
    "name error's suggestions": "class E(NameError): pass\ne = E('x', name='_secret')\nleak = e.__self__",
    # the end of a run
    "system exit": "raise SystemExit(3)",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "generator exit": "raise GeneratorExit",
    "a base exception of its own": "class E(BaseException): pass\nraise E",
    "a group of endings": "raise BaseExceptionGroup('g', [SystemExit(3), KeyboardInterrupt()])",
    "ending in a str": "class E(Exception):\n  def __str__(self): raise SystemExit(3)\nraise E",
    "ending in a repr": "class E(Exception):\n  def __repr__(self): raise SystemExit(3)\nraise E(1)",
    "ending in args": "class A:\n  def __str__(self): raise SystemExit(3)\n  __repr__ = __str__\nraise ValueError(A())",
    "ending in notes": "class A:\n  def __iter__(self): raise SystemExit(3)\ne = ValueError()\ne.__notes__ = A()\nraise e",
    "ending in a note": "class S(str):\n  def split(self, *a): raise SystemExit(3)\ne = ValueError()\ne.__notes__ = [S('x')]\nraise e",
    "ending in the last value": "class A:\n  def __repr__(self): raise SystemExit(3)\nA()",
    "ending in the last value's elements": "class A:\n  def __repr__(self): raise SystemExit(3)\n[A()] * 5000",
    "ending in a bool": "class A:\n  def __bool__(self): raise SystemExit(3)\n  def __eq__(self, o): raise SystemExit(4)\nA()",
    "ending in a finalizer": "def g():\n  try: yield\n  finally: raise SystemExit(3)\nk = g()\nnext(k)\nk = None",
    "an error without its init": "raise UnicodeDecodeError.__new__(UnicodeDecodeError)",
    "a syntax error that lies": "class S(str):\n  def rstrip(self, *a): raise SystemExit(3)\n  strip = expandtabs = rstrip\nraise SyntaxError('x', ('f', 1, 1, S('text')))",
    "a syntax error with objects": "raise SyntaxError('x', (vault, vault, vault, vault))",
    "an import error with objects": "raise ImportError('x', name=vault, path=vault)",
    "a name error with liars": "class S(str):\n  def __len__(self): raise SystemExit(3)\nraise NameError('x', name=S('vaul'))",
    "an attribute error with liars": "class A:\n  def __dir__(self): raise SystemExit(3)\nA().nope",
    "dir that gives liars": "class S(str):\n  def __len__(self): raise SystemExit(3)\nclass A:\n  def __dir__(self): return [S('nopf')]\nA().nope",
    "a chain without end": "a, b = ValueError(1), ValueError(2)\na.__cause__, b.__cause__ = b, a\nraise a",
    "a group nested deeply": "e = ValueError(1)\nfor _ in range(500): e = ExceptionGroup('g', [e])\nraise e",
    "recursion in a guard": "class A:\n  def __getattr__(self, n): return getattr(self, n + 'x')\nA().y",
    "recursion in a check of a class": "class M(type):\n  def __instancecheck__(c, o): return isinstance(o, P)\nclass P(metaclass=M): __match_args__ = ('label',)\nmatch vault:\n  case P(x): leak = x",
    "recursion while a class is made": "def f():\n  class A(Vault): pass\n  f()\ntry: f()\nexcept RecursionError: pass\nleak = None\nclass B(Vault):\n  def f(self): return self._secret\nleak = B().f()",
    "recursion at every depth": "import sys\ndef f(n):\n  try: return f(n + 1)\n  except RecursionError: return getattr(vault, '_secret')\nleak = f(0)",
    "memory error in a guard": "class A:\n  def __getattr__(self, n): raise MemoryError\ntry: '{0.x}'.format(A())\nexcept MemoryError: pass\nleak = vault._secret",
    "an error in the import of a member": "from json import nope as leak",
    "print to an object of its own": "box = []\nclass F:\n  def write(self, t): box.append(t)\nprint(vault, file=F())\nleak = [t for t in box if 'S3CRET' in t] or None",
    "print to the host": "print('x', file=vault)",
    "print flushes the host": "class F:\n  def write(self, t): pass\n  def flush(self): raise SystemExit(3)\nprint('x', file=F(), flush=True)",
    "stdout's own write": "class S(str):\n  def __len__(self): raise SystemExit(3)\nprint(S('x'), end=S('y'), sep=S('z'))",
    "writes on what the host gave": "vault.label = vault.other = 1\nvault.describe = vault.version = 1",
    "writes through a pattern": "match 1:\n  case Vault.limit: pass\nVault.limit: int = 5",
    "writes by for": "for vault.describe in [1]: pass",
    "writes by with": "import contextlib\nwith contextlib.nullcontext(1) as Vault.limit: pass",
    "writes by a walrus of a name": "(Vault := 1)\nimport math\nmath.pi: int = 3",
    "writes by import": "import math as vault\nfrom math import pi as Vault\nVault.x = 1",
    "writes by augmented names": "Vault.limit += 1",
    "writes by unpacking": "(Vault.limit, *Vault.rest) = 1, 2, 3",
    "eval of helpers": "leak = eval('v._secret', {'v': vault, 'check!': lambda o, n: o, 'own!': {Vault}})",
    "exec over its namespace": "d = {'__builtins__': {'check!': lambda o, n: o}, 'v': vault}\nexec('leak = v._secret', d)\nleak = d.get('leak')",
    "eval of a str subclass": "class S(str):\n  def strip(self, *a): return 'vault._secret'\nleak = eval(S('None'))",
    "exec of bytes": "exec(b'leak = vault._secret')",
    "eval of a walrus": "class Own: _secret = 1\no = Own()\nleak = eval('[(o := vault), o._secret]')",
    "nested eval": "leak = eval('eval(\"eval(\\'vault._secret\\')\")')",
    "locals written": "def f():\n  locals()['v'] = vault\n  return v._secret\nleak = f()",
    "callback that is globals": "leak = host_apply(globals)",
    "callback that is locals": "leak = host_apply(locals)",
    "callback that is eval": "leak = host_apply(eval, 'exec')",
    "callback that is eval, by sorting": "box = []\nhost_sort(['it', 'it'], key=lambda s: box.append(host_apply(eval, 'token')) or 1)\nleak = box",
    "ending in with_traceback": "class E(Exception):\n  def with_traceback(self, tb): raise SystemExit(3)\nraise E",
    "ending in the text of a memory error": "class E(MemoryError):\n  def __str__(self): raise SystemExit(3)\nraise E",
    "ending in the name of a class": "class M(type):\n  @property\n  def __name__(cls): raise SystemExit(3)\nclass E(BaseException, metaclass=M): pass\nraise E",
    "ending in a lookup on the error": "class E(Exception):\n  def __getattribute__(self, n): raise SystemExit(3)\nraise E",
    "a cancellation": "import asyncio\nraise asyncio.CancelledError",
    "ending in a hook of a class of another module": "class E(Exception):\n  __module__ = 'm'\n  def __str__(self): raise SystemExit(3)\n  __repr__ = __str__\nraise E",
    "a read-only mapping of the host": "class E:\n  def __ror__(self, o): o['x_of_a_guest'] = 1; return o\nconfig | E()\nleak = config.get('x_of_a_guest')",
    "a read-only mapping compared": "class E:\n  def __eq__(self, o): o['x_of_a_guest'] = 1; return o\nconfig == E()\nleak = config.get('x_of_a_guest')",
    "a read-only buffer of the host": "view.obj[0] = 1\nleak = view[0]",
}  # fmt: skip

OPEN = frozenset(
    {
        "a read-only mapping compared",
        "a read-only mapping of the host",
    }
)
"""Those that are open today: a mark goes with its hole."""


@pytest.mark.parametrize("source", cases(ATTACKS, OPEN))
def test_where_host_and_guest_meet_there_is_no_way_to_the_host(source: str) -> None:
    done = attack.Attack(source)

    assert done.findings == []
    assert done.result.namespace.get("leak") is None


class Ended(BaseException):
    """Ends a run, as the end of a task does."""


def _session(**names: Any) -> Any:
    session = Sandbox(Policy.default(), limits=Limits(seconds=2)).session(names)
    session.bind("end", lambda: session.stop(Ended()))
    session.bind("nested", session.run)
    session.bind("call", session.call)
    return session


SWALLOWED = {
    "a handler in a callback of a sort": "def key(x):\n  try: end()\n  except BaseException: return 1\nsorted([1, 2], key=key)\nafter = 1",
    "a finally in a comprehension's function": "def f():\n  try: end()\n  finally: return 1\n[f() for _ in range(3)]\nafter = 1",
    "an exit stack": "import contextlib\nwith contextlib.ExitStack() as s:\n  s.push(lambda *a: True)\n  end()\nafter = 1",
    "a context manager of a generator": "import contextlib\n@contextlib.contextmanager\ndef m():\n  try: yield\n  except BaseException: pass\nwith m(): end()\nafter = 1",
    "a decorator of contextlib": "import contextlib\nclass D(contextlib.ContextDecorator):\n  def __enter__(self): pass\n  def __exit__(self, *e): return True\n@D()\ndef f(): end()\nf()\nafter = 1",
    "except star": "try: end()\nexcept* Exception: pass\nafter = 1",
    "a generator that is closed": "def g():\n  try: yield\n  except BaseException: end()\nk = g()\nnext(k)\nk.close()\nafter = 1",
    "hasattr": "class A:\n  def __getattr__(self, n): end()\nhasattr(A(), 'x')\nafter = 1",
    "getattr with a default": "class A:\n  @property\n  def x(self): end()\ngetattr(A(), 'x', 1)\nafter = 1",
    "a set that hashes": "class A:\n  def __hash__(self): end()\ntry: {A()}\nexcept: pass\nafter = 1",
    "next with a default": "def g():\n  end()\n  yield\nnext(g(), 1)\nafter = 1",
    "a coroutine": "async def f():\n  try: end()\n  except BaseException: pass\ntry: f().send(None)\nexcept BaseException: pass\nafter = 1",
    "an asynchronous generator": "async def g():\n  try: end()\n  except BaseException: pass\n  yield\ntry: g().asend(None).send(None)\nexcept BaseException: pass\nafter = 1",
    "a nested run": "nested('try: end()\\nexcept BaseException: pass')\nend()\nafter = 1",
    "a nested call": "def f():\n  try: end()\n  except BaseException: pass\ntry: call(f)\nexcept BaseException: pass\nend()\nafter = 1",
}  # fmt: skip


@pytest.mark.parametrize("source", SWALLOWED.values(), ids=SWALLOWED)
def test_no_construct_goes_on_after_the_end_of_a_run(source: str) -> None:
    """Stopped by: sandbox.runtime.kill_switch, sandbox.language.transformer."""
    result = _session().run(source)

    assert type(result.stopped) is Ended
    assert "after" not in result.namespace


def test_a_session_is_whole_after_each_way_to_end_it() -> None:
    """Stopped by: sandbox.session."""
    session = _session()
    for source in (
        "end()",
        "raise SystemExit",
        "def f(): f()\nf()",
        "nested('end()')",
        "call(end)",
        "class A:\n  def __repr__(self): end()\nA()",
    ):
        session.run(source)
        assert session.run("1 + 1").value == 2


LEFT_BEHIND = "def f(o): return o._secret\ndef g(o): return getattr(o, '_canary')\ndef h(o): import os"


@pytest.mark.parametrize("name", ["f", "g", "h"])
def test_a_function_called_later_by_the_host_still_runs_behind_the_guards(name: str) -> None:
    function = Sandbox().exec(LEFT_BEHIND).namespace[name]

    with pytest.raises(SandboxError):
        function(attack.host.Vault())


LATER = {
    "a callable object": "class C:\n  def __call__(self, *a): raise SystemExit(3)\nclass A: __repr__ = C()\na = A()",
    "a static method": "def f(*a): raise SystemExit(3)\nclass A: __repr__ = staticmethod(f)\na = A()",
    "a property": "class A:\n  @property\n  def __repr__(self): raise SystemExit(3)\na = A()",
    "a wrapped function": "import functools\ndef f(*a): raise SystemExit(3)\nclass A: __repr__ = functools.lru_cache(f)\na = A()",
}


@pytest.mark.parametrize("source", LATER.values(), ids=LATER)
def test_a_hook_that_is_no_plain_function_raises_nothing_that_would_end_the_host(source: str) -> None:
    given = Sandbox().exec(source).namespace["a"]

    with pytest.raises(SandboxError):
        repr(given)


LOOP = """
import asyncio
async def f(): pass
task = asyncio.create_task(f())
try: leak = task.{name}()
except AttributeError: leak = None
await task
"""


@pytest.mark.parametrize("name", ["get_loop", "get_stack"])
async def test_a_task_does_not_hand_out_the_event_loop_or_its_frames(name: str) -> None:
    """Stopped by: sandbox.stdlib.asyncio_tasks."""
    result = await Sandbox().aexec(LOOP.format(name=name))

    assert not result.namespace.get("leak")


KEPT = {
    "a class": "class A: pass",
    "a class with operators": "class A:\n    def __repr__(self): return super().__repr__()\na = A()",
    "a class over the host's": "class S(Vault): pass\nS()",
    "an enum": "import enum\nclass E(enum.Enum): A = 1",
    "a dataclass": "import dataclasses\n@dataclasses.dataclass\nclass D: a: int",
    "an abstract class": "import abc\nclass A(abc.ABC): pass\nisinstance(1, A)",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_a_session_that_is_dropped_leaves_nothing_behind(source: str) -> None:
    """Stopped by: sandbox.session."""
    session = Sandbox(attack.host.policy()).session()
    session.run(source)
    left = weakref.ref(session)

    del session
    gc.collect()

    assert left() is None


@functools.singledispatch
def shown(value: object) -> str:
    return "the host's"


class Showing:
    @functools.singledispatchmethod
    def show(self, value: object) -> str:
        return "the host's"


@pytest.mark.parametrize(
    "source",
    [
        "shown.register(str, lambda x: 1)",
        "getattr(shown, 'register')(str)(lambda x: 1)",
        "Showing.show.register(str, lambda self, x: 1)",
        "Showing().show.register(str, lambda self, x: 1)",
    ],
)
def test_a_dispatcher_of_the_host_takes_no_function_of_a_guest(source: str) -> None:
    """Stopped by: sandbox.stdlib.functools."""
    policy = Policy.default()
    policy.fn(shown)
    policy.cls(Showing)

    assert isinstance(Sandbox(policy).exec(source).error, SandboxError)
    assert shown("x") == Showing().show("x") == "the host's"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "view", ["shown.registry", "getattr(shown, 'registry')", "operator.attrgetter('registry')(shown)"]
)
def test_the_registry_of_a_dispatcher_of_the_host_is_not_written_to(view: str, strict: bool) -> None:
    """Stopped by: sandbox.stdlib.functools."""
    policy = Policy.default(strict=strict)
    policy.fn(shown)
    source = f"""
import operator
class Taking:
    def __eq__(self, table): self.table = table
taking = Taking()
view = {view}
view == taking
taking.table[str] = lambda value: "the guest's"
found = view[object](""), shown("")
"""

    assert Sandbox(policy).exec(source).namespace["found"] == ("the host's", "the host's")
    assert shown("x") == "the host's"


def test_a_dispatcher_of_its_own_takes_functions() -> None:
    """Stopped by: sandbox.stdlib.functools."""
    source = """
import functools
@functools.singledispatch
def f(x): return "any"
f.register(str, lambda x: "str")
class A:
    @functools.singledispatchmethod
    def g(self, x): return "any"
A.g.register(str, lambda self, x: "str")
found = f(""), f(1), A().g(""), A().g(1)
"""

    assert Sandbox().exec(source).namespace["found"] == ("str", "any", "str", "any")


class Model(pydantic.BaseModel):
    """Its metaclass evaluates annotations that are text."""


class Early(pydantic.BaseModel):
    later: Later | None = None


class Later(pydantic.BaseModel):
    a: int = 1


Item = typing.TypeVar("Item")


class Page(pydantic.BaseModel, typing.Generic[Item]):
    item: Item


class Hinted:
    def __init_subclass__(cls) -> None:
        cls.hints = typing.get_type_hints(cls)  # type: ignore[attr-defined]


def signature_of(function: Any) -> Any:
    return inspect.signature(function, eval_str=True)


def validated(type_: Any, value: Any) -> Any:
    return pydantic.TypeAdapter(type_).validate_python(value)


def made_here() -> Any:
    class Made(pydantic.BaseModel):
        later: Later | None = None
        count: typing.Annotated[int, pydantic.Field(gt=0)] = 1

    return Made()


def _asked() -> Policy:
    policy = Policy.default()
    for class_ in (Model, Early, Page, Hinted):
        policy.cls(class_)
    for function in (typing.get_type_hints, signature_of, validated, pydantic.validate_call, made_here):
        policy.fn(function)
    return policy


CALLED = "__import__('os').getpid()"
WALKED = "().__class__.__base__.__subclasses__()"

EVALUATED = {
    "of a class over a model": f'class S(Model):\n  x: "{CALLED}" = 1',
    "of a class over a model, all being text": f"from __future__ import annotations\nclass S(Model):\n  x: {CALLED} = 1",
    "of a class over a model, inside": f'import typing\nclass S(Model):\n  x: typing.Optional["{CALLED}"] = 1',
    "of a class over a model, in an alias": f'class S(Model):\n  x: list["{CALLED}"] = []',
    "of a class over a model, made by hand": f'type(Model)("S", (Model,), {{"__annotations__": {{"x": "{CALLED}"}}, "x": 1}})',
    "of a class over a model, in a function": 'def f():\n  found = get_type_hints\n  class S(Model):\n    x: "found"\nf()',
    "of a dataclass in a class over a model": f'import dataclasses\n@dataclasses.dataclass\nclass D:\n  x: "{CALLED}"\nclass S(Model):\n  d: D | None = None',
    "of the parameter of a model": f'Page["{CALLED}"]',
    "of a parameter inside": f'import typing\nPage[typing.List["{CALLED}"]](item=[])',
    "of a class that is told of its classes": f'class S(Hinted):\n  x: "{CALLED}"',
    "of a class that is told of its classes, a module": 'class S(Hinted):\n  x: "gc"',
    "of a function": f'def f(x: "{WALKED}"): pass\nget_type_hints(f)',
    "of a function, what guards keep": 'def f(x: "Page.__init__.__globals__"): pass\nget_type_hints(f)',
    "of a function, what doors keep": 'def f(x: "int.mro"): pass\nget_type_hints(f)',
    "of a class": f'class A:\n  x: "{WALKED}"\nget_type_hints(A)',
    "of a class, a module": 'class A:\n  x: "gc"\nget_type_hints(A)',
    "of a class, by the text of a method": 'class A:\n  x: "gc"\n  def f(self, y: "gc"): pass\nget_type_hints(A)',
    "of a dataclass, whose methods say it": 'import dataclasses\n@dataclasses.dataclass\nclass A:\n  x: "gc"\nget_type_hints(A)',
    "of a signature": f'def f(x: "{WALKED}"): pass\nsignature_of(f)',
    "of what is to be validated": f'validated("{CALLED}", 1)',
    "of a function that is validated": f'def f(x: "{WALKED}"): pass\nvalidate_call(f)',
    "of a text that is another's": 'class T(str):\n  def __eq__(self, o): return True\n  def __hash__(self): return hash("Later")\nclass A: pass\nA.__annotations__ = {"x": T("gc")}\nget_type_hints(A)',
}  # fmt: skip


@pytest.mark.parametrize("source", EVALUATED.values(), ids=EVALUATED)
def test_the_text_of_an_annotation_is_no_code_of_the_host(source: str) -> None:
    """Stopped by: sandbox.patches.typing."""
    result = Sandbox(_asked(), limits=Limits(seconds=5)).exec(source)

    assert isinstance(result.error, SandboxError), result.error


HARMLESS = {
    "builtin types": "from __future__ import annotations\nclass S(Model):\n  x: list[int] | None = None\nfound = S(x=[1]).x == [1]",
    "inside": "import typing\nclass S(Model):\n  x: typing.Optional['int'] = 1\nfound = S(x=2).x == 2",
    "of the host, put off": "found = Early(later={'a': 2}).later.a == 2",
    "of the host, in a function": "found = made_here().count == 1",
    "of its own function": "class A: pass\ndef f(x: 'A', y: 'list[A]') -> 'int': pass\nfound = get_type_hints(f) == {'x': A, 'y': list[A], 'return': int}",
}  # fmt: skip


@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS)
def test_annotations_that_are_harmless_are_evaluated(source: str) -> None:
    """Stopped by: sandbox.patches.typing."""
    result = Sandbox(_asked(), limits=Limits(seconds=5)).exec(source)

    assert (result.error, result.namespace.get("found")) == (None, True)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("text", ["attack.host.Canary", "Early", "guards", "frame"])
@pytest.mark.parametrize("kind", ["class S(Model)", "def f():\n global S\n class S(Model)"])
def test_the_text_of_a_model_names_nothing_that_is_not_the_guests(
    kind: str, text: str, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by: sandbox.libraries.pydantic, sandbox.patches.typing."""
    monkeypatch.setattr(sys.modules["__main__"], "attack", attack, raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "Early", Early, raising=False)
    called = "\nf()" if kind.startswith("def") else ""
    body = f'  x: "{text}" = 1\n  model_config = {{"arbitrary_types_allowed": True}}{called}'
    policy = Policy.default(strict=strict)
    policy.cls(Model)
    source = f"{kind}:\n{body}\nfound = S.model_fields['x'].annotation\nS(x=1)"
    left = Sandbox(policy, limits=Limits(seconds=5)).exec(source)

    if policy.strict and "." in text:
        assert "not evaluated here" in str(left.error)
        return
    found = left.namespace["found"]
    assert type(found) in {str, typing.ForwardRef}
    assert getattr(found, "__forward_arg__", found) == text, "it is the text still, and nothing that it names"
    assert type(left.error).__name__ == "PydanticUserError"


SIGNATURES = {
    "of a class": "class A: __signature__ = TEXT\nfound = signature_of(A)",
    "of a class, set later": "class A: pass\nsetattr(A, '__signature__', TEXT)\nfound = signature_of(A)",
    "of a class made by hand": "found = signature_of(type('A', (), {'__signature__': TEXT}))",
    "of a class by its metaclass": "class M(type):\n  def __getattr__(self, name): return TEXT\nclass A(metaclass=M): pass\nfound = signature_of(A)",
    "of an object": "class A:\n  def __call__(self): pass\na = A()\nvars(a)['__signature__'] = TEXT\nfound = signature_of(a)",
    "of an object, of its class": "class A:\n  def __call__(self): pass\na = A()\nvars(a)['__text_signature__'] = TEXT\nfound = signature_of(a)",
    "of an object that answers": "class A:\n  def __call__(self): pass\n  def __getattr__(self, name): return TEXT\nfound = signature_of(A())",
    "of a function": "def f(): pass\nvars(f)['__signature__'] = TEXT\nfound = signature_of(f)",
    "of a member": "import enum\nclass E(enum.Enum):\n  A = 1\n  def __call__(self): pass\nvars(E.A)['__signature__'] = TEXT\nfound = signature_of(E.A)",
    "of a docstring": "A = type('A', (), {'__doc__': 'A' + TEXT + '\\n--\\n\\n'})\nfound = signature_of(A)",
    "of a base's docstring": "A = type('A', (), {'__doc__': 'A' + TEXT + '\\n--\\n\\n'})\nclass B(A): pass\nfound = signature_of(B)",
}  # fmt: skip
HUSH = "what the host keeps to itself"


@pytest.mark.parametrize("source", SIGNATURES.values(), ids=SIGNATURES)
def test_a_signature_that_is_text_reads_nothing_of_the_host(source: str) -> None:
    """Stopped by: sandbox.patches.inspect."""
    policy = _asked()
    policy.fn(lambda x: str(inspect.signature(x)), name="signature_of")

    result = Sandbox(policy).exec(f"TEXT = '(x={__name__}.HUSH)'\n{source}")

    assert HUSH not in str(result.namespace.get("found"))
    assert HUSH not in str(result.error)


def test_signatures_of_a_guest_are_what_they_are() -> None:
    """Stopped by: sandbox.patches.inspect."""
    policy = _asked()
    policy.fn(lambda x: str(inspect.signature(x)), name="signature_of")
    source = "A = type('A', (), {'__doc__': 'A(x=1)\\n--\\n\\n'})\ndef f(a, b=2): pass\nfound = signature_of(A), signature_of(f)"

    assert Sandbox(policy).exec(source).namespace["found"] == ("(x=1)", "(a, b=2)")


class Order:
    def __init__(self) -> None:
        self.paid = False


FORGED = {
    "what it derives from": "class A:\n  def __getattr__(self, name): return (Order,)\nfound = A()",
    "its class": "def answer(self, name):\n  if name == '__class__': return Order\n  return object.__getattribute__(self, name)\n"
    "class A: __getattribute__ = answer\nfound = A()",
    "how it is pickled": "def made(*args): pass\nmade.__name__ = '__newobj__'\n"
    "class A:\n  def __getattribute__(self, name):\n    if name == '__class__': return Order\n"
    "    if name.startswith('__reduce'): return lambda *args: (made, (Order,), {'paid': True})\n"
    "    return object.__getattribute__(self, name)\nfound = A()",
    "how its class is pickled": "class M(type):\n  def __getattribute__(cls, name):\n"
    "    if name.startswith('__reduce'): return lambda *args: (Order, ())\n    return type.__getattribute__(cls, name)\n"
    "class A(metaclass=M): pass\nfound = A()",
}  # fmt: skip


@pytest.mark.parametrize("source", FORGED.values(), ids=FORGED)
def test_an_object_does_not_pass_for_one_of_the_host(source: str) -> None:
    policy = Policy.default()
    policy.cls(Order)
    found = Sandbox(policy).exec(source).namespace["found"]

    for use in (lambda: found, lambda: pickle.loads(pickle.dumps(found)), lambda: copy.copy(found)):
        try:
            is_order = isinstance(use(), Order) or issubclass(use(), Order)
        except (SandboxError, pickle.PicklingError, AttributeError, TypeError):
            continue
        assert not is_order


def test_an_object_may_pass_for_one_of_the_guest_s_own() -> None:
    source = """
class Real: x = 1
class Proxy:
    def __init__(self, real): object.__setattr__(self, "real", real)
    def __getattribute__(self, name): return getattr(object.__getattribute__(self, "real"), name)
proxy = Proxy(Real())
found = isinstance(proxy, Real), proxy.__class__ is Real, type(proxy) is Proxy, proxy.x
"""

    assert Sandbox().exec(source).namespace["found"] == (True, True, True, 1)


class Account:
    """An object of the host that others hold weakly."""

    def __init__(self) -> None:
        self.owner = "open to all"
        self.token = "secret"

    def __call__(self) -> str:
        return "called"


class Unregistered:
    token = "open to all"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        "ref.token",
        "other.token\nref.token",
        "getattr(ref, 'token', None)",
        "'{0.token}'.format(ref)",
        "[each.token for each in [other, ref]]",
        "match ref:\n    case object(token=found): found",
        "ref.__dict__",
        "ref.__init__",
        "ref._private",
    ],
)
def test_a_weak_proxy_answers_what_its_object_does(program: str, strict: bool) -> None:
    """Stopped by: sandbox.guards.attribute_doors."""
    policy = Policy.default(strict=strict)
    policy.cls(Account, exclude=["token"])
    account, other = Account(), Unregistered()
    names = {"ref": weakref.proxy(account), "other": weakref.proxy(other)}
    result = Sandbox(policy).exec(program, namespace=names)
    assert isinstance(result.error, SandboxError), result
    program = "ref.owner, ref(), other.token, ref.__class__.__name__"
    assert Sandbox(policy).exec(program, namespace=names).value == (
        "open to all", "called", "open to all", "Account",
    )  # fmt: skip
