"""Hostile programs as chains of steps: each step does something odd to what earlier steps came by.

A step is one statement that binds ``v<n>``, in a ``try`` of its own, so that a chain goes on after a refusal and
the refusal itself becomes a value. Names that are refused when a program is compiled are said through
``getattr``, a format string or a pattern, else one of them would end the whole program.
"""

from __future__ import annotations

import string
import textwrap
import types
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from agex.sandbox import Policy
from agex.sandbox.rules import names as ledger

PRELUDE = """\
import abc, asyncio, calendar, collections, contextlib, copy, csv, dataclasses, datetime, decimal, enum, functools, heapq
import io, itertools, json, numbers, operator, pprint, queue, random, re, reprlib, statistics, string, sys
import textwrap, types, typing, uuid, warnings
box = []
def keep(*args, **kwargs):
    box.append((args, kwargs)); return args[-1] if args else None
class Plain:
    x = 1
    _p = 2
    def __init__(self, *a, **k): self.a = a; self._own = k
    def method(self, *a): return self, a
    def __enter__(self): return self
    def __exit__(self, *exc): return True
class Slots: __slots__ = ("a", "_b")
class Meta(type):
    def __call__(cls, *a, **k): return super().__call__(*a, **k)
class WithMeta(metaclass=Meta): pass
class Text(str):
    def startswith(self, *a): return False
    def endswith(self, *a): return False
    def __eq__(self, o): return True
    def __hash__(self): return 1
class Over(Vault):
    def __init__(self, *a): super().__init__(); self.own = a
class Both(Plain, Vault):
    def __init__(self): Vault.__init__(self)
@dataclasses.dataclass
class Data:
    a: object = 1
    b: object = 2
class Kind(enum.Enum):
    A = 1
class Proto(typing.Protocol):
    x: int
class Error(Exception):
    def __init__(self, *a): super().__init__(*a); self.a = a
def generator():
    got = yield 1
    yield got
async def coroutine(): return 1
async def agenerator(): yield 1
@contextlib.contextmanager
def manager():
    yield 1
Named = collections.namedtuple("Named", "a b")
try: host_fail()
except Exception as e: error = e
try: host_lookup("nope")
except Exception as e: lookup = e
group = ExceptionGroup("g", [error, lookup])
"""
"""What the guest has before the first step."""

ATOMS = [
    "(1)", "'text'", "b'b'", "None", "()", "[]", "{}", "(1, 2)", "[vault]", "{'a': vault}", "{1}", "slice(1)", "(1.5)",
    "vault", "record", "box", "bound", "sealed", "Vault", "Record", "Box", "Color.RED", "Sealed",
    "host_fn", "host_fail", "host_apply", "host_sort", "host_generator", "host_coroutine", "host_lookup",
    "Plain", "Plain()", "Slots", "Slots()", "Meta", "WithMeta", "WithMeta()", "Text('_secret')", "Over", "Over()", "Both",
    "Both()", "Data", "Data()", "Kind", "Kind.A", "Proto", "Error", "Error(vault)", "error", "lookup", "group",
    "generator", "generator()", "coroutine", "agenerator()", "manager()", "manager", "Named(1, vault)", "Named",
    "keep", "(lambda *a, **k: a)", "(x for x in [vault])", "type", "object", "int", "str", "dict", "property",
    "classmethod", "staticmethod", "getattr", "setattr", "vars", "dir", "globals", "locals", "eval", "exec", "print",
    "Exception", "zip", "globals()", "vars(Plain)", "type(vault)", "type(type)", "type(generator())", "type(keep)",
    "(int | str)", "list[int]", "type[int]", "Box", "super(Over, Over())", "box", "Vault.describe", "Vault.initial",
    "Vault.length", "Vault.make", "Plain.method", "Plain().method", "memoryview(bytearray(b'x'))",
    "'_secret'", "'size'", "'describe'", "'label'", "'__dict__'", "'exec'", "'{0._secret}'", "'{0.__globals__}'",
]  # fmt: skip

LEFT_OUT = {
    "count", "cycle", "repeat", "sleep", "product", "permutations", "combinations", "combinations_with_replacement",
    "factorial", "comb", "perm", "pbkdf2_hmac", "getsizeof", "pp", "pprint", "LocaleTextCalendar", "LocaleHTMLCalendar",
}  # fmt: skip
"""Members that only make a program run for ever or print, in C code that no limit reaches."""


def _members() -> list[str]:
    """Give every member of the modules that a program imports."""
    imported = {name.strip(" ,") for line in PRELUDE.splitlines()[:3] for name in line[7:].split(",")}
    found = []
    for name, grant in sorted(Policy.default().modules.items()):
        if name in imported:
            found += [f"{name}.{m}" for m, v in sorted(vars(grant.copy()).items())
                      if m.isidentifier() and m not in LEFT_OUT and not isinstance(v, types.ModuleType)
                      and not m.startswith("__")]  # fmt: skip
    return found


_INTERPRETER = sorted(
    ledger.DENIED | {
        "__globals__", "__code__", "__closure__", "__defaults__", "__kwdefaults__", "__builtins__", "__self__", "__func__",
        "__subclasses__", "__traceback__", "__reduce__", "__reduce_ex__", "__loader__", "__spec__", "__import__",
        "__objclass__", "__mro_entries__", "__weakref__", "__getnewargs__", "__getnewargs_ex__", "__del__", "__flags__",
        "_secret", "_canary", "_key", "_namespace", "_own", "_p", "_b", "_Vault__hidden", "_value_", "_name_", "_fields",
        "_replace", "_asdict", "_missing_", "_member_map_", "_generate_next_value_", "_stream", "_loop", "_get_loop",
        "check!", "own!", "value!",
    }
)  # fmt: skip

_PUBLIC = [
    "describe", "label", "size", "items", "fetch", "initial", "length", "make", "version", "limit", "x", "a", "b", "item",
    "method", "format", "format_map", "mro", "register", "obj", "args", "fget", "fset", "func", "keywords", "attrname",
    "gen", "send", "throw", "close", "cause", "name", "value", "data", "maps", "default_factory", "registry", "dispatch",
    "cache_clear", "cache_info", "add_note", "split", "subgroup", "derive", "exceptions", "get_field",
    "vformat", "parse", "copy", "keys", "values", "get", "pop", "update", "append", "encode", "join", "setter", "getter",
    "deleter", "tobytes", "getvalue", "read", "write", "mutex", "queue", "not_empty", "prec", "traps", "fields",
    "firstweekday", "setfirstweekday", "c", "scan_once", "memo", "pattern", "lexicon", "scanner",
    "get_stack", "get_loop", "get_coro", "print_stack",
]  # fmt: skip

_DUNDERS = sorted(ledger.DUNDERS)
_SAID = [*_PUBLIC, *_DUNDERS, "_secret", "_canary", "_key", "_own", "_p", "_value_", "_namespace"]
"""Names that may be written as attributes without ending the program."""
_WRITTEN = [*_PUBLIC[:20], "describe", "_secret", "_own", "name", "attrname", "_value_", "__name__", "__doc__", "__call__",
            "__wrapped__", "__annotations__", "__hash__", "__eq__", "__setattr__", "__get__"]  # fmt: skip

OPEN = (
    "deepcopy", "GenericAlias", "Annotated", "typing.Mapping", "cached_property", "contextmanager({r})", "singledispatch(",
    "host_apply({r})", "host_sort(", "default_factory", "wraps(", "__setstate__", "def mro",
    "__new__(cls, *a, **k): return Vault", "Mapping()", "dataclass(init=False)", "calendar.c", "type[int]",
    "typing.Type", "sys.implementation", "dataclasses.fields", "vars(Plain)", "re.A",
    "enum.Enum('E'", "NormalDist", "__name__(cls)", "__getattribute__(self, n)", "string.Formatter", "SimpleNamespace",
    "_value_", "_name_",
)  # fmt: skip
"""Texts of the holes that `test_hostile_*` marks as open: left out, so that what is found is new. Delete one with its mark."""


def _shut(texts: list[str]) -> list[str]:
    """Leave out what leads into a hole that is known to be open."""
    return [text for text in texts if not any(each in text for each in OPEN)]


ATOMS = _shut(ATOMS)
atoms = st.sampled_from(ATOMS)
members = st.sampled_from(_shut(_members()))
names = st.one_of(st.sampled_from(_shut(_SAID)), st.sampled_from(_INTERPRETER))
said = st.sampled_from(_shut(_SAID))
written = st.sampled_from(_shut(_WRITTEN))

_BODIES = [
    "def __getattr__(self, n): return keep(n, vault)",
    "def __getattribute__(self, n): keep(self, n); return object.__getattribute__(self, n)",
    "def __setattr__(self, n, v): keep(n, v); object.__setattr__(self, n, v)",
    "def __setstate__(self, s): keep(s)",
    "def __getstate__(self): return {'a': vault}",
    "def __copy__(self): return keep(self)",
    "def __deepcopy__(self, memo): return keep(memo)",
    "def __init_subclass__(cls, **k): keep(cls, k)",
    "def __class_getitem__(cls, i): return keep(cls, i)",
    "def __set_name__(self, o, n): keep(o, n)",
    "def __get__(self, o, t=None): return keep(o, t)",
    "def __set__(self, o, v): keep(o, v)",
    "def __call__(self, *a, **k): return keep(self, *a)",
    "def __eq__(self, o): keep(o); return True",
    "def __hash__(self): return 1",
    "def __ror__(self, o): return keep(o)",
    "def __format__(self, s): keep(s); return '{0.__class__}'",
    "def __repr__(self): return Text('x')",
    "def __str__(self): return Text('_secret')",
    "def __index__(self): return keep(1)",
    "def __bool__(self): return True",
    "def __len__(self): return 1",
    "def __iter__(self): return iter([vault])",
    "def __getitem__(self, i): keep(i); return vault if i in (0, 'a', '_secret') else [][1]",
    "def __missing__(self, k): return keep(k)",
    "def __contains__(self, i): keep(i); return False",
    "def get(self, *a): return a[1] if len(a) > 1 else None",
    "def items(self): return [('a, print', int)]",
    "def __instancecheck__(cls, i): keep(i); return True",
    "def __subclasscheck__(cls, i): keep(i); return True",
    "@classmethod\ndef __prepare__(m, n, b, **k): return Mapping()",
    "def mro(cls): return [cls, Vault, object]",
    "def __new__(cls, *a, **k): return Vault",
    "@property\ndef __match_args__(cls): return ('_secret',)",
    "@property\ndef __name__(cls): return keep(cls)",
    "__match_args__ = ('_secret', 'size', '__dict__')",
    "__slots__ = ('a', '_secret')",
    "__annotations__ = Mapping()",
    "_secret: object",
    "_secret = functools.cached_property(keep)",
    "describe = functools.cached_property(keep)",
    "_missing_ = classmethod(lambda c, v: keep(c))",
    "_generate_next_value_ = lambda *a: keep(*a)",
    "__post_init__ = keep",
    "def with_traceback(self, tb): return keep(tb)",
    "def __str__(self): raise SystemExit(3)",
    "def __getattribute__(self, n): raise SystemExit(4)",
    "x = 1",
]
_MAPPING = """\
class Mapping(dict):
    def __iter__(self): return iter(())
    def get(self, *a): return a[1] if len(a) > 1 else None
    def items(self): return [("a, box.append(1)", int)]
"""

Templates = dict[str, int]
# {x} {y} {z}: a value. {h}: one that has to do with the host. {r}: a builtin that looks at who calls it. {n}: any name. {s}: one that may be said. {w}: one that may be written.
EXPRESSIONS: Templates = {
    "{x}.{s}": 6,
    "getattr({x}, {n!r})": 3,
    "getattr({h}, {n!r})": 2,
    "getattr({x}, {n!r}, {y})": 1,
    "getattr({x}, Text({n!r}))": 1,
    "pick({x}, {i})": 6,
    "{x}()": 4,
    "{x}({y})": 6,
    "{x}({y}, {z})": 4,
    "{x}({y}, {z}, {{}})": 1,
    "{x}('S', ({y},), {{{w!r}: keep, '__setattr__': keep}})": 1,
    "{x}(**{{{w!r}: {y}}})": 1,
    "{x}(*{y})": 1,
    "{x}[{y}]": 3,
    "{x}[0]": 1,
    "list(itertools.islice(iter({x}), 5))": 2,
    "{x} == {y}": 1,
    "{x} | {y}": 2,
    "type({x})": 2,
    "vars({x})": 2,
    "dir({x})": 1,
    "hasattr({x}, {n!r})": 1,
    "setattr({x}, {n!r}, {y})": 1,
    "'{{0.{n}}}'.format({x})": 1,
    "'{{x.{n}}}'.format_map({{'x': {x}}})": 1,
    "{x}.format('{{0.{n}}}', {y})": 2,
    "f'{{{x}!r:{{{y}}}}}'": 1,
    "format({x}, {y})": 1,
    "operator.attrgetter({n!r})({x})": 1,
    "operator.methodcaller({n!r}, {y})({x})": 1,
    "functools.partial({x}, {y})": 1,
    "functools.reduce({x}, [{y}, {z}])": 1,
    "functools.cached_property({x})": 1,
    "functools.singledispatch({r})('exec')": 1,
    "functools.wraps({h}, assigned=[Text({n!r})])({y})": 1,
    "functools.partialmethod({x}).__get__({y})": 1,
    "contextlib.contextmanager({r})()": 1,
    "contextlib.contextmanager({x})({y})": 1,
    "contextlib.ExitStack().enter_context({x})": 1,
    "dataclasses.make({x})": 1,
    "dataclasses.fields({x})": 1,
    "dataclasses.asdict({x})": 1,
    "dataclasses.replace({x}, a={y})": 1,
    "dataclasses.dataclass({x})": 1,
    "copy.copy({h})": 1,
    "copy.deepcopy({h}, memo)": 1,
    "types.GenericAlias({h}, {y})": 2,
    "types.GenericAlias({h}, ()).{s}": 1,
    "typing.Annotated[{h}, {y}]": 1,
    "typing.Annotated[{h}, 1].{s}": 1,
    "typing.get_type_hints({x})": 1,
    "enum.Enum('E', {{{n!r}: keep, 'A': {y}}}, type={h})": 1,
    "sorted([{x}, {y}], key={z})": 1,
    "next(map({x}, [{y}]))": 1,
    "host_apply({r})": 2,
    "host_apply({x}, {y})": 2,
    "host_sort([{y}, {y}], key={r})": 1,
    "json.dumps({x}, default={y})": 1,
    "json.loads('{{\"a\": 1.5}}', object_hook={x}, parse_float={y})": 1,
    "re.sub('.', {x}, 'text')": 1,
    "string.Formatter().format('{{0.{n}}}', {x})": 1,
    "eval({e!r})": 1,
    "eval({e!r}, {{'vault': {x}}})": 1,
    "isinstance({x}, {y})": 1,
    "super({x}, {h})": 1,
    "property({x}).__get__({y})": 1,
    "classmethod({x}).__get__(None, {h})": 1,
    "{x}.__get__({h})": 2,
    "{x}.send(None)": 1,
    "{x}.throw({y})": 1,
    "{x}.split(keep)": 1,
    "{x}.with_traceback(None)": 1,
    "abc.ABCMeta.register({x}, {y})": 1,
    "host_fn({x})": 1,
}
STATEMENTS: Templates = {
    "{x}.{w} = {y}; v = {x}": 2,
    "{h}.{w} = {y}; v = {h}": 2,
    "del {x}.{w}; v = {x}": 1,
    "for {x}.{w} in [{y}]: v = {x}": 1,
    "v = {x}; v |= {y}": 1,
    "with {x} as v: pass": 1,
    "match {h}:\n    case {c}({k}=m): v = m\n    case {c}(m): v = m": 2,
    "match {x}:\n    case {{'a': m, **rest}}: v = rest\n    case [m, *rest]: v = m": 1,
    "match {x}:\n    case [Over(m), _] | [WithMeta(m), _]: v = m": 1,
    "try: raise {x} from {y}\nexcept* Exception as e: v = e": 1,
    "try: raise {x}\nexcept BaseException as e: v = e.__cause__, e.__context__, e": 1,
    "@{x}\ndef v(*a): return a": 1,
    "@{x}\nclass v(Plain):\n    a: int = 1": 1,
    "class v({x}):\n    {b}\n    {b2}": 2,
    "class v({h}):\n    {b}\n    {b2}": 2,
    "class v({x}, {y}):\n    {b}": 2,
    "class v({x}, metaclass={y}):\n    {b}": 3,
    "class v({x}):\n    q = {y}": 2,
    "class Q(type):\n    {b}\nclass v({h}, metaclass=Q):\n    {b2}": 4,
    "class Q(type):\n    {b}\nclass v(metaclass=Q):\n    q = vault.{s}": 1,
    "@dataclasses.dataclass(init=False)\nclass Q({h}):\n    {b}\nv = repr(Q()), Q() == Q()": 1,
    "@dataclasses.dataclass\nclass Q:\n    q: object = dataclasses.field(default_factory={r})\nv = Q().q": 1,
    "class Q(str):\n    q = functools.cached_property({r})\nv = Q('exec').q": 1,
    "def f():\n    a = {x}\n    def g():\n        nonlocal a\n        a = vault\n        return a.{s}\n    return g()\nv = f()": 1,
    "v = [q.{s} for q in [{x}]]": 1,
    "v = (lambda q: q.{s})({x})": 1,
    "exec({e!r})\nv = None": 1,
}
_EVALUATED = [
    "vault",
    "exec",
    "globals()",
    "vault.size()",
    "Vault",
    "[v0 for _ in '1']",
    "getattr",
    "vault.label",
]


_HOST = [
    "vault", "Vault", "Over()", "Over", "Both()", "Both", "record", "Record", "Color.RED", "box", "Box", "Box[int]",
    "sealed", "Sealed", "lookup", "error", "bound", "Vault.length", "host_fn", "host_generator()", "globals()", "type",
    "string.Formatter", "types.SimpleNamespace", "pprint.PrettyPrinter()", "sys.implementation", "numbers.Number",
    "typing.Mapping", "re.A", "calendar.c", "vars(Plain)['__dict__']", "asyncio.Queue()", "dataclasses.fields(Record)[0]",
]  # fmt: skip
_REFLECTIVE = [
    "globals",
    "locals",
    "vars",
    "dir",
    "eval",
    "exec",
    "getattr",
    "type",
    "print",
    "copy.deepcopy",
]


def _choices(table: Templates) -> list[str]:
    return _shut([template for template, weight in table.items() for _ in range(weight)])


_EXPRESSIONS, _STATEMENTS = _choices(EXPRESSIONS), _choices(STATEMENTS)

_bodies = st.sampled_from(_shut(_BODIES)).map(lambda body: textwrap.indent(body, "    ").strip())
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "n": names,
    "s": said,
    "w": written,
    "i": st.integers(0, 60),
    "e": st.sampled_from(_EVALUATED),
    "c": st.sampled_from(["object", "Vault", "Over", "WithMeta", "Meta", "Exception", "type"]),
    "k": said.filter(lambda name: not ledger.is_denied(name)),
    "b": _bodies,
    "b2": _bodies,
}
"""What fills a field of a template, apart from the values."""
_FAVOURITES = {"h": st.sampled_from(_shut(_HOST)), "r": st.sampled_from(_REFLECTIVE)}
"""Fields that are filled with one of these half of the time, else with any value."""

_PICK = """\
def pick(value, i):
    found = [n for n in dir(value) if n not in LEFT_OUT]
    return getattr(value, found[i % len(found)])
memo = {}
v = None
"""
SETUP = f"{PRELUDE}{_MAPPING}LEFT_OUT = {sorted(LEFT_OUT)}\n{_PICK}"
"""What every program stands on."""

_TRY = "try:\n{body}\nexcept BaseException as e: v = e\nv{step} = v\n"

Draw = Callable[[st.SearchStrategy[Any]], Any]


def _value(draw: Draw, step: int) -> str:
    """Choose a value for a step: a late result half of the time, so that a chain goes on."""
    which = draw(st.integers(0, 9))
    if step and which < 5:
        return f"v{max(step - 1 - which // 2, 0)}"
    return str(draw(members if which == 9 else atoms))


def _filled(draw: Draw, template: str, step: int) -> str:
    fields = {
        field for _, field, _, _ in string.Formatter().parse(template.replace("{{", "").replace("}}", ""))
    }
    values: dict[str, Any] = {}
    for field in sorted(field for field in fields if field):
        if field in _FIELDS:
            values[field] = draw(_FIELDS[field])
        elif field in _FAVOURITES and draw(st.booleans()):
            values[field] = draw(_FAVOURITES[field])
        else:
            values[field] = _value(draw, step)
    return template.format(**values)


@st.composite
def programs(draw: Draw, longest: int = 7) -> str:
    """Make a program of a few steps, to be run after `SETUP`."""
    count = draw(st.integers(1, longest))
    lines: list[str] = []
    for step in range(count):
        if draw(st.integers(0, 3)):
            body = f"v = {_filled(draw, draw(st.sampled_from(_EXPRESSIONS)), step)}"
        else:
            body = _filled(draw, draw(st.sampled_from(_STATEMENTS)), step)
        lines.append(_TRY.format(body=textwrap.indent(body, "    "), step=step))
    if draw(st.integers(0, 5)) == 0:
        lines.append(f"raise v{count - 1}\n")  # what ends the program is looked at by the host
    return "".join(lines)
