"""``weakref`` for guests: references and collections as in Python, and nothing that is called when an object goes.

Stopped by: sandbox.stdlib.weakref, sandbox.stdlib.source_modules.
"""

from __future__ import annotations

import gc
import weakref

import pytest

from agex.sandbox import Policy, Sandbox

HEAD = """import weakref
class Node:
    def __init__(self, name, parent=None):
        self.name = name
        self.up = None if parent is None else weakref.ref(parent)
    def __repr__(self): return f'Node({self.name})'
"""
AS_IN_PYTHON = {
    "a parent": "a = Node('a')\nb = Node('b', a)\nprint(b.up(), b.up() is a, isinstance(b.up, weakref.ref), type(b.up) is weakref.ReferenceType)\ndel a\nprint(b.up())",
    "one reference to an object": "a = Node('a')\nprint(weakref.ref(a) is weakref.ref(a), weakref.ref(a, None)() is a, hash(weakref.ref(a)) == hash(a), weakref.ref(a) == weakref.ref(Node('b')))",
    "what has none": "for x in (5, 'x', [], (), None):\n  try: weakref.ref(x)\n  except TypeError as e: print(e)",
    "in annotations": "def f(r: weakref.ref[Node] | None = None) -> 'weakref.ref[Node]': return r\nprint(f(), weakref.ref[int].__args__, issubclass(weakref.ref, weakref.ReferenceType))",
    "a cache": "class Images:\n  def __init__(self): self.known = weakref.WeakValueDictionary()\n  def get(self, n):\n    found = self.known.get(n)\n    if found is None: found = self.known[n] = Node(n)\n    return found\ni = Images()\nx = i.get('x')\nprint(i.get('x') is x, len(i.known), list(i.known.items()))\ndel x\nprint(len(i.known), 'x' in i.known, list(i.known), i.known.get('x', 0))",
    "by its values": "d = weakref.WeakValueDictionary()\na, b = Node('a'), Node('b')\nd['a'] = a\nd.update(b=b)\nprint(sorted(d), list(d.keys()), list(d.values()), d.pop('a'), d.pop('z', 1), d.setdefault('b', a), dict(d), d.copy() == d, {**d})\ntry: d['z']\nexcept KeyError as e: print(repr(e))\ntry: d['z'] = 5\nexcept TypeError as e: print(e)\ndel d['b']\nprint(len(d), bool(d))",
    "what is gone under its key": "d = weakref.WeakValueDictionary(a=Node('gone'))\nfor f in (lambda: d['a'], lambda: d.pop('a'), lambda: d.__delitem__('a'), d.popitem):\n  try: print(f())\n  except KeyError as e: print('no')",
    "by its keys": "d = weakref.WeakKeyDictionary()\na, b = Node('a'), Node('b')\nd[a] = 1\nd[b] = 2\nprint(d[a], list(d.items()), a in d, 5 in d, d.get(Node('c')), d.setdefault(b, 9), sum(d.values()), len(d))\ndel b\nprint(len(d), list(d), d.pop(a), len(d))\ntry: d[a]\nexcept KeyError as e: print('no')",
    "a set": "s = weakref.WeakSet()\na, b = Node('a'), Node('b')\ns.add(a)\ns.add(a)\ns |= {b}\nprint(len(s), a in s, 5 in s, sorted(n.name for n in s), s == weakref.WeakSet([b, a]), (s & {a}) == weakref.WeakSet([a]), len(s - {a}), s >= {a}, s.isdisjoint({a}))\ndel b\nprint(len(s), list(s))\ns.discard(a)\ns.discard(a)\nprint(len(s))\nfor f in (lambda: s.remove(a), s.pop):\n  try: f()\n  except KeyError as e: print('no')",
    "observers": "class Subject:\n  def __init__(self): self.seen = weakref.WeakSet()\n  def tell(self, x):\n    for each in self.seen: print(each, x)\ns = Subject()\nn = Node('n')\ns.seen.add(n)\ns.tell(1)\ndel n\ns.tell(2)",
    "while it is gone through": "k = [Node(i) for i in range(5)]\nd = weakref.WeakKeyDictionary({n: n.name for n in k})\nn = None\nfor n, v in d.items(): print(n, v)\nk.clear()\nn = None\nprint(len(d))",
    "many that go": "d = weakref.WeakValueDictionary()\nfor i in range(5000): d[i] = Node(i)\nprint(len(d))",
    "a class over one": "class D(weakref.WeakValueDictionary):\n  def __missing__(self, k): return k\n  def __getitem__(self, k): return super().__getitem__(k).name\nn = Node('n')\nprint(D(a=n)['a'], isinstance(D(), dict))",
    "from it": "from weakref import ref, WeakValueDictionary, WeakSet\nn = Node('n')\nprint(ref(n)(), len(WeakSet([n])))",
    "copies": "import copy\nn = Node('n')\nr = weakref.ref(n)\nprint(copy.copy(r) is r, copy.deepcopy(r) is r, len(copy.copy(weakref.WeakValueDictionary(a=n))), len(copy.copy(weakref.WeakKeyDictionary({n: 1}))))",
}  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_references_are_what_they_are_in_python(source, strict, native):
    result = Sandbox(Policy.default(strict=strict)).exec(HEAD + source)

    assert result.error is None, result.traceback
    assert result.stdout == native(HEAD + source)


class Thing:
    """What the host has, and drops."""

    def method(self):
        return 1


CALLED = {
    "a callback": "weakref.ref(thing, told.append)",
    "a callback by its name": "weakref.ref(thing, callback=told.append)",
    "of the class of a reference": "type(weakref.ref(thing))(thing, told.append)",
    "of the class of one of the host's": "type(given)(thing, told.append)",
    "of the class of one in a collection": "type(values.valuerefs()[0])(thing, told.append, 'a')",
    "of what is told of it": "given.__callback__",
    "of the references of an object": "thing.__weakref__",
    "how it is made": "weakref.ref.__new__(weakref.ref, thing, told.append)",
    "how one of the host's is made": "type(given).__new__(type(given), thing, told.append)",
    "made anew": "given.__init__(thing, told.append)",
    "a class over it": "class R(weakref.ref):\n  pass\nkept.append(R(thing, told.append))",
    "a class over the host's": "class R(type(given)):\n  pass\nkept.append(R(thing, told.append))",
    "an alias of it": "weakref.ref[int](thing, told.append)",
    "in a collection of the host's": "class V(type(values)):\n  _iterating = property(told.append)\nkept.append(V(a=thing))",
    "another of the host's": "type(values)(a=thing)",
    "an end": "weakref.finalize(thing, told.append, 1)",
    "what stands for it": "weakref.proxy(thing, told.append)",
    "a method": "weakref.WeakMethod(thing.method, told.append)",
    "all references": "weakref.getweakrefs(thing)",
    "what the collections use": "weakref._remove_dead_weakref",
    "the one in C": "weakref.weakref",
    "a helper": "weakref.ref.__class__",
}  # fmt: skip


@pytest.mark.parametrize("attack", CALLED.values(), ids=CALLED)
def test_nothing_is_called_when_an_object_of_the_host_is_dropped(attack):
    told: list[object] = []
    kept: list[object] = []
    thing, item = Thing(), Thing()
    session = Sandbox().session(
        {
            "told": told,
            "kept": kept,
            "thing": thing,
            "given": weakref.ref(thing),
            "values": weakref.WeakValueDictionary(a=item),
        }
    )
    made = attack if "class" in attack.split()[0] else f"x = {attack}\nkept.append(x)"

    refused = repr(session.run(f"import weakref\n{made}").error)
    watched = weakref.ref(thing)
    session.run("del thing")
    del thing
    gc.collect()

    assert refused.startswith(("Sandbox", "TypeError", "AttributeError")) or attack.endswith("__class__")
    assert watched() is None
    assert told == []


def test_a_collection_outlives_its_run_and_calls_nobody():
    source = "import weakref\nclass D(weakref.WeakValueDictionary):\n  def _forget(self): told.append(self)\nd = D()\nd['a'] = thing"
    told: list[object] = []
    thing = Thing()
    session = Sandbox().session({"told": told, "thing": thing})

    assert session.run(source).error is None
    session.run("del thing")
    del thing

    assert told == []
    assert session.run("x = d.get('a')").error is None
    assert session.globals["x"] is None
