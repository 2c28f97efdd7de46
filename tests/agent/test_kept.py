"""What a stored byte can ask for when the code of a guest is made again: no more than the guest itself."""

from __future__ import annotations

import pytest

from agex.agent.kept import KeptCode
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
            "sys:modules",
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
        ),
    ],
)
def test_a_forged_name_of_the_host_finds_nothing(code, name):
    with pytest.raises(KeyError):
        code.host_object(name)


def test_what_the_guest_may_name_is_found_and_is_what_the_guest_has(code):
    import math

    assert code.host_object("length") is len
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
