"""C code that calls a method of the guest's in the midst of its work, which takes away what it works on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agex.sandbox import Sandbox

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
]
"""
    assert value_of(source) == [
        [("a", 2, 7), ("b", 1, 0), (0, 0, 0)], ["a"], ["b"],
        ["a", "b", "c", 0, "1"], ["a", "b", 1], [(2, 1), (1, 0)], ["a", "b", "a"],
    ]  # fmt: skip


def test_lines_of_every_kind_are_read() -> None:
    source = """
import csv, io
class Lines:
  def __iter__(self): return iter(['a,b', '1,2'])
class Text(io.StringIO): pass
given = [['a,b', '1,2'], Lines(), io.StringIO('a,b\\n1,2'), Text('a,b\\n1,2'), (line for line in Lines()), map(str, Lines())]
x = [[*csv.reader(lines)] for lines in given] + [[*csv.DictReader(Lines())], csv.reader(Lines(), delimiter='b').line_num]
"""
    assert value_of(source) == [[["a", "b"], ["1", "2"]]] * 6 + [[{"a": "1", "b": "2"}], 0]
