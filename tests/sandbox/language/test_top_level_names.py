"""The names of a program's top level are globals, which are read faster; nothing else is to be seen of it.

Stopped by: sandbox.language.compiler, sandbox.language.exec_namespaces.
"""

import dis
import sys

import pytest

from agex.sandbox import Policy, Sandbox
from agex.sandbox.language import annotations as hints
from agex.sandbox.language.compiler import compile_module

PROGRAMS = [
    "from __future__ import annotations\nprint(annotations.compiler_flag)",
    "from __future__ import annotations as later\nlater = later.mandatory\nprint(later)",
    '"""Doc."""\nx = 1\nprint(x, __doc__)',
    "x: int = 1\nprint(x)\nx = 2\nprint(x)",
    "x: int\ntry: print(x)\nexcept NameError as e: print(e, e.name)",
    "for x in range(2): y: int = x\nprint(x, y)",
    "print([x for x in range(3)])\ntry: x\nexcept NameError as e: print(e)",
    "x = 'outer'\nprint([x for x in range(3)], x)",
    "x = 'outer'\nprint([(lambda: x)() for x in range(3)], x, {x: (lambda x: x)(x) for x in 'ab'}, x)",
    "print([last := n for n in range(3)], last)",
    "print([[last := (n, m) for n in range(2)] for m in range(2)], last)",
    "print((lambda x: [x for _ in range(2)])(3))\nx = 1\nprint(x)",
    "x = 1\ndel x\ntry: del x\nexcept NameError as e: print(e)\ntry: x\nexcept NameError as e: print(e, e.name)",
    "try: 1 / 0\nexcept ZeroDivisionError as e: print(e)\nprint('e' in globals())",
    "class C:\n    x = 1\n    y = x + 1\n    def x(self): return x\nx = 5\nprint(C.y, C().x())",
    "x = 1\nclass C:\n    x = x + 1\n    print(x)\nprint(C.x, x)",
    "x = 1\ndef f():\n    x = 2\n    def g():\n        nonlocal x\n        x += 1\n    g()\n    return x\nprint(f(), x)",
    "x = 1\ndef f():\n    global x\n    x += 1\nf()\nprint(x)",
    "global x\nx = 1\nprint(x)",
    "def f(): return f.__qualname__\nclass C:\n    class D: pass\nprint(f(), C.D.__qualname__)\nprint(C, f.__name__)",
    "match (1, {'k': 2, 'l': 3}):\n    case (a, {'k': b, **rest}): print(a, b, rest)",
    "a, (b, *c) = 1, (2, 3, 4)\nprint(a, b, c)\nfor a, b in [(1, 2)]: pass\nprint(a, b)",
    "import math as m\nprint(m.pi)",
    "from math import *\nprint(floor(pi))",
    "print(sorted(n for n in locals() if not n.startswith('_')))\nx = 1\nprint('x' in locals())",
    "len = 3\nprint(len)\ndel len\nprint(len('ab'))",
    "__x = 1\nprint(__x)\nclass C: \n    def f(self): return __x\ntry: C().f()\nexcept NameError as e: print(e)",
    "import io\nwith io.StringIO('t') as f: print(f.read())\nprint(f.closed)",
    "i = 0\nwhile i < 3:\n    i += 1\nelse: print(i)",
    "exec('x = 1\\nprint(x)', {}, {})\ntry: x\nexcept NameError as e: print(e)",
    "d = {}\nexec('x = [n for n in range(3)]\\nfor y in x: z = y', {}, d)\nprint(sorted(d))",
    "d = {}\nexec('x = 1\\ndef f(): return x', {'x': 2}, d)\nprint(d['x'], d['f']())",
]
LATER = [
    "def f[T](x: T) -> T: return x\nT = 3\nprint(f(T), f.__type_params__)",
    "type A[T] = list[T]\nT = A\nprint(T)",
    "class C[T]:\n    def f(self, x: T) -> T: return x\nprint(C[int]().f(1))",
]
if sys.version_info >= (3, 12):
    PROGRAMS += LATER


def output(source: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a program as CPython does, and give what it prints."""
    exec(compile(source, "<agent>", "exec", dont_inherit=True), {"__name__": "__main__"})
    return capsys.readouterr().out


@pytest.mark.parametrize("source", PROGRAMS)
def test_the_top_level_says_what_cpython_says(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = output(source, capsys)
    result = Sandbox().exec(source)
    assert result.error is None
    assert result.stdout == expected


@pytest.mark.parametrize(
    "source",
    ["x = 1\nglobal x", "print(x)\nglobal x", "def f():\n    nonlocal x\nx = 1", "x: int = 1\nglobal x"],
)
def test_what_is_no_program_stays_none(source: str) -> None:
    with pytest.raises(SyntaxError) as expected:
        compile(source, "<agent>", "exec")
    error = Sandbox().exec(source).error
    assert isinstance(error, SyntaxError)
    assert error.lineno == expected.value.lineno
    if hints.ARE_LATE and "x: int" in source:  # there an assignment and a note stand for an annotated name
        assert error.msg == "name 'x' is assigned to before global declaration"
    else:
        assert error.msg == expected.value.msg


def test_a_loop_of_the_top_level_looks_nothing_up_by_name() -> None:
    source = "for i in range(3):\n    t = i + start\n    print(t)"
    flat = compile_module(source, "<flat>", Policy.default().text, flat=True)
    own = compile_module(source, "<own>", Policy.default().text)
    assert "LOAD_NAME" not in {step.opname for step in dis.get_instructions(flat)}
    assert "LOAD_NAME" in {step.opname for step in dis.get_instructions(own)}


def test_names_of_an_earlier_run_and_of_the_host_are_found() -> None:
    session = Sandbox().session({"given": 3})
    assert session.run("a = given").error is None
    assert session.run("b = a + given\ndel a").error is None
    assert session.run("[b, given]").value == [6, 3]
    error = session.run("a").error
    assert "name 'a' is not defined" in str(error)


MEMBERS = [
    "x = 1",
    "x = y = math.pi",
    "x: int = 1",
    "x: Seen.format = 1",
    "x = [n for n in range(2)]",
    "for x in range(2): pass",
    "while True: break",
    "try: x = 1\n    except Exception: pass",
    "try: x = 1\n    finally: pass",
    "with contextlib.suppress(ValueError): x = 1",
    "x = lambda: 1",
    "x = a.b = 1",
    "a.b = x = 1",
    "a.b, x = 1, 2",
    "del a.old",
    "x = a.__class__",
    "x = a._hidden",
    "'{}'.format(1)",
    "x = str.format",
    "match 1:\n        case int(): pass",
    "match 1:\n        case math.pi: pass",
    "def f(self): return self._x",
    "def f(self, x=a._hidden): return x",
    "def f(self, *, x=a.__class__): return x",
    "def f(self, x: a.__class__): return x",
    "def f(self) -> a._hidden: return x",
    "def f(self, *x: a._hidden): pass",
    "@a._decorate\n    def f(self): pass",
    "@a.decorate\n    def f(self): pass",
    "@property\n    def f(self): return 1\n    @f.setter\n    def f(self, v): self._v = v",
    "@contextlib.contextmanager\n    def f(self): yield",
    "async def f(self, x=1): pass",
    "class D: x = 1",
    "class D(a.__class__): pass",
    "@a.decorate\n    class D: pass",
    "lambda: a._hidden",
    "global z\n    z = 1",
    "import math as m",
    "if a._hidden: pass",
    "x = f'{a._hidden}'",
    "assert a._hidden",
]

SEEN = """
import contextlib, math

class Seen:
    old, _hidden = 1, 2
    def decorate(self, value): return value
    _decorate = decorate
    format = 3

a = Seen()
a.old = 1
asked = []

class Space(dict):
    def __getitem__(self, name):
        asked.append(name)
        return dict.__getitem__(self, name)
    def __setitem__(self, name, value):
        asked.append(name)
        dict.__setitem__(self, name, value)

class Meta(type):
    @classmethod
    def __prepare__(meta, name, bases): return Space()
    def __new__(meta, name, bases, space): return type.__new__(meta, name, bases, dict(space))

class C(metaclass=Meta):
    {member}

asked
"""


@pytest.mark.parametrize("member", MEMBERS)
def test_no_helper_is_asked_of_the_namespace_of_a_class(member: str) -> None:
    for program in (
        SEEN.replace("{member}", member),
        SEEN.replace("{member}", "def g(self): pass\n    " + member),
    ):
        result = Sandbox().exec(program)
        assert result.error is None
        assert result.value[0] == "__name__"
        assert not [name for name in result.value if "!" in name]
