"""What a registration of a class or an object says holds, whatever else is registered beside it.

Stopped by: sandbox.policy.policy, sandbox.policy.member_rules.
"""

from __future__ import annotations

import enum
import importlib
import importlib.util
import re
import sys
import types
from typing import Any

import pytest

from agex.errors import DefinitionError, SandboxError
from agex.sandbox import Policy, Sandbox

STRICT = pytest.mark.parametrize("strict", [False, True])


class Vault:
    """Has a member that is not for everyone."""

    label = "open to all"

    def secret(self) -> str:
        return "secret"


HERE = types.ModuleType("vaults")
HERE.Vault = Vault  # type: ignore[attr-defined]
Vault.__module__ = "vaults"


def leave_out(policy: Policy) -> None:
    policy.cls(Vault, name="V", exclude=["_*", "secret"])


def leave_out_of_object(policy: Policy) -> None:
    policy.module(Vault(), name="v", include=["label"])


def leave_out_of_module(policy: Policy) -> None:
    policy.module(HERE, exclude=["_*", "*._*", "Vault.secret"])


def grant(policy: Policy) -> None:
    policy.cls(Vault)


def grant_object(policy: Policy) -> None:
    policy.module(Vault(), name="w")


def grant_module(policy: Policy) -> None:
    policy.module(HERE, name="others", exclude=["_*", "*._*", "Vault.other"])


@STRICT
@pytest.mark.parametrize("other", [grant, grant_object, grant_module])
@pytest.mark.parametrize("first", [leave_out, leave_out_of_object, leave_out_of_module])
def test_what_one_registration_leaves_out_no_other_brings_back(first: Any, other: Any, strict: bool) -> None:
    for order in (first, other), (other, first):
        policy = Policy.default(strict=strict)
        for register in order:
            register(policy)
        sandbox = Sandbox(policy)
        assert isinstance(sandbox.exec("x.secret()", namespace={"x": Vault()}).error, SandboxError)
        assert sandbox.exec("x.label", namespace={"x": Vault()}).value == "open to all"


@STRICT
def test_a_registration_that_is_made_again_under_its_name_is_the_last_one(strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Vault, exclude=["_*", "secret"])
    policy.cls(Vault)

    assert Sandbox(policy).exec("Vault().secret()").value == "secret"


@STRICT
@pytest.mark.parametrize(
    "settings", [{"include": ["label"]}, {"include": "lab*"}, {"exclude": "t*"}, {"exclude": str.islower}]
)
def test_what_a_live_object_holds_itself_is_left_out_as_what_its_class_has(
    settings: Any, strict: bool
) -> None:
    service = types.SimpleNamespace(LABEL="open to all", label="open to all", token="secret")
    policy = Policy.default(strict=strict)
    policy.module(service, name="service", **settings)
    sandbox = Sandbox(policy)

    for program in ("service.token", "getattr(service, 'token')", "'{0.token}'.format(service)"):
        assert isinstance(sandbox.exec(program).error, SandboxError)
    shown = "LABEL" if settings == {"exclude": str.islower} else "label"
    assert sandbox.exec(f"service.{shown}").value == "open to all"


class Client:
    """Sets a private attribute late."""

    def __init__(self) -> None:
        self._token = "secret"

    def connect(self, session: Any) -> None:
        self._session = session

    def query(self) -> str:
        return str(self._session.post(self._token))


class Late(Client):
    def __getattr__(self, name: str) -> Any:
        if name == "_session":
            return types.SimpleNamespace(post=lambda token: "posted")
        raise AttributeError(name)


SPY = """
told = []
class Spy:
    def post(self, token): told.append(token)
    def __getattr__(self, name): return Spy() if name in ("_session", "mine") else None
"""
EARLY = """
class Early:
    def __set_name__(self, owner, name):
        try:
            owner().query()
        except AttributeError:
            pass
"""


@STRICT
@pytest.mark.parametrize(
    "made",
    [
        "class G(Client): __getattr__ = Spy.__getattr__",
        "class G(Spy, Client): pass",
        "class A(Client): __getattr__ = Spy.__getattr__\nclass G(A): pass",
        "class G(Client): __getattr__ = classmethod(lambda cls, name: Spy())",
        f"{EARLY}class G(Client):\n  early = Early()\n  __getattr__ = Spy.__getattr__",
    ],
)
def test_a_class_of_a_guest_over_one_of_the_host_does_not_answer_for_its_state(
    made: str, strict: bool
) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Client)
    found = Sandbox(policy).exec(f"{SPY}{made}\nG().query()")

    assert isinstance(found.error, AttributeError)
    assert "_session" in str(found.error)
    assert found.namespace["told"] == []
    assert Sandbox(policy).exec(f"{SPY}{made}\nG().mine").error is None


@STRICT
def test_what_a_class_of_the_host_answers_itself_a_class_of_a_guest_over_it_does_too(strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Late)
    program = f"{SPY}class G(Late): __getattr__ = Spy.__getattr__\nG().query()"

    assert Sandbox(policy).exec(program).value == "posted"


class Making(type):
    """A metaclass of the host's."""

    kind = "made"


class Made(metaclass=Making):
    def __init__(self) -> None:
        self._token = "secret"


@STRICT
@pytest.mark.parametrize("maker", [Making, type], ids=["of the host", "type"])
@pytest.mark.parametrize("way", ["cls", "fn", "variable", "bound"])
def test_a_metaclass_that_is_handed_over_makes_checked_classes(way: str, maker: type, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Made)
    if way == "cls":
        policy.cls(maker, name="M")
    elif way == "fn":
        policy.fn(maker, name="M")
    session = Sandbox(policy).session({"M": maker} if way == "variable" else {})
    if way == "bound":
        session.bind("M", maker)
    spied = "box = []\nM('S', (Made,), {'__setattr__': lambda self, k, v: box.append(v)})()"

    assert isinstance(session.run(spied).error, SandboxError)
    assert session.namespace["box"] == []
    assert session.run("A = M('A', (), {'x': 1})\nA.x, isinstance(A, M), M.__name__").value == (
        1, True, maker.__name__,
    )  # fmt: skip
    assert session.run("class B(metaclass=M): y = 2\nB.y, type(B) is M, isinstance(Made, M)").value == (
        2, True, True,
    )  # fmt: skip


PACKAGE = """
class Client:
    label = "open to all"
    def send(self): return "secret"
    class Inner:
        label = "open to all"
        def send(self): return "secret"
class _Hidden(Client):
    pass
def hidden(): return _Hidden()
def run(): return "secret"
def walk(): return "open to all"
"""


@pytest.fixture
def depot(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A package with a submodule that is there, and one that is loaded when it is asked for."""
    made = {name: types.ModuleType(name) for name in ("depot", "depot.inner", "depot.late")}
    for name, module in made.items():
        exec(PACKAGE, vars(module))
        if name != "depot.late":
            monkeypatch.setitem(sys.modules, name, module)
    package = made["depot"]
    package.inner, package.__path__ = made["depot.inner"], []  # type: ignore[attr-defined]
    load = importlib.import_module

    def loaded(name: str) -> types.ModuleType:
        return sys.modules.setdefault(name, made[name]) if name in made else load(name)

    monkeypatch.setattr(importlib, "import_module", loaded)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: made.get(name) or find(name))
    monkeypatch.setitem(sys.modules, "depot.late", made["depot.late"])
    monkeypatch.delitem(sys.modules, "depot.late")
    return package


@STRICT
@pytest.mark.parametrize("pattern", ["*.send", "Client*.send", "*.se*"])
@pytest.mark.parametrize("home", ["depot", "depot.inner", "depot.late"])
@pytest.mark.parametrize("made", ["Client()", "hidden()", "Client.Inner()"])
def test_what_a_module_leaves_out_of_classes_holds_for_all_of_its_package(
    depot: types.ModuleType, made: str, home: str, pattern: str, strict: bool
) -> None:
    policy = Policy.default(strict=strict)
    policy.module(depot, exclude=["_*", "*._*", pattern])
    sandbox = Sandbox(policy)

    assert isinstance(sandbox.exec(f"import {home}\n{home}.{made}.send()").error, SandboxError)
    assert isinstance(sandbox.exec(f"import {home}\ngetattr({home}.{made}, 'send')()").error, SandboxError)
    over = f"import {home}\nclass G(type({home}.{made})):\n  def f(self): return super().send()\nG().f()"
    assert isinstance(sandbox.exec(over).error, SandboxError)
    assert sandbox.exec(f"import {home}\n{home}.{made}.label").value == "open to all"


@STRICT
@pytest.mark.parametrize(
    ("pattern", "refused", "open_"),
    [
        ("inner.run", "depot.inner.run()", "depot.run()"),
        ("inner.*", "depot.inner.run()", "depot.run()"),
        ("late.run", "depot.late.run()", "depot.inner.run()"),
        ("depot.run", "depot.run()", "depot.inner.run()"),
        ("depot.inner", "depot.inner.run()", "depot.run()"),
        ("depot.late", "depot.late.run()", "depot.run()"),
        ("inner.Client.send", "depot.inner.Client().send()", "depot.Client().send()"),
        ("depot.inner.Client.send", "depot.inner.Client().send()", "depot.Client().send()"),
        ("Client.Inner.send", "depot.late.Client.Inner().send()", "depot.late.Client().send()"),
    ],
)
def test_what_a_module_leaves_out_is_named_by_its_path(
    depot: types.ModuleType, pattern: str, refused: str, open_: str, strict: bool
) -> None:
    policy = Policy.default(strict=strict)
    policy.module(depot, exclude=["_*", "*._*", pattern])
    sandbox = Sandbox(policy)
    load = "import depot\ntry:\n  import depot.late\nexcept ImportError: pass\n"

    assert isinstance(sandbox.exec(load + refused).error, AttributeError)
    assert sandbox.exec(load + open_).value == "secret"


class Refused(Exception):
    """An error of the host's that guest code cannot make."""


@STRICT
@pytest.mark.parametrize(
    ("caught", "is_caught"),
    [
        ("Refused", True),
        ("(KeyError, Refused)", True),
        ("errors.get('refused')", True),
        ("Exception", True),
        ("(KeyError, TypeError)", False),
        ("V", False),
    ],
)
@pytest.mark.parametrize("star", ["", "*"])
def test_a_sealed_exception_is_caught_by_its_name(
    star: str, caught: str, is_caught: bool, strict: bool
) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Refused, constructable=False)
    policy.cls(Vault, name="V", constructable=False)

    @policy.fn
    def fail() -> None:
        raise Refused("no")

    program = f"errors = {{'refused': Refused}}\ntry: fail()\nexcept{star} {caught} as e: found = e"
    found = Sandbox(policy).exec(program)

    assert (found.error is None) is is_caught
    assert isinstance(Sandbox(policy).exec("Refused('no')").error, SandboxError)


@pytest.mark.parametrize(("it", "way"), [(Vault, "cls(it)"), (len, "fn(it)"), (Vault().secret, "fn(it)")])
def test_what_is_no_live_object_is_not_registered_as_one(it: Any, way: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(way)):
        Policy.default().module(it, name="it", exclude=["_*", "secret"])


class Kept:
    """A descriptor, in Python, over a private attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance, self.name)


class Shown:
    token = Kept()
    _token = "open to all"


class Hidden:
    _token = "secret"


@STRICT
@pytest.mark.parametrize(
    "program",
    [
        "Shown.token.__get__(Hidden())",
        "Shown.token.__get__(Hidden(), Hidden)",
        "getattr(Shown.token, '__get__')(Hidden())",
        "type(Shown.token).__get__(Shown.token, Hidden())",
        "class G(type(Shown.token)):\n  def f(self, x): return super().__get__(x)\ng = G()\ng.name = '_token'\ng.f(Hidden())",
    ],
)
def test_a_descriptor_of_the_host_reads_objects_of_its_class_only(program: str, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    for each in Shown, Hidden, Kept:
        policy.cls(each)
    sandbox = Sandbox(policy)

    assert isinstance(sandbox.exec(program).error, SandboxError)
    assert sandbox.exec("Shown.token.__get__(Shown()), Shown().token").value == ("open to all",) * 2
    own = "class G:\n  x = Kept()\n  def __init__(self): self._x = 1\nG().x, G.x.__get__(G())"
    assert sandbox.exec(own).value == (1, 1)


class Level(enum.Enum):
    LOW = 1

    def __init__(self, rank: int) -> None:
        self.rank = rank


@STRICT
@pytest.mark.parametrize(
    "program",
    [
        "Level.LOW.rank = 5",
        "Level.LOW.note = 5",
        "del Level.LOW.rank",
        "setattr(Level(1), 'rank', 5)",
        "object.__setattr__(Level.LOW, 'rank', 5)",
        "for Level.LOW.rank in [5]: pass",
        "Level.LOW.rank += 4",
    ],
)
def test_members_of_an_enumeration_of_the_host_are_not_changed(program: str, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Level)
    sandbox = Sandbox(policy)

    assert isinstance(sandbox.exec(program).error, SandboxError)
    assert vars(Level.LOW)["rank"] == 1
    assert "note" not in vars(Level.LOW)
    assert sandbox.exec("Level.LOW.rank").value == 1


class Port(enum.Enum):
    """Has a private member, an excluded one and another name of that."""

    OPEN = 1
    _HIDDEN = 2
    SECRET = 3
    ALSO = 3  # noqa: PIE796 - another name of it


LIE = """
class S(str):
    def __hash__(self): return hash("_HIDDEN")
    def __eq__(self, other): return True
class O:
    def __hash__(self): return hash("_HIDDEN")
    def __eq__(self, other): return True
"""


@STRICT
@pytest.mark.parametrize(
    "program",
    [
        "Port['_HIDDEN']",
        "Port['SECRET']",
        "'{0[_HIDDEN]}'.format(Port)",
        "import operator\noperator.getitem(Port, 'SECRET')",
        "Port.__members__['_HIDDEN']",
        "type(Port).__getitem__(Port, '_HIDDEN')",
        f"{LIE}Port[S('OTHER')]",
        f"{LIE}Port[O()]",
    ],
)
def test_a_member_of_an_enumeration_that_is_left_out_is_reached_in_no_way(program: str, strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Port, exclude=["_*", "SECRET", "ALSO"])

    assert isinstance(Sandbox(policy).exec(program).error, SandboxError | KeyError)


@STRICT
def test_iteration_gives_the_members_of_an_enumeration_that_are_not_left_out(strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Port, exclude=["_*", "SECRET", "ALSO"])
    policy.fn(lambda: [*Port], name="all_of_host")
    source = """
import collections, enum
class Own(enum.Enum):
    A = 1
    _B = 2
first, *rest = Port
found = [len(Port), [*Port], [*reversed(Port)], dict(Port.__members__), [*collections.Counter(Port)], [first, *rest]]
def later(): return [*Port], len(Port)
own = [len(Own), Own["_B"] is [*Own][1], [*Own.__members__]]
count = len(all_of_host())
"""
    done = Sandbox(policy).exec(source)

    only = [Port.OPEN]
    assert done.error is None
    assert done.namespace["found"] == [1, only, only, {"OPEN": Port.OPEN}, only, only]
    assert done.namespace["own"] == [2, True, ["A", "_B"]]
    assert done.namespace["count"] == 3
    assert done.namespace["later"]() == (only, 1)
    assert [*Port] == [Port.OPEN, Port["_HIDDEN"], Port.SECRET]


class Rights(enum.Flag):
    """Has a flag that is left out."""

    READ = 1
    WRITE = 2
    ROOT = 4


ASKED = """
seen = []
class O:
    def __init__(self, *hashed): self.hashed = hashed
    def __eq__(self, other): seen.append(other)
    def __hash__(self): return hash(*self.hashed)
def tried(work):
    try: return work()
    except ValueError as error: return str(error)
"""


CONTAINED = "value in Port, known_to_host(value)" if sys.version_info >= (3, 12) else "pass"


@STRICT
def test_a_value_leads_to_no_member_that_is_left_out_and_is_told_none(strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Port, exclude=["_*", "SECRET", "ALSO"])
    policy.fn(lambda value: Port(value), name="by_host")  # noqa: PLW0108 - the class itself has its members left out
    policy.fn(lambda value: value in Port, name="known_to_host")
    source = f"""{ASKED}
found = [Port(1), Port(Port.OPEN), Port(value=1), *map(Port, [1]), tried(lambda: Port(3)), tried(lambda: Port(9))]
for value in (O(), O(2), O(3)):
    tried(lambda: Port(value))
    tried(lambda: [*map(Port, [value])])
    tried(lambda: by_host(value))
    {CONTAINED}
found += [by_host(3)]
"""
    done = Sandbox(policy).exec(source)

    assert done.error is None
    unknown = ["3 is not a valid Port", "9 is not a valid Port"]
    assert done.namespace["found"] == [Port.OPEN, Port.OPEN, Port.OPEN, Port.OPEN, *unknown, Port.SECRET]
    assert set(done.namespace["seen"]) <= {1, Port.OPEN}


@STRICT
def test_flags_together_hold_none_that_is_left_out(strict: bool) -> None:
    policy = Policy.default(strict=strict)
    policy.cls(Rights, exclude=["ROOT"])
    policy.fn(lambda: Rights.READ | Rights.ROOT, name="all_rights")
    done = Sandbox(policy).exec("Rights(3), Rights.READ | Rights.WRITE, Rights.READ in all_rights()")

    assert done.value == (Rights(3), Rights(3), True)
    for program in (
        "Rights(4)",
        "Rights(5)",
        "~Rights.READ",
        "all_rights() & Rights(7)",
        "[*map(Rights, [6])]",
    ):
        assert isinstance(Sandbox(policy).exec(program).error, SandboxError | ValueError), program


def test_an_enumeration_that_is_made_by_a_call_says_where() -> None:
    made = enum.Enum("made", "A B")

    assert made.__module__ == __name__
    assert Sandbox().exec("import enum\nenum.Enum('E', 'A B').__module__").value == "__main__"


@pytest.mark.parametrize("has_folder", [True, False], ids=["a folder for bytecode", "no folder for it"])
def test_a_library_that_imports_as_it_works_goes_without_the_bytecode_file(tmp_path, monkeypatch, has_folder):
    package = tmp_path / f"lazy_{has_folder}".lower()
    package.mkdir()
    (package / "__init__.py").write_text("def answer():\n    from . import late\n    return late.VALUE\n")
    (package / "late.py").write_text("VALUE = 42\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", not has_folder)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(package.name)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    policy = Policy.default()
    policy.fn(module.answer, name="answer")

    result = Sandbox(policy).exec("answer()")

    assert (result.value, result.error) == (42, None)
    assert list(package.glob("__pycache__/late*")) == []


def test_a_module_whose_list_of_names_promises_too_much_is_registered_without_those(monkeypatch) -> None:
    module = types.ModuleType("promising")
    source = """
__all__ = ['here', 'lazy', 'missing', 'optional']
here = 1
def __getattr__(name):
    if name == 'lazy':
        return 2
    if name == 'optional':
        import nothing_that_is_installed
    raise AttributeError(name)
"""
    exec(source, vars(module))
    monkeypatch.setitem(sys.modules, "promising", module)
    policy = Policy.default()
    policy.module(module)
    assert Sandbox(policy).exec("import promising\npromising.here + promising.lazy").value == 3
    for name in ("missing", "optional"):
        assert isinstance(Sandbox(policy).exec(f"import promising\npromising.{name}").error, AttributeError)


def test_joblib_is_registered_as_a_whole() -> None:
    policy = Policy.default()
    policy.module(importlib.import_module("joblib"))
    source = "import joblib\njoblib.Parallel(2, prefer='threads')(joblib.delayed(abs)(-n) for n in range(3))"
    assert Sandbox(policy).exec(source).value == [0, 1, 2]


def test_dir_lists_the_own_members_of_a_registered_class():
    class Robot:
        def walk(self): ...

    policy = Policy.default()
    policy.cls(Robot)
    result = Sandbox(policy).exec(
        "class Own: pass\nnames = dir(Robot), dir(Robot()), '__eq__' in dir(Own), '__eq__' in dir(1)"
    )
    assert result.namespace["names"] == (["walk"], ["walk"], True, True)
