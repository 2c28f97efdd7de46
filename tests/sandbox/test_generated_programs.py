"""Programs nobody thought of: small terminating ones, made by hypothesis, run by CPython and in the sandbox.

``AGEX_DIFFERENTIAL=all`` makes fifteen times as many.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
from differential import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HERE = Path(__file__).parent / "differential"
EXAMPLES = 1_500 if os.environ.get("AGEX_DIFFERENTIAL") == "all" else 100


PRELUDE = """\
class Box:
    shared = 0
    def __init__(self, v=0): self.v = v; self._p = [v]; self.__s = v
    def bump(self, by=1): self.v += by; self._p += [by]; self.__s = self.v; return self
    def secret(self): return self.__s
    @property
    def twice(self): return self.v * 2
    @classmethod
    def of(cls, v): cls.shared += 1; return cls(v)
    def __add__(self, o): return Box(self.v + (o.v if isinstance(o, Box) else o))
    def __eq__(self, o): return isinstance(o, Box) and self.v == o.v
    def __lt__(self, o): return self.v < o.v
    def __getitem__(self, i): return self._p[i]
    def __repr__(self): return f"{type(self).__name__}({self.v!r}, {self._p!r})"
class Sub(Box):
    __match_args__ = ("v",)
    def bump(self, by=1): super().bump(by); self.__s = -by; return self
    def secret(self): return super().secret(), self.__s
def count(n):
    got = 0
    for i in range(n):
        got = (yield i if not got else got) or 0
    return n
def maker(n):
    total = n
    def add(k=1):
        nonlocal total
        total += k
        return total
    return add
a, b, c = 1, [2, 3], {"k": 4}
box, sub, add = Box(5), Sub(6), maker(7)
"""
"""What a program may use: names that exist, so that most of it goes on."""

INDENT = "    "
numbers = st.integers(-9, 9).map(str)
names = st.sampled_from(
    ["a", "b", "c", "x", "y", "box", "sub", "box.v", "sub._p", "box._p", "sub.twice", "Box.shared"]
)
atoms = st.one_of(
    numbers,
    names,
    names,
    st.sampled_from(
        ["'s'", "None", "True", "2.5", "[]", "{}", "()", "add()", "box.secret()", "sub.secret()", "Sub.of(3)"]
    ),
)
operators = st.sampled_from(
    ["+", "-", "*", "//", "%", "/", "&", "|", "^", "==", "!=", "<", ">=", "and", "or", "is", "in", "not in"]
)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two, three = st.tuples(inner, inner), st.tuples(inner, inner, inner)
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda e: f"(not {e})"),
        inner.map(lambda e: f"(-{e})"),
        three.map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        two.map(lambda t: f"[{t[0]}, {t[1]}]"),
        two.map(lambda t: f"({t[0]}, *[{t[1]}])"),
        two.map(lambda t: f"{{'k': {t[0]}, **{{'j': {t[1]}}}}}"),
        two.map(lambda t: f"[({t[0]}) for x in [{t[1]}, 1] if x]"),
        two.map(lambda t: f"{{i: ({t[0]}) for i, y in enumerate([{t[1]}])}}"),
        two.map(lambda t: f"sum(({t[0]}) for y in [{t[1]}])"),
        two.map(lambda t: f"(lambda x, y={t[0]}: ({t[1]}))(3)"),
        inner.map(lambda e: f"(y := {e})"),
        inner.map(lambda e: f"f'{{({e})!r:>4}}|{{({e})}}'"),
        inner.map(lambda e: f"box.bump({e}).v"),
        inner.map(lambda e: f"sub.bump({e}).secret()"),
        inner.map(lambda e: f"add({e})"),
        two.map(lambda t: f"({t[0]})[{t[1]}]"),
        inner.map(lambda e: f"list(count(2 if {e} else 1))"),
        inner.map(lambda e: f"sorted([{e}, 1])"),
        inner.map(lambda e: f"getattr({e}, 'v', None)"),
        inner.map(lambda e: f"isinstance({e}, (Box, int))"),
        two.map(lambda t: f"'{{0!r}} {{x}}'.format({t[0]}, x={t[1]})"),
    )


expressions = st.recursive(atoms, _deeper, max_leaves=5)
targets = st.sampled_from(
    ["a", "x", "y", "box.v", "box._p", "sub.new", "Box.shared", "c['k']", "b[0]", "sub._q"]
)
several = st.sampled_from(["x, y", "box.v, (x, *y)", "x, *box._p", "[c['n'], sub.v]", "*b, sub.v"])
updates = st.sampled_from(["+=", "-=", "*=", "|=", "//=", "%="])
errors = st.sampled_from(
    ["TypeError", "(KeyError, IndexError)", "Exception", "ZeroDivisionError", "AttributeError", ""]
)
patterns = st.sampled_from(
    [
        "0 | 1",
        "[x, *y]",
        "{'k': x}",
        "{'k': x, **y}",
        "Sub(v)",
        "Box(v=x)",
        "Box(_p=[x, *_])",
        "int(x)",
        "str() as y",
        "None",
        "(x, y)",
    ]
)


def _block(lines: list[str]) -> str:
    return textwrap.indent("\n".join(lines), INDENT)


simple = st.one_of(
    st.tuples(targets, expressions).map(lambda t: f"{t[0]} = {t[1]}"),
    st.tuples(several, expressions).map(lambda t: f"{t[0]} = {t[1]}"),
    st.tuples(targets, updates, expressions).map(lambda t: f"{t[0]} {t[1]} {t[2]}"),
    expressions.map(lambda e: f"print({e})"),
    targets.map(lambda t: f"del {t}"),
    expressions.map(lambda e: f"assert {e}, 'failed'"),
    expressions.map(lambda e: f"raise ValueError({e})"),
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    block = st.lists(inner, min_size=1, max_size=3).map(_block)
    return st.one_of(
        st.tuples(expressions, block, block).map(lambda t: f"if {t[0]}:\n{t[1]}\nelse:\n{t[2]}"),
        st.tuples(targets, block).map(
            lambda t: f"for {t[0]} in range(3):\n{t[1]}\nelse:\n{INDENT}print('else')"
        ),
        st.tuples(block, errors, block, block).map(
            lambda t: (
                f"try:\n{t[0]}\nexcept {t[1]}{' as e' * bool(t[1])}:\n{INDENT}print('caught')\n{t[2]}\nfinally:\n{t[3]}"
            )
        ),
        st.tuples(block, block).map(
            lambda t: (
                f"try:\n{t[0]}\nexcept* TypeError as group:\n{INDENT}print(len(group.exceptions))\nelse:\n{t[1]}"
            )
        ),
        st.tuples(expressions, patterns, expressions, block).map(
            lambda t: (
                f"match {t[0]}:\n{INDENT}case {t[1]} if {t[2]}:\n{textwrap.indent(t[3], INDENT)}\n{INDENT}case _: print('other')"
            )
        ),
        st.tuples(block, expressions).map(
            lambda t: (
                f"def f(x, y=2, *args, **kw):\n{INDENT}global a\n{t[0]}\n{INDENT}return {t[1]}\nprint(f(1), f(2, y=3))"
            )
        ),
        st.tuples(block, expressions).map(
            lambda t: (
                f"def g(x, y=0):\n{INDENT}got = yield x\n{t[0]}\n{INDENT}yield {t[1]}\nit = g(4); print(next(it)); print(it.send(5))"
            )
        ),
        st.tuples(block, expressions).map(
            lambda t: (
                f"class K(Box):\n{INDENT}x, y = 1, 2\n{t[0]}\n{INDENT}def m(self): self._m = {t[1]}; return self._m\nprint(K(2).m())"
            )
        ),
    )


statements = st.recursive(simple, _compound, max_leaves=8)
programs = st.lists(statements, min_size=1, max_size=6).map(
    lambda body: PRELUDE + "\n".join(body) + "\nprint(a, b, c, box, sub, Box.shared)\n"
)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(programs)
def test_a_generated_program_does_what_it_does_in_cpython(program: str) -> None:
    expected = twin.run_native(program)
    actual, _ = twin.run_guest(program)

    assert (str(actual), actual) == (str(expected), expected), program


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=EXAMPLES, derandomize=EXAMPLES == 100, deadline=None)
@given(expressions)
def test_a_generated_expression_has_the_same_value_inside_a_function(expression: str) -> None:
    program = f"{PRELUDE}def f(x=1, y=2):\n    return {expression}\nprint(f())\nprint(box, sub, add(0))\n"

    expected = twin.run_native(program)
    actual, _ = twin.run_guest(program)

    assert (str(actual), actual) == (str(expected), expected), program
