"""The caches of the process: what a guest puts there under a key that lies, the host never finds.

Stopped by: sandbox.patches.stdlib_caches, sandbox.classes.lru_caches.
"""

from __future__ import annotations

import abc
import calendar
import collections.abc
import datetime as dt
import enum
import fractions
import functools
import pathlib
import re
import struct
import sys
import textwrap
import time
import types
import typing
import zoneinfo
from collections.abc import Callable
from typing import Any

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    ALL = 4


class Rare:
    """Something that nobody has asked typing about."""


class Rarer:
    """Something that nobody has asked typing about either."""


LYING = """
class S(str):
    def __hash__(self): return hash(other)
    def __eq__(self, x): return x == other
class I(int):
    numerator = property(lambda self: self)
    def __hash__(self): return hash(other)
    def __eq__(self, x): return True
    def __abs__(self): return 12345
"""
LYING_CLASS = """
asked = since = 0
def says(kind):
    def __getattribute__(self, name):
        global asked
        if name != "__class__": return object.__getattribute__(self, name)
        asked += 1
        return kind if asked > since else object
    return __getattribute__
def tried(call):
    global asked, since
    for since in range(12):
        asked = 0
        try: call()
        except Exception: pass
class M(type):
    def __hash__(cls): return hash(str)
    def __eq__(cls, other): return True
"""
POISONED: dict[str, tuple[str, object, Callable[[], object]]] = {
    "a pattern with other flags": (
        "import re\nother = 0\nre.compile('^a poisoned b$', I(8))",
        None,
        lambda: re.match("^a poisoned b$", "a poisoned b\nand more"),
    ),
    "a pattern of a library": (
        ("import string\nother = int(string.Template.flags | 64)\nclass F(int):\n  def __or__(self, x): return I(8)\n"
        "class T(string.Template):\n  pattern, flags = '^a templated b$', F(0)"),
        None,
        lambda: re.match("^a templated b$", "a templated b\nand more", re.IGNORECASE | re.VERBOSE),
    ),
    "a format of struct": ("import struct\nother = '<5i'\nstruct.calcsize(S('<5q'))", 20, lambda: struct.calcsize("<5i")),
    "a format of times": (
        "import time\nother = '%Y:%d:%m'\ntime.strptime('2024:01:02', S('%Y:%m:%d'))",
        2,
        lambda: time.strptime("2024:01:02", "%Y:%d:%m").tm_mon,
    ),
    "a format of dates": (
        "import datetime\nother = '%Y=%d=%m'\ndatetime.datetime.strptime('2024=01=02', S('%Y=%m=%d'))",
        2,
        lambda: dt.datetime.strptime("2024=01=02", "%Y=%d=%m").month,  # noqa: DTZ007 - no zone
    ),
    "a time zone": (
        "import zoneinfo\nother = 'Asia/Dubai'\nz = zoneinfo.ZoneInfo(S('Asia/Tokyo'))",
        4 * 3600,
        lambda: _offset("Asia/Dubai"),
    ),
    "an own time zone": (
        "import zoneinfo\nother = 'Asia/Muscat'\nz = type(zoneinfo.ZoneInfo('UTC'))(key=S('Asia/Tokyo'))",
        4 * 3600,
        lambda: _offset("Asia/Muscat"),
    ),
    "a flag": (
        "other = 7\nclass K(int):\n  def __hash__(self): return 7\n  def __eq__(self, x): return int(x) == 7\nRight(K(3))",
        "Right.READ|WRITE|ALL",
        lambda: str(Right(7)),
    ),
    "a list of typing": (
        ("import typing\nother = Rare\nclass G:\n  def __hash__(self): return hash(other)\n  def __eq__(self, x): return True\n  def __call__(self): pass\n"
        "typing.List[G()], typing.Dict[str, G()], typing.List[list[G()]]"),
        [type, type, type],  # not Rare: what lies would equal that too
        lambda: [type(typing.get_args(each)[-1]) for each in (typing.List[Rare], typing.Dict[str, Rare], typing.get_args(typing.List[list[Rare]])[0])],  # noqa: UP006
    ),
    "a hash of a fraction": (
        "import fractions\nother = 7\nhash(fractions.Fraction(I(7)))",
        hash(7),
        lambda: hash(fractions.Fraction(7)),
    ),
    "a hash of a fraction of what is no number": (
        ("import fractions\nclass N:\n  def __init__(s, v): s.v = v\n  def __hash__(s): return hash(s.v)\n  def __eq__(s, o): return True\n"
        "  def __pow__(s, *a): return 1\n  def __abs__(s): return 5\n  def __ge__(s, o): return True\nclass F(fractions.Fraction): pass\n"
        "f = F(1, 2)\nf._numerator, f._denominator = N(311), N(773)\nhash(f)"),
        hash(311 * pow(773, -1, sys.hash_info.modulus) % sys.hash_info.modulus),
        lambda: hash(fractions.Fraction(311, 773)),
    ),
    "a template of bytes": (
        "import re\nother = rb'<\\1>'\nclass B(bytearray):\n  def __hash__(s): return hash(other)\n  def __eq__(s, o): return True\nre.sub(rb'(a)', B(rb'not this\\1'), b'a')",
        b"<a>",
        lambda: re.sub(rb"(a)", rb"<\1>", b"a"),
    ),
    "a pattern that says its class is str": (
        LYING_CLASS + "import re\nclass P(bytearray, metaclass=M):\n  __getattribute__ = says(str)\n  def __hash__(s): return hash('^a lied b$')\n"
        "  def __eq__(s, o): return True\n  def __getitem__(s, i): return '^not this$'[i]\n  def __len__(s): return 10\ntried(lambda: re.compile(P(b'^not this$')))",
        True,
        lambda: bool(re.match("^a lied b$", "a lied b")),
    ),
    "a flag by what says that its class is int": (
        LYING_CLASS + "class N:\n  __getattribute__ = says(int)\n  def __hash__(s): return 5\n  def __eq__(s, o): return o == 5\n  def __le__(s, o): return True\n"
        "  def __ge__(s, o): return True\n  def __lt__(s, o): return False\n  def __and__(s, o): return 5 & o\n  __rand__ = __and__\n  def __xor__(s, o): return 5 ^ o\n  __rxor__ = __xor__\n"
        "tried(lambda: Right(N()))",
        int,
        lambda: type(Right(5).value),
    ),
    "a time zone by what is no text": (
        LYING_CLASS + "import zoneinfo\nclass K:\n  def __hash__(s): return hash('Asia/Tbilisi')\n  def __eq__(s, o): return o == 'Asia/Tbilisi'\n  def __fspath__(s): return 'Asia/Tokyo'\n"
        "  def __len__(s): return 10\ntried(lambda: zoneinfo.ZoneInfo(K()))",
        4 * 3600,
        lambda: _offset("Asia/Tbilisi"),
    ),
    "metadata of typing": (
        "import typing\nclass G:\n  def __hash__(self): return hash('rare')\n  def __eq__(self, x): return True\ntyping.List[typing.Annotated[Rare, G()]]",
        str,  # not "rare": what lies equals that too
        lambda: type(typing.get_args(typing.List[typing.Annotated[Rare, "rare"]])[0].__metadata__[0]),  # noqa: UP006
    ),
    "a list of typing by a class that is like str": (
        LYING_CLASS + "import typing\nclass X(metaclass=M):\n  def __hash__(s): return hash(Rarer)\n  def __eq__(s, o): return True\n  def __call__(s): pass\ntyping.List[X()]",
        True,
        lambda: typing.get_args(typing.List[Rarer])[0] is Rarer,  # noqa: UP006
    ),
}  # fmt: skip


def _offset(key: str) -> float:
    offset = zoneinfo.ZoneInfo(key).utcoffset(dt.datetime(2024, 1, 1))  # noqa: DTZ001 - a time there
    assert offset is not None
    return offset.total_seconds()


@pytest.mark.parametrize("name", POISONED)
def test_the_host_finds_in_no_cache_what_a_guest_put_there_under_a_key_that_lies(name: str) -> None:
    source, expected, look = POISONED[name]
    found: list[object] = []

    done = Sandbox().exec(
        f"{LYING}{source}\nseen()",
        {"seen": lambda: found.append(look()), "Rare": Rare, "Rarer": Rarer, "Right": Right},
    )

    assert done.error is None
    assert [*found, look()] == [expected, expected]


def test_paths_match_what_they_did_after_a_guest_asked_with_a_key_that_lies() -> None:
    policy = Policy.default()
    policy.module(pathlib)
    says: dict[str, Any] = {"case_sensitive": True} if sys.version_info >= (3, 12) else {}
    source = """
import pathlib
class I(int):
    def __hash__(self): return hash(True)
    def __eq__(self, other): return True
found = [pathlib.PurePosixPath("Ab").match("a*b", **dict.fromkeys(says, no)) for no in (I(0), False)]
"""
    done = Sandbox(policy).exec(source, {"says": list(says)})

    assert done.error is None
    assert done.namespace["found"] == [bool(says)] * 2
    assert not pathlib.PurePosixPath("Ab").match("a*b", **says)


def test_a_key_that_lies_finds_what_it_says() -> None:
    source = f"""{LYING}
import re, struct, time, typing, zoneinfo
other = None
Z = zoneinfo.ZoneInfo
found = (
    re.findall(S("a+"), "baa", I(2)), re.sub(b"a", b"b", b"a"), struct.pack(S("<i"), 1), zoneinfo.ZoneInfo(S("UTC")).key,
    time.strptime("2024", S("%Y"))[0], Z("UTC").key, Z.no_cache("UTC").key, isinstance(Z("UTC"), zoneinfo.ZoneInfo),
    typing.List[int] is typing.List[int], type(zoneinfo.ZoneInfo("UTC")) is zoneinfo.ZoneInfo,
)
"""
    done = Sandbox().exec(source)
    assert done.error is None
    assert done.namespace["found"] == (["aa"], b"b", b"\1\0\0\0", "UTC", 2024, "UTC", "UTC", True, True, True)


@pytest.mark.parametrize(
    "source",
    [
        "textwrap.TextWrapper.unicode_whitespace_trans[ord('a')] = 88",
        "class T(textwrap.TextWrapper): pass\nT().unicode_whitespace_trans[ord('a')] = 88",
        "getattr(calendar.HTMLCalendar(), 'cssclasses').clear()",
        "calendar.HTMLCalendar.cssclasses_weekday_head[0] = 'x'",
    ],
)
def test_the_tables_of_a_class_stay_as_they_are(source: str) -> None:
    assert Sandbox().exec(f"import calendar, textwrap\n{source}").error is None
    assert textwrap.fill("a b") == "a b"
    assert calendar.HTMLCalendar.cssclasses == calendar.HTMLCalendar.cssclasses_weekday_head
    assert calendar.HTMLCalendar.cssclasses[0] == "mon"


def test_a_class_has_tables_of_its_own() -> None:
    source = """
import calendar
import collections.abc
class C(calendar.HTMLCalendar): cssclasses = [*calendar.HTMLCalendar.cssclasses]
C.cssclasses[0] = "first"
"first" in C().formatweekday(0) and "first" in C().formatmonth(2024, 1)
"""
    done = Sandbox().exec(source)
    assert done.error is None
    assert done.namespace["C"].cssclasses[0] == "first"


@pytest.mark.parametrize(
    "source",
    [
        "class G(c.Sequence): __subclasshook__ = classmethod(lambda cls, other: True)",
        "type('G', (c.Sequence,), {'__subclasshook__': classmethod(lambda cls, other: True)})",
        "class B: __subclasshook__ = classmethod(lambda cls, other: True)\nclass G(B, c.Sequence): pass",
        "import typing\nclass G(typing.Sequence[int]): __subclasshook__ = classmethod(lambda cls, other: True)",
        "import abc\nclass M(abc.ABCMeta): __subclasscheck__ = lambda cls, other: True\nclass G(c.Sequence, metaclass=M): pass",
        "import abc\nclass B: __subclasscheck__ = lambda cls, other: True\nclass M(B, abc.ABCMeta): pass\nM('G', (c.Sequence,), {})",
        "class G(c.Sequence): pass\nG.register(Rare)",
        "import abc\nclass M(abc.ABCMeta):\n  def take(cls, other): super().register(other)\nclass G(c.Sequence, metaclass=M): pass\nG.take(Rare)",
    ],
)
def test_no_class_of_a_guest_says_what_is_of_an_abstract_class_of_others(source: str) -> None:
    """Stopped by: sandbox.classes.abc_register."""
    done = Sandbox().exec(
        f"import collections.abc as c\n{source}\nseen()",
        {"seen": lambda: isinstance(Rare(), collections.abc.Sequence), "Rare": Rare},
    )

    assert isinstance(done.error, SandboxError)
    assert not isinstance(Rare(), collections.abc.Sequence)


def test_an_abstract_class_of_a_guest_says_itself_what_is_of_it() -> None:
    """Stopped by: sandbox.classes.abc_register."""
    source = """
import abc
class A(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other): return True if hasattr(other, "quack") else NotImplemented
class B(abc.ABC): pass
class Duck:
    def quack(self): pass
B.register(int)
found = isinstance(Duck(), A), isinstance(1, A), isinstance(1, B)
"""
    assert Sandbox().exec(source).namespace["found"] == (True, False, True)


@pytest.mark.parametrize(
    "source",
    [
        "class L(list, metaclass=abc.ABCMeta): pass\nL.register(Counter)",
        "class L(list, metaclass=abc.ABCMeta): pass\nL.register(subclass=Counter)",
        "class L(list, metaclass=abc.ABCMeta): pass\nlist(map(L.register, [Counter]))",
        "class L(abc.ABC): pass\nr = L.register\nclass M(list, metaclass=abc.ABCMeta): pass\nM.register(L)\nr(Counter)",
        "class M(abc.ABCMeta):\n  def take(cls, other): super().register(other)\nclass L(list, metaclass=M): pass\nL.take(Counter)",
    ],
)
def test_a_class_of_the_host_is_matched_as_ever_whatever_it_is_registered_with(source: str) -> None:
    """Stopped by: sandbox.classes.abc_register."""
    done = Sandbox().exec(f"import abc\nfrom collections import Counter\n{source}")

    assert isinstance(done.error, SandboxError)
    match collections.Counter(a=1):
        case {"a": found}:
            assert found == 1
        case _:
            pytest.fail("it is no mapping any more")


def test_an_abstract_class_over_a_list_registers_what_nobody_else_uses() -> None:
    """Stopped by: sandbox.classes.abc_register."""
    source = """
import abc
class L(list, metaclass=abc.ABCMeta): pass
@L.register
class Own:
    def __len__(self): return 1
    def __getitem__(self, at): return ["first"][at]
L.register(range)
match Own():
    case [found]: pass
found, isinstance(Own(), L), isinstance(range(1), L)
"""
    assert Sandbox().exec(source).value == ("first", True, True)


def test_what_a_guest_writes_into_the_data_of_a_module_stays_with_its_session() -> None:
    """Stopped by: sandbox.guards.attribute_doors."""
    module = types.ModuleType("rates")
    vars(module).update(TABLE={"a": [1]}, PAIR=([1], 2), __all__=["TABLE", "PAIR"])
    policy = Policy.default()
    policy.module(module)
    shown = "calendar.mdays[2], rates.TABLE, rates.PAIR, rates.__all__"
    session = Sandbox(policy).session()

    session.run(
        "import calendar, rates\ncalendar.mdays[2] = 99\nrates.TABLE['a'].append(2)\n"
        "rates.PAIR[0].clear()\nrates.__all__.clear()"
    )
    again = session.run(f"import calendar, rates\n{shown}")
    other = Sandbox(policy).session().run(f"import calendar, rates\n{shown}")

    assert again.value == (99, {"a": [1, 2]}, ([], 2), [])
    assert other.value == (28, {"a": [1]}, ([1], 2), ["TABLE", "PAIR"])
    assert vars(module)["TABLE"] == {"a": [1]}


def test_a_module_of_a_session_is_one_however_it_is_reached() -> None:
    source = "import collections.abc, collections.abc as a\nfrom collections import abc\ncollections.abc is a is abc"
    assert Sandbox().exec(source).value is True


@functools.cache
def remembering(key: Any) -> str:
    return str(key)


class Remembering:
    @functools.lru_cache  # noqa: B019 - what a host may have
    def find(self) -> int:
        return 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        "remembering.cache_clear()",
        "found.find.cache_clear()",
        "getattr(given, 'cache_clear')()",
        "type(given).cache_clear(given)",
        "import operator\noperator.methodcaller('cache_clear')(given)",
        "'{0.cache_clear}'.format(given)",
        "match given:\n  case object(cache_clear=clear): clear()",
    ],
)
def test_what_a_function_of_the_host_remembers_no_guest_has_it_forget(program: str, strict: bool) -> None:
    """Stopped by: sandbox.classes.lru_caches."""
    policy = Policy.default(strict=strict)
    policy.fn(remembering)
    policy.cls(Remembering)
    found = Remembering()
    remembering.cache_clear()
    remembering("key"), found.find()

    done = Sandbox(policy).exec(program, {"given": remembering, "found": found})

    assert isinstance(done.error, SandboxError)
    assert remembering.cache_info().currsize == 1
    assert Remembering.find.cache_info().currsize >= 1


def test_a_function_of_the_host_remembers_nothing_of_a_key_that_lies() -> None:
    """Stopped by: sandbox.classes.lru_caches."""
    policy = Policy.default()
    policy.fn(remembering)
    remembering.cache_clear()
    source = """
class S(str):
    def __hash__(self): return hash("key")
    def __eq__(self, other): return True
lie = S("lie")
found = [remembering(lie), remembering(key=lie), remembering((lie,)), remembering("key"), remembering.cache_info().currsize]
"""
    done = Sandbox(policy).exec(source)

    assert done.error is None
    assert done.namespace["found"] == ["lie", "lie", "('lie',)", "key", 1]
    assert [remembering("key"), remembering(key="key"), remembering(("key",))] == ["key", "key", "('key',)"]


def test_a_function_of_a_module_of_the_host_remembers_nothing_of_a_key_that_lies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stopped by: sandbox.classes.lru_caches."""
    module = types.ModuleType("remembering_module")
    module.price = functools.cache(lambda shop, key: str.__str__(key))  # type: ignore[attr-defined]
    module.price.__module__ = module.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    policy = Policy.default()
    policy.module(module)
    source = """
import remembering_module as m
class S(str):
    def __hash__(self): return hash("key")
    def __eq__(self, other): return True
m.price("shop", S("lie")), m.price(shop="shop", key=S("lie")), m.price("shop", "key"), m.price is m.price
"""
    done = Sandbox(policy).exec(source)

    assert done.value == ("lie", "lie", "key", True)
    assert module.price("shop", "key") == module.price(shop="shop", key="key") == "key"


def test_what_a_guest_s_own_functions_remember_they_forget() -> None:
    """Stopped by: sandbox.classes.lru_caches."""
    source = """
import functools
@functools.lru_cache(maxsize=4)
def f(x): return x
class A:
    @functools.cache
    def f(self): return 1
    def cache_clear(self): return "its own"
a, g = A(), functools.lru_cache(given)
f(1), a.f(), g(1)
for each in f, a.f, g: each.cache_clear()
found = [f.cache_info().currsize, A.f.cache_info().currsize, g.cache_info().currsize, a.cache_clear()]
"""
    done = Sandbox().exec(source, {"given": remembering})

    assert done.error is None
    assert done.namespace["found"] == [0, 0, 0, "its own"]


class Trusted(abc.ABC):  # noqa: B024 - what it has is no matter
    """What the host asks for before it hands over a secret."""


class Known(Trusted):
    pass


class Stranger:
    pass


@functools.singledispatch
def kind(value: Any) -> str:
    return "any"


@kind.register
def _(value: Known) -> str:
    return "known"


def test_a_class_of_a_guest_is_found_in_no_table_as_one_of_the_host() -> None:
    """Stopped by: sandbox.classes.class_registry."""
    policy = Policy.default()
    policy.fn(lambda value: [isinstance(value, Trusted), kind(value)], name="asked")
    source = """
class M(type):
    like = Known
    def __hash__(cls): return hash(M.like)
    def __eq__(cls, other): return True
    def __ne__(cls, other): return False
class A(metaclass=M): pass
found = [asked(A())]
M.like = Stranger
class B(metaclass=M): pass
found += [asked(B()), asked(known), asked(stranger)]
equal = [A == Known, A != B, A in [Known], {Stranger: 1}.get(B)]
"""
    assert isinstance(Known(), Trusted)
    names = {"Known": Known, "Stranger": Stranger, "known": Known(), "stranger": Stranger()}
    done = Sandbox(policy).exec(source, names)

    assert done.error is None
    assert done.namespace["found"] == [[False, "any"], [False, "any"], [True, "known"], [False, "any"]]
    assert done.namespace["equal"] == [True, False, True, 1]


@pytest.mark.parametrize("function", ["exec", "eval"])
def test_a_text_that_lies_is_compiled_as_what_it_is_and_found_for_no_other(function: str) -> None:
    """What is compiled is remembered by its text, for all sessions.

    Stopped by: sandbox.language.compiler.
    """
    source = f"""
class S(str):
    def __hash__(self): return hash('6 * 7')
    def __eq__(self, other): return True
    def __len__(self): return 0
    def splitlines(self): return [S('evil')]
{function}(S("seen.append('evil')"))
found = {function}('6 * 7')
"""
    seen: list[str] = []
    session = Sandbox().session({"seen": seen})
    assert session.run(source).error is None
    expected = 42 if function == "eval" else None

    assert seen == ["evil"]
    assert session.globals["found"] == expected
    assert Sandbox().exec("6 * 7").value == 42
