"""Guest code in a tab does not reach the page: by import, by module, or from an object of Pyodide's that it holds.

Stopped by: browser, sandbox.policy.browser.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from agex import Agent
from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox
from agex.testing import ScriptedModel

pytestmark = pytest.mark.skipif(sys.platform != "emscripten", reason="there is no page outside of Pyodide")

PACKAGES = [
    "js",
    "pyodide",
    "pyodide_js",
    "micropip",
    "_pyodide",
    "_pyodide_core",
    "pyodide.ffi",
    "pyodide.code",
]


def objects() -> dict[str, Any]:
    """Give what a careless host might hand to a guest."""
    from pyodide.code import run_js
    from pyodide.ffi import JsException, create_proxy

    async def nothing() -> None: ...

    try:
        run_js("throw new Error('from the page')")
    except JsException as error:
        failure = error
    coroutine = nothing()
    coroutine.close()
    return {
        "an object": run_js("({inner: {}})"),
        "an array": run_js("[{}]"),
        "a function": run_js("(() => ({}))"),
        "a map": run_js("new Map([['x', {}]])"),
        "bytes": run_js("new Uint8Array(3)"),
        "an error": failure,
        "a proxy": create_proxy(len),
        "the page": run_js("globalThis"),
    }


# A promise becomes a future of Python's, which has no constructor: see LOOPS.
OBJECTS = ["an object", "an array", "a function", "a map", "bytes", "an error", "a proxy", "the page"]

ATTACKS = {
    "constructor": "leak = it.constructor",
    "constructor in a function": "def f(x): return x.constructor\nleak = f(it)",
    "constructor in a loop": "def f(x):\n  for i in range(3): x = x.constructor\n  return x\nleak = f(it)",
    "constructor in a class body": "class A: leak = it.constructor\nleak = A.leak",
    "constructor in a lambda": "leak = (lambda x: x.constructor)(it)",
    "constructor in a comprehension": "leak = [x.constructor for x in [it]][0]",
    "getattr": "leak = getattr(it, 'constructor')",
    "getattr with a default": "leak = getattr(it, 'constructor', None) or 1",
    "attrgetter": "import operator\nleak = operator.attrgetter('constructor')(it)",
    "methodcaller": "import operator\nleak = operator.methodcaller('constructor', 'return 1')(it)",
    "a format": "leak = '{0.constructor}'.format(it)",
    "a formatter": "import string\nleak = string.Formatter().format('{0.constructor}', it)",
    "an f-string": "leak = f'{it.constructor}'",
    "a template": "leak = t'{it.constructor}'.values[0]",
    "a class pattern": "match it:\n  case object(constructor=c): leak = c",
    "a class pattern inside": "match [it]:\n  case [object(constructor=c)]: leak = c",
    "match_args": "class M(type):\n  def __instancecheck__(c, o): return True\nclass P(metaclass=M): __match_args__ = ('constructor',)\n"
    "match it:\n  case P(c): leak = c",
    "a value pattern": "class E:\n  def __eq__(self, other): global leak; leak = other; return True\nmatch E():\n  case it.constructor: pass",
    "a value pattern inside": "class E:\n  def __eq__(self, other): global leak; leak = other; return True\n"
    "match [E()]:\n  case [it.constructor]: pass",
    "a value pattern in a function": "class E:\n  def __eq__(self, other): global leak; leak = other; return True\n"
    "def f(it):\n  match [E()]:\n    case [it.constructor]: pass\nf(it)",
    "a value pattern in a class": "class E:\n  def __eq__(self, other): global leak; leak = other; return True\n"
    "class A:\n  own = it\n  match [E()]:\n    case [own.constructor]: pass",
    "a mapping pattern": "class E(dict):\n  def get(self, k, d=None): global leak; leak = k; return 1\n"
    "match E(a=1):\n  case {it.constructor: x}: pass",
    "the class of a pattern": "match 1:\n  case it.constructor(): pass\nleak = 1",
    "a store": "it.constructor = 1\nleak = 1",
    "a delete": "del it.constructor\nleak = 1",
    "setattr": "setattr(it, 'onclick', print)\nleak = 1",
    "its class": "leak = type(it).js_id",
    "new": "leak = it.new()",
    "then": "leak = it.then(print)",
    "to_py": "leak = it.to_py()",
    "js_id": "leak = it.js_id",
    "typeof": "leak = it.typeof",
    "a subclass": "class C(type(it)): pass\nleak = C().constructor",
    "a property of a subclass": "class C(type(it)):\n  def f(self): return self.constructor\nleak = C.f(it)",
    "super": "class C:\n  def f(self): return super(C, self).constructor\nleak = C.f(it)",
    "a partial": "import functools\nleak = functools.partial(getattr, it)('constructor')",
    "map": "leak = next(map(getattr, [it], ['constructor']))",
    "vars": "leak = vars(it)",
    "a dataclass field": "import dataclasses\n@dataclasses.dataclass\nclass D: x: object\nleak = D(it).x.constructor",
    "a descriptor": "class D:\n  def __get__(self, o, t): return it\nclass A: d = D()\nleak = A().d.constructor",
    "caught": "def f():\n  raise it\ntry: f()\nexcept Exception as e: leak = e.constructor",
    "walrus": "leak = (x := it).constructor",
    "eval": "leak = eval('it.constructor')",
    "exec": "exec('global leak\\nleak = it.constructor')",
    "a cached property": "import functools\nclass A:\n  @functools.cached_property\n  def p(self): return it\nleak = A().p.constructor",
    "reduce": "import functools\nleak = functools.reduce(getattr, ['constructor', 'constructor'], it)",
}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_read_off_an_object_of_the_page(attack: str, name: str) -> None:
    result = Sandbox(Policy.default()).exec(ATTACKS[attack], {"it": objects()[name]})

    assert result.error is not None
    assert "leak" not in result.namespace


def test_the_attacks_would_work_on_an_object_that_is_the_guests_own() -> None:
    works = [
        "constructor",
        "getattr",
        "a value pattern",
        "a mapping pattern",
        "a class pattern",
        "reduce",
        "eval",
    ]
    prelude = "class It:\n  pass\nit = It()\nit.constructor = It()\nit.constructor.constructor = 1\n"

    for attack in works:
        result = Sandbox(Policy.default()).exec(prelude + ATTACKS[attack])

        assert result.error is None
        assert "leak" in result.namespace


@pytest.mark.parametrize("name", PACKAGES)
def test_no_package_of_the_page_is_imported(name: str) -> None:
    for source in (
        f"import {name}",
        f"from {name} import *",
        f"__import__('{name}')",
        f"import importlib\nimportlib.import_module('{name}')",
        f"import sys\nsys.modules['{name}']",
        f"import asyncio\nasyncio.sys.modules['{name}']",
        f"exec('import {name}')",
    ):
        result = Sandbox(Policy.default()).exec(source)

        assert isinstance(result.error, (SandboxError, ImportError, AttributeError, KeyError)), source


LOOPS = {
    "running loop": "import asyncio\nleak = asyncio.get_running_loop()",
    "loop of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nawait t\nleak = t.get_loop()",
    "loop of an event": "import asyncio\ne = asyncio.Event()\nleak = e._loop",
    "loop of a timeout": "import asyncio\nasync with asyncio.timeout(1) as t: leak = t._task",
    "then of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nawait t\nleak = t.then(print)",
    "catch of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nawait t\nleak = t.catch(print)",
    "finally of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nawait t\nleak = t.finally_(print)",
    "getattr of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nawait t\nleak = getattr(t, 'then')",
    "coroutine of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nawait t\nleak = t.get_coro()",
    "callback of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nt.add_done_callback(print)\nawait t\nleak = 1",
    "a subclass of a task": "import asyncio\nasync def f(): pass\nt = asyncio.create_task(f())\nawait t\nclass T(type(t)): pass\nleak = T",
}


@pytest.mark.parametrize("attack", LOOPS)
async def test_the_event_loop_of_the_page_is_out_of_reach(attack: str) -> None:
    from pyodide.webloop import PyodideTask

    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, coro, **given: PyodideTask(coro, loop=loop, **given))

    result = await Sandbox(Policy.default()).aexec(LOOPS[attack])

    assert result.error is not None
    assert "leak" not in result.namespace


async def test_tasks_of_the_page_are_tasks_all_the_same() -> None:
    from pyodide.webloop import PyodideTask

    asyncio.get_running_loop().set_task_factory(
        lambda loop, coro, **given: PyodideTask(coro, loop=loop, **given)
    )
    source = "import asyncio\nasync def f(): return 3\nt = asyncio.create_task(f())\n(await t, t.done(), t.result())"

    result = await Sandbox(Policy.default()).aexec(source)

    assert result.error is None
    assert result.value == (3, True, 3)


FILES = [
    "open('/home/pyodide/x', 'w')",
    "open('/etc/passwd').read()",
    "open('/dev/stdin').read()",
    "open('/proc/self/environ').read()",
    "import os\nos.listdir('/')",
    "import sqlite3\nsqlite3.connect('/tmp/x.db')",
    "import ctypes\nctypes.CDLL(None)",
    "import subprocess\nsubprocess.run(['ls'])",
    "import socket\nsocket.socket()",
    "import urllib.request\nurllib.request.urlopen('http://127.0.0.1')",
]


@pytest.mark.parametrize("source", FILES)
def test_the_files_of_the_interpreter_are_out_of_reach(source: str) -> None:
    result = Sandbox(Policy.default()).exec(source)

    assert result.error is not None


@pytest.mark.parametrize("name", OBJECTS)
async def test_a_task_given_an_object_of_the_page_keeps_it_from_the_agents_code(name: str) -> None:
    code = "```python\ntry:\n    leak = it.constructor\nexcept Exception as e:\n    leak = type(e).__name__\ntask_success(leak)\n```"
    agent = Agent(model=ScriptedModel([code]))

    @agent.task
    async def look(it: Any) -> Any:
        """Look at it."""

    assert await look(objects()[name]) == "SandboxAttributeError"


async def test_an_error_of_the_page_that_a_function_raises_leads_nowhere() -> None:
    from pyodide.code import run_js

    reads = ["constructor", "js_error", "stack", "__cause__.constructor", "__context__.constructor"]
    code = f"""
try:
    fail()
except Exception as e:
    caught = e
for read in ({", ".join(f"lambda: caught.{name}" for name in reads)}):
    try:
        read()
    except AttributeError:
        continue
    task_fail("it could be read")
task_success("nothing")
"""
    agent = Agent(model=ScriptedModel([f"```python\n{code}\n```"]))

    @agent.fn
    def fail() -> None:
        run_js("throw new Error('from the page')")

    @agent.task
    async def look() -> str:
        """Look at it."""

    assert await look() == "nothing"
