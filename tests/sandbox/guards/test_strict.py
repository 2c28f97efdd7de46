"""A strict policy decides about every attribute when it is read, also where nobody could foresee its name.

Stopped by: sandbox.guards.strict_checks.
"""

import abc
import collections
import datetime as dt
import functools
import logging
import os
import sys
import types
from typing import Any, Generic, TypeVar

import pandas as pd
import pytest

from agex.errors import SandboxError
from agex.files import connect_fs
from agex.sandbox import Policy, Sandbox
from agex.sandbox.policy.module_grant import is_for_guests


class Vault:
    """Has members that show in no code of its own."""

    def __init__(self) -> None:
        vars(self)["tok" + "en"] = "secret"

    def open(self) -> str:
        return "opened"

    def __getattr__(self, name: str) -> str:
        if name.startswith("account_"):
            return "secret"
        raise AttributeError(name)


class Abstract(abc.ABC):
    @abc.abstractmethod
    def open(self) -> str:
        return "opened"


class Other(abc.ABC):
    token = "open to all"

    @abc.abstractmethod
    def close(self) -> None: ...


class Held:
    __class_getitem__ = classmethod(types.GenericAlias)


Abstract.token = Held.token = "secret"  # type: ignore[attr-defined]


class Service:
    """Leads to modules, as objects of large libraries do."""

    def __init__(self) -> None:
        self.os = os
        self.started = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
        self.parts = [types.SimpleNamespace(home=os, name="part")]
        self.log = logging.getLogger("service")


class Lazy(types.ModuleType):
    def __getattr__(self, name: str) -> str:
        return "secret"


def plugin(name: str) -> types.ModuleType:
    """Make a module that no table of the interpreter knows, as hosts do that load plugins."""
    made = types.ModuleType(name)
    vars(made).update(token="secret", clean="secret", system=os.system)
    return made


def strict() -> Policy:
    policy = Policy.default(strict=True)
    for class_ in (Vault, Abstract, Held):
        policy.cls(class_, include=["open"])
    policy.cls(Other)
    return policy


def given() -> dict[str, Any]:
    return {
        "vault": Vault(),
        "service": Service(),
        "system": sys,
        "plugin": plugin("plugin"),
        "lazy": Lazy("lazy"),
    }


UNFORESEEN = {
    "in the instance": "vault.token",
    "from __getattr__": "vault.account_1",
    "getattr": "getattr(vault, 'account_1')",
    "getattr with a default": "getattr(vault, 'token', None)",
    "in a comprehension": "[each.token for each in [vault]]",
    "in a loop": "def f(vaults):\n    for each in vaults:\n        each.token\nf([vault])",
    "twice": "def f(vault):\n    vault.open()\n    vault.token\nf(vault)",
    "in a format": "'{0.token}'.format(vault)",
    "attrgetter": "import operator\noperator.attrgetter('token')(vault)",
    "a pattern": "match vault:\n    case Vault(token=found): pass",
    "of a new one": "Vault().token",
    "an own class over it": "class Own(Vault): pass\nOwn().account_1",
    "an own class, read inside": "class Own(Vault):\n    def f(self): return self.account_1\nOwn().f()",
    "super": "class Own(Vault):\n    def f(self): return super().account_1\nOwn().f()",
    "behind a name of its own": "class Own(Vault):\n    token = None\nOwn().token",
    "of a class": "Abstract.token",
    "of a class, after another": "Other.token\nAbstract.token",
    "of an alias, after another": "list[int].append\nHeld[int].token",
    "after another passed": "class Own(Vault):\n    token = None\n    open\nOwn().open()\nOwn().token",
}
MODULES = {
    "an attribute": "service.os.environ",
    "getattr": "getattr(service.os, 'environ')",
    "vars": "vars(service.os)",
    "a call": "service.os.getpid()",
    "further on": "service.parts[0].home.environ",
    "given itself": "system.modules",
    "in a comprehension": "[each.environ for each in [service.os]]",
    "in a format": "'{0.os.environ}'.format(service)",
    "attrgetter": "import operator\noperator.attrgetter('os.environ')(service)",
    "methodcaller": "import operator\noperator.methodcaller('getpid')(service.os)",
    "a pattern": "match service:\n    case object(os=object(environ=found)): pass",
    "a dotted pattern": "match 1:\n    case service.os.environ: pass",
    "by a name that a class excludes": "service.parts[0].home.system('true')",
    "by a name that objects have, too": "service.parts[0].home.register",
    "not known to the interpreter": "plugin.clean",
    "not known to it, by a name that a class excludes": "plugin.system",
    "not known to it, looked into": "vars(plugin)",
    "of a class of its own": "lazy.anything",
    "its names": "dir(system)",
}
OF_STRICT = {*list(MODULES)[-7:], "further on", "given itself"}


@pytest.mark.parametrize("name", UNFORESEEN)
def test_an_include_list_holds_for_names_nobody_could_foresee(name: str) -> None:
    result = Sandbox(strict()).exec(UNFORESEEN[name], namespace=given())
    assert isinstance(result.error, SandboxError), result


@pytest.mark.parametrize("name", [name for name in MODULES if name not in OF_STRICT])
def test_without_a_strict_policy_no_object_leads_to_a_module_by_its_name(name: str) -> None:
    result = Sandbox(Policy.default()).exec(MODULES[name], namespace=given())
    assert isinstance(result.error, SandboxError), result


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_an_object_leads_to_answers_nothing(name: str) -> None:
    policy = strict()
    policy.cls(Service, exclude=["system"])
    result = Sandbox(policy).exec(MODULES[name], namespace=given())
    assert isinstance(result.error, SandboxError), result


def test_a_module_that_was_imported_answers_as_ever() -> None:
    program = """
import math, os, os.path, json, collections.abc, pandas as pd, helpers, package.part
from package import part
found = [math.pi > 3, os.sep, os.path.join("a", "b"), vars(json)["dumps"](1), collections.abc.Sized.__name__,
         "Series" in dir(pd), helpers.format, part.register, package.part.x]
"""
    files = connect_fs()
    for path, text in {
        "helpers.py": "format = 1",
        "package/__init__.py": "",
        "package/part.py": "register = x = 2",
    }.items():
        files.write(path, text)
    policy = strict()
    policy.module(pd)
    policy.cls(Service, exclude=["system", "sep", "pi"])
    session = Sandbox(policy, fs=files).session()
    assert session.run(program).error is None
    assert session.namespace["found"] == [True, "/", "a/b", "1", "Sized", True, 1, 2, 2]


def test_no_module_of_the_host_is_taken_for_one_that_was_made_for_guests() -> None:
    policy = strict()
    policy.module(pd)
    sandbox = Sandbox(policy, fs=connect_fs())
    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    names = sorted(public | {"os.path", "collections.abc", "json.decoder", "urllib.parse"})
    found = sandbox.exec(f"""
found = []
for name in {names!r}:
    try:
        exec("import " + name)
    except ImportError:
        continue
    found.append(name)
import pandas as pd, pandas.api.types
""").namespace["found"]
    assert {"collections.abc", "json", "math", "os", "os.path", "pathlib", "re", "zipfile"} <= set(found)
    assert [name for name, module in sys.modules.items() if is_for_guests(module)] == []


def test_what_is_registered_while_a_session_lives_holds_from_then_on() -> None:
    class Late:
        def __init__(self) -> None:
            self.shown = 1

    policy = strict()
    session = Sandbox(policy).session()
    session.add({"late": Late()})
    assert session.run("def read(x): return x.shown\nread(late)").value == 1
    policy.cls(Late, exclude=["shown"])
    assert isinstance(session.run("read(late)").error, SandboxError)


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("vault.open()", "opened"),
        ("Vault().open()", "opened"),
        ("class Own(Vault):\n    def f(self): return self.open() + self.g()\n    def g(self): return '!'\nOwn().f()", "opened!"),
        ("class Own(Vault):\n    limit = 3\nOwn().limit, Own.limit", (3, 3)),
        ("service.started.year, service.parts[0].name, service.log.name", (2026, "part", "service")),
        ("import math, collections\nmath.floor(2.5), collections.Counter('aab').most_common(1)", (2, [("a", 2)])),
        ("import re\n[m.group() for m in re.finditer('a.', 'abac')]", ["ab", "ac"]),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    def d(self): return self.x * 2\nP(2).d()", 4),
        ("list[int].__origin__ is list, list[int].mro is not None", (True, True)),
        ("class M(type):\n    def f(cls): return cls.__name__\nclass C(metaclass=M): pass\nC.f()", "C"),
        ("points.x, points._asdict()", (1, {"x": 1})),
        ("def f(K):\n    match 1:\n        case K(): return 'K'\n        case _: return 'other'\ntry: r = f(None)\nexcept TypeError: r = 'no class'\nr", "no class"),
    ],
)  # fmt: skip
def test_what_nothing_excludes_is_read_as_ever(program: str, value: object) -> None:
    points = collections.namedtuple("points", "x")(1)  # noqa: PYI024 - of the kind that hosts hand over
    result = Sandbox(strict()).exec(program, namespace={**given(), "points": points})
    assert result.error is None
    assert result.value == value


T = TypeVar("T")


class Client(Generic[T]):
    """Puts what it alone may hold into the object that a method of it is called with."""

    def connect(self, *args: object) -> str:
        self._session = "secret"
        return "connected"

    def open(self) -> str:
        return self.connect()

    @property
    def status(self) -> str:
        return self.connect()

    @functools.cached_property
    def region(self) -> str:
        return self.connect()

    again = functools.partialmethod(connect)
    kept = functools.lru_cache(connect)

    @classmethod
    def make(cls) -> "Client[T]":
        return cls()

    @staticmethod
    def label(text: str) -> str:
        return f"client {text}"


class Near(Client[int]):
    """A class of the host's over another."""


BORROWED = {
    "read off the class": "Client.connect(x)",
    "given by its name": "Client.connect(self=x)",
    "of a contested name": "Client.open(x)",
    "of an alias": "Client[int].connect(x)",
    "of an alias, contested": "Client[int].open(x)",
    "by type": "type(client).connect(x)",
    "getattr": "getattr(Client, 'connect')(x)",
    "attrgetter": "import operator\noperator.attrgetter('connect')(Client)(x)",
    "methodcaller": "import operator\noperator.methodcaller('connect', x)(Client)",
    "a class over it": "class Own(Client): pass\nOwn.connect(x)",
    "super": "class Own(Client):\n    def f(self, x): super(Own, Own).connect(x)\nOwn().f(x)",
    "super, contested": "class Own(Client):\n    def f(self, x): super(Own, Own).open(x)\nOwn().f(x)",
    "a method of another class": "class Other(X):\n    connect = Client.connect\nx = Other()\nx.connect()",
    "partialmethod": "import functools\nclass Other(X):\n    f = functools.partialmethod(Client.connect)\nx = Other()\nx.f()",
    "bound to another": "client.connect.__get__(x, X)(); Client.connect(x)",
    "one of its own": "Client.again(x)",
    "one that is kept": "Client.kept(x)",
    "a property": "class Other(X):\n    status = Client.status\nx = Other()\nx.status",
    "a property that is kept": "class Other(X):\n    region = Client.region\nx = Other()\nx.region",
    "an object of a base": "Near.connect(client) and Vault.open(client)",
}  # fmt: skip


def strict_with_clients() -> Policy:
    policy = strict()
    for class_ in (Client, Near):
        policy.cls(class_)
    policy.cls(Abstract, exclude=["open"])
    return policy


@pytest.mark.parametrize("name", BORROWED)
def test_what_is_read_off_a_class_takes_objects_of_that_class_alone(name: str) -> None:
    client = Client[int]()
    program = f"class X: pass\nx = X()\ntry:\n    {BORROWED[name].replace(chr(10), chr(10) + '    ')}\nfinally:\n    found = vars(x)"
    session = Sandbox(strict_with_clients()).session()
    session.add({"client": client})
    result = session.run(program)
    assert isinstance(result.error, SandboxError), result
    assert "secret" not in str(session.look_up("found"))


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("Client.connect(client), Client.connect(near), Near.connect(client)", ("connected",) * 3),
        ("Client.make().connect(), Client.label('a'), Client[int].make().open()", ("connected", "client a", "connected")),
        ("class Own(Client):\n    def open(self): return Client.open(self) + '!'\nOwn().open()", "connected!"),
        ("class Own(Client):\n    def open(self): return super().open() + '!'\nOwn().open()", "connected!"),
        ("class Own(Client):\n    @property\n    def status(self): return super().status + '!'\nOwn().status", "connected!"),
        ("list(map(Client.open, [client, near]))", ["connected"] * 2),
        ("Client.connect is Client.connect is Near.connect, Client.connect.__name__", (True, "connect")),
        ("import collections\nclass Own(collections.UserDict):\n    def keys(self): return collections.UserDict.keys(self)\nlist(Own(a=1).keys())", ["a"]),
        ("from collections.abc import Sequence\nclass Own:\n    __getitem__ = [1, 2].__getitem__\n    index = Sequence.index\nOwn().index(2)", 1),
        ("class Own:\n    def f(self): return 1\nOwn.f(None)", 1),
        ("sorted([2, 1], key=int.__neg__), list(map(str.upper, 'ab'))", ([2, 1], ["A", "B"])),
    ],
)  # fmt: skip
def test_a_method_read_off_a_class_is_called_with_objects_of_it_as_ever(program: str, value: object) -> None:
    result = Sandbox(strict_with_clients()).exec(program, namespace={"client": Client[int](), "near": Near()})
    assert result.error is None
    assert result.value == value
