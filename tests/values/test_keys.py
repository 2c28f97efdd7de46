"""Keys whose hash is code: it reads globals, fields and helpers, which must be there, or it is lost."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import pytest

from agex.values import Allow, NotKept, decode, encode

CLASS = """
    class K:
        def __init__(self, x):
            self.x = x
        def __hash__(self):
            return {hash}
        def __eq__(self, other):
            return {eq}
    d = {{K(1): "one", K(2): "two"}}
    s = {{K(1), (K(2), 3)}}
    f = frozenset([K(1)])
    k = K(1)
"""

SAME = "self.x == other.x"
HELPER = """
def helper(n): return deeper(n)
def deeper(n): return hash(n)
"""
HASHES = {
    "a constant": ("SALT = 7", "hash((SALT, self.x))", SAME),
    "a container": ("SALT = [7]", "hash((SALT[0], self.x))", SAME),
    "a function": (HELPER, "helper(self.x)", "helper(self.x) == helper(other.x)"),
    "its own class": ("", "hash((K.__name__, self.x))", "isinstance(other, K) and self.x == other.x"),
    "collisions": ("", "1", "type(other) is K and self.x == other.x"),
    "a module": ("import math", "math.floor(self.x)", SAME),
    "an instance": ("class S:\n  def __init__(self): self.v = 3\nSALT = S()", "hash((SALT.v, self.x))", SAME),
}  # fmt: skip


@pytest.mark.parametrize("name", HASHES)
def test_a_hash_finds_the_globals_that_it_reads(name: str, moved, make_guest) -> None:
    before, hashes, compares = HASHES[name]
    program = f"{before}\n" + textwrap.dedent(CLASS).format(hash=hashes, eq=compares)
    asked = "got = d[k], d[K(2)], k in s, (K(2), 3) in s, k in f, len(d), len(s)"
    answer = ("one", "two", True, True, True, 2, 2)
    second = moved(program)
    assert second.run(asked)["got"] == answer
    third = make_guest()
    third.session.globals.update(third.load(second.groups()))
    assert third.run(asked)["got"] == answer


def test_a_class_attribute_may_hold_keys_of_the_class(moved) -> None:
    program = "SALT = 7\nclass K:\n  def __hash__(self): return SALT\nK.known = 5\nd = {K(): K}\n"
    assert moved(program).run("got = [v.known for v in d.values()]")["got"] == [5]


CANNOT = {
    "a key in its own field": (
        """
            class K:
                def __init__(self): self.x = 1
                def __hash__(self): return hash(self.x)
            k = K()
            k.d = {k: 1}
            beside = [k, 5]
        """,
        "beside[1]",
        5,
        ("k",),
    ),
    "a hash that raises by now": (
        """
            class K:
                broken = False
                def compute(self):
                    if self.broken: raise ValueError("no")
                    return 1
                __hash__ = compute
            d = {K(): 1, "a": 2}
            K.broken = True
        """,
        "d['a'], len(d)",
        (2, 2),
        (),
    ),
    "a hash that reads what was deleted": (
        """
            SALT = 1
            class K:
                def __hash__(self): return SALT
            d = {"a": {K(): 1}, "b": 3}
            del SALT
        """,
        "d['b'], len(d['a'])",
        (3, 1),
        (),
    ),
}


@pytest.mark.parametrize("name", CANNOT)
def test_a_key_that_cannot_be_hashed_is_lost_and_what_is_beside_it_is_not(name: str, moved) -> None:
    program, asked, answer, lost = CANNOT[name]
    second = moved(textwrap.dedent(program), lost=True)
    assert second.run(f"got = {asked}")["got"] == answer
    for each in lost:
        assert type(second.session.globals[each]) is NotKept


@dataclass(frozen=True)
class Node:
    """A class of the host whose hash reads a field that may hold it."""

    name: str
    known: dict[Any, int] = field(default_factory=dict, compare=False)


def test_an_instance_of_the_hosts_that_is_a_key_in_its_own_field_is_lost_and_no_other_variable() -> None:
    node = Node("a")
    node.known[node] = 1
    allow = Allow([Node])
    (group,) = encode({"x": [node, 5]}, allow=allow)
    got, other = decode(group, allow=allow)["x"]
    assert (type(got), other) == (NotKept, 5)


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("def __add__(self, other): return helper(other)", "k + 'abc'"),
        ("def __getattr__(self, name): return helper(name)", "k.abc"),
        ("def __getattribute__(self, name): return helper(name)", "k.abc"),
        ("@classmethod\n  def __class_getitem__(cls, name): return helper(name)", "type(k)['abc']"),
        (
            "@contextmanager\n  def opened(self): yield helper('abc')",
            "[v for v in [k.opened()]][0].__enter__()",
        ),
    ],
)
def test_an_operator_finds_the_globals_that_it_reads(method: str, asked: str, moved) -> None:
    before = "from contextlib import contextmanager\ndef helper(name): return name.upper()"
    second = moved(f"{before}\nclass K:\n  {method}\nk = K()", "k")
    assert second.run(f"got = {asked}")["got"] == "ABC"
