"""``func`` of a partial and its kin: what a public one is made of is no way to what is not public.

Stopped by: sandbox.guards.wrapped_functions.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import pytest

from agex.errors import SandboxAttributeError
from agex.sandbox import Policy, Sandbox


class Client:
    def __init__(self) -> None:
        self.later = functools.partial(self._request, "GET")
        self.listed = functools.partial(self.request, "LIST")

    def _request(self, method: str) -> str:
        return f"{method} done"

    def request(self, method: str) -> str:
        return f"{method} asked"

    def seen(self) -> str:
        return "seen"

    get = functools.partialmethod(_request, "GET")

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        self.token: Any = "SECRET"
        yield


def _read_all(path: str) -> str:
    return path


WAYS = {
    "a partial method": "client.get.func('DELETE')",
    "a partial": "client.later.func('DELETE')",
    "a partial of one": "import functools\nfunctools.partial(client.get).func.func('DELETE')",
    "a partial of one on the object": "import functools\nfunctools.partial(client.later).func('DELETE')",
    "a partial of a class of its own": (
        "import functools\nclass P(functools.partial): pass\nP(client.later).func('DELETE')"
    ),
    "by name": "import operator\noperator.attrgetter('get.func')(client)('DELETE')",
    "in a text": "'{0.get.func}'.format(client)",
    "in a pattern": "match client.later:\n  case object(func=f): f('DELETE')",
    "what a registration leaves out": "client.listed.func('DELETE')",
    "a function of the host's": "read.func('/etc/passwd')",
    "a builtin of the host's": "opened.func('/etc/passwd')",
    "a context manager": "class Own: pass\nown = Own()\nnext(client.session().func(own))\nown.token",
}


def _given() -> dict[str, Any]:
    return {
        "client": Client(),
        "read": functools.partial(_read_all, "data.csv"),
        "opened": functools.partial(open, "data.csv"),
    }


def _policy(*, strict: bool) -> Policy:
    policy = Policy.default(strict=strict)
    policy.cls(Client, exclude=["_*", "request"])
    return policy


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS)
def test_what_a_partial_is_made_of_is_given_where_it_could_be_named(source: str, strict: bool) -> None:
    result = Sandbox(_policy(strict=strict)).exec(source, _given())

    assert isinstance(result.error, SandboxAttributeError), (result.value, result.error)


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
def test_a_guest_reads_what_its_own_partials_are_made_of(strict: bool) -> None:
    source = (
        "import asyncio, contextlib, functools, heapq, json, math, operator, random, re, statistics\n"
        "def f(a, b=1): return a\n"
        "class K:\n"
        "  def m(self, x): return x\n"
        "  part = functools.partialmethod(m, 3)\n"
        "  @classmethod\n"
        "  def make(cls, x): return x\n"
        "given = [f, print, len, int, str.upper, max, getattr, isinstance, type, math.sqrt, operator.add]\n"
        "given += [K().m, K.make, K, ''.join, [].append, random.randint, random.random, json.dumps, re.sub]\n"
        "given += [asyncio.sleep, statistics.mean, heapq.heappush, functools.reduce, client.seen, lambda: 1]\n"
        "@contextlib.contextmanager\n"
        "def manager(): yield 1\n"
        "match functools.partial(f, 2):\n"
        "  case functools.partial(func=found, args=(2,)): pass\n"
        "whole = [functools.partial(each).func == each for each in given]\n"
        "(all(whole), found is f, K().part.func(5), list(manager().func()))"
    )
    result = Sandbox(_policy(strict=strict)).exec(source, _given())

    assert result.error is None, result.error
    assert result.value == (True, True, 5, [1])
