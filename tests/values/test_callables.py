"""What can be called and is not the guest's own: kept by its name, or by what it was made of."""

from __future__ import annotations

import functools
import operator
import os
import textwrap
from typing import Any

import pytest

from agex.agent.task.state_codec import KeptCode
from agex.errors import StateCorrupt
from agex.sandbox import Sandbox
from agex.sandbox.stdlib.source_modules import WRITTEN
from agex.sandbox.stdlib.standard_set import grants
from agex.values import Allow, Group, NotKept, decode, encode
from agex.values.base.handle import Handle
from agex.values.code.reconstructor import Builder

PROGRAMS: dict[str, tuple[str, str, Any]] = {
    "a table of operators": (
        """
        import operator
        ops = {'<': operator.lt, '+': operator.add, 'in': operator.contains, 'not': operator.not_}
        """,
        "ops['<'](1, 2), ops['+'](1, 2), ops['in']([1], 1), ops['not'](0), ops['<'] is operator.lt",
        (True, 3, True, True, True),
    ),
    "methods of builtin classes": (
        """
        found = [str.upper, list.append, dict.get, int.bit_length, set.union, bytes.hex, float.is_integer]
        """,
        "found[0]('a'), found[2]({1: 2}, 1), found[3](8), found[4]({1}, {2}), found[5](b'a'), found[6](1.0)",
        ("A", 2, 4, {1, 2}, "61", True),
    ),
    "methods of classes": (
        """
        from datetime import datetime, date
        from decimal import Decimal
        from fractions import Fraction
        import itertools, collections
        found = {
            "iso": datetime.fromisoformat, "keys": dict.fromkeys, "int": int.from_bytes,
            "make": str.maketrans, "hex": bytes.fromhex, "chain": itertools.chain.from_iterable,
            "text": date.isoformat, "dec": Decimal.from_float, "lim": Fraction.limit_denominator,
            "mc": collections.Counter.most_common,
        }
        """,
        """(
            found['iso']('2020-01-02').day, found['keys']('a'), found['int'](b'a', 'big'),
            found['make']('a', 'b'), list(found['chain']([[1], [2]])), found['text'](date(2020, 1, 2)),
            found['dec'](0.5) == Decimal('0.5'), found['lim'](Fraction(1, 2)) == Fraction(1, 2),
            found['mc'](collections.Counter('aab'))[0],
        )""",
        (2, {"a": None}, 97, {97: 98}, [1, 2], "2020-01-02", True, True, ("a", 2)),
    ),
    "functions of modules": (
        """
        import math, json, statistics, bisect, heapq, textwrap, re, html, copy, functools, itertools, base64
        found = [
            math.sqrt, json.dumps, statistics.mean, bisect.bisect_left, heapq.nlargest, textwrap.fill, re.sub,
            html.escape, copy.deepcopy, functools.reduce, itertools.accumulate, base64.b64encode,
        ]
        """,
        """(
            found[0](4), found[1]([1]), found[2]([1, 3]), found[3]([1, 2], 2), found[4](1, [1, 2]),
            found[5]('a'), found[6]('a', 'b', 'a'), found[7]('<'), found[8]([1]), found[9](max, [1, 2]),
            list(found[10]([1, 2])), found[11](b'a'), found[0] is math.sqrt,
        )""",
        (2.0, "[1]", 2, 1, [2], "a", "b", "&lt;", [1], 2, [1, 3], b"YQ==", True),
    ),
    "functions that each session has of its own": (
        """
        import random, queue, logging
        found = [random.choice, random.random, queue.Queue, logging.getLogger]
        """,
        "found[0]([5]), 0 <= found[1]() < 1, found[2]().qsize(), found[3]('a').name",
        (5, True, 0, "a"),
    ),
    "builtins": (
        """
        found = [len, sum, sorted, print, getattr, isinstance, max, iter, repr, round, type, zip, dir]
        """,
        "found[0]([1]), found[2]([2, 1]), found[4](3, 'real'), found[5](1, int), found[10](1)",
        (1, [1, 2], 3, True, int),
    ),
    "methods of objects": (
        r"""
        import re
        found = [re.compile('a+').match, re.compile(r'\d').findall, ', '.join, {1: 'x'}.get, 'abc'.startswith]
        """,
        "found[0]('aa').group(), found[1]('a1'), found[2](['a', 'b']), found[3](1), found[4]('a')",
        ("aa", ["1"], "a, b", "x", True),
    ),
    "methods of an object that is there, too": (
        """
        import collections
        items, counts = [1], collections.Counter('a')
        push, update, table = items.append, counts.update, {'pop': items.pop}
        """,
        "push(5), update('ab'), items, dict(counts), table['pop'](), items",
        (None, None, [1], {"a": 2, "b": 1}, 5, [1]),
    ),
    "what operator makes": (
        """
        import operator
        found = [
            operator.itemgetter(1), operator.itemgetter('a', 'b'), operator.attrgetter('real', 'imag'),
            operator.methodcaller('upper'), operator.itemgetter(slice(0, 2)),
            operator.methodcaller('split', ',', maxsplit=1), operator.attrgetter('x.y'),
        ]
        """,
        """(
            found[0]([1, 2]), found[1]({'a': 1, 'b': 2}), found[2](3), found[3]('x'), found[4]([1, 2, 3]),
            found[5]('a,b,c'), repr(found[6]),
        )""",
        (2, (1, 2), (3, 0), "X", [1, 2], ["a", "b,c"], "operator.attrgetter('x.y')"),
    ),
    "partials of them": (
        """
        import functools, operator
        double = functools.partial(operator.mul, 2)
        upper = functools.partial(map, str.upper)
        """,
        "double(4), list(upper('ab'))",
        (8, ["A", "B"]),
    ),
    "functions that remember": (
        """
        import functools
        @functools.lru_cache(maxsize=4)
        def f(a): return a * 2
        @functools.cache
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        """,
        "f(3), fib(20), f.cache_info().maxsize, f.cache_clear(), fib.cache_clear()",
        (6, 6765, 4, None, None),
    ),
    "a context manager": (
        """
        from contextlib import contextmanager
        seen = []
        @contextmanager
        def noted(x):
            seen.append(x)
            yield x + 1
            seen.append('out')
        def use(x):
            with noted(x) as y:
                return y
        """,
        "use(1)",
        2,
    ),
    "a property by itself": (
        """
        def get(self): return self.x * 2
        double = property(get, doc='twice')
        class A:
            x = 4
            y = double
        """,
        "A().y, double.fget(A()), double.__doc__",
        (8, 8, "twice"),
    ),
    "a comparison": (
        """
        import functools
        key = functools.cmp_to_key(lambda a, b: b - a)
        """,
        "sorted([1, 3, 2], key=key)",
        [3, 2, 1],
    ),
    "what a class and a function hold of them": (
        """
        import math, operator
        class Calc:
            OPS = {'sqrt': math.sqrt, 'up': str.upper}
            def do(self, op, x): return self.OPS[op](x)
        def apply(op, *args, _ops={'lt': operator.lt}): return _ops[op](*args)
        c = Calc()
        """,
        "c.do('sqrt', 4), c.do('up', 'a'), apply('lt', 1, 2)",
        (2.0, "A", True),
    ),
    "a wrapper of a function": (
        """
        import functools
        def timed(label):
            calls = []
            def decorate(f):
                @functools.wraps(f)
                def inner(*args):
                    calls.append(label)
                    return len(calls), f(*args)
                return inner
            return decorate
        @timed('x')
        def add(a, b):
            "adds"
            return a + b
        """,
        "add(1, 2), add.__name__, add.__doc__, add.__wrapped__(1, 1)",
        ((1, 3), "add", "adds", 2),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_works_as_before_in_another_process(name: str, moved, make_guest) -> None:
    program, expression, expected = PROGRAMS[name]
    second = moved(textwrap.dedent(program))
    third = make_guest()
    third.session.globals.update(third.load(second.groups()))
    assert third.run(f"got = {expression}")["got"] == expected


LEFT = frozenset({"format", "format_map", "ctime", "getstate", "setstate", "no_cache"})
"""Methods of the standard set of which guests get other ones, which stand in no class: of texts, of dates, of
``secrets.SystemRandom`` and of ``ZoneInfo``."""


@pytest.mark.parametrize("module", sorted(grants().keys() - WRITTEN))
def test_every_function_of_the_standard_set_is_kept_by_its_name(module: str) -> None:
    session, other = (Sandbox().session() for _ in range(2))
    program = f"""
import {module} as module
found = {{}}
for name, value in list(vars(module).items()):
    if name[0] != "_" and callable(value):
        found[name] = value
        for part in dir(value) if isinstance(value, type) else ():
            try:
                method = None if part[0] == "_" else getattr(value, part, None)
            except AttributeError:  # which the sandbox keeps back
                continue
            if callable(method) and not isinstance(method, type):
                found[f"{{name}}.{{part}}"] = method
"""
    result = session.run(program)
    assert result.error is None
    (group,) = encode(
        {"found": session.namespace["found"]}, allow=Allow(), guest=KeptCode(Sandbox(), session)
    )
    loaded = decode(group, allow=Allow(), guest=KeptCode(Sandbox(), other))["found"]
    gone = {name for name, value in loaded.items() if type(value) is NotKept}
    assert {name for name in gone if name.rpartition(".")[2] not in LEFT} == set()


# -- what a stored byte may name -----------------------------------------------------------------


FORGED: dict[str, Any] = {
    "a name of the host": lambda b: b.host("os:system"),
    "a module": lambda b: b.host("module os"),
    "a member that is refused": lambda b: b.host("sys:settrace"),
    "a dunder path": lambda b: b.host("math:__loader__"),
    "a method by another name": lambda b: b.hosts_method(Handle(str), "__class__"),
    "a private method": lambda b: b.hosts_method(Handle(str), "_hidden"),
    "a method of a module": lambda b: b.hosts_method(os, "system"),
    "an attribute that is none": lambda b: b.hosts_method(3, "real"),
    "a method that guests have otherwise": lambda b: b.hosts_method(Handle(str), "format"),
    "what a method belongs to is gone": lambda b: b.hosts_method(NotKept("x", "y", "z"), "upper"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_name_leads_to_nothing(name: str) -> None:
    builder = Builder(Allow(), KeptCode(Sandbox()), lambda *_: {})
    assert type(FORGED[name](builder)) is NotKept


@pytest.mark.parametrize(
    ("kind", "args"),
    [("operator:call", (len, ())), ("os:system", ("true",)), ("functools:partial", (len,)), (b"x", ())],
)
def test_nothing_but_a_getter_is_called_with_what_is_stored(kind: Any, args: tuple[Any, ...]) -> None:
    builder = Builder(Allow(), KeptCode(Sandbox()), lambda *_: {})
    with pytest.raises(StateCorrupt):
        builder.getter(kind, args, {})


def test_functions_are_registered_only_with_a_dispatcher_that_was_made_here() -> None:
    builder = Builder(Allow(), KeptCode(Sandbox()), lambda *_: {})
    with pytest.raises(StateCorrupt):
        builder.fill_dispatcher(Handle(functools.singledispatch(lambda x: x)), [(Handle(int), Handle(len))])


def test_a_getter_that_comes_back_reads_as_guest_code_does(moved) -> None:
    second = moved(
        "import operator\n"
        "read = operator.attrgetter('__class__.__subclasses__')\n"
        "call = operator.methodcaller('__subclasses__')"
    )
    assert "not accessible" in str(second.session.run("read(1)").error)
    assert "not accessible" in str(second.session.run("call(int)").error)


def test_without_guest_code_they_are_markers() -> None:
    guest = KeptCode(Sandbox())
    groups = encode(
        {"f": str.upper, "g": operator.itemgetter(1), "h": operator.lt}, allow=Allow(), guest=guest
    )
    for group in groups:
        loaded = decode(Group(names=group.names, stream=group.stream), allow=Allow())
        assert [type(value) for value in loaded.values()] == [NotKept]
