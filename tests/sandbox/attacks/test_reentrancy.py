"""C code that calls a method of the guest's in the midst of its work, which takes away what it works on.

Stopped by: sandbox.stdlib.itertools, sandbox.stdlib.plain_values, sandbox.stdlib.struct,
_interpreter.typed_array.
"""

from __future__ import annotations

import array
import pickle
import subprocess
import sys
from typing import Any

import pytest

from agex.sandbox import Policy, Sandbox

AGAIN = """
import itertools
kept = []
class Again:
  def __iter__(self): return self
  def __next__(self):
    global depth
    depth += 1
    if depth < 6:
      try: next(it)
      except (ValueError, StopIteration): pass
      kept.append([Again.__new__(Again) for _ in range(10)])
      return 1
    raise StopIteration
def again():
  for i in range(9):
    try: next(it)
    except (ValueError, StopIteration): pass
    yield i
for source in (Again, again, lambda: iter(Again().__next__, None)) * 99:
  depth = 0
  it = {}
  for _ in range(9):
    try: next(it)
    except (ValueError, StopIteration): pass
x = len([*itertools.islice(again(), 2)])
"""
CUT = """
import array, copy
a = array.array('q')
class E:
  def __index__(self): del a[10:]; return 7
  def __float__(self): del a[10:]; return 7.0
"""
READING = """
import csv
class Lines:
  n = 0
  def __iter__(self): return self
  def __next__(self):
    self.n += 1
    if self.n < 50:
      try: next(rows)
      except (ValueError, csv.Error): pass
    return '"a,b'
rows = iter(())
rows = {}
for _ in range(99):
  try: next(rows)
  except (ValueError, csv.Error): pass
"""
NESTED = {
    "an iterator that asks islice": "itertools.islice(source(), 2, None)",
    "an iterator that asks batched": "itertools.batched(source(), 3) if sys.version_info >= (3, 12) else source()",
    "an iterator that asks pairwise": "itertools.pairwise(source())",
    "an iterator that asks zip_longest": "itertools.zip_longest(source(), source(), range(99))",
    "an iterator that asks chain": "itertools.chain(source(), source())",
    "an iterator that asks a chain of a list": "itertools.chain.from_iterable([source(), source()])",
    "an iterator that asks cycle": "itertools.cycle(source())",
    "an iterator that asks accumulate": "itertools.accumulate(source())",
    "an iterator that asks groupby": "itertools.groupby(source())",
    "an iterator that asks map": "map(str, source())",
}
CRASHES = {name: "import sys" + AGAIN.replace("{}", made) for name, made in NESTED.items()} | {
    "a line that reads lines": READING.replace("{}", "csv.reader(Lines())"),
    "a line that reads rows": READING.replace("{}", "csv.DictReader(Lines())"),
    "a line that reads lines, in a list's iterator": READING.replace("{}", "csv.reader(map(str, Lines()))"),
    "an item of an array that cuts it": CUT
    + "for i in range(900): a = array.array('q', [0] * 1000); a[10 + i] = E()",
    "an item of an array that empties it": CUT + "a = array.array('q', [0] * 100_000); a[50_000] = E()",
    "a float of an array that empties it": CUT + "a = array.array('d', [0] * 100_000); a[50_000] = E()",
    "an item that is appended and empties the array": CUT
    + "a = array.array('q', [0] * 100_000); a.append(E())",
    "an item that is inserted and empties the array": CUT
    + "a = array.array('q', [0] * 100_000); a.insert(99_999, E())",
    "items of a list that empty the array": CUT + "a.fromlist([E() for _ in range(100_000)])",
    "items that empty the array it is extended by": CUT + "a.extend(E() for _ in range(100_000))",
    "an item of a part of an array": CUT + "a = array.array('q', [0] * 100_000)[1:]; a[50_000] = E()",
    "an item of a copy of an array": CUT
    + "a = copy.deepcopy(array.array('q', [0] * 100_000)); a[50_000] = E()",
    "an item of a sum of arrays": CUT
    + "a = array.array('q') + array.array('q', [0] * 100_000); a[50_000] = E()",
    "an item of an array many times over": CUT + "a = 2 * array.array('q', [0] * 100_000); a[50_000] = E()",
    "an item set by the class above": CUT
    + "a = array.array('q', [0] * 100_000); super(array.array, a).__setitem__(50_000, E())",
    "an item of an array by its other name": CUT + "a = array.ArrayType('q', [0] * 100_000); a[50_000] = E()",
    "an item of an array of the class of one": CUT + "a = type(a[1:])('q', [0] * 100_000); a[50_000] = E()",
    "an item of a joined array": CUT
    + "import operator\na = operator.concat(a, array.array('q', [0] * 100_000)); a[50_000] = E()",
    "an addition that asks for the next total": "import itertools\nkept = []\nclass A:\n  def __add__(self, other):\n    global d\n    d += 1\n"
    "    if d < 4: next(it)\n    kept.append([A.__new__(A) for _ in range(100)])\n    return NotImplemented\n"
    "class B:\n  def __radd__(self, other): return type(other).__name__ and A()\n"
    "for _ in range(99):\n  d = 0\n  it = itertools.accumulate(map(lambda f: f(), [A] + [B] * 9))\n  next(it)\n  next(it)",
    "a struct that begins anew": "import struct\nclass S(struct.Struct): pass\ns = S('8i')\nclass E:\n"
    "  def __index__(self): s.__init__('100000xi' * 6); return 7\ns.pack(E(), 1, 1, 1, 1, 1, 1, 1)",
}


def outcome(program: str) -> tuple[int, str]:
    """Run a program in a process of its own, which it may end."""
    host = (
        "from agex.sandbox import Limits, Sandbox\n"
        f"r = Sandbox(limits=Limits(seconds=20)).exec({program!r})\n"
        "print(type(r.error).__name__, r.namespace.get('x'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", host], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize("program", CRASHES.values(), ids=CRASHES)
def test_the_process_goes_on(program: str) -> None:
    code, said = outcome(program)

    assert code == 0
    assert "EvalError" not in said


def value_of(source: str) -> object:
    result = Sandbox().exec(source)
    assert result.error is None, result.traceback
    return result.namespace["x"]


def test_a_struct_is_what_it_is() -> None:
    """Stopped by: sandbox.stdlib.struct."""
    source = """
import struct
s = struct.Struct('<ih')
x = [
    s.size, s.unpack(s.pack(1, 2)), list(s.iter_unpack(bytes(6))), struct.Struct.pack(s, 1, 2) == s.pack(1, 2),
    isinstance(s, struct.Struct), type(s) is struct.Struct, struct.Struct(format=b'i').size,
    struct.Struct.__new__(struct.Struct, 'h').size,
]
"""
    assert value_of(source) == [6, (1, 2), [(0, 0)], True, True, True, 4, 2]


def test_iterators_over_iterators_give_what_they_give() -> None:
    """Stopped by: sandbox.stdlib.itertools."""
    source = """
import itertools
class Countdown:
  def __init__(self, n): self.n = n
  def __iter__(self): return self
  def __next__(self):
    if self.n == 0: raise StopIteration
    self.n -= 1
    return self.n
def some(): yield from 'ab'
left = some()
x = [
    [*itertools.zip_longest(some(), Countdown(3), [7], fillvalue=0)], [*itertools.islice(left, 1)], [*left],
    [*itertools.chain.from_iterable([some(), 'c', Countdown(1), map(str, [1])])], [*itertools.chain(some(), {1: 2})],
    [*itertools.pairwise(Countdown(3))], [*itertools.islice(itertools.cycle(some()), 3)],
    [*itertools.accumulate([1, 2, 3])], [*itertools.accumulate([1, 5, 2], max)], [*itertools.accumulate([2], func=pow, initial=3)],
    [*itertools.accumulate(some(), lambda a, b: b + a)], [*itertools.accumulate(iterable=[1], initial=None)],
]
"""
    assert value_of(source) == [
        [("a", 2, 7), ("b", 1, 0), (0, 0, 0)], ["a"], ["b"],
        ["a", "b", "c", 0, "1"], ["a", "b", 1], [(2, 1), (1, 0)], ["a", "b", "a"],
        [1, 3, 6], [1, 5, 5], [3, 9], ["a", "ba"], [1],
    ]  # fmt: skip


def test_lines_of_every_kind_are_read() -> None:
    """Stopped by: sandbox.stdlib.plain_values."""
    source = """
import csv, io
class Lines:
  def __iter__(self): return iter(['a,b', '1,2'])
class Text(io.StringIO): pass
given = [['a,b', '1,2'], Lines(), io.StringIO('a,b\\n1,2'), Text('a,b\\n1,2'), (line for line in Lines()), map(str, Lines())]
x = [[*csv.reader(lines)] for lines in given] + [[*csv.DictReader(Lines())], csv.reader(Lines(), delimiter='b').line_num]
"""
    assert value_of(source) == [[["a", "b"], ["1", "2"]]] * 6 + [[{"a": "1", "b": "2"}], 0]


def test_an_array_is_what_it_is() -> None:
    """Stopped by: sandbox.stdlib.struct, _interpreter.typed_array."""
    source = """
import array, copy, struct, sys
class N:
  def __index__(self): return 9
  def __float__(self): return 0.5
a = array.array('i', [1, 2, 3])
a[0] = N(); a.append(N()); a.insert(1, 4); a.extend([5, N()]); a.fromlist([6]); a[1:2] = array.array('i', [7, 7])
d = array.array('d', [1.5]); d[0] = N(); d.append(2); d.extend(range(2))
def refused(f, *args):
  try: f(*args)
  except TypeError as error: return str(error)
x = [
    a.tolist(), d.tolist(), a[1:3].tolist(), (a + a).tolist() == a.tolist() * 2, (2 * a[:1]).tolist(),
    copy.copy(a) == a, copy.deepcopy(a) is not a, type(a[:0]) is array.array, isinstance(a, array.array), repr(d[:1]),
    type(a), array.array('w' if sys.version_info >= (3, 13) else 'u', 'ab').tounicode(), len(a.tobytes()), bytes(memoryview(a)[:1]) == struct.pack('i', 9),
    refused(a.append, 'x'), refused(a.append, 1.5), refused(d.append, 'x'), refused(d.append, object()), hasattr(a, 'x'),
    sum(a), a.pop(), a.index(7), a.count(7), max(a), [*reversed(a)][0], 7 in a, a == a[:], a.typecode, a.itemsize,
]
"""
    value: Any = value_of(source)

    assert value[:10] == [
        [9, 7, 7, 2, 3, 9, 5, 9, 6], [0.5, 2.0, 0.0, 1.0], [7, 7], True, [9, 9], True, True, True, True,
        "array('d', [0.5])",
    ]  # fmt: skip
    assert value[11:14] == ["ab", 36, True]
    assert all(value[14:18])
    assert value[18:] == [False, 57, 6, 1, 2, 9, 9, True, True, "i", 4]


def test_an_array_that_a_task_returns_is_one_of_python_when_it_is_loaded() -> None:
    """Stopped by: sandbox.stdlib.struct, _interpreter.typed_array."""
    made = pickle.loads(pickle.dumps(value_of("import array\nx = array.array('q', [1, 2])")))

    assert type(made) is array.array
    assert made.tolist() == [1, 2]


def test_numpy_reads_an_array() -> None:
    """Stopped by: _interpreter.typed_array."""
    policy = Policy.default()
    policy.module(pytest.importorskip("numpy"))
    source = "import array, numpy as np\na = array.array('d', [3, 1])\nx = [np.asarray(a).sum(), np.frombuffer(a).max()]"

    result = Sandbox(policy).exec(source)

    assert (result.error, result.namespace["x"]) == (None, [4.0, 3.0])
