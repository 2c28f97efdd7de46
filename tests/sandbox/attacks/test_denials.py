"""It denies what reaches for the host, wherever the name of it can be written.

Stopped by: sandbox.rules.names, sandbox.language.transformer, sandbox.guards.guards,
sandbox.guards.attribute_doors.
"""

import math
import sys
from typing import Any

import pytest

from agex.errors import SandboxAttributeError, SandboxError, SandboxImportError, SandboxSyntaxError
from agex.sandbox import Limits, Policy, Sandbox

SECRET = "the-secret"


class Vault:
    """A class of the host with private state."""

    limit = 10

    def __init__(self, label: str = "vault") -> None:
        self._secret = SECRET
        self.__hidden = SECRET
        self.label = label

    def describe(self) -> str:
        return "vault " + str(self.label)

    def size(self) -> int:
        return len(self._secret) + len(self.__hidden)


def host_fn(x: int = 0, _token: str = SECRET) -> int:
    return x + len(_token)


def run(source: str, **names: Any) -> Any:
    policy = Policy.default()
    policy.cls(Vault)
    policy.fn(host_fn)
    policy.module(math)
    return Sandbox(policy, limits=Limits(seconds=5)).exec(source, {"vault": Vault(), **names})


CLASS_WALK = "().__class__.__base__.__subclasses__()"
FUNCTION_GLOBALS = "host_fn.__globals__"
FUNCTION_DEFAULTS = "host_fn.__defaults__"
BUILTIN_SELF = "print.__self__"
GENERATOR_FRAME = "(x for x in []).gi_frame.f_builtins"
TRACEBACK_FRAME = "try: 1/0\nexcept Exception as e: e.__traceback__.tb_frame"
IMPORT_BY_NAME = "__import__('os')"
BUILTINS_BY_NAME = "__builtins__"
BUILTINS_REBOUND = "__builtins__ = {}"
BUILTINS_GLOBAL = "def f():\n    global __builtins__\n    __builtins__ = {}"
IMPORT_AS_BUILTINS = "import math as __builtins__"
PATTERN_KEYWORD = "match host_fn:\n    case object(__globals__=g): pass"
FINALIZER = "class A:\n    def __del__(self): pass"
FINALIZER_ASSIGNED = "class A:\n    __del__ = lambda self: None"
HELPER_NAMES_VIA_DUNDER = "class A:\n    __class__ = int"

AT_COMPILE_TIME = [
    CLASS_WALK, FUNCTION_GLOBALS, FUNCTION_DEFAULTS, BUILTIN_SELF, GENERATOR_FRAME, TRACEBACK_FRAME, IMPORT_BY_NAME,
    BUILTINS_BY_NAME, BUILTINS_REBOUND, BUILTINS_GLOBAL, IMPORT_AS_BUILTINS, PATTERN_KEYWORD, FINALIZER,
    FINALIZER_ASSIGNED, HELPER_NAMES_VIA_DUNDER,
]  # fmt: skip


@pytest.mark.parametrize("source", AT_COMPILE_TIME)
def test_it_denies_names_of_the_interpreter_before_anything_runs(source: str) -> None:
    result = run("ran = True\n" + source)

    assert type(result.error) is SandboxSyntaxError
    assert "line " in str(result.error)
    assert "ran" not in result.namespace


PRIVATE_LOAD = "vault._secret"
PRIVATE_MANGLED = "class Vault:\n    def f(self, v): return v.__hidden\nVault().f(vault)"
PRIVATE_GETATTR = "getattr(vault, '_sec' + 'ret')"
PRIVATE_FORMAT = "'{0._secret}'.format(vault)"
PRIVATE_FORMAT_MAP = "'{v._secret}'.format_map({'v': vault})"
PRIVATE_FORMAT_UNBOUND = "str.format('{0._secret}', vault)"
PRIVATE_ATTRGETTER = "import operator\noperator.attrgetter('_secret')(vault)"
PRIVATE_FORMATTER = "import string\nstring.Formatter().format('{0._secret}', vault)"
PRIVATE_PATTERN = "match vault:\n    case Vault(_secret=s): leak = s"
PRIVATE_SUBCLASS = "class S(Vault):\n    def leak(self): return self._secret\nS().leak()"
PRIVATE_SUPER = "class S(Vault):\n    def leak(self): return super()._secret\nS().leak()"
GLOBALS_GETATTR = "getattr(host_fn, '__glo' + 'bals__')"
GLOBALS_HASATTR = "hasattr(host_fn, '__glo' + 'bals__')"
INSTANCE_DICT = "vault.__dict__"
INSTANCE_STATE = "vault.__getstate__()"
OBJECT_GETATTRIBUTE = "object.__getattribute__(vault, '_secret')"
HELPER_GETATTR = "getattr(vault, 'check!')"
FAILED_LOOKUP_OBJECT = "try: vault.nope\nexcept AttributeError as e: e.obj"
STORE_ON_HOST_CLASS = "Vault.describe = lambda self: 'pwned'"
STORE_ON_MODULE = "import math\nmath.pi = 3"
STORE_BY_SETATTR = "setattr(Vault, 'limit', 1)"
STORE_HIDES_METHOD = "vault.describe = lambda: 'pwned'"
STORE_IN_FOR_TARGET = "for Vault.limit in [1]: pass"
DELETE_ON_MODULE = "import math\ndel math.pi"
OBJECT_SETATTR = "object.__setattr__(vault, '_secret', 1)"
METACLASS_NAMESPACE = """
class Evil(dict):
    def __missing__(self, key): return lambda *a: a[0]
class Meta(type):
    def __prepare__(name, bases): return Evil()
class A(metaclass=Meta):
    leak = vault._secret
"""
MATCH_ARGS = """
class Meta(type):
    def __instancecheck__(cls, o): return True
class P(metaclass=Meta):
    __match_args__ = ('__globals__',)
match host_fn:
    case P(g): pass
"""
MATCH_ARGS_PROPERTY = """
class Meta(type):
    n = 0
    def __instancecheck__(cls, o): return True
    @property
    def __match_args__(cls):
        Meta.n += 1
        return ('label',) if Meta.n == 1 else ('_secret',)
class P(metaclass=Meta): pass
leak = 'none'
match vault:
    case P(x): leak = x
assert leak == 'vault'
raise AttributeError('only the first answer counts')
"""
EVAL_HELPERS = "eval('v._secret', {'v': vault, 'check!': lambda o, n: o})"
AT_RUN_TIME = [
    PRIVATE_LOAD, PRIVATE_MANGLED, PRIVATE_GETATTR, PRIVATE_FORMAT, PRIVATE_FORMAT_MAP, PRIVATE_FORMAT_UNBOUND,
    PRIVATE_ATTRGETTER, PRIVATE_FORMATTER, PRIVATE_PATTERN, PRIVATE_SUBCLASS, PRIVATE_SUPER, GLOBALS_GETATTR,
    GLOBALS_HASATTR, INSTANCE_STATE, OBJECT_GETATTRIBUTE, HELPER_GETATTR, FAILED_LOOKUP_OBJECT,
    STORE_ON_HOST_CLASS, STORE_ON_MODULE, STORE_BY_SETATTR, STORE_HIDES_METHOD, STORE_IN_FOR_TARGET,
    DELETE_ON_MODULE, OBJECT_SETATTR, METACLASS_NAMESPACE, MATCH_ARGS, MATCH_ARGS_PROPERTY, EVAL_HELPERS,
]  # fmt: skip


@pytest.mark.parametrize("source", AT_RUN_TIME)
def test_it_denies_private_state_and_changes_of_the_host(source: str) -> None:
    vault = Vault()
    result = run(source, vault=vault)

    assert isinstance(result.error, AttributeError)
    assert SECRET not in str(result.namespace)
    assert (vault.describe(), Vault.limit, math.pi > 3.14) == ("vault vault", 10, True)


HOOKS = {
    "setattr": "    def __setattr__(self, k, v): box.append(v)",
    "getattribute": "    def __getattribute__(self, k): return box",
    "private descriptor": "    @property\n    def _secret(self): return 1",
    "private slot": "    __slots__ = ('_secret',)",
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("base", ["Vault", "Mixin, Vault"])
def test_it_denies_hooks_in_a_class_over_a_class_of_the_host(hook: str, base: str) -> None:
    """Stopped by: sandbox.classes.host_classes, sandbox.classes.class_registry."""
    body = HOOKS[hook]
    mixin = f"class Mixin:\n{body if base != 'Vault' else '    pass'}\n"
    source = f"box = []\n{mixin}class S({base}):\n{body if base == 'Vault' else '    pass'}\nS()"
    result = run(source)

    assert isinstance(result.error, TypeError)
    assert result.namespace["box"] == []


@pytest.mark.parametrize("make", ["type", "(lambda t: t)(type)", "int.__class__", "type(Vault)", "type(int)"])
def test_it_denies_hooks_in_a_class_made_by_calling_a_metaclass(make: str) -> None:
    """Stopped by: sandbox.classes.host_classes, sandbox.classes.class_registry."""
    result = run(
        f"box = []\nS = {make}('S', (Vault,), {{'__setattr__': lambda s, k, v: box.append(v)}})\nS()"
    )

    assert isinstance(result.error, TypeError)
    assert result.namespace["box"] == []


def test_it_denies_the_namespace_of_a_host_object() -> None:
    for source in ("vars(vault)", "vault.__dict__", "vars(Vault)"):
        assert isinstance(run(source).error, SandboxError)


@pytest.mark.parametrize(
    "name",
    ["os", "sys.modules", "subprocess", "ctypes", "importlib.util", "builtins", "marshal", "dis", "pickle"],
)
def test_it_denies_imports_that_were_not_granted(name: str) -> None:
    """Stopped by: sandbox.guards.import_statement."""
    assert isinstance(run(f"import {name}").error, SandboxImportError)


@pytest.mark.parametrize(
    "source", ["from json import codecs", "from random import _os", "import collections.abc as c, json.os"]
)
def test_it_denies_modules_reached_through_a_granted_one(source: str) -> None:
    """Stopped by: sandbox.guards.import_statement, sandbox.policy.module_grant."""
    assert isinstance(run(source).error, ImportError)


def test_it_denies_swallowing_the_end_of_a_run() -> None:
    """Stopped by: sandbox.language.transformer, sandbox.runtime.kill_switch."""
    sandbox = Sandbox()
    session = sandbox.session()

    class Done(BaseException):
        pass

    session.bind("finish", lambda: session.stop(Done()))
    for source in (
        "try: finish()\nexcept: after = 1\nlater = 1",
        "try: finish()\nexcept BaseException: pass\nlater = 1",
        "def f():\n    try: finish()\n    finally: return 1\nf()\nlater = 1",
        "class C:\n    def __enter__(self): pass\n    def __exit__(self, *e): return True\nwith C(): finish()\nlater = 1",
        "from contextlib import suppress\nwith suppress(BaseException): finish()\nlater = 1",
    ):
        result = session.run(source)

        assert type(result.stopped) is Done
        assert (result.error, "later" in result.namespace, "after" in result.namespace) == (
            None,
            False,
            False,
        )


def test_it_denies_ending_the_host() -> None:
    """Stopped by: sandbox.classes.hook_guards."""
    for source in ("raise SystemExit(3)", "raise GeneratorExit", "class E(BaseException): pass\nraise E"):
        assert isinstance(run(source).error, Exception)


def test_it_allows_what_was_granted() -> None:
    source = """
import math
class Labelled(Vault):
    def __init__(self): super().__init__("mine"); self._own = 1; self.extra = 2
    def describe(self): return super().describe() + "!" + str(self._own)
vault.label = "changed"
(vault.describe(), Labelled().describe(), Labelled().size() > 0, host_fn(1), math.floor(2.5), isinstance(vault, Vault))
"""
    assert run(source).value == ("vault changed", "vault mine!1", True, 11, 2, True)


def test_an_excluded_member_is_denied_on_its_class_only() -> None:
    """Stopped by: sandbox.policy.exclusions."""
    policy = Policy.default()
    policy.cls(Vault, exclude=["_*", "size"])
    source = "class Mine:\n    def size(self): return 1\na = Mine().size()\nvault.size()"
    result = Sandbox(policy).exec(source, {"vault": Vault()})

    assert (result.namespace["a"], type(result.error)) == (1, SandboxAttributeError)


def test_a_sealed_class_cannot_be_constructed_by_any_name() -> None:
    """Stopped by: sandbox.classes.sealed_classes."""
    policy = Policy.default()
    policy.cls(Vault, constructable=False)
    for source in ("Vault()", "type(vault)()", "vault.__class__()", "Vault.__new__(Vault)"):
        result = Sandbox(policy).exec(source, {"vault": Vault()})

        assert isinstance(result.error, (TypeError, SandboxError)), source
    assert Sandbox(policy).exec("isinstance(vault, Vault), vault.describe()", {"vault": Vault()}).value == (
        True,
        "vault vault",
    )


def test_a_policy_of_nothing_grants_no_module() -> None:
    """Stopped by: sandbox.policy.policy."""
    assert isinstance(Sandbox(Policy()).exec("import math").error, SandboxImportError)
    assert Sandbox(Policy()).exec("sum([1, 2])").value == 3


def test_a_strict_policy_runs_the_same_programs() -> None:
    """Stopped by: sandbox.guards.strict_checks."""
    source = "class A:\n    def __init__(self): self.x = [3, 1]\n    def f(self): self.x.sort(); return self.x\nA().f(), 'a'.upper()"

    assert Sandbox(Policy.default(strict=True)).exec(source).value == ([1, 3], "A")


def of_package(source: str) -> Any:
    """Run with one module of a package of the host granted, and the package itself not."""
    from email.mime import text as granted

    policy = Policy()
    policy.module(granted)
    return Sandbox(policy, limits=Limits(seconds=5)).exec(source)


def test_a_granted_module_is_imported_from_its_package() -> None:
    """Stopped by: sandbox.policy.module_grant, sandbox.guards.import_statement."""
    result = of_package("from email.mime import text\nfrom email.mime import text as again\ntext is again")
    assert (result.error, result.value) == (None, True)


@pytest.mark.parametrize(
    "source",
    [
        "from email.mime import text, base",
        "from email.mime import base",
        "from email.mime import *",
        "from email import mime, message",
        "from email import message",
        "from email.mime import text\nimport email",
        "from email.mime import text\nimport email.mime.base",
        "from email.mime import __path__, text",
        "from email.mime import text, __spec__",
    ],
)
def test_it_denies_the_rest_of_the_package_around_a_granted_module(source: str) -> None:
    """Stopped by: sandbox.policy.module_grant."""
    error = of_package(source).error
    assert isinstance(error, SandboxImportError | SandboxAttributeError | SandboxSyntaxError)


def test_a_package_that_was_not_granted_shows_nothing_but_the_granted_module() -> None:
    """Stopped by: sandbox.policy.module_grant."""
    result = of_package("from email.mime import text\nimport email.mime.text\nsorted(dir(email.mime))")
    assert [name for name in result.value if not name.startswith("__")] == ["text"]


@pytest.mark.parametrize(
    ("event", "has_door"),
    [("sqlite3.enable_load_extension", True), ("sqlite3.load_extension", True), ("sys.monitoring.register_callback", False)],
)  # fmt: skip
def test_a_function_of_the_host_loads_no_native_code_and_watches_no_frames(
    event: str, has_door: bool
) -> None:
    """Stopped by: sandbox.runtime.audit_hook."""

    def announce() -> None:
        sys.audit(event, None, None)  # as sqlite3 and sys.monitoring do, which not every Python has

    policy = Policy.default()
    policy.fn(announce, name="without")
    policy.fn(announce, name="with_door", host_fs_access=True)
    sandbox = Sandbox(policy)

    assert isinstance(sandbox.exec("without()").error, SandboxError)
    assert isinstance(sandbox.exec("with_door()").error, SandboxError) is not has_door


@pytest.mark.parametrize("policy", ["email.policy.default", "email.message.EmailMessage().policy"])
def test_it_denies_the_registry_of_headers_that_the_process_shares(policy):
    """Stopped by: sandbox.rules.names."""
    result = Sandbox(Policy.default()).exec(
        f"import email.message, email.policy\nx = {policy}.header_factory"
    )
    assert "header_factory" in str(result.error)
