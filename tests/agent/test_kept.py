"""What a stored byte can ask for when the code of a guest is made again: no more than the guest itself."""

from __future__ import annotations

import os
import sys
import types

import pytest

from agex.agent.task.state_codec import KeptCode
from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox


@pytest.fixture
def code():
    policy = Policy.default()
    policy.fn(len, name="length")
    return KeptCode(Sandbox(policy))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "module os",
            "module subprocess",
            "module agex.sandbox",
            "module builtins",
            "os:system",
            "builtins:exec",
        ),
        *("check!", "own!", "trip!", "__import__", "__build_class__", "__builtins__", "_hidden", "nowhere"),
        *(
            "math:__loader__",
            "math:__spec__",
            "json:decoder:JSONDecoder",
            "module",
            "module ",
            ":",
            "math:",
            ":sqrt",
        ),
        *(
            "sys:_getframe",
            "functools:RLock",
            "types:CodeType",
            "types:FrameType",
            "types:FunctionType:__code__",
            "logging:__builtins__",
            "logging:_loggers",
            "logging:calling_place:__globals__",
            "logging:os",
            "module logging.handlers",
            "weakref:finalize",
            "weakref:_remove_dead_weakref",
            "xml.etree.ElementTree:expat_feed:__closure__",
            "module pyexpat",
            "posix:system",
            "operator:call",
            "operator:attrgetter.__init__",
            "json:decoder",
            "random:SystemRandom",
            "str.upper",
            "str:upper",
            "collections:abc._sys",
        ),
    ],
)
def test_a_forged_name_of_the_host_finds_nothing(code, name):
    with pytest.raises(KeyError):
        code.host_object(name)
    assert code.at_home(name) is None


class Vault:
    """A class of the host, of which a registration leaves a method out."""

    def open(self) -> str:
        return "open"

    def secret(self) -> str:
        return "secret"

    @property
    def content(self) -> str:
        raise AssertionError("a property was read")

    def __getstate__(self) -> object:
        raise AssertionError("a method was called")


class Answering(Vault):
    """One that answers itself for its attributes."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError("it was asked")


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        *(
            (Vault, "secret"),
            (Vault(), "secret"),
            (Vault(), "content"),
            (Vault, "content"),
            (Vault, "nothing"),
        ),
        *((Vault, "__init__"), (Vault, "__subclasses__"), (Vault(), "__getstate__"), (Vault, "mro")),
        *((Answering(), "open"), (str, "__add__"), ("", "__class__"), (type, "mro")),
        *((os, "system"), (sys, "exit"), (len, "__call__"), (len, "__self__"), (str, b"upper"), (str, "")),
        *((types.FunctionType, "__code__"), (lambda: None, "__globals__"), (object, "__subclasses__")),
    ],
    ids=lambda each: str(each).partition(" at 0x")[0],
)
def test_a_forged_method_of_the_host_is_not_read(owner, name):
    policy = Policy.default()
    policy.cls(Vault, exclude=("secret",))
    with pytest.raises(KeyError):
        KeptCode(Sandbox(policy)).method(owner, name)


def test_a_method_that_the_guest_may_read_is_read(code):
    assert code.method(str, "upper")("a") == "A"
    assert code.method([1], "count")(1) == 1
    assert code.method_of(str.upper) == (str, "upper")
    assert code.method_of(os.system) is None
    assert code.method_of("".format) in {None, ("", "format")}


def test_an_object_of_the_guest_is_not_asked_for_a_method(code):
    session = Sandbox().session()
    session.run(
        "class A:\n    def m(self): return 1\n    def __getattr__(self, name): raise SystemExit\na = A()"
    )
    with pytest.raises(KeyError):
        code.method(session.namespace["a"], "m")


def test_what_the_guest_may_name_is_found_and_is_what_the_guest_has(code):
    import math

    assert code.host_object("length")("ab") == 2
    assert code.host_name(code.host_object("length")) == "length"
    assert code.host_object("math:sqrt") is math.sqrt
    assert code.host_name(code.host_object("module math")) == "module math"
    assert code.host_name(math) is None, "the real module is not the guest's"
    assert not hasattr(code.host_object("module random"), "_inst")


@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef f(): return os.getpid()",
        "def f(): return (0).__class__.__base__.__subclasses__()",
        "f = open('/etc/hostname').read",
        "f = __import__('os').getpid",
    ],
)
def test_a_forged_source_runs_under_the_guards(code, source):
    namespace = {}
    with pytest.raises((SandboxError, NameError, SyntaxError)):
        code.rebuild(source, "f", namespace)


def test_a_forged_namespace_does_not_bring_builtins_of_its_own(code):
    namespace = {"__builtins__": {"check!": lambda receiver, name: receiver, "__import__": __import__}}
    with pytest.raises(SandboxError):
        code.rebuild("import os\ndef f(): return os.getpid()", "f", namespace)
