"""A guard may look at a variable once for a whole block: only while nothing binds it anew.

Stopped by: sandbox.language.local_variables, sandbox.guards.verdict_cache.
"""

import re
import types

import pytest

from agex.errors import SandboxAttributeError, SandboxError
from agex.sandbox import Policy, Sandbox
from agex.sandbox.rules import ruleset as rules

BINDINGS = {
    "assignment": "v = host",
    "annotated": "v: object = host",
    "unpacking": "v, *_ = host, 1",
    "starred": "*v, = host,\n    v = v[0]",
    "walrus": "(v := host)",
    "walrus in a comprehension": "[(v := each) for each in [host]]",
    "walrus in a nested comprehension": "[[(v := each) for each in [host]] for _ in [1]]",
    "walrus in a generator": "list((v := each) for each in [host])",
    "walrus in a lambda's default": "(lambda x=(v := host): x)",
    "walrus in the iterable of a loop": "for _ in [v := host]: pass",
    "for": "for v in [host]: pass",
    "for, unpacked": "for i, (v, w) in [(1, (host, 2))]: pass",
    "for, inside another": "for _ in [1]:\n        for v in [host]: pass",
    "with": "with handed(host) as v: pass",
    "with, unpacked": "with handed((host, 1)) as (v, w): pass",
    "match": "match host:\n        case v: pass",
    "match, as": "match host:\n        case object() as v: pass",
    "match, sequence": "match [host]:\n        case [v]: pass",
    "match, star": "match [host]:\n        case [*v]: v = v[0]",
    "match, mapping": "match {'k': host}:\n        case {'k': v}: pass",
    "augmented": "v += host",
    "deleted and bound": "del v\n    v = host",
    "nonlocal": "def bind():\n        nonlocal v\n        v = host\n    bind()",
    "nonlocal, two functions in": (
        "def outer():\n        def bind():\n            nonlocal v\n            v = host\n        bind()\n    outer()"
    ),
    "nonlocal, in a class": (
        "class C:\n        def bind(self):\n            nonlocal v\n            v = host\n    C().bind()"
    ),
    "nonlocal, in a class body": "class C:\n        nonlocal v\n        v = host",
    "def": "def v(): pass\n    v = host",
    "import": "import host_module as v",
    "from import": "from host_module import thing as v",
}
USES = {
    "private": "return v._hidden",
    "store": "v.open = 'changed'",
    "delete": "del v.open",
    "in a branch": "if True:\n        return v._hidden",
    "in a loop": "for _ in range(2):\n        v.open = 'changed'",
    "augmented": "v.open += 'x'",
}

PROGRAM = """
import contextlib

class Own:
    open = ""
    def __init__(self):
        self._a, self._b, self._hidden = 1, 2, 3
        self.open = "own"
    def __iadd__(self, other):
        return other

@contextlib.contextmanager
def handed(value):
    yield value

def attack(v, host):
    v._a = v._b
    v.open = v._hidden
    {binding}
    {use}

def attack_in_loop(host, given):
    for v in [given]:
        v._a = v._b
        v.open = v._hidden
        {binding_in_loop}
        {use_in_loop}

{attack}(*{arguments})
"""


METHOD = (
    PROGRAM.partition("def attack")[0]
    + """
class Method:
    def attack(v, host):
        v._a = v._b
        v.open = v._hidden
        {binding_in_loop}
        {use_in_loop}

Method.{attack}(*{arguments})
"""
)


PRIVATE = """
class C:
    def attack(self, {looked_at}, host):
        {looked_at}._a = {looked_at}._b
        {looked_at}.open = {looked_at}._hidden
        {binding}
        {use}

C().attack(Own(), host)
"""
"""In the class C, __v and _C__v are the same variable."""


class Thing:
    """What a host hands over."""

    def __init__(self) -> None:
        self.open = "host"
        self._hidden = "secret"


@pytest.fixture
def thing() -> Thing:
    return Thing()


@pytest.fixture
def sandbox(thing: Thing) -> Sandbox:
    module = types.ModuleType("host_module")
    module.thing = module.open = thing  # type: ignore[attr-defined]
    policy = Policy.default()
    policy.module(module, name="host_module")
    return Sandbox(policy)


def refuses(sandbox: Sandbox, program: str, thing: Thing) -> bool:
    result = sandbox.exec(program, namespace={"host": thing})
    return isinstance(result.error, SandboxError) and vars(thing) == {"open": "host", "_hidden": "secret"}


@pytest.mark.parametrize("where", ["parameter", "self", "loop"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_variable_bound_anew_is_looked_at_again(
    sandbox: Sandbox, thing: Thing, binding: str, use: str, where: str
) -> None:
    program = (METHOD if where == "self" else PROGRAM).format(
        binding=BINDINGS[binding],
        use=USES[use],
        binding_in_loop=BINDINGS[binding].replace("\n", "\n    "),
        use_in_loop=USES[use].replace("\n", "\n    "),
        attack="attack_in_loop" if where == "loop" else "attack",
        arguments="(host, Own())" if where == "loop" else "(Own(), host)",
    )
    assert refuses(sandbox, program, thing)


@pytest.mark.parametrize(("looked_at", "bound"), [("__v", "_C__v"), ("_C__v", "__v")])
@pytest.mark.parametrize("binding", [name for name in BINDINGS if "in a class" not in name])
def test_a_private_variable_has_two_names(
    sandbox: Sandbox, thing: Thing, binding: str, looked_at: str, bound: str
) -> None:
    classes = PROGRAM.partition("def attack")[0]
    program = classes + PRIVATE.format(
        looked_at=looked_at,
        binding=re.sub(r"\bv\b", bound, BINDINGS[binding]).replace("\n", "\n    "),
        use=f"return {looked_at}._hidden",
    )
    assert refuses(sandbox, program, thing)


@pytest.mark.parametrize(
    "expression",
    [
        "[x._hidden for x in [host]]",
        "{x._hidden for x in [host]}",
        "{x._hidden: 1 for x in [host]}",
        "{1: x._hidden for x in [host]}",
        "list(x._hidden for x in [host])",
        "[1 for x in [host] if x._hidden]",
        "[1 for x in [host] for y in x._hidden]",
        "[x for x in [host] for x in x._hidden]",
        "[[x._hidden for y in [1]] for x in [host]]",
        "[y for x in [host] for y in [z._hidden for z in [x]]]",
        "[(lambda: x._hidden)() for x in [host]]",
        "[(lambda x: x._hidden)(x) for x in [host]]",
        "[(lambda y=x._hidden: y)() for x in [host]]",
        "[a._hidden for a, b in [(host, 1)]]",
        "[a._hidden for [*a], b in [([host], 1)] for a in a]",
        "[x for x in host._hidden]",
        "(lambda x: [x for x in x._hidden])(host)",
        "(lambda x, own: [x._hidden for own in [1]])(host, 1)",
    ],
)
def test_a_comprehension_asks_about_what_it_binds(thing: Thing, expression: str) -> None:
    for program in (expression, f"def f(): return {expression}\nf()", f"class C: y = {expression}"):
        result = Sandbox(Policy.default()).exec(program, namespace={"host": thing})
        assert isinstance(result.error, SandboxError), program


def test_a_handler_binds_the_variable_anew(thing: Thing) -> None:
    def fail() -> None:
        error = LookupError()
        error._hidden = thing  # type: ignore[attr-defined]
        raise error

    program = """
class Own:
    pass

def attack(v):
    v._a = 1
    v._b = 2
    try:
        fail()
    except LookupError as v:
        return v._hidden

attack(Own())
"""
    policy = Policy.default()
    policy.fn(fail)
    assert isinstance(Sandbox(policy).exec(program).error, SandboxError)


def test_one_look_serves_every_object_by_itself(thing: Thing) -> None:
    program = """
class Own:
    pass

def each(things):
    done = []
    for thing in things:
        try:
            thing.a = 1
            thing.b = 2
            done.append("changed")
        except AttributeError as error:
            done.append(type(error).__name__)
    return done

own = Own()
each([own, host, own, 3, own])
"""
    result = Sandbox(Policy.default()).exec(program, namespace={"host": thing})
    refused = "SandboxAttributeError"
    assert result.value == ["changed", refused, "changed", refused, "changed"]
    assert vars(thing) == {"open": "host", "_hidden": "secret"}


def test_what_was_looked_at_is_no_variable_of_the_guest() -> None:
    program = """
class Own:
    def __init__(self, a):
        self.a = a
        self.b = a
        self.seen = sorted(locals()), sorted(vars()), dir()

def loop():
    for own in []:
        own.a = 1
        own.b = 2
    own.c = 3

try:
    loop()
except UnboundLocalError as error:
    said = str(error)
Own(1).seen, said
"""
    names = ["a", "self"]
    value = Sandbox(Policy.default()).exec(program).value
    assert value[0] == (names, names, names)
    assert "'own'" in value[1]


@pytest.mark.parametrize("use", ["v._hidden, v._hidden", "v.open = v.other = 1", "del v.open, v.other"])
def test_an_error_shows_the_object_itself(thing: Thing, use: str) -> None:
    for program in (
        f"def attack(v):\n    {use}\nattack(host)",
        f"class C:\n  def attack(v):\n    {use}\nC.attack(host)",
    ):
        error = Sandbox(Policy.default()).exec(program, namespace={"host": thing}).error
        assert isinstance(error, SandboxAttributeError)
        assert error.obj in (None, thing)  # not what stands for it
        assert "'Thing'" in str(error)


KINDS = {
    "a class of the guest": ("class C: old = 1", "C"),
    "its object": ("class C:\n    def __init__(self): self.old = 1", "C()"),
    "its error": ("class C(Exception):\n    def __init__(self): self.old = 1", "C()"),
    "an error": ("C = ValueError()\nC.old = 1", "C"),
    "a function": ("def C(): pass\nC.old = 1", "C"),
    "an object with slots": (
        "class C:\n    __slots__ = ('new', 'old', '_p', '_D__m', 'seen')\n    def __init__(self): self.old = 1",
        "C()",
    ),
    "an object of a class with a metaclass": (
        """
class M(type):
    def __hash__(cls): return 1
    def __eq__(cls, other): return True
class C(metaclass=M):
    def __init__(self): self.old = 1
""",
        "C()",
    ),
    "an object that answers by itself": (
        """
class C:
    def __init__(self): self.__dict__.update(old=1)
    def __getattr__(self, name): return name + '?'
    def __setattr__(self, name, value): object.__setattr__(self, name, (name, value))
    def __delattr__(self, name): print('gone:', name)
""",
        "C()",
    ),
    "an object of a class that inherits from the host's": (
        "class C(Base):\n    def __init__(self): self.old = self.kept = 1",
        "C()",
    ),
    "an object of the host's": ("", "Base()"),
    "a number": ("", "3"),
    "a module": ("import math", "math"),
    "a builtin class": ("", "dict"),
}
WHAT = [
    "v.new = 1; v.new += 2; print(v.new)",
    "v._p = 1; print(v._p, v._p)",
    "del v.old; print(hasattr(v, 'old'))\n    v.seen = 1",
    "v.__m = [1]; v.__m += [2]; print(v.__m)",
    "print(v.__class__.__name__, v.__class__.__name__)",
    "(v.new, v._p), v.seen = (1, 2), 3; print(v.new, v._p)",
    "v.new = 1\n    for v.seen in range(3): pass\n    print(v.seen)",
    "v._nowhere(); v._nowhere()",
    "v.kept = 1; v.kept += 1; v.left_out = 1; v.left_out += 1; print(v.kept, v.left_out)",
    "v.open = 1; v.own = 2; v.own += v.open; print(v.own)",
]


class Base:
    """What the host lets a guest inherit from, and says some members of."""

    kept = 0
    left_out = 0


@pytest.mark.parametrize("use", WHAT)
@pytest.mark.parametrize("kind", KINDS)
def test_asked_often_is_asked_each_time(kind: str, use: str) -> None:
    before, value = KINDS[kind]
    as_self = f"class D:\n  def f(v):\n    {use}\nD.f({value})"
    often = f"class D:\n  def f(self, v):\n    {use}\nD().f({value})"
    # Here the parameter may be bound anew, so each use is looked at by itself.
    each = often.replace("\nD()", "\n    v = 1\nD()")
    policy = Policy.default()
    policy.cls(Base, include=["kept", "own"])
    first, *others = [Sandbox(policy).exec(f"{before}\n{program}") for program in (each, often, as_self)]
    for other in others:
        assert other.stdout == first.stdout
        assert type(other.error) is type(first.error)
        assert str(other.error) == str(first.error)


def test_what_stands_for_an_object_is_never_a_value(thing: Thing) -> None:
    program = """
class C:
    def attack(v):
        for use in (lambda: v._a, lambda: v._b):
            try: use()
            except AttributeError: pass
        try:
            v.other = v.open = 1
        except AttributeError as error:
            said = error
        found = [v, *locals().values(), *vars().values(), *error_parts(said), eval("v"), (lambda: v)()]
        for inner in (n for n in [v]): found.append(inner)
        exec("found.append(v)")
        return [type(each).__name__ for each in found]

def error_parts(error):
    return [*error.args, error.__cause__, error.__context__]

C.attack(host)
"""
    value = Sandbox(Policy.default()).exec(program, namespace={"host": thing}).value
    assert value.count("Thing") >= 5
    assert "Asked" not in value
    assert vars(thing) == {"open": "host", "_hidden": "secret"}


@pytest.mark.parametrize("helper", rules.HELPERS)
def test_no_helper_can_be_named(helper: str) -> None:
    ways = ["globals()[{0!r}]", "locals()[{0!r}]", "vars()[{0!r}]", "eval({0!r})", "getattr(print, {0!r})"]
    for way in [*ways, "exec({0!r})", "__import__('builtins').__dict__[{0!r}]", "(lambda: eval({0!r}))()"]:
        result = Sandbox(Policy.default()).exec(way.format(helper))
        assert result.error is not None, way
        assert result.value is None
