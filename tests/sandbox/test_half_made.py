"""C code that calls a method of the guest's in the midst of its work, which takes away what it works on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agex.sandbox import Sandbox

CRASHES = {
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
